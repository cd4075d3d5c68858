//! Runs of tasks in hosts whose program is killed, and which the same command resumes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::{RealCluster, Setup, processes_within};
use super::eventually;
use super::program::Program;
use super::task_file::{last_results, results};
use super::task_hosts::{held_on, hosts_of};

/// The tasks that end when a file is there: as many as half of the agents have room for.
const HELD: usize = 6;
/// The tasks that end by themselves.
const QUICK: usize = 80;
const PATIENCE: Duration = Duration::from_secs(60);

/// Tasks that write to a log when they begin and end, with the numbers of their attempts.
fn tasks(log: &str, go: &str) -> String {
    let write =
        |what: &str| format!("echo {what} $OFFERMILL_TASK_ID $OFFERMILL_TASK_ATTEMPT >> {log}");
    let (begin, end) = (write("begin"), write("end"));
    let wait = format!("{begin}; until [ -e {go} ]; do sleep 0.1; done; {end}");
    let work = format!("{begin}; sleep 0.2; {end}");
    let held = (0..HELD).map(|i| json!({"id": format!("held-{i}"), "command": wait, "cores": 2}));
    let quick = (0..QUICK).map(|i| json!({"id": format!("quick-{i}"), "command": work}));
    held.chain(quick).map(|task| format!("{task}\n")).collect()
}

/// What the tasks have written: which attempts of each have begun, in their order, and how many have ended.
#[derive(Debug, Default)]
struct Log {
    begun: BTreeMap<String, Vec<u64>>,
    ended: BTreeMap<String, usize>,
}

impl Log {
    fn read(cluster: &RealCluster) -> Log {
        let text = fs::read_to_string(cluster.folder().join("log")).unwrap_or_default();
        let mut log = Log::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, id, attempt] = words[..] else { panic!("{line:?}") };
            match what {
                "begin" => log.begun.entry(id.into()).or_default().push(attempt.parse().unwrap()),
                _ => *log.ended.entry(id.into()).or_default() += 1,
            }
        }
        log
    }
}

/// The ids of the tasks whose last line in the results has this state.
fn tasks_that(cluster: &RealCluster, state: &str) -> BTreeSet<String> {
    let last = last_results(cluster).into_iter();
    last.filter(|(_, line)| line["state"] == state).map(|(id, _)| id).collect()
}

/// Waits until the newest attempt of each task that is held has begun, after what a former log has, and nothing else is
/// left. Returns the agents that have some.
#[track_caller]
fn wait_for_held(cluster: &RealCluster, before: &Log) -> BTreeSet<String> {
    eventually(PATIENCE, "those that are held are left", || {
        let (log, last) = (Log::read(cluster), last_results(cluster));
        let has_begun = |id: &str| {
            let attempt = last[id]["attempts"].as_u64();
            let former = before.begun.get(id).map_or(0, Vec::len);
            let begun = log.begun.get(id).filter(|begun| begun.len() > former);
            begun.is_some_and(|begun| begun.last().copied() == attempt)
        };
        let started = tasks_that(cluster, "started");
        let is_done = tasks_that(cluster, "succeeded").len() == QUICK;
        if is_done && started.len() == HELD && started.iter().all(|id| has_begun(id)) {
            let agents = started.iter().map(|id| last[id]["agent"].as_str().unwrap().to_owned());
            Ok(agents.collect())
        } else {
            Err(format!("{started:?} of {last:#?} {log:#?}"))
        }
    })
}

/// The loops of tasks that are held, in sandboxes of an agent or of all.
fn loops_in(cluster: &RealCluster, folder: &str) -> usize {
    let processes = processes_within(&cluster.folder().join("agents").join(folder));
    processes.iter().filter(|(.., command)| command.contains("until [")).count()
}

/// Asserts that the program has named as many tasks that may run again.
#[track_caller]
fn assert_remark(errors: &str, in_flight: &BTreeSet<String>) {
    let remark = format!("{} tasks may have run partly or whole", in_flight.len());
    assert!(errors.contains(&remark), "{remark}: {errors}");
}

fn number(agent: &str) -> u16 {
    agent.strip_prefix("agent-").unwrap().parse().unwrap()
}

fn run(cluster: &RealCluster, flags: &[&str]) -> Program {
    let small = ["--tasks", "tasks", "--task-memory", "32m", "--task-cores", "0.5", "--task-hosts"];
    Program::run(cluster, &[&small[..], flags].concat())
}

/// What a run has left that was killed: what the tasks had written, and which of them were in flight.
fn left_by_a_killed_run(cluster: &RealCluster) -> (Log, BTreeSet<String>) {
    (Log::read(cluster), tasks_that(cluster, "started"))
}

/// The only host on an agent.
#[track_caller]
fn host_on(cluster: &RealCluster, agent: &str) -> u32 {
    eventually(PATIENCE, "one host", || match hosts_of(cluster, agent)[..] {
        [host] => Ok(host),
        ref hosts => Err(format!("{hosts:?} on {agent}")),
    })
}

/// Kills a host with its tasks, while its agent is stopped.
#[track_caller]
fn kill_host(cluster: &RealCluster, agent: &str, host: u32) {
    assert!(Command::new("kill").args(["-KILL", &host.to_string()]).status().unwrap().success());
    eventually(PATIENCE, "the killed host's tasks are gone", || match loops_in(cluster, agent) {
        0 => Ok(()),
        loops => Err(loops.to_string()),
    });
}

