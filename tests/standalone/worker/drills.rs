//! Drills with real processes, which print figures (`.ci/standalone` runs them). What is asserted isn't a time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::cluster::{Program, master, run, worker};

/// The master's JSON under `/state`; `None` if it doesn't answer.
pub(crate) fn state(address: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    let get = "GET /state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(get.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// Waits until `look` finds something.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up, "{what}");
        sleep(Duration::from_millis(5));
    }
}

pub(crate) fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Goal: from nothing to running executors, and how long an executor takes to run. Method: a master, three workers and
/// a run of 30 executors, whose events have the times of placement and of running.
#[test]
#[ignore = "prints figures"]
fn from_nothing_to_running_executors() {
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let (_master, address) = master(&folder.path().join("master"), "127.0.0.1:0");
    let _workers = ["h1", "h2", "h3"].map(|name| worker(folder.path(), name, &address));
    let mut command = run(&address, 30, "sleep 0.2");
    let arguments: Vec<_> = command.get_args().skip(1).map(ToOwned::to_owned).collect();
    command = Command::new(env!("CARGO_BIN_EXE_offermill"));
    command.args(["run", "--json"]).args(arguments).stderr(Stdio::null());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let events = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (mut placed, mut took) = (BTreeMap::new(), Vec::new());
    for event in events {
        let (name, at) = (event["executor"].to_string(), event["at_ms"].as_u64().unwrap_or(0));
        match event["event"].as_str() {
            Some("placed") => drop(placed.insert(name, at)),
            Some("running") => took.push(at - placed[&name]),
            _ => {}
        }
    }
    assert_eq!(took.len(), 30, "{said}");
    took.sort_unstable();
    println!(
        "figures: 30 executors on 3 workers have run {} ms after the start of the master; ACCEPT to RUNNING p50 {} ms, \
         most {} ms",
        began.elapsed().as_millis(),
        took[took.len() / 2],
        took[took.len() - 1]
    );
}

