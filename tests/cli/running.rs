//! Tests of running, failing and replaced executors.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Folder, Run, finish, offermill, process_of, send_signal, small};

/// Goal: the example of the help works: six executors on three agents finish, and each finds its id and host in its
/// environment. Method: run it; read the summary and the executors' output.
#[test]
fn six_executors_over_three_agents_finish() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[3,2,64]", "--num-executors", "6", "--until-finished"];
    let script = "echo {{EXECUTOR_ID}} {{HOSTNAME}} $OFFERMILL_EXECUTOR_ID $OFFERMILL_HOSTNAME \
                  $OFFERMILL_CORES $OFFERMILL_MEMORY_MB $OFFERMILL_APP_ID {{APP_ID}} $X";
    let more = ["--name", "etl", "--env", "X={{CORES}} cores"];
    let ended = finish(&folder, &small(&[&flags[..], &more].concat(), &["sh", "-c", script]));
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    for agent in ["agent-0", "agent-1", "agent-2"] {
        assert!(ended.output.contains(&format!("{agent}    2 finished\n")), "{}", ended.output);
    }
    assert!(ended.output.contains("etl ran for "), "{}", ended.output);
    assert!(ended.output.contains("all 6 executors have finished (exit code 0)"));
    let outputs = folder.outputs();
    assert_eq!(outputs.len(), 6);
    for output in outputs {
        let words: Vec<&str> = output.split_whitespace().collect();
        let [id, host, same_id, same_host, cores, memory, app, same_app, x, _] = words[..] else {
            panic!("{output}")
        };
        assert!(id.starts_with("etl-") && host.starts_with("agent-"), "{output}");
        assert_eq!((id, host, app), (same_id, same_host, same_app));
        assert_eq!((cores, memory, x), ("1", "16", "1"));
    }
    folder.assert_deserted();
}

/// Goal: a failed executor is replaced on another agent, and the run finishes. Method: executors fail on one agent,
/// which one failure excludes.
#[test]
fn a_failing_executor_is_replaced_elsewhere() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[3,2,64]", "--num-executors", "3", "--until-finished"];
    let more = ["--exclude-after", "1", "--json"];
    let script = "[ {{HOSTNAME}} != agent-1 ] || exit 3; sleep 1";
    let ended = finish(&folder, &small(&[&flags[..], &more].concat(), &["sh", "-c", script]));
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let events = ended.events();
    let failed = find(&events, |event| event["event"] == "ended" && event["state"] == "failed");
    assert_eq!((&failed["host"], &failed["message"]), (&"agent-1".into(), &"exit code 3".into()));
    let replacement = find(&events, |event| event["replaces"] == failed["executor"]);
    assert_ne!(replacement["host"], "agent-1");
    let summary = events.last().unwrap();
    assert_eq!(summary["executors_replaced"], 1);
    assert_eq!(summary["exit_code"], 0);
}

/// Goal: a killed executor is noticed at once and replaced on another agent. Method: SIGKILL to one of six processes on
/// the first agent; each agent has room for one more.
#[test]
fn a_killed_executor_is_replaced_elsewhere() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[3,3,64]", "--num-executors", "6", "--json"];
    let mut run = Run::start(&folder, &small(&flags, &["sleep", "1000"]));
    let running: Vec<Value> = (0..6).map(|_| run.event_named("running")).collect();
    let victim = running.iter().find(|event| event["host"] == "agent-0").unwrap();
    send_signal("KILL", process_of(victim));
    let ended = run.event_named("ended");
    assert_eq!(ended["executor"], victim["executor"]);
    assert_eq!(ended["state"], "failed");
    assert_eq!(ended["message"], "killed by signal 9 (SIGKILL)");
    let placed = run.event(|event| event["replaces"] == victim["executor"]);
    assert_ne!(placed["host"], victim["host"]);
    run.event(|event| event["event"] == "running" && event["executor"] == placed["executor"]);
    run.signal("TERM");
    assert_eq!(run.end().code, Some(0));
    folder.assert_deserted();
}

/// Goal: two failures exclude an agent; which agent, the reason and the expiry are printed at once and at the end.
/// Method: an agent on which all executors fail.
#[test]
fn two_failures_exclude_an_agent() {
    let folder = Folder::new();
    let flags = ["--master", "local-cluster[3,4,128]", "--num-executors", "6", "--until-finished"];
    let script = "[ {{HOSTNAME}} != agent-1 ] || exit 3; sleep 1";
    let ended = finish(&folder, &small(&flags, &["sh", "-c", script]));
    assert_eq!(ended.code, Some(0), "{}", ended.output);
    let lines: Vec<&str> = ended.output.lines().filter(|line| line.contains("excluded")).collect();
    let happened =
        lines.iter().find(|line| line.contains("agent-1 excluded after 2 failures until "));
    assert!(happened.unwrap().ends_with(" UTC (1 h); the last: exit code 3"), "{}", ended.output);
    let at_end =
        lines.iter().find(|line| line.starts_with("excluded   agent-1 after 2 failures until "));
    assert!(at_end.unwrap().contains(" UTC (in 59 min"), "{}", ended.output);
}

