//! `offermill run` with shuffle services on its agents.

use std::time::Duration;

use offermill::spark::shuffle::DriverMessage;

use super::service::{FakeService, Manner, free_port};
use crate::support::{Folder, Run, small};

/// Goal: a run registers with its agents' services, by default under the framework's id, reports once that a service is
/// down and once that it is up, and continues in both cases. Method: a fake that starts late and refuses at first; two
/// local agents, which share it; the events, the summary, and the messages that the fake received.
#[test]
fn a_run_registers_as_its_framework() {
    let port = free_port();
    let folder = Folder::new();
    let service_port = format!("spark.shuffle.service.port={port}");
    let flags = [
        ["--json", "--num-executors=2"],
        ["--master", "local-cluster[2,1,64]"],
        ["--conf", "spark.shuffle.service.enabled=true"],
        ["--conf", &service_port],
        ["--conf", "spark.executor.heartbeatInterval=100ms"],
        ["--conf", "spark.storage.blockManagerHeartbeatTimeoutMs=7s"],
    ];
    let mut run = Run::start(&folder, &small(&flags.concat(), &["sleep", "1000"]));
    let framework_id = run.event_named("registered")["framework_id"].clone();
    let failing = run.event_named("shuffle_failing");
    assert_eq!((&failing["host"], &failing["refused"]), (&"127.0.0.1".into(), &false.into()));
    // Local agents' services are expected at this one of the machine's loopback addresses.
    let service = FakeService::start(0, port, Manner::Good);
    let registered = run.event_named("shuffle_registered");
    assert_eq!((&registered["port"], &registered["again"]), (&port.into(), &true.into()));
    crate::eventually(Duration::from_secs(30), "a heartbeat", || match service.heard().len() {
        0..=2 => Err("not yet".to_owned()),
        _ => Ok(()),
    });
    let app_id = framework_id.as_str().unwrap().to_owned();
    let heartbeat_timeout = Duration::from_secs(7);
    let first = DriverMessage::Register { app_id: app_id.clone(), heartbeat_timeout };
    let heard = service.heard();
    assert_eq!(heard[0].message, first);
    let beat = DriverMessage::Heartbeat { app_id };
    assert!(heard[1..].iter().all(|heard| heard.message == beat), "{heard:?}");
    run.signal("INT");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let events = ended.events();
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((named("shuffle_failing"), named("shuffle_registered")), (1, 1));
    let services = &events.last().unwrap()["shuffle_services"];
    assert_eq!(*services, serde_json::json!({ "registered": 1, "failing": 0, "new": 0 }));
}

/// Goal: without the setting nothing is registered. Method: a fake at the address that a run would use, which receives
/// nothing.
#[test]
fn services_are_left_alone_unless_asked_for() {
    let port = free_port();
    let service = FakeService::start(0, port, Manner::Good);
    let folder = Folder::new();
    let service_port = format!("spark.shuffle.service.port={port}");
    let flags = ["--json", "--num-executors=1", "--until-finished", "--conf", &service_port];
    let mut run = Run::start(&folder, &small(&flags, &["sleep", "0.3"]));
    run.event_named("running");
    let ended = run.end();
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    assert!(service.heard().is_empty());
    assert!(ended.events().last().unwrap()["shuffle_services"].is_null());
}
