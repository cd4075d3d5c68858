//! Tests of commands to a running `offermill run`: over a socket, on standard input and through `offermill ctl`.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Ended, Folder, Run, finish, small};

const PATIENCE: Duration = Duration::from_secs(60);

/// A client of a run's control socket.
pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub(crate) fn new(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client(BufReader::new(stream))
    }

    fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn receive(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(crate) fn request(&mut self, line: &str) -> String {
        self.send(line);
        self.receive()
    }

    fn try_request(&mut self, line: &str) -> io::Result<String> {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes())?;
        let mut reply = String::new();
        self.0.read_line(&mut reply)?;
        Ok(reply.trim_end().to_owned())
    }

    /// Reads lines up to an empty one.
    pub(crate) fn request_block(&mut self, line: &str) -> Vec<String> {
        self.send(line);
        std::iter::from_fn(|| Some(self.receive()).filter(|line| !line.is_empty())).collect()
    }

    pub(crate) fn status(&mut self) -> Value {
        serde_json::from_str(&self.request("status json")).unwrap()
    }

    /// Waits for a status.
    pub(crate) fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let status = self.status();
            if is_it(&status) {
                return status;
            }
            assert!(Instant::now() < give_up, "{status}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A run on two agents with four cores each, with `--json` and a control socket.
pub(crate) fn start(folder: &Folder, flags: &[&str]) -> (Run, PathBuf) {
    let socket = folder.0.join("control");
    let control = ["--master", "local-cluster[2,4,128]", "--json", "--control"];
    let all = [&control[..], &[socket.to_str().unwrap()], flags].concat();
    let mut run = Run::start(folder, &small(&all, &["sleep", "1000"]));
    run.event_named("started");
    (run, socket)
}

pub(crate) fn running(number: u64) -> impl Fn(&Value) -> bool {
    move |status| status["executors"]["running"] == number && living(status) as u64 == number
}

pub(crate) fn living(status: &Value) -> usize {
    status["living"].as_array().unwrap().len()
}

/// The name of a live executor.
pub(crate) fn name(status: &Value, place: usize) -> String {
    status["living"][place]["executor"].as_str().unwrap().to_owned()
}

/// Goal: the limit is raised and lowered over the socket, a lower limit kills no executor, kills don't change it, and
/// `stop` ends the run. Method: run real executors; check replies, events and that the socket is removed.
#[test]
fn a_run_is_steered_over_its_socket() {
    let folder = Folder::new();
    let (mut run, socket) = start(&folder, &["--num-executors", "2", "--name", "etl"]);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = Client::new(&socket);
    let status = client.wait_for(running(2));
    assert_eq!(status["limit"], 2);
    let lines = client.request_block("status");
    assert!(lines[0].starts_with("etl on local-cluster[2,4,128], running for "), "{lines:?}");
    assert!(lines.contains(&"executors   2 running".to_owned()), "{lines:?}");
    assert!(lines.contains(&"limit       2".to_owned()), "{lines:?}");

    // A kill without a change of the limit leads to a replacement.
    let victim = name(&status, 0);
    assert_eq!(
        client.request(&format!("kill {victim}")),
        "ok: 1 executor asked to end, the limit stays 2"
    );
    let kill = run.event_named("kill");
    assert_eq!((&kill["executors"], &kill["why"]), (&json!([victim]), &json!("by command")));
    let ended = run.event_named("ended");
    assert_eq!((&ended["executor"], &ended["state"]), (&json!(victim), &json!("killed")));
    client.wait_for(running(2));

    assert_eq!(client.request("limit 3"), "ok: limit 2 -> 3");
    let limit = run.event_named("limit");
    assert_eq!(
        (&limit["from"], &limit["to"], &limit["why"]),
        (&json!(2), &json!(3), &json!("by command"))
    );
    let status = client.wait_for(running(3));
    assert_eq!(client.request("limit 3"), "ok: limit 3 as before");
    assert_eq!(client.request("limit 1"), "ok: limit 3 -> 1");
    assert_eq!(living(&client.status()), 3, "a lower limit ends nobody");
    // Executors are named by the part after the last "-", and by the number.
    let [first, second] = [0, 1].map(|place| name(&status, place));
    let first = first.rsplit_once('-').unwrap().1;
    let second = second.rsplit_once('-').unwrap().1.split_once('.').unwrap().0;
    assert_eq!(
        client.request(&format!("kill {first} {second}")),
        "ok: 2 executors asked to end, the limit stays 1"
    );
    let status = client.wait_for(running(1));
    assert_eq!(client.request("limit none"), "ok: limit 1 -> none");
    assert_eq!(client.wait_for(running(8))["limit"], Value::Null);
    assert_eq!(client.status()["living"][0], status["living"][0].clone());

    assert_eq!(client.request("stop"), "ok: stopping");
    assert_eq!(run.event_named("stopping")["why"], "stopped by a command");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(!socket.exists());
    folder.assert_deserted();
}

/// Goal: an invalid command is answered with what was expected, and the client can go on. Method: send invalid lines of
/// each kind at once.
#[test]
fn bad_lines_are_answered() {
    let folder = Folder::new();
    let (run, socket) = start(&folder, &["--num-executors", "1"]);
    let mut client = Client::new(&socket);
    let long = format!("kill {}", "x".repeat(70_000));
    let lines = [
        "limit many",
        "no such",
        "",
        "kill 99",
        &long,
        "load pending=1",
        "executor 0 busy",
        "limit 4294967296",
    ];
    client.send(&lines.join("\n"));
    client.0.get_mut().write_all(b"\xff\xfe\nquit\nstatus\n").unwrap();
    let answers: Vec<String> =
        std::iter::from_fn(|| Some(client.receive()).filter(|line| !line.is_empty())).collect();
    let expected = [
        "error: after \"limit\" was expected: a number of executors, or \"none\", not \"many\"",
        "error: \"no\" is not a command; expected limit, kill, status, load, executor,",
        "error: no executor \"99\" is alive; expected an id, its part after the last",
        "error: the line is too long; expected at most 65536 bytes",
        "error: it has no effect without dynamic allocation; expected spark.dynamic",
        "error: ",
        "error: after \"limit\" was expected: a number of executors up to 4294967295",
        "error: the line is not UTF-8",
        "ok: goodbye",
    ];
    assert_eq!(answers.len(), expected.len(), "{answers:#?}");
    for (answer, expected) in answers.iter().zip(expected) {
        assert!(answer.starts_with(expected), "{answer}");
    }
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
    assert!(!socket.exists());
}

/// Goal: standard input accepts commands, too; replies are events, and its end doesn't end the run. Method: send
/// several lines at once, then close it.
#[test]
fn standard_input_steers_a_run() {
    let folder = Folder::new();
    let flags =
        ["--master", "local-cluster[2,4,128]", "--num-executors", "1", "--json", "--control", "-"];
    let (mut run, mut input) = Run::start_fed(&folder, &small(&flags, &["sleep", "1000"]));
    input.write_all(b"limit 2\nlimit\n\nstatus json\nhelp\nquit nothing").unwrap();
    drop(input);
    let mut answers = Vec::new();
    for _ in 0..5 {
        let event = run.event_named("answer");
        answers.push((event["ok"].clone(), event["answer"].clone()));
    }
    assert_eq!(answers[0], (json!(true), json!("limit 1 -> 2")));
    assert_eq!(answers[1].0, false);
    assert_eq!(answers[2].1["limit"], 2);
    assert!(answers[3].1.as_array().unwrap().len() > 10, "{}", answers[3].1);
    assert_eq!(answers[4], (json!(false), json!("after \"quit\" was expected: nothing")));
    std::thread::sleep(Duration::from_millis(500));
    run.signal("TERM");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(ended.output.contains("\"why\":\"stopped by SIGTERM\""), "{}", ended.output);
}

/// Goal: a socket in use isn't replaced, a stale one is, and other files are left alone. Method: a second run, a socket
/// without a listener, and a regular file.
#[test]
fn a_socket_belongs_to_one_run() {
    let folder = Folder::new();
    let (run, socket) = start(&folder, &["--num-executors", "1"]);
    let path = socket.to_str().unwrap();
    let again = |path: &str| -> Ended {
        let flags = ["--master", "local", "--num-executors", "1", "--control", path];
        finish(&folder, &small(&flags, &["true"]))
    };
    let refused = again(path);
    assert_eq!(refused.code, Some(2), "{}", refused.errors);
    assert!(
        refused.errors.contains("but another process already listens there"),
        "{}",
        refused.errors
    );
    assert!(socket.exists());
    assert_eq!(Client::new(&socket).request("limit 1"), "ok: limit 1 as before");
    run.signal("KILL");
    run.end();
    assert!(socket.exists(), "remains");
    let (run, _) = start(&folder, &["--num-executors", "1"]);
    assert_eq!(Client::new(&socket).request("stop"), "ok: stopping");
    assert_eq!(run.end().code, Some(0));
    drop(UnixListener::bind(&socket).unwrap());
    let (run, _) = start(&folder, &["--num-executors", "1"]);
    // Another process' socket in its place is not removed.
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "precious").unwrap();
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
    assert_eq!(fs::read_to_string(&socket).unwrap(), "precious");
    let pipe = Command::new("mkfifo").arg(folder.0.join("pipe")).status();
    assert!(pipe.unwrap().success());
    for (path, why) in [
        ("pipe/x", "but the socket can't be created: Not a directory"),
        (path, "but another file exists there, which is not a socket"),
        ("no/such/folder/x", "but the socket can't be created: No such file"),
        (&"x".repeat(200), "but must be a path of 1 to 107 bytes"),
    ] {
        let refused = again(path);
        assert_eq!(refused.code, Some(2), "{}", refused.errors);
        assert!(refused.errors.contains(why), "{}", refused.errors);
    }
    assert_eq!(fs::read_to_string(&socket).unwrap(), "precious");
}

