//! The policy's memory: the limit, how it grows, and which executors are idle since when.

use std::collections::BTreeMap;

use super::load::Load;
use super::rule::Rule;
use super::tracked::{ShuffleData, Tracked};
use crate::ids::ExecutorId;
use crate::time::Timestamp;

/// What a step advises. Set the limit first: an executor that ends below it would be replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Advice {
    /// The executor limit from now on, if it has changed.
    pub limit: Option<u32>,
    /// Idle executors that should be asked to end, in the order of their ids. The limit is not lowered by their end:
    /// it was before, by the load, and they are beyond it. They count as leaving and are not named again.
    pub kill: Vec<ExecutorId>,
    /// How many executors the load could keep busy, whatever the rule's bounds are.
    pub needed: u32,
}

/// Follows a load: see the [module](super).
///
/// All that happens is told with the moment at which it does. Should time go backwards, what waits for a moment waits
/// no longer than its timeout from then on; should it jump ahead, what is due is due.
#[derive(Clone, Debug)]
pub struct Allocator {
    rule: Rule,
    limit: u32,
    executors: BTreeMap<ExecutorId, Tracked>,
    /// How many of them are being ended.
    leaving: u32,
    /// By how much the limit grows next.
    growth: u32,
    /// When it grows next; `None` while nothing waits.
    grow_at: Option<Timestamp>,
    /// No load has come yet, and no executor was idle for too long.
    is_starting: bool,
    last: Timestamp,
}

impl Allocator {
    /// At the initial limit and without executors.
    #[must_use]
    pub fn new(rule: Rule, now: Timestamp) -> Allocator {
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

    /// The settings.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The limit as it was advised last; at first the initial one.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// How many executors are there, without those that are being ended.
    #[must_use]
    pub fn executors(&self) -> usize {
        self.executors.len() - self.leaving as usize
    }

    /// Since when an executor has no tasks. `None` if it has, or isn't known.
    #[must_use]
    pub fn idle_since(&self, executor: ExecutorId) -> Option<Timestamp> {
        self.executors.get(&executor)?.idle_since
    }

    /// An executor has come, and has no tasks. One that is known already stays as it is.
    pub fn added(&mut self, executor: ExecutorId, now: Timestamp) {
        self.pass(now);
        self.executors.entry(executor).or_insert(Tracked::new(now));
    }

    /// An executor has gone.
    pub fn removed(&mut self, executor: ExecutorId) {
        if let Some(tracked) = self.executors.remove(&executor) {
            self.leaving -= u32::from(tracked.is_leaving);
        }
    }

    /// Somebody else asked an executor to end: it counts no more when others are looked for that may go.
    pub fn leaving(&mut self, executor: ExecutorId) {
        if let Some(tracked) = self.executors.get_mut(&executor) {
            self.leaving += u32::from(!tracked.is_leaving);
            tracked.is_leaving = true;
        }
    }

    /// An executor has tasks. Returns whether it is known, as do those that follow.
    pub fn busy(&mut self, executor: ExecutorId) -> bool {
        self.change(executor, |tracked| tracked.idle_since = None)
    }

    /// An executor has no more tasks. One that had none is as idle as before.
    pub fn idle(&mut self, executor: ExecutorId, now: Timestamp) -> bool {
        self.pass(now);
        self.change(executor, |tracked| tracked.idle_since = tracked.idle_since.or(Some(now)))
    }

    /// An executor holds cached blocks, or none any more.
    pub fn cached(&mut self, executor: ExecutorId, has_cached: bool) -> bool {
        self.change(executor, |tracked| tracked.has_cached = has_cached)
    }

    /// An executor holds shuffle data, or none any more. Don't tell if it outlives the executor.
    pub fn shuffle(&mut self, executor: ExecutorId, data: ShuffleData) -> bool {
        self.change(executor, |tracked| tracked.shuffle = data)
    }

    fn change(&mut self, executor: ExecutorId, change: impl FnOnce(&mut Tracked)) -> bool {
        self.executors.get_mut(&executor).map(change).is_some()
    }

    /// Looks at the load and at the clock, and says what to do. Call it each 100 ms or so, as Spark does: nothing
    /// happens between two steps. O(executors) when some are beyond the limit.
    pub fn step(&mut self, now: Timestamp, load: &Load) -> Advice {
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
        Advice { limit: (self.limit != before).then_some(self.limit), kill, needed }
    }

    /// Moves the limit.
    fn follow(&mut self, needed: u32, present: u32, now: Timestamp) {
        let Rule { min, max, sustained_timeout, .. } = self.rule;
        if needed < self.limit {
            (self.limit, self.growth) = (needed.max(min), 1);
            return;
        }
        if self.grow_at.is_none_or(|at| now < at) {
            return;
        }
        // There is no use in growing step by step to what is there already. (Spark counts those that leave, too.)
        let wanted = self.limit.max(present).saturating_add(self.growth);
        let limit = wanted.min(needed).min(max).max(self.limit);
        let grown = limit - self.limit;
        self.growth = if grown == self.growth { grown.saturating_mul(2) } else { 1 };
        // What could not grow tries again with each step, and so grows at once when more is needed.
        if grown > 0 {
            self.limit = limit;
            self.grow_at = Some(now.plus(sustained_timeout));
        }
    }

    /// Takes leave of idle executors that neither the limit nor the load asks for.
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

    /// Time passes. If it goes backwards, no moment that was noted may lie ahead, or something would wait for longer
    /// than its timeout.
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
