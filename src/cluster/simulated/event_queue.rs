//! Virtual time: the queue of future events. Events of the same time are processed in the order in which they were
//! added.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use super::wire::{FrameworkCall, MasterEvent};

/// A future event. Events about a task, an agent or a master hold its serial number: if the serial number has changed
/// when the event is due, the event has no effect.
#[derive(Clone, Debug)]
pub(super) enum SimEvent {
    /// An event of the master arrives at the framework, on the stream that it was sent on.
    EventArrives { stream: u64, event: MasterEvent },
    /// A call arrives at the master.
    CallArrives { stream: u64, call: FrameworkCall },
    /// The framework tries to subscribe.
    Subscribe,
    /// An offer handler checks the offer queue, or continues its batch.
    Answer { handler: usize },
    /// The framework's control thread wakes up.
    Poll,
    /// The master's allocation cycle.
    Allocate,
    /// The master forgets all refusals and makes offers, even if suppressed.
    Storm,
    /// The master rescinds an offer, if it is outstanding.
    Rescind { offer: u64 },
    /// The launch arrives at the agent.
    TaskArrives(TaskRef),
    /// The executor runs.
    TaskRuns(TaskRef),
    /// The executor ends by itself, with a failure if `true`.
    TaskEnds(TaskRef, bool),
    /// The kill arrives at the agent.
    KillArrives(TaskRef, Duration),
    /// The executor has ended after a kill.
    TaskKilled(TaskRef),
    /// An update arrives at the master.
    UpdateArrives(TaskRef, u64),
    /// The agent sends an unacknowledged update again, and the next time after this duration.
    UpdateAgain(TaskRef, u64, Duration),
    /// An agent that died comes back.
    MachineBack { machine: u32, serial: u32, new_id: bool },
    /// An agent can be reached again.
    MachineReached { machine: u32, serial: u32 },
    /// The master gives up waiting for an agent.
    MachineTimesOut { machine: u32, serial: u32 },
    /// An agent that is up registers with a new master.
    MachineRegisters { machine: u32, serial: u32 },
    /// A new master leads.
    MasterBack { serial: u32 },
    /// A fault of the scenario begins.
    Fault { index: usize },
    /// All faults are over.
    Heal,
    /// A sample is recorded.
    Sample,
    /// The timeout of the framework's shutdown has passed.
    ShutdownTimesOut,
}

/// A task: its cell, and the serial number that the cell has as long as it holds this task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskRef {
    pub(super) cell: u32,
    pub(super) serial: u32,
}

#[derive(Debug)]
struct Scheduled {
    at: u64,
    number: u64,
    event: SimEvent,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.number == other.number
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The queue of future events, and the virtual time in milliseconds.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    pub(super) now: u64,
    added: u64,
    due: BinaryHeap<Reverse<Scheduled>>,
}

impl EventQueue {
    /// Adds an event `millis` from now.
    pub(super) fn after(&mut self, millis: u64, event: SimEvent) {
        self.at(self.now.saturating_add(millis), event);
    }

    /// Adds an event at a time, or now if that has passed.
    pub(super) fn at(&mut self, at: u64, event: SimEvent) {
        self.added += 1;
        self.due.push(Reverse(Scheduled { at: at.max(self.now), number: self.added, event }));
    }

    /// Advances the time to the next event, and returns it.
    pub(super) fn next(&mut self) -> Option<SimEvent> {
        let Reverse(due) = self.due.pop()?;
        self.now = due.at;
        Some(due.event)
    }
}
