//! Tests of hosts for tasks: `offermill run --tasks FILE --task-hosts`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::eventually::eventually;
use crate::support::{Folder, Run, finish, send_signal};

/// Far longer than any step here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two agents of two cores and 128 MiB; hosts of 0.1 cores and 16 MiB, tasks of 0.4 cores and 16 MiB.
const FLAGS: [&str; 17] = [
    "run",
    "--master",
    "local-cluster[2,2,128]",
    "--task-cores",
    "0.4",
    "--task-memory",
    "16m",
    "--task-hosts",
    "--host-cores",
    "0.1",
    "--host-memory",
    "16m",
    "--shutdown-timeout",
    "3s",
    "--json",
    "--tasks",
    "tasks",
];

fn flags<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&FLAGS[..], more].concat()
}

/// All lines of the results file.
fn results(folder: &Folder) -> Vec<Value> {
    let text = fs::read_to_string(folder.0.join("tasks.results")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn wait_until(is_so: impl Fn() -> bool) {
    eventually(PATIENCE, "the state", || is_so().then_some(()).ok_or_else(|| "not yet".to_owned()));
}

/// The processes of hosts that work below this folder.
fn hosts_in(folder: &Path) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let is_host = |entry: &fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let cwd = fs::read_link(entry.path().join("cwd"));
        line.ends_with(b"\0task-host\0") && cwd.is_ok_and(|cwd| cwd.starts_with(folder))
    };
    let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    all.filter(is_host).filter_map(pid).collect()
}

/// Goal: a host that is killed in the middle loses nothing, and nothing runs twice unnoticed. Method: 400 tasks, each
/// of which writes down that it begins and ends; a host gets SIGKILL, the tasks in it are lost and run again. Each has
/// succeeded in the end, without a failure, and each attempt that began and didn't end is on record as lost.
#[test]
#[cfg(target_os = "linux")]
fn a_killed_host_loses_nothing() {
    let folder = Folder::new();
    let line = "echo begin $OFFERMILL_TASK_ID $OFFERMILL_TASK_ATTEMPT >>$LOG; sleep 0.05; \
                echo end $OFFERMILL_TASK_ID $OFFERMILL_TASK_ATTEMPT >>$LOG\n";
    folder.write("tasks", &line.repeat(400));
    let log = folder.0.join("log");
    let variable = format!("LOG={}", log.display());
    let run = Run::start(&folder, &flags(&["--env", &variable]));
    let ended = || fs::read_to_string(&log).map_or(0, |log| log.matches("end ").count());
    wait_until(|| ended() >= 40);
    send_signal("KILL", hosts_in(&folder.0)[0]);
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let lines = results(&folder);
    let of = |state: &str| -> Vec<(String, u64)> {
        let is_it = |line: &&Value| line["state"] == state;
        let key = |line: &Value| {
            (line["id"].as_str().unwrap().to_owned(), line["attempts"].as_u64().unwrap())
        };
        lines.iter().filter(is_it).map(key).collect()
    };
    let (succeeded, lost) = (of("succeeded"), of("lost"));
    let ids: BTreeSet<&str> = succeeded.iter().map(|(id, _)| &**id).collect();
    assert_eq!((succeeded.len(), ids.len()), (400, 400));
    assert!(!lost.is_empty() && of("retried").is_empty(), "{lost:?}");
    for line in lines.iter().filter(|line| line["state"] == "lost") {
        let reason = line["reason"].as_str().unwrap();
        // Those that were in it, and those that were about to be.
        let ends = ["is gone: killed by signal 9 (SIGKILL)", "has ended, or is about to"];
        let is_expected = ends.iter().any(|end| reason.ends_with(end));
        assert!(reason.starts_with("its host ") && is_expected, "{reason}");
    }
    let mut seen: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for line in fs::read_to_string(&log).unwrap().lines() {
        let [what, id, attempt] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        *seen.entry((id.to_owned(), attempt.parse().unwrap())).or_default() +=
            if what == "begin" { 1 } else { 1000 };
    }
    for (attempt, marks) in &seen {
        match marks {
            1001 => {}
            1 => assert!(lost.contains(attempt), "{attempt:?} broke off, which nobody says"),
            _ => panic!("{attempt:?} began or ended twice: {marks}"),
        }
    }
    for attempt in &succeeded {
        assert_eq!(seen.get(attempt), Some(&1001), "{attempt:?}");
    }
    folder.assert_deserted();
}

