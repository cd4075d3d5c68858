//! Tests against a fake master, for faults that a real one can't be made to have. It speaks JSON, on this machine,
//! without TLS; each test determines its answers. Each test names the function in Mesos' sources that behaves like
//! this, or says that no Mesos does.

mod acknowledging;
mod answers;
mod calls;
mod client_certificates;
mod foreign_text;
mod late_refusal;
mod lenience;
mod losing_kills;
mod master;
mod other_agents;
mod panics;
mod redirects;
mod refusals;
mod returning;
mod script;
mod secrets;
mod streams;
mod teardown;
mod telling;
mod wishes;

use std::time::Duration;

use offermill::Error;
use offermill::cluster::mesos::{Encoding, MesosConfig};
use offermill::engine::Notice;

use crate::framework::{Framework, small_executors};

/// The maximum length of a record in these tests, in bytes.
const RECORD_BYTES_MAX: usize = 64 * 1024;
/// The maximum time until the first subscription.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Settings for masters on this machine's `ports`, with short timeouts.
fn mesos(ports: &[u16]) -> MesosConfig {
    let masters: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut mesos =
        MesosConfig::new(format!("mesos://{}", masters.join(",")).parse().unwrap(), "scene");
    mesos.user = Some("nobody".to_owned());
    mesos.encoding = Encoding::Json;
    mesos.failover_timeout = Duration::from_secs(300);
    mesos.call_timeout = Duration::from_millis(500);
    mesos.subscribe_timeout = SUBSCRIBE_TIMEOUT;
    mesos.record_bytes_max = RECORD_BYTES_MAX;
    mesos.heartbeats_missed_max = 2;
    mesos
}

/// Starts a framework that wants this number of executors.
fn framework(mesos: MesosConfig, executors: u32) -> Result<Framework, Error> {
    Framework::start(mesos, small_executors(executors).build().unwrap(), "exec sleep 1")
}

/// Starts a framework that can't succeed, and returns the reported reason. Fails if the report takes too long.
#[track_caller]
fn refusal_of(mesos: MesosConfig) -> String {
    let framework = match framework(mesos, 1) {
        Ok(framework) => framework,
        Err(error) => return error.to_string(),
    };
    let refused = |notice: &Notice| match notice {
        Notice::Refused { why } => Some(why.clone()),
        _ => None,
    };
    let within = SUBSCRIBE_TIMEOUT * 4;
    let why = framework.notices.wait_for(within, refused);
    why.unwrap_or_else(|| panic!("no word within {within:?}: {:#?}", framework.notices.all()))
}
