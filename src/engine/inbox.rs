//! The control thread's inbox: a bounded lane for messages in their order, and an urgent lane that is read first.
//!
//! 1. Who tells waits while the ordinary lane is full, the control thread itself excepted: it is the only reader, and
//!    would wait for itself.
//! 2. The urgent lane has no bound, so nobody waits for it: kills go there, and an observer may ask for them while the
//!    control thread is in the middle of a message. Each of its messages is a call of the framework's own.
//! 3. From [`Inbox::stop_waiting`] on nobody waits any more. The engine's end says so before it stops the cluster
//!    manager, whose threads may be in the middle of sending an event when they are asked to end.
//! 4. From [`Inbox::end`] on nothing more is taken in; what waits is still read, then the reader learns of the end.
//!
//! A condition variable of std's is woken by a system call whether anybody waits or not. So both sides say that they
//! wait, under the lock, and are woken only then.

use std::collections::VecDeque;
use std::time::Duration;

use super::sync::{Condvar, Mutex, ThreadId, lock, pause, this_thread, wait};

/// What a reader finds.
pub(super) enum Received<M> {
    Message(M),
    /// Nothing came for a while.
    Nothing,
    /// There will be no more.
    End,
}

pub(super) struct Inbox<M> {
    lanes: Mutex<Lanes<M>>,
    filled: Condvar,
    drained: Condvar,
    /// So many messages may wait in the ordinary lane.
    ordinary_max: usize,
}

struct Lanes<M> {
    urgent: VecDeque<M>,
    ordinary: VecDeque<M>,
    phase: Phase,
    reader: Option<ThreadId>,
    reader_waits: bool,
    writers_waiting: usize,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Phase {
    Bounded,
    Unbounded,
    Ended,
}

impl<M> Inbox<M> {
    pub(super) fn new(ordinary_max: usize) -> Inbox<M> {
        let lanes = Lanes {
            urgent: VecDeque::new(),
            ordinary: VecDeque::new(),
            phase: Phase::Bounded,
            reader: None,
            reader_waits: false,
            writers_waiting: 0,
        };
        let (filled, drained) = (Condvar::new(), Condvar::new());
        Inbox { lanes: Mutex::new(lanes), filled, drained, ordinary_max }
    }

    /// Queues a message in the ordinary lane; waits while that is full. After the end the message is dropped.
    pub(super) fn tell(&self, message: M) {
        let mut lanes = lock(&self.lanes);
        let is_full = |lanes: &Lanes<M>| {
            lanes.phase == Phase::Bounded && lanes.ordinary.len() >= self.ordinary_max
        };
        if is_full(&lanes) && lanes.reader != Some(this_thread()) {
            lanes.writers_waiting += 1;
            while is_full(&lanes) {
                lanes = wait(&self.drained, lanes);
            }
            lanes.writers_waiting -= 1;
        }
        if lanes.phase != Phase::Ended {
            lanes.ordinary.push_back(message);
            self.wake_reader(&mut lanes);
        }
    }

    /// Queues a message in the urgent lane, at once.
    pub(super) fn urge(&self, message: M) {
        let mut lanes = lock(&self.lanes);
        if lanes.phase != Phase::Ended {
            lanes.urgent.push_back(message);
            self.wake_reader(&mut lanes);
        }
    }

    fn wake_reader(&self, lanes: &mut Lanes<M>) {
        if std::mem::take(&mut lanes.reader_waits) {
            self.filled.notify_one();
        }
    }

    /// The next message; waits for one, for `patience` at most. All calls come from one thread.
    pub(super) fn receive(&self, patience: Duration) -> Received<M> {
        let mut lanes = lock(&self.lanes);
        lanes.reader.get_or_insert_with(this_thread);
        if lanes.is_empty() && lanes.phase != Phase::Ended {
            lanes.reader_waits = true;
            lanes = pause(&self.filled, lanes, patience);
            lanes.reader_waits = false;
        }
        if let Some(message) = lanes.urgent.pop_front() {
            return Received::Message(message);
        }
        match lanes.ordinary.pop_front() {
            Some(message) => {
                if lanes.writers_waiting > 0 {
                    self.drained.notify_one();
                }
                Received::Message(message)
            }
            None if lanes.phase == Phase::Ended => Received::End,
            None => Received::Nothing,
        }
    }

    /// Whether this is the thread that reads.
    pub(super) fn is_reader(&self) -> bool {
        lock(&self.lanes).reader == Some(this_thread())
    }

    /// From now on nobody waits for room.
    pub(super) fn stop_waiting(&self) {
        self.enter(Phase::Unbounded);
    }

    /// From now on nothing more is taken in.
    pub(super) fn end(&self) {
        self.enter(Phase::Ended);
    }

    fn enter(&self, phase: Phase) {
        let mut lanes = lock(&self.lanes);
        if lanes.phase < phase {
            lanes.phase = phase;
        }
        self.wake_reader(&mut lanes);
        self.drained.notify_all();
    }

    /// Ends, and drops what waits: nobody will read it.
    pub(super) fn abandon(&self) {
        self.end();
        let mut lanes = lock(&self.lanes);
        let dropped = (std::mem::take(&mut lanes.urgent), std::mem::take(&mut lanes.ordinary));
        drop(lanes);
        drop(dropped);
    }
}

impl<M> Lanes<M> {
    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.ordinary.is_empty()
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn next(inbox: &Inbox<u32>) -> Option<u32> {
        match inbox.receive(Duration::ZERO) {
            Received::Message(message) => Some(message),
            Received::Nothing => None,
            Received::End => Some(0),
        }
    }

    /// Goal: urgent messages come first, each lane keeps its order, and the end comes last. Method: a history in one
    /// thread, which is the reader and so never waits, though the lane has room for one message only.
    #[test]
    fn urgent_messages_come_first() {
        let inbox = Inbox::new(1);
        assert_eq!(next(&inbox), None);
        for message in [3, 4] {
            inbox.tell(message);
        }
        inbox.urge(1);
        inbox.urge(2);
        assert_eq!([next(&inbox), next(&inbox), next(&inbox)], [Some(1), Some(2), Some(3)]);
        inbox.end();
        inbox.tell(5);
        inbox.urge(6);
        assert_eq!([next(&inbox), next(&inbox), next(&inbox)], [Some(4), Some(0), Some(0)]);
    }

    /// Goal: who tells waits for room, and goes on when the end lets it. Method: a second thread that tells more than
    /// there is room for, beside a reader that reads once, and then ends.
    #[test]
    fn writers_wait_for_room_up_to_the_end() {
        let inbox = Arc::new(Inbox::new(1));
        assert_eq!(next(&inbox), None);
        let writer = Arc::clone(&inbox);
        let told = std::thread::spawn(move || (1..=4).for_each(|message| writer.tell(message)));
        let first = loop {
            if let Some(message) = next(&inbox) {
                break message;
            }
        };
        assert_eq!(first, 1);
        assert!(lock(&inbox.lanes).ordinary.len() <= 1);
        inbox.stop_waiting();
        told.join().unwrap();
        inbox.end();
        assert_eq!([next(&inbox), next(&inbox), next(&inbox)], [Some(2), Some(3), Some(4)]);
    }
}