/// Goal: clients that don't read, don't write or disconnect block neither the run nor other clients; too many clients
/// are rejected. Method: one client that sends without reading, fifteen silent ones, then one more.
#[test]
fn bad_clients_hinder_nobody() {
    let folder = Folder::new();
    let (mut run, socket) = start(&folder, &["--num-executors", "1"]);
    let deaf = UnixStream::connect(&socket).unwrap();
    deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut writer = &deaf;
    while writer.write_all(b"status\nstatus json\n").is_ok() {}
    let mut client = Client::new(&socket);
    assert_eq!(client.request("limit 2"), "ok: limit 1 -> 2");
    client.wait_for(running(2));
    client.send("kill 0 1");
    drop(client);
    run.event_named("ended");
    let mut silent: Vec<UnixStream> = Vec::new();
    let turned_away = loop {
        let mut next = Client::new(&socket);
        next.0.get_mut().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut line = String::new();
        match next.0.read_line(&mut line) {
            Ok(_) => break line,
            Err(_) => silent.push(next.0.into_inner()),
        }
        assert!(silent.len() < 20);
    };
    assert_eq!(turned_away, "error: 16 clients are connected already, and no more are accepted\n");
    drop(silent);
    let give_up = Instant::now() + PATIENCE;
    let mut client = loop {
        let mut next = Client::new(&socket);
        // A client that is turned away may find the connection closed before it has written.
        match next.try_request("limit 2") {
            Ok(reply) if reply == "ok: limit 2 as before" => break next,
            _ => assert!(Instant::now() < give_up, "no client is accepted again"),
        }
    };
    assert_eq!(client.request("stop"), "ok: stopping");
    assert_eq!(run.end().code, Some(0));
}

