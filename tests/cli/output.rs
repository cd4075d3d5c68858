//! Tests of the output of runs: JSON, readers that close the pipe, help and completions.

use std::io::{BufRead, BufReader};

use crate::support::{Folder, Run, finish, offermill, small};

/// Goal: every line of `--json` is one object with the common keys, and the last one is the summary. Method: a run with
/// failures, replacements and an exclusion.
#[test]
fn every_line_is_an_object() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[3,4,128]", "--num-executors", "6", "--until-finished"];
    let script = "[ {{HOSTNAME}} != agent-1 ] || exit 3; sleep 1";
    let ended = finish(&folder, &small(&[&flags[..], &["--json"]].concat(), &["sh", "-c", script]));
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let events = ended.events();
    for event in &events {
        assert!(event["event"].is_string() && event["at_ms"].is_u64(), "{event}");
        assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
    }
    for name in ["started", "registered", "placed", "running", "ended", "excluded", "stopping"] {
        assert!(events.iter().any(|event| event["event"] == name), "{name}");
    }
    let summary = events.last().unwrap();
    assert_eq!(summary["event"], "summary");
    let finished = |state: &str| {
        let executors = summary["executors"].as_array().unwrap();
        executors.iter().filter(|executor| executor["state"] == state).count()
    };
    assert_eq!(finished("finished"), 6);
    assert!(finished("failed") >= 2);
    let offers = &summary["offers"];
    let declined: u64 =
        offers["declined"].as_object().unwrap().values().map(|it| it.as_u64().unwrap()).sum();
    assert_eq!(offers["seen"].as_u64().unwrap(), offers["accepted"].as_u64().unwrap() + declined);
}

/// Goal: if its reader closes the pipe, a run ends in an orderly way, and the reader has received whole lines. Method:
/// read a few lines of an endless run, as `head` does.
#[test]
fn a_closed_pipe_drains() {
    for format in [&[][..], &["--json"]] {
        let folder = Folder::new();
        let flags = ["--master", "local-cluster[2,2,64]", "--num-executors", "3"];
        let arguments = small(&[&flags[..], format].concat(), &["sleep", "0.1"]);
        let mut child = offermill(&folder.0, &arguments).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        for _ in 0..5 {
            line.clear();
            reader.read_line(&mut line).unwrap();
            assert!(line.ends_with('\n'), "{line:?}");
        }
        drop(reader);
        let ended = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
        folder.assert_deserted();
    }
}

/// Goal: a run with `--until-finished` whose reader closes the pipe ends in an orderly way and exits with the code for
/// not finished. Method: read a line of a run whose executors don't end.
#[test]
fn a_closed_pipe_is_no_success() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[1,2,64]", "--num-executors", "2", "--until-finished"];
    let command = ["sh", "-c", "sleep 1; [ {{HOSTNAME}} = x ]"];
    let mut child = offermill(&folder.0, &small(&flags, &command)).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ended = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{errors}");
    assert!(errors.contains("was closed, 2 of 2 executors had not finished"), "{errors}");
    folder.assert_deserted();
}

/// Goal: a run goes on to its end if its output can't be written. Method: write to a device that is always full.
#[test]
fn a_full_disk_does_not_end_a_run() {
    let folder = Folder::new();
    let flags = ["--num-executors", "2", "--until-finished"];
    let mut command = offermill(&folder.0, &small(&flags, &["echo", "done"]));
    command.stdout(std::fs::File::create("/dev/full").unwrap());
    let ended = command.spawn().unwrap().wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{errors}");
    assert_eq!(errors.matches("standard output can't be written: ").count(), 1, "{errors}");
    assert_eq!(folder.outputs(), ["done\n", "done\n"]);
}

/// Goal: the reason why executors can't be placed is printed once, and again at the end. Method: agents with room for
/// one and a half executors; output in lines.
#[test]
fn a_run_that_waits_says_why() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[2,3,64]", "--num-executors", "3"];
    let flags = [&flags[..], &["--executor-cores", "2", "--plain"]].concat();
    let mut run = Run::start(&folder, &small(&flags, &["sleep", "1000"]));
    let why = "  waiting for 1 more executor: too few cores (agent-";
    // On a busy machine the run may wait for offers before that.
    let waits = run.line(|line| line.contains(why));
    assert!(waits.ends_with(": 1 of 2 cores)"), "{waits}");
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert_eq!(ended.output.matches(why).count(), 1, "{}", ended.output);
    let at_end = "at the end waiting for 1 more executor: too few cores (agent-";
    assert!(ended.output.contains(at_end), "{}", ended.output);
    let declined = ended.output.lines().find(|line| line.starts_with("declined "));
    assert!(declined.is_some_and(|line| line.contains(" too few cores, nearest agent-")));
}

/// Goal: JSON contains the reason for waiting as numbers. Method: executors fail on all agents, which are excluded;
/// check the event and the summary.
#[test]
fn a_run_that_waits_says_why_in_json() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[2,1,64]", "--num-executors", "2", "--json"];
    let flags = [&flags[..], &["--exclude-after", "1", "--exclude-for", "5m"]].concat();
    let command = ["sh", "-c", "sleep 0.1; exit 3"];
    let mut run = Run::start(&folder, &small(&flags, &command));
    let waiting = run.event_named("waiting");
    assert_eq!((&waiting["wanted"], &waiting["agents_excluded"]), (&2.into(), &2.into()));
    let miss = waiting["nearest_misses"].as_array().unwrap().last().unwrap();
    assert_eq!(miss["reason"], "agent_excluded", "{waiting}");
    assert_eq!(miss["why"], "excluded for 5 min more");
    assert!(miss["host"].as_str().unwrap().starts_with("agent-"), "{miss}");
    let until = waiting["first_exclusion_ends_ms"].as_u64().unwrap();
    assert!(until > waiting["at_ms"].as_u64().unwrap());
    run.signal("TERM");
    let ended = run.end();
    let events = ended.events();
    let summary = events.last().unwrap();
    assert_eq!(summary["waiting"]["wanted"], 2, "{summary}");
    assert_eq!(summary["nearest_misses"][0]["reason"], "agent_excluded");
}

/// Goal: completions are printed for each shell, and other names are rejected. Method: request them.
#[test]
fn shells_get_completions() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = finish(&folder, &["completions", shell]);
        assert_eq!(ended.code, Some(0));
        assert!(ended.output.contains("until-finished"), "{shell}");
    }
    assert_eq!(finish(&folder, &["completions", "csh"]).code, Some(2));
}

/// Goal: completions that can't be written are an error. Method: a full disk, and a closed pipe, which is none.
#[cfg(target_os = "linux")]
#[test]
fn completions_that_cannot_be_written_are_an_error() {
    let folder = Folder::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = offermill(&folder.0, &["completions", "bash"]).stdout(full).output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{errors}");
    assert!(errors.contains("standard output can't be written: "), "{errors}");
    let mut child = offermill(&folder.0, &["completions", "bash"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Goal: the help lists the exit codes and examples; the long help lists the keys. Method: print both.
#[test]
fn the_help_is_complete() {
    let folder = Folder::new();
    for arguments in [&["--help"][..], &["run", "-h"], &["run", "--help"]] {
        let help = finish(&folder, arguments);
        assert_eq!(help.code, Some(0));
        assert!(help.output.contains("Examples:") && help.output.contains("Exit codes:"));
        assert!(help.output.lines().all(|line| line.chars().count() <= 100));
    }
    let help = finish(&folder, &["run", "--help"]).output;
    assert!(help.contains("spark.mesos.coarse.shutdownTimeout, --shutdown-timeout"), "{help}");
}
