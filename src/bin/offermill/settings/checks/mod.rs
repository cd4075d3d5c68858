//! Checks of settings against each other and against this machine, by topic.

pub(crate) mod allocation;
pub(crate) mod containers;
pub(crate) mod executor_queue;
pub(crate) mod executors;
pub(crate) mod http;
pub(crate) mod kubernetes;
pub(crate) mod limits;
pub(crate) mod mesos;
pub(crate) mod preflight;
pub(crate) mod spark;
pub(crate) mod startup;
pub(crate) mod tasks;
