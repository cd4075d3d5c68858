//! The recording lock, which gives operations their order and times, and the queue of entries to the journal's thread.
//!
//! Only the kernel is called under the lock. A thread that has an operation to run while the queue is full waits for
//! room before it begins. The journal's thread takes all entries at once and writes them without holding the lock. It
//! never waits for the engine, so only the journal itself can block it.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::entry::{JournalEntry, Operation, OperationOutcome};
use super::player::{GridPoint, run_point};
use super::{Journal, POINT_EVERY};
use crate::engine::sync::{Deadline, catch};
use crate::kernel::{Kernel, Target};
use crate::time::Timestamp;

/// The most offers and other operations that wait for the journal's thread; as many again may be in its hands.
const WEIGHT_MAX: usize = 16 * 1024;
/// The longest time that an operation waits for room, and the shutdown for the last entry.
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval at which recorded entries are flushed.
const FLUSH_EVERY: Duration = Duration::from_millis(250);
/// The interval of [`Operation::Wait`] entries, in milliseconds.
const WAIT_EVERY: u64 = 60_000;

#[derive(Debug)]
pub(crate) struct Recording {
    state: Mutex<RecordingQueue>,
    /// Notified when there is an entry to write, or the recording ends.
    filled: Condvar,
    /// Notified when there is room, or all entries are written.
    drained: Condvar,
}

#[derive(Debug)]
struct RecordingQueue {
    queue: Vec<JournalEntry>,
    weight: usize,
    /// The time of the last operation.
    at: Timestamp,
    /// The next point of the grid.
    point: Timestamp,
    /// The number of revives that were due so far.
    revives: u64,
    /// Whether the kernel's close is on record.
    closed: bool,
    /// Whether further operations are not recorded.
    ended: bool,
    /// Whether all entries are written, or the journal was given up.
    written: bool,
    /// Why the journal was given up, until that is reported.
    unreported_failure: Option<String>,
    /// The longest time that an operation waits for room.
    patience: Duration,
    /// Up to when the shutdown waits for the last entry, if it has begun.
    written_by: Option<Deadline>,
}

