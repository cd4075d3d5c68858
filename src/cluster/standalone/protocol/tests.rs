//! Tests of the messages: what is written is read back, and what isn't a message is refused.

use proptest::prelude::*;

use super::*;
use crate::mesos_v1::record_io::RecordReader;
use crate::resources::{PortRange, PortSet, Scalar};

const UUID: &str = "00112233445566778899aabbccddeeff";

fn ids() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9._-]{1,40}"
}

/// An executor's id may have white space, as in Mesos.
fn keys() -> impl Strategy<Value = ExecutorKey> {
    (ids(), "[a-z0-9 ]{1,40}").prop_map(|(framework, executor)| ExecutorKey { framework, executor })
}

fn resources() -> impl Strategy<Value = WorkerResources> {
    let amount = || (0..=1u64 << 50).prop_map(Scalar::from_thousandths);
    let range = (any::<u16>(), any::<u16>())
        .prop_map(|(a, b)| PortRange::new(a.min(b).into(), a.max(b).into()));
    let ports = prop::collection::vec(range, 0..4).prop_map(PortSet::of);
    (amount(), amount(), amount(), amount(), ports)
        .prop_map(|(cpus, mem, disk, gpus, ports)| WorkerResources { cpus, mem, disk, gpus, ports })
}

fn states() -> impl Strategy<Value = ReportedState> {
    use ReportedState::*;
    prop::sample::select(vec![Starting, Running, Killing, Finished, Failed, Killed, Dropped])
}

fn updates() -> impl Strategy<Value = ExecutorUpdate> {
    (
        keys(),
        "[0-9a-f]{32}",
        states(),
        0.0..1e10f64,
        prop::option::of(".{0,40}"),
        any::<Option<u32>>(),
        prop::option::of(ids()),
        prop::option::of(".{0,40}"),
        any::<[bool; 2]>(),
    )
        .prop_map(|(key, uuid, state, timestamp, message, pid, host, folder, flags)| {
            let [is_lost, is_exhausted] = flags.map(|flag| flag && state == ReportedState::Failed);
            let update = ExecutorUpdate::new(key, uuid, state, timestamp);
            ExecutorUpdate { message, pid, host, folder, is_lost, is_exhausted, ..update }
        })
}

prop_compose! {
    fn subscribes()(
        id in prop::option::of(ids()),
        session in ids(),
        hostname in ids(),
        address in ids(),
        term in any::<u64>(),
        resources in resources(),
        attributes in prop::collection::vec((ids(), ".{0,20}"), 0..4),
        executors in prop::collection::btree_map(keys(), (states(), self::resources(), ids()), 0..4),
        unacknowledged in prop::collection::vec(updates(), 0..4),
        leaving in any::<bool>(),
        has_hosts in any::<bool>(),
    ) -> WorkerSubscribe {
        let attributes = attributes.into_iter().map(|(name, value)| WorkerAttribute { name, value });
        let held = executors
            .into_iter()
            .map(|(key, (state, resources, tag))| {
                let is_lost = has_hosts && state == ReportedState::Failed;
                HeldExecutor { key, state, resources, tag, is_lost }
            });
        WorkerSubscribe {
            id, session, hostname, address, term, resources,
            leaving,
            has_hosts,
            attributes: attributes.collect(),
            executors: held.collect(),
            unacknowledged,
        }
    }
}

fn calls() -> impl Strategy<Value = WorkerCall> {
    prop_oneof![
        subscribes().prop_map(|it| WorkerCall::Subscribe(Box::new(it))),
        updates().prop_map(WorkerCall::Update),
        Just(WorkerCall::Heartbeat),
        Just(WorkerCall::Leaving),
        Just(WorkerCall::Leave),
    ]
}

fn hostings() -> impl Strategy<Value = LaunchHosting> {
    prop_oneof![
        Just(LaunchHosting::Alone),
        Just(LaunchHosting::Host),
        ids().prop_map(LaunchHosting::In),
    ]
}

prop_compose! {
    fn launches()(
        key in keys(),
        sequence in any::<u64>(),
        term in any::<u64>(),
        name in ".{0,40}",
        resources in resources(),
        argv in prop::collection::vec("[^\0]{1,20}", 1..5),
        environment in prop::collection::vec(("[A-Z_]{1,10}", "[^\0]{0,20}"), 0..5),
        user in prop::option::of("[a-z]{1,8}"),
        grace in 0..1u64 << 34,
        tag in "[0-9a-f-]{0,128}",
        hosting in hostings(),
    ) -> ExecutorLaunch {
        let command = ExecutorCommand { argv, environment, user };
        ExecutorLaunch { key, sequence, term, name, resources, command, hosting, grace, tag }
    }
}

