//! What is known of a run: its executors, its events, why it waits and how it ends.

pub(crate) mod call_failures;
pub(crate) mod end_reason;
pub(crate) mod event;
pub(crate) mod executor;
pub(crate) mod failures;
pub(crate) mod rate;
pub(crate) mod state;
pub(crate) mod waiting;
