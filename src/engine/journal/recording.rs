//! The lock that gives operations their order and moments, and the queue to the journal's thread.
//!
//! Under the lock only the kernel is called. Who has an operation to do while the queue is full waits for room without
//! having begun it; the journal's thread takes all entries at once and writes them with nothing held. It never waits
//! for the engine: so all that can hold it up is what it writes to.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::entry::{Entry, Operation, Outcome};
use super::player::{Passed, pass};
use super::{Journal, POINT_EVERY};
use crate::engine::sync::{Deadline, catch};
use crate::kernel::Kernel;
use crate::time::Timestamp;

/// So many offers and other operations may wait for the journal's thread, and as many again be in its hands.
const WEIGHT_MAX: usize = 16 * 1024;
/// So long work waits for room, and the end for the last entry, at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often what was recorded is flushed.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// How often the passage of time goes on record.
const WAIT_EVERY: u64 = 60_000;

#[derive(Debug)]
pub(crate) struct Recording {
    state: Mutex<RecordingQueue>,
    /// There is something to write, or nothing more will come.
    filled: Condvar,
    /// There is room, or all is written.
    drained: Condvar,
}

#[derive(Debug)]
struct RecordingQueue {
    queue: Vec<Entry>,
    weight: usize,
    /// The moment of the last operation.
    at: Timestamp,
    /// The next point of the grid.
    point: Timestamp,
    /// How many revives were due so far.
    revives: u64,
    /// What comes now is not recorded any more.
    ended: bool,
    /// The journal's thread has nothing more to do.
    written: bool,
    /// Why the journal was given up, until that is told.
    untold: Option<String>,
    /// How long work waits for room.
    patience: Duration,
    /// Until then the end waits for the last entry, if it is known.
    written_by: Option<Deadline>,
}

/// One operation's turn: nobody else has one.
pub(crate) struct Turn<'a> {
    recording: &'a Recording,
    state: MutexGuard<'a, RecordingQueue>,
}

impl Recording {
    pub(crate) fn new() -> Recording {
        let state = RecordingQueue {
            queue: Vec::new(),
            weight: 0,
            at: Timestamp::ORIGIN,
            point: Timestamp::ORIGIN.plus(POINT_EVERY),
            revives: 0,
            ended: false,
            written: false,
            untold: None,
            patience: PATIENCE,
            written_by: None,
        };
        Recording { state: Mutex::new(state), filled: Condvar::new(), drained: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, RecordingQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room and for whoever has a turn. `now` is what the clock says.
    pub(crate) fn turn(&self, now: Timestamp) -> Turn<'_> {
        let mut turn = self.turn_of_time();
        let before_point = turn.state.point.as_millis() - 1;
        let latest = Timestamp::from_millis(now.as_millis().min(before_point));
        turn.state.at = turn.state.at.max(latest);
        turn
    }

    fn turn_of_time(&self) -> Turn<'_> {
        let mut state = self.state();
        let (mut patience, mut began) = (state.patience, Instant::now());
        while !state.ended && state.weight > WEIGHT_MAX {
            if state.patience != patience {
                (patience, began) = (state.patience, Instant::now());
            }
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                self.give_up(&mut state, "it is written too slowly".to_owned());
                break;
            }
            let waited = self.drained.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Turn { recording: self, state }
    }

    /// The engine ends: from now on nobody waits for room for longer than `patience`, whoever waits already included,
    /// and for the last entry no longer than up to the deadline.
    pub(crate) fn hurry(&self, patience: Duration, written_by: Deadline) {
        let mut state = self.state();
        state.patience = state.patience.min(patience);
        state.written_by = Some(written_by);
        drop(state);
        self.drained.notify_all();
    }

    /// Makes the next point of the grid, if it is time.
    pub(crate) fn pass(&self, kernel: &Kernel, now: Timestamp) -> Option<Passed> {
        let mut turn = self.turn_of_time();
        let at = turn.state.point;
        if at > now {
            return None;
        }
        let passed = pass(kernel, at);
        turn.state.at = at;
        turn.state.point = at.plus(POINT_EVERY);
        turn.state.revives += u64::from(passed.demand == Some(crate::DemandCall::Revive));
        if let Some(outcome) = passed.outcome(kernel) {
            turn.record(kernel, Operation::Point, outcome);
        }
        if at.as_millis().is_multiple_of(WAIT_EVERY) {
            turn.record(kernel, Operation::Wait, Outcome::Done);
        }
        Some(passed)
    }

    /// Why the journal was given up, once.
    pub(crate) fn untold(&self) -> Option<String> {
        self.state().untold.take()
    }

    /// Records the end, and waits until all is written. Returns why it isn't, unless that was told.
    pub(crate) fn finish(&self, kernel: &Kernel, now: Timestamp) -> Option<String> {
        let mut turn = self.turn(now);
        turn.record(kernel, Operation::Wait, Outcome::Done);
        let mut state = turn.state;
        state.ended = true;
        self.filled.notify_all();
        let unwritten = |state: &mut RecordingQueue| !state.written;
        let patience = state.written_by.map_or(PATIENCE, |by| by.left().min(PATIENCE));
        let waited = self.drained.wait_timeout_while(state, patience, unwritten);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && !state.written {
            self.give_up(&mut state, "its end is written too slowly".to_owned());
        }
        state.untold.take()
    }

