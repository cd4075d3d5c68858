//! Tests with Spark's own driver, executors and shuffle service, which `tests/support/spark/README.md` describes.

#[path = "../../mesos/real/cluster.rs"]
#[allow(dead_code)]
mod cluster;
mod driver;
mod jobs;
mod process;
mod registering;
mod service;
#[path = "../../mesos/real/state.rs"]
#[allow(dead_code)]
mod state;

use crate::eventually;
