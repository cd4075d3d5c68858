//! TEARDOWN: it overtakes queued calls, is repeated, and its failure is reported.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use offermill::cluster::mesos::AtEnd;
use offermill::engine::Notice;
use offermill::engine::cluster_manager::{Call as EngineCall, ClusterManager};

use super::master::FakeMaster;
use super::script::{Answer, Call, Then, sound};
use super::{framework, mesos};
use crate::framework::Framework;

/// Longer than the time within which the framework must be torn down.
const LONG: Duration = Duration::from_secs(4);

fn silence() -> Answer {
    Answer::none().then(Then::Silence(LONG))
}

/// Stops the framework. Returns why the master may still have it, and whether that was reported as a notice.
fn stop(framework: Framework) -> (Option<String>, bool) {
    let Framework { engine, cluster, notices, .. } = framework;
    drop(engine);
    let reports = notices.count(
        |notice| matches!(notice, Notice::CallFailed { why } if why.starts_with("TEARDOWN: ")),
    );
    assert!(reports <= 1, "{:#?}", notices.all());
    (cluster.why_left().map(str::to_owned), reports == 1)
}

/// Goal: TEARDOWN overtakes queued calls. Method: a master that doesn't answer REVIVE, and a full queue of calls.
#[test]
fn teardown_overtakes_a_full_queue() {
    let fake = FakeMaster::new(|call| match call.kind.as_str() {
        "REVIVE" => silence(),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 0).unwrap();
    framework.id();
    let mut ordered = 0;
    while framework.cluster.call(EngineCall::Revive { epoch: 1 }).is_ok() {
        ordered += 1;
        assert!(ordered < 1_000_000, "the queue is never full");
    }
    assert_eq!(stop(framework), (None, false));
    assert_eq!(fake.calls_of("TEARDOWN").len(), 1);
}

/// Goal: TEARDOWN is repeated. Method: the first is not answered, is answered too late, and fails; the second is
/// accepted, or finds no such framework because the first was accepted after all (`Master::Http::scheduler`).
#[test]
fn teardown_is_repeated() {
    for first in [Answer::none(), silence(), Answer::status("500 Internal Server Error", "", "")] {
        for second in [
            Answer::status("202 Accepted", "", ""),
            Answer::status("400 Bad Request", "", "Framework cannot be found"),
        ] {
            let first = first.clone();
            let fake = FakeMaster::new(move |call| match (call.kind.as_str(), call.number) {
                ("TEARDOWN", 0) => first.clone(),
                ("TEARDOWN", 1) => second.clone(),
                _ => sound(call),
            });
            let framework = framework(mesos(&[fake.port()]), 0).unwrap();
            framework.id();
            assert_eq!(stop(framework), (None, false));
            assert_eq!(fake.calls_of("TEARDOWN").len(), 2);
        }
    }
}

/// Goal: without a subscription the manager subscribes again, and then sends TEARDOWN. Method: the stream is closed
/// before the end; and the master no longer knows the first subscription (`Master::Http::scheduler`).
#[test]
fn teardown_follows_the_next_subscription() {
    for is_cut in [true, false] {
        let old = super::script::stream_id(0);
        let forgotten = Answer::status("403 Forbidden", "", "Framework is not subscribed");
        let fake = FakeMaster::new(move |call| match call.kind.as_str() {
            "TEARDOWN" if call.message.header("mesos-stream-id") == Some(&*old) => {
                forgotten.clone()
            }
            _ => sound(call),
        });
        let framework = framework(mesos(&[fake.port()]), 0).unwrap();
        framework.id();
        if is_cut {
            fake.cut_stream();
            let ended = |notice: &Notice| matches!(notice, Notice::Disconnected).then_some(());
            framework.notices.wait("end of the subscription", ended);
        }
        assert_eq!(stop(framework), (None, false));
        let last = fake.calls_of("TEARDOWN").pop().unwrap();
        let stream = super::script::stream_id(1);
        assert_eq!(last.message.header("mesos-stream-id"), Some(&*stream));
        assert_eq!(last.body["framework_id"]["value"], "F-0001");
    }
}

/// Goal: the caller learns that the master may keep the framework. Method: a master that doesn't answer, one that
/// refuses, one that has gone, one that accepts no further subscription, and one that has forgotten the subscription
/// and refuses the next.
#[test]
fn failures_are_reported() {
    let kinds = ["silent", "refuses", "gone", "cut", "barred"];
    for kind in kinds {
        let fake = FakeMaster::new(move |call: &Call| match (call.kind.as_str(), call.number) {
            ("TEARDOWN", _) if kind == "silent" => silence(),
            ("TEARDOWN", _) if kind == "refuses" => {
                Answer::status("403 Forbidden", "", "not allowed to end it")
            }
            ("TEARDOWN", _) if kind == "barred" => {
                Answer::status("403 Forbidden", "", "Framework is not subscribed")
            }
            ("SUBSCRIBE", 1..) if kind == "barred" => {
                Answer::status("401 Unauthorized", "", "no longer allowed")
            }
            ("SUBSCRIBE", 1..) => Answer::none(),
            _ => sound(call),
        });
        let framework = framework(mesos(&[fake.port()]), 0).unwrap();
        framework.id();
        match kind {
            "gone" => drop(fake),
            "cut" => {
                fake.cut_stream();
                let ended = |notice: &Notice| matches!(notice, Notice::Disconnected).then_some(());
                framework.notices.wait("end of the subscription", ended);
            }
            _ => {}
        }
        let (left, is_reported) = stop(framework);
        let left = left.unwrap_or_else(|| panic!("{kind}: nothing was reported"));
        assert!(is_reported, "{kind}: {left}");
        assert_eq!(left.contains("not allowed to end it"), kind == "refuses", "{kind}: {left}");
        assert_eq!(left.contains("principal and a secret"), kind == "barred", "{kind}: {left}");
    }
}

/// Goal: if there is nothing to tear down, no TEARDOWN is sent and nothing is reported. Method: a framework that is to
/// be left; one whose subscription was never accepted; one that the master has refused.
#[test]
fn nothing_to_tear_down() {
    let fake = FakeMaster::new(sound);
    let mut left = mesos(&[fake.port()]);
    left.at_end = AtEnd::Leave;
    let framework_left = framework(left, 0).unwrap();
    framework_left.id();
    assert_eq!(stop(framework_left), (None, false));

    let busy = FakeMaster::new(|_| Answer::status("503 Service Unavailable", "", "starting"));
    let waiting = framework(mesos(&[busy.port()]), 0).unwrap();
    busy.wait_for("SUBSCRIBE", 0);
    assert_eq!(stop(waiting), (None, false));

    let strict = Arc::new(FakeMaster::new(sound));
    let refused = framework(mesos(&[strict.port()]), 0).unwrap();
    refused.id();
    strict.send(&serde_json::json!({"type": "ERROR", "error": {"message": "go away"}}));
    refused
        .notices
        .wait("refusal", |notice| matches!(notice, Notice::Refused { .. }).then_some(()));
    assert_eq!(stop(refused), (None, false));
    assert_eq!(fake.calls_of("TEARDOWN").len() + strict.calls_of("TEARDOWN").len(), 0);
}

/// Runs the command line without offers, and interrupts it once it has registered. Returns its exit code and its
/// output.
fn stopped_program(fake: &FakeMaster, flags: &[&str]) -> (Option<i32>, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_offermill"));
    program.args(["run", "--num-executors", "1", "-c", "offermill.mesos.encoding=json"]);
    program.args(flags);
    program.args(["-c", "offermill.mesos.user=nobody"]);
    program.args(["--master", &format!("mesos://127.0.0.1:{}", fake.port()), "--", "true"]);
    let child = program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("registered") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    output.read_to_string(&mut text).unwrap();
    let ended = child.wait_with_output().unwrap();
    text.push_str(&String::from_utf8(ended.stderr).unwrap());
    (ended.status.code(), text)
}

/// Goal: the command line reports in its output and its exit code that the master may keep the framework. Method: an
/// interrupted run; TEARDOWN is not answered, with and without a failover timeout, or it is.
#[test]
fn the_command_line_reports_failures() {
    for (failover, is_answered, code) in [("1h", false, 3), ("0s", false, 0), ("1h", true, 0)] {
        let fake = FakeMaster::new(move |call| match call.kind.as_str() {
            "TEARDOWN" if !is_answered => Answer::none(),
            _ => sound(call),
        });
        let flags = ["--failover-timeout", failover, "-c", "offermill.mesos.callTimeout=1s"];
        let (ended, text) = stopped_program(&fake, &flags);
        assert_eq!(ended, Some(code), "{text}");
        let sentence = "the framework F-0001 could not be torn down, and";
        assert_eq!(text.contains(sentence), !is_answered, "{text}");
        let remedy = format!("http://127.0.0.1:{}/master/teardown", fake.port());
        let remedy = format!("; this ends it: curl -fL -d frameworkId=F-0001 {remedy}");
        assert_eq!(text.contains(&remedy), !is_answered, "{text}");
        assert_eq!(text.contains("may keep it for"), code == 3, "{text}");
    }
}

/// Goal: the command line waits for TEARDOWN as long as the call timeout allows, and its exit code reports the outcome.
/// Method: a master that doesn't answer TEARDOWN but accepts everything else, and a call timeout which, taken twice, is
/// longer than an engine waits by default for a manager's stop.
#[test]
fn the_command_line_waits_for_a_slow_teardown() {
    let fake = FakeMaster::new(move |call| match call.kind.as_str() {
        "TEARDOWN" => Answer::none().then(Then::Silence(LONG * 10)),
        _ => sound(call),
    });
    let timeouts = ["--shutdown-timeout", "100ms", "-c", "offermill.mesos.callTimeout=9s"];
    let flags = [&["--failover-timeout", "1h"], &timeouts[..]].concat();
    let (ended, text) = stopped_program(&fake, &flags);
    assert_eq!(ended, Some(3), "{text}");
    assert!(text.contains("the framework F-0001 could not be torn down, and"), "{text}");
    assert!(!text.contains("were abandoned"), "{text}");
    assert_eq!(fake.calls_of("TEARDOWN").len(), 2);
}
