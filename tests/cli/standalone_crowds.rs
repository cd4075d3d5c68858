//! Tests of what clients of `offermill master` can't take from others, and of what its operator reads.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::standalone::{HandWorker, RunningMaster, subscribe};
use crate::support::{Folder, Run, finish, offermill};

const GET_HEALTH: &str = "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
const GET_STATE: &str = "GET /state HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Starts a master with limits of open files, as `ulimit` has them.
fn start_limited(folder: &Folder, limits: &str) -> RunningMaster {
    let binary = offermill(&folder.0, &[]).get_program().to_owned();
    let mut command = Command::new("sh");
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

/// Goal: what the operator reads is whole. Method: a worker that the journal names and that isn't back, and the lines
/// of the help, which are all indented.
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

/// Goal: a call that would take too much memory is refused, and one whose stream isn't open or isn't its principal's is
/// refused before its body is read. Method: calls by hand, with two principals.
#[test]
fn calls_are_bounded_and_belong_to_principals() {
    let folder = Folder::new();
    let path = folder.write("principals", "etl s3cret\nother s3cret\n");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let files = ["--principals-file", "principals"];
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &files);
    // The principals with their secret, in base 64.
    let (etl, other) = ("ZXRsOnMzY3JldA==", "b3RoZXI6czNjcmV0");
    let head = |of: &str, kind: &str, stream: Option<&str>, length: usize| {
        let stream = stream.map_or(String::new(), |id| format!("mesos-stream-id: {id}\r\n"));
        format!(
            "POST /api/v1/scheduler HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Basic {of}\r\n\
             content-type: application/{kind}\r\n{stream}content-length: {length}\r\n\r\n"
        )
    };
    let subscribe = |name: &str| {
        let info = json!({"user": "nobody", "name": name});
        json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}).to_string()
    };
    let post = |of: &str, stream: Option<&str>, body: &str| {
        master.ask(&(head(of, "json", stream, body.len()) + body))
    };
    let (status, why) = post(etl, None, &subscribe(&"n".repeat(64 << 10)));
    assert_eq!((status, why.contains("longer than 64 KiB")), (400, true), "{why}");
    assert_eq!(post(etl, None, &" ".repeat((1 << 20) + 1)).0, 413);
    let (status, why) = post(etl, None, &format!("[{}", "{},".repeat(1 << 15)));
    assert_eq!((status, why.contains("at most 32768 messages")), (400, true), "{why}");

    let mut events = BufReader::new(master.connect());
    let body = subscribe("etl");
    let request = head(etl, "json", None, body.len()) + &body;
    events.get_mut().write_all(request.as_bytes()).unwrap();
    let headers = events.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty());
    let headers: Vec<String> = headers.collect();
    let id = headers.iter().find_map(|line| line.strip_prefix("mesos-stream-id: ")).unwrap();
    let revive = r#"{"type":"REVIVE"}"#;
    // Without a body: the answer doesn't wait for it.
    for (of, stream, expected) in [(other, id, 403), (etl, "1", 400)] {
        let (status, why) = master.ask(&head(of, "json", Some(stream), revive.len()));
        assert_eq!(status, expected, "{why}");
    }
    assert_ne!(post(etl, Some(id), revive).0, 403);
    let mut tasks: Vec<u8> = [0x0a, 0].repeat(1 << 20);
    for number in [2, 2, 4] {
        let mut field = vec![number << 3 | 2];
        prost::encoding::encode_varint(tasks.len() as u64, &mut field);
        field.append(&mut tasks);
        tasks = field;
    }
    let mut stream = master.connect();
    let request = [head(etl, "x-protobuf", Some(id), tasks.len()).into_bytes(), tasks].concat();
    stream.write_all(&request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("at most 32768 messages"), "{answer}");
}
