//! The picture of the cluster's capacity: what each agent offered last, what executors use there, and what is free.
//! See `capacity_rebuild` for how it is built.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::agent_use::ExecutorUse;
use super::capacity_agent::{AgentResources, RoleOffer};
use super::capacity_shard::{AgentShard, CapacitySums, SHARD};
use super::capacity_spare::SpareMemory;
use super::totals::Totals;
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::sync::{Mutex, Swap};
use crate::time::Timestamp;

/// What the agents of the cluster have, as far as they offered it: an immutable picture, from
/// [`Kernel::capacity`](crate::Kernel::capacity).
///
/// An agent is in it from its first offer that meets the [constraint](crate::ConfigBuilder::constraint), or from the
/// report that it was lost, until the kernel [forgets](crate::Kernel::tick) it: an agent without executors 15 min after
/// it was last looked at. While offers are declined alike (see below), it isn't looked at. "Offered" is what executors
/// may use under the settings in force when it was offered: resources of other roles, and revocable ones unless they
/// are enabled, are left out.
///
/// # What belongs together
/// * Each agent's `offered` amounts are of one batch: the last one in which it offered something else than executors of
///   this kernel explain, which came and went since the batch before. All its offers in that batch are added up; offers
///   of the same agent in other batches aren't, so no resource is counted twice, and what is offered in parts is shown
///   as the last part.
/// * If [`exact`](ClusterCapacity::exact) is set, all `used` amounts are of one instant and add up to
///   [`totals`](ClusterCapacity::totals). Otherwise each executor is counted as it was at some moment of the rebuild.
/// * `free` is worked out: what was offered, less the executors placed since, plus those that have ended since, if
///   executors have a fixed size; they are taken to have had the size in force when the offer was recorded. What other
///   frameworks take or give back is seen with the agent's next offer, and so is the end of an executor that was
///   [adopted](crate::Kernel::adopt) since. If the resources of an executor are offered again before its end is
///   reported to the kernel, `free` contains them twice until the next offer. An executor that is
///   [bound late](crate::Kernel::bind) to an agent which offers, too, counts as placed when its permit was accepted,
///   because nothing tells when the cluster has placed it: until the agent's next offer `free` may contain what it
///   uses, or lack what another has given back. (No manager of this crate mixes the two.)
///
/// # How old it is
/// A picture shows each offer whose batch had returned when its rebuild began, with these exceptions. Batches that are
/// declined alike, because a cap is reached, the kernel is closed or nothing is subscribed, don't look at offers. Of
/// agents that are excluded, suspect or full, and of offers that are declined because a constraint isn't met or
/// maintenance is due, none are recorded. And if two threads record the same agent, or one does while a rebuild copies
/// texts that have changed, the later one leaves it to the agent's next offer. So `offered` is "as last seen while
/// executors were wanted". A change of reservations, of roles or of attributes' values alone, with equal amounts, is
/// recorded with the next change of amounts, or when a handler offers the agent for the first time, or about a minute
/// after it last did so.
///
/// If executors differ in size (they take whole offers, for example), `free` may be too low for about a minute: one
/// thread places an executor on an agent while another thread records the same agent's offers, an older executor there
/// ends, and the agent offers as much again as was recorded. The offer then looks recorded, and what the older executor
/// gave back is missing, until the agent offers other amounts, another executor is placed there, or the minute is over.
pub struct ClusterCapacity {
    pub(super) version: u64,
    pub(super) time: Timestamp,
    pub(super) totals: Totals,
    pub(super) exact: bool,
    pub(super) sums: CapacitySums,
    pub(super) largest: ResourceSums,
    pub(super) shards: Box<[Arc<AgentShard>]>,
    pub(super) executors: ExecutorUse,
}

impl fmt::Debug for ClusterCapacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterCapacity")
            .field("version", &self.version)
            .field("time", &self.time)
            .field("sums", &self.sums)
            .finish_non_exhaustive()
    }
}

impl ClusterCapacity {
    /// What is returned while the first picture is built.
    pub(super) fn empty() -> ClusterCapacity {
        ClusterCapacity {
            version: 0,
            time: Timestamp::ORIGIN,
            totals: Totals::default(),
            exact: false,
            sums: CapacitySums::default(),
            largest: ResourceSums::NONE,
            shards: Box::default(),
            executors: ExecutorUse::default(),
        }
    }

    /// Returns the number of this picture among those of its kernel; the first is 1. A later picture has a higher one.
    /// 0 is that of the empty picture which is returned while another thread builds the first: it tells nothing.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the time for which it was built: the one that the call which built it was given.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Returns the kernel's totals, of one instant of the rebuild.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether all `used` amounts are of the same instant as [`totals`](ClusterCapacity::totals). `false` if executors
    /// came and went too fast, and for the picture before the first.
    #[must_use]
    pub fn exact(&self) -> bool {
        self.exact
    }

    /// Returns the sums over all agents. They saturate.
    #[must_use]
    pub fn sums(&self) -> CapacitySums {
        self.sums
    }

    /// Returns the most that any one agent has, free and used by executors of this kernel together, for each kind: the
    /// most cores, the most memory and the most GPUs, which may be those of different agents. What an executor of no
    /// fixed size took that has ended is missing until its agent's next offer.
    #[must_use]
    pub fn largest_agent(&self) -> ResourceSums {
        self.largest
    }

    /// Returns the agent with the most free cores, and of several the one with the most free memory, among those that
    /// are neither excluded nor suspect. O(agents).
    #[must_use]
    pub fn largest_free(&self) -> Option<AgentResources<'_>> {
        let usable = self.agents().filter(|agent| !agent.is_withheld());
        usable.max_by_key(|agent| {
            let free = agent.free();
            (free.cores, free.memory)
        })
    }

    /// Returns all agents, in no particular order.
    pub fn agents(&self) -> impl Iterator<Item = AgentResources<'_>> {
        let shards = self.shards.iter().zip(0..);
        shards.flat_map(|(shard, number)| shard.agents(number * SHARD, &self.executors))
    }

    /// Returns what was offered to each role, summed over all agents. O(agents).
    #[must_use]
    pub fn by_role(&self) -> BTreeMap<&str, RoleOffer<'_>> {
        let mut sums = BTreeMap::new();
        for offer in self.agents().flat_map(|agent| agent.roles()) {
            sums.entry(offer.role)
                .and_modify(|sum: &mut RoleOffer<'_>| sum.add(&offer))
                .or_insert(offer);
        }
        sums
    }

    /// Returns sums by the values of the attribute with this name, as text: such as those of `zone`, or of `rack`. An
    /// agent without the attribute isn't in them; one that has it with several values is in each. O(agents).
    #[must_use]
    pub fn by_attribute(&self, name: &str) -> BTreeMap<String, CapacitySums> {
        let mut sums = BTreeMap::<String, CapacitySums>::new();
        for agent in self.agents() {
            let own = agent.attributes().iter().filter(|attribute| attribute.name == name);
            let mut values: Vec<String> = own.map(|own| own.value.to_string()).collect();
            values.sort_unstable();
            values.dedup();
            values.into_iter().for_each(|value| sums.entry(value).or_default().add(&agent));
        }
        sums
    }
}

/// The last picture, and the lock of the thread that builds the next.
pub(crate) struct CapacityCell {
    pub(super) picture: Swap<ClusterCapacity>,
    pub(super) rebuilding: Mutex<SpareMemory>,
}

impl CapacityCell {
    pub(crate) fn new() -> CapacityCell {
        CapacityCell {
            picture: Swap::new(ClusterCapacity::empty()),
            rebuilding: Mutex::new(SpareMemory::default()),
        }
    }
}
