//! Runs are done again from their journals, and journals keep secrets.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Ended, Folder, Run, finish, process_of, send_signal, small};

const CLUSTER: [&str; 6] =
    ["--master", "local-cluster[3,2,64]", "--num-executors", "6", "--journal", "J"];

fn replay(folder: &Folder) -> Ended {
    finish(folder, &["replay", "J", "--expect", "J.answers"])
}

fn assert_alike(folder: &Folder) {
    let replayed = replay(folder);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.output, replayed.errors);
    assert!(replayed.output.contains("no difference"), "{}", replayed.output);
}

/// The events of a journal that have this key.
fn events(folder: &Folder, key: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.0.join("J")).unwrap();
    let events = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
    events.filter(|event: &Value| event.get(key).is_some()).collect()
}

/// Goal: a run with failures, an exclusion and a limit that falls is done again from its journal; a journal that was
/// changed is not. Method: an agent on which all fails; then a failure in place of each success.
#[test]
fn a_run_is_done_again() {
    let folder = Folder::new();
    let script = "[ {{HOSTNAME}} != agent-1 ] || exit 3; sleep 1";
    let ended = finish(
        &folder,
        &small(&[&CLUSTER[..], &["--until-finished"]].concat(), &["sh", "-c", script]),
    );
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert_alike(&folder);
    for (key, least) in [("offers", 1), ("status", 14), ("stop", 1), ("advance_ms", 1)] {
        assert!(events(&folder, key).len() >= least, "{key}");
    }
    let finished = events(&folder, "status");
    let counted = finished.iter().filter(|event| event["status"]["counts_down"] == true);
    assert!(counted.count() >= 6, "who finishes lowers the limit");
    let answers = fs::read_to_string(folder.0.join("J.answers")).unwrap();
    assert!(answers.contains("\"excluded\":{\"agent\":"), "{answers}");

    let journal = fs::read_to_string(folder.0.join("J")).unwrap();
    folder.write("J", &journal.replace("TASK_FINISHED", "TASK_FAILED"));
    assert_eq!(replay(&folder).code, Some(1));
}

/// Goal: a run that is stopped by Ctrl-C is done again up to the end, kills included. Method: one executor's process
/// is killed before.
#[test]
fn a_run_that_is_stopped_is_done_again() {
    let folder = Folder::new();
    let flags = [&CLUSTER[..], &["--json"]].concat();
    let mut run = Run::start(&folder, &small(&flags, &["sleep", "1000"]));
    let running: Vec<Value> = (0..6).map(|_| run.event_named("running")).collect();
    send_signal("KILL", process_of(&running[0]));
    run.event_named("ended");
    run.event_named("running");
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert_alike(&folder);
    let killed: usize =
        events(&folder, "kill").iter().map(|it| it["kill"].as_array().unwrap().len()).sum();
    assert_eq!(killed, 6);
    folder.assert_deserted();
}

/// Goal: what a killed run leaves behind is done again as far as it goes. Method: SIGKILL; then the journal without its
/// last bytes.
#[test]
fn a_run_that_is_killed_is_done_again_as_far_as_it_goes() {
    let folder = Folder::new();
    let mut run =
        Run::start(&folder, &small(&[&CLUSTER[..], &["--json"]].concat(), &["sleep", "1000"]));
    (0..6).for_each(|_| drop(run.event_named("running")));
    // What happened is in the files within a second.
    sleep(Duration::from_millis(1_200));
    run.signal("KILL");
    assert_eq!(run.end().code, None);
    assert!(events(&folder, "status").len() >= 6);
    assert_alike(&folder);
    let journal = fs::read_to_string(folder.0.join("J")).unwrap();
    folder.write("J", &journal[..journal.len() - 9]);
    let replayed = replay(&folder);
    assert_eq!(replayed.code, Some(0), "{}{}", replayed.output, replayed.errors);
    assert!(replayed.errors.contains("in the middle of this line"), "{}", replayed.errors);
    folder.assert_deserted();
}

