//! The control thread's inbox: a bounded lane for messages in their order, and an urgent lane that is read first.
//!
//! 1. A thread that tells waits while the ordinary lane is full, the control thread itself excepted: it is the only
//!    reader, and would wait for itself. What a message weighs is how many things it is about, so that the bound is one
//!    of memory.
//! 2. The urgent lane has no bound, so nobody waits for it: kills go there, and an observer may ask for them while the
//!    control thread is in the middle of a message. Each of its messages is a call of the framework's own.
//! 3. From [`Inbox::closing`] on nobody waits for longer than up to a deadline: what finds no room then is dropped.
//!    What only asks for calls is dropped at once, for none is made any more. The engine's end begins this before it
//!    stops the cluster manager, whose threads may be in the middle of sending an event when they are asked to end,
//!    while the control thread may hang.
//! 4. From [`Inbox::end`] on nothing more is taken in; what waits is still read, then the reader learns of the end.
//!
//! So what waits in the ordinary lane weighs at most [`Inbox::new`]'s bound and one message, in all stages, and what
//! the reader tells itself. What is dropped and was not about offers is counted.
//!
//! A condition variable of std's is woken by a system call whether anybody waits or not. So both sides say that they
//! wait, under the lock, and are woken only then.

use std::collections::VecDeque;
use std::time::Duration;

use super::sync::{
    Condvar, Deadline, Mutex, MutexGuard, ThreadId, lock, pause, this_thread, wait, wait_while,
};

/// What waits in an inbox.
pub(super) trait Message {
    /// How many things it is about, at least 1.
    fn weight(&self) -> usize;
    /// Whether it is about offers that are to be declined: without calls nothing comes of it.
    fn is_about_offers(&self) -> bool;
}

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
    /// What waits in the ordinary lane may weigh so much before those that tell wait.
    ordinary_max: usize,
}

struct Lanes<M> {
    urgent: VecDeque<M>,
    ordinary: VecDeque<M>,
    /// What waits in the ordinary lane weighs so much.
    weight: usize,
    phase: Phase,
    /// Until then writers wait for room while the inbox closes.
    patience: Deadline,
    /// The weight of what was dropped, but for what was about offers.
    dropped: u64,
    reader: Option<ThreadId>,
    reader_waits: bool,
    writers_waiting: usize,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Phase {
    Open,
    Closing,
    Ended,
}

impl<M: Message> Inbox<M> {
    pub(super) fn new(ordinary_max: usize) -> Inbox<M> {
        let lanes = Lanes {
            urgent: VecDeque::new(),
            ordinary: VecDeque::new(),
            weight: 0,
            phase: Phase::Open,
            patience: Deadline::after(Duration::ZERO),
            dropped: 0,
            reader: None,
            reader_waits: false,
            writers_waiting: 0,
        };
        let (filled, drained) = (Condvar::new(), Condvar::new());
        Inbox { lanes: Mutex::new(lanes), filled, drained, ordinary_max }
    }

    /// Queues a message in the ordinary lane; waits while that is full. What comes after the end is dropped, and while
    /// the inbox closes what is about offers or finds no room up to the deadline.
    pub(super) fn send(&self, message: M) {
        let mut lanes = self.wait_for_room(lock(&self.lanes), &message);
        let is_taken = match lanes.phase {
            Phase::Open => true,
            Phase::Closing => !message.is_about_offers() && lanes.weight < self.ordinary_max,
            Phase::Ended => false,
        };
        if is_taken {
            lanes.weight += message.weight();
            lanes.ordinary.push_back(message);
            self.wake_reader(&mut lanes);
        } else if !message.is_about_offers() {
            lanes.dropped += message.weight() as u64;
        }
    }

