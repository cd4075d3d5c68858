//! Writes output with a thread of its own, so that a reader which doesn't read never blocks the run.
//!
//! The output that waits to be written is bounded. A slow reader gets all of it. If more output waits than the bound
//! allows, lines are omitted, and their number is written in their place.
//!
//! | rank | lines | omitted |
//! |---|---|---|
//! | [`Rank::Routine`] | normal operation | if [`Bounds::routine`] bytes wait, until half of them are written |
//! | [`Rank::Notable`] | what a user should notice | if [`Bounds::notable`] bytes wait |
//! | [`Rank::Result`] | written once, such as the summary | never |
//!
//! At the end, [`Writer::drain`] waits as long as the reader makes progress. An error, such as a closed pipe, is final:
//! each later call returns it.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};

/// The maximum number of bytes per write: whole lines if they are shorter. A write of this size to a pipe is atomic.
const PIECE_BYTES: usize = 4096;
/// The interval at which [`Writer::drain`] checks whether to go on.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// Whether the reader of a pipe, socket or terminal has closed it, without writing to it.
pub(crate) fn has_lost_reader(target: &impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Errors are reported even if no events are asked for.
    let mut state = [PollFd::new(target, PollFlags::empty())];
    let is_known = matches!(poll(&mut state, Some(&at_once)), Ok(1));
    is_known && state[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// The importance of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Routine,
    Notable,
    Result,
}

/// The maximum numbers of bytes that wait to be written, by rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) routine: usize,
    pub(crate) notable: usize,
}

/// Writes texts in the order in which they are given. After it is dropped, its thread writes the rest and ends.
#[derive(Debug)]
pub(crate) struct Writer(Arc<WriterState>);

#[derive(Debug)]
struct WriterState {
    queue: Mutex<PendingOutput>,
    bounds: Bounds,
    /// Notified if there is something to write, or the writer was dropped.
    arrived: Condvar,
    /// Notified if a piece was written, or writing failed.
    written: Condvar,
}

#[derive(Debug, Default)]
struct PendingOutput {
    waiting: String,
    /// The number of bytes that the thread is about to write.
    writing: usize,
    /// The number of pieces that were written.
    pieces: u64,
    /// The number of lines omitted since the last text.
    left_out: u64,
    failure: Option<Errno>,
    is_closed: bool,
}

impl Writer {
    /// Starts a thread that writes to `target`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        name: &str,
        target: impl AsFd + Send + 'static,
        bounds: Bounds,
    ) -> io::Result<Writer> {
        let state = Arc::new(WriterState {
            queue: Mutex::default(),
            bounds,
            arrived: Condvar::new(),
            written: Condvar::new(),
        });
        let writer = Writer(Arc::clone(&state));
        Builder::new().name(format!("offermill-{name}")).spawn(move || state.work(&target))?;
        Ok(writer)
    }

    /// Adds whole lines to be written, or omits them, without waiting. `omission` formats the number of omitted lines
    /// as a whole line.
    ///
    /// # Errors
    /// If writing has failed.
    pub(crate) fn offer(
        &self,
        text: &str,
        rank: Rank,
        omission: impl FnOnce(u64) -> String,
    ) -> io::Result<()> {
        let mut queue = self.0.lock();
        queue.result()?;
        if !queue.has_room(rank, self.0.bounds) {
            queue.left_out += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
            return Ok(());
        }
        let left_out = std::mem::take(&mut queue.left_out);
        if left_out > 0 {
            queue.waiting.push_str(&omission(left_out));
        }
        queue.waiting.push_str(text);
        drop(queue);
        self.0.arrived.notify_one();
        Ok(())
    }

    /// Whether everything has been written.
    ///
    /// # Errors
    /// If writing has failed.
    pub(crate) fn is_idle(&self) -> io::Result<bool> {
        let queue = self.0.lock();
        queue.result()?;
        Ok(queue.unwritten() == 0)
    }

    /// Waits until everything is written, or nothing was written during `patience`, or `is_enough` returns true.
    ///
    /// # Errors
    /// If writing has failed, or something isn't written yet.
    pub(crate) fn drain(
        &self,
        patience: Duration,
        mut is_enough: impl FnMut() -> bool,
    ) -> io::Result<()> {
        let mut queue = self.0.lock();
        let mut seen = queue.pieces;
        let mut until = Instant::now() + patience;
        loop {
            queue.result()?;
            if queue.unwritten() == 0 {
                return Ok(());
            }
            if queue.pieces != seen {
                seen = queue.pieces;
                until = Instant::now() + patience;
            }
            drop(queue);
            let left = until.saturating_duration_since(Instant::now());
            if is_enough() || left.is_zero() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "its reader doesn't read"));
            }
            let is_unchanged = |queue: &mut PendingOutput| {
                queue.pieces == seen && queue.failure.is_none() && queue.unwritten() > 0
            };
            let wait = left.min(CHECK_EVERY);
            let waited = self.0.written.wait_timeout_while(self.0.lock(), wait, is_unchanged);
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

