//! The run's lease, and what a run that has lost it may still do: nothing to the pods, which are another's.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use offermill::cluster::kubernetes::{KubernetesCluster, PodsAtEnd};
use offermill::engine::cluster_manager::{ClusterManager, Event};
use offermill::engine::{Engine, EngineOptions, Notice, Observer};
use offermill::launch::CommandTemplate;
use offermill::{IdScheme, Kernel, TaskState, Timestamp};
use serde_json::Value;

use crate::eventually::eventually;
use crate::fake::{ApiServer, Fault};
use crate::framework::{Framework, PATIENCE, config, settings};

/// Notices whether the manager has refused the framework.
struct RefusalObserver(Arc<Mutex<bool>>);

impl Observer for RefusalObserver {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        if let Notice::Refused { .. } = notice {
            *self.0.lock().unwrap() = true;
        }
    }
}

/// Lets another run take the lease.
fn steal(server: &ApiServer) {
    let mut state = server.state();
    let lease = state.leases.get_mut("etl").unwrap();
    lease["spec"]["holderIdentity"] = "other".into();
    lease["metadata"]["resourceVersion"] = "other".into();
}

/// Goal: a run that has lost its lease deletes nothing, and ends nonetheless. Method: another takes the lease of an
/// engine with two pods, of which one ends; then the engine is shut down, and must not wait for its executors.
#[test]
fn a_refused_engine_deletes_nothing() {
    let server = ApiServer::start();
    let settings = settings(2);
    let kubernetes = config(&server.url).for_kernel(&settings).unwrap();
    let cluster = Arc::new(KubernetesCluster::new(kubernetes).unwrap());
    let kernel = Kernel::new(settings, IdScheme::unique("etl", 1).unwrap());
    let worker = Arc::new(CommandTemplate::new(vec!["worker".to_owned()]));
    let refused = Arc::new(Mutex::new(false));
    let observer = RefusalObserver(Arc::clone(&refused));
    let manager = Arc::clone(&cluster) as Arc<dyn ClusterManager>;
    let options = EngineOptions::default();
    let engine = Engine::start(kernel, manager, worker, options, Box::new(observer)).unwrap();
    eventually(PATIENCE, "two pods", || {
        let pods = server.state().pods.len();
        if pods == 2 { Ok(()) } else { Err(format!("{pods}")) }
    });
    steal(&server);
    eventually(PATIENCE, "a refusal", || {
        if *refused.lock().unwrap() { Ok(()) } else { Err(String::new()) }
    });
    let name = server.state().pods.keys().next().unwrap().clone();
    server.exit(&name, 3);
    let shutdown = engine.shutdown(Duration::from_secs(20));
    assert!(shutdown.drained, "{shutdown:?}");
    assert_eq!(server.count("DELETE"), 0, "they are another run's");
    assert_eq!(server.state().pods.len(), 2);
    assert!(cluster.why_left().is_some());
}

/// Goal: what would delete a pod waits until the lease is held again. Method: renewals fail for longer than the lease
/// is valid; meanwhile one executor ends and another is killed.
#[test]
fn deletions_wait_for_the_lease() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(2);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    framework.wait_state("etl-1-1.0", TaskState::Running);
    server.state().failing = vec![("PUT /apis", 503)];
    framework.wait_event(
        "an expired lease",
        |event| matches!(event, Event::CallFailed { why } if why.contains("renewal")),
    );
    server.exit("etl-1-0-0", 0);
    framework.kill("etl-1-1.0");
    framework.wait_state("etl-1-0.0", TaskState::Finished);
    assert_eq!(server.count("DELETE"), 0, "another run may hold the lease");
    server.state().failing.clear();
    framework.wait_state("etl-1-1.0", TaskState::Killed);
    eventually(PATIENCE, "no pods", || {
        let pods = server.state().pods.len();
        if pods == 0 { Ok(()) } else { Err(format!("{pods}")) }
    });
}

