//! Ends of runs: by themselves, by a signal, by a shutdown.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use offermill::Fate;

use super::cluster::{RealCluster, Setup};
use super::program::Program;
use super::state::Tasks;
use super::{SLEEP, books, eventually, mesos, sleepers};
use crate::framework::{Framework, small_executors};

/// Waits until nothing is left of a framework but the record of its completion.
#[track_caller]
fn assert_gone(cluster: &RealCluster, id: &str) {
    let state = cluster.master_state();
    assert_eq!(state.all_tasks(), Tasks::new());
    assert!(state.completed_framework(id).is_some(), "{:?} are there", state.frameworks());
    cluster.assert_deserted();
}

/// Goal: a complete run with a constraint, from offers to the summary. Method: twenty executors over five agents, one
/// of which doesn't meet the constraint; all finish, the same number on each of the four, and the master has seen the
/// same twenty.
#[test]
#[ignore = "needs a real Mesos"]
fn twenty_executors_run_to_the_end() {
    let attributes = "zone:east;rack:r%d|zone:west;rack:r%d|zone:north;rack:r%d";
    let cluster = RealCluster::start(Setup { agents: 5, attributes, ..Setup::default() });
    let flags = ["--num-executors", "20", "--until-finished", "--constraints", "zone:east,west"];
    let script = "echo $OFFERMILL_EXECUTOR_ID; sleep 2";
    let mut program = Program::start(&cluster, &flags, &["sh", "-c", script]);
    let id = program.registered();
    let ended = program.end();
    assert_eq!(ended.code, Some(0), "{}", ended.told());
    let finished = ended.named("ended").filter(|event| event["state"] == "finished").count();
    assert_eq!(finished, 20, "{}", ended.told());
    let mut on_hosts = BTreeMap::new();
    for placed in ended.named("placed") {
        *on_hosts.entry(placed["host"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    let expected = ["agent-0", "agent-1", "agent-3", "agent-4"].map(|host| (host.to_owned(), 5));
    assert_eq!(on_hosts, BTreeMap::from(expected), "{}", ended.told());
    let tasks = cluster.master_state().completed_tasks(&id);
    let all_finished = tasks.values().all(|task| task.state == "TASK_FINISHED");
    assert!(tasks.len() == 20 && all_finished, "{tasks:#?}");
    assert_gone(&cluster, &id);
}

/// Goal: Ctrl-C leaves nothing behind. Method: SIGINT to a run with ten executors that would sleep forever.
#[test]
#[ignore = "needs a real Mesos"]
fn an_interrupt_leaves_no_task() {
    let cluster = RealCluster::start(Setup::default());
    let mut program = Program::start(&cluster, &["--num-executors", "10"], &["sh", "-c", SLEEP]);
    let id = program.registered();
    program.running(10);
    program.interrupt();
    assert_gone(&cluster, &id);
}

/// Goal: a shutdown lets executors end by themselves, and reports how each ended. Method: executors that take a second
/// to end on request; all end well within the timeout, none by force.
#[test]
#[ignore = "needs a real Mesos"]
fn a_shutdown_lets_executors_end() {
    let cluster = RealCluster::start(Setup::default());
    let script = "trap 'sleep 1; echo bye; exit 0' TERM; sleep 100000 & wait";
    let config = small_executors(9).build().unwrap();
    let framework = Framework::start(mesos(cluster.port()), config, script).unwrap();
    let id = framework.id();
    books::agree(&cluster, &framework, 9);
    let begun = Instant::now();
    let report = framework.engine.shutdown(Duration::from_secs(30));
    assert!(report.drained, "{report:#?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    let ended = |fate| matches!(fate, Fate::Killed | Fate::Finished);
    assert!(report.executors.iter().all(|one| ended(one.fate)), "{report:#?}");
    let said_bye = cluster.outputs().iter().filter(|text| text.contains("bye")).count();
    assert_eq!(said_bye, 9, "executors that ended by themselves");
    assert_gone(&cluster, &id);
}

/// Goal: a shutdown respects its timeout, whatever executors do, and leaves no task. Method: executors that don't end
/// on request, and a timeout shorter than the kill grace.
#[test]
#[ignore = "needs a real Mesos"]
fn a_shutdown_keeps_to_its_timeout() {
    let cluster = RealCluster::start(Setup::default());
    let script = "trap '' TERM; while :; do sleep 1; done";
    let config = small_executors(6).build().unwrap();
    let framework = Framework::start(mesos(cluster.port()), config, script).unwrap();
    let id = framework.id();
    books::agree(&cluster, &framework, 6);
    let begun = Instant::now();
    let _report = framework.engine.shutdown(Duration::from_secs(3));
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
    assert_gone(&cluster, &id);
}

/// Goal: an engine that is dropped closes its connections. Method: the master reports that the framework is gone, or at
/// least disconnected, because it may return.
#[test]
#[ignore = "needs a real Mesos"]
fn a_dropped_engine_is_disconnected() {
    let cluster = RealCluster::start(Setup::default());
    let framework = sleepers(&cluster, 3);
    let id = framework.id();
    drop(framework);
    eventually(Duration::from_secs(10), "disconnection", || {
        let state = cluster.master_state();
        let active = state.framework(&id).is_some_and(|framework| framework["active"] == true);
        if active { Err("it is active".to_owned()) } else { Ok(()) }
    });
}