impl PendingOutput {
    fn unwritten(&self) -> usize {
        self.waiting.len() + self.writing
    }

    fn has_room(&self, rank: Rank, bounds: Bounds) -> bool {
        match rank {
            // Once a line is omitted, omit many in a row instead of single lines.
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
    fn lock(&self) -> MutexGuard<'_, PendingOutput> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on the thread.
    fn work(&self, target: &impl AsFd) {
        loop {
            let is_empty = |queue: &mut PendingOutput| queue.waiting.is_empty() && !queue.is_closed;
            let waited = self.arrived.wait_while(self.lock(), is_empty);
            let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
            let text = std::mem::take(&mut queue.waiting);
            queue.writing = text.len();
            drop(queue);
            if text.is_empty() {
                return;
            }
            let mut rest = text.as_bytes();
            while let Some((piece, next)) = split_piece(rest) {
                rest = next;
                let result = write_whole(target, piece);
                let mut queue = self.lock();
                queue.writing -= piece.len();
                queue.pieces += 1;
                if let Err(errno) = result {
                    *queue = PendingOutput { failure: Some(errno), ..PendingOutput::default() };
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

/// Splits off the piece to write next, which ends with a line if it contains the end of one.
fn split_piece(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let most = text.get(..PIECE_BYTES).unwrap_or(text);
    let end = most.iter().rposition(|byte| *byte == b'\n').map_or(most.len(), |end| end + 1);
    (end > 0).then(|| text.split_at(end))
}

/// Writes a whole piece. It doesn't use the standard library's handle, whose lock it would hold while it waits.
fn write_whole(target: &impl AsFd, mut piece: &[u8]) -> Result<(), Errno> {
    while !piece.is_empty() {
        match write(target, piece) {
            Ok(0) => return Err(Errno::IO),
            Ok(length) => piece = piece.get(length..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Another process set the pipe to non-blocking mode. If polling fails, the next write returns the error.
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

    fn omission(lines: u64) -> String {
        format!("left out {lines}\n")
    }

    fn offer(writer: &Writer, text: &str, rank: Rank) {
        writer.offer(text, rank, omission).unwrap();
    }

    /// Goal: a reader that doesn't read costs bounded memory, blocks nothing and is omission how many lines are
    /// missing; results are never omitted, and lines keep their order. Method: write far more lines of all ranks than
    /// may wait, then read everything.
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

    /// Goal: a slow reader gets everything within the bounds, and `drain` waits for it beyond the patience. Method:
    /// read with pauses.
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

    /// Goal: after a pipe is closed, each call fails without waiting. Method: close it while lines wait.
    #[test]
    fn a_closed_pipe_is_an_error() {
        let (reader, target) = pipe().unwrap();
        let writer = Writer::start("test", target.try_clone().unwrap(), BOUNDS).unwrap();
        (0..1000).for_each(|_| offer(&writer, &("x".repeat(99) + "\n"), Rank::Notable));
        assert!(!has_lost_reader(&target));
        drop(reader);
        assert!(has_lost_reader(&target));
        let closed =
            |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::BrokenPipe;
        assert!(closed(writer.drain(LONG, || false)));
        assert!(closed(writer.offer("more\n", Rank::Result, omission)));
        assert!(closed(writer.is_idle().map(drop)));
    }

    /// Goal: pieces are whole lines if these fit. Method: split short and long lines.
    #[test]
    fn pieces_are_whole_lines() {
        let text = format!("{0}\n{0}\nend\n{1}", "x".repeat(2000), "y".repeat(9000));
        let mut rest = text.as_bytes();
        let mut lengths = Vec::new();
        while let Some((piece, next)) = split_piece(rest) {
            lengths.push(piece.len());
            rest = next;
        }
        assert_eq!(lengths, [4006, 4096, 4096, 808]);
    }
}
