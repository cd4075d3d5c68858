//! The allocator: the state of the policy, which is the executor limit, its growth, and how long each executor has been
//! idle.

use std::collections::BTreeMap;

use super::load::Load;
use super::rule::AllocationRule;
use super::tracked::{ShuffleData, Tracked};
use crate::ids::ExecutorId;
use crate::time::Timestamp;

/// The result of [`Allocator::step`]. Set the limit first; otherwise an executor that ends may be replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct AllocationAdvice {
    /// The new executor limit, if it has changed.
    pub limit: Option<u32>,
    /// The idle executors that should be asked to end, in the order of their ids. They exceed the limit, which isn't
    /// lowered because of them. They count as leaving from now on and aren't returned again.
    pub kill: Vec<ExecutorId>,
    /// The number of executors that the load could keep busy, regardless of the rule's bounds.
    pub needed: u32,
}

/// Computes the executor limit from a load; see the [module documentation](super).
///
/// The caller passes the current time. If it goes backwards, no deadline is further away than its timeout. If it jumps
/// ahead, everything that is due by then is done.
#[derive(Clone, Debug)]
pub struct Allocator {
    rule: AllocationRule,
    limit: u32,
    executors: BTreeMap<ExecutorId, Tracked>,
    /// How many of them are leaving.
    leaving: u32,
    /// The next increment of the limit.
    growth: u32,
    /// When the limit may grow next; `None` while no task waits.
    grow_at: Option<Timestamp>,
    /// Whether no load has arrived yet and no executor has been idle for too long.
    is_starting: bool,
    last: Timestamp,
}

impl Allocator {
    /// Creates an allocator at the initial limit and without executors.
    #[must_use]
    pub fn new(rule: AllocationRule, now: Timestamp) -> Allocator {
        Allocator {
            limit: rule.initial,
            rule,
            executors: BTreeMap::new(),
            leaving: 0,
            growth: 1,
            grow_at: None,
            is_starting: true,
            last: now,
        }
    }

    /// Returns the settings.
    #[must_use]
    pub fn rule(&self) -> &AllocationRule {
        &self.rule
    }

    /// Returns the current limit; at first the initial one.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the number of executors, without those that are leaving.
    #[must_use]
    pub fn executors(&self) -> usize {
        self.executors.len() - self.leaving as usize
    }

    /// Returns when an executor became idle. `None` if it has tasks or is unknown.
    #[must_use]
    pub fn idle_since(&self, executor: ExecutorId) -> Option<Timestamp> {
        self.executors.get(&executor)?.idle_since
    }

    /// Adds an executor without tasks. An executor that is already known stays as it is.
    pub fn added(&mut self, executor: ExecutorId, now: Timestamp) {
        self.pass(now);
        self.executors.entry(executor).or_insert(Tracked::new(now));
    }

    /// Removes an executor that has ended. Does nothing if it is unknown.
    pub fn removed(&mut self, executor: ExecutorId) {
        if let Some(tracked) = self.executors.remove(&executor) {
            self.leaving -= u32::from(tracked.is_leaving);
        }
    }

    /// Marks an executor as leaving because something other than the allocator asked it to end. It no longer counts
    /// when executors to end are selected.
    pub fn leaving(&mut self, executor: ExecutorId) {
        if let Some(tracked) = self.executors.get_mut(&executor) {
            self.leaving += u32::from(!tracked.is_leaving);
            tracked.is_leaving = true;
        }
    }

    /// Reports that an executor has tasks. Returns whether the executor is known, like the methods below.
    pub fn busy(&mut self, executor: ExecutorId) -> bool {
        self.change(executor, |tracked| tracked.idle_since = None)
    }

    /// Reports that an executor has no more tasks. If it had none before, its idle time continues.
    pub fn idle(&mut self, executor: ExecutorId, now: Timestamp) -> bool {
        self.pass(now);
        self.change(executor, |tracked| tracked.idle_since = tracked.idle_since.or(Some(now)))
    }

