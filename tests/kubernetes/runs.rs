//! Runs of one name: one at a time, and the next adopts what a former one has left.

use std::time::Duration;

use offermill::cluster::kubernetes::PodsAtEnd;
use offermill::config::Queue;
use offermill::engine::cluster_manager::{ClusterManager, Event};
use offermill::resources::MilliCpus;
use offermill::{ConfigBuilder, TaskState};
use serde_json::json;

use crate::eventually::eventually;
use crate::fake::ApiServer;
use crate::framework::{Framework, PATIENCE, config, settings};
use crate::run::Run;

/// Goal: a next run adopts executors and learns of ends that nobody has applied; it kills nothing. Method: a run that
/// leaves three pods, of which one ends between the runs and one has no node yet.
#[test]
fn a_next_run_adopts_executors() {
    let server = ApiServer::start();
    let first = Framework::start(config(&server.url).with_at_end(PodsAtEnd::Leave), 1);
    first.launch(2);
    first.wait_state("etl-1-0.0", TaskState::Running);
    first.wait_state("etl-1-1.0", TaskState::Running);
    server.state().is_full = true;
    first.launch(1);
    first.wait_state("etl-1-2.0", TaskState::Staging);
    first.cluster.stop();
    server.exit("etl-1-1-0", 3);
    let second = Framework::start(config(&server.url), 2);
    let recovered =
        second.wait_event("adopted executors", |event| matches!(event, Event::Recovered { .. }));
    let Event::Recovered { executors, .. } = recovered else { unreachable!() };
    let mut adopted: Vec<(String, String, u64)> = executors
        .into_iter()
        .map(|it| (it.executor, it.agent_id, it.resources.memory.get()))
        .collect();
    adopted.sort();
    let executor = |id: &str, node: &str| (id.to_owned(), node.to_owned(), 1024);
    let expected =
        [executor("etl-1-0.0", "n1"), executor("etl-1-1.0", "n1"), executor("etl-1-2.0", "")];
    assert_eq!(adopted, expected);
    second.wait_state("etl-1-0.0", TaskState::Running);
    second.wait_state("etl-1-1.0", TaskState::Failed);
    second.wait_state("etl-1-2.0", TaskState::Staging);
    let order = |event: &Event| matches!(event, Event::Recovered { .. } | Event::Registered { .. });
    let events: Vec<Event> = second.events().into_iter().filter(order).collect();
    assert!(matches!(events[..], [Event::Recovered { .. }, Event::Registered { again: true, .. }]));
    eventually(PATIENCE, "only what has ended is deleted", || {
        let pods: Vec<String> = server.state().pods.keys().cloned().collect();
        if pods == ["etl-1-0-0", "etl-1-2-0"] { Ok(()) } else { Err(format!("{pods:?}")) }
    });
    second.kill("etl-1-0.0");
    second.wait_state("etl-1-0.0", TaskState::Killed);
}

/// Goal: a next run adopts executors into the queues that they were in, whatever numbers these have by then. Method: a
/// run of two executors in a queue that has room for two; the next has its queues in another order, and its own
/// executors in another queue, so that those that are adopted would be too many in any other.
#[test]
fn executors_are_adopted_into_their_queues() {
    let server = ApiServer::start();
    let settings = |names: [&str; 2], own: &str, executors: u32| {
        let cores = |name: &str| MilliCpus::from_cores(if name == "etl" { 2 } else { 1 });
        let queue = |name: &str| Queue::new(name).max_cores(Some(cores(name)));
        let builder = settings(executors).to_builder();
        let builder = names.into_iter().map(queue).fold(builder, ConfigBuilder::queue);
        let config = builder.clone().build().unwrap();
        builder.executor_queue(config.queues().id(own).unwrap()).build().unwrap()
    };
    let leaving = config(&server.url).with_at_end(PodsAtEnd::Leave);
    let first = Run::start(leaving, settings(["etl", "web"], "etl", 2), 1, false);
    let before = first.wait_running(2, PATIENCE);
    for pod in server.state().pods.values() {
        assert_eq!(pod["metadata"]["annotations"]["offermill/queue"], "etl", "{pod}");
    }
    first.cluster.stop();
    let second = Run::start(config(&server.url), settings(["web", "etl"], "web", 3), 2, false);
    let after = second.wait_running(3, PATIENCE);
    assert!(before.iter().all(|executor| after.contains(executor)), "{before:?} {after:?}");
    let queues = second.engine.kernel().queues();
    let held: Vec<(&str, u64)> =
        queues.iter().map(|queue| (&*queue.name, queue.cores.millis())).collect();
    assert_eq!(held, [("default", 0), ("web", 1000), ("etl", 2000)]);
}

