//! Tests of `offermill replay`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Ended, Folder, finish, offermill};

/// The answers of Spark's backend to 100 scenarios; see the README.md there.
fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/spark/traces")
}

/// A scenario with these settings besides the default ones.
pub(crate) fn scenario(conf: &Value, events: &[Value]) -> String {
    let mut all = json!({
        "spark.app.name": "app", "spark.executor.memory": "512m", "spark.executor.cores": "1",
        "spark.mesos.executor.home": "/opt/spark", "spark.driver.host": "driver.example",
        "spark.driver.port": "7078",
    });
    for (key, value) in conf.as_object().unwrap() {
        all[key] = value.clone();
    }
    let lines = [json!({"format": 1, "conf": all}), json!({"registered": {"framework_id": "fw"}})];
    let lines = lines.iter().chain(events).map(|line| format!("{line}\n"));
    lines.collect()
}

/// An offer with this many cores, and attributes.
pub(crate) fn offer(id: &str, agent: &str, cores: f64, attributes: &Value) -> Value {
    json!({
        "id": id, "agent": agent, "host": format!("{agent}.example"), "attributes": attributes,
        "resources": [{"name": "cpus", "scalar": cores}, {"name": "mem", "scalar": 9999}],
    })
}

/// Replays a scenario.
pub(crate) fn replay(flags: &[&str], text: &str) -> Ended {
    let folder = Folder::new();
    folder.write("scenario.jsonl", text);
    finish(&folder, &[&["replay", "scenario.jsonl"], flags].concat())
}

pub(crate) fn in_traces(folder: &str) -> String {
    traces().join(folder).to_str().unwrap().to_owned()
}

/// Goal: with `--compat spark-3.5`, decisions are the same as Spark's, and the output says how much was compared.
/// Method: compare with all of its answers.
#[test]
fn spark_would_have_decided_the_same() {
    let (scenarios, expected) = (in_traces("scenario"), in_traces("expected"));
    let arguments = ["replay", "--compat", "spark-3.5", &scenarios, "--expect", &expected];
    let ended = finish(&Folder::new(), &arguments);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let no_home = "scenario/180.jsonl: Spark couldn't launch an executor";
    assert!(
        ended.errors.lines().count() == 1 && ended.errors.contains(no_home),
        "{}",
        ended.errors
    );
    // For readers of the log.
    println!("{}", ended.output);
    let told = "100 scenarios, 15 827 answers compared (";
    let rest = ended.output.strip_prefix(told).unwrap_or_else(|| panic!("{}", ended.output));
    let (alike, rest) = rest.split_once(" to the byte), ").unwrap();
    // All but accepts, whose commands are quoted differently.
    assert!(alike.replace(' ', "").parse::<u32>().unwrap() >= 15_133, "{alike}");
    let ended_early = "9 scenarios compared only up to where Spark threw an exception or received an update for a task \
                       that wasn't on that agent\n";
    assert_eq!(rest, format!("no difference\n{ended_early}"));
}

