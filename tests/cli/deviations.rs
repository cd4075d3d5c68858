//! Tests of the defects of Spark's backend that `--compat spark-3.5` doesn't reproduce: one test for each line of
//! `offermill replay --help`.

use serde_json::{Value, json};

use crate::replaying::{offer, replay, scenario};

/// The answers of `--compat spark-3.5`: the calls of each event, abbreviated, and its closing line.
fn answers(conf: &Value, events: &[Value]) -> Vec<(Vec<String>, Value)> {
    let ended = replay(&["--compat", "spark-3.5"], &scenario(conf, events));
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    let mut all: Vec<(Vec<String>, Value)> = Vec::new();
    let mut calls = Vec::new();
    for answer in ended.events().into_iter().skip(1) {
        match answer["call"].as_str() {
            None => all.push((std::mem::take(&mut calls), answer["after"].clone())),
            Some(call) => {
                let what =
                    ["offers", "offer", "task", "executor"].iter().find_map(|key| answer.get(key));
                let what =
                    what.map_or_else(String::new, |what| format!(" {what}").replace('"', ""));
                let refuse =
                    answer.get("refuse_seconds").map_or_else(String::new, |it| format!(" {it}"));
                calls.push(format!("{call}{what}{refuse}"));
            }
        }
    }
    // The first event is the registration.
    all.remove(0);
    all
}

fn status(task: &str, agent: &str, state: &str) -> Value {
    json!({"status": {"task": task, "agent": agent, "state": format!("TASK_{state}")}})
}

fn batch(id: &str) -> Value {
    json!({"offers": [offer(id, "a1", 1.0, &json!([]))]})
}

/// Goal: comparing a word with a number is a mismatch, and other offers are answered. Method: offer one agent whose
/// attribute is a number.
#[test]
fn a_word_is_no_number() {
    for word in ["abc", "1,x", "0x", "1_0", "é", "0x1p-3"] {
        let number = offer("o1", "a1", 1.0, &json!([{"name": "tier", "scalar": 0}]));
        let text =
            offer("o2", "a2", 1.0, &json!([{"name": "tier", "text": word.split(',').next()}]));
        let conf = json!({"spark.mesos.constraints": format!("tier:{word}")});
        let all = answers(&conf, &[json!({"offers": [number, text]})]);
        assert_eq!(all[0].0, ["decline o1 120.0", "accept [o2]"], "{word}");
    }
}

/// Goal: beside a word, another value of the condition may match a number. Method: offer a number between the values.
#[test]
fn another_value_may_match() {
    let number = |scalar| offer("o1", "a1", 1.0, &json!([{"name": "tier", "scalar": scalar}]));
    for (values, scalar, is_met) in
        [("-1,nan,5d", 3, true), ("x,1", 3, true), ("1,x", 3, true), ("x,4", 3, false)]
    {
        let conf = json!({"spark.mesos.constraints": format!("tier:{values}")});
        let all = answers(&conf, &[json!({"offers": [number(scalar)]})]);
        let expected = if is_met { "accept [o1]" } else { "decline o1 120.0" };
        assert_eq!(all[0].0, [expected], "{values}");
    }
}

/// Goal: an update is applied by its task's id. Method: an end that names an agent that Spark never used, and one that
/// names another agent than the task's.
#[test]
fn an_update_may_name_any_agent() {
    for agent in ["nowhere", "a2"] {
        let both = [offer("o1", "a1", 1.0, &json!([])), offer("o2", "a2", 1.0, &json!([]))];
        let all = answers(&json!({}), &[json!({"offers": both}), status("0", agent, "FAILED")]);
        let (calls, after) = &all[1];
        assert_eq!(calls[..], ["executor_removed 0", "revive"], "{agent}");
        assert_eq!((&after["executors"], &after["cores"]), (&json!(1), &json!(1)), "{agent}");
        assert_eq!(after["agents"]["a1"], json!({"failures": 1, "tasks": []}), "{agent}");
    }
}

