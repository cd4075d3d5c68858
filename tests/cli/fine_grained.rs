//! Tests of `offermill replay --compat spark-3.5` with `spark.mesos.coarse` false: Spark's fine-grained mode.

use serde_json::{Value, json};

use crate::replaying::{in_traces, replay, scenario};
use crate::support::{Folder, finish};

/// A scenario of the fine-grained mode: executors of 896 MiB.
fn fine_grained(conf: &Value, events: &[Value]) -> String {
    let mut all = json!({"spark.mesos.coarse": "false"});
    for (key, value) in conf.as_object().unwrap() {
        all[key] = value.clone();
    }
    scenario(&all, events)
}

fn offer(id: &str, agent: &str, cores: f64) -> Value {
    crate::replaying::offer(id, agent, cores, &json!([]))
}

/// The calls of an event, abbreviated.
fn calls(text: &str, event: u64) -> Vec<String> {
    let ended = replay(&["--compat", "spark-3.5"], text);
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{}", ended.output);
    let calls = ended.events().into_iter().filter(|it| it["ev"] == event && !it["call"].is_null());
    let words = calls.map(|call| match call["call"].as_str().unwrap() {
        "shown" => format!("shown {}", call["agents"]),
        "decline" => format!("decline {} {}", call["offer"], call["refuse_seconds"]),
        "accept" => {
            let tasks = call["tasks"].as_array().unwrap().iter();
            let ids = tasks.map(|task| task["id"].as_str().unwrap()).collect::<Vec<_>>();
            format!("accept {} {} {}", call["offers"][0], ids.join("+"), call["refuse_seconds"])
        }
        other => other.to_owned(),
    });
    words.map(|word| word.replace('"', "")).collect()
}

/// Goal: decisions are the same as those of Spark's fine-grained backend. Method: compare with what it answered to
/// recorded scenarios: offers of unequal agents, roles, constraints, more and fewer tasks than there is room for, ends,
/// losses.
#[test]
fn fine_grained_spark_would_have_decided_the_same() {
    let [scenarios, expected] =
        ["scenario", "expected"].map(|name| in_traces(&format!("fine-grained/{name}")));
    let arguments = ["replay", "--compat", "spark-3.5", &scenarios, "--expect", &expected];
    let ended = finish(&Folder::new(), &arguments);
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{}", ended.output);
    // For readers of the log.
    println!("{}", ended.output);
    let told = "42 scenarios, 4 193 answers compared (";
    let rest = ended.output.strip_prefix(told).unwrap_or_else(|| panic!("{}", ended.output));
    assert!(rest.contains(" to the byte), no difference\n"), "{rest}");
}

/// Goal: a difference in what only fine-grained answers have is told. Method: change one of their values at a time.
#[test]
fn differences_of_tasks_are_told() {
    let text = fine_grained(
        &json!({}),
        &[json!({"tasks": 3}), json!({"offers": [offer("o1", "a1", 3.0)]})],
    );
    let expected = replay(&["--compat", "spark-3.5"], &text).output;
    for (from, to, told) in [
        ("[\"a1\",2]", "[\"a1\",3]", "expected shown 3 cores of a1, decided shown 2 cores of a1"),
        ("\"refuse_seconds\":1.0", "\"refuse_seconds\":5.0", "filter: expected Some(5.0)"),
        ("\"waiting\":1", "\"waiting\":2", "waiting tasks after it: expected 2, decided 1"),
        ("\"mem\":896.0", "\"mem\":900.0", "its executor's mem: expected 900, decided 896"),
        ("MesosExecutorBackend", "Backend", "its executor's command: expected"),
        ("\"executor\":true", "\"executor\":false", "agents after it: expected (a1: 0 failures"),
        ("\"mesos_executor_cores\":1.0", "\"mesos_executor_cores\":2.0", "start: cores of"),
    ] {
        assert!(expected.contains(from), "{from} isn't in {expected}");
        let folder = Folder::new();
        folder.write("scenario.jsonl", &text);
        folder.write("expected.jsonl", &expected.replace(from, to));
        let compat = ["replay", "--compat", "spark-3.5", "scenario.jsonl", "--expect"];
        let ended = finish(&folder, &[&compat[..], &["expected.jsonl"]].concat());
        assert_eq!(ended.code, Some(1), "{from}: {}{}", ended.output, ended.errors);
        assert!(ended.output.contains(told), "{from}: {}", ended.output);
    }
}

