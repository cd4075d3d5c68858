//! Output of a run, written by a thread of its own: whoever has its other end and doesn't read it holds nobody up.
//!
//! What waits to be written is bounded. A reader that is slow gets all of it. When more waits than may, lines are left
//! out; how many is said in their place.
//!
//! | rank | what | is left out |
//! |---|---|---|
//! | [`Rank::Routine`] | all is as it should be | when [`Bounds::routine`] bytes wait, until half of them are written |
//! | [`Rank::Notable`] | what somebody should know | when [`Bounds::notable`] bytes wait |
//! | [`Rank::Result`] | what comes once, as the summary | never |
//!
//! At the end [`Writer::drain`] waits for as long as the reader takes anything. A failure, such as a closed pipe, is
//! final: it is returned by each call from then on.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, write};

/// Written at once: whole lines, if they aren't longer. A pipe with room takes as much.
const PIECE_BYTES: usize = 4096;
/// How often [`Writer::drain`] asks whether it should go on.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How much lines matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Routine,
    Notable,
    Result,
}

/// As many bytes may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) routine: usize,
    pub(crate) notable: usize,
}

/// Writes texts in the order in which they come. Once it is dropped, its thread ends when all is written.
#[derive(Debug)]
pub(crate) struct Writer(Arc<WriterState>);

#[derive(Debug)]
struct WriterState {
    queue: Mutex<Queue>,
    bounds: Bounds,
    /// There is something to write, or there will never be.
    arrived: Condvar,
    /// A piece was written, or none can be any more.
    written: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: String,
    /// Bytes that the thread has taken and not written yet.
    in_hand: usize,
    /// Pieces that were written in all.
    pieces: u64,
    /// Lines that were left out since the last text that wasn't.
    left_out: u64,
    failure: Option<Errno>,
    is_closed: bool,
}

impl Writer {
    /// Starts a thread that writes to `target`.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(crate) fn start(
        name: &str,
        target: impl AsFd + Send + 'static,
        bounds: Bounds,
    ) -> io::Result<Writer> {
        let (queue, arrived, written) = (Mutex::default(), Condvar::new(), Condvar::new());
        let desk = Arc::new(WriterState { queue, bounds, arrived, written });
        let writer = Writer(Arc::clone(&desk));
        Builder::new().name(format!("offermill-{name}")).spawn(move || desk.work(&target))?;
        Ok(writer)
    }

    /// Has whole lines written, or leaves them out. `told` says that so many were, in whole lines. Doesn't wait.
    ///
    /// # Errors
    /// When nothing can be written any more.
    pub(crate) fn offer(
        &self,
        text: &str,
        rank: Rank,
        told: impl FnOnce(u64) -> String,
    ) -> io::Result<()> {
        let mut queue = self.0.lock();
        queue.result()?;
        if !queue.has_room(rank, self.0.bounds) {
            queue.left_out += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
            return Ok(());
        }
        let left_out = std::mem::take(&mut queue.left_out);
        if left_out > 0 {
            queue.waiting.push_str(&told(left_out));
        }
        queue.waiting.push_str(text);
        drop(queue);
        self.0.arrived.notify_one();
        Ok(())
    }

    /// Whether all is written.
    ///
    /// # Errors
    /// When nothing can be written any more.
    pub(crate) fn is_idle(&self) -> io::Result<bool> {
        let queue = self.0.lock();
        queue.result()?;
        Ok(queue.unwritten() == 0)
    }

    /// Waits until all is written, unless nothing was for as long as `patience`, or that `is_enough`.
    ///
    /// # Errors
    /// When something can't be written, or wasn't.
    pub(crate) fn drain(
        &self,
        patience: Duration,
        mut is_enough: impl FnMut() -> bool,
    ) -> io::Result<()> {
        let mut queue = self.0.lock();
        let (mut seen, mut until) = (queue.pieces, Instant::now() + patience);
        loop {
            queue.result()?;
            if queue.unwritten() == 0 {
                return Ok(());
            }
            if queue.pieces != seen {
                (seen, until) = (queue.pieces, Instant::now() + patience);
            }
            drop(queue);
            let left = until.saturating_duration_since(Instant::now());
            if is_enough() || left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads it"));
            }
            let has_news = |queue: &mut Queue| {
                queue.pieces == seen && queue.failure.is_none() && queue.unwritten() > 0
            };
            let wait = left.min(LOOK_EVERY);
            let waited = self.0.written.wait_timeout_while(self.0.lock(), wait, has_news);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.arrived.notify_one();
    }
}

impl Queue {
    fn unwritten(&self) -> usize {
        self.waiting.len() + self.in_hand
    }

    fn has_room(&self, rank: Rank, bounds: Bounds) -> bool {
        match rank {
            // Once lines are left out, many are, rather than one here and one there.
            Rank::Routine if self.left_out > 0 => self.unwritten() < bounds.routine / 2,
            Rank::Routine => self.unwritten() < bounds.routine,
            Rank::Notable => self.unwritten() < bounds.notable,
            Rank::Result => true,
        }
    }

    fn result(&self) -> io::Result<()> {
        self.failure.map_or(Ok(()), |errno| Err(errno.into()))
    }
}