/// Goal: an end counts once. Method: repeat an end, and send one of a task that never existed.
#[test]
fn an_end_counts_once() {
    let again = [
        batch("o1"),
        status("0", "a1", "LOST"),
        status("0", "a1", "LOST"),
        status("7", "a1", "FAILED"),
    ];
    let all = answers(&json!({}), &again);
    assert_eq!(all[1].0, ["executor_removed 0", "revive"]);
    assert!(all[2].0.is_empty() && all[3].0.is_empty());
    assert_eq!(all[3].1["agents"]["a1"]["failures"], 1);
}

/// Goal: tasks that weren't launched or have ended are killed if they run. Method: report both as running.
#[test]
fn unknown_executors_are_killed() {
    let events = [
        batch("o1"),
        status("0", "a1", "FINISHED"),
        status("0", "a1", "RUNNING"),
        status("7", "a1", "RUNNING"),
    ];
    let all = answers(&json!({}), &events);
    assert_eq!(
        (&all[2].0[..], &all[3].0[..]),
        (&["kill 0".to_owned()][..], &["kill 7".to_owned()][..])
    );
}

/// Goal: tasks that can't be launched aren't counted, and a remark says why nothing is launched. Method: neither a home
/// nor an archive is set; labels can't be parsed; secrets don't match their places.
#[test]
fn without_spark_nothing_starts() {
    let with = |key: &str, value: &str| {
        let conf = json!({"spark.cores.max": "4", "spark.mesos.network.name": "n", key: value});
        scenario(&conf, &[batch("o1")])
    };
    let homeless =
        with("a", "b").replace("spark.mesos.executor.home", "spark.mesos.executor.house");
    let secret = "spark.mesos.executor.secret";
    for (text, why) in [
        (homeless, "neither spark.mesos.executor.home nor spark.executor.uri is set"),
        (
            with("spark.mesos.task.labels", "a"),
            "spark.mesos.task.labels: label is \"a\", but must be",
        ),
        (with("spark.mesos.network.labels", "a:b,,c:d"), "label is \"a:b,,c:d\", but must be"),
        (with(&format!("{secret}.envkeys"), "A,B"), "secrets: 2 places for 0 secrets"),
    ] {
        let ended = replay(&["--compat", "spark-3.5"], &text);
        let told = "scenario.jsonl: Spark couldn't launch an executor with these settings, so all offers are \
                    declined: ";
        assert_eq!(ended.errors.lines().count(), 1, "{}", ended.errors);
        assert!(ended.errors.contains(told) && ended.errors.contains(why), "{}", ended.errors);
        let all = ended.events();
        assert_eq!(
            (ended.code, &all[0]["init"], &all[0]["max_cores"]),
            (Some(0), &json!("ok"), &json!(4))
        );
        let answer = (&all[2]["call"], &all[2]["refuse_seconds"]);
        assert_eq!(answer, (&json!("decline"), &Value::Null));
        let after = &all[3]["after"];
        assert_eq!((&after["executors"], &after["agents"]), (&json!(0), &json!({})));
    }
}

/// Goal: an exact fit is used. Method: two cores of two roles whose doubles add up to less than two after a
/// subtraction.
#[test]
fn amounts_are_exact() {
    let piece =
        |name: &str, role: &str, scalar: f64| json!({"name": name, "role": role, "scalar": scalar});
    let resources =
        [piece("cpus", "*", 1.001), piece("cpus", "r1", 0.999), piece("mem", "*", 8192.0)];
    let offer = json!({"id": "o1", "agent": "a1", "host": "h", "resources": resources});
    let conf = json!({"spark.executor.cores": "1", "spark.mesos.role": "r1"});
    let all = answers(&conf, &[json!({"offers": [offer]})]);
    assert_eq!(all[0].1["executors"], 2, "{:?}", all[0]);
}