    fn wait_for_room<'a>(
        &'a self,
        mut lanes: MutexGuard<'a, Lanes<M>>,
        message: &M,
    ) -> MutexGuard<'a, Lanes<M>> {
        let waits = |lanes: &Lanes<M>| match lanes.phase {
            Phase::Open => lanes.weight >= self.ordinary_max,
            Phase::Closing => lanes.weight >= self.ordinary_max && !message.is_about_offers(),
            Phase::Ended => false,
        };
        if !waits(&lanes) || lanes.reader == Some(this_thread()) {
            return lanes;
        }
        lanes.writers_waiting += 1;
        while lanes.phase == Phase::Open && waits(&lanes) {
            lanes = wait(&self.drained, lanes);
        }
        if waits(&lanes) {
            let patience = lanes.patience;
            drop(lanes);
            lanes = wait_while(&self.lanes, &self.drained, patience, waits);
        }
        lanes.writers_waiting -= 1;
        lanes
    }

    /// Queues a message in the urgent lane, at once.
    pub(super) fn send_urgent(&self, message: M) {
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
                lanes.weight -= message.weight();
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

    /// No call is made any more. From now on nobody waits for room for longer than up to the deadline.
    pub(super) fn closing(&self, patience: Deadline) {
        lock(&self.lanes).patience = patience;
        self.enter(Phase::Closing);
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
        let events = dropped.1.iter().filter(|message| !message.is_about_offers());
        lanes.dropped += events.map(|message| message.weight() as u64).sum::<u64>();
        lanes.weight = 0;
        drop(lanes);
        drop(dropped);
    }

    /// What was dropped up to now, in events: what was about offers is not counted.
    pub(super) fn dropped(&self) -> u64 {
        lock(&self.lanes).dropped
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

    impl Message for u32 {
        fn weight(&self) -> usize {
            1
        }

        fn is_about_offers(&self) -> bool {
            false
        }
    }

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
            inbox.send(message);
        }
        inbox.send_urgent(1);
        inbox.send_urgent(2);
        assert_eq!([next(&inbox), next(&inbox), next(&inbox)], [Some(1), Some(2), Some(3)]);
        inbox.end();
        inbox.send(5);
        inbox.send_urgent(6);
        assert_eq!([next(&inbox), next(&inbox), next(&inbox)], [Some(4), Some(0), Some(0)]);
    }

    /// Goal: who tells waits for room, and goes on when the end lets it. Method: a second thread that tells more than
    /// there is room for, beside a reader that reads once, and then ends.
    #[test]
    fn writers_wait_for_room_up_to_the_end() {
        let inbox = Arc::new(Inbox::new(1));
        assert_eq!(next(&inbox), None);
        let writer = Arc::clone(&inbox);
        let told = std::thread::spawn(move || (1..=4).for_each(|message| writer.send(message)));
        let first = loop {
            if let Some(message) = next(&inbox) {
                break message;
            }
        };
        assert_eq!(first, 1);
        assert!(lock(&inbox.lanes).ordinary.len() <= 1);
        inbox.end();
        told.join().unwrap();
        let read = std::iter::from_fn(|| next(&inbox).filter(|message| *message > 0)).count();
        assert_eq!(read as u64 + inbox.dropped(), 3);
    }

    /// Holds a counted thing.
    struct Payload {
        _held: Arc<()>,
        weight: usize,
        offers: bool,
    }

    impl Message for Payload {
        fn weight(&self) -> usize {
            self.weight
        }

        fn is_about_offers(&self) -> bool {
            self.offers
        }
    }

    /// Goal: an inbox that nobody reads holds a bounded weight in each stage, keeps no writer for ever once it closes,
    /// and counts what it drops. Method: writers of heavy and light messages, of which a third is about offers, more
    /// than there is room for; each message that the inbox holds is counted.
    #[test]
    fn what_waits_is_bounded_in_each_stage() {
        const MAX: usize = 100;
        let (inbox, held) = (Arc::new(Inbox::new(MAX)), Arc::new(()));
        let writer = |weight: usize| {
            let (inbox, held) = (Arc::clone(&inbox), Arc::clone(&held));
            std::thread::spawn(move || {
                for number in 0..3_000 {
                    let _held = Arc::clone(&held);
                    inbox.send(Payload { _held, weight, offers: number % 3 == 0 });
                }
            })
        };
        let mut writers = vec![writer(10), writer(10)];
        let weight = || lock(&inbox.lanes).weight;
        while lock(&inbox.lanes).writers_waiting < writers.len() {
            std::thread::yield_now();
        }
        assert!(weight() < MAX + 10);
        inbox.closing(Deadline::after(Duration::from_millis(20)));
        writers.push(writer(1));
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert!(weight() < MAX + 10);
        let waiting = lock(&inbox.lanes).ordinary.len();
        assert_eq!(Arc::strong_count(&held), 1 + waiting);
        let offers = lock(&inbox.lanes).ordinary.iter().filter(|it| it.offers).count();
        assert!(offers < MAX, "those that came before");
        let dropped = inbox.dropped();
        assert!(dropped + MAX as u64 + 10 > 2_000 + 2 * 10 * 2_000, "{dropped}");
        inbox.abandon();
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(inbox.dropped() > dropped);
        writer(1).join().unwrap();
        assert_eq!((Arc::strong_count(&held), lock(&inbox.lanes).ordinary.capacity()), (1, 0));
    }
}