    fn give_up(&self, state: &mut RecordingQueue, why: String) {
        state.ended = true;
        state.queue = Vec::new();
        state.weight = 0;
        state.written = true;
        state.untold = Some(why);
        self.filled.notify_all();
        self.drained.notify_all();
    }

    /// Writes what is recorded, until the end: the work of the journal's thread.
    pub(crate) fn write(&self, journal: &mut dyn Journal) {
        let why = match catch(|| self.try_to_write(journal)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => format!("it panicked: {panic}"),
        };
        let mut state = self.state();
        if !state.written {
            self.give_up(&mut state, why);
        }
    }

    fn try_to_write(&self, journal: &mut dyn Journal) -> io::Result<()> {
        let (mut entries, mut flushed, mut is_dirty) = (Vec::new(), Instant::now(), false);
        loop {
            let is_over = self.take(&mut entries);
            for entry in entries.drain(..) {
                journal.record(&entry)?;
                is_dirty = true;
            }
            if is_dirty && (is_over || flushed.elapsed() >= FLUSH_EVERY) {
                journal.flush()?;
                (flushed, is_dirty) = (Instant::now(), false);
            }
            if is_over {
                self.state().written = true;
                self.drained.notify_all();
                return Ok(());
            }
        }
    }

    /// Takes all that waits; waits for something, for a while. Returns whether there will be no more.
    fn take(&self, entries: &mut Vec<Entry>) -> bool {
        let is_idle = |state: &mut RecordingQueue| !state.ended && state.queue.is_empty();
        let waited = self.filled.wait_timeout_while(self.state(), FLUSH_EVERY, is_idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(entries, &mut state.queue);
        state.weight = 0;
        let is_over = state.ended;
        drop(state);
        self.drained.notify_all();
        is_over
    }
}

impl Turn<'_> {
    /// The operation's moment.
    pub(crate) fn at(&self) -> Timestamp {
        self.state.at
    }

    /// How many revives were due so far.
    pub(crate) fn revives(&self) -> u64 {
        self.state.revives
    }

    /// Puts what was done in this turn on record.
    pub(crate) fn record(&mut self, kernel: &Kernel, operation: Operation, outcome: Outcome) {
        if self.state.ended {
            return;
        }
        self.state.weight += operation.weight();
        let entry = Entry::after(kernel, self.state.at, operation, outcome);
        self.state.queue.push(entry);
        self.recording.filled.notify_one();
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::ids::IdScheme;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn kernel() -> Kernel {
        Kernel::new(Config::builder().build().unwrap(), IdScheme::plain())
    }

    /// Goal: a journal that hangs takes no memory without an end and holds nobody up for long; and those that wait
    /// already learn that they are to wait for less. Method: nobody writes what is recorded.
    #[test]
    fn a_journal_that_hangs_is_given_up() {
        let (recording, kernel) = (Recording::new(), kernel());
        let fill = || {
            for _ in 0..WEIGHT_MAX + 2 {
                recording.turn(at(1)).record(&kernel, Operation::Wait, Outcome::Done);
            }
        };
        std::thread::scope(|scope| {
            let filling = scope.spawn(fill);
            while recording.state().weight <= WEIGHT_MAX {
                std::thread::yield_now();
            }
            let (short, began) = (Duration::from_millis(20), Instant::now());
            recording.hurry(short, Deadline::after(short));
            filling.join().unwrap();
            assert!(began.elapsed() < PATIENCE / 2, "who waited already waits on");
        });
        assert_eq!(recording.untold().as_deref(), Some("it is written too slowly"));
        assert!(recording.state().queue.is_empty());
        assert_eq!(recording.untold(), None, "told once");
        assert_eq!(recording.finish(&kernel, at(2)), None);

        let recording = Recording::new();
        recording.hurry(PATIENCE, Deadline::after(Duration::from_millis(20)));
        let told = recording.finish(&kernel, at(2));
        assert_eq!(told.as_deref(), Some("its end is written too slowly"));
    }

    /// Goal: no operation comes at or after a point that is still to be made, none before the one that precedes it, and
    /// no point is left out. Method: a clock that leaps, and falls back.
    #[test]
    fn moments_keep_to_the_grid() {
        let (recording, kernel) = (Recording::new(), kernel());
        let moment = |clock: u64| recording.turn(at(clock)).at().as_millis();
        assert_eq!(
            [moment(3), moment(1), moment(49), moment(50), moment(9_999)],
            [3, 3, 49, 49, 49]
        );
        let mut points = Vec::new();
        while let Some(passed) = recording.pass(&kernel, at(2_049)) {
            points.push((passed.at.as_millis(), passed.ticked.is_some()));
        }
        let expected = (1..=40).map(|point| (point * 50, point % 20 == 0));
        assert_eq!(points, expected.collect::<Vec<_>>());
        assert_eq!([moment(1_000), moment(2_010), moment(7_000)], [2_000, 2_010, 2_049]);
    }
}
