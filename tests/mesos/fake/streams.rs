//! Streams that fail while an executor runs: the framework must subscribe again with the same id and reconcile the
//! executor, which must still run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use offermill::Phase;
use offermill::cluster::mesos::MesosCluster;
use offermill::engine::Notice;
use offermill::engine::cluster_manager::{ClusterManager, Event, EventSink};
use serde_json::json;

use super::master::FakeMaster;
use super::panics::EventRecorder;
use super::script::{
    Answer, Call, chunk, framed, offers, record, sound, stream_id, subscribed, update,
};
use super::{RECORD_BYTES_MAX, framework, mesos};
use crate::framework::Framework;

/// The maximum number of bytes that are read beyond the limit: the buffers on both sides.
const SLACK: usize = 16 << 20;

/// A framework whose only executor runs.
pub(super) struct Running {
    pub(super) fake: FakeMaster,
    pub(super) framework: Framework,
    /// The executor's id.
    pub(super) task: String,
}

impl Running {
    pub(super) fn start(script: impl Fn(&Call) -> Answer + Send + Sync + 'static) -> Running {
        let fake = FakeMaster::new(script);
        let framework = framework(mesos(&[fake.port()]), 1).unwrap();
        framework.id();
        fake.send(&offers("O-1", "S-1", 4));
        let accept = fake.wait_for("ACCEPT", 0);
        let task = task_of(&accept);
        for (state, uuid) in [("TASK_STARTING", "AAAA"), ("TASK_RUNNING", "AAAB")] {
            fake.send(&update(&task, "S-1", state, Some(uuid)));
        }
        let running = Running { fake, framework, task };
        running.fake.wait_for("ACKNOWLEDGE", 1);
        running.assert_phase(Phase::Running);
        running
    }