/// Asserts that each task has succeeded once, that no attempt has begun twice, and that each attempt which is not the
/// task's last was lost, or is one of a task that a later run has named.
#[track_caller]
fn assert_sound(cluster: &RealCluster, named: &BTreeSet<String>) {
    let (log, lines) = (Log::read(cluster), results(cluster));
    let of = |id: &str, state: &str| -> Vec<u64> {
        let is_it = |line: &&Value| line["id"] == id && line["state"] == state;
        lines.iter().filter(is_it).map(|line| line["attempts"].as_u64().unwrap()).collect()
    };
    assert_eq!(
        (log.begun.len(), tasks_that(cluster, "succeeded").len()),
        (HELD + QUICK, HELD + QUICK)
    );
    for (id, begun) in &log.begun {
        let attempts: BTreeSet<&u64> = begun.iter().collect();
        assert_eq!(attempts.len(), begun.len(), "an attempt of {id} ran twice: {begun:?}");
        let (started, succeeded, lost) = (of(id, "started"), of(id, "succeeded"), of(id, "lost"));
        assert!(begun.iter().all(|it| started.contains(it)), "{id}: {begun:?} of {started:?}");
        let [succeeded] = succeeded[..] else { panic!("{id} has succeeded in {succeeded:?}") };
        assert!(attempts.contains(&succeeded) && log.ended.get(id) >= Some(&1), "{id}: {log:#?}");
        let mut others = begun.iter().filter(|it| **it != succeeded);
        assert!(
            named.contains(id) || others.all(|it| lost.contains(it)),
            "{id} ran again, and nobody says so: {begun:?}"
        );
    }
}

/// Goal: after SIGKILL of the program, the same command with `--resume` brings each task to its one success, whether
/// its host has ended meanwhile, lives on because its agent hears nothing, or was killed; no attempt runs twice, no
/// task runs again that the program doesn't name, and nothing of a former run is left. Method: tasks of which six wait;
/// SIGKILL while the others run, then the command without `--resume`, which is refused, and with it, at once. SIGKILL
/// again when six are left, with two agents stopped; the host of one of them is killed. The command once more: the six
/// run on other agents, while the old attempts of one go on. The agents go on, then the six may end.
#[test]
#[ignore = "needs a real Mesos"]
fn hosts_end_with_a_killed_program() {
    let resources = "cpus:8.2;mem:4096;disk:20000;ports:[31000-32000]";
    let cluster = RealCluster::start(Setup { agents: 4, resources, ..Setup::default() });
    let path = |name: &str| cluster.folder().join(name).to_str().unwrap().to_owned();
    fs::write(path("tasks"), tasks(&path("log"), &path("go"))).unwrap();

    let first = run(&cluster, &[]);
    eventually(PATIENCE, "some have succeeded", || {
        let succeeded = tasks_that(&cluster, "succeeded").len();
        if succeeded >= 10 { Ok(()) } else { Err(format!("{succeeded} have")) }
    });
    first.kill();
    let (at_first, broken_off) = left_by_a_killed_run(&cluster);
    assert!(tasks_that(&cluster, "succeeded").len() < QUICK, "it was killed in the middle");
    let refused = run(&cluster, &[]).end();
    assert_eq!(refused.code, Some(2), "{}", refused.told());
    assert!(refused.errors.contains("--resume"), "{}", refused.told());

    let mut second = run(&cluster, &["--resume"]);
    let framework = second.registered();
    let agents: Vec<String> = wait_for_held(&cluster, &at_first).into_iter().collect();
    let [alive, dead, ..] = &agents[..] else { panic!("six tasks on one agent: {agents:?}") };
    let hosts = [alive, dead].map(|agent| host_on(&cluster, agent));
    let kept = held_on(&cluster, alive).len();
    [alive, dead].into_iter().for_each(|agent| cluster.pause_agent(number(agent)));
    assert_remark(&second.kill(), &broken_off);
    let (at_second, broken_off_again) = left_by_a_killed_run(&cluster);
    eventually(PATIENCE, "the framework and two agents are gone", || {
        let state = cluster.master_state();
        match (state.is_over(&framework), state.active_agents()) {
            (true, 2) => Ok(()),
            (_, active) => Err(format!("{:?}, {active} agents", state.frameworks())),
        }
    });
    kill_host(&cluster, dead, hosts[1]);

    let third = run(&cluster, &["--resume"]);
    let others = wait_for_held(&cluster, &at_second);
    assert!(!others.contains(alive) && !others.contains(dead), "{others:?}");
    assert_eq!((hosts_of(&cluster, alive), loops_in(&cluster, alive)), (vec![hosts[0]], kept));
    [alive, dead].into_iter().for_each(|agent| cluster.resume_agent(number(agent)));
    cluster.wait_for_agents();
    eventually(PATIENCE, "one attempt of each", || match loops_in(&cluster, "") {
        HELD => Ok(()),
        loops => Err(format!("{loops} {:#?}", cluster.executor_processes())),
    });
    fs::write(path("go"), "").unwrap();
    let ended = third.end();
    assert_eq!(ended.code, Some(0), "{}", ended.told());
    assert_remark(&ended.errors, &broken_off_again);
    assert_sound(&cluster, &(&broken_off | &broken_off_again));
    cluster.assert_deserted();
}
