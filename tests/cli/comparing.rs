//! Tests of `offermill replay --compat spark-3.5`: what is compared, and what tasks contain.

use serde_json::{Value, json};

use crate::replaying::{offer, replay, scenario};
use crate::support::{Folder, finish};

/// The lines of Spark's answers to two batches, an end, and a stop, with a shuffle service.
fn lines_of_spark() -> (String, Vec<String>) {
    let batch = |one, other| {
        let none = json!([]);
        json!({"offers": [offer(one, "a1", 2.0, &none), offer(other, "a2", 1.0, &none)]})
    };
    let conf = json!({
        "spark.cores.max": "4", "spark.shuffle.service.enabled": "true",
        "spark.mesos.coarse.shutdownTimeout": "0",
    });
    let failed = json!({"status": {"task": "0", "agent": "a1", "state": "TASK_FAILED"}});
    let text =
        scenario(&conf, &[batch("o1", "o2"), failed, batch("o3", "o4"), json!({"stop": true})]);
    let ended = replay(&["--compat", "spark-3.5"], &text);
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    (text, ended.output.split_inclusive('\n').map(str::to_owned).collect())
}

/// Goal: the order of Spark's calls and of the tasks of an offer is compared, unless it is said not to count; and so
/// are calls about shuffle services, reasons and failover. Method: change one of them at a time.
#[test]
fn the_order_of_calls_is_compared() {
    let (text, lines) = lines_of_spark();
    let folder = Folder::new();
    folder.write("scenario.jsonl", &text);
    let compare = |expected: String, flags: &[&str]| {
        folder.write("expected.jsonl", &expected);
        let arguments = ["replay", "--compat", "spark-3.5", "scenario.jsonl", "--expect"];
        finish(&folder, &[&arguments[..], &["expected.jsonl"], flags].concat())
    };
    assert_eq!(compare(lines.concat(), &[]).code, Some(0));
    let at = |what: &str| lines.iter().position(|line| line.contains(what)).unwrap();
    let swapped = |one: usize, other: usize| {
        let mut lines = lines.clone();
        lines.swap(one, other);
        lines.concat()
    };
    let accept: Value = serde_json::from_str(&lines[at("\"accept\"")]).unwrap();
    let mut turned = accept.clone();
    turned["tasks"].as_array_mut().unwrap().reverse();
    for (expected, told) in [
        (
            swapped(at("[\"o1\"]"), at("[\"o2\"]")),
            "another order: call 1 expected accept o2 with 1, decided accept o1 with 2, 0",
        ),
        (
            swapped(at("executor_removed"), at("\"revive\"")),
            "another order: call 1 expected revive, decided executor_removed 0 (Executor finished",
        ),
        (
            lines.concat().replacen(&lines[at("\"accept\"")], &format!("{turned}\n"), 1),
            "another order: call 1 expected accept o1 with 0, 2, decided accept o1 with 2, 0",
        ),
        (swapped(at("shuffle_close"), at("driver_stop")), "expected driver_stop, decided"),
    ] {
        let ended = compare(expected.clone(), &[]);
        assert_eq!(ended.code, Some(1), "{told}: {}{}", ended.output, ended.errors);
        assert!(ended.output.contains(told), "{told}: {}", ended.output);
        let ended = compare(expected, &["--any-order"]);
        assert_eq!(ended.code, Some(0), "{told}: {}{}", ended.output, ended.errors);
    }
    for (from, to) in [
        ("\"shuffle_init\",\"app_id\":\"fw\"", "\"shuffle_init\",\"app_id\":\"other\""),
        ("\"shuffle_close\"", "\"suppress\""),
        ("with state FAILED", "with state LOST"),
        ("\"failover\":false", "\"failover\":true"),
    ] {
        let changed = lines.concat().replacen(from, to, 1);
        assert_ne!(changed, lines.concat(), "{from}");
        for flags in [&[][..], &["--any-order"]] {
            let ended = compare(changed.clone(), flags);
            assert_eq!(ended.code, Some(1), "{from}: {}{}", ended.output, ended.errors);
        }
    }
}

