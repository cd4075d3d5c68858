//! Dynamic allocation: the executor limit follows the load that clients tell of, and idle executors end.

use std::collections::HashMap;

use offermill::allocation::{Allocator, Load, Rule};
use offermill::{ExecutorId, Timestamp};

use super::Session;
use crate::control::Activity;
use crate::model::event::RunEvent;
use crate::model::executor::{ExecutorInfo, State};
use crate::text::format::{age, count};

/// RunEvent dynamic allocation knows.
pub(super) struct Allocating {
    pub(super) allocator: Allocator,
    /// The load as it was told last. Until then nothing is done.
    pub(super) load: Option<Load>,
    /// The executors that the allocator was told of.
    pub(super) ids: HashMap<String, ExecutorId>,
}

impl Allocating {
    /// At the initial limit.
    pub(super) fn new(rule: Rule) -> Allocating {
        let allocator = Allocator::new(rule, Timestamp::ORIGIN);
        Allocating { allocator, load: None, ids: HashMap::new() }
    }

    /// Since when an executor is idle; `None` if it isn't.
    pub(super) fn idle_since(&self, name: &str) -> Option<Timestamp> {
        self.allocator.idle_since(*self.ids.get(name)?)
    }
}

impl Session {
    /// Takes note of an executor that came or went.
    pub(super) fn note_executor(&mut self, at: Timestamp, what: &RunEvent) {
        match what {
            RunEvent::Running(record) | RunEvent::Returned(record) => self.track(at, &record.name),
            RunEvent::Ended(record)
            | RunEvent::GivenUp(record)
            | RunEvent::RefusedReturn(record) => {
                let Some(allocating) = &mut self.allocating else { return };
                if let Some(id) = allocating.ids.remove(&record.name) {
                    allocating.allocator.removed(id);
                }
            }
            _ => {}
        }
    }

    /// Tells the allocator of an executor, if it doesn't know it yet.
    fn track(&mut self, at: Timestamp, name: &str) {
        let (Some(allocating), Some(id)) = (&mut self.allocating, self.kernel.executor_id(name))
        else {
            return;
        };
        allocating.ids.insert(name.to_owned(), id);
        allocating.allocator.added(id, at);
    }

    /// Takes note of what a client says that an executor does. `None` without dynamic allocation.
    pub(super) fn note_activity(
        &mut self,
        executor: &ExecutorInfo,
        activity: Activity,
    ) -> Option<()> {
        let now = self.clock.now();
        // Its tasks may be told of before the cluster says that it runs.
        if executor.state == State::Starting {
            self.track(now, &executor.name);
        }
        let allocating = self.allocating.as_mut()?;
        let Some(id) = allocating.ids.get(&executor.name).copied() else { return Some(()) };
        let allocator = &mut allocating.allocator;
        match activity {
            Activity::Busy => allocator.busy(id),
            Activity::Idle => allocator.idle(id, now),
            Activity::Cached(has_cached) => allocator.cached(id, has_cached),
            Activity::Shuffle(data) => allocator.shuffle(id, data),
        };
        Some(())
    }

    /// Notes that an executor was asked to end.
    pub(super) fn note_leaving(&mut self, id: ExecutorId) {
        if let Some(allocating) = &mut self.allocating {
            allocating.allocator.leaving(id);
        }
    }

    /// Does what the load asks for, once there was any.
    pub(super) fn follow_load(&mut self, now: Timestamp) {
        if self.ending.is_some() {
            return;
        }
        let Some(allocating) = &mut self.allocating else { return };
        let Some(load) = allocating.load else { return };
        let before = allocating.allocator.limit();
        let advice = allocating.allocator.step(now, &load);
        let timeout = allocating.allocator.rule().idle_timeout();
        if let Some(limit) = advice.limit {
            let why = reason(&load, advice.needed, limit > before);
            // It is within what the kernel takes, as the rule's maximum is.
            let _set = self.set_limit(Some(limit), &why);
        }
        if !advice.kill.is_empty() {
            let why = format!("idle for {}, and not needed", age(timeout));
            self.kill(advice.kill, why);
        }
    }
}

/// As in `40 tasks pending`, or `3 needed for 3 tasks`.
fn reason(load: &Load, needed: u32, grows: bool) -> String {
    let pending = load.pending.saturating_add(load.speculative);
    match (grows, pending) {
        (true, 0) => format!("{} that no executor may run", count(load.unschedulable, "task set")),
        (true, pending) => format!("{} pending", count(pending, "task")),
        (false, pending) => {
            let tasks = pending.saturating_add(load.running);
            format!("{} for {}", needed_text(needed), count(tasks, "task"))
        }
    }
}

fn needed_text(needed: u32) -> String {
    if needed == 0 { "none needed".to_owned() } else { format!("{needed} needed") }
}