fn events() -> impl Strategy<Value = WorkerEvent> {
    let graces = || 0..1u64 << 34;
    prop_oneof![
        (ids(), any::<u64>(), proptest::option::of(HEARTBEAT_MILLISECONDS))
            .prop_map(|(id, term, heartbeat)| WorkerEvent::Subscribed { id, term, heartbeat }),
        (".{0,80}", any::<bool>())
            .prop_map(|(why, may_retry)| WorkerEvent::Refused { why, may_retry }),
        launches().prop_map(|it| WorkerEvent::Launch(Box::new(it))),
        (keys(), any::<u64>(), graces()).prop_map(|(key, term, grace)| WorkerEvent::Kill {
            key,
            term,
            grace
        }),
        (keys(), "[0-9a-f]{32}").prop_map(|(key, uuid)| WorkerEvent::Ack { key, uuid }),
        (ids(), any::<u64>())
            .prop_map(|(framework, term)| WorkerEvent::ShutdownFramework { framework, term }),
        (any::<u64>(), graces()).prop_map(|(term, grace)| WorkerEvent::Drain { term, grace }),
        Just(WorkerEvent::Heartbeat),
    ]
}

proptest! {
    /// Goal: what a worker says arrives. Method: random calls, as one stream.
    #[test]
    fn calls_come_back(calls in prop::collection::vec(calls(), 1..6)) {
        let mut reader = RecordReader::new(MESSAGE_BYTES_MAX);
        calls.iter().for_each(|call| reader.push(&frame_call(call)));
        for call in calls {
            let record = reader.next().unwrap().unwrap();
            prop_assert_eq!(decode_call(&record).unwrap(), call);
        }
    }

    /// Goal: what a master says arrives. Method: random events, as one stream.
    #[test]
    fn events_come_back(events in prop::collection::vec(events(), 1..6)) {
        let mut reader = RecordReader::new(MESSAGE_BYTES_MAX);
        events.iter().for_each(|event| reader.push(&frame_event(event)));
        for event in events {
            let record = reader.next().unwrap().unwrap();
            prop_assert_eq!(decode_event(&record).unwrap(), event);
        }
    }

    /// Goal: no record ends the reader. Method: any bytes, and messages that were cut or changed in one byte.
    #[test]
    fn no_record_panics(
        call in calls(), event in events(), noise in prop::collection::vec(any::<u8>(), 0..60),
        at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let _ = (decode_call(&noise), decode_event(&noise));
        for frame in [frame_call(&call), frame_event(&event)] {
            let mut record = frame;
            let at = at.index(record.len());
            record[at] = byte;
            let _ = (decode_call(&record), decode_event(&record[..at]));
        }
    }

    /// Goal: amounts are exact. Method: adding and taking away random amounts; ports that both have count once.
    #[test]
    fn amounts_add_up(a in resources(), b in resources()) {
        let sum = a.plus(&b);
        prop_assert!(sum.covers(&a) && sum.covers(&b));
        if !a.shares_ports_with(&b) && sum.cpus < Scalar::MAX && sum.mem < Scalar::MAX
            && sum.disk < Scalar::MAX && sum.gpus < Scalar::MAX
        {
            prop_assert_eq!(sum.minus(&b), a);
        }
    }
}

