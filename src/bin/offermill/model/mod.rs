//! The data of a run: its executors, agents and events, why it waits and why it ends. Sentences about them are in
//! `output/`.

pub(crate) mod call_failures;
pub(crate) mod cluster_use;
pub(crate) mod end_cause;
pub(crate) mod end_reason;
pub(crate) mod event;
pub(crate) mod executor;
pub(crate) mod executor_kind;
pub(crate) mod failures;
pub(crate) mod figures;
pub(crate) mod history;
pub(crate) mod local_names;
pub(crate) mod queue;
pub(crate) mod rate;
pub(crate) mod reply;
pub(crate) mod state;
pub(crate) mod target;
pub(crate) mod task;
pub(crate) mod unended;
pub(crate) mod waiting;
