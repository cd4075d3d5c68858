//! Tests with Spark's own driver, executors and shuffle service, which `tests/support/spark/README.md` describes.

#[path = "../../mesos/real/cluster.rs"]
#[allow(dead_code)]
pub(crate) mod cluster;
mod driver;
pub(crate) mod jobs;
pub(crate) mod process;
mod registering;
mod service;
#[path = "../../mesos/real/state.rs"]
#[allow(dead_code)]
mod state;

use crate::eventually;