/// Goal: differences are printed with their place, up to a maximum. Method: change one value of the answers at a time.
#[test]
fn differences_are_told_in_words() {
    let scenario = in_traces("scenario/118.jsonl");
    let expected = fs::read_to_string(traces().join("expected/118.jsonl")).unwrap();
    for (from, to, told) in [
        (
            "\"refuse_seconds\":null",
            "\"refuse_seconds\":7.0",
            "expected to decline it for 7 s, decided for Mesos' default time",
        ),
        ("\"executors\":1,", "\"executors\":2,", "executors after it: expected 2, decided 1"),
        ("\"call\":\"revive\"", "\"call\":\"suppress\"", "expected executor_removed"),
        ("--app-id fw-1", "--app-id fw-2", "command: expected"),
        ("\"scalar\":1408.0", "\"scalar\":1407.0", "resources: expected"),
        ("\"max_cores\":", "\"max_cores\":1", "start: core cap: expected 1"),
        ("\"init\":\"ok\"", "\"init\":\"error\"", "start: result: expected error, decided ok"),
        ("{\"type\":\"MESOS\"}", "{\"type\":\"DOCKER\"}", "container: expected"),
        ("Executor finished with state", "Executor ended with state", "executor_removed"),
        ("SPARK_EXECUTOR_OPTS", "SPARK_EXECUTOR_OPT", "environment: expected"),
        ("\"limit\":null", "\"limit\":3", "limit after it: expected 3, decided none"),
    ] {
        if !expected.contains(from) {
            panic!("{from} isn't in it");
        }
        let folder = Folder::new();
        folder.write("expected.jsonl", &expected.replacen(from, to, 1));
        let compat = ["replay", "--compat", "spark-3.5", &scenario, "--expect", "expected.jsonl"];
        let ended = finish(&folder, &compat);
        assert_eq!(ended.code, Some(1), "{from}: {}{}", ended.output, ended.errors);
        assert!(ended.output.contains(told), "{from}: {}", ended.output);
        assert!(ended.output.contains("1 scenario with differences"), "{from}: {}", ended.output);
    }
    let folder = Folder::new();
    folder.write(
        "expected.jsonl",
        &expected.replace("\"refuse_seconds\":null", "\"refuse_seconds\":7"),
    );
    let compat = ["replay", "--compat", "spark-3.5", &scenario, "--expect", "expected.jsonl"];
    for (show, lines) in [("0", 1 + 1), ("3", 3 + 1 + 1)] {
        let ended = finish(&folder, &[&compat[..], &["--show", show]].concat());
        assert_eq!(
            (ended.code, ended.output.lines().count()),
            (Some(1), lines),
            "{}",
            ended.output
        );
        let place = ended.output.contains(": event 2 (line 4): offer ");
        assert!(place || show == "0", "{}", ended.output);
        assert!(ended.output.contains(": and "), "{}", ended.output);
    }
}

/// Goal: expected answers that are shorter or longer than their scenario are reported; only the answers of a killed run
/// of Offermill may be shorter. Method: both, decided as Offermill, with and without an orderly end, and as Spark.
#[test]
fn expectations_of_another_length_are_told() {
    let folder = Folder::new();
    let compat = ["--compat", "spark-3.5"];
    let (stop, kill) = (json!({"stop": true}), json!({"kill": []}));
    for (flags, last, short) in [(&[][..], &kill, 0), (&[], &stop, 1), (&compat, &stop, 1)] {
        let text = scenario(&json!({}), &[kill.clone(), last.clone()]);
        folder.write("scenario.jsonl", &text);
        let ended = finish(&folder, &[&["replay", "scenario.jsonl"], flags].concat());
        let all: Vec<&str> = ended.output.split_inclusive('\n').collect();
        let compare = |expected: &str| {
            folder.write("expected.jsonl", expected);
            finish(
                &folder,
                &[&["replay", "scenario.jsonl", "--expect", "expected.jsonl"], flags].concat(),
            )
        };
        let ended = compare(&all[..3].concat());
        assert_eq!(ended.code, Some(short), "{}", ended.output);
        let told =
            ["only up to where the expected answers end", "no answer was expected"][short as usize];
        assert!(ended.output.contains(told), "{}", ended.output);
        let further = all.last().unwrap().replace("\"ev\":2", "\"ev\":3");
        let ended = compare(&format!("{}{further}", all.concat()));
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        assert!(ended.output.contains("expected up to event 3"), "{}", ended.output);
    }
}

