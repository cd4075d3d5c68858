//! The control thread's inbox: an ordinary lane, which is bounded and keeps the order of messages, and an urgent lane,
//! which is read first.
//!
//! 1. A sender waits while the ordinary lane is full, except the control thread itself, which is the only reader. The
//!    weight of a message is the number of items that it is about, so that the bound limits memory.
//! 2. The urgent lane is unbounded, so no sender waits: kills go there, and an observer may request them while the
//!    control thread handles a message. Each urgent message comes from a call of the framework.
//! 3. From [`Inbox::closing`] on, senders wait at most up to a deadline; messages that find no room then are dropped.
//!    Messages that only lead to calls are dropped at once, because none is made any more. The shutdown calls this
//!    before it stops the cluster manager, whose threads may be sending an event while the control thread hangs.
//! 4. From [`Inbox::end`] on, all further messages are dropped; queued ones are still read, then the reader gets the
//!    end.
//!
//! So in each phase the weight of the ordinary lane is at most the bound of [`Inbox::new`] plus one message, plus what
//! the reader sends itself. Dropped messages are counted, except those about offers.
//!
//! The reader takes many messages at once, so that it and the senders seldom wait for each other's lock; what it has
//! taken counts as read. An urgent message that comes meanwhile waits for those that were taken. Before the reader
//! waits it lets others run once: a sender that has more to send goes on, instead of waking the reader for each.
//!
//! Notifying one of std's condition variables is a system call even if no thread waits. So both sides set a flag or
//! counter under the lock before they wait, and are notified only then.

use std::collections::VecDeque;
use std::time::Duration;

use super::sync::{
    Condvar, Deadline, Mutex, MutexGuard, ThreadId, let_others_run, lock, pause, this_thread, wait,
    wait_while,
};

/// A message in an inbox.
pub(super) trait InboxMessage {
    /// The number of items that it is about, at least 1.
    fn weight(&self) -> usize;
    /// Whether it only has offers declined, which is useless once no calls are made.
    fn is_about_offers(&self) -> bool;
}

/// The result of [`Inbox::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Messages,
    /// No message came in time.
    Nothing,
    /// No further message will come.
    End,
}

pub(super) struct Inbox<M> {
    lanes: Mutex<Lanes<M>>,
    filled: Condvar,
    drained: Condvar,
    /// The weight of the ordinary lane from which on senders wait.
    ordinary_max: usize,
}

struct Lanes<M> {
    urgent: VecDeque<M>,
    ordinary: VecDeque<M>,
    /// The weight of the ordinary lane.
    weight: usize,
    phase: InboxPhase,
    /// Up to when senders wait for room in [`InboxPhase::Closing`].
    patience: Deadline,
    /// The weight of the dropped messages that were not about offers.
    dropped: u64,
    reader: Option<ThreadId>,
    reader_waits: bool,
    writers_waiting: usize,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum InboxPhase {
    Open,
    Closing,
    Ended,
}

impl<M: InboxMessage> Inbox<M> {
    pub(super) fn new(ordinary_max: usize) -> Inbox<M> {
        let lanes = Lanes {
            urgent: VecDeque::new(),
            ordinary: VecDeque::new(),
            weight: 0,
            phase: InboxPhase::Open,
            patience: Deadline::after(Duration::ZERO),
            dropped: 0,
            reader: None,
            reader_waits: false,
            writers_waiting: 0,
        };
        Inbox {
            lanes: Mutex::new(lanes),
            filled: Condvar::new(),
            drained: Condvar::new(),
            ordinary_max,
        }
    }

