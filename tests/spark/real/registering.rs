//! `offermill run` with the real shuffle service.

use std::thread::sleep;
use std::time::Duration;

use super::driver::free_ports;
use super::service::ShuffleService;
use crate::support::{Folder, Run, small};

/// Goal: a run registers with the real service as soon as it is up, and again after it was restarted; the service
/// deletes no files during the run, and deletes them afterwards. Method: a run whose service is down at first, starts,
/// stays up for longer than its timeout, stops, and starts again; its log.
#[test]
#[ignore = "needs Spark"]
fn the_real_service_is_registered_with() {
    let [port] = free_ports();
    let folder = Folder::new();
    let service_port = format!("spark.shuffle.service.port={port}");
    let flags = [
        ["--json", "--num-executors=2"],
        ["--master", "local-cluster[2,1,64]"],
        ["--spark-app-id", "app-of-a-test"],
        ["--conf", "spark.shuffle.service.enabled=true"],
        ["--conf", &service_port],
        ["--conf", "spark.executor.heartbeatInterval=500ms"],
        ["--conf", "spark.network.timeout=3s"],
    ];
    let mut run = Run::start(&folder, &small(&flags.concat(), &["sleep", "1000"]));
    let failing = run.event_named("shuffle_failing");
    assert!(failing["why"].as_str().unwrap().contains("refused"), "{failing}");
    assert_eq!((&failing["refused"], &failing["port"]), (&false.into(), &port.into()));

    for time in 0..2 {
        let mut service = ShuffleService::start(port);
        let registered = run.event_named("shuffle_registered");
        assert_eq!(registered["again"], true);
        let request = service.logs("Received registration request from app ");
        assert!(request.starts_with("app-of-a-test (remote address /127.0.0.1:"), "{request}");
        assert!(request.ends_with("heartbeat timeout 3000 ms)."), "{request}");
        sleep(Duration::from_secs(5));
        for wrong in ["timed out", "already registered", "unknown app", "ERROR", "Exception"] {
            assert!(!service.has_logged(wrong), "{wrong}");
        }
        if time == 1 {
            run.signal("INT");
            let ended = run.end();
            assert_eq!(ended.code, Some(0), "{}", ended.errors);
            let services = &ended.events().pop().unwrap()["shuffle_services"];
            assert_eq!((&services["registered"], &services["failing"]), (&1.into(), &0.into()));
            let rest = service.logs("Application app-of-a-test");
            assert!(rest.starts_with("timed out."), "{rest}");
            break;
        }
    }
}
