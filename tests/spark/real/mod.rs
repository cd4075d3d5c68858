//! Tests with Spark's own driver, executors and shuffle service, which `tests/support/spark/README.md` describes.

#[path = "../../mesos/real/cluster.rs"]
#[allow(dead_code)]
pub(crate) mod cluster;
mod driver;
pub(crate) mod jobs;
#[path = "../../mesos/real/mesos_programs.rs"]
mod mesos_programs;
pub(crate) mod process;
mod registering;
mod service;
#[path = "../../mesos/real/standalone_programs.rs"]
#[allow(dead_code)]
mod standalone_programs;
#[path = "../../mesos/real/state.rs"]
#[allow(dead_code)]
mod state;

use crate::eventually;
