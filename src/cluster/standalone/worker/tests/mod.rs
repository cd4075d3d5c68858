//! Tests of the worker's logic, without processes and connections.

mod orders;
mod rules;

use std::time::Duration;

use crate::cluster::standalone::protocol::{
    ExecutorCommand, ExecutorKey, ExecutorLaunch, LaunchHosting, WorkerEvent, WorkerResources,
};
use crate::cluster::standalone::worker::state::{WorkerFacts, WorkerState};
use crate::cluster::standalone::worker::step::WorkerTime;
use crate::resources::Scalar;

/// The session of the workers here.
const SESSION: u64 = 0xabc;
/// The first half of the numbers of their updates.
const UPDATES: u64 = 0xdef;

fn resources(cores: u64) -> WorkerResources {
    WorkerResources { cpus: Scalar::from_thousandths(cores * 1000), ..WorkerResources::default() }
}

/// What a worker with this number of cores says of itself.
fn facts(cores: u64) -> WorkerFacts {
    WorkerFacts {
        hostname: "host".to_owned(),
        address: "host".to_owned(),
        resources: resources(cores),
        session: SESSION,
        updates: UPDATES,
        user: Some("me".to_owned()),
        ..WorkerFacts::default()
    }
}

/// A worker with this number of cores, which never was registered.
fn worker(cores: u64) -> WorkerState {
    WorkerState::new(facts(cores), None, 0)
}

fn at(seconds: u64) -> WorkerTime {
    WorkerTime { since_start: Duration::from_secs(seconds), unix: seconds as f64 }
}

fn key(framework: &str, executor: &str) -> ExecutorKey {
    ExecutorKey::new(framework, executor)
}

/// A launch that needs one core.
fn launch(key: ExecutorKey, sequence: u64, term: u64) -> WorkerEvent {
    WorkerEvent::Launch(Box::new(ExecutorLaunch {
        key,
        sequence,
        term,
        name: "test".to_owned(),
        resources: resources(1),
        command: ExecutorCommand { argv: vec!["true".to_owned()], ..ExecutorCommand::default() },
        hosting: LaunchHosting::Alone,
        grace: 1000,
        tag: format!("tag {sequence}"),
    }))
}
