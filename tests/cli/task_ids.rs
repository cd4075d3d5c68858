//! Tests of what users of `offermill run --tasks` see and say: ids of tasks, hosts, and the settings that count.

use std::fs;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::Value;

use crate::eventually::eventually;
use crate::support::{Ended, Folder, Run, finish, offermill};

/// Far longer than any step here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two agents of two cores, and small tasks; alone, and in hosts.
const ALONE: [&str; 9] = [
    "run",
    "--master",
    "local-cluster[2,2,128]",
    "--task-memory",
    "16m",
    "--task-cores",
    "0.5",
    "--tasks",
    "tasks",
];
const IN_HOSTS: [&str; 3] = ["--task-hosts", "--host-memory", "16m"];
const FORMS: [&[&str]; 2] = [&[], &IN_HOSTS];

fn flags<'a>(more: &[&[&'a str]]) -> Vec<&'a str> {
    [&ALONE[..], &more.concat()].concat()
}

fn logs(folder: &Folder, arguments: &[&str]) -> Ended {
    finish(folder, &[&["logs"], arguments].concat())
}

/// The executors of a task's attempts that have ended, the first one first.
fn executors(folder: &Folder, id: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.0.join("tasks.results")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = lines.filter(|line| line["id"] == id && line["ended"].is_string());
    ends.map(|line| line["executor"].as_str().unwrap().to_owned()).collect()
}

/// Goal: `offermill logs` knows tasks by their ids: the last attempt of the latest run that has started the task, also
/// if the id is an executor's number or has characters that no file name has; an executor's whole name means that
/// executor. What isn't there is told with what is. Method: tasks of such ids, one with a second attempt, one that is
/// skipped; a run that resumes; with and without hosts.
#[test]
fn output_is_found_by_the_ids_of_tasks() {
    for form in FORMS {
        let folder = Folder::new();
        let go = folder.0.join("go");
        let text = [
            r#"{"id": 2, "command": "echo two"}"#.to_owned(),
            r#"{"id": 1, "command": "echo one; echo wrong >&2", "after": 2}"#.to_owned(),
            r#"{"id": "a b/../c", "command": "echo odd"}"#.to_owned(),
            format!(
                r#"{{"id": "lint", "command": "echo $OFFERMILL_TASK_ATTEMPT; [ -e {} ]", "retries": 1}}"#,
                go.display()
            ),
            r#"{"id": "pack", "command": "echo packed", "after": "lint"}"#.to_owned(),
        ];
        folder.write("tasks", &text.join("\n"));
        assert_eq!(finish(&folder, &flags(&[form])).code, Some(1));
        let printed = |id: &str, expected: &str| {
            let ended = logs(&folder, &[id, "--stdout"]);
            assert_eq!((ended.code, &*ended.output), (Some(0), expected), "{id}: {}", ended.errors);
        };
        for (id, expected) in
            [("1", "one\n"), ("2", "two\n"), ("a b/../c", "odd\n"), ("lint", "2\n")]
        {
            printed(id, expected);
        }
        assert_eq!(logs(&folder, &["1"]).errors, "wrong\n");
        let attempts = executors(&folder, "lint");
        let [first, second] = &attempts[..] else { panic!("{attempts:?}") };
        printed(first, "1\n");
        printed(first.rsplit('-').next().unwrap(), "1\n");
        printed(second, "2\n");
        for id in ["pack", "0", "../../etc"] {
            let ended = logs(&folder, &[id]);
            assert_eq!((ended.code, &*ended.output), (Some(2), ""), "{id}");
            let sentence = format!("no task or executor {id:?} in the sandboxes of 1 run");
            assert!(ended.errors.contains(&sentence), "{}", ended.errors);
            let known = "in the latest one these tasks have started: ";
            assert!(ended.errors.contains(known) && ended.errors.contains("lint"), "{known}");
            assert_eq!(ended.errors.lines().count(), 1, "{}", ended.errors);
        }
        fs::write(&go, "").unwrap();
        assert_eq!(finish(&folder, &flags(&[form, &["--resume"]])).code, Some(0));
        for (id, expected) in [("1", "one\n"), ("lint", "3\n"), ("pack", "packed\n")] {
            printed(id, expected);
        }
        // A task that was placed, but whose sandbox is gone.
        fs::remove_dir_all(folder.sandbox(executors(&folder, "pack").last().unwrap())).unwrap();
        let ended = logs(&folder, &["pack"]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.errors.contains("task pack was placed as tasks-"), "{}", ended.errors);
    }
}

/// A run whose tasks wait for a signal, with a socket for commands.
fn waiting_run(folder: &Folder, text: &str, form: &[&str]) -> Run {
    folder.write("tasks", text);
    let more = ["--json", "--shutdown-timeout", "3s", "--control", "control"];
    let mut run = Run::start(folder, &flags(&[form, &more]));
    run.event_named("registered");
    run
}