/// Goal: empty settings count as not set. Method: set the settings that Spark passes on empty to the empty text, and
/// leave them out.
#[test]
fn empty_is_as_if_not_given() {
    let played =
        |conf: Value| replay(&["--compat", "spark-3.5"], &scenario(&conf, &[batch("o1")])).output;
    let empty = json!({
        "spark.executor.uri": "",
        "spark.mesos.executor.docker.image": "",
        "spark.mesos.network.name": "",
        "spark.executor.extraClassPath": "",
    });
    assert_eq!(played(empty), played(json!({})));
}

/// Goal: a cap of zero or less is accepted as in Spark, and fitting offers are declined because of the cap. Method: set
/// both.
#[test]
fn a_cap_may_be_nothing_or_less() {
    for (cap, shown) in [("0", 0), ("-3", -2)] {
        let conf = json!({"spark.cores.max": cap, "spark.executor.cores": "2"});
        let ended = replay(&["--compat", "spark-3.5"], &scenario(&conf, &[batch("o1")]));
        let all = ended.events();
        assert_eq!(all[0]["max_cores"], shown, "{cap}");
        assert_eq!(
            (&all[2]["call"], &all[2]["refuse_seconds"]),
            (&json!("decline"), &json!(120.0))
        );
    }
}

/// Goal: nothing is placed after the cluster reported an error. Method: an error, then an offer.
#[test]
fn after_an_error_nothing_starts() {
    let all = answers(&json!({}), &[json!({"error": "Framework has been removed"}), batch("o1")]);
    assert_eq!((all[0].0.len(), &all[1].0[..]), (0, &["decline o1 null".to_owned()][..]));
}

/// Goal: of two offers with one id each is answered once. Method: offers of one agent, and of two.
#[test]
fn offers_of_one_id_are_answered_once() {
    for agent in ["a1", "a2"] {
        let both = [offer("o1", "a1", 2.0, &json!([])), offer("o1", agent, 2.0, &json!([]))];
        let all = answers(&json!({}), &[json!({"offers": both})]);
        assert_eq!(all[0].0, ["accept [o1]", "accept [o1]"], "{agent}");
        assert_eq!(all[0].1["executors"], 4, "{agent}");
    }
}

/// Goal: a request for a negative number of executors changes nothing. Method: one between two others, with hosts.
#[test]
fn a_negative_request_changes_nothing() {
    let conf = json!({
        "spark.dynamicAllocation.enabled": "true", "spark.shuffle.service.enabled": "true",
    });
    let events = [
        json!({"request_total": 1}),
        json!({"request_total": -1, "local": {"a2.example": 1}}),
        batch("o1"),
        batch("o2"),
    ];
    for flags in [&["--compat", "spark-3.5"][..], &[]] {
        let ended = replay(flags, &scenario(&conf, &events));
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
        let all = ended.events();
        let closing = |ev: u64| all.iter().find(|it| it["ev"] == ev && !it["after"].is_null());
        assert_eq!(closing(2).unwrap()["after"]["limit"], 1);
        let accepts = all.iter().filter(|it| it["call"] == "accept").count();
        assert_eq!(accepts, 1, "{}", ended.output);
    }
}

/// Goal: settings that can't work fail at the start. Method: settings that Spark rejects late or never.
#[test]
fn settings_that_cannot_work_end_at_the_start() {
    for conf in [
        json!({"spark.executor.cores": "0"}),
        json!({"spark.cores.max": "many"}),
        json!({"spark.executor.cores": "1", "spark.task.cpus": "2"}),
        json!({"spark.executor.uri": "hdfs://nn/a b.tgz"}),
        json!({"spark.blockManager.port": "99999"}),
        json!({"spark.mesos.extra.cores": "-1"}),
        json!({"spark.executor.cores": "+2"}),
    ] {
        let ended = replay(&["--compat", "spark-3.5"], &scenario(&conf, &[batch("o1")]));
        let [init] = &ended.events()[..] else { panic!("{conf}: {}", ended.output) };
        assert_eq!(init["init"], "error", "{conf}: {init}");
    }
}
