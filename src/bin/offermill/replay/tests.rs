//! Property tests of replaying: random scenarios, in both ways of deciding.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::{ReplayStart, play};
use crate::scenario::reader;
use crate::scenario::{AnswerLine, CallKind, EventKind};

/// Settings, each with valid and invalid values.
const CONF: &[(&str, &[&str])] = &[
    ("spark.cores.max", &["0", "1", "7", "10", "2147483647", "-1", "x", ""]),
    ("spark.executor.cores", &["1", "2", "3", "0", "-2", "1.5", "99999999999"]),
    ("spark.executor.memory", &["1g", "512m", "0", "1", "9999t", "-1m", "1.5g"]),
    ("spark.mesos.executor.memoryOverhead", &["0", "1024", "1g", "-5"]),
    ("spark.executor.memoryOverheadFactor", &["0.1", "0", "1e9", "NaN", "-1"]),
    ("spark.mesos.extra.cores", &["1", "3", "-1", "4294967296"]),
    ("spark.mesos.gpus.max", &["1", "2", "8", "-1", "0.5"]),
    ("spark.blockManager.port", &["0", "31000", "80", "65536"]),
    (
        "spark.mesos.constraints",
        &["zone:a,b", "tier:x", "tier:NaN,2", "slots:5", "a:;b:c", ":", ",", "expr:: zone = a"],
    ),
    ("spark.mesos.role", &["r1", "*", "r1,r2", "/"]),
    ("spark.mesos.rejectOfferDuration", &["1500ms", "1h", "0", "-1s", "99999999d"]),
    ("spark.mesos.rejectOfferDurationForReachedMaxCores", &["5s", "2m", "x"]),
    ("spark.dynamicAllocation.enabled", &["true", "false", "maybe"]),
    ("spark.dynamicAllocation.minExecutors", &["1", "5"]),
    ("spark.shuffle.service.enabled", &["true", "false"]),
    ("spark.shuffle.service.port", &["7400", "0", "x"]),
    ("spark.locality.wait", &["0", "1h", "3s"]),
    ("spark.scheduler.minRegisteredResourcesRatio", &["0.5", "1", "2", "NaN"]),
    ("spark.mesos.coarse.shutdownTimeout", &["0", "1500ms", "60s"]),
    ("spark.mesos.executor.home", &["/opt/spark", "/opt/with space", ""]),
    ("spark.executor.uri", &["hdfs://nn/spark.tgz", "a b", "/"]),
    ("spark.mesos.executor.docker.image", &["spark:3.5"]),
    ("spark.mesos.executor.docker.volumes", &["/a:/b:ro,/c", "::"]),
    ("spark.mesos.executor.docker.portmaps", &["1:2:udp", "x"]),
    ("spark.mesos.executor.docker.parameters", &["a=b=c", "a"]),
    ("spark.mesos.containerizer", &["docker", "mesos", "lxc"]),
    ("spark.mesos.network.name", &["net"]),
    ("spark.mesos.network.labels", &["a:b", "a"]),
    ("spark.mesos.task.labels", &["a:b\\:c,d:e", "a:b:c", ","]),
    ("spark.mesos.executor.secret.names", &["a", "a,b"]),
    ("spark.mesos.executor.secret.envkeys", &["A", "A,B"]),
    ("spark.mesos.executor.secret.filenames", &["/f", ","]),
    ("spark.mesos.uris", &["a, b", ""]),
    ("spark.mesos.principal.file", &["/nowhere"]),
    ("spark.executorEnv.A", &["b", ""]),
    ("spark.executor.extraJavaOptions", &["-Da={{APP_ID}}-{{EXECUTOR_ID}}", "-Xmx1g", "'\"$"]),
    ("spark.executor.extraLibraryPath", &["/l", "$x;'"]),
    ("spark.driver.port", &["7078", "0", "x"]),
    ("offermill.placement", &["consolidate", "round-robin"]),
    ("spark.excludeOnFailure.enabled", &["false", "true"]),
];