    /// Asserts that the framework has subscribed again with its id, and that its executor still runs.
    #[track_caller]
    pub(super) fn assert_subscribed_again(&self) {
        let again = self.fake.wait_for("SUBSCRIBE", 1);
        assert_eq!(again.body["framework_id"]["value"], "F-0001");
        // Equal ids in both places (`validation::scheduler::call::validate`; PROTOCOL 2), and no stream id (3).
        assert_eq!(again.body["subscribe"]["framework_info"]["id"]["value"], "F-0001");
        assert_eq!(again.message.header("mesos-stream-id"), None);
        let asked = |call: &Call| {
            let tasks = call.body["reconcile"]["tasks"].as_array();
            tasks.is_some_and(|tasks| {
                tasks.iter().any(|task| task["task_id"]["value"] == self.task.as_str())
            })
        };
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            let calls = self.fake.calls_of("RECONCILE");
            let new = stream_id(1);
            if calls.iter().any(|call| {
                asked(call) && call.message.header("mesos-stream-id") == Some(new.as_str())
            }) {
                break;
            }
            assert!(Instant::now() < give_up, "not asked about: {calls:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.assert_phase(Phase::Running);
        assert_eq!(self.framework.snapshot().executors.len(), 1);
        self.framework.kernel.check().unwrap();
        let refused = |notice: &Notice| matches!(notice, Notice::Refused { .. });
        assert_eq!(self.framework.notices.count(refused), 0);
    }

    #[track_caller]
    pub(super) fn assert_phase(&self, phase: Phase) {
        let give_up = Instant::now() + Duration::from_secs(10);
        loop {
            let executors = self.framework.snapshot().executors;
            if executors.first().is_some_and(|one| one.phase == phase) {
                return;
            }
            assert!(Instant::now() < give_up, "not {phase:?}: {executors:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The first task that an ACCEPT launches.
#[track_caller]
pub(super) fn task_of(accept: &Call) -> String {
    let launch = &accept.body["accept"]["operations"][0]["launch"];
    launch["task_infos"][0]["task_id"]["value"].as_str().unwrap().to_owned()
}

/// Goal: a connection that ends, at any point of a record, is replaced, and nothing is lost. Method: the last chunk; a
/// close between records; in the middle of one; in the middle of a chunk's head. A master's crash, a failover or a
/// firewall cause these.
#[test]
fn a_stream_that_ends() {
    let half = chunk(&record(&json!({"type": "HEARTBEAT"})));
    for last in [&b"0\r\n\r\n"[..], b"", &half[..12], &half[..1]] {
        let running = Running::start(sound);
        running.fake.send_bytes(last);
        running.fake.cut_stream();
        running.assert_subscribed_again();
    }
}

/// Goal: an invalid record ends the subscription, not the framework, and nothing after it is processed. Method: invalid
/// lengths, each followed by an event that would kill the executor. No Mesos sends these: `recordio::encode` writes
/// decimal digits and a line end.
#[test]
fn invalid_records() {
    for bad in ["x\n", "-1\n", "+5\n", " 7\n", "0\n", "\n", "1e3\n", "99999999999999999999\n"] {
        let running = Running::start(sound);
        let end = update(&running.task, "S-1", "TASK_FAILED", Some("AAAC"));
        running.fake.send_bytes(&chunk(&[bad.as_bytes(), &record(&end)].concat()));
        running.assert_subscribed_again();
    }
}

/// Goal: a record length of endless digits takes no memory. Method: digits until the connection is closed.
#[test]
fn an_endless_length() {
    let running = Running::start(sound);
    running.fake.flood(&chunk(&[b'1'; 4096]));
    assert!(running.fake.flooded() < SLACK, "{} bytes", running.fake.flooded());
    running.assert_subscribed_again();
}

/// Goal: a record whose length is absurd isn't read. Method: a length of a terabyte, with as many bytes as the client
/// reads.
#[test]
fn an_absurd_length() {
    let running = Running::start(sound);
    running.fake.send_bytes(&chunk(format!("{}\n", 1_u64 << 40).as_bytes()));
    running.fake.flood(&chunk(&[b' '; 4096]));
    assert!(running.fake.flooded() < SLACK, "{} bytes", running.fake.flooded());
    running.assert_subscribed_again();
}

/// Goal: a record that is longer than allowed ends no subscription: it is ignored and reported, and the events after it
/// arrive. Method: messages that are one byte and sixteen times too long, each before an update.
#[test]
fn a_record_over_the_limit() {
    let running = Running::start(sound);
    for (number, length) in [RECORD_BYTES_MAX + 1, 16 * RECORD_BYTES_MAX].into_iter().enumerate() {
        running.fake.send_bytes(&chunk(&framed(&vec![b' '; length])));
        let uuid = ["AAAC", "AAAD"][number];
        running.fake.send(&update(&running.task, "S-1", "TASK_RUNNING", Some(uuid)));
        let acknowledged = running.fake.wait_for("ACKNOWLEDGE", 2 + number);
        assert_eq!(acknowledged.body["acknowledge"]["uuid"], uuid);
    }
    assert_eq!(running.fake.calls_of("SUBSCRIBE").len(), 1);
    let is_report = |notice: &Notice| match notice {
        Notice::CallFailed { why } => {
            why.contains("an event was ignored: a record has 65537 bytes")
        }
        _ => false,
    };
    assert_eq!(running.framework.notices.count(is_report), 1);
}

/// Goal: a record of exactly the allowed length is read, however it is split. Method: an update padded to the limit,
/// sent a thousand bytes at a time and with chunks that end elsewhere than the records.
#[test]
fn a_record_at_the_limit() {
    let running = Running::start(sound);
    let mut end = update(&running.task, "S-1", "TASK_FINISHED", Some("AAAC"));
    end["update"]["status"]["message"] = json!("");
    let padding = RECORD_BYTES_MAX - end.to_string().len();
    end["update"]["status"]["message"] = json!("m".repeat(padding));
    let bytes = record(&end);
    assert!(bytes.ends_with(b"}") && bytes.len() == RECORD_BYTES_MAX + "65536\n".len());
    for piece in bytes.chunks(1000) {
        running.fake.send_bytes(&chunk(piece));
    }
    running.fake.wait_for("ACKNOWLEDGE", 2);
    assert_eq!(running.fake.calls_of("SUBSCRIBE").len(), 1);
}

/// Goal: a stream without records is given up after the allowed number of missed heartbeats. Method: a master that
/// announces one each 200 ms, and then is silent like a stopped one (PROTOCOL 13: the first one is sent at once, then
/// at their interval: `Heartbeater` in `master.hpp`).
#[test]
fn a_stream_that_stalls() {
    let running = Running::start(|call| match (call.kind.as_str(), call.number) {
        ("SUBSCRIBE", 0) => Answer::stream(&stream_id(0))
            .event(&subscribed(call, 0.2))
            .event(&json!({"type": "HEARTBEAT"})),
        _ => sound(call),
    });
    running.assert_subscribed_again();
    let lost = |notice: &Notice| matches!(notice, Notice::Disconnected);
    assert_eq!(running.framework.notices.count(lost), 1);
}

/// Goal: heartbeats alone keep a stream alive. Method: one each 100 ms where one each 200 ms was announced, for five
/// intervals.
#[test]
fn a_stream_with_heartbeats_stays() {
    let fake = FakeMaster::new(|call| match call.kind.as_str() {
        "SUBSCRIBE" => Answer::stream(&stream_id(call.number)).event(&subscribed(call, 0.2)),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(100));
        fake.send(&json!({"type": "HEARTBEAT"}));
    }
    assert_eq!(fake.calls_of("SUBSCRIBE").len(), 1);
}

/// Goal: a time in which the engine takes no events isn't the master's silence. Method: a receiver that takes a message
/// after longer than the master may be silent, while half of the next record has arrived; then the other half.
#[test]
fn a_slow_receiver_ends_no_subscription() {
    let fake = FakeMaster::new(|call| match call.kind.as_str() {
        "SUBSCRIBE" => Answer::stream(&stream_id(call.number)).event(&subscribed(call, 1.0)),
        _ => sound(call),
    });
    let cluster = MesosCluster::new(mesos(&[fake.port()])).unwrap();
    let events = EventRecorder::new(|event| {
        if matches!(event, Event::Message { data, .. } if data == b"hi") {
            // Longer than the two heartbeats that may be missing.
            std::thread::sleep(Duration::from_secs(3));
        }
        false
    });
    cluster.start(Arc::clone(&events) as EventSink).unwrap();
    events.wait(|event| matches!(event, Event::Registered { .. }).then_some(()));
    let message = |data: &str| {
        let [agent, executor] = ["S-1", "E-1"].map(|id| json!({"value": id}));
        json!({"type": "MESSAGE", "message":
            {"agent_id": agent, "executor_id": executor, "data": data}})
    };
    let bytes = [record(&message("aGk=")), record(&message("aG8="))].concat();
    let (begin, end) = bytes.split_at(bytes.len() - 9);
    fake.send_bytes(&chunk(begin));
    events.wait(|event| matches!(event, Event::Message { .. }).then_some(()));
    // The stream would be given up at once.
    std::thread::sleep(Duration::from_millis(500));
    fake.send_bytes(&chunk(end));
    events
        .wait(|event| matches!(event, Event::Message { data, .. } if data == b"ho").then_some(()));
    assert_eq!(fake.calls_of("SUBSCRIBE").len(), 1);
    cluster.stop();
}

/// Goal: additions of later Mesos versions are ignored. Method: an event of an unknown type, one without a type, and
/// known ones with unknown fields and enum values (PROTOCOL 6, 7); afterwards an offer is still answered.
#[test]
fn unknown_events() {
    let fake = FakeMaster::new(sound);
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    framework.id();
    let mut offers = offers("O-1", "S-1", 4);
    offers["offers"]["offers"][0]["colour"] = json!({"deep": [1, 2, {"blue": null}]});
    offers["offers"]["offers"][0]["resources"][0]["provider_id"] = json!({"value": "p"});
    for event in [
        json!({"type": "SUNRISE", "sunrise": {"at": 5}}),
        json!({}),
        json!({"type": "HEARTBEAT", "rate": 1}),
        update("unknown-task", "S-9", "TASK_ASLEEP", None),
        offers,
    ] {
        fake.send(&event);
    }
    fake.wait_for("ACCEPT", 0);
    assert_eq!(fake.calls_of("SUBSCRIBE").len(), 1);
}

/// Goal: an answer that is cut in its head is no subscription. Method: half of it, then a close; the next try is
/// answered completely.
#[test]
fn an_incomplete_head() {
    let fake = FakeMaster::new(|call| match (call.kind.as_str(), call.number) {
        ("SUBSCRIBE", 0) => Answer::bytes("HTTP/1.1 200 OK\r\nMesos-Stre"),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    assert_eq!(framework.id(), "F-0001");
}

/// Goal: if a stream ends before SUBSCRIBED, the framework tries again. Method: 200 with a stream id and the last
/// chunk; the next try is answered completely.
#[test]
fn a_stream_without_its_first_event() {
    let fake = FakeMaster::new(|call| match (call.kind.as_str(), call.number) {
        ("SUBSCRIBE", 0) => Answer::stream(&stream_id(0)).end(),
        _ => sound(call),
    });
    let framework = framework(mesos(&[fake.port()]), 1).unwrap();
    assert_eq!(framework.id(), "F-0001");
}