/// Goal: an executor is booked with the first task of an agent, and once more after a task has failed, as Spark does.
/// Method: offers that are large enough for a task alone, before, between and after.
#[test]
fn a_failed_task_costs_its_executor() {
    let failed = json!({"status": {"task": "0", "agent": "a1", "state": "TASK_FAILED"}});
    let text = fine_grained(
        &json!({"spark.mesos.mesosExecutor.cores": "0.5"}),
        &[
            json!({"tasks": 3}),
            json!({"offers": [offer("o1", "a1", 1.0)]}),
            json!({"offers": [offer("o2", "a1", 1.5)]}),
            json!({"offers": [offer("o3", "a1", 1.0)]}),
            failed,
            json!({"offers": [offer("o4", "a1", 1.0)]}),
        ],
    );
    assert_eq!(calls(&text, 1), ["revive"]);
    assert_eq!(calls(&text, 2), ["decline o1 null", "shown []"]);
    assert_eq!(calls(&text, 3), ["shown [[a1,1]]", "accept o2 0 1.0"]);
    assert_eq!(calls(&text, 4), ["shown [[a1,1]]", "accept o3 1 1.0"]);
    assert_eq!(calls(&text, 5), ["revive"]);
    assert_eq!(calls(&text, 6), ["decline o4 null", "shown []"]);
}

/// Goal: an executor's own cores are read as Java reads a number. Method: forms that Java has beside Rust's.
#[test]
fn cores_are_numbers_of_java() {
    for (value, cores) in
        [("1.5d", 1.5), ("2F", 2.0), (" 5e-1 ", 0.5), ("+1.", 1.0), (".25D", 0.25)]
    {
        let conf = json!({"spark.mesos.mesosExecutor.cores": value});
        let init = replay(&["--compat", "spark-3.5"], &fine_grained(&conf, &[])).events().remove(0);
        assert_eq!((&init["init"], &init["mesos_executor_cores"]), (&json!("ok"), &json!(cores)));
    }
}

/// Goal: what only the other backend does has no effect. Method: a core cap, an executor limit, a kill, a stop.
#[test]
fn caps_mean_nothing() {
    let text = fine_grained(
        &json!({"spark.cores.max": "0", "spark.dynamicAllocation.enabled": "true"}),
        &[
            json!({"request_total": 0}),
            json!({"tasks": 9}),
            json!({"offers": [offer("o1", "a1", 3.9), offer("o2", "a2", 2.0)]}),
            json!({"kill": ["0"]}),
            json!({"stop": true}),
        ],
    );
    assert_eq!(calls(&text, 1), [""; 0]);
    let accepted = ["shown [[a1,2],[a2,1]]", "accept o1 0+2 1.0", "accept o2 1 1.0"];
    assert_eq!(calls(&text, 3), accepted);
    assert_eq!(calls(&text, 4), ["kill"]);
    assert_eq!(calls(&text, 5), ["driver_stop"]);
}

/// Goal: settings and events that can't be played are refused with a sentence, and without Spark's home nothing starts.
/// Method: one of each.
#[test]
fn what_cannot_be_played_is_told() {
    for (key, value, told) in [
        ("spark.mesos.mesosExecutor.cores", "-0.5", "must be a number of 0 or more"),
        ("spark.mesos.mesosExecutor.cores", "NaN", "must be a number of 0 or more"),
        ("spark.mesos.mesosExecutor.cores", "one", "must be a number of 0 or more"),
        ("spark.mesos.mesosExecutor.cores", "d", "must be a number of 0 or more"),
        ("spark.mesos.mesosExecutor.cores", "Infinity", "must be a number of 0 or more"),
        ("spark.task.cpus", "0", "must be a whole number from 1"),
        ("spark.task.maxFailures", "0", "must be a whole number from 1"),
        ("spark.mesos.constraints", "zone", "Bad constraint string: zone"),
    ] {
        let ended = replay(&["--compat", "spark-3.5"], &fine_grained(&json!({key: value}), &[]));
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        let init = &ended.events()[0];
        assert_eq!((ended.events().len(), &init["init"]), (1, &json!("error")), "{key}");
        assert!(init["error"].as_str().unwrap().contains(told), "{init}");
    }
    let ended =
        replay(&["--compat", "spark-3.5"], &fine_grained(&json!({}), &[json!({"tasks": 0})]));
    assert_eq!(ended.code, Some(2));
    assert!(ended.errors.contains("0 tasks, expected 1 to 100000"), "{}", ended.errors);
    // Offermill's own decisions are for executors.
    let own = replay(&[], &fine_grained(&json!({}), &[])).events();
    let told = "there is no fine-grained mode, except in `offermill replay --compat spark-3.5`";
    assert!(own[0]["error"].as_str().unwrap().contains(told), "{}", own[0]);
    let text = fine_grained(
        &json!({"spark.mesos.executor.home": ""}),
        &[json!({"tasks": 1}), json!({"offers": [offer("o1", "a1", 3.0)]})],
    );
    let ended = replay(&["--compat", "spark-3.5"], &text);
    assert!(ended.errors.contains("spark.mesos.executor.home isn't set"), "{}", ended.errors);
    assert!(
        !ended.output.contains("accept") && ended.output.contains("decline"),
        "{}",
        ended.output
    );
}
