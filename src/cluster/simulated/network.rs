//! The network between framework and master: in order and without loss, except while faults last.
//!
//! Two kinds of message are never duplicated. Offers: a stream doesn't repeat itself, and the master doesn't send
//! offers again, as agents do with updates. And accepts: a framework must not repeat one, because the master would
//! answer the second with `TASK_DROPPED` for executors that run (Mesos: `Master::accept` checks the offers first).

use super::event_queue::{EventQueue, SimEvent};
use super::rng::Rng;
use super::wire::{FrameworkCall, MasterEvent};

/// The time that a message takes, in milliseconds.
const LATENCY_MS: u64 = 1;

/// A fault that lasts until a time and hits a percentage of things.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FaultWindow {
    pub(super) until: u64,
    pub(super) percent: u8,
    pub(super) amount: u64,
}

impl FaultWindow {
    /// Draws whether the fault hits something now.
    pub(super) fn hits(&self, now: u64, rng: &mut Rng) -> bool {
        now < self.until && rng.percent(self.percent)
    }
}

/// The network's faults and streams.
#[derive(Debug)]
pub(super) struct SimNetwork {
    rng: Rng,
    pub(super) lost: FaultWindow,
    pub(super) duplicated: FaultWindow,
    pub(super) reordered: FaultWindow,
    pub(super) delayed: FaultWindow,
    /// The arrival time of the last message in order, to the framework and to the master.
    last: [u64; 2],
    /// The number of the stream between framework and master. Each subscription has its own.
    pub(super) stream: u64,
}

impl SimNetwork {
    pub(super) fn new(rng: Rng) -> SimNetwork {
        let none = FaultWindow::default();
        SimNetwork {
            rng,
            lost: none,
            duplicated: none,
            reordered: none,
            delayed: none,
            last: [0; 2],
            stream: 0,
        }
    }

    /// Sends an event from the master to the framework.
    pub(super) fn send_event(&mut self, events: &mut EventQueue, event: MasterEvent) {
        let repeatable = !matches!(event, MasterEvent::Offers(_));
        let item = SimEvent::EventArrives { stream: self.stream, event };
        self.send(events, 0, repeatable, item);
    }

    /// Sends a call from the framework to the master.
    pub(super) fn send_call(&mut self, events: &mut EventQueue, call: FrameworkCall) {
        let repeatable = !matches!(call, FrameworkCall::Accept { .. });
        let item = SimEvent::CallArrives { stream: self.stream, call };
        self.send(events, 1, repeatable, item);
    }

    fn send(
        &mut self,
        events: &mut EventQueue,
        direction: usize,
        repeatable: bool,
        item: SimEvent,
    ) {
        let now = events.now;
        if self.lost.hits(now, &mut self.rng) {
            return;
        }
        if repeatable && self.duplicated.hits(now, &mut self.rng) {
            let late = self.rng.between(0, 2_000);
            events.at(now + LATENCY_MS + late, item.clone());
        }
        let delay = if now < self.delayed.until { self.delayed.amount } else { 0 };
        if self.reordered.hits(now, &mut self.rng) {
            // Later messages may overtake it.
            let late = self.rng.between(0, self.reordered.amount);
            events.at(now + LATENCY_MS + delay + late, item);
            return;
        }
        let at = (now + LATENCY_MS + delay).max(self.last[direction]);
        self.last[direction] = at;
        events.at(at, item);
    }

    /// Ends all faults.
    pub(super) fn heal(&mut self) {
        let none = FaultWindow::default();
        self.lost = none;
        self.duplicated = none;
        self.reordered = none;
        self.delayed = none;
    }

    /// Begins a new stream. Messages that are still on the old one are dropped on arrival.
    pub(super) fn connect(&mut self) {
        self.stream += 1;
        self.last = [0; 2];
    }
}