/// Goal: the same scenarios can be decided as Offermill. Method: check that each event has its closing line, and that a
/// second replay gives the same answers.
#[test]
fn our_own_way_answers_the_same_scenarios() {
    let folder = Folder::new();
    for name in ["000", "086", "104", "158", "174", "190"] {
        let scenario = in_traces(&format!("scenario/{name}.jsonl"));
        let ended = finish(&folder, &["replay", &scenario]);
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{name}");
        let events = fs::read_to_string(&scenario).unwrap().lines().count() - 1;
        let closings = ended.events().iter().filter(|it| !it["after"].is_null()).count();
        assert_eq!(closings, events, "{name}");
        folder.write("answers", &ended.output);
        let again = finish(&folder, &["replay", &scenario, "--expect", "answers"]);
        assert_eq!(again.code, Some(0), "{name}: {}", again.output);
    }
}

/// Goal: Offermill's own decisions use what Spark can't. Method: a batch of one agent's offers that hold an executor
/// only together; an agent on which two executors failed, an hour later.
#[test]
fn our_own_way_is_another() {
    let none = json!([]);
    let half = |id| offer(id, "a1", 0.5, &none);
    let whole = |id, agent| offer(id, agent, 1.0, &none);
    let failed = |task| json!({"status": {"task": task, "agent": "a1", "state": "TASK_FAILED"}});
    let text = scenario(
        &json!({}),
        &[
            json!({"offers": [half("o1"), half("o2")]}),
            failed("0"),
            json!({"offers": [whole("o3", "a1")]}),
            failed("1"),
            json!({"offers": [whole("o4", "a1")]}),
            json!({"advance_ms": 3_600_000}),
            json!({"offers": [whole("o5", "a1")]}),
        ],
    );
    let accepted = |ended: Ended| -> Vec<String> {
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        let accepts = ended.events().into_iter().filter(|it| it["call"] == "accept");
        accepts.map(|it| it["offers"].to_string()).collect()
    };
    assert_eq!(accepted(replay(&[], &text)), ["[\"o1\",\"o2\"]", "[\"o3\"]", "[\"o5\"]"]);
    assert_eq!(
        accepted(replay(&["--compat", "spark-3.5"], &text)),
        ["[\"o3\"]", "[\"o4\"]", "[\"o5\"]"]
    );
}

/// Goal: invalid scenarios are rejected with the place of the error, and no answers are printed. Method: a file of each
/// kind of error.
#[test]
fn what_is_no_scenario_is_refused() {
    let folder = Folder::new();
    let good = scenario(&json!({}), &[]);
    folder.write("good.jsonl", &good);
    folder.write("odd.jsonl", &format!("{good}{{\"offrs\":[]}}\n"));
    folder.write("empty.jsonl", "");
    folder.write("answers.jsonl", &replay(&[], &good).output);
    folder.write("headless.jsonl", "{\"stop\":true}\n");
    folder.write(
        "late.jsonl",
        &format!("{good}{{\"at_ms\":5,\"stop\":true}}\n{{\"at_ms\":4,\"stop\":true}}\n"),
    );
    folder.write("later.jsonl", &format!("{good}{{\"advance_ms\":86400001}}\n"));
    fs::write(folder.0.join("latin.jsonl"), b"{\"format\":1,\"conf\":{\"a\":\"\xe9\"}}\n").unwrap();
    fs::create_dir(folder.0.join("bare")).unwrap();
    for (files, told) in [
        (&["odd.jsonl"][..], "odd.jsonl:3: column 8: unknown event \"offrs\", expected one of"),
        (&["empty.jsonl"], "empty.jsonl:1: no complete line, expected a head"),
        (&["answers.jsonl"], "answers.jsonl:1: this is a file of answers, expected the journal"),
        (&["headless.jsonl"], "headless.jsonl:1: column 7: unknown key \"stop\", expected one of"),
        (&["latin.jsonl"], "latin.jsonl:1: not UTF-8, expected"),
        (&["late.jsonl"], "late.jsonl:4: its time is 4 ms, expected 5 to"),
        (&["later.jsonl"], "later.jsonl:3: its time is 86400001 ms, expected 0 to 86400000"),
        (&["none.jsonl"], "none.jsonl: can't be read: No such file"),
        (&["bare"], "bare: no scenario in it, expected a folder of *.jsonl"),
        (&["good.jsonl", "--expect", "bare"], "bare/good.jsonl: can't be read"),
        (
            &["good.jsonl", "--expect", "good.jsonl"],
            "neither \"init\" nor \"call\" nor \"after\", expected an answer",
        ),
        (
            &["good.jsonl", "--expect", "empty.jsonl"],
            "empty.jsonl:1: no complete line, expected an answer",
        ),
        (&["good.jsonl", "good.jsonl", "--expect", "x"], "--expect is given 1 time, expected 2"),
        (&["bare", "--expect", "good.jsonl"], "no scenario in it"),
    ] {
        let ended = finish(&folder, &[&["replay"], files].concat());
        assert_eq!(ended.code, Some(2), "{files:?}: {}", ended.output);
        assert!(ended.errors.contains(told), "{files:?}: {}", ended.errors);
        let is_quiet = ended.output.is_empty() || files.contains(&"--expect");
        assert!(is_quiet, "{files:?}: {}", ended.output);
    }
    let ended = finish(&folder, &["replay", "odd.jsonl", "good.jsonl"]);
    assert_eq!((ended.code, ended.output.lines().count()), (Some(2), 2), "{}", ended.output);
}

