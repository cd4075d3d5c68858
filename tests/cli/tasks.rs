//! Tests of tasks: `offermill run --tasks`.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::eventually::eventually;
use crate::standalone::RunningMaster;
use crate::support::{Ended, Folder, Run, finish, send_signal};

/// Far longer than any step here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two agents of two cores and 64 MiB, and tasks of one core and 16 MiB.
const FLAGS: [&str; 8] = [
    "run",
    "--master",
    "local-cluster[2,2,64]",
    "--task-memory",
    "16m",
    "--shutdown-timeout",
    "3s",
    "--tasks",
];

fn flags<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&FLAGS[..], &[file], more].concat()
}

fn run_tasks(folder: &Folder, text: &str, more: &[&str]) -> Ended {
    folder.write("tasks", text);
    finish(folder, &flags("tasks", more))
}

/// All lines of the results file.
fn results(folder: &Folder) -> Vec<Value> {
    let text = fs::read_to_string(folder.0.join("tasks.results")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The last state of each task.
fn states(folder: &Folder) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    results(folder).iter().map(|line| (text(&line["id"]), text(&line["state"]))).collect()
}

/// How often each task was started.
fn starts(folder: &Folder, id: &str) -> usize {
    let is_start = |line: &&Value| line["state"] == "started" && line["id"] == id;
    results(folder).iter().filter(is_start).count()
}

fn wait_until(is_so: impl Fn() -> bool) {
    eventually(PATIENCE, "the state", || is_so().then_some(()).ok_or_else(|| "not yet".to_owned()));
}

/// Goal: all tasks of a file run once, whatever their sizes, and the results say where their output is. Method: thirty
/// commands, and one object with variables, of which one would hide the task's id, and doesn't.
#[test]
fn all_tasks_succeed() {
    let folder = Folder::new();
    let mut text: String = (1..=30).map(|number| format!("echo number {number}\n")).collect();
    text.push_str(
        r#"{"id": "own", "command": ["sh", "-c", "echo $A $OFFERMILL_TASK_ID $OFFERMILL_TASK_ATTEMPT"],
            "cores": 0.5, "memory": "32m", "env": {"A": "b c", "OFFERMILL_TASK_ID": "x"}}"#
            .replace('\n', "")
            .as_str(),
    );
    let ended = run_tasks(&folder, &text, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert!(ended.output.contains("all 31 tasks have succeeded (exit code 0)"), "{}", ended.output);
    let lines = results(&folder);
    assert_eq!(lines.len(), 62);
    let last = |id: &str| lines.iter().rfind(|line| line["id"] == id).unwrap();
    for number in 1..=30 {
        let line = last(&number.to_string());
        assert_eq!((&line["state"], &line["exit_code"]), (&"succeeded".into(), &0.into()));
        let output = fs::read_to_string(line["output"].as_str().unwrap()).unwrap();
        assert_eq!(output, format!("number {number}\n"));
        assert!(line["agent"].as_str().unwrap().starts_with("agent-"), "{line}");
        assert!(line["started"].as_str() <= line["ended"].as_str(), "{line}");
    }
    let output = fs::read_to_string(last("own")["output"].as_str().unwrap()).unwrap();
    assert_eq!(output, "b c own 1\n");
    folder.assert_deserted();
}

/// Goal: a failed task is started again as often as it may be, those after one that failed are skipped, the others run,
/// and the exit code says it. Method: a task that succeeds the second time, one that never does, and a chain after it.
#[test]
fn failures_are_retried_and_told() {
    let folder = Folder::new();
    let text = [
        r#"{"id": "last", "command": "true", "after": ["middle", "good"]}"#,
        r#"{"id": "middle", "command": "true", "after": "bad"}"#,
        r#"{"id": "bad", "command": "exit 7", "retries": 2}"#,
        r#"{"id": "good", "command": "[ $OFFERMILL_TASK_ATTEMPT = 2 ]"}"#,
        r#"{"id": "next", "command": "true", "after": "good"}"#,
    ];
    let ended = run_tasks(&folder, &text.join("\n"), &["--task-retries", "1"]);
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    for expected in [
        "task bad failed on agent-",
        " after 2 attempts and is started again: exit code 7; output in /",
        "after 3 attempts: exit code 7; output in /",
        "task middle is skipped: it is after bad, which failed",
        "task last is skipped: it is after middle, which was skipped",
        "of 5 tasks 1 failed, 2 skipped (exit code 1)",
    ] {
        assert!(ended.output.contains(expected), "{expected}: {}", ended.output);
    }
    let states = states(&folder);
    let states: Vec<(&str, &str)> = states.iter().map(|(id, state)| (&**id, &**state)).collect();
    let expected = [
        ("bad", "failed"),
        ("good", "succeeded"),
        ("last", "skipped"),
        ("middle", "skipped"),
        ("next", "succeeded"),
    ];
    assert_eq!(states, expected);
    assert_eq!((starts(&folder, "bad"), starts(&folder, "good")), (3, 2));
    let lines = results(&folder);
    let place = |id: &str, state: &str| {
        lines.iter().position(|line| line["id"] == id && line["state"] == state).unwrap()
    };
    assert!(place("good", "succeeded") < place("next", "started"));
}

/// Goal: Ctrl-C ends tasks in flight within the shutdown timeout, and a later run with `--resume` starts them and the
/// rest, and no task that has succeeded. Without `--resume` nothing is started. Method: quick tasks, then long ones.
#[test]
fn a_stopped_run_is_resumed() {
    let folder = Folder::new();
    let text = "true\ntrue\n[ -e go ] || sleep 1000\n[ -e go ] || sleep 1000\ntrue\ntrue\n"
        .replace("go", folder.0.join("go").to_str().unwrap());
    folder.write("tasks", &text);
    let one = ["--json", "--num-executors", "2"];
    let mut run = Run::start(&folder, &flags("tasks", &one));
    for _ in 0..2 {
        assert_eq!(run.event_named("task")["state"], "succeeded");
    }
    let started = || results(&folder).iter().filter(|line| line["state"] == "started").count();
    wait_until(|| started() >= 4);
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    folder.assert_deserted();
    let of = |id: &str| states(&folder)[id].clone();
    assert_eq!(
        (of("1"), of("3"), of("4")),
        ("succeeded".into(), "stopped".into(), "stopped".into())
    );
    let refused = finish(&folder, &flags("tasks", &[]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.errors.contains("has results already; give --resume"), "{}", refused.errors);
    folder.write("go", "");
    let ended = finish(&folder, &flags("tasks", &["--resume"]));
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert!(
        ended.errors.contains("2 tasks had succeeded before and won't run again"),
        "{}",
        ended.errors
    );
    assert!(states(&folder).values().all(|state| state == "succeeded"));
    assert_eq!(["1", "2", "3", "4"].map(|id| starts(&folder, id)), [1, 1, 2, 2]);
    // Nothing is left to do.
    let ended = finish(&folder, &flags("tasks", &["--resume"]));
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert_eq!(["1", "6"].map(|id| starts(&folder, id)), [1, 1]);
}

/// Goal: after `kill -9` of the program its tasks end; a resumed run names those that were in flight and starts them
/// again, and no other that has succeeded. Method: kill it while two tasks run; one task was changed since.
#[test]
fn a_killed_run_is_resumed() {
    let folder = Folder::new();
    let long = format!("[ -e {0} ] || sleep 1000\n", folder.0.join("go").display());
    folder.write("tasks", &format!("true\ntrue\n{long}{long}"));
    let mut run = Run::start(&folder, &flags("tasks", &["--json"]));
    for _ in 0..2 {
        assert_eq!(run.event_named("task")["state"], "succeeded");
    }
    wait_until(|| results(&folder).len() >= 6);
    send_signal("KILL", run.id());
    let _killed = run.end();
    wait_until(|| folder.processes().is_empty());
    folder.write("go", "");
    folder.write("tasks", &format!("true\necho changed\n{long}{long}"));
    let ended = finish(&folder, &flags("tasks", &["--resume"]));
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    for expected in [
        "1 task had succeeded before and won't run again",
        "2 tasks may have run partly or whole when the former run broke off, and will run again: 3, 4",
        "1 task had succeeded before, but with another command or env, and will run again: 2",
    ] {
        assert!(ended.errors.contains(expected), "{expected}: {}", ended.errors);
    }
    assert_eq!(["1", "2", "3", "4"].map(|id| starts(&folder, id)), [1, 2, 2, 2]);
    assert!(states(&folder).values().all(|state| state == "succeeded"));
}

/// Goal: two runs never share a results file. Method: a second one while the first runs.
#[test]
fn results_belong_to_one_run() {
    let folder = Folder::new();
    folder.write("tasks", "sleep 1000\n");
    let run = Run::start(&folder, &flags("tasks", &["--json"]));
    let name = folder.0.join("tasks.results");
    wait_until(|| fs::metadata(&name).is_ok_and(|file| file.len() > 0));
    let refused = finish(&folder, &flags("tasks", &["--resume"]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.errors.contains("is in use by another run"), "{}", refused.errors);
    run.signal("TERM");
    assert_eq!(run.end().code, Some(1));
}

/// Goal: what can't be run is refused with one sentence that names the file and the line, before anything is started or
/// written. Method: one of each.
#[test]
fn bad_files_are_refused() {
    for (text, expected) in [
        ("", "tasks has no tasks"),
        ("true\n{\"command\": \"x\", \"cores\": 0}\n", "tasks, line 2: it has wrong cores"),
        ("{\"command\": \"x\", \"memory\": -5}", "tasks, line 1: it has wrong memory"),
        ("{\"command\": \"x\", \"color\": 1}", "unknown key \"color\""),
        (
            "{\"id\": \"a\", \"command\": \"x\", \"after\": \"b\"}",
            "it is after \"b\", which is the id of no task",
        ),
        (
            "{\"id\": \"1\", \"command\": \"x\"}\n{\"id\": 1, \"command\": \"x\"}",
            "line 2: the id \"1\" is that of line 1",
        ),
        (
            "{\"id\": \"a\", \"command\": \"x\", \"after\": \"b\"}\n\
             {\"id\": \"b\", \"command\": \"x\", \"after\": \"a\"}",
            "line 1: tasks wait for each other: \"a\" after \"b\" after \"a\"",
        ),
        (
            "true\n{\"command\": \"x\", \"cores\": 64}",
            "line 2: task 2 takes 64 cores and 16 MiB; an agent of local-cluster[2,2,64] has 2 cores and 64 MiB",
        ),
        ("{\"command\": \"x\", \"gpus\": 1}", "1 GPU; an agent of"),
        ("true\n{\"command\"", "line 2: it is no JSON object: it ends too early, at column 10"),
        ("{\"command\" 1}", "line 1: it is no JSON object: expected `:`, at column 12"),
    ] {
        let folder = Folder::new();
        let ended = run_tasks(&folder, text, &[]);
        assert_eq!(ended.code, Some(2), "{text}: {}{}", ended.output, ended.errors);
        assert!(ended.errors.contains(expected), "{expected}: {}", ended.errors);
        assert_eq!(ended.errors.lines().count(), 1, "{}", ended.errors);
        let left: Vec<_> =
            fs::read_dir(&folder.0).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "tasks"), "{left:?}");
    }
}

/// Goal: settings that contradict tasks are refused. Method: one of each.
#[test]
fn other_modes_are_refused() {
    let folder = Folder::new();
    folder.write("tasks", "true\n");
    folder.write("gpus", "{\"command\": \"true\", \"gpus\": 2}\n");
    for (more, expected) in [
        (&["--until-finished"][..], "--until-finished"),
        (&["--journal", "j"], "--journal"),
        (&["--executor-cores", "2"], "--executor-cores doesn't go with --tasks"),
        (&["-c", "spark.dynamicAllocation.enabled=true"], "tasks themselves are the load"),
        (&["--", "true"], "COMMAND"),
        (&["--master", "k8s://https://localhost:1"], "doesn't go with --tasks: Kubernetes"),
        (&["--results", "/nowhere/file"], "the results file /nowhere/file can't be used"),
        (&["--task-cores", "0"], "--task-cores: it has wrong cores"),
        (&["--placement-timeout", "soon"], "--placement-timeout is \"soon\""),
        (
            &["--num-executors", "0"],
            "--num-executors is \"0\", but must be at least 1 with --tasks",
        ),
        (
            &["--total-executor-cores", "0.5"],
            "line 1: it takes 1 core; --total-executor-cores is 0.5",
        ),
    ] {
        let ended = finish(&folder, &flags("tasks", more));
        assert_eq!(ended.code, Some(2), "{more:?}: {}{}", ended.output, ended.errors);
        assert!(ended.errors.contains(expected), "{expected}: {}", ended.errors);
        let mistakes = ended.errors.lines().filter(|line| line.starts_with("offermill: ")).count();
        // Runs on Kubernetes need more than the other cases have.
        assert!(mistakes <= 1 || expected.ends_with("Kubernetes"), "{}", ended.errors);
    }
    let ended = finish(&folder, &flags("gpus", &["-c", "spark.mesos.gpus.max=1"]));
    let expected = "gpus, line 1: it takes 2 GPUs; spark.mesos.gpus.max is 1";
    assert!(ended.errors.contains(expected), "{}", ended.errors);
    let ended = finish(&folder, &flags("-", &[]));
    assert!(ended.errors.contains("--tasks - needs --results FILE"), "{}", ended.errors);
    let ended = finish(&folder, &["run", "--resume", "--", "true"]);
    assert_eq!(ended.code, Some(2), "{}", ended.output);
}

/// Goal: tasks run on a standalone cluster as they do on local agents, and one that fits on no agent and isn't to wait
/// fails with the nearest. Method: a master and a worker of two cores; twenty tasks, a chain, and a task of 64 cores.
#[test]
fn tasks_run_on_a_standalone_cluster() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let url = format!("http://127.0.0.1:{}", master.port);
    let worker = ["worker", "--master", &url, "--work-dir", "worker", "--cores", "2", "--memory"];
    let worker = Run::start(&folder, &[&worker[..], &["1g"]].concat());
    let mut text: String = (1..=20).map(|number| format!("echo {number}\n")).collect();
    text.push_str("{\"id\": \"big\", \"command\": \"true\", \"cores\": 64}\n");
    text.push_str("{\"id\": \"chain\", \"command\": \"echo end\", \"after\": [\"1\", \"20\"]}\n");
    folder.write("tasks", &text);
    let id = std::process::Command::new("id").arg("-un").output().unwrap();
    let user = format!("offermill.mesos.user={}", String::from_utf8(id.stdout).unwrap().trim());
    let url = url.replace("http", "offermill");
    let more = ["--master", &url, "-c", &user, "--placement-timeout", "0s"];
    let ended = finish(&folder, &flags("tasks", &more));
    assert_eq!(ended.code, Some(1), "{}{}", ended.output, ended.errors);
    let expected = "task big failed: it fits on no agent that makes offers: it takes 64 cores and 16 MiB; the \
                    nearest agent, ";
    assert!(ended.output.contains(expected), "{}", ended.output);
    assert!(
        ended.output.contains(", has 2 cores and 1024 MiB, and lacks 62 cores"),
        "{}",
        ended.output
    );
    let mut states = states(&folder);
    assert_eq!(states.remove("big").as_deref(), Some("failed"));
    assert!(states.len() == 21 && states.values().all(|state| state == "succeeded"), "{states:?}");
    let lines = results(&folder);
    let chain = lines.iter().rfind(|line| line["id"] == "chain").unwrap();
    let output = chain["output"].as_str().unwrap();
    let output = fs::read_to_string(folder.0.join("worker").join(output)).unwrap();
    assert_eq!(output, "end\n");
    worker.signal("TERM");
    let _ended = worker.end();
    master.run.signal("TERM");
    let _ended = master.run.end();
}

