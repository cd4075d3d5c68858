//! The values of settings by topic, as the readers of the tables set them.

pub(crate) mod allocation;
pub(crate) mod constraints;
pub(crate) mod containers;
pub(crate) mod executors;
pub(crate) mod http;
pub(crate) mod kubernetes;
pub(crate) mod log_links;
pub(crate) mod mesos;
pub(crate) mod spark;