fn conf() -> impl Strategy<Value = Value> {
    let one = select(CONF).prop_flat_map(|(key, values)| (Just(key), select(values)));
    prop::collection::hash_map(one, Just(()), 0..5).prop_map(|all| {
        let mut conf = json!({"spark.mesos.executor.home": "/opt/spark"});
        for (key, value) in all.into_keys() {
            conf[key] = json!(value);
        }
        conf
    })
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => (0..40_000_u32).prop_map(|it| json!(f64::from(it) / 1000.0)),
        8 => (0..10_u32).prop_map(|it| json!(it)),
        4 => (0..20_000_u32).prop_map(|it| json!(it)),
        1 => select(vec![
            json!("NaN"), json!("Infinity"), json!("-Infinity"), json!(-1), json!(1e300), json!(1e-300),
            json!(u64::MAX),
        ]),
    ]
}

fn ranges() -> impl Strategy<Value = Value> {
    let bound = prop_oneof![30_000..33_000_u64, 0..70_000_u64, Just(u64::MAX)];
    prop::collection::vec((bound.clone(), bound), 0..3).prop_map(|all| json!(all))
}

fn resource() -> impl Strategy<Value = Value> {
    let name = select(vec!["cpus", "cpus", "mem", "mem", "mem", "gpus", "ports", "disk", ""]);
    let reserved = select(vec![
        json!({}),
        json!({}),
        json!({"role": "r1"}),
        json!({"role": "r2", "reservation": {"principal": "p", "labels": [["a", null]]}}),
        json!({"reservations": [{"type": "static", "role": "r1"}, {"type": "dynamic", "role": "r1/a"}]}),
        json!({"standing": "revocable"}),
        json!({"standing": "shared"}),
    ]);
    let value = prop_oneof![
        6 => number().prop_map(|it| ("scalar", it)),
        2 => ranges().prop_map(|it| ("ranges", it)),
        1 => Just(("set", json!(["a", "b"]))),
    ];
    (name, reserved, value).prop_map(|(name, mut line, (kind, value))| {
        line["name"] = json!(name);
        line[kind] = value;
        line
    })
}

fn attribute() -> impl Strategy<Value = Value> {
    let name = select(vec!["zone", "tier", "slots", "a", "b", ""]);
    let value = prop_oneof![
        select(vec!["a", "b", "", "x"]).prop_map(|it| ("text", json!(it))),
        number().prop_map(|it| ("scalar", it)),
        ranges().prop_map(|it| ("ranges", it)),
        Just(("set", json!(["a", "", "c"]))),
    ];
    (name, value).prop_map(|(name, (kind, value))| {
        let mut line = json!({"name": name});
        line[kind] = value;
        line
    })
}

fn offer() -> impl Strategy<Value = Value> {
    let few = |max| prop::collection::vec(attribute(), 0..max);
    let plenty = json!([
        {"name": "cpus", "scalar": 6.5}, {"name": "mem", "scalar": 8000}, {"name": "gpus", "scalar": 2.5},
        {"name": "ports", "ranges": [[31000, 32000]]},
    ]);
    let resources = prop_oneof![
        Just(plenty),
        prop::collection::vec(resource(), 0..8).prop_map(|all| json!(all)),
    ];
    ("o[0-9]", "(a[1-4]|)", resources, few(4)).prop_map(|(id, agent, resources, attributes)| {
        let host = format!("{agent}.h");
        json!({"id": id, "agent": agent, "host": host, "resources": resources, "attributes": attributes})
    })
}