/// Goal: a task for which another run leaves no room waits, which a line and the status say, and runs once the other
/// run has ended; so does the task after it. Method: a worker of two cores, a run that takes 1.5 of them until it is
/// stopped, and one whose task takes one.
#[test]
fn a_task_waits_for_what_another_run_has() {
    let folder = Folder::new();
    let master = RunningMaster::start(&folder, "127.0.0.1:0", &[]);
    let url = format!("http://127.0.0.1:{}", master.port);
    let worker = ["worker", "--master", &url, "--work-dir", "worker", "--cores", "2", "--memory"];
    let worker = Run::start(&folder, &[&worker[..], &["1g"]].concat());
    let id = Command::new("id").arg("-un").output().unwrap();
    let user = format!("offermill.mesos.user={}", String::from_utf8(id.stdout).unwrap().trim());
    let url = url.replace("http", "offermill");
    let on = ["--master", &*url, "-c", &*user];
    let held = folder.0.join("held");
    let command = format!("touch {}; exec sleep 600", held.display());
    folder.write("other", &serde_json::json!({"command": command, "cores": 1.5}).to_string());
    let other = Run::start(&folder, &flags("other", &on));
    wait_until(|| held.exists());
    folder.write(
        "tasks",
        "{\"id\": \"wide\", \"command\": \"true\"}\n{\"id\": \"next\", \"command\": \"true\", \"after\": \"wide\"}\n",
    );
    let mut run =
        Run::start(&folder, &flags("tasks", &[&on[..], &["--control", "control"]].concat()));
    let line = run.line(|line| line.contains("task wide"));
    let why =
        "it fits on no agent that makes offers: it takes 1 core and 16 MiB; the nearest agent, ";
    assert!(line.contains(&format!("task wide waits: {why}")), "{line}");
    assert!(line.ends_with("and lacks 0.5 cores"), "{line}");
    let (code, status) = folder.ctl(&["status"]);
    assert!(code == Some(0) && status.contains(&format!("task wide: {why}")), "{status}");
    let (_, status) = folder.ctl(&["status", "json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["tasks_too_large"][0]["id"], "wide", "{status}");
    assert_eq!(starts(&folder, "wide"), 0);
    other.signal("TERM");
    let _ended = other.end();
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.output, ended.errors);
    assert!(states(&folder).values().all(|state| state == "succeeded"), "{}", ended.output);
    worker.signal("TERM");
    let _ended = worker.end();
    master.run.signal("TERM");
    let _ended = master.run.end();
}

/// Goal: if there is no room for results, the run ends with exit code 5, and the file has whole lines only, from which
/// a run resumes. Method: a limit of the size of files, below that of all results; then without it.
#[test]
fn a_full_disk_leaves_whole_results() {
    let folder = Folder::new();
    folder.write("tasks", &"true\n".repeat(60));
    let mut run = Command::new("bash");
    run.args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$@\"", "bash"]);
    run.arg(env!("CARGO_BIN_EXE_offermill")).args(flags("tasks", &[])).current_dir(&folder.0);
    let output = run.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(5), "{text}");
    assert!(text.contains("the results file can't be written: File too large"), "{text}");
    let before = fs::read_to_string(folder.0.join("tasks.results")).unwrap();
    assert!(before.ends_with('\n') && before.len() < 4096, "{before}");
    let ended = finish(&folder, &flags("tasks", &["--resume"]));
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    assert!(states(&folder).values().all(|state| state == "succeeded"));
    folder.assert_deserted();
}
