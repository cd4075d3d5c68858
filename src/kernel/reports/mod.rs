//! Reports about the kernel: snapshots, explanations, counters, and a consistency check.

pub(crate) mod agent_names;
pub(crate) mod agent_rows;
pub(crate) mod agent_state;
mod agent_use;
pub(crate) mod capacity;
pub(crate) mod capacity_agent;
pub(crate) mod capacity_rebuild;
#[cfg(feature = "serde")]
mod capacity_serde;
pub(crate) mod capacity_shard;
mod capacity_spare;
mod capacity_use;
pub(crate) mod check;
pub(crate) mod cluster_lack;
pub(crate) mod collection;
mod executor_row;
pub(crate) mod explain;
pub(crate) mod queues;
mod shard_draft;
pub(crate) mod snapshot;
pub(crate) mod totals;
