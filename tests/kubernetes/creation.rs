//! Creations of pods, and what may happen to them: one executor, one pod.

use std::collections::BTreeSet;
use std::time::Duration;

use offermill::TaskState;
use offermill::cluster::kubernetes::{
    ApiServer as ApiServerAddress, KubernetesCluster, KubernetesConfig,
};
use offermill::config::ExecutorCores;
use offermill::engine::cluster_manager::{AvoidedAgent, Call, ClusterManager, Event};
use offermill::resources::MilliCpus;
use offermill::{Config, Constraint, UpdateReason};
use serde_json::json;

use crate::eventually::eventually;
use crate::fake::{ApiServer, Fault};
use crate::framework::{Framework, PATIENCE, config};

/// Goal: an executor lives as its pod does, with few requests. Method: a pod that finishes; each request is counted.
#[test]
fn a_life_takes_three_requests() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.exit("etl-1-0-0", 0);
    framework.wait_state("etl-1-0.0", TaskState::Finished);
    eventually(PATIENCE, "the pod is deleted", || {
        let pods = server.state().pods.len();
        if pods == 0 { Ok(()) } else { Err(format!("{pods} pods")) }
    });
    let updates = framework.updates("etl-1-0.0");
    let end = updates.last().unwrap();
    assert_eq!((end.agent_id.as_deref(), end.uuid.is_some()), (Some("n1"), true));
    assert!(updates.iter().rev().skip(1).all(|update| update.uuid.is_none()));
    assert_eq!(
        (server.count("POST /api/"), server.count("DELETE"), server.count("LIST")),
        (1, 1, 1)
    );
    assert_eq!(server.count("GET /api/"), 0);
    let manifest = server.state().created[0].clone();
    let container = &manifest["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["worker", "$$HOME", "$(OFFERMILL_HOSTNAME)"]));
    assert_eq!(manifest["spec"]["restartPolicy"], "Never");
    let lease = server.state().leases["etl"].clone();
    assert_eq!(manifest["metadata"]["ownerReferences"][0]["uid"], lease["metadata"]["uid"]);
}

/// Goal: whatever happens to a creation, an executor gets its one pod. Method: each way in which an answer can be late,
/// missing or misleading, each for several creations, also of several in flight.
#[test]
fn each_executor_gets_one_pod() {
    let token = json!({ "message": "No API token found for service account \"default\"" });
    let faults = [
        Fault::FailAfter(504),
        Fault::FailAfter(500),
        Fault::CloseAfter,
        Fault::CloseBefore,
        Fault::Refuse(503, json!({})),
        Fault::Refuse(429, json!({})),
        Fault::Refuse(500, token),
        Fault::Delay(Duration::from_millis(200)),
    ];
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    server.state().faults = faults.iter().cycle().take(24).cloned().collect();
    framework.launch(30);
    for number in 0..30 {
        framework.wait_state(&format!("etl-1-{number}.0"), TaskState::Running);
    }
    let state = server.state();
    let name = |pod: &serde_json::Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
    let names: BTreeSet<String> = state.created.iter().map(name).collect();
    assert_eq!((state.created.len(), names.len(), state.pods.len()), (30, 30, 30));
    drop(state);
    let is_end = |event: &Event| matches!(event, Event::Update(update) if update.uuid.is_some());
    assert!(!framework.events().iter().any(is_end));
}

/// Goal: many creations are in flight at once, within the bound. Method: each takes 150 ms; the most that the server
/// has seen at a time.
#[test]
fn creations_overlap() {
    let server = ApiServer::start();
    server.state().always = Some(Fault::Delay(Duration::from_millis(150)));
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(200);
    framework.wait_state("etl-1-199.0", TaskState::Running);
    assert_eq!(server.state().creating_most, 16);
    assert_eq!(server.state().created.len(), 200);
}

/// Goal: a pod of the same name that isn't this program's is neither taken for the executor nor deleted. Method:
/// another's pod, which runs.
#[test]
fn anothers_pod_is_left_alone() {
    let server = ApiServer::start();
    let other = json!({ "metadata": { "name": "etl-1-0-0", "uid": "other", "labels": {} },
        "status": { "phase": "Running" } });
    server.state().pods.insert("etl-1-0-0".to_owned(), other);
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Dropped);
    let update = framework.updates("etl-1-0.0").pop().unwrap();
    assert_eq!(update.reason, UpdateReason::InvalidOffers);
    assert!(update.message.contains("another pod"), "{}", update.message);
    assert_eq!(server.count("DELETE"), 0);
}