    /// Queues a message in the ordinary lane; waits while that is full. The message is dropped after the end, and in
    /// [`InboxPhase::Closing`] if it is about offers or finds no room up to the deadline.
    pub(super) fn send(&self, message: M) {
        let mut lanes = self.wait_for_room(lock(&self.lanes), &message);
        let has_room = match lanes.phase {
            InboxPhase::Open => true,
            InboxPhase::Closing => !message.is_about_offers() && lanes.weight < self.ordinary_max,
            InboxPhase::Ended => false,
        };
        if has_room {
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
            InboxPhase::Open => lanes.weight >= self.ordinary_max,
            InboxPhase::Closing => lanes.weight >= self.ordinary_max && !message.is_about_offers(),
            InboxPhase::Ended => false,
        };
        if !waits(&lanes) || lanes.reader == Some(this_thread()) {
            return lanes;
        }
        lanes.writers_waiting += 1;
        while lanes.phase == InboxPhase::Open && waits(&lanes) {
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

    /// Queues a message in the urgent lane, without waiting.
    pub(super) fn send_urgent(&self, message: M) {
        let mut lanes = lock(&self.lanes);
        if lanes.phase != InboxPhase::Ended {
            lanes.urgent.push_back(message);
            self.wake_reader(&mut lanes);
        }
    }

    fn wake_reader(&self, lanes: &mut Lanes<M>) {
        if std::mem::take(&mut lanes.reader_waits) {
            self.filled.notify_one();
        }
    }

    /// Adds the next messages to `messages`, urgent ones first: one at least, and more up to the weight `most`. Waits
    /// for the first at most for `patience`. Always called by the same thread.
    pub(super) fn receive(
        &self,
        most: usize,
        patience: Duration,
        messages: &mut VecDeque<M>,
    ) -> Received {
        let mut lanes = lock(&self.lanes);
        lanes.reader.get_or_insert_with(this_thread);
        if lanes.waits_for_a_message() {
            drop(lanes);
            let_others_run();
            lanes = lock(&self.lanes);
        }
        if lanes.waits_for_a_message() {
            lanes.reader_waits = true;
            lanes = pause(&self.filled, lanes, patience);
            lanes.reader_waits = false;
        }
        let taken = lanes.take(most, messages);
        if taken == 0 {
            return if lanes.phase == InboxPhase::Ended {
                Received::End
            } else {
                Received::Nothing
            };
        }
        // Each waits for room of its own.
        for _ in 0..taken.min(lanes.writers_waiting) {
            self.drained.notify_one();
        }
        Received::Messages
    }

    /// Whether the calling thread is the reader.
    pub(super) fn is_reader(&self) -> bool {
        lock(&self.lanes).reader == Some(this_thread())
    }

    /// Begins [`InboxPhase::Closing`]: no calls are made any more, and senders wait for room at most up to the
    /// deadline.
    pub(super) fn closing(&self, patience: Deadline) {
        lock(&self.lanes).patience = patience;
        self.enter(InboxPhase::Closing);
    }

    /// Drops all further messages.
    pub(super) fn end(&self) {
        self.enter(InboxPhase::Ended);
    }

    fn enter(&self, phase: InboxPhase) {
        let mut lanes = lock(&self.lanes);
        if lanes.phase < phase {
            lanes.phase = phase;
        }
        self.wake_reader(&mut lanes);
        self.drained.notify_all();
    }

    /// Ends the inbox and drops the queued messages, because its reader is gone; `taken` are those that it had taken
    /// and not handled.
    pub(super) fn abandon(&self, taken: VecDeque<M>) {
        self.end();
        let mut lanes = lock(&self.lanes);
        let urgent = std::mem::take(&mut lanes.urgent);
        let ordinary = std::mem::take(&mut lanes.ordinary);
        let events = taken.iter().chain(&ordinary).filter(|message| !message.is_about_offers());
        lanes.dropped += events.map(|message| message.weight() as u64).sum::<u64>();
        lanes.weight = 0;
        drop(lanes);
        drop((taken, urgent, ordinary));
    }

    /// The weight of the messages that were dropped so far, without those about offers.
    pub(super) fn dropped(&self) -> u64 {
        lock(&self.lanes).dropped
    }
}

impl<M: InboxMessage> Lanes<M> {
    fn waits_for_a_message(&self) -> bool {
        self.urgent.is_empty() && self.ordinary.is_empty() && self.phase != InboxPhase::Ended
    }

    /// Moves messages to `messages`, urgent ones first: one at least, if there is one, and more up to the weight
    /// `most`. Returns how many.
    fn take(&mut self, most: usize, messages: &mut VecDeque<M>) -> usize {
        let before = messages.len();
        let mut weight = 0;
        loop {
            let is_urgent = !self.urgent.is_empty();
            let lane = if is_urgent { &mut self.urgent } else { &mut self.ordinary };
            let Some(next) = lane.front().map(InboxMessage::weight) else { break };
            if weight > 0 && weight + next > most {
                break;
            }
            weight += next;
            messages.extend(lane.pop_front());
            self.weight -= if is_urgent { 0 } else { next };
        }
        messages.len() - before
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use std::sync::Arc;

    impl InboxMessage for u32 {
        fn weight(&self) -> usize {
            1
        }

        fn is_about_offers(&self) -> bool {
            false
        }
    }

    fn next(inbox: &Inbox<u32>) -> Option<u32> {
        let mut messages = VecDeque::new();
        match inbox.receive(1, Duration::ZERO, &mut messages) {
            Received::Messages => messages.pop_front(),
            Received::Nothing => None,
            Received::End => Some(0),
        }
    }

    /// Goal: urgent messages come first, each lane keeps its order, and the end comes last. Method: one thread, which
    /// is the reader and so never waits, although the lane has room for one message only.
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

    /// Goal: the reader takes many messages at once, in order, urgent ones first, up to a weight, and at least one
    /// however heavy; what it has taken and not handled counts as dropped when it is gone. Method: messages of several
    /// weights and kinds, taken in parts.
    #[test]
    fn many_messages_are_taken_up_to_a_weight() {
        let held = Arc::new(());
        let payload = |weight, offers| Payload { _held: Arc::clone(&held), weight, offers };
        let inbox = Inbox::new(100);
        let mut taken = VecDeque::new();
        let receive = |taken: &mut VecDeque<Payload>| {
            assert_eq!(inbox.receive(10, Duration::ZERO, taken), Received::Messages);
            taken.iter().map(|it| it.weight).collect::<Vec<_>>()
        };
        for weight in [4, 5, 2, 30, 1, 1] {
            inbox.send(payload(weight, weight == 5));
        }
        inbox.send_urgent(payload(3, false));
        assert_eq!(receive(&mut taken), [3, 4]);
        taken.clear();
        assert_eq!(receive(&mut taken), [5, 2]);
        assert_eq!(lock(&inbox.lanes).weight, 32);
        inbox.abandon(taken);
        assert_eq!((inbox.dropped(), Arc::strong_count(&held)), (2 + 30 + 1 + 1, 1));
        let mut heavy = VecDeque::new();
        let inbox = Inbox::new(100);
        inbox.send(payload(30, false));
        assert_eq!(inbox.receive(10, Duration::ZERO, &mut heavy), Received::Messages);
        assert_eq!((heavy.len(), lock(&inbox.lanes).weight), (1, 0));
    }

    /// Goal: a sender waits for room, and returns at the end. Method: a second thread sends more than there is room
    /// for, while the reader reads once and then ends the inbox.
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

    impl InboxMessage for Payload {
        fn weight(&self) -> usize {
            self.weight
        }

        fn is_about_offers(&self) -> bool {
            self.offers
        }
    }

    /// Goal: an inbox without a reader holds a bounded weight in each phase, blocks no sender for ever once it closes,
    /// and counts what it drops. Method: senders of heavy and light messages, of which a third is about offers, send
    /// more than there is room for; each message that the inbox holds is counted.
    #[test]
    fn what_waits_is_bounded_in_each_stage() {
        const MAX: usize = 100;
        let inbox = Arc::new(Inbox::new(MAX));
        let held = Arc::new(());
        let writer = |weight: usize| {
            let inbox = Arc::clone(&inbox);
            let held = Arc::clone(&held);
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
        inbox.abandon(VecDeque::new());
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(inbox.dropped() > dropped);
        writer(1).join().unwrap();
        assert_eq!((Arc::strong_count(&held), lock(&inbox.lanes).ordinary.capacity()), (1, 0));
    }
}