/// Waits until these tasks run, and have printed something.
fn wait_for_output(folder: &Folder, ids: &[&str]) {
    for id in ids {
        eventually(PATIENCE, "its output", || {
            let printed = logs(folder, &[id]).output;
            if printed.is_empty() { Err(format!("{id} has printed nothing")) } else { Ok(()) }
        });
    }
}

/// Goal: tasks in flight are ended by their ids, which counts as a failure; a number is an id, not an executor's
/// number; one that isn't in flight is told with what it does; the status names tasks and hosts; output is followed by
/// the id of a task to its end. Method: tasks with numbers that executors have, of which one is retried, one waits and
/// one has ended; with and without hosts.
#[test]
fn tasks_are_ended_by_their_ids() {
    for form in FORMS {
        let folder = Folder::new();
        let text = "{\"id\": 3, \"command\": \"echo three $OFFERMILL_TASK_ATTEMPT; sleep 1000\", \"retries\": 1}\n\
                    {\"id\": \"b\", \"command\": \"echo b; sleep 1000\"}\n\
                    {\"id\": \"late\", \"command\": \"true\", \"after\": \"b\"}\n";
        let mut run = waiting_run(&folder, text, form);
        wait_for_output(&folder, &["3", "b"]);
        let (code, status) = folder.ctl(&["status"]);
        assert!(code == Some(0) && status.contains(", task 3\n"), "{status}");
        let counts = "\ntasks       0 of 3 tasks ended; 2 running, 1 waiting\n";
        assert!(status.contains(counts), "{status}");
        assert_eq!(status.contains(", host of tasks"), !form.is_empty(), "{status}");
        let (_, status) = folder.ctl(&["status", "json"]);
        let status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!((&status["tasks"]["all"], &status["tasks"]["running"]), (&3.into(), &2.into()));
        let tasks = status["living"].as_array().unwrap().iter().map(|it| it["task"].clone());
        let tasks: Vec<Value> = tasks.filter(|task| !task.is_null()).collect();
        assert!(tasks.len() == 2 && tasks.contains(&"b".into()), "{status}");

        let mut following = offermill(&folder.0, &["logs", "--follow", "b"]).spawn().unwrap();
        let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "b");
        let reply = folder.ctl(&["kill", "3", "late", "0", "3", "none"]);
        let expected = "1 task asked to end, which counts as a failure; not asked: 0, late, none\n";
        assert_eq!(reply, (Some(0), expected.to_owned()));
        let retried = run.event_named("task");
        assert_eq!((&retried["id"], &retried["state"]), (&"3".into(), &"retried".into()));
        eventually(PATIENCE, "its second attempt", || match logs(&folder, &["3"]).output {
            printed if printed == "three 2\n" => Ok(()),
            printed => Err(printed),
        });
        for (name, why) in [
            ("late", "task late waits for other tasks"),
            ("0", "no task has the id \"0\", and no living executor that name"),
            ("no", "no task has the id \"no\", and no living executor that name"),
        ] {
            assert_eq!(folder.ctl(&["kill", name]), (Some(1), format!("offermill: {why}\n")));
        }
        let executor = status["living"].as_array().unwrap().iter().find(|it| it["task"] == "b");
        let name = executor.unwrap()["executor"].as_str().unwrap();
        assert_eq!(folder.ctl(&["kill", name]).0, Some(0), "an executor's whole name");
        assert!(lines.next().is_none() && following.wait().unwrap().success());
        let failed = run.event(|event| event["event"] == "task" && event["state"] == "failed");
        assert_eq!(failed["id"], "b");
        let ended = (Some(1), "offermill: task b has ended\n".to_owned());
        assert_eq!(folder.ctl(&["kill", "b"]), ended);
        assert_eq!(folder.ctl(&["kill", "3"]).0, Some(0));
        assert_eq!(run.end().code, Some(1));
        folder.assert_deserted();
    }
}

/// Ignores SIGTERM, as a part of JSON.
const STUBBORN: &str = r#"trap \"\" TERM; echo trapped; while :; do sleep 1; done"#;

