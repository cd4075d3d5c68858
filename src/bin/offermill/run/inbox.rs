//! The session's inbox: what the engine tells is bounded, so that a session that is held up fills no memory.
//!
//! | who sends | waits | how many there can be |
//! |---|---|---|
//! | the engine's control thread: notices | while as many wait as may | [`BOUND`] |
//! | clients: commands | no, but for the answer to one before the next | as many as there are clients |
//! | signals, shuffle services, the shutdown | no | a few |
//!
//! Nothing is lost, and nothing sent by one thread overtakes. The session calls nothing that waits for the control
//! thread, so the two can't wait for each other; nor does it wait for whoever has standard output or standard error. If
//! it takes nothing for [`HELD_UP_MAX`] all the same, the engine waits no longer, and its notices pile up.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// As many notices may wait.
const BOUND: usize = 64 * 1024;
/// As long may the session take nothing while the engine waits for it.
const HELD_UP_MAX: Duration = Duration::from_secs(30);

/// The session has ended.
#[derive(Debug)]
pub(crate) struct Ended;

/// Sends to the session.
pub(crate) struct Sender<M>(Arc<Inbox<M>>);

/// The session's end of it; once it is dropped nobody waits any more.
pub(crate) struct Receiver<M>(Arc<Inbox<M>>);

struct Inbox<M> {
    queue: Mutex<Queue<M>>,
    arrived: Condvar,
    taken: Condvar,
    bound: usize,
    held_up_max: Duration,
}

struct Queue<M> {
    /// With each message, whether it counts for the bound.
    messages: VecDeque<(M, bool)>,
    /// How many of them count.
    counted: usize,
    /// How many messages were taken in all.
    taken: u64,
    /// The session was given up on when as many had been taken.
    stuck_at: Option<u64>,
    has_ended: bool,
}

/// An inbox.
pub(crate) fn channel<M>() -> (Sender<M>, Receiver<M>) {
    bounded(BOUND, HELD_UP_MAX)
}

fn bounded<M>(bound: usize, held_up_max: Duration) -> (Sender<M>, Receiver<M>) {
    let queue =
        Queue { messages: VecDeque::new(), counted: 0, taken: 0, stuck_at: None, has_ended: false };
    let (arrived, taken) = (Condvar::new(), Condvar::new());
    let inbox = Inbox { queue: Mutex::new(queue), arrived, taken, bound, held_up_max };
    let inbox = Arc::new(inbox);
    (Sender(Arc::clone(&inbox)), Receiver(inbox))
}

impl<M> Clone for Sender<M> {
    fn clone(&self) -> Sender<M> {
        Sender(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Sender<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<M> Inbox<M> {
    fn lock(&self) -> MutexGuard<'_, Queue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue<M>>, message: M, counts: bool) {
        if !queue.has_ended {
            queue.counted += usize::from(counts);
            queue.messages.push_back((message, counts));
            self.arrived.notify_one();
        }
    }

    /// Waits for room, up to `patience` after a message was taken last. `false` if there is none then.
    fn wait_for_room<'a>(
        &self,
        mut queue: MutexGuard<'a, Queue<M>>,
        patience: Duration,
    ) -> (MutexGuard<'a, Queue<M>>, bool) {
        let (mut seen, mut until) = (queue.taken, Instant::now() + patience);
        while queue.counted >= self.bound && !queue.has_ended && queue.stuck_at != Some(seen) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (queue, false);
            }
            let waited = self.taken.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            if queue.taken != seen {
                (seen, until) = (queue.taken, Instant::now() + patience);
            }
        }
        (queue, true)
    }
}

impl<M> Sender<M> {
    /// Sends a message, at once.
    ///
    /// # Errors
    /// When the session has ended.
    pub(crate) fn send(&self, message: M) -> Result<(), Ended> {
        let queue = self.0.lock();
        let has_ended = queue.has_ended;
        self.0.push(queue, message, false);
        if has_ended { Err(Ended) } else { Ok(()) }
    }

    /// Sends a notice, once there is room for it or the session was held up for too long. Of a session that has ended
    /// nothing is waited for.
    pub(crate) fn notice(&self, message: M) {
        let (mut queue, has_room) = self.0.wait_for_room(self.0.lock(), self.0.held_up_max);
        if !has_room {
            queue.stuck_at = Some(queue.taken);
        }
        self.0.push(queue, message, true);
    }
}

impl<M> Receiver<M> {
    /// The next message; `None` if there is none within `wait`.
    pub(crate) fn recv_timeout(&self, wait: Duration) -> Option<M> {
        let queue = self.0.lock();
        let is_empty = |queue: &mut Queue<M>| queue.messages.is_empty();
        let waited = self.0.arrived.wait_timeout_while(queue, wait, is_empty);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        let (message, counts) = queue.messages.pop_front()?;
        queue.counted -= usize::from(counts);
        queue.taken += 1;
        self.0.taken.notify_all();
        Some(message)
    }

    /// The next message, if there is one.
    pub(crate) fn try_recv(&self) -> Option<M> {
        self.recv_timeout(Duration::ZERO)
    }
}

impl<M> Drop for Receiver<M> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.has_ended = true;
        let left = std::mem::take(&mut queue.messages);
        drop(queue);
        self.0.taken.notify_all();
        // Whoever waits for an answer finds that there will be none.
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{sleep, spawn};

    const LONG: Duration = Duration::from_secs(600);

    /// Goal: notices are bounded, in their order and without a loss, and commands don't wait for them. Method: 100
    /// notices through room for four, with a command when it is full.
    #[test]
    fn notices_wait_and_commands_do_not() {
        let (sender, inbox) = bounded(4, LONG);
        let notices = sender.clone();
        let engine = spawn(move || (0..100).for_each(|number| notices.notice(number)));
        while inbox.0.lock().counted < 4 {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(50));
        sender.send(-1).unwrap();
        assert_eq!(inbox.0.lock().messages.len(), 5, "four notices and a command");
        let mut taken = Vec::new();
        while taken.len() < 101 {
            taken.push(inbox.recv_timeout(LONG).unwrap());
            assert!(inbox.0.lock().counted <= 4);
        }
        engine.join().unwrap();
        assert_eq!(taken.remove(4), -1);
        assert!(taken.is_sorted() && inbox.try_recv().is_none());
    }

    /// Goal: nobody waits for a session that has ended. Method: it ends while a notice waits; then one more of each.
    #[test]
    fn an_end_lets_go() {
        let (sender, inbox) = bounded(1, LONG);
        let notices = sender.clone();
        let engine = spawn(move || (0..3).for_each(|number| notices.notice(number)));
        while inbox.0.lock().counted < 1 {
            sleep(Duration::from_millis(1));
        }
        drop(inbox);
        engine.join().unwrap();
        sender.notice(4);
        assert!(sender.send(5).is_err());
    }

    /// Goal: the engine doesn't wait for ever for a session that is stuck, and waits again once it goes on. Method: a
    /// session that takes nothing, without the patience of a real one; then it takes all.
    #[test]
    fn a_stuck_session_lets_go() {
        let (sender, inbox) = bounded(2, Duration::from_millis(10));
        (0..10).for_each(|number| sender.notice(number));
        let taken: Vec<i32> = std::iter::from_fn(|| inbox.try_recv()).collect();
        assert!(taken.is_sorted() && taken.len() == 10, "{taken:?}");
        let queue = inbox.0.lock();
        assert!(queue.counted == 0 && queue.stuck_at != Some(queue.taken));
    }
}
