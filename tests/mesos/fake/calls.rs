//! Calls with an unknown outcome, and calls that are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use offermill::Phase;
use offermill::cluster::mesos::MesosCluster;
use offermill::engine::Notice;
use offermill::engine::cluster_manager::{Call as EngineCall, ClusterManager, Event};

use super::master::FakeMaster;
use super::panics::EventRecorder;
use super::script::{Answer, Call, Then, offers, sound, stream_id, subscribed, update};
use super::streams::{Running, task_of};
use super::{framework, mesos};

/// Goal: a launch with an unknown outcome keeps its resources until the cluster has reported its state. Method: the
/// connection is closed in the middle of an ACCEPT, after it was read; nothing else is placed; then the task turns out
/// to run, as it does when the master got the call and its answer was lost.
#[test]
fn an_accept_without_an_answer() {
    for answer in [Answer::none(), Answer::bytes("HTTP/1.1 202 Acc"), silence()] {
        let fake = FakeMaster::new(move |call| match call.kind.as_str() {
            "ACCEPT" => answer.clone(),
            _ => sound(call),
        });
        let framework = framework(mesos(&[fake.port()]), 1).unwrap();
        framework.id();
        fake.send(&offers("O-1", "S-1", 4));
        let task = task_of(&fake.wait_for("ACCEPT", 0));
        fake.send(&offers("O-2", "S-2", 4));
        // The second offer is not used: the only wanted executor may be starting.
        std::thread::sleep(Duration::from_secs(1));
        assert_eq!(fake.calls_of("ACCEPT").len(), 1, "an ACCEPT must not be sent twice");
        let executors = framework.snapshot().executors;
        assert!(matches!(&executors[..], [one] if one.phase == Phase::Launching), "{executors:#?}");
        fake.send(&update(&task, "S-1", "TASK_RUNNING", Some("AAAA")));
        fake.wait_for("ACKNOWLEDGE", 0);
        let executors = framework.snapshot().executors;
        assert!(matches!(&executors[..], [one] if one.phase == Phase::Running), "{executors:#?}");
    }
}

/// No answer for longer than the call timeout.
fn silence() -> Answer {
    Answer::none().then(Then::Silence(Duration::from_secs(2)))
}

/// Goal: a launch with an unknown outcome is reconciled, and given up if the cluster reports that there is no such
/// task. Method: as before, but the answer to RECONCILE is TASK_DROPPED without a uuid, which must not be acknowledged
/// (PROTOCOL 14); the next offer is used.
#[test]
fn an_accept_that_never_arrived() {
    let fake = FakeMaster::new(|call| match (call.kind.as_str(), call.number) {
        ("ACCEPT", 0) => Answer::none(),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 4));
    let task = task_of(&fake.wait_for("ACCEPT", 0));
    fake.send(&update(&task, "S-1", "TASK_DROPPED", None));
    // The kernel learns of it before it gets the next offer.
    let dropped = |notice: &Notice| matches!(notice, Notice::Updated { .. }).then_some(());
    framework.notices.wait("update", dropped);
    fake.send(&offers("O-2", "S-2", 4));
    assert_ne!(task_of(&fake.wait_for("ACCEPT", 1)), task);
    assert_eq!(fake.calls_of("ACKNOWLEDGE").len(), 0);
}