/// Goal: no pod is created past the lease. Method: a creation that is to be repeated later, after the lease was lost.
#[test]
fn a_creation_ends_with_the_lease() {
    let server = ApiServer::start();
    server.state().always = Some(Fault::Refuse(429, Value::Null));
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    eventually(PATIENCE, "an attempt", || {
        if server.count("POST /api/") > 0 { Ok(()) } else { Err(String::new()) }
    });
    steal(&server);
    framework.wait_event("a refusal", |event| matches!(event, Event::Refused { .. }));
    let attempts = server.count("POST /api/");
    server.state().always = None;
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!((server.count("POST /api/"), server.state().pods.len()), (attempts, 0));
}

/// Goal: a stop deletes nothing of another run, whatever the reason for which the lease can't be renewed. Method:
/// renewals fail until the lease has expired, then another run takes it; and without another run.
#[test]
fn a_stop_past_the_lease_looks_who_holds_it() {
    for is_taken in [true, false] {
        let server = ApiServer::start();
        let framework = Framework::start(config(&server.url), 1);
        framework.launch(1);
        framework.wait_state("etl-1-0.0", TaskState::Running);
        server.state().failing = vec![("PUT /apis", 503)];
        framework.wait_event(
            "an expired lease",
            |event| matches!(event, Event::CallFailed { why } if why.contains("renewal")),
        );
        if is_taken {
            steal(&server);
        }
        framework.cluster.stop();
        let left = usize::from(is_taken);
        assert_eq!(framework.cluster.why_left().is_some(), is_taken);
        let state = server.state();
        assert_eq!((state.pods.len(), state.leases.len()), (left, left), "{is_taken}");
    }
}

/// Goal: the end of one run leaves another's pods alone. Method: a pod of another run in the namespace.
#[test]
fn a_stop_deletes_the_runs_own_pods() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url).with_at_end(PodsAtEnd::Delete), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    let mut other = server.state().pods["etl-1-0-0"].clone();
    other["metadata"]["name"] = "other".into();
    other["metadata"]["labels"]["offermill/run"] = "other".into();
    server.state().pods.insert("other".to_owned(), other);
    framework.cluster.stop();
    let pods: Vec<String> = server.state().pods.keys().cloned().collect();
    assert_eq!(pods, ["other"]);
}

/// Goal: a lease is told in whole seconds, and held for no longer than told. Method: a duration with a fraction; one
/// that a single request could outlast.
#[test]
fn a_lease_lasts_as_long_as_it_says() {
    let server = ApiServer::start();
    let short = config(&server.url).with_lease_duration(Duration::from_millis(3999));
    let framework = Framework::start(short, 1);
    framework.wait_epoch(1);
    assert_eq!(server.state().leases["etl"]["spec"]["leaseDurationSeconds"], 3);
    let mut slow = config(&server.url);
    slow.request_timeout = Duration::from_secs(3);
    let error = KubernetesCluster::new(slow).unwrap_err().to_string();
    assert!(error.contains("request timeout"), "{error}");
}

/// Goal: a stop is over before an engine gives it up, and says what is left. Method: a server that falls silent in the
/// middle of a creation, so that no request is answered.
#[test]
fn a_stop_has_one_deadline() {
    let server = ApiServer::start();
    let mut config = config(&server.url).with_lease_duration(Duration::from_secs(60));
    config.request_timeout = Duration::from_secs(50);
    let framework = Framework::start(config, 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.state().hangs = true;
    framework.launch(1);
    eventually(PATIENCE, "a creation", || {
        if server.count("POST /api/") == 2 { Ok(()) } else { Err(String::new()) }
    });
    // With 50 s for each request it would take minutes; a test that hangs is ended by its runner.
    framework.cluster.stop();
    let why = framework.cluster.why_left().unwrap();
    assert!(why.contains("no answer in time"), "{why}");
}