/// Goal: expected answers that end early are one difference, and a cut line is remarked on. Method: leave out lines at
/// the end, and half a line.
#[test]
fn a_cut_expectation_is_one_difference() {
    let (text, lines) = lines_of_spark();
    let folder = Folder::new();
    folder.write("scenario.jsonl", &text);
    let mut cut = lines[..4].concat();
    cut.truncate(cut.len() - 5);
    folder.write("expected.jsonl", &cut);
    let compat = ["--compat", "spark-3.5", "--expect", "expected.jsonl"];
    let ended = finish(&folder, &[&["replay", "scenario.jsonl"][..], &compat].concat());
    assert_eq!(ended.code, Some(1), "{}", ended.output);
    let told =
        "offermill: expected.jsonl:4: the file ends in the middle of this line, which is ignored\n";
    assert_eq!(ended.errors, told);
    let told =
        "event 1 (line 3): no answer was expected from here on; the scenario has 4 further events";
    assert!(ended.output.contains(told), "{}", ended.output);
    assert_eq!(ended.output.lines().count(), 2, "{}", ended.output);
}

/// Goal: an exact comparison compares all lines: a line that is there twice, calls of an event without its closing
/// line, and calls before the expectation's end are differences; and so is an offer that is answered twice, without
/// order. Method: change the answers in each of these ways, with and without an orderly end of the run.
#[test]
fn each_expected_line_counts() {
    let none = json!([]);
    let batch = |id| json!({"offers": [offer(id, "a1", 1.0, &none)]});
    let folder = Folder::new();
    let compare = |expected: &[&str], flags: &[&str]| {
        folder.write("expected.jsonl", &expected.concat());
        let arguments = ["replay", "scenario.jsonl", "--expect", "expected.jsonl"];
        finish(&folder, &[&arguments[..], flags].concat())
    };
    for is_stopped in [true, false] {
        let mut events = vec![batch("o1"), batch("o2")];
        events.extend(is_stopped.then(|| json!({"stop": true})));
        let text = scenario(&json!({}), &events);
        folder.write("scenario.jsonl", &text);
        let answers = replay(&[], &text).output;
        let lines: Vec<&str> = answers.split_inclusive('\n').collect();
        assert_eq!(compare(&lines, &[]).code, Some(0));
        let at = |ev: u64, key: &str| {
            let found = lines.iter().position(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                line["ev"] == json!(ev) && line.get(key).is_some()
            });
            found.unwrap()
        };
        let doubled = [&lines[..=at(1, "after")], &lines[at(1, "after")..]].concat();
        let unclosed = [&lines[..at(1, "after")], &lines[at(1, "after") + 1..]].concat();
        let cut = &lines[..at(2, "after")];
        let changed = lines[at(2, "call")].replace("o2", "o9");
        let changed = [&cut[..cut.len() - 1], &[&changed]].concat();
        for (expected, told) in [
            (&doubled[..], "event 1 (line 3): expected {"),
            (&unclosed, "event 1 (line 3): 1 call without a closing line, with \"after\", were"),
            (&changed, "event 2 (line 4): "),
        ] {
            let ended = compare(expected, &[]);
            assert_eq!(ended.code, Some(1), "{told}: {}{}", ended.output, ended.errors);
            assert!(ended.output.contains(told), "{told}: {}", ended.output);
        }
        let ended = compare(cut, &[]);
        assert_eq!(ended.code, Some(i32::from(is_stopped)), "{}", ended.output);
    }
    let (text, lines) = lines_of_spark();
    folder.write("scenario.jsonl", &text);
    let at = lines.iter().position(|line| line.contains("\"accept\"")).unwrap();
    let mut doubled: Vec<&str> = lines.iter().map(String::as_str).collect();
    doubled.insert(at, &lines[at]);
    for flags in [&["--compat", "spark-3.5"][..], &["--compat", "spark-3.5", "--any-order"]] {
        assert_eq!(compare(&doubled, flags).code, Some(1), "{flags:?}");
    }
}

