//! Ends of runs: by themselves, by a signal, by a shutdown.

use std::collections::BTreeMap;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use offermill::Fate;

use super::cluster::{RealCluster, Setup};
use super::program::{Ended, Program};
use super::state::Tasks;
use super::{SLEEP, accounts, eventually, mesos, sleepers};
use crate::framework::{Framework, small_executors};

/// Waits until nothing is left of a framework but the record of its completion.
#[track_caller]
fn assert_gone(cluster: &RealCluster, id: &str) {
    let state = cluster.master_state();
    assert_eq!(state.all_tasks(), Tasks::new());
    assert!(state.is_over(id), "{:?} are there", state.frameworks());
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
    if let Some(tasks) = cluster.master_state().completed_tasks(&id) {
        let all_finished = tasks.values().all(|task| task.state == "TASK_FINISHED");
        assert!(tasks.len() == 20 && all_finished, "{tasks:#?}");
    }
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
    accounts::agree(&cluster, &framework, 9);
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
    accounts::agree(&cluster, &framework, 6);
    let begun = Instant::now();
    let _report = framework.engine.shutdown(Duration::from_secs(3));
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
    assert_gone(&cluster, &id);
}

/// Runs ten executors that sleep forever, harms the cluster, stops the run with a shutdown timeout of 70 s, and mends
/// the cluster. The run must end well before the timeout, and leave nothing.
#[track_caller]
fn stop_beside(harm: impl Fn(&RealCluster), mend: impl Fn(&RealCluster)) {
    let cluster = RealCluster::start(Setup::default());
    let timeouts = ["--failover-timeout", "1h", "--shutdown-timeout", "70s"];
    let flags = [&["--num-executors", "10"], &timeouts[..]].concat();
    let mut program = Program::start(&cluster, &flags, &["sh", "-c", SLEEP]);
    let id = program.registered();
    program.running(10);
    harm(&cluster);
    sleep(Duration::from_millis(100));
    let begun = Instant::now();
    program.signal("INT");
    program.event("stop", |event| event["event"] == "stopping");
    mend(&cluster);
    let ended = program.end();
    assert_eq!(ended.code, Some(0), "{}", ended.told());
    assert!(begun.elapsed() < Duration::from_secs(45), "it took {:?}", begun.elapsed());
    assert_gone(&cluster, &id);
}

/// Goal: kills that a shutdown makes while there is no master are made again. Method: the master is killed before
/// Ctrl-C, and started after it.
#[test]
#[ignore = "needs a real Mesos"]
fn a_shutdown_beside_a_masters_restart() {
    stop_beside(RealCluster::kill_master, RealCluster::start_master);
}

/// Goal: kills that the master drops, because an agent is disconnected, are made again. Method: an agent is killed
/// before Ctrl-C, and started a second after it; no event tells the framework of either.
#[test]
#[ignore = "needs a real Mesos"]
fn a_shutdown_beside_an_agents_restart() {
    let restart = |cluster: &RealCluster| {
        sleep(Duration::from_secs(1));
        cluster.start_agent(0);
    };
    stop_beside(|cluster| cluster.kill_agent(0), restart);
}

/// The ending and the states of the executors in the summary.
#[track_caller]
fn summary(ended: &Ended) -> (String, BTreeMap<String, usize>) {
    let summary = ended.events.last().unwrap();
    let mut states = BTreeMap::new();
    for executor in summary["executors"].as_array().unwrap() {
        *states.entry(executor["state"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    (summary["ending"].as_str().unwrap().to_owned(), states)
}

/// Goal: the summary doesn't say that executors were killed of which only the TEARDOWN is known. Method: an agent is
/// stopped before Ctrl-C; its executors run on, and end when it continues.
#[test]
#[ignore = "needs a real Mesos"]
fn unreachable_executors() {
    let cluster = RealCluster::start(Setup::default());
    let flags = ["--num-executors", "9", "--failover-timeout", "1h", "--shutdown-timeout", "15s"];
    let mut program = Program::start(&cluster, &flags, &["sh", "-c", SLEEP]);
    let id = program.registered();
    program.running(9);
    cluster.pause_agent(1);
    program.signal("INT");
    let ended = program.end();
    assert_eq!(ended.code, Some(3), "{}", ended.told());
    let (ending, states) = summary(&ended);
    let out = states.get("unreachable").copied().unwrap_or_default();
    assert!(out > 0 && states.get("killed") == Some(&(9 - out)), "{states:?}: {}", ended.told());
    let sentence = "unreachable on agent-1, and the master ends ";
    assert!(ending.contains(sentence), "{ending}");
    assert!(cluster.executor_processes().len() >= out);
    cluster.resume_agent(1);
    assert_gone(&cluster, &id);
}

/// Goal: a framework that can't be torn down is told with its id and with what ends it, and that is true. Method: the
/// master is stopped before Ctrl-C and continues after the end; then the told command is run.
#[test]
#[ignore = "needs a real Mesos"]
fn executors_left_behind() {
    let cluster = RealCluster::start(Setup::default());
    let timeouts = ["--shutdown-timeout", "3s", "-c", "offermill.mesos.callTimeout=2s"];
    let flags = [&["--num-executors", "9", "--failover-timeout", "1h"], &timeouts[..]].concat();
    let mut program = Program::start(&cluster, &flags, &["sh", "-c", SLEEP]);
    let id = program.registered();
    program.running(9);
    cluster.pause_master();
    let begun = Instant::now();
    program.signal("INT");
    let ended = program.end();
    // The shutdown timeout, and TEARDOWN's two call timeouts.
    assert!(begun.elapsed() < Duration::from_secs(3 + 4 + 4), "it took {:?}", begun.elapsed());
    assert_eq!(ended.code, Some(3), "{}", ended.told());
    let (ending, states) = summary(&ended);
    assert_eq!(states, BTreeMap::from([("left_behind".to_owned(), 9)]), "{}", ended.told());
    assert!(ending.contains("9 executors had not ended in time and may run on"), "{ending}");
    // Kills that were sent may still be on their way to the master.
    assert!(!cluster.executor_processes().is_empty());
    cluster.resume_master();
    let (_, remedy) = ending.split_once("; this ends it: ").unwrap();
    assert!(remedy.contains(&id), "{remedy}");
    let ran = Command::new("sh").args(["-c", remedy]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
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
