//! [`Updater`]: a thread's handle for applying status updates one by one.

use std::fmt;
use std::sync::Arc;

use super::agent_ids::AgentIds;
use super::outcome::{LimitRule, Outcome, ReturnedOutcome};
use super::release::{FreedCells, KeptCells};
use crate::kernel::state::admission::ReleaseCounter;
use crate::kernel::{Core, Kernel};
use crate::status::StatusUpdate;
use crate::sync::prefetch_text;
use crate::time::Timestamp;

/// How many updates are [expected](Updater::expect) at a time at the most.
pub(crate) const EXPECTED_MAX: usize = 16;

/// Applies status updates one by one, for one thread, from [`Kernel::updater`].
///
/// It does what [`Kernel::status_update`] does, with less that other threads change, too, for each executor that ends.
/// What the executor held is added to a counter of its own: each kernel has two for updaters, which are free again when
/// these are dropped, and one that further updaters and all callers without an updater share. For each counter the ends
/// on each agent are counted apart, too, so that threads which place executors there aren't held up. The executor's
/// cell, a place in a table, goes back 64 at a time, and when the updater is dropped. What it held, its cores, its GPUs
/// and its place under the limits, is free at once, as always. So an updater that is kept and not used costs the memory
/// of 64 executors at the most.
///
/// ```
/// use offermill::{Change, Config, Decisions, Fate, IdScheme, Kernel, Offer, Resource};
/// use offermill::{StatusUpdate, TaskState, Timestamp};
///
/// let kernel = Kernel::new(Config::builder().build()?, IdScheme::plain());
/// let (mut handler, mut updater) = (kernel.handler(), kernel.updater());
/// let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 4096.0)];
/// let offers = [Offer::new("offer", "S1", "host", &resources, &[])];
/// let now = Timestamp::ORIGIN;
/// handler.resource_offers(&offers, now, &mut Decisions::new());
/// let outcome = updater.status_update(&StatusUpdate::new("0", TaskState::Finished), now);
/// assert_eq!(outcome.change, Change::Ended(Fate::Finished));
/// assert_eq!(kernel.totals().executors, 0);
/// # Ok::<(), offermill::Error>(())
/// ```
///
/// # Consistency
/// That of [`Kernel::status_update`]. Any number of updaters and other callers may apply updates at a time.
///
/// # Blocking
/// Lock-free, with the exceptions of [`Kernel::status_update`].
pub struct Updater {
    core: Arc<Core>,
    counter: ReleaseCounter,
    freed: FreedCells,
    agent_ids: AgentIds,
}

impl fmt::Debug for Updater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updater").finish_non_exhaustive()
    }
}

impl Drop for Updater {
    fn drop(&mut self) {
        self.freed.free(&self.core);
        self.core.admission.return_counter(self.counter);
    }
}

impl Kernel {
    /// Creates an updater, with which one thread applies status updates one by one. It allocates nothing.
    #[must_use]
    pub fn updater(&self) -> Updater {
        let core = Arc::clone(&self.0);
        let counter = core.admission.take_counter();
        core.agents.used_counters.add(counter);
        Updater { core, counter, freed: FreedCells::EMPTY, agent_ids: AgentIds::default() }
    }
}

impl Updater {
    /// [`Kernel::status_update`].
    pub fn status_update(&mut self, update: &StatusUpdate<'_>, now: Timestamp) -> Outcome {
        self.status_update_with(update, LimitRule::Keep, now)
    }

    /// [`Kernel::status_update_with`].
    pub fn status_update_with(
        &mut self,
        update: &StatusUpdate<'_>,
        limit: LimitRule,
        now: Timestamp,
    ) -> Outcome {
        let Updater { core, counter, freed, .. } = self;
        let (found, page) = core.find_with_number(update.executor);
        let mut releases = KeptCells { page, counter: *counter, freed };
        core.apply(update, found, limit, now, &mut releases, ReturnedOutcome)
    }

    /// Prefetches what the next updates will look at, if these are their executors and agents: up to [`EXPECTED_MAX`]
    /// of them. First the texts, which other threads have written, then the executors' cells, to which these lead, and
    /// then what is found there.
    pub(crate) fn expect<'u>(&self, updates: impl Iterator<Item = (&'u str, &'u str)> + Clone) {
        let core = &*self.core;
        for (executor, agent_id) in updates.clone().take(EXPECTED_MAX) {
            prefetch_text(executor);
            prefetch_text(agent_id);
        }
        let mut located = [None; EXPECTED_MAX];
        for (located, (executor, _)) in located.iter_mut().zip(updates) {
            *located = core.locate_one(executor);
        }
        for (_, executor) in located.into_iter().flatten() {
            let agent = executor.agent();
            core.agents.prefetch(agent);
            self.agent_ids.prefetch(agent);
        }
    }

    /// Returns the agent of an executor, if the executor is on another one than `agent_id`. Returns none if it is
    /// there, has ended, or is unknown.
    pub(crate) fn other_agent(&mut self, executor: &str, agent_id: &str) -> Option<Arc<str>> {
        let Updater { core, agent_ids, .. } = self;
        let id = core.find_executor(executor)?;
        let executor = core.executors.get(id.slot)?;
        // If the cell has another executor by now, the one that is meant has ended, and this agent doesn't matter.
        if agent_ids.is_named(&core.agents, executor.agent(), agent_id)? {
            return None;
        }
        let target = core.target(id, executor)?;
        (*target.agent_id != *agent_id).then_some(target.agent_id)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{Config, IdScheme};

    /// Goal: an updater's counter is free again when it is dropped. Method: several updaters after each other have the
    /// same one; of several at a time, those that find none of their own share one.
    #[test]
    fn a_dropped_updaters_counter_is_free_again() {
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let first = kernel.updater().counter;
        for _ in 0..5 {
            assert_eq!(kernel.updater().counter, first);
        }
        let all: Vec<Updater> = (0..5).map(|_| kernel.updater()).collect();
        let own = all.iter().filter(|it| it.counter != ReleaseCounter::SHARED);
        assert_eq!(own.clone().filter(|it| it.counter == first).count(), 1);
        assert_eq!(own.count(), 2);
        drop(all);
        assert_eq!(kernel.updater().counter, first);
    }
}
