//! Tests of the worker against a master that the test speaks, and of both together.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster;
mod command;
mod crowd;
mod drills;
mod executors;
mod fake;
mod faults;
mod frameworks;
mod half_open;
mod hosts;
mod relay;
mod tasks;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use offermill::cluster::standalone::protocol::{
    ExecutorCommand, ExecutorKey, ExecutorLaunch, LaunchHosting, WorkerCall, WorkerEvent,
    WorkerResources,
};
use offermill::cluster::standalone::worker::{
    StandaloneWorker, WorkerConfig, WorkerEnd, WorkerHandle, WorkerNotice,
};
use offermill::resources::{Mebibytes, MilliCpus, Scalar};
use tempfile::TempDir;

use fake::WorkerConnection;

/// A worker in this process, in a folder of its own,
struct TestWorker {
    handle: WorkerHandle,
    notices: Arc<Mutex<Vec<WorkerNotice>>>,
    folder: TempDir,
}

impl TestWorker {
    /// Starts a worker of the masters at these ports.
    fn start(ports: &[u16]) -> TestWorker {
        TestWorker::with(ports, |_| {})
    }

    /// Starts a worker whose settings `set` changes.
    fn with(ports: &[u16], set: impl FnOnce(&mut WorkerConfig)) -> TestWorker {
        let folder = tempfile::tempdir().unwrap();
        let masters: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let masters = format!("http://{}", masters.join(",")).parse().unwrap();
        let mut config = WorkerConfig::new(masters);
        config.work_dir = folder.path().to_owned();
        config.cores = MilliCpus::from_cores(64);
        config.memory = Mebibytes::new(1024);
        set(&mut config);
        let notices = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&notices);
        let observe = move |notice| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
        };
        let handle = StandaloneWorker::new(config).unwrap().start(observe).unwrap();
        TestWorker { handle, notices, folder }
    }

    fn notices(&self) -> Vec<WorkerNotice> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the worker to end.
    fn stop(&self) {
        self.handle.stopper()();
    }

    /// Asks the worker to end, which tells its master and has nothing to force.
    fn leave(self, mut connection: WorkerConnection) {
        self.stop();
        assert_eq!(connection.call(), WorkerCall::Leaving);
        assert_eq!(connection.call(), WorkerCall::Leave);
        drop(connection);
        assert_eq!(self.wait(), WorkerEnd::Left { told: true, forced: false });
    }

    fn wait(self) -> WorkerEnd {
        self.handle.wait().expect("the worker's thread has panicked")
    }
}

fn key(executor: &str) -> ExecutorKey {
    ExecutorKey::new("framework-1", executor)
}

/// A launch of a shell command that needs one core.
fn launch(executor: &str, sequence: u64, term: u64, line: &str) -> WorkerEvent {
    let argv = ["/bin/sh", "-c", line].map(str::to_owned).to_vec();
    launch_of(executor, sequence, term, argv)
}

/// A launch of a program that needs one core.
fn launch_of(executor: &str, sequence: u64, term: u64, argv: Vec<String>) -> WorkerEvent {
    let resources =
        WorkerResources { cpus: Scalar::from_thousandths(1000), ..WorkerResources::default() };
    let environment = BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]);
    WorkerEvent::Launch(Box::new(ExecutorLaunch {
        key: key(executor),
        sequence,
        term,
        name: "test".to_owned(),
        resources,
        command: ExecutorCommand {
            argv,
            environment: environment.into_iter().collect(),
            user: None,
        },
        hosting: LaunchHosting::Alone,
        grace: 60_000,
        tag: String::new(),
    }))
}
