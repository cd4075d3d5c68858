//! Files of tasks: `offermill run --tasks`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::{RealCluster, Setup};
use super::eventually;
use super::program::Program;

/// The tasks that end when a file is there.
const HELD: usize = 6;
/// The tasks that end at once.
const QUICK: usize = 28;

/// Forty tasks, which write their ids to a log. Some of them wait until there is a file.
fn tasks(log: &str, go: &str) -> String {
    let script = format!("echo $OFFERMILL_TASK_ID >> {log}");
    let mut tasks: Vec<Value> = (0..HELD)
        .map(|number| {
            json!({"id": format!("held-{number}"),
            "command": format!("{script}; until [ -e {go} ]; do sleep 0.1; done")})
        })
        .collect();
    tasks.extend((0..QUICK).map(|number| {
        let cores = [0.5, 1.0, 0.25][number % 3];
        json!({"id": format!("quick-{number}"), "command": script, "cores": cores})
    }));
    tasks.extend([
        json!({"id": "flaky", "command": "[ $OFFERMILL_TASK_ATTEMPT -gt 1 ]", "retries": 9}),
        json!({"id": "next", "command": script, "after": ["flaky", "quick-0"]}),
        json!({"id": "bad", "command": ["sh", "-c", "exit 7"], "retries": 1, "after": "next"}),
        json!({"id": "never", "command": "true", "after": "bad"}),
        json!({"id": "large", "command": script, "cores": 3, "memory": "1g"}),
        json!({"id": "last", "command": script, "after": ["held-0", "held-5"]}),
    ]);
    tasks.iter().map(|task| format!("{task}\n")).collect()
}

/// All lines of the results file.
pub(super) fn results(cluster: &RealCluster) -> Vec<Value> {
    let text = fs::read_to_string(cluster.folder().join("tasks.results")).unwrap_or_default();
    // The last line may be half written.
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

/// The last line about each task.
pub(super) fn last_results(cluster: &RealCluster) -> BTreeMap<String, Value> {
    let lines = results(cluster).into_iter();
    lines.map(|line| (line["id"].as_str().unwrap().to_owned(), line)).collect()
}

/// Waits until so many tasks have these states as their last.
#[track_caller]
pub(super) fn wait_for(cluster: &RealCluster, expected: &[(&str, usize)]) {
    eventually(Duration::from_secs(60), "states of tasks", || {
        let mut states = BTreeMap::new();
        let last = last_results(cluster);
        last.values()
            .for_each(|line| *states.entry(line["state"].as_str().unwrap()).or_insert(0) += 1);
        if states == expected.iter().copied().collect() {
            Ok(())
        } else {
            Err(format!("{states:?}"))
        }
    });
}

/// How often the log has each id.
pub(super) fn log(cluster: &RealCluster) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let text = fs::read_to_string(cluster.folder().join("log")).unwrap_or_default();
    text.lines().for_each(|line| *counts.entry(line.to_owned()).or_insert(0) += 1);
    counts
}

/// Waits until each held task has begun to run so often.
#[track_caller]
fn wait_for_held(cluster: &RealCluster, starts: usize) {
    eventually(Duration::from_secs(60), "held tasks", || {
        let log = log(cluster);
        let held = |number| log.get(&format!("held-{number}")).copied().unwrap_or_default();
        if (0..HELD).all(|number| held(number) >= starts) {
            Ok(())
        } else {
            Err(format!("{log:?}"))
        }
    });
}

/// The host name of the agent of a task.
fn host_of(cluster: &RealCluster, id: &str) -> String {
    last_results(cluster)[id]["agent"].as_str().unwrap().to_owned()
}