/// Goal: invalid settings are reported in the first line of the answers. Method: one setting of each kind.
#[test]
fn settings_that_cannot_be_had_are_an_answer() {
    for (conf, error) in [
        (
            json!({"spark.mesos.constraints": "zone"}),
            "IllegalArgumentException: Bad constraint string: zone",
        ),
        (json!({"spark.executor.memory": "much"}), "spark.executor.memory"),
        (json!({"spark.cores.max": "many"}), "spark.cores.max"),
    ] {
        for flags in [&[][..], &["--compat", "spark-3.5"]] {
            let ended = replay(flags, &scenario(&conf, &[json!({"stop": true})]));
            let [init] = &ended.events()[..] else { panic!("{}", ended.output) };
            assert_eq!((ended.code, &init["init"]), (Some(0), &json!("error")), "{conf}");
            assert!(init["error"].as_str().unwrap().contains(error), "{init}");
        }
    }
}

/// Goal: the scenario of a killed run is replayed up to its last whole line. Method: remove the last characters of one.
#[test]
fn a_cut_file_is_played_with_a_remark() {
    let text = scenario(&json!({}), &[json!({"kill": []}), json!({"stop": true})]);
    let ended = replay(&[], &text[..text.len() - 4]);
    assert_eq!((ended.code, ended.output.lines().count()), (Some(0), 3), "{}", ended.output);
    assert!(
        ended.errors.contains("scenario.jsonl:4: the file ends in the middle of this line"),
        "{}",
        ended.errors
    );
}

