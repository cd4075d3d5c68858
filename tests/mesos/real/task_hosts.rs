//! Hosts of tasks on Mesos: `offermill run --tasks --task-hosts`.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::{RealCluster, Setup};
use super::eventually;
use super::program::Program;
use super::task_file::{last_results, log, results, wait_for};

/// The tasks that end when a file is there, of all or of their own.
const HELD: usize = 12;
/// The tasks that end at once.
const QUICK: usize = 40;

/// Tasks of unequal sizes, which write their ids to a log. Those that are held take two cores each, so that an agent of
/// eight and a bit has four of them beside its host.
fn tasks(log: &str, go: &str) -> String {
    let script = format!("echo $OFFERMILL_TASK_ID >> {log}");
    let mut tasks: Vec<Value> = (0..QUICK)
        .map(|number| {
            let cores = [0.5, 1.0, 0.25][number % 3];
            json!({"id": format!("quick-{number}"), "command": script, "cores": cores})
        })
        .collect();
    tasks.extend([
        json!({"id": "flaky", "command": "[ $OFFERMILL_TASK_ATTEMPT -gt 1 ]", "retries": 9}),
        json!({"id": "bad", "command": ["sh", "-c", "exit 7"], "retries": 1}),
        json!({"id": "fetched", "command": "grep -q fetched from-a-uri"}),
    ]);
    let is_free = format!("[ -e {go} ] || [ -e {go}-$OFFERMILL_TASK_ID ]");
    let wait = format!("{script}; until {is_free}; do sleep 0.1; done");
    tasks.extend((0..HELD).map(|number| {
        json!({"id": format!("held-{number}"), "command": wait, "cores": 2, "after": "quick-0"})
    }));
    tasks.iter().map(|task| format!("{task}\n")).collect()
}

/// The processes of hosts whose working directories are on this agent.
pub(super) fn hosts_of(cluster: &RealCluster, agent: &str) -> Vec<u32> {
    let folder = cluster.folder().join("agents").join(agent);
    let processes = super::cluster::processes_within(&folder).into_iter();
    let hosts = processes.filter(|(_, _, command)| command.trim_end().ends_with(" task-host"));
    hosts.map(|(pid, ..)| pid).collect()
}

/// The held tasks whose last attempt is on this agent.
pub(super) fn held_on(cluster: &RealCluster, agent: &str) -> Vec<String> {
    let last = last_results(cluster).into_iter();
    let there = last.filter(|(id, line)| id.starts_with("held-") && line["agent"] == agent);
    there.map(|(id, _)| id).collect()
}

/// Waits until this many held tasks run and none of them on these agents.
#[track_caller]
fn wait_until_held(cluster: &RealCluster, framework: &str, running: usize, but: &[&str]) {
    eventually(Duration::from_secs(90), "held tasks run", || {
        let (state, last) = (cluster.master_state(), last_results(cluster));
        let tasks = state.tasks(framework);
        let is_large = |task: &&super::state::Task| task.cores_milli == 2000;
        let large = tasks.values().filter(is_large);
        let up = large.filter(|task| task.state == "TASK_RUNNING").count();
        let there = but.iter().any(|agent| {
            last.values().any(|line| line["state"] == "started" && line["agent"] == *agent)
        });
        if up == running && !there { Ok(()) } else { Err(format!("{tasks:#?} {last:#?}")) }
    });
}

