//! Tests of a run without tasks whose executors are in a queue: `--queues` and `--executor-queue`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::eventually::eventually;
use crate::support::{Folder, Run, finish};

/// Far longer than any step here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Executors of one core and 16 MiB on two agents of four cores and 256 MiB, which end when they are asked to.
const RUN: [&str; 10] = [
    "run",
    "--master",
    "local-cluster[2,4,256]",
    "--executor-cores",
    "1",
    "--executor-memory",
    "16m",
    "--memory-overhead",
    "0",
    "--json",
];
const PROGRAM: [&str; 3] = ["--", "sleep", "1000"];

#[track_caller]
fn wait(folder: &Folder, name: &str, executors: u64) {
    eventually(PATIENCE, &format!("{executors} executors"), || {
        let queue = folder.queue(name);
        if queue["executors"] == executors { Ok(()) } else { Err(queue.to_string()) }
    });
}

/// Goal: executors keep the maxima of their queue, in cores and in memory, also when these change: a higher one starts
/// more at once, a lower one ends none and holds back those that would replace others; the listing says it. Method: a
/// run that wants six executors, in a queue with room for two, then for four by memory, then for one while four run, of
/// which three are killed.
#[test]
fn maxima_of_executors_are_changed_while_they_run() {
    let folder = Folder::new();
    let flags = ["--num-executors", "6", "--queues", "other;etl:max-cores=2,max-mem=1g"];
    let more = ["--executor-queue", "etl", "--control", "control"];
    let mut run = Run::start(&folder, &[&RUN[..], &flags, &more, &PROGRAM].concat());
    run.event_named("registered");
    wait(&folder, "etl", 2);
    // 5 s later, since it wants six.
    let waiting = run.event_named("waiting");
    let misses = waiting["nearest_misses"].as_array().unwrap();
    assert!(
        misses.iter().any(|miss| miss["reason"] == "queue_has_its_maximum_of_cores"),
        "{waiting}"
    );
    let (_, text) = folder.ctl(&["queues", "etl:max-cores=none,max-mem=64m"]);
    assert_eq!(text, "queue etl: max-cores 2 -> none, max-mem 1024m -> 64m\n");
    let event = run.event_named("queues");
    assert_eq!(event["changes"].as_array().unwrap().len(), 2, "{event}");
    wait(&folder, "etl", 4);
    let full = folder.queue("etl");
    let expected = [json!(4.0), Value::Null, json!(64), json!(64)];
    let keys = ["cores", "max_cores", "memory_mib", "max_memory_mib"];
    assert_eq!(keys.map(|key| full[key].clone()), expected, "{full}");
    assert_eq!((&full["running"], &full["waiting"]), (&Value::Null, &Value::Null));
    assert_eq!(folder.queue("other")["executors"], 0);

    let (_, text) = folder.ctl(&["queues", "etl:max-cores=1"]);
    let expected = "queue etl: max-cores none -> 1; etl takes more than that now: no executor starts until it takes \
                    less\n";
    assert_eq!(text, expected);
    let (_, listing) = folder.ctl(&["queues"]);
    let line = listing.lines().find(|line| line.starts_with("etl ")).unwrap();
    assert_eq!(line, "etl         4 of at most 1 core; 64 MiB of at most 64 MiB; 4 executors");
    let (code, text) = folder.ctl(&["kill", "0", "1", "2"]);
    assert_eq!(code, Some(0), "{text}");
    wait(&folder, "etl", 1);

    for (wrong, why) in [
        ("etl:max-cores=0.5", "an executor takes 1 core; the queue etl has at most 0.5"),
        ("etl:max-mem=8m", "an executor takes 16 MiB; the queue etl has at most 8 MiB"),
        ("other:guaranteed-cores=1", "guarantees are for tasks (--tasks): all executors of this"),
        ("new:max-cores=1", "\"new\" is no queue of this run: default, other, etl"),
    ] {
        let (code, text) = folder.ctl(&["queues", &format!("default:max-cores=3;{wrong}")]);
        assert!(code == Some(1) && text.starts_with(&format!("offermill: {why}")), "{text}");
    }
    assert_eq!(folder.queue("default")["max_cores"], Value::Null);
    // The one that is left, and two more.
    folder.ctl(&["queues", "etl:max-cores=3"]);
    wait(&folder, "etl", 3);
    let (code, text) = folder.ctl(&["stop"]);
    assert_eq!(code, Some(0), "{text}");
    let events = run.end().events();
    let placed = events.iter().filter(|event| event["event"] == "placed").count();
    assert_eq!(placed, 6, "none has started beyond a maximum");
    folder.assert_deserted();
}

/// Goal: a run without other queues needs no name of one; and while the ends of executors count the limit down, nothing
/// puts it back. Method: a run of three executors in the queue default, which has room for two, until they have
/// finished.
#[test]
fn queues_stay_while_the_limit_counts_down() {
    let folder = Folder::new();
    let flags = ["--num-executors", "3", "--until-finished", "--queues", "default:max-cores=2"];
    let until = format!("until [ -e '{}' ]; do sleep 0.1; done", folder.0.join("go").display());
    let program = ["--control", "control", "--", "sh", "-c", &until];
    let mut run = Run::start(&folder, &[&RUN[..], &flags, &program].concat());
    run.event_named("registered");
    wait(&folder, "default", 2);
    let (code, text) = folder.ctl(&["queues", "default:max-cores=3"]);
    let why = "offermill: queues stay as they are with --until-finished, whose limit counts down meanwhile\n";
    assert_eq!((code, &*text), (Some(1), why));
    folder.write("go", "");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let events = ended.events();
    let placed = events.iter().filter(|event| event["event"] == "placed").count();
    assert_eq!(placed, 3, "no more than were wanted");
}

/// Goal: what is wrong with the queue of executors is said before anything starts. Method: one of each mistake.
#[test]
fn mistakes_in_the_queue_of_executors_are_named() {
    let folder = Folder::new();
    folder.write("tasks", "true\n");
    for (flags, why) in [
        (
            &["--executor-queue", "etl"][..],
            "--executor-queue names one of --queues, which aren't given",
        ),
        (
            &["--queues", "etl"],
            "--queues: expected --executor-queue with one of them: default, etl",
        ),
        (
            &["--queues", "a;b", "--executor-queue", "c"],
            "--executor-queue is none of --queues: default, a, b",
        ),
        (
            &["--queues", "default:guaranteed-cores=1", "--total-executor-cores", "4"],
            "--queues: guarantees are for tasks (--tasks): all executors are in one queue",
        ),
        (
            &["--queues", "default:max-cores=0.5"],
            "--queues: an executor takes 1 core; the queue default has at most 0.5",
        ),
        (
            &["--queues", "default:max-mem=8m"],
            "--queues: an executor takes 16 MiB; the queue default has at most 8 MiB",
        ),
        (
            &["--queues", "default", "--journal", "j"],
            "--queues doesn't go with --journal: a journal",
        ),
        (&["--queues", "a:b"], "\"b\" of the queue a must be BOUND=VALUE"),
    ] {
        let ended = finish(&folder, &[&RUN[..], flags, &PROGRAM].concat());
        assert_eq!(ended.code, Some(2), "{flags:?}: {}", ended.output);
        assert!(ended.errors.contains(why), "{flags:?}: {}", ended.errors);
    }
    let flags = ["run", "--tasks", "tasks", "--queues", "etl", "--executor-queue", "etl"];
    let ended = finish(&folder, &flags);
    let why = "--executor-queue doesn't go with --tasks: each task names its queue";
    assert!(ended.code == Some(2) && ended.errors.contains(why), "{}", ended.errors);
}