/// Waits until no task in flight is on an agent, and all that are held run on others.
#[track_caller]
fn wait_until_left(cluster: &RealCluster, framework: &str, host: &str) {
    eventually(Duration::from_secs(60), "tasks on other agents", || {
        let last = last_results(cluster);
        let there = last.values().any(|line| line["state"] == "started" && line["agent"] == host);
        let state = cluster.master_state();
        let agent = state.agent_id(host);
        let tasks = state.tasks(framework);
        let running = tasks.values().filter(|task| Some(task.agent_id.as_str()) != agent);
        let running = running.filter(|task| task.state == "TASK_RUNNING").count();
        if !there && running == HELD { Ok(()) } else { Err(format!("{last:#?} {tasks:#?}")) }
    });
}

/// Goal: the tasks of a file run to their end through SIGKILL of the program, the loss of an agent, and a drained
/// agent; what has succeeded runs once, and what the cluster ends is no failure. Method: forty tasks, of which six
/// wait. SIGKILL when they alone are left; `--resume`; an agent is killed and returns, another one is drained. Then
/// the six may end.
#[test]
#[ignore = "needs a real Mesos"]
fn tasks_outlive_their_program_and_agents() {
    let cluster = RealCluster::start(Setup { agents: 4, ..Setup::default() });
    let path = |name: &str| cluster.folder().join(name).to_str().unwrap().to_owned();
    fs::write(path("tasks"), tasks(&path("log"), &path("go"))).unwrap();
    let timeout = ["-c", "offermill.unreachableTimeout=1s"];
    let small = ["--tasks", "tasks", "--task-memory", "32m", "--task-cores", "0.5"];
    let arguments = [&timeout[..], &small[..]].concat();

    let mut program = Program::run(&cluster, &arguments);
    let first = program.registered();
    wait_for(
        &cluster,
        &[("started", HELD), ("succeeded", QUICK + 3), ("failed", 1), ("skipped", 1)],
    );
    wait_for_held(&cluster, 1);
    program.kill();
    eventually(Duration::from_secs(30), "the framework is gone", || {
        let state = cluster.master_state();
        if state.is_over(&first) { Ok(()) } else { Err(format!("{:?}", state.frameworks())) }
    });
    cluster.assert_deserted();

    let mut program = Program::run(&cluster, &[&arguments[..], &["--resume"]].concat());
    let second = program.registered();
    wait_for_held(&cluster, 2);
    let killed = host_of(&cluster, "held-0");
    let number = killed.strip_prefix("agent-").unwrap().parse().unwrap();
    cluster.kill_agent(number);
    wait_until_left(&cluster, &second, &killed);
    cluster.start_agent(number);
    cluster.wait_for_agents();
    let drained = host_of(&cluster, "held-0");
    assert_ne!(drained, killed);
    cluster.drain_agent(cluster.master_state().agent_id(&drained).unwrap());
    wait_until_left(&cluster, &second, &drained);
    // The attempts that the killed agent has kept running end when it returns.
    eventually(Duration::from_secs(20), "one attempt of each task", || {
        let (tasks, there) = (cluster.master_state().all_tasks(), cluster.executor_processes());
        let loops = there.iter().filter(|(_, line)| line.contains("until [")).count();
        if tasks.len() == HELD && loops >= HELD {
            Ok(())
        } else {
            Err(format!("{tasks:#?} {there:#?}"))
        }
    });

    fs::write(path("go"), "").unwrap();
    let ended = program.end();
    assert_eq!(ended.code, Some(1), "{}", ended.told());
    assert!(ended.errors.contains("6 tasks may have run partly or whole"), "{}", ended.told());
    wait_for(&cluster, &[("succeeded", 38), ("failed", 1), ("skipped", 1)]);
    assert_eq!(last_results(&cluster)["bad"]["exit_code"], 7);
    let lost = |host: &str| {
        results(&cluster).iter().any(|line| line["state"] == "lost" && line["agent"] == host)
    };
    assert!(lost(&killed) && lost(&drained), "{}", ended.told());
    let log = log(&cluster);
    let once = log.iter().filter(|(id, _)| !id.starts_with("held-"));
    assert!(once.clone().count() == QUICK + 3 && once.clone().all(|it| *it.1 == 1), "{log:#?}");
    cluster.assert_deserted();
}