/// Goal: a full quota is met by few requests, and used as soon as an own pod has ended. Method: ten executors are
/// wanted, three fit; one ends.
#[test]
fn a_quota_is_waited_for() {
    let server = ApiServer::start();
    server.state().quota = Some(3);
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(10);
    let running = || server.state().created.len();
    eventually(PATIENCE, "the quota is used", || {
        if running() == 3 { Ok(()) } else { Err(format!("{} pods", running())) }
    });
    framework.wait_event(
        "a denial",
        |event| matches!(event, Event::CallFailed { why } if why.contains("exceeded quota")),
    );
    let denied = server.count("POST /api/") - 3;
    assert!(denied <= 4, "{denied} denials, though only four could be in flight");
    server.exit("etl-1-0-0", 0);
    eventually(PATIENCE, "its place is taken", || {
        if running() == 4 { Ok(()) } else { Err(format!("{} pods", running())) }
    });
    assert!(server.state().alive() <= 3);
}

/// Goal: what no pod can have is reported, and isn't tried again and again. Method: no image.
#[test]
fn what_a_pod_cant_have_is_reported() {
    let server = ApiServer::start();
    let mut config = config(&server.url);
    config.image = None;
    let framework = Framework::start(config, 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Dropped);
    let why = framework.updates("etl-1-0.0").pop().unwrap().message;
    assert!(why.contains("no image"), "{why}");
    assert_eq!(server.count("POST /api/"), 0);
}

/// Goal: no pod that is created after an exclusion may be placed on the node. Method: the manifests before and after.
#[test]
fn excluded_nodes_are_avoided() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    let avoided = AvoidedAgent::new("n7", None);
    framework.cluster.call(Call::Avoid(&[avoided])).unwrap();
    framework.launch(1);
    framework.wait_state("etl-1-1.0", TaskState::Running);
    let affinity = |at: usize| server.state().created[at]["spec"]["affinity"].to_string();
    assert_eq!(affinity(0), "null");
    assert!(affinity(1).contains(r#""operator":"NotIn","values":["n7"]"#), "{}", affinity(1));
}

/// Goal: a denial isn't taken for the answer to an earlier attempt. Method: the first attempt takes effect late, the
/// second is denied, by a permission and by a quota.
#[test]
fn a_denial_after_an_unknown_attempt_loses_nothing() {
    for denial in ["pods is forbidden", "exceeded quota: q, requested: pods=1, limited: pods=1"] {
        let server = ApiServer::start();
        let framework = Framework::start(config(&server.url), 1);
        let body = json!({ "code": 403, "message": denial });
        server.state().faults = vec![Fault::Refuse(403, body), Fault::Defer(504)];
        framework.launch(1);
        framework.wait_state("etl-1-0.0", TaskState::Running);
        let dropped = framework.states("etl-1-0.0").contains(&TaskState::Dropped);
        assert!(!dropped, "{denial}: {:?}", framework.states("etl-1-0.0"));
        assert_eq!(server.state().created.len(), 1);
    }
}

/// Goal: a kill ends a creation that would be repeated for ever. Method: a server that is always busy.
#[test]
fn a_kill_ends_a_creation() {
    let server = ApiServer::start();
    server.state().always = Some(Fault::Refuse(429, json!({})));
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    eventually(PATIENCE, "an attempt", || {
        if server.count("POST /api/") > 0 { Ok(()) } else { Err(String::new()) }
    });
    framework.kill("etl-1-0.0");
    framework.wait_state("etl-1-0.0", TaskState::Killed);
    server.state().always = None;
    assert!(server.state().created.is_empty());
}

/// Goal: a constraint is never ignored. Method: settings without the kernel's; then a constraint that no node can meet,
/// at the start and for a run under way, which goes on with the one before.
#[test]
fn a_constraint_is_kept_or_refused() {
    let server = ApiServer::start();
    let url = ApiServerAddress::at(server.url.clone());
    let bare = KubernetesConfig::new("etl").with_api_server(url);
    let error = KubernetesCluster::new(bare).unwrap_err().to_string();
    assert!(error.contains("for_kernel"), "{error}");
    let constrained = |text: &str| {
        let cores = ExecutorCores::Fixed(MilliCpus::from_cores(1));
        let constraint = Constraint::parse(text).unwrap();
        Config::builder().executor_cores(cores).constraint(constraint).build().unwrap()
    };
    let nowhere = constrained("zone:not a label");
    let impossible = config(&server.url).for_kernel(&nowhere).unwrap();
    assert!(KubernetesCluster::new(impossible).is_err());
    let east = config(&server.url).for_kernel(&constrained("zone:east")).unwrap();
    let framework = Framework::start(east, 1);
    let error = framework.cluster.reconfigure(&nowhere).unwrap_err().to_string();
    assert!(error.contains("constraint"), "{error}");
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    let affinity = server.state().created[0]["spec"]["affinity"].to_string();
    assert!(affinity.contains("east"), "{affinity}");
}

/// Goal: a creation that fails for ever isn't silent, and ends. Method: a server that is overloaded, and one that
/// fails, so that each attempt is followed by a look; then a success after a failure.
#[test]
fn a_creation_that_fails_is_told_and_given_up() {
    for status in [429, 503] {
        let server = ApiServer::start();
        let body = json!({ "message": "overloaded" });
        server.state().always = Some(Fault::Refuse(status, body.clone()));
        let config = config(&server.url).with_start_timeout(Duration::from_secs(2));
        let framework = Framework::start(config, 1);
        framework.launch(1);
        let told =
            |event: &Event| matches!(event, Event::Waiting { why, .. } if why == "overloaded");
        framework.wait_event("what it waits for", told);
        framework.wait_state("etl-1-0.0", TaskState::Dropped);
        let why = framework.updates("etl-1-0.0").pop().unwrap().message;
        assert!(why.contains("overloaded") && why.contains("2s"), "{why}");
        server.state().always = None;
        server.state().faults = vec![Fault::Refuse(status, body)];
        framework.wait_state("etl-1-1.0", TaskState::Running);
        let is_waiting = |event: &&Event| matches!(event, Event::Waiting { .. });
        assert!(framework.events().iter().filter(is_waiting).count() <= 6);
        assert_eq!(server.state().created.len(), 1);
    }
}

/// Goal: a creation without an answer is looked for, not sent again. Method: attempts that took effect, each without
/// saying so; requests are counted.
#[test]
fn an_unanswered_creation_is_looked_for() {
    for fault in [Fault::FailAfter(504), Fault::FailAfter(500), Fault::CloseAfter] {
        let server = ApiServer::start();
        let framework = Framework::start(config(&server.url), 1);
        // Nothing but a look shows the pod.
        framework.wait_epoch(1);
        server.silence();
        server.end_watches();
        server.state().faults = vec![fault];
        framework.launch(1);
        framework.wait_state("etl-1-0.0", TaskState::Running);
        assert_eq!((server.count("POST /api/"), server.count("GET /api/")), (1, 1));
    }
}

/// Goal: a pod that came and went before its creation was answered isn't created twice. Method: an attempt that took
/// effect without an answer; others delete the pod while no watch is heard.
#[test]
fn a_pod_that_came_and_went_unseen_is_not_created_again() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.silence();
    server.end_watches();
    server.state().faults = vec![Fault::Vanish];
    framework.launch(1);
    framework.wait_state("etl-1-1.0", TaskState::Gone);
    assert_eq!(server.state().created.len(), 2, "each once");
}