/// Goal: in hosts, tasks have the results that they have without; a host that is killed loses its tasks, which run
/// again and haven't failed; an agent that restarts loses none; a drained agent is left. Method: tasks of unequal
/// sizes, of which twelve wait, on four agents. SIGKILL of a host; an agent is killed and returns, and a task ends
/// meanwhile; another agent is drained. Then the rest may end.
#[test]
#[ignore = "needs a real Mesos"]
fn tasks_run_in_hosts() {
    let resources = "cpus:8.2;mem:4096;disk:20000;ports:[31000-32000]";
    let cluster = RealCluster::start(Setup { agents: 4, resources, ..Setup::default() });
    let path = |name: &str| cluster.folder().join(name).to_str().unwrap().to_owned();
    fs::write(path("tasks"), tasks(&path("log"), &path("go"))).unwrap();
    fs::write(path("from-a-uri"), "fetched").unwrap();
    let uris = format!("spark.mesos.uris={}", path("from-a-uri"));
    let arguments =
        ["-c", &uris, "--tasks", "tasks", "--task-memory", "32m", "--task-hosts", "--task-cores"];
    let mut program = Program::run(&cluster, &[&arguments[..], &["0.5"]].concat());
    let framework = program.registered();
    wait_for(&cluster, &[("started", HELD), ("succeeded", QUICK + 2), ("failed", 1)]);
    wait_until_held(&cluster, &framework, HELD, &[]);
    assert_eq!(last_results(&cluster)["bad"]["exit_code"], 7);
    let quick = last_results(&cluster)["quick-0"]["output"].as_str().unwrap().to_owned();
    assert!(fs::exists(&quick).unwrap(), "{quick}");

    // A host is killed.
    let agents = ["agent-0", "agent-1", "agent-2", "agent-3"];
    let with_tasks = || agents.iter().filter(|agent| !held_on(&cluster, agent).is_empty());
    let killed = *with_tasks().next().unwrap();
    let there = held_on(&cluster, killed);
    let hosts = hosts_of(&cluster, killed);
    let [host] = hosts[..] else { panic!("hosts on {killed}: {hosts:?}") };
    assert!(Command::new("kill").args(["-KILL", &host.to_string()]).status().unwrap().success());
    eventually(Duration::from_secs(60), "the host's tasks run again", || {
        let lost = results(&cluster).into_iter().filter(|line| line["state"] == "lost");
        let lost: Vec<Value> = lost.filter(|line| line["agent"] == killed).collect();
        let log = log(&cluster);
        let again = there.iter().all(|id| log.get(id) == Some(&2));
        if lost.len() == there.len() && again { Ok(()) } else { Err(format!("{lost:#?} {log:?}")) }
    });
    wait_until_held(&cluster, &framework, HELD, &[]);

    // An agent restarts.
    let restarted = *with_tasks().find(|agent| **agent != killed).unwrap();
    let stay = held_on(&cluster, restarted);
    let starts = log(&cluster);
    let number = restarted.strip_prefix("agent-").unwrap().parse().unwrap();
    cluster.kill_agent(number);
    eventually(Duration::from_secs(60), "the agent's absence", || {
        let active = cluster.master_state().active_agents();
        if active == 3 { Ok(()) } else { Err(format!("{active} agents are active")) }
    });
    fs::write(path(&format!("go-{}", stay[0])), "").unwrap();
    cluster.start_agent(number);
    cluster.wait_for_agents();
    wait_until_held(&cluster, &framework, HELD - 1, &[]);
    assert_eq!(last_results(&cluster)[&stay[0]]["state"], "succeeded");
    assert_eq!(held_on(&cluster, restarted), stay);
    assert_eq!(log(&cluster), starts, "no task has begun anew");

    // An agent is drained, of those whose tasks there is room for.
    let drained = *with_tasks().find(|agent| **agent != restarted).unwrap();
    cluster.drain_agent(cluster.master_state().agent_id(drained).unwrap());
    wait_until_held(&cluster, &framework, HELD - 1, &[drained]);
    assert_eq!(hosts_of(&cluster, drained), [] as [u32; 0]);

    fs::write(path("go"), "").unwrap();
    let ended = program.end();
    assert_eq!(ended.code, Some(1), "{}", ended.told());
    wait_for(&cluster, &[("succeeded", QUICK + HELD + 2), ("failed", 1)]);
    let log = log(&cluster);
    let quick = log.iter().filter(|(id, _)| id.starts_with("quick-"));
    assert!(quick.clone().count() == QUICK && quick.clone().all(|it| *it.1 == 1), "{log:#?}");
    cluster.assert_deserted();
}