/// The signals of a machine's shutdown, but for SIGHUP if the tests were started with `nohup`: what is ignored is left
/// so.
#[cfg(target_os = "linux")]
fn shutdown_signals() -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    if ignored & 1 == 0 { vec!["INT", "TERM", "HUP"] } else { vec!["INT", "TERM"] }
}

/// Goal: the signals of a machine's shutdown end no host, and tasks have their default actions. Method: each to all
/// hosts while tasks wait; these then send them to a shell of their own, which must end of it.
#[test]
#[cfg(target_os = "linux")]
fn signals_end_tasks_but_no_host() {
    let (folder, signals) = (Folder::new(), shutdown_signals());
    let line = "touch begun-$OFFERMILL_TASK_ID; until [ -e go ]; do sleep 0.05; done; \
                for signal in SIGNALS; do sh -c \"kill -$signal \\$\\$; sleep 9\" && exit 1; done; true\n";
    let line = line.replace("begun-", &format!("{}/begun-", folder.0.display()));
    let line = line.replace("SIGNALS", &signals.join(" "));
    folder
        .write("tasks", &line.replace("-e go", &format!("-e {}/go", folder.0.display())).repeat(4));
    let run = Run::start(&folder, &flags(&[]));
    let begun = || {
        let names = fs::read_dir(&folder.0).unwrap().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_str().is_some_and(|it| it.starts_with("begun-"))).count()
    };
    wait_until(|| begun() == 4);
    for host in hosts_in(&folder.0) {
        signals.iter().for_each(|signal| send_signal(signal, host));
    }
    folder.write("go", "");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let lines = results(&folder);
    let succeeded: Vec<_> = lines.iter().filter(|line| line["state"] == "succeeded").collect();
    assert_eq!(succeeded.len(), 4);
    assert!(succeeded.iter().all(|line| line["attempts"] == 1), "{succeeded:?}");
}

/// Goal: a host serves many tasks, is ended when it has been idle, and another one is added for tasks that come later;
/// each task has its output and exit code. Method: a task, one that waits for a sleep on another agent, and a short
/// time-out; how many hosts were placed, and what failed.
#[test]
fn idle_hosts_end_and_come_back() {
    let folder = Folder::new();
    let text = [
        r#"{"id": "first", "command": "echo one"}"#,
        r#"{"id": "slow", "command": "sleep 3", "cores": 1.9}"#,
        r#"{"id": "bad", "command": "echo two; exit 7"}"#,
        r#"{"id": "last", "command": "echo three", "after": "slow"}"#,
    ];
    folder.write("tasks", &text.join("\n"));
    let ended = finish(&folder, &flags(&["--host-idle-timeout", "300ms"]));
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    let lines = results(&folder);
    let last = |id: &str| lines.iter().rfind(|line| line["id"] == id).unwrap();
    for (id, code, output) in [("first", 0, "one\n"), ("bad", 7, "two\n"), ("last", 0, "three\n")] {
        let line = last(id);
        assert_eq!(line["exit_code"], code, "{line}");
        assert_eq!(fs::read_to_string(line["output"].as_str().unwrap()).unwrap(), output);
    }
    assert_eq!(last("bad")["reason"], "exit code 7");
    assert_eq!(last("slow")["state"], "succeeded");
    folder.assert_deserted();
}

/// Goal: hosts and their tasks end with the program, even if that is killed. Method: tasks that sleep, one of them in a
/// session of its own; the program gets SIGKILL. Then the run is resumed, and stopped by a signal.
#[test]
#[cfg(target_os = "linux")]
fn hosts_never_outlive_the_run() {
    let folder = Folder::new();
    let line = "echo begun >>$LOG; setsid sleep 600 & sleep 600\n";
    folder.write("tasks", &line.repeat(4));
    let log = folder.0.join("log");
    let variable = format!("LOG={}", log.display());
    let begun = || fs::read_to_string(&log).map_or(0, |log| log.lines().count());
    let run = Run::start(&folder, &flags(&["--env", &variable]));
    wait_until(|| begun() == 4);
    run.signal("KILL");
    run.end();
    folder.assert_deserted();
    let run = Run::start(&folder, &flags(&["--env", &variable, "--resume"]));
    wait_until(|| begun() == 8);
    run.signal("TERM");
    let ended = run.end();
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    let stopped = results(&folder).iter().filter(|line| line["state"] == "stopped").count();
    assert_eq!(stopped, 4);
    folder.assert_deserted();
}

