//! [`ClusterLack`]: what an executor needs and no agent of the cluster has.

use std::fmt;
use std::time::Duration;

use super::capacity::ClusterCapacity;
use super::capacity_agent::AgentResources;
use super::capacity_shard::SHARD;
use crate::constraint::visible;
use crate::kernel::Core;
use crate::kernel::reason::ReasonKind;
use crate::kernel::state::counters::OfferCounts;
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::kernel::state::policy::Policy;
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// What an executor needs and no agent has, so that waiting won't help until the cluster or the settings change. From
/// [`Explanation::lacks`](crate::Explanation::lacks).
///
/// What an agent has is what is free there and what executors of this kernel use, as in
/// [`ClusterCapacity::largest_agent`], under the settings in force when it was offered. What other frameworks use isn't
/// known, and what an agent offers in parts, in different batches, is counted as the last part. Nothing is said while
/// an agent isn't known well enough: one that is withheld and was not offered before, or is about to be maintained; one
/// with executors that were given up; or one on which an executor of no fixed size has ended since its last offer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum ClusterLack {
    /// No offer has met the constraint since the kernel was created. Not reported once the constraint has been
    /// replaced.
    Constraint {
        /// The number of offers that were declined for it.
        offers: u64,
    },
    /// No agent has as many cores.
    Cores {
        /// The least number of cores that an executor takes.
        asked: MilliCpus,
        /// The most that an agent has.
        largest: MilliCpus,
        /// That agent.
        agent: LargestAgent,
    },
    /// No agent has as much memory.
    Memory {
        /// The memory that an executor takes.
        asked: Mebibytes,
        /// The most that an agent has.
        largest: Mebibytes,
        /// That agent.
        agent: LargestAgent,
    },
    /// No agent has as many GPUs.
    Gpus {
        /// The GPUs that an executor takes.
        asked: Gpus,
        /// The most that an agent has.
        largest: Gpus,
        /// That agent.
        agent: LargestAgent,
    },
    /// There are agents with enough of each, but none with enough of all.
    Together {
        /// What an executor takes.
        asked: ResourceSums,
    },
}

/// The agent that has the most of what is lacking; of several, one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LargestAgent {
    /// Its id.
    pub agent_id: Box<str>,
    /// Its host name, if it was offered with one.
    pub hostname: Option<Box<str>>,
}

impl ClusterLack {
    /// Returns the lack in a few words, such as `no agent has 64 cores for executors, the largest has 16`.
    #[must_use]
    pub fn why(&self) -> String {
        let of = |asked: String, largest: String| {
            format!("no agent has {asked} for executors, the largest has {largest}")
        };
        match self {
            ClusterLack::Constraint { offers: 1 } => {
                "no agent has met the constraint in 1 offer".to_owned()
            }
            ClusterLack::Constraint { offers } => {
                format!("no agent has met the constraint in {offers} offers")
            }
            ClusterLack::Cores { asked, largest, .. } => {
                of(format!("{asked:#}"), largest.to_string())
            }
            ClusterLack::Memory { asked, largest, .. } => {
                of(asked.to_string(), largest.to_string())
            }
            ClusterLack::Gpus { asked, largest, .. } => {
                of(format!("{asked:#}"), largest.to_string())
            }
            ClusterLack::Together { asked: ResourceSums { cores, memory, gpus } } => match *gpus {
                Gpus::ZERO => format!("no agent has both {cores:#} and {memory} for executors"),
                _ => {
                    format!("no agent has {cores:#}, {memory} and {gpus:#} together for executors")
                }
            },
        }
    }

    /// Returns the agent that has the most of what is lacking, if one kind of resource is.
    #[must_use]
    pub fn agent(&self) -> Option<&LargestAgent> {
        match self {
            ClusterLack::Cores { agent, .. }
            | ClusterLack::Memory { agent, .. }
            | ClusterLack::Gpus { agent, .. } => Some(agent),
            ClusterLack::Constraint { .. } | ClusterLack::Together { .. } => None,
        }
    }
}

impl fmt::Display for ClusterLack {
    /// For example `no agent has 64 cores for executors, the largest has 16 (agent S7)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why())?;
        match self.agent() {
            Some(agent) => write!(f, " (agent {})", visible(&agent.agent_id)),
            None => Ok(()),
        }
    }
}

/// What no agent has, and the time of the picture that says so.
#[derive(Debug, Default)]
pub(super) struct ClusterLacks {
    pub(super) capacity_at: Option<Timestamp>,
    pub(super) lacks: Vec<ClusterLack>,
}

impl Core {
    /// Returns what no agent has. `recent` are the kinds of reasons for which offers were declined lately under the
    /// settings in force; only if one of them can be such a lack is a picture of the capacity read.
    pub(super) fn cluster_lacks(
        &self,
        policy: &Policy,
        counts: &OfferCounts,
        recent: &[ReasonKind],
        now: Timestamp,
    ) -> ClusterLacks {
        let is_unmet = !policy.constraint_replaced
            && recent.iter().any(is_constraint)
            && met_constraint(counts) == 0;
        let is_too_little = recent
            .iter()
            .any(|kind| matches!(kind, ReasonKind::Cpus | ReasonKind::Memory | ReasonKind::Gpus))
            // What such an agent has isn't recorded.
            && !recent.contains(&ReasonKind::AgentMaintenance);
        // Without records the picture says nothing.
        let is_off = policy.config.capacity_refresh == Duration::MAX;
        if is_off || !is_unmet && !is_too_little {
            return ClusterLacks::default();
        }
        let capacity = self.capacity(now);
        if capacity.version() == 0 {
            // Another thread is building the first picture.
            return ClusterLacks::default();
        }
        let mut lacks = Vec::new();
        if is_unmet && !capacity.agents().any(|agent| agent.offered_at().is_some()) {
            let unmet = ReasonKind::ALL.iter().filter(|kind| is_constraint(kind));
            let offers = unmet.map(|kind| counts.declined(*kind)).sum();
            lacks.push(ClusterLack::Constraint { offers });
        }
        if is_too_little {
            lacks.extend(capacity.lacks(needed(policy)));
        }
        ClusterLacks { capacity_at: Some(capacity.time()), lacks }
    }
}

