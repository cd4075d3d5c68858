//! Half-open connections: one end or both hear nothing any more, and no end of the connection either, as after a cut
//! cable, a lost entry of a firewall, or a machine without power.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use offermill::cluster::standalone::worker::{WorkerEnd, WorkerNotice};
use serde_json::Value;

use super::TestWorker;
use super::cluster::{Program, worker};
use super::drills::{away, lines, master_with_timeout, state, until};
use super::relay::{End, Relay};

/// A silence that is noticed soon, and longer than a busy machine takes for a heartbeat.
const SILENCE: &str = "2s";

/// A shell command that writes its process's id to a file, and runs on.
fn executor(starts: &Path) -> String {
    format!("echo $$ >>{}; exec sleep 100000", starts.display())
}

/// Waits until the file of an executor says that it has started, and returns its process's id.
fn started(starts: &Path) -> String {
    until("an executor", || lines(starts).first().cloned())
}

fn is_alive(process: &str) -> bool {
    let command = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    command.starts_with("sleep")
}

/// Waits until the master has one worker, with one executor. Returns the worker's id.
fn worker_with_executor(address: &str) -> String {
    until("the worker with its executor", || {
        let state = state(address)?;
        let workers = state["workers"].as_array()?;
        let is_there = workers.len() == 1
            && workers[0]["state"] == "active"
            && workers[0]["executors"] == 1
            && state["counts"]["executors"] == 1;
        is_there.then(|| workers[0]["id"].as_str().unwrap().to_owned())
    })
}

fn registrations(worker: &TestWorker) -> usize {
    let notices = worker.notices();
    notices.iter().filter(|it| matches!(it, WorkerNotice::Registered { .. })).count()
}

/// Goal: a worker whose connection is half-open is registered again with the same id, whichever end hears nothing, and
/// its executor is the same process. Method: a relay that loses what goes to the worker, to the master, and to both.
#[test]
fn a_workers_connection_is_half_open() {
    for silent in [&[End::Client][..], &[End::Master], &[End::Client, End::Master]] {
        let folder = tempfile::tempdir().unwrap();
        let (_master, address) = master_with_timeout(&folder.path().join("master"), SILENCE);
        let relay = Relay::start(&address);
        let worker = TestWorker::start(&[relay.port]);
        let starts = folder.path().join("starts");
        let _run = Program(away(&address, 1, &executor(&starts)).spawn().unwrap());
        let process = started(&starts);
        let id = worker_with_executor(&address);
        silent.iter().for_each(|end| relay.silence(*end));
        until("another registration", || (registrations(&worker) > 1).then_some(()));
        assert_eq!(worker_with_executor(&address), id, "{silent:?}");
        assert!(is_alive(&process) && lines(&starts).len() == 1, "{silent:?}");
        // The new connection serves: the end of the executor and the goodbye arrive.
        worker.stop();
        assert_eq!(worker.wait(), WorkerEnd::Left { told: true, forced: false });
        until("no worker", || state(&address)?["workers"].as_array()?.is_empty().then_some(()));
        assert!(!is_alive(&process), "{silent:?}");
    }
}

/// Goal: a machine that has lost its power has its place back, once its former connection is known to be dead, and its
/// executors start anew. Method: a relay that loses everything, also the end of a worker that is killed; another
/// worker with its folder; a run whose executor was lost.
#[test]
fn a_machine_without_power_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (_master, address) = master_with_timeout(&folder.path().join("master"), SILENCE);
    let relay = Relay::start(&address);
    let before = worker(folder.path(), "h1", &relay.address());
    let starts = folder.path().join("starts");
    let _run = Program(away(&address, 1, &executor(&starts)).spawn().unwrap());
    let process = started(&starts);
    let id = worker_with_executor(&address);
    relay.silence(End::Client);
    relay.silence(End::Master);
    drop(before);
    let _again = worker(folder.path(), "h1", &relay.address());
    until("another executor", || (lines(&starts).len() == 2).then_some(()));
    assert_eq!(worker_with_executor(&address), id);
    assert!(!is_alive(&process));
}

/// Goal: a run whose connections are half-open registers again, and keeps its executor. Method: a relay that loses what
/// goes to the run, to the master, and to both; the run is stopped by a call over its new connections afterwards.
#[test]
fn a_frameworks_connections_are_half_open() {
    let folder = tempfile::tempdir().unwrap();
    let (_master, address) = master_with_timeout(&folder.path().join("master"), SILENCE);
    let _worker = worker(folder.path(), "h1", &address);
    let relay = Relay::start(&address);
    let starts = folder.path().join("starts");
    let own = away(&relay.address(), 1, &executor(&starts));
    let mut command = Command::new(own.get_program());
    let log = fs::File::create(folder.path().join("run")).unwrap();
    command.args(["run", "--json"]).args(own.get_args().skip(1)).stdin(Stdio::null());
    let mut run = Program(command.stdout(log).stderr(Stdio::null()).spawn().unwrap());
    let process = started(&starts);
    worker_with_executor(&address);
    for (silent, times) in [(&[End::Client][..], 1), (&[End::Client, End::Master], 2)] {
        silent.iter().for_each(|end| relay.silence(*end));
        until("another registration", || {
            let events = lines(&folder.path().join("run"));
            let events = events.iter().map(|it| serde_json::from_str::<Value>(it).unwrap());
            let again = |it: &Value| it["event"] == "registered" && it["again"] == true;
            (events.filter(again).count() == times).then_some(())
        });
        worker_with_executor(&address);
        assert!(is_alive(&process) && lines(&starts).len() == 1, "{silent:?}");
    }
    let pid = rustix::process::Pid::from_child(&run.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    until("the end of the run", || run.0.try_wait().unwrap());
    assert!(!is_alive(&process));
    until("no framework", || (state(&address)?["counts"]["frameworks"] == 0).then_some(()));
}