/// Goal: a key that occurs twice in an object of the expected answers is an error, at any depth. Method: two places.
#[test]
fn an_expected_key_occurs_once() {
    let (text, lines) = lines_of_spark();
    let folder = Folder::new();
    folder.write("scenario.jsonl", &text);
    for (from, to) in [("\"ev\":", "\"ev\":7,\"ev\":"), ("\"id\":", "\"id\":\"x\",\"id\":")] {
        let changed = lines.concat().replacen(from, to, 1);
        assert_ne!(changed, lines.concat());
        folder.write("expected.jsonl", &changed);
        let compat = ["--compat", "spark-3.5", "--expect", "expected.jsonl"];
        let ended = finish(&folder, &[&["replay", "scenario.jsonl"][..], &compat].concat());
        assert_eq!(ended.code, Some(2), "{}", ended.output);
        assert!(ended.errors.contains("occurs twice"), "{}", ended.errors);
    }
}

/// Goal: what can't be read isn't said to be without a difference, and is counted. Method: missing and invalid files,
/// alone and beside valid ones.
#[test]
fn unreadable_input_is_not_without_difference() {
    let (text, lines) = lines_of_spark();
    let folder = Folder::new();
    folder.write("a.jsonl", &text);
    folder.write("b.jsonl", "[]\n");
    folder.write("a.answers", &lines.concat());
    let compare = |files: &[&str], expected: &[&str]| {
        let mut arguments = vec!["replay", "--compat", "spark-3.5"];
        arguments.extend(files);
        expected.iter().for_each(|file| arguments.extend(["--expect", *file]));
        finish(&folder, &arguments)
    };
    for (scenario, expected) in
        [("a.jsonl", "none"), ("none", "a.answers"), ("b.jsonl", "a.answers")]
    {
        let ended = compare(&[scenario], &[expected]);
        let told = "1 scenario not compared: it or its expected answers can't be read\n";
        assert_eq!((ended.code, &*ended.output), (Some(2), told));
    }
    let ended = compare(&["a.jsonl", "b.jsonl", "none"], &["a.answers", "a.answers", "a.answers"]);
    assert_eq!(ended.code, Some(2));
    let told = "no difference in these\n2 scenarios not compared: they or their expected answers can't be \
                read\n";
    assert!(ended.output.ends_with(told), "{}", ended.output);
    assert!(ended.output.starts_with("1 scenario, "), "{}", ended.output);
}

/// Goal: nothing waits for hosts if the locality wait is zero. Method: a batch of another host, in the moment of the
/// request and later, as Spark and as Offermill.
#[test]
fn a_locality_wait_of_zero_is_none() {
    for (flags, wait) in [(&["--compat", "spark-3.5"][..], "0"), (&[], "0s")] {
        let conf = json!({
            "spark.dynamicAllocation.enabled": "true", "spark.shuffle.service.enabled": "true",
            "spark.locality.wait": wait,
        });
        let request = json!({"request_total": 4, "local": {"h1": 3}});
        let batch = |id| json!({"offers": [offer(id, "a2", 2.0, &json!([]))]});
        let later = json!({"advance_ms": 4000});
        let ended = replay(flags, &scenario(&conf, &[request, batch("o1"), later, batch("o2")]));
        let accepts = ended.events().iter().filter(|it| it["call"] == "accept").count();
        assert_eq!((ended.code, accepts), (Some(0), 2), "{flags:?}: {}", ended.output);
    }
}