/// Checks that the replayed journal agrees with the run.
fn assert_replayed(folder: &Folder) {
    let replayed = finish(folder, &["replay", "J", "--expect", "J.answers"]);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.output, replayed.errors);
}

/// Settings of dynamic allocation: one to eight executors, initially two, and short timeouts.
const DYNAMIC: [&str; 12] = [
    "-c",
    "spark.dynamicAllocation.enabled=true",
    "-c",
    "spark.dynamicAllocation.minExecutors=1",
    "-c",
    "spark.dynamicAllocation.maxExecutors=8",
    "-c",
    "spark.dynamicAllocation.initialExecutors=2",
    "-c",
    "spark.dynamicAllocation.executorIdleTimeout=1s",
    "-c",
    "spark.dynamicAllocation.schedulerBacklogTimeout=1s",
];

/// Goal: executors follow the load: a backlog doubles their growth up to the maximum, and without a load idle executors
/// are killed down to the minimum. Method: report a load, a busy executor and no load to a real run.
#[test]
fn executors_follow_the_load() {
    let folder = Folder::new();
    let (mut run, socket) = start(&folder, &[&DYNAMIC[..], &["--journal", "J"]].concat());
    let mut client = Client::new(&socket);
    client.wait_for(running(2));
    assert_eq!(client.request("load pending=40 running=0"), "ok: 40 pending, 0 running");
    for (from, to) in [(2, 3), (3, 5), (5, 8)] {
        let limit = run.event_named("limit");
        assert_eq!((&limit["from"], &limit["to"]), (&json!(from), &json!(to)), "{limit}");
        assert_eq!(limit["why"], "40 tasks pending");
    }
    let busy = name(&client.wait_for(running(8)), 3);
    assert_eq!(client.request(&format!("executor {busy} busy")), format!("ok: {busy} is busy"));
    assert!(client.request("limit 3").starts_with("error: the limit follows the load"));
    assert!(
        client.request_block("status").contains(&"limit       8; dynamic, from 1 to 8".to_owned())
    );
    client.request("load running=1");
    let limit = run.event_named("limit");
    assert_eq!((&limit["to"], &limit["why"]), (&json!(1), &json!("1 needed for 1 task")));
    assert_eq!(run.event_named("kill")["why"], "idle for 1 s, and not needed");
    let status = client.wait_for(running(1));
    assert_eq!((name(&status, 0), &status["living"][0]["idle_ms"]), (busy.clone(), &Value::Null));
    assert_eq!(status["dynamic_allocation"]["load"]["running"], 1);
    // The last executor is idle, too, and stays as the minimum.
    client.request("load pending=0");
    client.request(&format!("executor {busy} idle"));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(name(&client.wait_for(running(1)), 0), busy);
    assert_eq!(client.request("stop"), "ok: stopping");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let remark = "dynamic allocation begins with 2 executors and follows the load from 1 to 8";
    assert!(ended.errors.contains(remark), "{}", ended.errors);
    assert!(!ended.errors.contains("a replay may differ"), "{}", ended.errors);
    assert_replayed(&folder);
}