/// Goal: what a former run has asked to end isn't adopted: it is neither this run's, nor lost. It takes room until it
/// is
/// gone. Method: a run whose pods end slowly, after it has ended itself; one more is deleted by others and has
/// finished.
#[test]
fn pods_that_are_being_deleted_are_not_adopted() {
    let server = ApiServer::start();
    let first = Framework::start(config(&server.url), 1);
    first.launch(3);
    for number in 0..3 {
        first.wait_state(&format!("etl-1-{number}.0"), TaskState::Running);
    }
    server.state().is_silent = true;
    first.cluster.stop();
    server.exit("etl-1-2-0", 0);
    assert_eq!(server.state().pods.len(), 3, "their node takes its time");
    let second = Framework::start(config(&server.url), 2);
    second.launch(2);
    second.wait_epoch(1);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(server.state().created.len(), 3, "two of the former ones still run");
    server.remove("etl-1-2-0");
    server.exit("etl-1-0-0", 143);
    server.remove("etl-1-0-0");
    second.wait_state("etl-2-0.0", TaskState::Running);
    assert_eq!(server.state().created.len(), 4, "one of the former ones still runs");
    server.compact();
    server.end_watches();
    second.wait_epoch(2);
    server.remove("etl-1-1-0");
    second.wait_state("etl-2-1.0", TaskState::Running);
    let of_the_first = second.events().into_iter().filter(|event| match event {
        Event::Recovered { .. } => true,
        Event::Update(update) => update.executor.starts_with("etl-1"),
        _ => false,
    });
    assert_eq!(of_the_first.collect::<Vec<Event>>(), []);
}

/// Goal: two runs of one name never create pods at the same time. Method: a second run while the first one is active;
/// then the first one finds its lease held by another.
#[test]
fn runs_of_one_name_exclude_each_other() {
    let server = ApiServer::start();
    let first = Framework::start(config(&server.url), 1);
    first.launch(1);
    first.wait_state("etl-1-0.0", TaskState::Running);
    let second = config(&server.url).with_connect_timeout(Duration::from_millis(500));
    let second = Framework::start(second, 2);
    let refused = second.wait_event("a refusal", |event| matches!(event, Event::Refused { .. }));
    assert!(format!("{refused:?}").contains("active"), "{refused:?}");
    second.cluster.stop();
    assert_eq!(server.state().pods.len(), 1, "the first one's pod");
    {
        let mut state = server.state();
        let lease = state.leases.get_mut("etl").unwrap();
        lease["spec"]["holderIdentity"] = "other".into();
        lease["metadata"]["resourceVersion"] = "other".into();
    }
    first.wait_event("a refusal", |event| matches!(event, Event::Refused { .. }));
    first.cluster.stop();
    assert!(first.cluster.why_left().is_some());
    assert_eq!(server.state().pods.len(), 1, "another's now");
}

/// Goal: a run that was killed doesn't block the next one for ever. Method: a lease that nobody renews.
#[test]
fn a_dead_runs_lease_expires() {
    let server = ApiServer::start();
    let spec =
        json!({ "holderIdentity": "dead", "leaseDurationSeconds": 1, "leaseTransitions": 4 });
    let labels = json!({ "app.kubernetes.io/managed-by": "offermill" });
    let metadata = json!({ "name": "etl", "uid": "u", "resourceVersion": "1", "labels": labels });
    let lease = json!({ "metadata": metadata, "spec": spec });
    server.state().leases.insert("etl".to_owned(), lease);
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    assert_eq!(server.state().leases["etl"]["spec"]["leaseTransitions"], 5);
}

/// Goal: a run that may not see its pods says so. Method: lists are forbidden.
#[test]
fn missing_rights_are_reported() {
    let server = ApiServer::start();
    server.state().is_forbidden = true;
    let config = config(&server.url).with_connect_timeout(Duration::from_millis(700));
    let framework = Framework::start(config, 1);
    let refused = framework.wait_event("a refusal", |event| matches!(event, Event::Refused { .. }));
    assert!(format!("{refused:?}").contains("pods is forbidden"), "{refused:?}");
}

/// Goal: rights that are granted a moment late are waited for. Method: the first requests for the lease and for the
/// pods are denied.
#[test]
fn late_rights_are_waited_for() {
    for request in ["GET /apis", "LIST"] {
        let server = ApiServer::start();
        server.state().failing = vec![(request, 403)];
        let framework = Framework::start(config(&server.url), 1);
        eventually(PATIENCE, "denials", || {
            if server.count(request) > 1 { Ok(()) } else { Err(String::new()) }
        });
        server.state().failing.clear();
        framework.wait_epoch(1);
    }
}

/// Goal: the lease of another program is left alone. Method: one that has expired, without this program's label.
#[test]
fn anothers_lease_is_left_alone() {
    let server = ApiServer::start();
    let spec = json!({ "holderIdentity": "", "leaseDurationSeconds": 1 });
    let metadata = json!({ "name": "etl", "uid": "u", "resourceVersion": "1" });
    let lease = json!({ "metadata": metadata, "spec": spec });
    server.state().leases.insert("etl".to_owned(), lease.clone());
    let config = config(&server.url).with_connect_timeout(Duration::from_millis(700));
    let framework = Framework::start(config, 1);
    let refused = framework.wait_event("a refusal", |event| matches!(event, Event::Refused { .. }));
    assert!(format!("{refused:?}").contains("another program"), "{refused:?}");
    framework.cluster.stop();
    assert_eq!(server.state().leases["etl"], lease);
}
