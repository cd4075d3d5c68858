//! Tests of journals: replaying them, secrets and failing writes.

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

/// The events of a journal with this key.
fn events(folder: &Folder, key: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.0.join("J")).unwrap();
    let events = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
    events.filter(|event: &Value| event.get(key).is_some()).collect()
}

/// Goal: the journal of a run with failures, an exclusion and a falling limit replays without differences, and a
/// changed journal doesn't. Method: an agent on which all executors fail; then replace each success by a failure.
#[test]
fn a_run_is_replayed() {
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

/// Goal: the journal of a run that is stopped by Ctrl-C replays up to the end, including kills. Method: kill one
/// executor's process before.
#[test]
fn a_stopped_run_is_replayed() {
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

/// Goal: the journal of a killed run replays up to its last whole line, and that expected answers are left is a
/// difference. Method: SIGKILL; then remove the journal's last bytes.
#[test]
fn a_killed_run_is_replayed_as_far_as_it_goes() {
    let folder = Folder::new();
    let mut run =
        Run::start(&folder, &small(&[&CLUSTER[..], &["--json"]].concat(), &["sleep", "1000"]));
    (0..6).for_each(|_| drop(run.event_named("running")));
    // The journal is flushed every second.
    sleep(Duration::from_millis(1_200));
    run.signal("KILL");
    assert_eq!(run.end().code, None);
    assert!(events(&folder, "status").len() >= 6);
    assert_alike(&folder);
    let journal = fs::read_to_string(folder.0.join("J")).unwrap();
    folder.write("J", &journal[..journal.len() - 9]);
    let replayed = replay(&folder);
    assert_eq!(replayed.code, Some(1), "{}{}", replayed.output, replayed.errors);
    assert!(replayed.output.contains("compared only up to where"), "{}", replayed.output);
    assert!(replayed.errors.contains("in the middle of this line"), "{}", replayed.errors);
    folder.assert_deserted();
}

/// Goal: a journal contains no secrets, and only its owner may read it. Method: a secret in a properties file, and
/// variables for executors.
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

/// Goal: a full disk is reported once and doesn't stop the run. Method: write the journal to a device that is always
/// full.
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

/// Goal: no file is overwritten, and a journal that can't be created is reported before the start. Method: existing
/// files of either name, an empty one, and a missing folder.
#[test]
fn nothing_is_written_over() {
    let folder = Folder::new();
    for (name, code) in [("J", 2), ("J.answers", 2)] {
        folder.write(name, "mine");
        let ended = finish(&folder, &small(&CLUSTER, &["true"]));
        assert_eq!(ended.code, Some(code), "{}", ended.errors);
        let told = format!("--journal: \"{name}\" exists and isn't empty");
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
    assert!(
        ended.errors.contains("--journal: \"nowhere/J\" can't be created: "),
        "{}",
        ended.errors
    );
}

/// Goal: two runs can't share a journal. Method: start a second run while the first has recorded little yet.
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

/// Goal: a rejected start leaves no journal behind. Method: a regular file in place of the control socket; invalid
/// names of journals.
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