/// Goal: a run whose executors all fail ends with its own exit code. Method: `false` with a maximum of failures; and
/// without one, on all agents.
#[test]
fn a_run_that_only_fails_ends() {
    for more in
        [&["--max-executor-failures", "2", "--exclude-after", "never"][..], &["--until-finished"]]
    {
        let folder = Folder::new();
        let flags = ["--master", "local-cluster[2,4,128]", "--num-executors", "4"];
        let ended = finish(&folder, &small(&[&flags[..], more].concat(), &["false"]));
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        assert!(ended.output.contains("(exit code 1)"), "{}", ended.output);
        folder.assert_deserted();
    }
}

/// Goal: agents that can't get executors don't keep a run alive that fails on all others. Method: `false` on the one
/// agent that meets a constraint, and on the one that has the port.
#[test]
fn a_run_that_fails_on_all_usable_agents_ends() {
    let zones =
        ["--agent-attributes", "zone:east|zone:west", "--constraints", "zone:east"].as_slice();
    for more in [zones, &["-c", "spark.blockManager.port=31555"]] {
        let folder = Folder::new();
        let flags = ["--master", "local-cluster[2,1,1024]", "--num-executors", "1"];
        let end = ["--until-finished"];
        let ended = finish(&folder, &small(&[&flags[..], more, &end].concat(), &["false"]));
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        assert!(ended.output.contains("the only usable one is excluded"), "{}", ended.output);
    }
}

/// Goal: constraints and placement decide where executors run. Method: agents in two zones, one of which is required;
/// then consolidation, which fills one agent before the next.
#[test]
fn executors_run_where_they_should() {
    let hosts = |flags: &[&str]| {
        let folder = Folder::new();
        let all = [
            "--master",
            "local-cluster[4,2,64]",
            "--num-executors",
            "2",
            "--until-finished",
            "--json",
        ];
        let ended = finish(&folder, &small(&[&all[..], flags].concat(), &["sleep", "0.2"]));
        assert_eq!(ended.code, Some(0), "{}", ended.errors);
        let mut hosts: BTreeMap<String, usize> = BTreeMap::new();
        for event in ended.events().iter().filter(|event| event["event"] == "placed") {
            *hosts.entry(event["host"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        hosts
    };
    let zones =
        ["--agent-attributes", "zone:east|zone:west;rack:r%d", "--constraints", "zone:west"];
    assert!(hosts(&zones).keys().all(|host| host == "agent-1" || host == "agent-3"));
    assert_eq!(hosts(&["--placement", "consolidate"]).len(), 1);
    assert_eq!(hosts(&["--placement", "round-robin"]).len(), 2);
}

fn find(events: &[Value], is_it: impl Fn(&&Value) -> bool) -> &Value {
    events.iter().find(is_it).unwrap()
}

/// Goal: executors don't inherit this program's secrets, whatever the variable is called, and with `--clean-env`
/// nothing but what is given; and the program that was looked up is the one that runs. Method: executors print their
/// environment and their program.
#[test]
fn executors_inherit_no_secrets() {
    const CANARY: &str = "cAnAry-5ecret";
    let given = ["--until-finished", "--num-executors", "1", "--env", "GIVEN=given"];
    for (flags, inherits) in [(&[][..], true), (&["--clean-env"][..], false)] {
        let folder = Folder::new();
        let arguments = small(&[&given[..], flags].concat(), &["sh", "-c", "echo $0; env"]);
        let mut command = offermill(&folder.0, &arguments);
        command.env("SPARK_MESOS_SECRET", CANARY).env("COPY", format!("p:{CANARY}"));
        command.env("SPARK_MESOS_SECRET_FILE", "/a/file").env("PLAIN", "plain");
        let ended = command.output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let output = folder.outputs().concat();
        assert!(!output.contains(CANARY) && !output.contains("/a/file"), "{output}");
        assert!(output.contains("GIVEN=given\n"), "{output}");
        assert!(output.contains("OFFERMILL_EXECUTOR_ID="), "{output}");
        assert_eq!(output.contains("PLAIN=plain\n"), inherits, "{output}");
        assert!(output.starts_with('/') && output.lines().next().unwrap().ends_with("/sh"));
    }
}

/// Goal: a secret that is a common text takes no variables from executors in which it occurs by chance, and none that
/// they always need; others that are the secret are withheld, and a remark names them. Method: executors print their
/// environment.
#[test]
fn a_common_text_as_secret_withholds_little() {
    let folder = Folder::new();
    let given = ["--until-finished", "--num-executors", "1"];
    let mut command = offermill(&folder.0, &small(&given, &["sh", "-c", "env"]));
    command.env("SPARK_MESOS_SECRET", "usr").env("HOME", "/usr/home").env("PREFIX", "/usr/local");
    command.env("SAME", "usr").env("ANOTHER", "usr").env("JAVA_HOME", "usr");
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let output = format!("\n{}", folder.outputs().concat());
    for kept in ["HOME=/usr/home\n", "PREFIX=/usr/local\n", "JAVA_HOME=usr\n", "PATH="] {
        assert!(output.contains(&format!("\n{kept}")), "{output}");
    }
    assert!(!output.contains("\nSAME=") && !output.contains("\nANOTHER="), "{output}");
    let errors = String::from_utf8(ended.stderr).unwrap();
    let remark = "executors don't inherit ANOTHER, SAME: a secret is in them";
    assert!(errors.contains(remark), "{errors}");
}