/// What an executor takes at least.
fn needed(policy: &Policy) -> ResourceSums {
    let config = &policy.config;
    ResourceSums {
        cores: config.cores_at_least(),
        memory: config.memory_taken(),
        gpus: config.gpus_at_least(),
    }
}

fn is_constraint(kind: &ReasonKind) -> bool {
    matches!(kind, ReasonKind::ConstraintUnmet | ReasonKind::ConstraintIncomparable)
}

/// The number of offers that met the constraint, or may have met it.
fn met_constraint(counts: &OfferCounts) -> u64 {
    // Of these, none was compared with the constraint, or none met it. If the limit is reached, whole batches are
    // declined; a single offer that met the constraint is in the picture.
    let says_nothing = |kind: &ReasonKind| {
        is_constraint(kind)
            || matches!(
                kind,
                ReasonKind::Stopping
                    | ReasonKind::Disconnected
                    | ReasonKind::Malformed
                    | ReasonKind::ExecutorLimit
            )
    };
    let declines = counts.declines().filter(|(kind, _)| !says_nothing(kind));
    counts.accepted + declines.map(|(_, offers)| offers).sum::<u64>()
}

impl ClusterCapacity {
    /// Returns what of `asked` no agent has. Nothing if an agent has all of it, or if agents aren't known well enough.
    fn lacks(&self, asked: ResourceSums) -> Vec<ClusterLack> {
        let Some(largest) = self.largest_agents(asked) else { return Vec::new() };
        let mut lacks = Vec::new();
        let ResourceSums { cores, memory, gpus } = largest.amounts;
        let [of_cores, of_memory, of_gpus] = largest.agents;
        if let Some(agent) = of_cores.filter(|_| cores < asked.cores).map(LargestAgent::new) {
            lacks.push(ClusterLack::Cores { asked: asked.cores, largest: cores, agent });
        }
        if let Some(agent) = of_memory.filter(|_| memory < asked.memory).map(LargestAgent::new) {
            lacks.push(ClusterLack::Memory { asked: asked.memory, largest: memory, agent });
        }
        if let Some(agent) = of_gpus.filter(|_| gpus < asked.gpus).map(LargestAgent::new) {
            lacks.push(ClusterLack::Gpus { asked: asked.gpus, largest: gpus, agent });
        }
        if lacks.is_empty() {
            lacks.push(ClusterLack::Together { asked });
        }
        lacks
    }

    /// The agents that have the most of each kind. None if an agent has all that is `asked`, if agents aren't known
    /// well enough, or if none was offered. Looks at all agents only in shards where one has more than those before,
    /// or may have all that is asked.
    fn largest_agents(&self, asked: ResourceSums) -> Option<LargestAgents<'_>> {
        let mut largest = LargestAgents::default();
        for (shard, number) in self.shards.iter().zip(0usize..) {
            let has_more = |than: ResourceSums| than.max_of_each(shard.idle.largest) != than;
            let may_suffice = shard.idle.largest.max_of_each(asked) == shard.idle.largest;
            let is_known = match () {
                () if shard.is_unsure => false,
                () if may_suffice || largest.agents[0].is_none() || has_more(largest.amounts) => {
                    let agents = shard.agents(number * SHARD, &self.executors);
                    largest.compare(agents, asked)
                }
                () => {
                    let agents = shard.with_executors(number * SHARD, &self.executors);
                    largest.compare(agents, asked)
                }
            };
            if !is_known {
                return None;
            }
        }
        Some(largest).filter(|largest| largest.agents[0].is_some())
    }
}

/// The most that an agent has of each kind, and those agents: of cores, of memory and of GPUs.
#[derive(Default)]
struct LargestAgents<'a> {
    amounts: ResourceSums,
    /// None if no agent was offered.
    agents: [Option<AgentResources<'a>>; 3],
}

impl<'a> LargestAgents<'a> {
    /// Compares further agents. Returns `false` if one of them has all that is `asked`, or isn't known well enough.
    fn compare(
        &mut self,
        agents: impl Iterator<Item = AgentResources<'a>>,
        asked: ResourceSums,
    ) -> bool {
        for agent in agents {
            if agent.may_have_more() {
                return false;
            }
            if agent.offered_at().is_none() {
                continue;
            }
            let has = agent.free_or_used();
            if has.max_of_each(asked) == has {
                return false;
            }
            let most = self.amounts;
            let has_more = [has.cores > most.cores, has.memory > most.memory, has.gpus > most.gpus];
            for (largest, has_more) in self.agents.iter_mut().zip(has_more) {
                if has_more || largest.is_none() {
                    *largest = Some(agent);
                }
            }
            self.amounts = most.max_of_each(has);
        }
        true
    }
}

impl LargestAgent {
    fn new(agent: AgentResources<'_>) -> LargestAgent {
        let hostname = Some(agent.hostname()).filter(|name| !name.is_empty());
        LargestAgent { agent_id: agent.agent_id().into(), hostname: hostname.map(Box::from) }
    }
}
