//! Tests of what clients of `offermill master` can't take from others, and of what its operator reads.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::standalone::{HandWorker, RunningMaster, subscribe};
use crate::support::{Folder, Run, finish, offermill};

const GET_HEALTH: &str = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
const GET_STATE: &str = "GET /state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Starts a master with limits of open files, as `ulimit` has them.
fn start_limited(folder: &Folder, limits: &str) -> RunningMaster {
    let binary = offermill(&folder.0, &[]).get_program().to_owned();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]).arg(binary);
    command.args(["master", "--listen", "127.0.0.1:0", "--state-dir", "master"]);
    command.current_dir(&folder.0).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    RunningMaster::watch(Run::watch(command.spawn().unwrap()))
}

/// Sends a request without a body, and reads its answer. The connection stays open.
fn get(master: &RunningMaster, path: &str) -> BufReader<TcpStream> {
    let mut stream = BufReader::new(master.connect());
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
        match line.as_str() {
            "" => return stream,
            "\r\n" => break,
            _ => {}
        }
    }
    stream.read_exact(&mut vec![0; length]).unwrap();
    stream
}

/// Goal: silent clients take no files from others, not even if the system gives the master fewer than it has counted
/// on. Method: a master whose soft limit is raised to the hard one, and then lowered far below the clients that say
/// nothing; a worker stays connected, and the master answers.
#[test]
#[cfg(target_os = "linux")]
fn silent_clients_give_way_without_files() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let folder = Folder::new();
    let master = start_limited(&folder, "ulimit -S -n 80");
    let process = i32::try_from(master.run.id()).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let files: Vec<&str> = files.split_whitespace().skip(3).take(2).collect();
    assert!(files[0] == files[1] && files[0] != "80", "{files:?}");
    let mut worker = HandWorker::connect(&master, &subscribe(), "");
    worker.hear_a("SUBSCRIBED");
    let maximum = Some(files[1].parse().unwrap());
    let few = Rlimit { current: Some(40), maximum };
    prlimit(Pid::from_raw(process), Resource::Nofile, few).unwrap();
    let silent: Vec<TcpStream> = (0..100).map(|_| master.connect()).collect();
    assert_eq!(master.ask(GET_HEALTH), (200, "ok\n".to_owned()));
    assert_eq!(master.state()["workers"], 1);
    drop(silent);
}

/// Goal: clients that keep connections open between requests don't keep others out, nor close those in use. Method: a
/// worker, and then more connections with a finished request than there may be; further requests are answered.
#[test]
fn idle_clients_give_way() {
    let folder = Folder::new();
    let master = start_limited(&folder, "ulimit -n 64");
    let mut worker = HandWorker::connect(&master, &subscribe(), "");
    worker.hear_a("SUBSCRIBED");
    let idle: Vec<_> = (0..50).map(|_| get(&master, "/metrics")).collect();
    assert_eq!(master.ask(GET_HEALTH), (200, "ok\n".to_owned()));
    let state: Value = serde_json::from_str(&master.ask(GET_STATE).1).unwrap();
    assert_eq!(state["workers"][0]["state"], "active");
    drop(idle);
}

/// Goal: a framework's name doesn't flood its operator's terminal, nor the state. Method: a name and a user of 60 KB
/// each.
#[test]
fn long_names_are_cut_in_reports() {
    let folder = Folder::new();
    let control = ["--control", "master.sock"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &control);
    let long = "n".repeat(60_000);
    let info = json!({"user": "u", "name": long});
    let call = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}).to_string();
    let mut stream = BufReader::new(master.connect());
    let request = format!(
        "POST /api/v1/scheduler HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{call}",
        call.len()
    );
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let mut status = String::new();
    stream.read_line(&mut status).unwrap();
    assert!(status.contains("200"), "{status}");
    let shown = finish(&folder, &["ctl", "master.sock", "status"]).output;
    assert!(shown.contains("nnn… (60000 bytes)): connected") && shown.len() < 1000, "{shown}");
    let state: Value = serde_json::from_str(&master.ask(GET_STATE).1).unwrap();
    let name = state["frameworks"][0]["name"].as_str().unwrap();
    assert!(name.len() <= 256 && name.ends_with("… (60000 bytes)"), "{name}");
}

/// Goal: what the operator reads is whole. Method: a worker that the journal names and that isn't back, and the lines of
/// the help, which are all indented.
#[test]
fn operators_read_whole_lines() {
    let folder = Folder::new();
    let control = ["--control", "master.sock"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    HandWorker::connect(&master, &subscribe(), "").hear_a("SUBSCRIBED");
    drop(master);
    let _master = RunningMaster::start(&folder, "127.0.0.1:0", &control);
    let shown = finish(&folder, &["ctl", "master.sock", "status"]).output;
    assert!(shown.contains("-1-W0 on an unknown host: disconnected, 0 executors"), "{shown}");
    let help = finish(&folder, &["master", "--help"]).output;
    for command in ["status ", "status json ", "drain ID [GRACE] ", "help "] {
        assert!(help.contains(&format!("\n  {command}")), "{command}: {help}");
    }
}
