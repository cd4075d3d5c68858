//! Reports about the kernel: snapshots, explanations, counters, and a consistency check.

pub(crate) mod agent_names;
pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod snapshot;