/// Goal: the last words of a run call tasks and hosts what they are. Method: Ctrl-C while two tasks run, which end or
/// have to be killed, with and without hosts.
#[test]
fn last_words_name_tasks_and_hosts() {
    for (form, command, who, end) in [
        (FORMS[0], "sleep 1000", "2 tasks, Ctrl-C again", "stopped by Ctrl-C"),
        (FORMS[0], STUBBORN, "2 tasks, Ctrl-C again", "2 tasks had not ended in time"),
        (FORMS[1], "sleep 1000", "2 tasks and ", "stopped by Ctrl-C"),
    ] {
        let folder = Folder::new();
        let line = format!("{{\"command\": \"echo begun; {command}\"}}\n");
        folder.write("tasks", &line.repeat(2));
        let run = Run::start(&folder, &flags(&[form, &["--plain", "--shutdown-timeout", "2s"]]));
        wait_for_output(&folder, &["1", "2"]);
        eventually(PATIENCE, "the traps", || {
            let are_set = ["1", "2"]
                .iter()
                .all(|id| command != STUBBORN || logs(&folder, &[id]).output.contains("trapped"));
            are_set.then_some(()).ok_or_else(|| "not yet".to_owned())
        });
        run.signal("INT");
        let ended = run.end();
        let promise = format!("stopping: waiting up to 2 s for {who}");
        assert!(ended.output.contains(&promise), "{promise}: {}", ended.output);
        assert!(ended.output.contains(end), "{end}: {}", ended.output);
        assert_eq!(ended.output.contains("; 1 host\n"), !form.is_empty(), "{}", ended.output);
        folder.assert_deserted();
    }
}

/// Goal: a run says that as much was offered as was used, however short it is, and on as many agents. Method: runs of
/// one task, and of some that fill all agents, with and without hosts.
#[test]
fn short_runs_use_what_was_offered() {
    for form in FORMS {
        for (tasks, agents) in [(1, 1), (40, 2)] {
            let folder = Folder::new();
            folder.write("tasks", &"true\n".repeat(tasks));
            let ended = finish(&folder, &flags(&[form, &["--json"]]));
            assert_eq!(ended.code, Some(0), "{}", ended.output);
            let events = ended.events();
            let cluster = &events.last().unwrap()["cluster"];
            let amount = |key: &str, kind: &str| cluster[key][kind].as_f64().unwrap();
            for kind in ["cores", "memory_mib"] {
                let (offered, used) = (amount("offered_max", kind), amount("used_max", kind));
                assert!(used > 0.0 && used <= offered, "{kind}: {cluster}");
            }
            assert!(cluster["agents"].as_u64().unwrap() >= agents, "{cluster}");
        }
    }
}

/// Goal: `--print-config` shows the flags of tasks and the settings that tasks use, and those that were given in vain
/// as such; with `--json` all. Method: a run of tasks with some of each; the same with hosts; a run of executors.
#[test]
fn settings_of_tasks_are_shown() {
    let folder = Folder::new();
    folder.write("tasks", "true\n");
    let more = ["--print-config", "-c", "spark.executor.cores=3", "--exclude-for", "3s"];
    let shown = finish(&folder, &flags(&[&more]));
    assert_eq!(shown.code, Some(0), "{}", shown.errors);
    let words = |key: &str| -> Vec<&str> {
        let line = shown.output.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.map(|line| line.split_whitespace().skip(1).collect()).unwrap_or_default()
    };
    let vain = "(not used by tasks)";
    assert_eq!(words("--task-cores"), ["0.5", "flag", "--task-cores"]);
    assert_eq!(words("--task-retries"), ["0", "default"]);
    assert_eq!(words("--placement-timeout"), ["none", "default"]);
    assert_eq!(words("--results"), ["tasks.results", "default"]);
    assert_eq!(words("spark.executor.cores").join(" "), format!("3 --conf {vain}"));
    let timeout = words("spark.excludeOnFailure.timeout").join(" ");
    assert_eq!(timeout, format!("3s flag --exclude-for {vain}"));
    assert_eq!(words("spark.executor.maxNumFailures"), ["no", "limit", "default"]);
    for absent in ["spark.executor.memory", "spark.kubernetes.namespace", "--host-cores"] {
        assert_eq!(words(absent), [""; 0], "{absent}");
    }
    assert!(!words("spark.cores.max").is_empty() && !words("offermill.placement").is_empty());
    let sentence = " settings that this run of tasks doesn't use, such as executor cores, are left out; --json has all";
    assert!(shown.errors.contains(sentence), "{}", shown.errors);

    let all = finish(&folder, &flags(&[&more, &["--json"], &IN_HOSTS]));
    assert_eq!(all.errors, "");
    let objects = all.events();
    let counts = |key: &str| objects.iter().find(|it| it["key"] == key).unwrap()["counts"].clone();
    assert_eq!(counts("spark.executor.memory"), false);
    assert_eq!(counts("spark.cores.max"), true);
    assert_eq!(counts("--host-cores"), true);

    let executors = finish(&folder, &["run", "--print-config", "--", "true"]);
    assert!(executors.output.contains("spark.executor.memory "), "{}", executors.output);
    assert!(!executors.output.contains("--task"), "{}", executors.output);
    assert_eq!(executors.errors, "");
}
