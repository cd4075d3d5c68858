//! Tests of the end of runs: in time, with the right exit code, and without processes left behind.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Folder, Run, small};

/// Executors that start a child process and then wait.
const WITH_CHILD: [&str; 3] = ["sh", "-c", "sleep 1000 & wait"];
/// Executors that ignore SIGTERM, as do their children.
const STUBBORN: [&str; 3] = ["sh", "-c", "trap '' TERM; sleep 1000 & while :; do sleep 1; done"];

fn start(folder: &Folder, flags: &[&str], command: &[&str]) -> Run {
    let all = ["--master", "local-cluster[3,2,64]", "--num-executors", "4"];
    let mut run = Run::start(folder, &small(&[&all[..], flags].concat(), command));
    for _ in 0..4 {
        run.line(|line| line.contains(" running on agent-"));
    }
    run
}

/// Goal: after Ctrl-C or SIGTERM, executors end and no process is left, including their children. Method: send both
/// signals.
#[test]
fn signals_drain() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let run = start(&folder, &[], &WITH_CHILD);
        run.signal(signal);
        let ended = run.end();
        assert_eq!(ended.code, Some(0), "{}", ended.output);
        let promise = "stopping: waiting up to 10 s for 4 executors, Ctrl-C again to end at once";
        assert!(ended.output.contains(promise), "{}", ended.output);
        assert!(ended.output.contains("offers     "), "{}", ended.output);
        folder.assert_deserted();
    }
}

/// Goal: executors that ignore SIGTERM are killed after the timeout, and the exit code says so. Method: such executors,
/// and a short timeout.
#[test]
fn the_shutdown_timeout_ends_the_stubborn() {
    let folder = Folder::new();
    let run = start(&folder, &["--shutdown-timeout", "300ms"], &STUBBORN);
    sleep(Duration::from_millis(200)); // until the traps are set
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(3), "{}", ended.output);
    assert!(ended.output.contains("4 executors had not ended in time and had to be killed"));
    folder.assert_deserted();
}

/// Goal: a second Ctrl-C ends the run at once and leaves no process. Method: executors that ignore SIGTERM, and a long
/// timeout.
#[test]
fn a_second_signal_ends_at_once() {
    let folder = Folder::new();
    let mut run = start(&folder, &["--shutdown-timeout", "1h"], &STUBBORN);
    sleep(Duration::from_millis(200)); // until the traps are set
    run.signal("INT");
    run.line(|line| line.contains("Ctrl-C again to end at once"));
    sleep(Duration::from_millis(400)); // or it would count as the same
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{}", ended.output);
    folder.assert_deserted();
}

/// Goal: no executor outlives a killed run. Method: SIGKILL, with executors that ignore SIGTERM.
#[test]
fn a_killed_run_leaves_no_executor() {
    let folder = Folder::new();
    let run = start(&folder, &[], &STUBBORN);
    assert!(folder.processes().len() >= 4);
    run.signal("KILL");
    assert_eq!(run.end().code, None);
    folder.assert_deserted();
}

/// Goal: no executor outlives a run if all processes named after the program are killed. Method: SIGKILL at once to
/// each process of the run whose command line has that name, as `pkill -9 -f` does.
#[test]
fn killing_all_by_its_name_leaves_no_executor() {
    let folder = Folder::new();
    let run = start(&folder, &[], &WITH_CHILD);
    let is_named = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("offermill")
    };
    let named: Vec<u32> = folder.processes().into_iter().filter(is_named).collect();
    assert!(!named.is_empty());
    let numbers: Vec<String> = named.iter().map(u32::to_string).collect();
    assert!(Command::new("kill").arg("-KILL").args(numbers).status().unwrap().success());
    assert_eq!(run.end().code, None);
    folder.assert_deserted();
}
