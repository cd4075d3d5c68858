//! The network between framework and master: in order and lossless, until it is told otherwise.
//!
//! Two messages never arrive twice. Offers: a stream doesn't repeat itself, and nobody sends them again, as agents do
//! with updates. And a call to accept them: a framework must not repeat it, for the second would be answered by
//! `TASK_DROPPED` for executors that run (Mesos: `Master::accept` looks at the offers first).

use super::agenda::{Agenda, Item};
use super::rng::Rng;
use super::wire::{FrameworkCall, MasterEvent};

/// A message takes so long, in milliseconds.
const LATENCY: u64 = 1;

/// A disturbance until a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) until: u64,
    pub(super) percent: u8,
    pub(super) amount: u64,
}

impl Window {
    /// Whether it befalls something now.
    pub(super) fn hits(&self, now: u64, dice: &mut Rng) -> bool {
        now < self.until && dice.percent(self.percent)
    }
}

#[derive(Debug)]
pub(super) struct Network {
    dice: Rng,
    pub(super) lost: Window,
    pub(super) duplicated: Window,
    pub(super) reordered: Window,
    pub(super) delayed: Window,
    /// When the last message in order arrives, to the framework and to the master.
    last: [u64; 2],
    /// The stream between framework and master: a number of its own for each subscription.
    pub(super) stream: u64,
}

impl Network {
    pub(super) fn new(dice: Rng) -> Network {
        let (none, last) = (Window::default(), [0; 2]);
        Network {
            dice,
            lost: none,
            duplicated: none,
            reordered: none,
            delayed: none,
            last,
            stream: 0,
        }
    }

    /// From the master to the framework.
    pub(super) fn tell(&mut self, agenda: &mut Agenda, tell: MasterEvent) {
        let repeatable = !matches!(tell, MasterEvent::Offers(_));
        let item = Item::Told { stream: self.stream, tell };
        self.send(agenda, 0, repeatable, item);
    }

    /// From the framework to the master.
    pub(super) fn ask(&mut self, agenda: &mut Agenda, ask: FrameworkCall) {
        let repeatable = !matches!(ask, FrameworkCall::Accept { .. });
        let item = Item::Asked { stream: self.stream, ask };
        self.send(agenda, 1, repeatable, item);
    }

    fn send(&mut self, agenda: &mut Agenda, direction: usize, repeatable: bool, item: Item) {
        let now = agenda.now;
        if self.lost.hits(now, &mut self.dice) {
            return;
        }
        if repeatable && self.duplicated.hits(now, &mut self.dice) {
            let late = self.dice.between(0, 2_000);
            agenda.at(now + LATENCY + late, item.clone());
        }
        let delay = if now < self.delayed.until { self.delayed.amount } else { 0 };
        if self.reordered.hits(now, &mut self.dice) {
            // Others may overtake it.
            let late = self.dice.between(0, self.reordered.amount);
            agenda.at(now + LATENCY + delay + late, item);
            return;
        }
        let at = (now + LATENCY + delay).max(self.last[direction]);
        self.last[direction] = at;
        agenda.at(at, item);
    }

    /// All is well from now on.
    pub(super) fn heal(&mut self) {
        let none = Window::default();
        (self.lost, self.duplicated, self.reordered, self.delayed) = (none, none, none, none);
    }

    /// A new stream; what is under way on the old one never arrives.
    pub(super) fn connect(&mut self) {
        self.stream += 1;
        self.last = [0; 2];
    }
}