/// Goal: a setting of hosts that makes no sense is refused before anything starts. Method: no tasks, no hosts, another
/// cluster, a shell around the command, numbers out of bounds, and a task that has no room beside its host.
#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    folder.write("tasks", "true\n");
    folder.write("large", "{\"command\": \"true\", \"cores\": 2}\n");
    let local = ["run", "--master", "local-cluster[1,2,64]", "--task-memory", "16m"];
    let mesos = |master: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        [&["run", "--master", master, "--tasks", "tasks", "--task-hosts"], more].concat()
    };
    let kubernetes = ["run", "--master", "k8s://", "--tasks", "tasks", "--task-hosts"];
    let with = |more: &[&'static str]| -> Vec<&'static str> { [&local[..], more].concat() };
    let hosts =
        |more: &[&'static str]| with(&[&["--tasks", "tasks", "--task-hosts"], more].concat());
    let cases = [
        (with(&["--task-hosts", "--", "true"]), "--task-hosts is for tasks: it needs --tasks FILE"),
        (
            with(&["--tasks", "tasks", "--host-cores", "1"]),
            "--host-cores is for hosts: it needs --task-hosts",
        ),
        (
            mesos("offermill://127.0.0.1:1", &["--host-program", "http://h/offermill"]),
            "--host-program: workers of a standalone master fetch no files",
        ),
        (
            mesos("mesos://127.0.0.1:1", &["--host-program", "http://h/"]),
            "--host-program: \"http://h/\" names no file",
        ),
        (mesos("mesos://127.0.0.1:1", &["--host-program", ""]), "--host-program: it is empty"),
        (
            hosts(&["--host-program", "x"]),
            "--host-program is for Mesos and a standalone master: hosts",
        ),
        (
            with(&["--tasks", "tasks", "--host-program", "x"]),
            "--host-program is for hosts: it needs --task-hosts",
        ),
        (kubernetes.to_vec(), "--task-hosts is for local agents, Mesos and a standalone master"),
        (kubernetes.to_vec(), "Kubernetes places pods itself"),
        (hosts(&["--host-cores", "0"]), "--host-cores: it "),
        (hosts(&["--num-executors", "1"]), "--num-executors is 1, but a task and its host are two"),
        (hosts(&["--host-memory", "much"]), "--host-memory: it "),
        (hosts(&["--host-idle-timeout", "soon"]), "--host-idle-timeout is \"soon\""),
        (
            with(&["--tasks", "large", "--task-hosts"]),
            "task 1 takes 2 cores and 16 MiB; an agent of local-cluster[1,2,64] has 1.9 cores and \
             32 MiB beside its host",
        ),
    ];
    for (arguments, sentence) in cases {
        let ended = finish(&folder, &arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.errors);
        assert!(ended.errors.contains(sentence), "{sentence}: {}", ended.errors);
    }
    let by_hand = Command::new(env!("CARGO_BIN_EXE_offermill"))
        .arg("task-host")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(by_hand.status.code(), Some(2));
    let said = String::from_utf8(by_hand.stderr).unwrap();
    assert_eq!(said, "offermill: a host of tasks is started by a cluster, not by hand\n");
}

/// Goal: hosts of data aren't waited for while tasks run in hosts, since an agent takes one executor meanwhile and none
/// would start: the command is refused with a sentence, and the tasks run. Method: the command, and tasks after it.
#[test]
fn no_hosts_are_waited_for() {
    let folder = Folder::new();
    folder.write("tasks", "while ! [ -e \"$FOLDER/gate\" ]; do sleep 0.02; done\ntrue\n");
    let variable = format!("FOLDER={}", folder.0.display());
    let more = ["--control", "control", "--env", &variable, "-c", "spark.locality.wait=1h"];
    let mut run = Run::start(&folder, &flags(&more));
    run.event_named("registered");
    let (code, text) = folder.ctl(&["locality", "agent-1=3"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("a task and its host are two (--task-hosts)"), "{text}");
    folder.write("gate", "");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
}
