//! Virtual time: what will happen, in order. Things of one moment happen in the order in which they were put down.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use super::wire::{FrameworkCall, MasterEvent};

/// Something that will happen. Those about a task, an agent or a master hold its serial: if that has changed by then,
/// nothing happens.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A message arrives at the framework, on the stream that it was sent on.
    Told { stream: u64, tell: MasterEvent },
    /// A call arrives at the master.
    Asked { stream: u64, ask: FrameworkCall },
    /// The framework tries to subscribe.
    Subscribe,
    /// A handler looks into the offer queue.
    Answer { handler: usize },
    /// The framework's control thread wakes up.
    Poll,
    /// The master's allocation cycle.
    Allocate,
    /// The master forgets all refusals and offers, suppressed or not.
    Storm,
    /// The master takes an offer back, if it is still held.
    Rescind { offer: u64 },
    /// The order to launch reaches the agent.
    TaskArrives(TaskRef),
    /// The executor is up.
    TaskRuns(TaskRef),
    /// The executor ends by itself; badly, if so.
    TaskEnds(TaskRef, bool),
    /// The order to end reaches the agent.
    KillArrives(TaskRef, Duration),
    /// The executor has ended as it was told.
    TaskKilled(TaskRef),
    /// An update reaches the master.
    UpdateArrives(TaskRef, u64),
    /// The agent sends an update again that nobody acknowledged; the next time after so long.
    UpdateAgain(TaskRef, u64, Duration),
    /// An agent comes back from the dead.
    MachineBack { machine: u32, serial: u32, new_id: bool },
    /// An agent's link is whole again.
    MachineReached { machine: u32, serial: u32 },
    /// The master has waited long enough for an agent.
    MachineTimesOut { machine: u32, serial: u32 },
    /// An agent that is up registers with a new master.
    MachineRegisters { machine: u32, serial: u32 },
    /// Another master leads.
    MasterBack { serial: u32 },
    /// A fault of the scenario begins.
    Fault { index: usize },
    /// All faults are over.
    Heal,
    /// Figures are taken.
    Sample,
    /// The framework's shutdown has taken as long as it may.
    ShutdownTimesOut,
}

/// A task, unless its cell is another's by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskRef {
    pub(super) cell: u32,
    pub(super) serial: u32,
}

#[derive(Debug)]
struct Due {
    at: u64,
    number: u64,
    item: Item,
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The queue and its clock, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    pub(super) now: u64,
    put_down: u64,
    due: BinaryHeap<Reverse<Due>>,
}

impl Agenda {
    pub(super) fn after(&mut self, millis: u64, item: Item) {
        self.at(self.now.saturating_add(millis), item);
    }

    pub(super) fn at(&mut self, at: u64, item: Item) {
        self.put_down += 1;
        self.due.push(Reverse(Due { at: at.max(self.now), number: self.put_down, item }));
    }

    /// Moves on to the next thing.
    pub(super) fn next(&mut self) -> Option<Item> {
        let Reverse(due) = self.due.pop()?;
        self.now = due.at;
        Some(due.item)
    }
}
