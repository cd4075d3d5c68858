//! The session's inbox. The number of waiting engine notices is bounded, so that a stalled session does not fill the
//! memory.
//!
//! | sender | blocks | bound |
//! |---|---|---|
//! | the engine's control thread: notices | while [`NOTICES_MAX`] wait | [`NOTICES_MAX`] |
//! | clients: commands | no; each sends its next command after the reply | one per client |
//! | signals, shuffle services, the shutdown | no | a few |
//!
//! No message is lost, and the messages of one thread stay in order. The session calls nothing that waits for the
//! control thread, so the two can't wait for each other; nor does it wait for the readers of standard output or
//! standard error. If it receives nothing for [`STALL_TIMEOUT`] all the same, the engine stops waiting, and its notices
//! pile up.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most notices that may wait.
const NOTICES_MAX: usize = 64 * 1024;
/// The longest that the engine waits for a session that receives nothing.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The session has ended.
#[derive(Debug)]
pub(crate) struct SessionEnded;

/// The sending side.
pub(crate) struct Sender<M>(Arc<SessionInbox<M>>);

/// The receiving side. Once it is dropped, no sender blocks.
pub(crate) struct Receiver<M>(Arc<SessionInbox<M>>);

struct SessionInbox<M> {
    queue: Mutex<InboxQueue<M>>,
    arrived: Condvar,
    received_one: Condvar,
    bound: usize,
    stall_timeout: Duration,
}

struct InboxQueue<M> {
    /// Each message, and whether it counts towards the bound.
    messages: VecDeque<(M, bool)>,
    /// How many of them count towards the bound.
    counted: usize,
    /// How many messages were received so far.
    received: u64,
    /// The value of `received` at which the engine stopped waiting.
    stalled_at: Option<u64>,
    has_ended: bool,
}

/// Creates an inbox.
pub(crate) fn channel<M>() -> (Sender<M>, Receiver<M>) {
    bounded(NOTICES_MAX, STALL_TIMEOUT)
}

fn bounded<M>(bound: usize, stall_timeout: Duration) -> (Sender<M>, Receiver<M>) {
    let queue = InboxQueue {
        messages: VecDeque::new(),
        counted: 0,
        received: 0,
        stalled_at: None,
        has_ended: false,
    };
    let inbox = Arc::new(SessionInbox {
        queue: Mutex::new(queue),
        arrived: Condvar::new(),
        received_one: Condvar::new(),
        bound,
        stall_timeout,
    });
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

impl<M> SessionInbox<M> {
    fn lock(&self) -> MutexGuard<'_, InboxQueue<M>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut queue: MutexGuard<'_, InboxQueue<M>>, message: M, counts: bool) {
        if !queue.has_ended {
            queue.counted += usize::from(counts);
            queue.messages.push_back((message, counts));
            self.arrived.notify_one();
        }
    }

    /// Waits for room until no message was received for `timeout`. Returns whether there is room.
    fn wait_for_room<'a>(
        &self,
        mut queue: MutexGuard<'a, InboxQueue<M>>,
        timeout: Duration,
    ) -> (MutexGuard<'a, InboxQueue<M>>, bool) {
        let mut seen = queue.received;
        let mut until = Instant::now() + timeout;
        while queue.counted >= self.bound && !queue.has_ended && queue.stalled_at != Some(seen) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return (queue, false);
            }
            let waited = self.received_one.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            if queue.received != seen {
                seen = queue.received;
                until = Instant::now() + timeout;
            }
        }
        (queue, true)
    }
}

impl<M> Sender<M> {
    /// Sends a message without blocking.
    ///
    /// # Errors
    /// If the session has ended.
    pub(crate) fn send(&self, message: M) -> Result<(), SessionEnded> {
        let queue = self.0.lock();
        let has_ended = queue.has_ended;
        self.0.push(queue, message, false);
        if has_ended { Err(SessionEnded) } else { Ok(()) }
    }

    /// Sends a notice. Blocks until there is room for it, the session was stalled for too long, or the session has
    /// ended.
    pub(crate) fn send_notice(&self, message: M) {
        let (mut queue, has_room) = self.0.wait_for_room(self.0.lock(), self.0.stall_timeout);
        if !has_room {
            queue.stalled_at = Some(queue.received);
        }
        self.0.push(queue, message, true);
    }
}

impl<M> Receiver<M> {
    /// The next message; `None` if there is none within `wait`.
    pub(crate) fn recv_timeout(&self, wait: Duration) -> Option<M> {
        let queue = self.0.lock();
        let is_empty = |queue: &mut InboxQueue<M>| queue.messages.is_empty();
        let waited = self.0.arrived.wait_timeout_while(queue, wait, is_empty);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        let (message, counts) = queue.messages.pop_front()?;
        queue.counted -= usize::from(counts);
        queue.received += 1;
        self.0.received_one.notify_all();
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
        self.0.received_one.notify_all();
        // Dropping a request tells its client that no reply will come.
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{sleep, spawn};

    const LONG: Duration = Duration::from_secs(600);

    /// Goal: notices are bounded, stay in order and none is lost, and commands don't wait for them. Method: 100
    /// notices through room for four, with a command when it is full.
    #[test]
    fn notices_wait_and_commands_do_not() {
        let (sender, inbox) = bounded(4, LONG);
        let notices = sender.clone();
        let engine = spawn(move || (0..100).for_each(|number| notices.send_notice(number)));
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

    /// Goal: no sender waits for a session that has ended. Method: it ends while a notice waits; then one more of each.
    #[test]
    fn the_end_unblocks_senders() {
        let (sender, inbox) = bounded(1, LONG);
        let notices = sender.clone();
        let engine = spawn(move || (0..3).for_each(|number| notices.send_notice(number)));
        while inbox.0.lock().counted < 1 {
            sleep(Duration::from_millis(1));
        }
        drop(inbox);
        engine.join().unwrap();
        sender.send_notice(4);
        assert!(sender.send(5).is_err());
    }

    /// Goal: the engine doesn't wait for ever for a stalled session, and waits again once the session continues.
    /// Method: a session that receives nothing, with a short timeout; then it receives all.
    #[test]
    fn a_stalled_session_unblocks_the_engine() {
        let (sender, inbox) = bounded(2, Duration::from_millis(10));
        (0..10).for_each(|number| sender.send_notice(number));
        let taken: Vec<i32> = std::iter::from_fn(|| inbox.try_recv()).collect();
        assert!(taken.is_sorted() && taken.len() == 10, "{taken:?}");
        let queue = inbox.0.lock();
        assert!(queue.counted == 0 && queue.stalled_at != Some(queue.received));
    }
}