/// Goal: a refused launch had no effect: its executor is placed again. Method: 403 "Framework is not subscribed"
/// (`Master::Http::scheduler`) for the first ACCEPT; the next offer is used.
#[test]
fn an_accept_that_is_refused() {
    let fake = FakeMaster::new(|call| match (call.kind.as_str(), call.number) {
        ("ACCEPT", 0) => Answer::status("403 Forbidden", "", "Framework is not subscribed"),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    fake.send(&offers("O-1", "S-1", 4));
    let task = task_of(&fake.wait_for("ACCEPT", 0));
    let ready = |call: Option<Call>| call.is_some();
    // It may have subscribed again or not; in both cases it uses offers.
    let give_up = Instant::now() + Duration::from_secs(15);
    let mut number = 2;
    while !ready(fake.calls_of("ACCEPT").into_iter().nth(1)) {
        assert!(Instant::now() < give_up, "{:#?}", framework.notices.all());
        std::thread::sleep(Duration::from_millis(300));
        fake.send(&offers(&format!("O-{number}"), "S-2", 4));
        number += 1;
    }
    assert_ne!(task_of(&fake.wait_for("ACCEPT", 1)), task);
    framework.kernel.check().unwrap();
}

/// Goal: each copy of an update is acknowledged once, in the order of its task's updates, after it was applied, if and
/// only if it has a uuid; also updates of unknown executors. Method: copies with and without a uuid, of known and
/// unknown tasks (PROTOCOL 14, 15).
#[test]
fn acknowledgements() {
    let running = Running::start(sound);
    let task = running.task.as_str();
    for (task, uuid) in [
        (task, Some("AAAB")),
        (task, None),
        ("somebody-elses", Some("AAAD")),
        ("somebody-elses", None),
        (task, Some("AAAE")),
    ] {
        running.fake.send(&update(task, "S-1", "TASK_RUNNING", uuid));
    }
    let last = running.fake.wait_for("ACKNOWLEDGE", 4);
    let calls = running.fake.calls_of("ACKNOWLEDGE");
    let of = |task: &str| -> Vec<String> {
        let own = calls.iter().filter(|it| it.body["acknowledge"]["task_id"]["value"] == task);
        own.map(uuid_of).collect()
    };
    assert_eq!(of(task), ["AAAA", "AAAB", "AAAB", "AAAE"]);
    assert_eq!(of("somebody-elses"), ["AAAD"]);
    assert_eq!(last.body["acknowledge"]["agent_id"]["value"], "S-1");
}

fn uuid_of(call: &Call) -> String {
    call.body["acknowledge"]["uuid"].as_str().unwrap_or_default().to_owned()
}

/// Goal: calls that a restarting master rejects don't end the framework. Method: 503 for every acknowledgement and
/// decline; the subscription stays or is renewed, and the executor continues to run.
#[test]
fn calls_that_fail_for_a_while() {
    let is_failing = Arc::new(AtomicBool::new(false));
    let fails = Arc::clone(&is_failing);
    let running = Running::start(move |call| match call.kind.as_str() {
        "DECLINE" | "SUPPRESS" | "REVIVE" if fails.load(Ordering::SeqCst) => {
            Answer::status("503 Service Unavailable", "", "later")
        }
        _ => sound(call),
    });
    is_failing.store(true, Ordering::SeqCst);
    running.fake.send(&offers("O-2", "S-2", 4));
    running.fake.wait_for("DECLINE", 0);
    running.assert_phase(Phase::Running);
    assert_eq!(running.framework.snapshot().executors.len(), 1);
}

/// Goal: a 307 in answer to a call, after the leader has changed, leads to a new subscription, and the executor
/// continues to run. Method: as `Master::Http::redirect` answers all calls when it no longer leads.
#[test]
fn a_call_to_a_master_that_does_not_lead_any_more() {
    let second = FakeMaster::new(sound);
    let location = format!("//127.0.0.1:{}/api/v1/scheduler", second.port());
    let first = FakeMaster::new(move |call| match (call.kind.as_str(), call.number) {
        ("SUBSCRIBE", 0) => sound(call),
        _ => Answer::status("307 Temporary Redirect", &format!("Location: {location}\r\n"), ""),
    });
    let framework = framework(mesos(&[first.port(), second.port()]), 1).unwrap();
    framework.id();
    first.send(&offers("O-1", "S-1", 4));
    first.wait_for("ACCEPT", 0);
    first.cut_stream();
    let call = second.wait_for("SUBSCRIBE", 0);
    assert_eq!(call.body["framework_id"]["value"], "F-0001");
    assert_eq!(second.calls_of("ACCEPT").len(), 0, "offers of one master are nothing to another");
}

/// Goal: a subscription that the master has forgotten is renewed. Method: calls are refused with the messages of
/// `Master::Http::scheduler`: for a stream id that isn't the newest, a framework that isn't subscribed, and an unknown
/// one (PROTOCOL 3). The executor continues to run.
#[test]
fn a_subscription_that_the_master_has_forgotten() {
    for (status, why) in [
        (
            "400 Bad Request",
            "The stream ID 'x' included in this request didn't match the stream ID",
        ),
        ("403 Forbidden", "Framework is not subscribed"),
        ("400 Bad Request", "Framework cannot be found"),
    ] {
        let old = super::script::stream_id(0);
        let running = Running::start(move |call| match call.kind.as_str() {
            "DECLINE" if call.message.header("mesos-stream-id") == Some(&*old) => {
                Answer::status(status, "", why)
            }
            _ => sound(call),
        });
        running.fake.send(&offers("O-2", "S-2", 4));
        running.assert_subscribed_again();
    }
}

/// Goal: many updates at once are all acknowledged. Method: two thousand updates of unknown tasks.
#[test]
fn a_storm_of_updates() {
    let running = Running::start(sound);
    for number in 0..2000 {
        let task = format!("somebody-elses-{number}");
        running.fake.send(&update(&task, "S-2", "TASK_FINISHED", Some("AAAA")));
    }
    running.fake.wait_for("ACKNOWLEDGE", 2001);
    running.assert_phase(Phase::Running);
    assert_eq!(running.fake.calls_of("SUBSCRIBE").len(), 1);
}

/// Goal: a framework ends in time whatever the master does. Method: a master that answers no TEARDOWN, one that is
/// gone, and one that has closed the stream and accepts no new one; each is left, and shut down, with an executor that
/// doesn't end.
#[test]
fn an_end_without_an_answer() {
    for shut_down in [false, true] {
        for fault in ["silent", "gone", "closed"] {
            let running = Running::start(move |call| match (call.kind.as_str(), call.number) {
                ("TEARDOWN" | "KILL", _) if fault == "silent" => {
                    Answer::none().then(Then::Silence(Duration::from_secs(20)))
                }
                ("SUBSCRIBE", 1..) => Answer::none(),
                _ => sound(call),
            });
            let Running { fake, framework, .. } = running;
            match fault {
                "gone" => drop(fake),
                "closed" => fake.cut_stream(),
                _ => {}
            }
            let begun = Instant::now();
            if shut_down {
                let report = framework.engine.shutdown(Duration::from_secs(1));
                assert_eq!(report.executors.len(), 1, "{report:#?}");
            } else {
                drop(framework);
            }
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(4), "{fault}, {shut_down}: it took {took:?}");
        }
    }
}

/// Goal: demand calls for one subscription are not sent in the next, which begins with offers. Method: the first
/// subscription stalls; a call for it arrives when the second is active, and then one for the second.
#[test]
fn demand_of_an_ended_subscription() {
    let fake = FakeMaster::new(|call| match (call.kind.as_str(), call.number) {
        ("SUBSCRIBE", 0) => Answer::stream(&stream_id(0)).event(&subscribed(call, 0.2)),
        _ => sound(call),
    });
    let cluster = MesosCluster::new(mesos(&[fake.port()])).unwrap();
    let sink = EventRecorder::new(|_| false);
    cluster.start(sink.clone()).unwrap();
    sink.wait(|event| matches!(event, Event::Registered { again: true, .. }).then_some(()));
    cluster.call(EngineCall::Suppress { epoch: 1 }).unwrap();
    cluster.call(EngineCall::Revive { epoch: 2 }).unwrap();
    fake.wait_for("REVIVE", 0);
    assert_eq!(fake.calls_of("SUPPRESS").len(), 0);
    cluster.stop();
}