/// Goal: executors have as many slots as their cores and the cores per task allow, and a limit that counts down can't
/// be set. Method: read slots from the status; set a limit for a run with `--until-finished`.
#[test]
fn slots_and_counting_limits_are_reported() {
    let folder = Folder::new();
    let size = ["--executor-cores", "4", "-c", "spark.task.cpus=2"];
    let (run, socket) = start(&folder, &[&DYNAMIC[..], &size].concat());
    let mut client = Client::new(&socket);
    assert_eq!(client.status()["dynamic_allocation"]["slots"], 2);
    assert!(
        client.request_block("status").iter().any(|line| line == "load        none was reported")
    );
    client.request("stop");
    assert_eq!(run.end().code, Some(0));
    let (run, socket) = start(&folder, &["--num-executors", "2", "--until-finished"]);
    let answer = Client::new(&socket).request("limit 1");
    assert!(answer.starts_with("error: the limit counts down as executors finish"), "{answer}");
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
}

/// Goal: without a reported load, executors aren't scaled and the user is told; contradicting settings are rejected.
/// Method: a run without reports for longer than the idle timeout; one with `--until-finished`.
#[test]
fn without_a_load_the_number_stays() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[2,4,128]", "--json"];
    let all = [&flags[..], &DYNAMIC].concat();
    let mut run = Run::start(&folder, &small(&all, &["sleep", "1000"]));
    for _ in 0..2 {
        run.event_named("running");
    }
    std::thread::sleep(Duration::from_millis(2500));
    run.signal("TERM");
    let ended = run.end();
    assert_eq!(ended.code, Some(0));
    assert!(ended.errors.contains("2 executors and stays there"), "{}", ended.errors);
    assert!(!ended.output.contains("\"limit\",") && !ended.output.contains("\"event\":\"kill\""));
    let refused = finish(&folder, &small(&[&all[..], &["--until-finished"]].concat(), &["true"]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.errors.contains("exclude each other"), "{}", refused.errors);
}

