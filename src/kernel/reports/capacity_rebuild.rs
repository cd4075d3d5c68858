//! Builds the picture of the cluster's capacity and hands it out.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | the picture, a `Swap` | any that asks | load | the `Swap`'s | the store: it finds this picture or a later one |
//! | the same | the thread that has the lock `rebuilding` | store | the `Swap`'s | the loads |
//!
//! The thread that finds the picture too old rebuilds it, if no other thread does; the others return the last picture,
//! which is empty while the first is built. None waits for another. Handlers take none of these locks, and none that is
//! held for longer than a copy of one record; see [`state::offered`](crate::kernel::state::offered).
//!
//! A rebuild reads each agent's words and searches all executors. What it copies is kept in shards of [`SHARD`] cells;
//! a shard in which nothing changed is shared with the last picture. The memory of what was replaced is kept for the
//! picture after the next: see [`SpareMemory`].

use std::sync::Arc;

use super::agent_use::ExecutorUse;
use super::capacity::ClusterCapacity;
use super::capacity_shard::{AddedUp, AgentRow, AgentShard, SHARD};
use super::capacity_spare::SpareMemory;
use super::collection::{Collected, Collector};
use super::executor_row::{Row, SeenExecutor};
use super::shard_draft::{ShardDraft, SpareShards};
use crate::kernel::{Core, Kernel};
use crate::sync::try_lock;
use crate::time::Timestamp;

/// How often the collection of executors is repeated while they come and go.
const TRIES: usize = if cfg!(all(loom, test)) { 1 } else { 2 };

impl Kernel {
    /// Returns a picture of what the cluster has: for each agent what it offered last, what executors use there and
    /// what is free, and sums over all. Any number of threads may share it and keep it.
    ///
    /// If the last picture was built for a time that differs from `now` by less than
    /// [`capacity_refresh`](crate::ConfigBuilder::capacity_refresh), or another thread is building one, it is returned;
    /// otherwise the caller builds the next one. That costs O(executors and agents) on the caller's thread; names and
    /// offers are copied only for agents near which something changed. While another thread builds the first one, the
    /// picture that is returned is empty, and its [version](ClusterCapacity::version) is 0.
    ///
    /// # Blocking
    /// No call waits for another's picture. The call that builds one waits for the lock of the name in an agent's cell.
    /// Other calls that take the lock of the same name may wait while it is copied: a handler that meets an agent for
    /// the first time, a failure, a lost agent, a readmission, an adoption, a tick that forgets agents, and reports.
    /// Nothing else waits for a rebuild.
    ///
    /// ```
    /// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp};
    /// # use offermill::{config::ExecutorCores, resources::MilliCpus};
    /// let cores = ExecutorCores::Fixed(MilliCpus::from_cores(4));
    /// let config = Config::builder().executor_cores(cores).executor_limit(Some(1)).build()?;
    /// let kernel = Kernel::new(config, IdScheme::plain());
    /// let resources = [Resource::scalar("cpus", 16.0), Resource::scalar("mem", 65536.0)];
    /// let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
    /// let now = Timestamp::from_millis(1_000);
    /// kernel.handler().resource_offers(&offers, now, &mut Decisions::new());
    ///
    /// let capacity = kernel.capacity(now);
    /// assert_eq!(capacity.sums().offered.cores, MilliCpus::from_cores(16));
    /// assert_eq!(capacity.sums().used.cores, MilliCpus::from_cores(4));
    /// assert_eq!(capacity.largest_free().unwrap().free().cores, MilliCpus::from_cores(12));
    /// # Ok::<(), offermill::Error>(())
    /// ```
    #[must_use]
    pub fn capacity(&self, now: Timestamp) -> Arc<ClusterCapacity> {
        self.0.capacity(now)
    }
}

impl Core {
    pub(super) fn capacity(&self, now: Timestamp) -> Arc<ClusterCapacity> {
        let last = self.capacity.picture.load_full();
        let refresh = self.policy.load().config.capacity_refresh;
        let is_recent = |picture: &ClusterCapacity| {
            picture.version > 0 && now.since(picture.time).max(picture.time.since(now)) < refresh
        };
        if is_recent(&last) {
            return last;
        }
        let Some(mut spare) = try_lock(&self.capacity.rebuilding) else { return last };
        // Another thread may have built one since.
        let last = self.capacity.picture.load_full();
        if is_recent(&last) {
            return last;
        }
        let next = Arc::new(self.rebuild_capacity(&last, &mut spare, now));
        self.capacity.picture.store(Arc::clone(&next));
        spare.shards.replace(&last.shards, &next.shards);
        if let Some(last) = Arc::into_inner(last) {
            spare.executors = last.executors;
        }
        next
    }

    fn rebuild_capacity(
        &self,
        last: &ClusterCapacity,
        spare: &mut SpareMemory,
        now: Timestamp,
    ) -> ClusterCapacity {
        let mut read = PictureRows {
            core: self,
            last: &last.shards,
            spare: &mut spare.shards,
            now,
            shards: Vec::new(),
            rows: std::mem::take(&mut spare.rows),
        };
        let Collected { admission, exact } =
            self.collect_exactly(&mut spare.seen, TRIES, &mut read);
        let PictureRows { shards, rows, .. } = read;
        let memory = std::mem::take(&mut spare.executors);
        let AddedUp { mut sums, mut largest } = AddedUp::default();
        let executors = ExecutorUse::count(
            memory,
            &mut spare.order,
            &rows,
            &shards,
            &self.adopted,
            |number, shard, executors| {
                let added_up = shard.add_up(number * SHARD, executors);
                sums.add_all(&added_up.sums);
                largest = largest.max_of_each(added_up.largest);
            },
        );
        // Executors that aren't bound to an agent are in this sum alone.
        sums.used = sums.used.saturating_add(executors.unbound);
        spare.rows = rows;
        ClusterCapacity {
            version: last.version + 1,
            time: now,
            totals: admission.into(),
            exact,
            sums,
            largest,
            shards: shards.into(),
            executors,
        }
    }

