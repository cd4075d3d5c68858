//! Dynamic allocation: the executor limit follows the load that clients report, and idle executors are ended.

use std::collections::HashMap;

use offermill::allocation::{AllocationRule, Allocator, Load};
use offermill::{ExecutorId, Timestamp};

use super::Session;
use crate::control::command::Activity;
use crate::model::event::RunEvent;
use crate::model::executor::{ExecutorRecord, ExecutorState};
use crate::text::format::{age, count};

/// The state of dynamic allocation.
pub(super) struct DynamicAllocation {
    pub(super) allocator: Allocator,
    /// The last reported load. Nothing is done before there is one.
    pub(super) load: Option<Load>,
    /// The executors that the allocator knows.
    pub(super) ids: HashMap<String, ExecutorId>,
}

impl DynamicAllocation {
    /// Starts at the initial limit.
    pub(super) fn new(rule: AllocationRule) -> DynamicAllocation {
        let allocator = Allocator::new(rule, Timestamp::ORIGIN);
        DynamicAllocation { allocator, load: None, ids: HashMap::new() }
    }

    /// The time since which an executor is idle; `None` if it isn't idle.
    pub(super) fn idle_since(&self, name: &str) -> Option<Timestamp> {
        self.allocator.idle_since(*self.ids.get(name)?)
    }
}

impl Session {
    /// Tells the allocator of an executor that runs or has ended.
    pub(super) fn update_allocator(&mut self, at: Timestamp, event: &RunEvent) {
        match event {
            RunEvent::Running(record) | RunEvent::Returned(record) => {
                self.add_to_allocator(at, &record.name)
            }
            RunEvent::Ended(record)
            | RunEvent::GivenUp(record)
            | RunEvent::RefusedReturn(record) => {
                let Some(allocation) = &mut self.allocation else { return };
                if let Some(id) = allocation.ids.remove(&record.name) {
                    allocation.allocator.removed(id);
                }
            }
            _ => {}
        }
    }

    /// Adds an executor to the allocator, unless it is there.
    fn add_to_allocator(&mut self, at: Timestamp, name: &str) {
        let (Some(allocation), Some(id)) = (&mut self.allocation, self.kernel.executor_id(name))
        else {
            return;
        };
        allocation.ids.insert(name.to_owned(), id);
        allocation.allocator.added(id, at);
    }

    /// Records the activity of an executor that a client reports. `None` without dynamic allocation.
    pub(super) fn record_activity(
        &mut self,
        executor: &ExecutorRecord,
        activity: Activity,
    ) -> Option<()> {
        let now = self.clock.now();
        // A client may report its tasks before the cluster reports that it runs.
        if executor.state == ExecutorState::Starting {
            self.add_to_allocator(now, &executor.name);
        }
        let allocation = self.allocation.as_mut()?;
        let Some(id) = allocation.ids.get(&executor.name).copied() else { return Some(()) };
        let allocator = &mut allocation.allocator;
        match activity {
            Activity::Busy => allocator.busy(id),
            Activity::Idle => allocator.idle(id, now),
            Activity::Cached(has_cached) => allocator.cached(id, has_cached),
            Activity::Shuffle(data) => allocator.shuffle(id, data),
        };
        Some(())
    }

    /// Records that an executor was asked to end.
    pub(super) fn record_leaving(&mut self, id: ExecutorId) {
        if let Some(allocation) = &mut self.allocation {
            allocation.allocator.leaving(id);
        }
    }

    /// Sets the limit and ends idle executors as the load requires, once a load was reported.
    pub(super) fn follow_load(&mut self, now: Timestamp) {
        if self.end_reason.is_some() {
            return;
        }
        let Some(allocation) = &mut self.allocation else { return };
        let Some(load) = allocation.load else { return };
        let before = allocation.allocator.limit();
        let advice = allocation.allocator.step(now, &load);
        let timeout = allocation.allocator.rule().idle_timeout();
        if let Some(limit) = advice.limit {
            let why = reason(&load, advice.needed, limit > before);
            // The kernel accepts it: it is at most the rule's maximum, which was checked.
            let _set = self.set_limit(Some(limit), &why);
        }
        if !advice.kill.is_empty() {
            let why = format!("idle for {}, and not needed", age(timeout));
            self.kill(advice.kill, why);
        }
    }
}

/// Why the limit changes, as in `40 tasks pending` or `3 needed for 3 tasks`.
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
