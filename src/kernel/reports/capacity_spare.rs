//! Memory that a picture of the cluster's capacity leaves to the picture after the next, so that the system need not
//! clear memory for each.

use super::agent_use::ExecutorUse;
use super::capacity_use::ShardOrder;
use super::executor_row::{Row, SeenExecutor};
use super::shard_draft::SpareShards;

/// What the next picture is made of, as far as it suffices.
#[derive(Default)]
pub(super) struct SpareMemory {
    pub(super) shards: SpareShards,
    /// Executors at the first look.
    pub(super) seen: Vec<SeenExecutor>,
    /// Executors as they were collected.
    pub(super) rows: Vec<Row>,
    pub(super) order: ShardOrder,
    /// Empty if the picture that they were of is still shared with others.
    pub(super) executors: ExecutorUse,
}
