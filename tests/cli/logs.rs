//! Tests of `offermill logs`.

use std::fs;
use std::io::{BufRead, BufReader};

use crate::support::{Ended, Folder, Run, finish, offermill, small};

const TWO_AGENTS: [&str; 3] = ["--json", "--master", "local-cluster[2,1,64]"];

fn logs(folder: &Folder, arguments: &[&str]) -> Ended {
    finish(folder, &[&["logs"], arguments].concat())
}

/// Runs two executors to their end. Returns their names.
fn run_to_the_end(folder: &Folder, script: &str) -> Vec<String> {
    let flags = [&TWO_AGENTS[..], &["--num-executors", "2", "--until-finished"]].concat();
    let ended = finish(folder, &small(&flags, &["sh", "-c", script]));
    let events = ended.events();
    let placed = events.iter().filter(|event| event["event"] == "placed");
    placed.map(|event| event["executor"].as_str().unwrap().to_owned()).collect()
}

/// Goal: the output of an executor is found by its name, by the end of its name and by its number, of the latest run
/// that has such a one, each stream where it belongs. Method: two runs; names in each form; each flag.
#[test]
fn the_output_of_an_executor_is_printed() {
    let folder = Folder::new();
    let former =
        run_to_the_end(&folder, "printf 'former\\033[2J %s\\n' \"$OFFERMILL_EXECUTOR_ID\"");
    let names = run_to_the_end(&folder, "echo \"out $OFFERMILL_EXECUTOR_ID\"; echo wrong >&2");
    let name = &*names[0];
    let end = name.rsplit('-').next().unwrap();
    let number = end.split('.').next().unwrap();
    for text in [name, end, number, &format!("…-{end}")] {
        let ended = logs(&folder, &[text]);
        let expected = (Some(0), format!("out {name}\n"), "wrong\n".to_owned());
        assert_eq!((ended.code, ended.output, ended.errors), expected, "{text}");
    }
    let only = |flag: &str| {
        let ended = logs(&folder, &[name, flag]);
        (ended.output, ended.errors)
    };
    assert_eq!(only("--stdout"), (format!("out {name}\n"), String::new()));
    assert_eq!(only("--stderr"), ("wrong\n".to_owned(), String::new()));
    // A program gets the bytes as they are.
    let of_former = logs(&folder, &[&former[1]]).output;
    assert_eq!(of_former, format!("former\u{1b}[2J {}\n", former[1]));
    let mut runs: Vec<String> = fs::read_dir(folder.0.join("sandboxes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    runs.sort();
    let of_run = logs(&folder, &["--run", &runs[0], "0"]).output;
    assert!(of_run.starts_with("former"), "{of_run}");
    let elsewhere = Folder::new();
    let work_dir = folder.0.to_str().unwrap();
    let ended = logs(&elsewhere, &["--work-dir", work_dir, number]);
    assert_eq!(ended.output, format!("out {name}\n"));
}

/// Goal: what can't be printed is said in one sentence, with code 2, and creates nothing. Method: no run, no such run,
/// no such executor, names that leave the folder, and files that are links or pipes.
#[test]
fn missing_output_is_told() {
    let folder = Folder::new();
    let refused = |arguments: &[&str], sentence: &str| {
        let ended = logs(&folder, arguments);
        assert_eq!((ended.code, &*ended.output), (Some(2), ""), "{arguments:?}");
        assert!(ended.errors.contains(sentence), "{arguments:?}: {}", ended.errors);
        assert_eq!(ended.errors.lines().count(), 1, "{}", ended.errors);
    };
    refused(&["0"], "no run has its sandboxes in .: give the run's --work-dir");
    assert!(!folder.0.join("sandboxes").exists());
    let names = run_to_the_end(&folder, "true");
    refused(&["7"], &format!("the latest one has {}", names[0]));
    refused(&["--run", "local-1-1", "0"], "there is no run \"local-1-1\"");
    refused(&["../../etc"], "no executor \"../../etc\"");
    refused(&["--run", "..", "0"], "there is no run \"..\"");
    let file = folder.outputs().len();
    assert_eq!(file, 2);
    let sandbox = folder.sandbox(&names[0]);
    fs::remove_file(sandbox.join("stdout")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", sandbox.join("stdout")).unwrap();
    refused(&[&names[0]], "stdout can't be read");
    let sandbox = folder.sandbox(&names[1]);
    fs::remove_file(sandbox.join("stderr")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(sandbox.join("stderr")).status();
    assert!(status.unwrap().success());
    refused(&["--stderr", &names[1]], "it is no regular file");
}

/// Goal: output is followed while an executor prints it, to its end. Method: an executor that prints a line, waits for
/// a file and prints another one; the file is made once the first line was followed.
#[test]
fn output_is_followed_to_the_end() {
    let folder = Folder::new();
    let go_on = folder.0.join("go-on");
    let script =
        format!("echo one; while ! [ -e {} ]; do sleep 0.05; done; echo two", go_on.display());
    let flags = [&TWO_AGENTS[..], &["--num-executors", "1", "--until-finished"]].concat();
    let mut run = Run::start(&folder, &small(&flags, &["sh", "-c", &script]));
    let running = run.event_named("running");
    let name = running["executor"].as_str().unwrap();
    let mut following = offermill(&folder.0, &["logs", "--follow", name]).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    fs::write(go_on, "").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "two");
    assert!(lines.next().is_none());
    assert!(following.wait().unwrap().success());
    assert_eq!(run.end().code, Some(0));
}