/// Goal: a replay ends if its reader closes the pipe. Method: a scenario of a hundred days, of which one line is read.
#[test]
fn a_reader_that_goes_away_ends_the_play() {
    let folder = Folder::new();
    let day = json!({"advance_ms": 86_400_000});
    folder.write("scenario.jsonl", &scenario(&json!({}), &vec![day; 99]));
    let mut child =
        offermill(&folder.0, &["replay", "scenario.jsonl"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    drop(output);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(line.contains("init"), "{line}");
}

/// Goal: the exit code says that a scenario can't be read, though the reader of the others' answers closes the pipe.
/// Method: an unreadable scenario, then one of a hundred days of which one line is read.
#[test]
fn a_closed_pipe_hides_no_unreadable_scenario() {
    let folder = Folder::new();
    let day = json!({"advance_ms": 86_400_000});
    folder.write("bad.jsonl", "[]\n");
    folder.write("scenario.jsonl", &scenario(&json!({}), &vec![day; 99]));
    let arguments = ["replay", "bad.jsonl", "scenario.jsonl"];
    let mut child = offermill(&folder.0, &arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    drop(output);
    assert_eq!(child.wait().unwrap().code(), Some(2));
    assert!(line.contains("init"), "{line}");
}

/// Goal: scenarios are read from standard input, and a closed pipe and a full disk are handled as by other commands.
/// Method: each of them.
#[test]
fn streams_are_borne() {
    let folder = Folder::new();
    let text = fs::read_to_string(traces().join("scenario/186.jsonl")).unwrap();
    let mut child = offermill(&folder.0, &["replay", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.code(), &*errors), (Some(0), ""));
    #[cfg(target_os = "linux")]
    for flags in [&[][..], &["--compat", "spark-3.5"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let file = in_traces("scenario/000.jsonl");
        let arguments = [&["replay", &file], flags].concat();
        let ended = offermill(&folder.0, &arguments).stdout(full).output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(5), "{errors}");
        assert_eq!(errors.matches("standard output can't be written: ").count(), 1, "{errors}");
    }
}

/// Goal: a scenario can readmit an agent. Method: an offer of a lost agent is declined; after the readmission, which
/// says whether it changed anything, the next is accepted. Spark knows no readmission.
#[test]
fn a_readmission_is_an_event() {
    let offers = |id| json!({"offers": [offer(id, "a1", 1.0, &json!([]))]});
    let readmitted = json!({"agent_readmitted": "a1"});
    let events =
        [json!({"slave_lost": "a1"}), offers("o1"), readmitted.clone(), readmitted, offers("o2")];
    let text = scenario(&json!({}), &events);
    let ended = replay(&[], &text);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let answers: Vec<Value> =
        ended.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let results: Vec<&Value> = answers.iter().filter_map(|answer| answer.get("result")).collect();
    assert!(results.contains(&&json!(true)) && results.contains(&&json!(false)), "{results:?}");
    assert!(answers.iter().any(|answer| answer["offers"] == json!(["o2"])), "{}", ended.output);
    assert!(!answers.iter().any(|answer| answer["offers"] == json!(["o1"])), "{}", ended.output);
    assert_eq!(replay(&["--compat", "spark-3.5"], &text).code, Some(0));
}

/// Goal: permits, bindings and former executors without an agent are in journals. Method: a scenario with each; an
/// executor is bound, another is unwelcome, and a third binding comes too late. Spark knows none of them.
#[test]
fn executors_are_bound_in_a_replay() {
    let mut permit = offer("p1", "", 1.0, &json!([]));
    (permit["late"], permit["host"]) = (json!(true), json!(""));
    let ssd = json!([{"name": "disk", "text": "ssd"}]);
    let bound = |task: &str, attributes: &Value| {
        let facts = json!({"task": task, "agent": "a1", "host": "h1", "attributes": attributes});
        json!({"bound": facts})
    };
    let former = json!({
        "executor": "pod-1", "agent": "", "host": "", "millicores": 1000, "mem": 512, "late": true
    });
    let ended = json!({"status": {"task": "pod-1", "agent": "a1", "state": "TASK_FAILED"}});
    let events = [
        json!({"former": [former]}),
        json!({"offers": [permit]}),
        bound("1", &ssd),
        bound("1", &json!([])),
        bound("pod-1", &json!([])),
        ended,
        bound("pod-1", &ssd),
    ];
    let config = json!({"spark.mesos.constraints": "disk:ssd"});
    let text = scenario(&config, &events);
    let ended = replay(&[], &text);
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let answers = ended.output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let bound: Vec<Value> =
        answers.filter_map(|answer| answer["result"].get("bound").cloned()).collect();
    assert_eq!(bound, ["settled", "already", "unwelcome", "nothing"], "{}", ended.output);
    assert_eq!(replay(&["--compat", "spark-3.5"], &text).code, Some(0));
}