impl WriterState {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's work.
    fn work(&self, target: &impl AsFd) {
        loop {
            let is_empty = |queue: &mut Queue| queue.waiting.is_empty() && !queue.is_closed;
            let waited = self.arrived.wait_while(self.lock(), is_empty);
            let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
            let text = std::mem::take(&mut queue.waiting);
            queue.in_hand = text.len();
            drop(queue);
            if text.is_empty() {
                return;
            }
            let mut rest = text.as_bytes();
            while let Some((piece, next)) = split_piece(rest) {
                rest = next;
                let result = write_whole(target, piece);
                let mut queue = self.lock();
                queue.in_hand -= piece.len();
                queue.pieces += 1;
                if let Err(errno) = result {
                    *queue = Queue { failure: Some(errno), ..Queue::default() };
                }
                let has_failed = queue.failure.is_some();
                drop(queue);
                self.written.notify_all();
                if has_failed {
                    return;
                }
            }
        }
    }
}

/// What to write next, up to the end of a line if there is one, and what follows.
fn split_piece(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let most = text.get(..PIECE_BYTES).unwrap_or(text);
    let end = most.iter().rposition(|byte| *byte == b'\n').map_or(most.len(), |end| end + 1);
    (end > 0).then(|| text.split_at(end))
}

/// Not by way of the standard library's handle, whose lock would be held by whoever waits here.
fn write_whole(target: &impl AsFd, mut piece: &[u8]) -> Result<(), Errno> {
    while !piece.is_empty() {
        match write(target, piece) {
            Ok(0) => return Err(Errno::IO),
            Ok(length) => piece = piece.get(length..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Somebody else who has the pipe wants writers not to wait. If it can't be looked at, writing tells why.
            Err(Errno::AGAIN) => {
                let _ready = poll(&mut [PollFd::new(target, PollFlags::OUT)], None);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read, pipe};

    use super::*;

    const BOUNDS: Bounds = Bounds { routine: 100_000, notable: 200_000 };
    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(600);

    fn writer() -> (PipeReader, Writer) {
        let (reader, target) = pipe().unwrap();
        (reader, Writer::start("test", target, BOUNDS).unwrap())
    }

    fn told(lines: u64) -> String {
        format!("left out {lines}\n")
    }

    fn offer(writer: &Writer, text: &str, rank: Rank) {
        writer.offer(text, rank, told).unwrap();
    }

    /// Goal: who doesn't read costs bounded memory, holds nobody up and hears afterwards what is missing; results
    /// always come, and all comes in its order. Method: far more lines than may wait, of all ranks, before anything is
    /// read; then all is.
    #[test]
    fn lines_that_nobody_reads_are_counted() {
        const LINES: u64 = 100_000;
        let (mut reader, writer) = writer();
        for number in 0..LINES {
            let rank = if number % 10 == 9 { Rank::Notable } else { Rank::Routine };
            offer(&writer, &format!("line {number}\n"), rank);
            assert!(writer.0.lock().unwritten() < BOUNDS.notable + 100);
        }
        offer(&writer, "result\n", Rank::Result);
        assert_eq!(writer.drain(SHORT, || false).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(writer.drain(LONG, || true).is_err(), "that is enough");
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let (mut next, mut routine, mut notable) = (0, 0, 0);
        for line in text.lines() {
            if let Some(left_out) = line.strip_prefix("left out ") {
                next += left_out.parse::<u64>().unwrap();
            } else if let Some(number) = line.strip_prefix("line ") {
                assert_eq!(number.parse(), Ok(next));
                *(if next % 10 == 9 { &mut notable } else { &mut routine }) += 1;
                next += 1;
            }
        }
        assert_eq!((next, text.lines().last()), (LINES, Some("result")));
        assert!(routine > 5_000 && notable > 5_000, "{routine} {notable}");
    }

    /// Goal: a slow reader gets all that fits, and the end waits for it though it takes longer than the patience.
    /// Method: a reader with pauses.
    #[test]
    fn a_slow_reader_is_waited_for() {
        let (mut reader, writer) = writer();
        let line = "x".repeat(999) + "\n";
        (0..90).for_each(|_| offer(&writer, &line, Rank::Routine));
        let slow = std::thread::spawn(move || {
            let (mut length, mut piece) = (0, [0; 8192]);
            loop {
                std::thread::sleep(SHORT / 2);
                match reader.read(&mut piece).unwrap() {
                    0 => return length,
                    more => length += more,
                }
            }
        });
        writer.drain(SHORT * 4, || false).unwrap();
        assert!(writer.is_idle().unwrap());
        drop(writer);
        assert_eq!(slow.join().unwrap(), 90_000);
    }

    /// Goal: a closed pipe is told to all who write from then on, and nobody waits for it. Method: close it while
    /// lines wait.
    #[test]
    fn a_closed_pipe_is_told() {
        let (reader, writer) = writer();
        (0..1000).for_each(|_| offer(&writer, &("x".repeat(99) + "\n"), Rank::Notable));
        drop(reader);
        let closed =
            |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::BrokenPipe;
        assert!(closed(writer.drain(LONG, || false)));
        assert!(closed(writer.offer("more\n", Rank::Result, told)));
        assert!(closed(writer.is_idle().map(drop)));
    }

    /// Goal: what is written at once are whole lines, if they aren't too long for that. Method: short lines and long
    /// ones.
    #[test]
    fn pieces_are_whole_lines() {
        let text = format!("{0}\n{0}\nend\n{1}", "x".repeat(2000), "y".repeat(9000));
        let (mut rest, mut lengths) = (text.as_bytes(), Vec::new());
        while let Some((piece, next)) = split_piece(rest) {
            lengths.push(piece.len());
            rest = next;
        }
        assert_eq!(lengths, [4006, 4096, 4096, 808]);
    }
}
