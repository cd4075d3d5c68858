//! Tests of the ends of runs that another program steers (`--steered`): which of its pipes says that it has ended, and
//! which doesn't.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::{Value, json};

use crate::steering::{GONE_WITHIN, STUBBORN, ask, start, until};
use crate::support::{Folder, Run, offermill, send_signal, small};

/// The arguments of a run on an agent with four cores, without executors.
fn arguments<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let flags = ["--master", "local-cluster[1,4,128]", "--steered", "--num-executors", "0"];
    small(&flags, command)
}

/// Goal: a command that comes when the run has stopped doesn't end the wait for a parent that reads late: it gets all
/// answers and the summary. Method: an answer larger than a pipe; after the stop another command, and a pause in which
/// nothing is read, longer than a run may live after its parent's end.
#[test]
fn a_command_after_the_stop_costs_no_summary() {
    let folder = Folder::new();
    let mut child =
        offermill(&folder.0, &arguments(&["sleep", "1000"])).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let names: Vec<String> = (0..3_000).map(|number| number.to_string()).collect();
    input.write_all(format!("kill {}\nid=s stop\n", names.join(" ")).as_bytes()).unwrap();
    sleep(Duration::from_millis(1_500));
    input.write_all(b"id=late status json\n").unwrap();
    sleep(Duration::from_millis(3_000));
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers: Vec<&Value> = events.iter().filter(|it| it["event"] == "answer").collect();
    assert_eq!((answers.len(), &answers[1]["id"]), (2, &json!("s")));
    assert_eq!(events.last().unwrap()["event"], "summary");
    drop(input);
}

/// Goal: a run with a terminal as standard input would escape Ctrl-C and take lines from the shell; it is refused.
/// Method: a pseudo-terminal.
#[test]
fn a_terminal_is_no_parent() {
    let folder = Folder::new();
    let script = "import pty, subprocess, sys\n\
                  _, terminal = pty.openpty()\n\
                  sys.exit(subprocess.run(sys.argv[1:], stdin=terminal).returncode)";
    let output = Command::new("python3")
        .args(["-c", script, env!("CARGO_BIN_EXE_offermill")])
        .args(arguments(&["sleep", "1000"]))
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{errors}");
    assert!(
        errors.contains("--steered: standard input is a terminal; expected a pipe"),
        "{errors}"
    );
}

/// Goal: standard input in non-blocking mode, which any process that shares it may set, is read all the same. Method: a
/// pipe in this mode; a command after a pause, in two pieces; then its end.
#[test]
fn non_blocking_input_is_read() {
    let folder = Folder::new();
    let (reader, mut input) = pipe().unwrap();
    fcntl_setfl(&reader, fcntl_getfl(&reader).unwrap() | OFlags::NONBLOCK).unwrap();
    let child = offermill(&folder.0, &arguments(&["sleep", "1000"])).stdin(reader).spawn().unwrap();
    let mut run = Run::watch(child);
    run.event_named("registered");
    for piece in ["id=n li", "mit 1\n"] {
        sleep(Duration::from_millis(300));
        input.write_all(piece.as_bytes()).unwrap();
    }
    let answer = run.event_named("answer");
    assert_eq!((&answer["id"], &answer["answer"]), (&json!("n"), &json!("limit 0 -> 1")));
    drop(input);
    assert_eq!(run.end().code, Some(0));
}

/// Goal: standard input that can't be read ends the run, with the reason. Method: a folder.
#[test]
fn unreadable_input_is_told() {
    let folder = Folder::new();
    let input = File::open(&folder.0).unwrap();
    let child = offermill(&folder.0, &arguments(&["sleep", "1000"])).stdin(input).spawn().unwrap();
    let mut run = Run::watch(child);
    let summary = run.event_named("summary");
    let ending = summary["ending"].as_str().unwrap();
    assert!(ending.starts_with("standard input can't be read: Is a directory"), "{ending}");
    assert_eq!(run.end().code, Some(0));
}

/// Goal: standard input that ends while the run stops ends it within a second, with a summary of what was killed.
/// Method: executors that ignore SIGTERM, a long timeout, a stop, and then the end of standard input.
#[test]
fn the_end_of_the_parent_shortens_a_stop() {
    let folder = Folder::new();
    let (mut run, mut input) = start(&folder, &["--shutdown-timeout", "60s"], &STUBBORN);
    ask(&mut run, &mut input, "limit 2");
    until("executors", || {
        folder.0.join("sandboxes").exists() && folder.outputs() == ["up\n", "up\n"]
    });
    input.write_all(b"stop\n").unwrap();
    run.event_named("stopping");
    let since = Instant::now();
    drop(input);
    let summary = run.event_named("summary");
    assert!(since.elapsed() < GONE_WITHIN, "{:?}", since.elapsed());
    let executors = summary["executors"].as_array().unwrap();
    let states: Vec<&Value> = executors.iter().map(|it| &it["state"]).collect();
    assert_eq!((states, &summary["exit_code"]), (vec![&json!("killed_by_force"); 2], &json!(3)));
    assert_eq!(run.end().code, Some(3));
    folder.assert_deserted();
}

/// Goal: a reader that closes standard output is noticed without a write. Method: close it when the run is idle, long
/// before it writes again; standard input stays open.
#[test]
fn closed_output_is_noticed_at_once() {
    let folder = Folder::new();
    let mut child =
        offermill(&folder.0, &arguments(&["sleep", "1000"])).stdin(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"registered\"") {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0);
    }
    sleep(Duration::from_millis(500));
    let since = Instant::now();
    drop(output);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(since.elapsed() < GONE_WITHIN, "{:?}", since.elapsed());
    drop(input);
}

/// Goal: a parent that is killed takes the run along even if other processes keep its ends of the pipes open. Method: a
/// shell, which is killed, between this process, which keeps them, and the run; executors that ignore SIGTERM.
#[test]
fn a_killed_parent_whose_pipes_stay_open_takes_the_run_along() {
    let folder = Folder::new();
    let mut shell = Command::new("sh")
        .args(["-c", "\"$@\"; exit", "parent", env!("CARGO_BIN_EXE_offermill")])
        .args(arguments(&STUBBORN))
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    let id = shell.id();
    let mut run = Run::watch(shell);
    ask(&mut run, &mut input, "limit 2");
    until("executors", || {
        folder.0.join("sandboxes").exists() && folder.outputs() == ["up\n", "up\n"]
    });
    let since = Instant::now();
    send_signal("KILL", id);
    let summary = run.event_named("summary");
    assert_eq!(
        summary["ending"].as_str().unwrap().split(';').next(),
        Some("the parent program has ended")
    );
    folder.assert_deserted();
    assert!(since.elapsed() < GONE_WITHIN, "{:?}", since.elapsed());
    drop(input);
}