    /// Reads all agents. `last` is what was read before.
    fn read_agents(
        &self,
        last: &[Arc<AgentShard>],
        spare: &mut SpareShards,
        now: Timestamp,
    ) -> Vec<Arc<AgentShard>> {
        let mut shards = Vec::with_capacity(last.len() + 1);
        let mut is_any_new = false;
        let none = Arc::new(AgentShard::default());
        let mut cells = self.agents.records().peekable();
        while cells.peek().is_some() {
            let mut draft = ShardDraft::new(last.get(shards.len()).unwrap_or(&none), spare);
            for (at, cell) in (0..SHARD).zip(&mut cells) {
                // None: its segment is being allocated, so no agent is there yet.
                if let Some(agent) = cell {
                    draft.read(at, agent, now);
                }
            }
            is_any_new |= draft.is_any_new;
            shards.push(draft.finish());
        }
        if is_any_new {
            self.leave_out_forgotten(&mut shards, spare);
        }
        shards
    }

    /// Leaves out agents that were forgotten while others were read: such an agent may be there again, in another cell.
    fn leave_out_forgotten(&self, shards: &mut [Arc<AgentShard>], spare: &mut SpareShards) {
        let mut cells = self.agents.records();
        for shard in shards {
            let mut draft = ShardDraft::of_same(shard, spare);
            for (at, cell) in (0..SHARD).zip(&mut cells) {
                let generation = shard.rows.get(at).and_then(AgentRow::generation);
                // The load is after those of the other cells, which are Acquire: if this agent is in one of them again,
                // it was forgotten here before.
                let is_there =
                    |generation: &u64| cell.is_some_and(|(cell, ..)| cell.is_current(*generation));
                if !generation.as_ref().is_none_or(is_there) {
                    draft.leave_out(at);
                }
            }
            *shard = draft.finish();
        }
    }
}

/// Collects the executors and agents of a picture.
struct PictureRows<'a> {
    core: &'a Core,
    last: &'a [Arc<AgentShard>],
    spare: &'a mut SpareShards,
    now: Timestamp,
    shards: Vec<Arc<AgentShard>>,
    rows: Vec<Row>,
}

impl Collector for PictureRows<'_> {
    fn begin(&mut self, seen: &[SeenExecutor]) {
        self.rows.clear();
        self.rows.reserve(seen.len());
        // A further try copies only what has changed since the one before.
        let tried = std::mem::take(&mut self.shards);
        let known = if tried.is_empty() { self.last } else { &tried };
        self.shards = self.core.read_agents(known, self.spare, self.now);
    }

    fn add(&mut self, row: Row) {
        self.rows.push(row);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use crate::sync::lock;
    use crate::{Config, IdScheme, Kernel, Timestamp};

    /// Goal: no call waits for the picture that another builds, not even for the first. Method: another thread asks
    /// while the lock of the one that builds is taken, before the first picture and after it.
    #[test]
    fn no_call_waits_for_another() {
        let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        for last in [0, 1] {
            let (sender, receiver) = mpsc::channel();
            let asking = kernel.clone();
            let building = lock(&kernel.0.capacity.rebuilding);
            thread::spawn(move || sender.send(asking.capacity(Timestamp::ORIGIN)));
            let picture = receiver.recv_timeout(Duration::from_secs(10));
            drop(building);
            let picture = picture.expect("it waits");
            assert_eq!((picture.version(), picture.exact()), (last, last > 0));
            assert_eq!(kernel.capacity(Timestamp::ORIGIN).version(), last + 1);
        }
    }

    /// Goal: an agent that is forgotten while others are read is left out, so that none is shown twice. Method: agents
    /// are read, one of them is forgotten and is there again in another cell, and those that were forgotten are left
    /// out.
    #[test]
    fn the_forgotten_are_left_out() {
        let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        let (core, now) = (&*kernel.0, Timestamp::ORIGIN);
        let keys = ["S0", "S1", "S2"].map(|it| core.agents.find_or_insert(it, "h", now).unwrap());
        let mut spare = super::SpareShards::default();
        let mut shards = core.read_agents(&[], &mut spare, now);
        let shown = |shards: &[std::sync::Arc<super::AgentShard>]| {
            let rows = shards.iter().flat_map(|shard| shard.rows.iter());
            rows.map(|row| row.generation().is_some()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&shards), [true; 3]);
        assert!(core.agents.retire(keys[1], now));
        core.leave_out_forgotten(&mut shards, &mut spare);
        assert_eq!(shown(&shards), [true, false, true]);
        core.agents.find_or_insert("S3", "h", now).unwrap();
        core.leave_out_forgotten(&mut shards, &mut spare);
        assert_eq!(shown(&shards), [true, false, true], "the next agent in its cell is another");
    }
}