/// Goal: the form of the messages stays what other programs write. Method: one of each kind, by hand.
#[test]
fn the_form_is_as_documented() {
    let call = br#"{"type":"SUBSCRIBE","session":"s","hostname":"h","address":"h","new":1,
        "resources":{"cpus":4,"mem":1024,"ports":[[1,2]]},
        "executors":[{"framework":"f","executor":"e","state":"RUNNING","resources":{"cpus":0.1}}]}"#;
    let WorkerCall::Subscribe(subscribe) = decode_call(call).unwrap() else { panic!("another") };
    assert_eq!((subscribe.term, subscribe.id.as_deref()), (0, None));
    assert_eq!(subscribe.executors[0].key, ExecutorKey::new("f", "e"));
    assert_eq!(subscribe.executors[0].resources.cpus.thousandths(), 100);
    let kill = WorkerEvent::Kill { key: ExecutorKey::new("f", "e"), term: 3, grace: 50 };
    let expected = r#"{"type":"KILL","framework":"f","executor":"e","term":3,"grace":50}"#;
    assert_eq!(frame_event(&kill), format!("{}\n{expected}", expected.len()).into_bytes());
    for (hosting, form) in [
        (LaunchHosting::Alone, String::new()),
        (LaunchHosting::Host, r#","hosting":"host""#.to_owned()),
        (LaunchHosting::In("h".to_owned()), r#","hosting":{"in":"h"}"#.to_owned()),
    ] {
        let event = format!(
            r#"{{"type":"LAUNCH","framework":"f","executor":"e","sequence":1,"term":3,"name":"n","resources":{{}},
            "command":{{"argv":["a"]}},"grace":1{form}}}"#
        );
        let WorkerEvent::Launch(launch) = decode_event(event.as_bytes()).unwrap() else {
            panic!("another")
        };
        assert_eq!(launch.hosting, hosting);
        let sent = String::from_utf8(frame_event(&WorkerEvent::Launch(launch))).unwrap();
        assert!(sent.contains(&format!(r#"{form},"grace":1"#)), "{sent}");
    }
}

/// Goal: what is out of bounds is refused, with a sentence that says what. Method: calls and events by hand.
#[test]
fn bounds_are_kept() {
    let subscribe = |rest: &str| {
        format!(
            r#"{{"type":"SUBSCRIBE","session":"s","hostname":"h","address":"h","resources":{{}}{rest}}}"#
        )
    };
    let held = r#"{"framework":"f","executor":"e","state":"RUNNING","resources":{}}"#;
    let long = "x".repeat(5000);
    let update = |uuid: &str, rest: &str| {
        format!(
            r#"{{"type":"UPDATE","framework":"f","executor":"e","state":"FAILED","uuid":"{uuid}","timestamp":{rest}}}"#
        )
    };
    for (text, expected) in [
        (subscribe(r#","id":"""#), "must not be empty"),
        (subscribe(r#","id":"a b""#), "a worker's id"),
        (subscribe(&format!(r#","executors":[{held},{held}]"#)), "listed twice"),
        (subscribe(&format!(r#","attributes":[{{"name":"a","value":"{long}"}}]"#)), "5000 bytes"),
        (subscribe("").replace("{}", r#"{"cpus":-1}"#), "less than zero"),
        (subscribe("").replace("{}", r#"{"cpus":1e300}"#), "too large"),
        (subscribe("").replace("{}", r#"{"ports":[[2,1]]}"#), "ports must be"),
        (subscribe("").replace("{}", r#"{"ports":[[1,70000]]}"#), "70000"),
        (update(UUID, "1").replace("\"e\"", "\"\""), "an executor's id"),
        (update(UUID, r#"1,"host":"""#), "an executor's id"),
        (update(UUID, &format!(r#"1,"folder":"{long}""#)), "a task's folder has 5000 bytes"),
        (update(UUID, r#"1,"is_lost":true"#).replace("FAILED", "KILLED"), "state FAILED"),
        (update(UUID, r#"1,"is_exhausted":true"#).replace("FAILED", "DROPPED"), "state FAILED"),
        (update(UUID, "1").replace("\"e\"", "\"a\\nb\""), "an executor's id"),
        (update("zz", "1"), "32 hexadecimal digits"),
        (update(UUID, "-1"), "must not be negative"),
        (update(UUID, &format!(r#"1,"message":"{long}""#)), "a message has 5000 bytes"),
        ("{}".to_owned(), "type"),
        (r#"{"type":"NONSENSE"}"#.to_owned(), "NONSENSE"),
    ] {
        let error = decode_call(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(error.len() < 300, "{error}");
    }
    let attributes = |last: usize| {
        let long = |number: usize, bytes: usize| {
            format!(r#"{{"name":"a{number:03}","value":"{}"}}"#, "x".repeat(bytes))
        };
        let all = (0..16).map(|number| long(number, if number == 15 { last } else { 4092 }));
        subscribe(&format!(r#","attributes":[{}]"#, all.collect::<Vec<_>>().join(",")))
    };
    assert!(decode_call(attributes(4092).as_bytes()).is_ok());
    let error = decode_call(attributes(4093).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("65537 bytes of attributes; 65536 is the most"), "{error}");
    let many = vec![held.replace("\"e\"", "\"e0\""); EXECUTORS_MAX + 1].join(",");
    let many = subscribe(&format!(r#","executors":[{many}]"#));
    let error = decode_call(many.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("1025 executors; 1024 is the most"), "{error}");
    let command = |argv: &[&str], name: &str| ExecutorCommand {
        argv: argv.iter().map(|it| (*it).to_owned()).collect(),
        environment: vec![(name.to_owned(), "1".to_owned())],
        user: None,
    };
    assert_eq!(command(&["a", ""], "A").check(), Ok(()));
    for bad in [command(&[], "A"), command(&[""], "A"), command(&["a"], "A=B"), command(&["a"], "")]
    {
        assert!(bad.check().is_err(), "{bad:?}");
    }
    assert!(command(&["a", "b\0"], "A").check().unwrap_err().to_string().contains("NUL"));
}

/// Goal: a command's secrets aren't printed by accident. Method: a variable and an argument, with `Debug`.
#[test]
fn commands_hide_their_values() {
    let command = ExecutorCommand {
        argv: vec!["run".to_owned(), "--token=hunter2".to_owned()],
        environment: vec![("TOKEN".to_owned(), "hunter2".to_owned())],
        user: None,
    };
    let shown = format!("{command:?}");
    assert!(shown.contains("run") && !shown.contains("hunter2"), "{shown}");
}