/// The lock under which one operation runs and is recorded: no other can run until it is dropped.
pub(crate) struct RecordingGuard<'a> {
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
            closed: false,
            ended: false,
            written: false,
            unreported_failure: None,
            patience: PATIENCE,
            written_by: None,
        };
        Recording { state: Mutex::new(state), filled: Condvar::new(), drained: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, RecordingQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the recording for an operation on `kernel`: waits for room and for other operations. `now` is the clock's
    /// time. If the kernel was closed by a call that wasn't recorded, the close is recorded first: the operation
    /// depends on it. (That is not one step with the operation, which may see a close that comes in between.)
    pub(crate) fn lock_at(&self, kernel: &Kernel, now: Timestamp) -> RecordingGuard<'_> {
        let mut guard = self.lock_at_point(kernel);
        let before_point = guard.state.point.as_millis() - 1;
        let latest = Timestamp::from_millis(now.as_millis().min(before_point));
        guard.state.at = guard.state.at.max(latest);
        guard
    }

    /// Locks the recording without setting the time of the operation.
    fn lock_at_point(&self, kernel: &Kernel) -> RecordingGuard<'_> {
        let mut guard = self.lock_with_room();
        if !guard.state.closed && kernel.totals().closed {
            guard.record_close(kernel, &kernel.close());
        }
        guard
    }

    fn lock_with_room(&self) -> RecordingGuard<'_> {
        let mut state = self.state();
        let mut patience = state.patience;
        let mut began = Instant::now();
        while !state.ended && state.weight > WEIGHT_MAX {
            if state.patience != patience {
                patience = state.patience;
                began = Instant::now();
            }
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                self.give_up(&mut state, "it is written too slowly".to_owned());
                break;
            }
            let waited = self.drained.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        RecordingGuard { recording: self, state }
    }

    /// Begins the shutdown: operations, those that wait already included, wait for room for at most `patience`, and
    /// [`Recording::finish`] waits for the last entry at most up to the deadline.
    pub(crate) fn limit_waiting(&self, patience: Duration, written_by: Deadline) {
        let mut state = self.state();
        state.patience = state.patience.min(patience);
        state.written_by = Some(written_by);
        drop(state);
        self.drained.notify_all();
    }

    /// Runs the next point of the grid, if it is due.
    pub(crate) fn run_next_point(&self, kernel: &Kernel, now: Timestamp) -> Option<GridPoint> {
        let mut guard = self.lock_at_point(kernel);
        let at = guard.state.point;
        if at > now {
            return None;
        }
        let passed = run_point(kernel, at);
        guard.state.at = at;
        guard.state.point = at.plus(POINT_EVERY);
        guard.state.revives += u64::from(passed.demand == Some(crate::DemandCall::Revive));
        if let Some(outcome) = passed.outcome(kernel) {
            guard.record(kernel, Operation::Point, outcome);
        }
        if at.as_millis().is_multiple_of(WAIT_EVERY) {
            guard.record(kernel, Operation::Wait, OperationOutcome::Done);
        }
        Some(passed)
    }

    /// Returns once why the journal was given up.
    pub(crate) fn unreported_failure(&self) -> Option<String> {
        self.state().unreported_failure.take()
    }

    /// Records the end, and waits until all entries are written. Returns why the journal was given up, unless that was
    /// returned before.
    pub(crate) fn finish(&self, kernel: &Kernel, now: Timestamp) -> Option<String> {
        let mut guard = self.lock_at(kernel, now);
        guard.record(kernel, Operation::Wait, OperationOutcome::Done);
        let mut state = guard.state;
        state.ended = true;
        self.filled.notify_all();
        let unwritten = |state: &mut RecordingQueue| !state.written;
        let patience = state.written_by.map_or(PATIENCE, |by| by.left().min(PATIENCE));
        let waited = self.drained.wait_timeout_while(state, patience, unwritten);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() && !state.written {
            self.give_up(&mut state, "its end is written too slowly".to_owned());
        }
        state.unreported_failure.take()
    }

    fn give_up(&self, state: &mut RecordingQueue, why: String) {
        state.ended = true;
        state.queue = Vec::new();
        state.weight = 0;
        state.written = true;
        state.unreported_failure = Some(why);
        self.filled.notify_all();
        self.drained.notify_all();
    }

    /// Writes the recorded entries until the end: the work of the journal's thread.
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
        let mut entries = Vec::new();
        let mut flushed = Instant::now();
        let mut is_dirty = false;
        loop {
            let is_over = self.wait_for_entries(&mut entries);
            for entry in entries.drain(..) {
                journal.record(&entry)?;
                is_dirty = true;
            }
            if is_dirty && (is_over || flushed.elapsed() >= FLUSH_EVERY) {
                journal.flush()?;
                flushed = Instant::now();
                is_dirty = false;
            }
            if is_over {
                self.state().written = true;
                self.drained.notify_all();
                return Ok(());
            }
        }
    }

    /// Moves all queued entries into `entries`; waits for one for a limited time. Returns whether no more will come.
    fn wait_for_entries(&self, entries: &mut Vec<JournalEntry>) -> bool {
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

impl RecordingGuard<'_> {
    /// The operation's time.
    pub(crate) fn at(&self) -> Timestamp {
        self.state.at
    }

    /// The number of revives that were due so far.
    pub(crate) fn revives(&self) -> u64 {
        self.state.revives
    }

    /// Records the kernel's close, unless it is on record: closing again changes nothing. `left` are the executors that
    /// the close returned.
    pub(crate) fn record_close(&mut self, kernel: &Kernel, left: &[Target]) {
        if !self.state.closed {
            self.state.closed = true;
            self.record(kernel, Operation::Close, OperationOutcome::targets(kernel, left));
        }
    }

    /// Records the operation.
    pub(crate) fn record(
        &mut self,
        kernel: &Kernel,
        operation: Operation,
        outcome: OperationOutcome,
    ) {
        if self.state.ended {
            return;
        }
        self.state.weight += operation.weight();
        let entry = JournalEntry::after(kernel, self.state.at, operation, outcome);
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

    /// Goal: with a journal that hangs, memory is bounded and operations wait for a limited time; and a shorter limit
    /// reaches threads that wait already. Method: no thread writes the entries.
    #[test]
    fn a_journal_that_hangs_is_given_up() {
        let recording = Recording::new();
        let kernel = kernel();
        let fill = || {
            for _ in 0..WEIGHT_MAX + 2 {
                recording.lock_at(&kernel, at(1)).record(
                    &kernel,
                    Operation::Wait,
                    OperationOutcome::Done,
                );
            }
        };
        std::thread::scope(|scope| {
            let filling = scope.spawn(fill);
            while recording.state().weight <= WEIGHT_MAX {
                std::thread::yield_now();
            }
            let short = Duration::from_millis(20);
            let began = Instant::now();
            recording.limit_waiting(short, Deadline::after(short));
            filling.join().unwrap();
            assert!(began.elapsed() < PATIENCE / 2, "a thread that waited already still waits");
        });
        assert_eq!(recording.unreported_failure().as_deref(), Some("it is written too slowly"));
        assert!(recording.state().queue.is_empty());
        assert_eq!(recording.unreported_failure(), None, "returned once");
        assert_eq!(recording.finish(&kernel, at(2)), None);

        let recording = Recording::new();
        recording.limit_waiting(PATIENCE, Deadline::after(Duration::from_millis(20)));
        let told = recording.finish(&kernel, at(2));
        assert_eq!(told.as_deref(), Some("its end is written too slowly"));
    }

    /// Goal: no operation has the time of a point that has not run, or a later one, or precedes the operation before
    /// it; and no point is skipped. Method: a clock that jumps forwards and backwards.
    #[test]
    fn moments_keep_to_the_grid() {
        let recording = Recording::new();
        let kernel = kernel();
        let moment = |clock: u64| recording.lock_at(&kernel, at(clock)).at().as_millis();
        assert_eq!(
            [moment(3), moment(1), moment(49), moment(50), moment(9_999)],
            [3, 3, 49, 49, 49]
        );
        let mut points = Vec::new();
        while let Some(passed) = recording.run_next_point(&kernel, at(2_049)) {
            points.push((passed.at.as_millis(), passed.ticked.is_some()));
        }
        let expected = (1..=40).map(|point| (point * 50, point % 20 == 0));
        assert_eq!(points, expected.collect::<Vec<_>>());
        assert_eq!([moment(1_000), moment(2_010), moment(7_000)], [2_000, 2_010, 2_049]);
    }
}