/// Goal: a journal holds nothing that was entrusted to the run, and only its owner may read it. Method: a secret in a
/// file of settings, and variables for executors.
#[test]
fn a_journal_keeps_secrets() {
    const CANARY: &str = "c4n4ry";
    let folder = Folder::new();
    let settings = format!(
        "spark.mesos.secret {CANARY}\nspark.executorEnv.TOKEN {CANARY}\nspark.mesos.principal {CANARY}\n"
    );
    folder.write("settings", &settings);
    let variable = format!("PASSWORD={CANARY}");
    let more = ["--until-finished", "--properties-file", "settings", "--env", &variable];
    let ended = finish(&folder, &small(&[&CLUSTER[..], &more].concat(), &["echo", CANARY]));
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    for name in ["J", "J.answers"] {
        let path = folder.0.join(name);
        assert!(!fs::read_to_string(&path).unwrap().contains(CANARY), "{name}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_alike(&folder);
}

/// Goal: a full disk is told once and stops nothing. Method: the journal goes to a device that is always full.
#[test]
fn a_full_disk_is_told_once() {
    let folder = Folder::new();
    for name in ["J", "J.answers"] {
        symlink("/dev/full", folder.0.join(name)).unwrap();
    }
    let flags = [&CLUSTER[..], &["--until-finished"]].concat();
    let ended = finish(&folder, &small(&flags, &["sleep", "1"]));
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    let told = "the journal was given up: J: No space left on device";
    assert_eq!(ended.output.matches(told).count(), 1, "{}", ended.output);
}

/// Goal: nothing is written over, and what can't be made is told before anything starts. Method: files that are there,
/// of either name, an empty one, and a folder that isn't.
#[test]
fn nothing_is_written_over() {
    let folder = Folder::new();
    for (name, code) in [("J", 2), ("J.answers", 2)] {
        folder.write(name, "mine");
        let ended = finish(&folder, &small(&CLUSTER, &["true"]));
        assert_eq!(ended.code, Some(code), "{}", ended.errors);
        let told = format!("--journal: \"{name}\" is there already and isn't empty");
        assert!(ended.errors.contains(&told), "{}", ended.errors);
        assert_eq!(fs::read_to_string(folder.0.join(name)).unwrap(), "mine");
        fs::remove_file(folder.0.join(name)).unwrap();
    }
    folder.write("J", "");
    let ended = finish(&folder, &small(&[&CLUSTER[..], &["--until-finished"]].concat(), &["true"]));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert_alike(&folder);
    let flags = ["--master", "local-cluster[3,2,64]", "--journal", "nowhere/J"];
    let ended = finish(&folder, &small(&flags, &["true"]));
    assert_eq!(ended.code, Some(2), "{}", ended.errors);
    assert!(ended.errors.contains("--journal: \"nowhere/J\" can't be made: "), "{}", ended.errors);
}

/// Goal: two runs don't share a journal. Method: a second run while the first goes on, which doesn't record much yet.
#[test]
fn a_journal_has_one_run() {
    let folder = Folder::new();
    let mut first = Run::start(&folder, &small(&CLUSTER, &["sleep", "100"]));
    first.line(|line| line.contains(" running on "));
    let second = finish(&folder, &small(&CLUSTER, &["true"]));
    assert_eq!(second.code, Some(2), "{}", second.errors);
    assert!(second.errors.contains("--journal: \"J\" "), "{}", second.errors);
    first.signal("INT");
    assert_eq!(first.end().code, Some(0));
    assert_alike(&folder);
}

/// Goal: a start that is refused leaves no journal in the way of the next. Method: a control socket where a file is;
/// names that can't be a journal's.
#[test]
fn a_refused_start_leaves_no_journal() {
    let folder = Folder::new();
    folder.write("file", "mine");
    let refused =
        finish(&folder, &small(&[&CLUSTER[..], &["--control", "file"]].concat(), &["true"]));
    assert_eq!(refused.code, Some(2), "{}", refused.errors);
    assert!(!folder.0.join("J").exists() && !folder.0.join("J.answers").exists());
    fs::create_dir(folder.0.join("J.answers")).unwrap();
    let refused = finish(&folder, &small(&CLUSTER, &["true"]));
    assert_eq!(refused.code, Some(2), "{}", refused.errors);
    assert!(!folder.0.join("J").exists());
    let flags = ["--master", "local-cluster[3,2,64]", "--journal", "-"];
    let refused = finish(&folder, &small(&flags, &["true"]));
    assert_eq!(refused.code, Some(2), "{}", refused.errors);
    assert!(!folder.0.join("-").exists());
}