    /// Sets whether an executor holds cached blocks.
    pub fn cached(&mut self, executor: ExecutorId, has_cached: bool) -> bool {
        self.change(executor, |tracked| tracked.has_cached = has_cached)
    }

    /// Sets whether an executor holds shuffle data. Don't report shuffle data that outlives the executor.
    pub fn shuffle(&mut self, executor: ExecutorId, data: ShuffleData) -> bool {
        self.change(executor, |tracked| tracked.shuffle = data)
    }

    fn change(&mut self, executor: ExecutorId, change: impl FnOnce(&mut Tracked)) -> bool {
        self.executors.get_mut(&executor).map(change).is_some()
    }

    /// Updates the limit and selects executors to end. Call it every 100 ms or so, as Spark does: nothing happens
    /// between two steps. Takes O(executors) time if there are more executors than the limit.
    pub fn step(&mut self, now: Timestamp, load: &Load) -> AllocationAdvice {
        self.pass(now);
        let present = u32::try_from(self.executors.len()).unwrap_or(u32::MAX);
        let needed = load.executors_needed(&self.rule, present);
        if load.is_backlogged() {
            self.grow_at.get_or_insert(now.plus(self.rule.backlog_timeout));
        } else {
            (self.grow_at, self.growth) = (None, 1);
        }
        let is_overdue = |tracked: &Tracked| tracked.is_overdue(&self.rule, now);
        self.is_starting =
            self.is_starting && !load.is_any() && !self.executors.values().any(is_overdue);
        let before = self.limit;
        if !self.is_starting {
            self.follow(needed, present, now);
        }
        let kill = self.spare(needed, now);
        AllocationAdvice { limit: (self.limit != before).then_some(self.limit), kill, needed }
    }

    /// Lowers or raises the limit.
    fn follow(&mut self, needed: u32, present: u32, now: Timestamp) {
        let AllocationRule { min, max, sustained_timeout, .. } = self.rule;
        if needed < self.limit {
            (self.limit, self.growth) = (needed.max(min), 1);
            return;
        }
        if self.grow_at.is_none_or(|at| now < at) {
            return;
        }
        // Growing step by step up to the executors that already exist would have no effect. (Spark also counts those
        // that are leaving.)
        let wanted = self.limit.max(present).saturating_add(self.growth);
        let limit = wanted.min(needed).min(max).max(self.limit);
        let grown = limit - self.limit;
        self.growth = if grown == self.growth { grown.saturating_mul(2) } else { 1 };
        // If the limit couldn't grow, each step tries again, so that it grows at once when more is needed.
        if grown > 0 {
            self.limit = limit;
            self.grow_at = Some(now.plus(sustained_timeout));
        }
    }

    /// Selects idle executors that neither the limit nor the load needs, and marks them as leaving.
    fn spare(&mut self, needed: u32, now: Timestamp) -> Vec<ExecutorId> {
        let kept = self.limit.max(needed.min(self.rule.max));
        let spare = self.executors().saturating_sub(kept as usize);
        if spare == 0 {
            return Vec::new();
        }
        let rule = &self.rule;
        let overdue = self.executors.iter_mut().filter(|(_, it)| it.is_overdue(rule, now));
        let kill = overdue.take(spare).map(|(executor, tracked)| {
            tracked.is_leaving = true;
            *executor
        });
        let kill: Vec<ExecutorId> = kill.collect();
        self.leaving += u32::try_from(kill.len()).unwrap_or(u32::MAX);
        kill
    }

    /// Advances the clock. If time goes backwards, all recorded times are moved back to at most `now`, so that nothing
    /// waits for longer than its timeout.
    fn pass(&mut self, now: Timestamp) {
        if now < self.last {
            for tracked in self.executors.values_mut() {
                tracked.idle_since = tracked.idle_since.map(|since| since.min(now));
            }
            let longest = self.rule.backlog_timeout.max(self.rule.sustained_timeout);
            self.grow_at = self.grow_at.map(|at| at.min(now.plus(longest)));
        }
        self.last = now;
    }
}
