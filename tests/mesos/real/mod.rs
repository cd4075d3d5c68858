//! Tests with a real Mesos on this machine. `tests/support/mesos/README.md` says which of its parts are real. They also
//! run with a standalone master of Offermill (`.ci/standalone`), but for those that `tests/standalone/README.md` lists.

mod accounts;
mod agents;
mod cable;
mod capacity;
mod cluster;
mod ending;
mod endurance;
#[path = "../../support/eventually.rs"]
mod eventually;
mod impostors;
mod killed_runs;
mod listed;
mod masters;
mod mesos_programs;
mod messages;
mod operators;
mod program;
mod returning;
mod soak;
mod standalone_programs;
mod state;
mod task_file;
mod task_hosts;
mod wishes;
mod work_queue;

use std::time::Duration;

use offermill::cluster::mesos::MesosConfig;

use crate::framework::Framework;
use crate::framework::small_executors;
use cluster::RealCluster;
use eventually::eventually;

/// The executors' command: it does nothing, for longer than any test takes.
const SLEEP: &str = "exec sleep 100000";

/// The user that the tests run as, and executors with them: the only one that an agent without root's rights can use.
/// It may be root, so it is given.
fn executors_user() -> String {
    std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(|| "root".to_owned())
}

/// Settings for a framework that may be disconnected for a while.
fn mesos(port: u16) -> MesosConfig {
    let masters = format!("mesos://127.0.0.1:{port}").parse().unwrap();
    let mut mesos = MesosConfig::new(masters, "scene");
    mesos.user = Some(executors_user());
    mesos.failover_timeout = Duration::from_secs(300);
    mesos
}

/// Starts a framework with this number of executors that do nothing, and waits until they all run.
#[track_caller]
fn sleepers(cluster: &RealCluster, executors: u32) -> Framework {
    let config = small_executors(executors).build().unwrap();
    let framework = Framework::start(mesos(cluster.port()), config, SLEEP).unwrap();
    accounts::agree(cluster, &framework, executors);
    framework
}
