//! Real jobs on executors that Offermill placed. Spark's driver checks their results.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::cluster::{RealCluster, Setup};
use super::driver::{Driver, free_ports};
use super::service::ShuffleService;
use crate::eventually;
use crate::support::{Ended, Folder, Run, finish, send_signal};

const LOCAL: &str = "local-cluster[2,2,2048]";

/// A Mesos cluster with room for two executors on each of two agents. The agents' names are addresses of this machine,
/// because executors and shuffle services listen there.
pub(crate) fn mesos() -> RealCluster {
    let resources = "cpus:2;mem:2048;disk:20000;ports:[31000-32000]";
    let hostnames = "127.0.1%d.1";
    RealCluster::start(Setup { agents: 2, hostnames, resources, ..Setup::default() })
}

fn home(driver: &Driver) -> String {
    format!("spark.mesos.executor.home={}", driver.home)
}

/// Returns the process id of a driver's executor.
fn process_of(driver: &Driver, executor: &str) -> u32 {
    eventually(Duration::from_secs(30), "an executor's process", || {
        let is_it = |number: &u32| {
            let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words);
            let words: Vec<&str> = words.split('\0').collect();
            let has = |pair: [&str; 2]| words.windows(2).any(|two| two == pair);
            let is_java = words.first().is_some_and(|program| program.ends_with("java"));
            // The launcher has the same arguments; it computes the executor's command line.
            let is_launcher = words.contains(&"org.apache.spark.launcher.Main");
            is_java
                && !is_launcher
                && has(["--driver-url", &driver.url])
                && has(["--executor-id", executor])
        };
        let names = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        names.into_iter().find(is_it).ok_or_else(|| "there is none".to_owned())
    })
}

/// The final states of the executors, in alphabetical order.
fn ends(ended: &Ended) -> Vec<String> {
    let events = ended.events();
    let ends = events.iter().filter(|event| event["event"] == "ended");
    let mut ends: Vec<String> = ends.map(|event| event["state"].as_str().unwrap().into()).collect();
    ends.sort_unstable();
    ends
}

#[track_caller]
fn assert_good(ended: &Ended, states: &[&str]) {
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.output, ended.errors);
    assert_eq!(ends(ended), states, "{}", ended.output);
}

/// Runs a driver's jobs to their end.
fn run_a_job(master: &str) {
    let (folder, driver) = (Folder::new(), Driver::start(&["--rounds", "2"]));
    let home = home(&driver);
    let mut run = Run::start(&folder, &driver.arguments(master, &home));
    for _ in 0..2 {
        run.event_named("running");
    }
    driver.succeed();
    assert_good(&run.end(), &["finished", "finished"]);
}

/// Runs a driver's jobs, kills an executor during them, and continues until its replacement has worked. `conf` is for
/// the driver and for the run, `flags` for the run alone.
fn run_a_job_and_kill(folder: &Folder, master: &str, conf: &[&str], flags: &[&str]) {
    let until = folder.0.join("enough").display().to_string();
    let for_driver = [&["--rounds", "4", "--until", &until], conf].concat();
    let mut driver = Driver::start(&for_driver);
    let home = home(&driver);
    let arguments = [&driver.arguments(master, &home), conf, flags].concat();
    let mut run = Run::start(folder, &arguments);
    driver.round();
    send_signal("KILL", process_of(&driver, "0"));
    let placed = run.event(|event| event["event"] == "placed" && event["replaces"] != Value::Null);
    assert_eq!((&placed["replaces"], &placed["executor"]), (&"0".into(), &"2".into()));
    run.event_named("running");
    // An executor has a Python worker when it has run tasks of its driver.
    let newcomer = process_of(&driver, "2");
    eventually(Duration::from_secs(120), "a Python worker of the new executor", || {
        let output = Command::new("pgrep").args(["-P", &newcomer.to_string(), "python"]).output();
        let has_one = output.unwrap().status.success();
        if has_one { Ok(()) } else { Err("it has none".to_owned()) }
    });
    driver.round();
    driver.round();
    fs::write(&until, "").unwrap();
    driver.succeed();
    assert_good(&run.end(), &["failed", "finished", "finished"]);
}

/// Replays a run from its journal, and compares.
#[track_caller]
fn play_again(folder: &Folder) {
    let replayed = finish(folder, &["replay", "journal", "--expect", "journal.answers"]);
    assert_eq!(replayed.code, Some(0), "{}\n{}", replayed.output, replayed.errors);
    println!("replayed: {}", replayed.output.lines().last().unwrap_or_default());
}

/// Goal: Spark's executors, placed on local agents, run Spark's jobs and end successfully with them. Method: two
/// executors for a driver without its own, until they have finished.
#[test]
#[ignore = "needs Spark"]
fn a_job_runs_on_local_agents() {
    run_a_job(LOCAL);
}

/// Goal: a killed executor is replaced, the job's results stay right, and the run can be replayed from its journal.
/// Method: SIGKILL after the first round; the driver continues until the replacement has worked; a replay.
#[test]
#[ignore = "needs Spark"]
fn a_killed_executor_is_replaced_on_local_agents() {
    let folder = Folder::new();
    run_a_job_and_kill(&folder, LOCAL, &[], &["--journal", "journal"]);
    play_again(&folder);
}

/// Goal: the same on a real Mesos. Method: the same.
#[test]
#[ignore = "needs Spark"]
fn a_job_runs_on_mesos() {
    let cluster = mesos();
    run_a_job(&cluster.url());
    cluster.assert_deserted();
}

/// Goal: the same on a real Mesos with the real shuffle service, with which the application is registered on each
/// agent, and which forgets the application after its end. Method: the same; the service's log.
#[test]
#[ignore = "needs Spark"]
fn a_killed_executor_is_replaced_on_mesos() {
    let cluster = mesos();
    let [port] = free_ports();
    let mut service = ShuffleService::start(port);
    let port = format!("spark.shuffle.service.port={port}");
    let conf = [["--conf", "spark.shuffle.service.enabled=true"], ["--conf", &port]];
    let patience = ["spark.executor.heartbeatInterval=1s", "spark.network.timeout=8s"];
    let flags = ["--conf", patience[0], "--conf", patience[1], "--journal", "journal"];
    let folder = Folder::new();
    run_a_job_and_kill(&folder, &cluster.url(), &conf.concat(), &flags);
    play_again(&folder);
    cluster.assert_deserted();
    let app = service.logs("Received registration request from app ");
    let app = app.split(' ').next().unwrap().to_owned();
    // The other agent is on the same machine, and so is its service.
    service.logs("but it was already registered");
    let rest = service.logs(&format!("Application {app}"));
    assert!(rest.starts_with("timed out."), "{rest}");
}