/// Goal: no executor ends or is started twice however often the master is killed, also while others come and go.
/// Method: SIGKILL and a new master with the same journal, `MASTER_KILLS` times (10), beside four executors that write
/// a line when they start and runs of executors that end; the four processes are the same at the end, and each kill
/// prints how long the new master took to make offers again.
#[test]
#[ignore = "prints figures"]
fn masters_are_killed_while_executors_come_and_go() {
    let kills = std::env::var("MASTER_KILLS").ok().map_or(10, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("master");
    let (mut leader, address) = master(&path, "127.0.0.1:0");
    let _workers = ["h1", "h2", "h3"].map(|name| worker(folder.path(), name, &address));
    let starts = folder.path().join("starts");
    let line = format!("echo $$ >>{}; exec sleep 100000", starts.display());
    let steady = Program(away(&address, 4, &line).spawn().unwrap());
    until("four executors", || (lines(&starts).len() == 4).then_some(()));
    let mut churn = Program(away(&address, 2, "sleep 0.3").spawn().unwrap());
    let (mut took, mut back, mut rounds) = (Vec::new(), Vec::new(), 0);
    for kill in 0..kills {
        // Each time at another moment of what goes on.
        sleep(Duration::from_millis(200 + 37 * (kill % 11)));
        drop(leader);
        (leader, _) = master(&path, &address);
        let began = Instant::now();
        let mut all_back = None;
        until("a master that makes offers", || {
            let state = state(&address)?;
            let frameworks = state["frameworks"].as_array()?;
            let are_back = state["counts"]["workers"] == 3
                && frameworks.iter().all(|framework| framework["connected"] == true);
            if are_back {
                all_back.get_or_insert_with(|| began.elapsed());
            }
            (state["recovering"] == false && state["counts"]["workers"] == 3).then_some(())
        });
        // A framework may have ended meanwhile, which is then waited for in vain.
        let waited = began.elapsed();
        took.push((waited - all_back.unwrap_or(waited)).as_millis());
        back.push(all_back.unwrap_or(waited).as_millis());
        if churn.0.try_wait().unwrap().is_some() {
            rounds += 1;
            churn = Program(away(&address, 2, "sleep 0.3").spawn().unwrap());
        }
    }
    until("the last of those that come and go", || churn.0.try_wait().unwrap());
    let pids = lines(&starts);
    assert_eq!(pids.len(), 4, "an executor was started twice: {pids:?}");
    for pid in &pids {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert!(command.starts_with("sleep"), "the executor {pid} has ended");
    }
    kill_process(Pid::from_child(&steady.0), Signal::TERM).unwrap();
    until("no executor", || (state(&address)?["counts"]["executors"] == 0).then_some(()));
    took.sort_unstable();
    back.sort_unstable();
    println!(
        "figures: {kills} masters killed beside {rounds} runs that ended: 4 executors are the same; all are back \
         p50 {} ms and most {} ms after a master's start, and offers are made p50 {} ms and most {} ms later",
        back[back.len() / 2],
        back[back.len() - 1],
        took[took.len() / 2],
        took[took.len() - 1]
    );
    drop(leader);
}

/// A run whose framework may be away for an hour.
pub(crate) fn away(address: &str, executors: u32, line: &str) -> Command {
    let own = run(address, executors, line);
    let mut command = Command::new(own.get_program());
    command.args(["run", "--failover-timeout", "1h"]).args(own.get_args().skip(1));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Goal: executors of a worker that is killed end and are replaced, and those of one that is stopped return with it.
/// Method: SIGKILL to one of two workers: its executors' processes end, and a run's are replaced on the other. SIGSTOP
/// to that for longer than a master's time-out: the same processes run when it continues, and no others.
#[test]
#[ignore = "prints figures"]
fn workers_are_killed_and_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("master");
    let (_master, address) = master_with_timeout(&path, "1s");
    let first = worker(folder.path(), "h1", &address);
    until("a worker", || (state(&address)?["counts"]["workers"] == 1).then_some(()));
    let starts = folder.path().join("starts");
    let line = format!("echo $$ >>{}; exec sleep 100000", starts.display());
    let _run = Program(away(&address, 2, &line).spawn().unwrap());
    until("two executors", || (lines(&starts).len() == 2).then_some(()));
    let second = worker(folder.path(), "h2", &address);
    until("two workers", || (state(&address)?["counts"]["workers"] == 2).then_some(()));
    let began = Instant::now();
    drop(first);
    let is_gone = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z")
    };
    let before = lines(&starts);
    until("the end of the executors", || before.iter().all(is_gone).then_some(()));
    println!("figures: executors have ended {} ms after their worker", began.elapsed().as_millis());
    let again = worker(folder.path(), "h1", &address);
    until("replacements", || (lines(&starts).len() == 4).then_some(()));
    kill_process(Pid::from_child(&second.0), Signal::STOP).unwrap();
    kill_process(Pid::from_child(&again.0), Signal::STOP).unwrap();
    let unreachable = |state: &Value| {
        let workers = state["workers"].as_array().unwrap();
        workers.iter().filter(|worker| worker["state"] == "unreachable").count()
    };
    until("unreachable workers", || (unreachable(&state(&address)?) == 2).then_some(()));
    kill_process(Pid::from_child(&second.0), Signal::CONT).unwrap();
    kill_process(Pid::from_child(&again.0), Signal::CONT).unwrap();
    until("both workers", || (state(&address)?["counts"]["workers"] == 2).then_some(()));
    until("two executors", || (state(&address)?["counts"]["executors"] == 2).then_some(()));
    let after = lines(&starts);
    assert_eq!(after.len(), 4, "an executor was started though none was lost");
    assert!(!after[2..].iter().any(is_gone), "an executor has ended");
}

/// A master that notices a silent worker after this time.
pub(crate) fn master_with_timeout(path: &Path, timeout: &str) -> (Program, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_offermill"));
    command.args(["master", "--listen", "127.0.0.1:0", "--worker-timeout", timeout, "--state-dir"]);
    let mut child = command.arg(path).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    (Program(child), address)
}