fn event() -> impl Strategy<Value = Value> {
    let state = select(vec![
        "STAGING",
        "STARTING",
        "RUNNING",
        "KILLING",
        "FINISHED",
        "FAILED",
        "KILLED",
        "ERROR",
        "LOST",
        "DROPPED",
        "UNREACHABLE",
        "GONE",
        "GONE_BY_OPERATOR",
        "UNKNOWN",
    ]);
    let task = || "([0-9]|1[0-9]|x)";
    let status = (task(), "(a[1-4]|nowhere)", state, any::<bool>());
    let status = status.prop_map(|(task, agent, state, counts_down)| {
        let state = format!("TASK_{state}");
        json!({"status": {
            "task": task, "agent": agent, "state": state, "counts_down": counts_down,
        }})
    });
    let plain = select(vec![
        json!({"registered": {"framework_id": "fw"}}),
        json!({"registered": {}}),
        json!({"reregistered": true}),
        json!({"disconnected": true}),
        json!({"slave_lost": "a1"}),
        json!({"executor_lost": {"executor": "0"}}),
        json!({"agent_readmitted": "a1"}),
        json!({"rescinded": "o1"}),
        json!({"error": "no"}),
        json!({"stop": true}),
        json!({"await_stop": true}),
        json!({"answers_late": true}),
        json!({"executor_registered": {"cores": -4}}),
        json!({"executor_registered": {"cores": i64::MAX}}),
        json!({"request_total": null}),
        json!({"limit": 2}),
        json!({"limit": null}),
        json!({"limit": u32::MAX}),
        json!({"request_total": u32::MAX}),
        json!({"request_total": -1}),
        json!({"former": [{"executor": "e", "agent": "a1", "host": "h", "millicores": u64::MAX, "mem": u64::MAX}]}),
        json!({"former": []}),
    ]);
    let local = prop::collection::hash_map("a[1-4]\\.h", 0..3_u64, 0..3);
    prop_oneof![
        8 => prop::collection::vec(offer(), 0..4).prop_map(|all| json!({"offers": all})),
        6 => status,
        2 => prop::collection::vec(task(), 0..3).prop_map(|all| json!({"kill": all})),
        2 => (0..6_u32, local).prop_map(|(total, local)| json!({"request_total": total, "local": local})),
        1 => (0..100_000_u64).prop_map(|ms| json!({"advance_ms": ms})),
        3 => plain,
    ]
}

/// Returns how often each offer of a batch was answered.
fn answered<'a>(calls: impl Iterator<Item = &'a CallKind>) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for call in calls {
        let offers = match call {
            CallKind::Accept(accept) => accept.offers.clone(),
            CallKind::Decline(decline) => vec![decline.offer.clone()],
            _ => continue,
        };
        offers.into_iter().for_each(|offer| *counts.entry(offer).or_default() += 1);
    }
    counts
}

proptest! {
    /// Goal: no scenario panics, each offer is answered once, and each event has one closing line. Method: play random
    /// settings and events, with invalid values among them, as Offermill and as Spark.
    #[test]
    fn no_scenario_panics(conf in conf(), events in prop::collection::vec(event(), 0..25)) {
        let mut text = format!("{}\n", json!({"format": 1, "conf": conf}));
        events.iter().for_each(|event| text.push_str(&format!("{event}\n")));
        let scenario = reader::from_text(&text).unwrap();
        prop_assert!(scenario.check_times(Path::new("x")).is_ok());
        for is_spark in [false, true] {
            let mut answers = Vec::new();
            play(&scenario, ReplayStart::of(&scenario.head, is_spark), |answer| {
                answers.push(answer);
                std::ops::ControlFlow::Continue(())
            });
            let Some(AnswerLine::Init(init)) = answers.first() else { panic!("no start") };
            if init.init == "error" {
                prop_assert!(init.error.is_some() && answers.len() == 1);
                continue;
            }
            for (ev, event) in (0..).zip(&scenario.events) {
                let closings = answers.iter().filter(|it| matches!(it, AnswerLine::Closing(it) if it.ev == ev));
                prop_assert_eq!(closings.count(), 1);
                let EventKind::Offers(offers) = &event.kind else { continue };
                let calls = answers.iter().filter_map(|it| match it {
                    AnswerLine::Call(it) if it.ev == ev => Some(&it.call),
                    _ => None,
                });
                let mut given = HashMap::<String, usize>::new();
                offers.iter().for_each(|offer| *given.entry(offer.id.clone()).or_default() += 1);
                prop_assert_eq!(answered(calls), given, "spark: {}", is_spark);
            }
        }
    }
}
