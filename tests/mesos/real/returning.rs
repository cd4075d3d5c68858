//! Frameworks that are killed, and return with their id.

use std::collections::BTreeSet;
use std::time::Duration;

use super::SLEEP;
use super::cluster::{RealCluster, Setup};
use super::eventually;
use super::program::Program;
use super::state::Tasks;

/// The options that keep a framework for 5 minutes after it has disconnected.
const AWAY: [&str; 2] = ["--failover-timeout", "5m"];

fn start(cluster: &RealCluster, executors: &str) -> Program {
    let flags = ["--framework-id-file", "framework-id", "--num-executors", executors];
    Program::start(cluster, &[&AWAY[..], &flags[..]].concat(), &["sh", "-c", SLEEP])
}

/// Waits until exactly this number of tasks run and of processes sleep.
#[track_caller]
fn settled(cluster: &RealCluster, id: &str, executors: usize) -> Tasks {
    eventually(Duration::from_secs(60), "settled", || {
        let tasks = cluster.master_state().tasks(id);
        let running = tasks.values().filter(|task| task.state == "TASK_RUNNING").count();
        let sleeping = |(_, command): &&(u32, String)| command.starts_with("sleep ");
        let processes = cluster.executor_processes();
        let sleeping = processes.iter().filter(sleeping).count();
        if running == executors && tasks.len() == executors && sleeping == executors {
            Ok(tasks)
        } else {
            Err(format!("{sleeping} processes, {tasks:#?}"))
        }
    })
}

/// Goal: a framework that was killed and returns finds its executors and starts no others, also after a second SIGKILL.
/// Method: six executors, SIGKILL twice, the same command line each time; the same six tasks run all the time, under
/// one framework. SIGINT ends them.
#[test]
#[ignore = "needs a real Mesos"]
fn a_framework_that_returns_adopts_its_executors() {
    let cluster = RealCluster::start(Setup::default());
    let mut program = start(&cluster, "6");
    let id = program.registered();
    program.running(6);
    let before = settled(&cluster, &id, 6);
    for _ in 0..2 {
        program.kill();
        eventually(Duration::from_secs(20), "the master sees that it is gone", || {
            let state = cluster.master_state();
            let framework = state.framework(&id).ok_or("it is not registered any more")?;
            if framework["active"] == false { Ok(()) } else { Err("it is active".to_owned()) }
        });
        assert_eq!(cluster.master_state().tasks(&id), before, "while it is away");
        program = start(&cluster, "6");
        assert_eq!(program.registered(), id);
        // Longer than it takes to place executors that shouldn't be placed.
        std::thread::sleep(Duration::from_secs(5));
        assert_eq!(settled(&cluster, &id, 6), before);
    }
    assert_eq!(cluster.master_state().frameworks(), [id.as_str()]);
    program.interrupt();
    assert_eq!(cluster.master_state().all_tasks(), Tasks::new());
    cluster.assert_deserted();
}

/// Goal: a framework that returns kills executors beyond its limit. Method: six executors, SIGKILL, return with room
/// for four: four of the six stay, two are killed, none is new.
#[test]
#[ignore = "needs a real Mesos"]
fn a_framework_that_returns_kills_what_it_has_no_room_for() {
    let cluster = RealCluster::start(Setup::default());
    let mut program = start(&cluster, "6");
    let id = program.registered();
    program.running(6);
    let before: BTreeSet<String> = settled(&cluster, &id, 6).into_keys().collect();
    program.kill();
    let mut program = start(&cluster, "4");
    assert_eq!(program.registered(), id);
    let after: BTreeSet<String> = settled(&cluster, &id, 4).into_keys().collect();
    assert!(after.is_subset(&before), "{before:#?}, {after:#?}");
    program.interrupt();
    cluster.assert_deserted();
}

/// Goal: without a failover timeout a framework's executors end with it. Method: SIGKILL; then the master's state and
/// the processes.
#[test]
#[ignore = "needs a real Mesos"]
fn without_a_failover_timeout_executors_end_with_their_framework() {
    let cluster = RealCluster::start(Setup::default());
    let mut program = Program::start(&cluster, &["--num-executors", "3"], &["sh", "-c", SLEEP]);
    let id = program.registered();
    program.running(3);
    program.kill();
    eventually(Duration::from_secs(20), "the framework is gone", || {
        let state = cluster.master_state();
        if state.is_over(&id) { Ok(()) } else { Err(format!("{:?}", state.frameworks())) }
    });
    cluster.assert_deserted();
}

/// Goal: a framework that returns too late begins with a new id, and reports it. Method: a failover timeout of a
/// second, SIGKILL, and a return when the master has removed the framework and ended its executors: a new one, with
/// executors of its own.
#[test]
#[ignore = "needs a real Mesos"]
fn a_framework_that_returns_too_late_begins_anew() {
    let cluster = RealCluster::start(Setup::default());
    let flags = ["--failover-timeout", "1s", "--framework-id-file", "framework-id"];
    let run = || {
        let flags = [&flags[..], &["--num-executors", "3"]].concat();
        Program::start(&cluster, &flags, &["sh", "-c", SLEEP])
    };
    let mut program = run();
    let first = program.registered();
    program.running(3);
    program.kill();
    eventually(Duration::from_secs(20), "the framework is gone", || {
        let state = cluster.master_state();
        if state.is_over(&first) { Ok(()) } else { Err("it is not".to_owned()) }
    });
    cluster.assert_deserted();
    let mut program = run();
    let second = program.registered();
    assert_ne!(first, second);
    program.running(3);
    settled(&cluster, &second, 3);
    let ended = program.interrupt();
    assert!(ended.told().contains(&first), "the old id isn't named: {}", ended.told());
    cluster.assert_deserted();
}

/// Goal: executors beyond the limit end even if no update reports them when the framework returns. Method: six
/// executors; SIGKILL to the framework, to all agents and to the master; a return with room for four at a new master,
/// and only then the agents.
#[test]
#[ignore = "needs a real Mesos"]
fn executors_without_room_end_when_their_agents_return() {
    let cluster = RealCluster::start(Setup::default());
    let mut program = start(&cluster, "6");
    let id = program.registered();
    program.running(6);
    let before: BTreeSet<String> = settled(&cluster, &id, 6).into_keys().collect();
    program.kill();
    (0..cluster.agents()).for_each(|i| cluster.kill_agent(i));
    cluster.kill_master();
    cluster.start_master();
    let mut program = start(&cluster, "4");
    assert_eq!(program.registered(), id);
    std::thread::sleep(Duration::from_secs(2));
    (0..cluster.agents()).for_each(|i| cluster.start_agent(i));
    cluster.wait_for_agents();
    let after: BTreeSet<String> = settled(&cluster, &id, 4).into_keys().collect();
    assert!(after.is_subset(&before), "{before:#?}, {after:#?}");
    program.interrupt();
    cluster.assert_deserted();
}