/// Goal: registered cores and preferred hosts are taken into account. Method: read ratios from the status; prefer one
/// of two hosts with an endless locality wait; replay the journal.
#[test]
fn registered_cores_and_wanted_hosts_count() {
    let folder = Folder::new();
    let more = [
        "-c",
        "spark.dynamicAllocation.initialExecutors=0",
        "-c",
        "spark.dynamicAllocation.minExecutors=0",
        "-c",
        "spark.locality.wait=1h",
        "-c",
        "spark.scheduler.minRegisteredResourcesRatio=0.5",
        "-c",
        "spark.scheduler.maxRegisteredResourcesWaitingTime=1h",
        "--total-executor-cores",
        "4",
        "--journal",
        "J",
    ];
    let (mut run, socket) = start(&folder, &[&DYNAMIC[..], &more].concat());
    let mut client = Client::new(&socket);
    assert_eq!(client.status()["sufficient"], false);
    assert_eq!(
        client.request("locality agent-1=3 agent-0=0"),
        "ok: executors start on 1 host if possible"
    );
    client.request("load pending=2");
    assert_eq!(run.event_named("placed")["host"], "agent-1");
    client.wait_for(|status| status["limit"] == 2 && status["executors"]["running"] == 1);
    client.request("locality none");
    assert_eq!(run.event_named("placed")["host"], "agent-0");
    client.wait_for(|status| running(2)(status) && status["sufficient"] == true);
    let answer = client.request("registered 1");
    assert_eq!(
        answer,
        "ok: 1 core registered; not sufficient yet: 1 of 4 cores, a share of 0.5 is required"
    );
    assert_eq!(client.status()["sufficient"], false);
    assert!(client.request("registered +1").contains("; sufficient: 2 of 4 cores"));
    assert!(client.request("registered -2").contains("0 cores registered; not sufficient"));
    client.request("stop");
    assert_eq!(run.end().code, Some(0));
    assert_replayed(&folder);
}

/// Goal: executors aren't kept for shuffle data that a service holds, and an executor named twice is killed once.
/// Method: report shuffle data where there is a service; send a kill with a duplicate name.
#[test]
fn what_does_not_matter_is_refused() {
    let folder = Folder::new();
    let service =
        ["-c", "spark.shuffle.service.enabled=true", "-c", "spark.shuffle.service.port=9"];
    let (run, socket) = start(&folder, &[&DYNAMIC[..], &service].concat());
    let mut client = Client::new(&socket);
    client.wait_for(running(2));
    let told = client.request("executor 0 shuffle-needed");
    assert!(told.starts_with("error: ") && told.contains("shuffleTracking"), "{told}");
    let told = client.request("kill 0 0");
    assert!(told.starts_with("ok: 1 executor asked to end"), "{told}");
    client.request("stop");
    assert_eq!(run.end().code, Some(0));
}

/// Goal: the executors of a run whose name has blanks can be named in commands. Method: kill one of such a run.
#[test]
fn executors_of_a_run_with_blanks_in_its_name_can_be_killed() {
    let folder = Folder::new();
    let flags = ["--num-executors", "1", "--name", " nightly  etl "];
    let (mut run, socket) = start(&folder, &flags);
    let running = run.event_named("running");
    let id = running["executor"].as_str().unwrap().to_owned();
    assert!(id.starts_with("nightly-etl-"), "{id}");
    let reply = Client::new(&socket).request(&format!("kill {id}"));
    assert!(reply.starts_with("ok"), "{reply}");
    run.event(|event| event["event"] == "ended" && event["executor"] == id.as_str());
}