/// Goal: an executor whose creation may still take effect isn't reported as ended before it can't any more, so that
/// never more pods are alive than executors count. Method: a creation that is answered 504 and takes effect late; its
/// executor is killed, is given up, or is denied before that.
#[test]
fn a_creation_that_takes_effect_late_still_counts() {
    let quota = json!({ "code": 403, "message": "exceeded quota: q" });
    for case in ["killed", "given up", "denied"] {
        let server = ApiServer::start();
        let mut config = config(&server.url);
        if case == "given up" {
            config = config.with_start_timeout(Duration::from_millis(300));
        }
        let framework = Framework::start(config, 1);
        let mut faults = vec![Fault::Late(504, Duration::from_millis(2500))];
        if case != "killed" {
            faults
                .insert(0, Fault::Refuse(if case == "denied" { 403 } else { 429 }, quota.clone()));
        } else {
            server.state().always = Some(Fault::Refuse(429, quota.clone()));
        }
        server.state().faults = faults;
        framework.launch(1);
        eventually(PATIENCE, "an attempt", || {
            if server.count("POST /api/") > 0 { Ok(()) } else { Err(String::new()) }
        });
        if case == "killed" {
            framework.kill("etl-1-0.0");
        }
        let has_ended = |executor: &str| {
            let states = framework.states(executor);
            states.contains(&TaskState::Killed) || states.contains(&TaskState::Dropped)
        };
        eventually(PATIENCE, "the pod", || {
            let has_ended = has_ended("etl-1-0.0");
            let is_there = !server.state().created.is_empty();
            assert!(is_there || !has_ended, "{case}: it may still take effect");
            if is_there { Ok(()) } else { Err(String::new()) }
        });
        let end = if case == "killed" { TaskState::Killed } else { TaskState::Running };
        framework.wait_state("etl-1-0.0", end);
        assert_eq!(server.state().created.len(), 1, "{case}");
    }
}