/// Goal: tasks carry what Spark 3.5.9 puts into them: secrets without their values, labels with empty items at the end,
/// no ports of containers that the agent runs, the roles of reservations, and `null` before the registration. Method:
/// what Spark answered to the same settings and offers.
#[test]
fn tasks_have_what_those_of_spark_have() {
    let secret = |key: &str| format!("spark.mesos.executor.secret.{key}");
    let file = |path| json!({"host": null, "container": path, "read_only": true});
    let tasks = |conf: &Value, events: &[Value]| -> Vec<Value> {
        let ended = replay(&["--compat", "spark-3.5"], &scenario(conf, events));
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{conf}");
        let accepts = ended.events().into_iter().filter(|it| it["call"] == "accept");
        accepts.map(|it| it["tasks"][0].clone()).collect()
    };
    let batch = [json!({"offers": [offer("o1", "a1", 1.0, &json!([]))]})];
    for (conf, container) in [
        (
            json!({secret("values"): "a, b,", secret("envkeys"): "A, B,", secret("filenames"): "/x,y"}),
            json!({"type": "MESOS", "volumes": [file("/x"), file("y")]}),
        ),
        (
            json!({
                secret("names"): "n,m", secret("envkeys"): "A,B", secret("filenames"): "f,g",
                "spark.executorEnv.A": "own", "spark.mesos.executor.docker.image": "i",
                "spark.mesos.executor.docker.volumes": "/a:/b:ro",
            }),
            json!({"type": "DOCKER", "image": "i", "volumes": [
                {"host": "/a", "container": "/b", "read_only": true}, file("f"), file("g"),
            ]}),
        ),
    ] {
        let task = &tasks(&conf, &batch)[0];
        assert_eq!((&task["env"]["A"], &task["env"]["B"]), (&json!(""), &json!("")), "{conf}");
        assert_eq!(task["container"], container, "{conf}");
    }
    let conf = json!({
        "spark.mesos.containerizer": "mesos", "spark.mesos.executor.docker.image": "i",
        "spark.mesos.executor.docker.portmaps": "80:8080:udp", "spark.mesos.network.name": "net",
        "spark.mesos.task.labels": "a:b,,", "spark.mesos.network.labels": "c:d,",
    });
    let task = &tasks(&conf, &batch)[0];
    let networks = json!([{"name": "net", "labels": [["c", "d"]]}]);
    assert_eq!(task["container"], json!({"type": "MESOS", "image": "i", "networks": networks}));
    assert_eq!(task["labels"], json!([["a", "b"]]));
    // Spark doesn't read the labels of a network without a name.
    assert_eq!(tasks(&json!({"spark.mesos.network.labels": "a"}), &batch).len(), 1);

    let reservation = json!({"principal": "x", "role": "r2"});
    let mut reserved = offer("o1", "a1", 1.0, &json!([]));
    reserved["resources"][0]["role"] = json!("r1");
    reserved["resources"][0]["reservation"] = reservation.clone();
    let task = &tasks(&json!({"spark.mesos.role": "r1"}), &[json!({"offers": [reserved]})])[0];
    assert_eq!(task["resources"][0]["reservation"], reservation);

    let early = scenario(&json!({}), &batch);
    let early: Vec<&str> = early.lines().collect();
    let ended = replay(&["--compat", "spark-3.5"], &format!("{}\n{}\n", early[0], early[2]));
    assert!(ended.output.contains(" --app-id null --hostname a1.example"), "{}", ended.output);
}

/// Goal: a scenario that ends in the middle of a line isn't compared without a difference if answers to later events
/// are expected. Method: a scenario without its last characters, with all its answers, and with those of the rest.
#[test]
fn a_cut_scenario_is_a_difference_if_answers_are_left() {
    for compat in [&[][..], &["--compat", "spark-3.5"]] {
        let folder = Folder::new();
        let text = scenario(&json!({}), &[json!({"kill": []}), json!({"stop": true})]);
        let cut = &text[..text.len() - 4];
        folder.write("expected.jsonl", &replay(compat, &text).output);
        folder.write("fewer.jsonl", &replay(compat, cut).output);
        folder.write("scenario.jsonl", cut);
        let compared = |expected| {
            let arguments = ["replay", "scenario.jsonl", "--expect", expected];
            finish(&folder, &[&arguments[..], compat].concat())
        };
        assert_eq!(compared("fewer.jsonl").code, Some(0));
        let ended = compared("expected.jsonl");
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        let told =
            "answers are expected up to event 2, but the scenario ends in the middle of line 4\n";
        assert!(ended.output.contains(told), "{}", ended.output);
        let told =
            "1 scenario compared only up to where the scenario ends in the middle of a line\n";
        assert!(ended.output.ends_with(told), "{}", ended.output);
    }
}
