//! Ends of executors: by the program, by a kill, by others, and of the whole run.

use std::time::Duration;

use offermill::TaskState;
use offermill::cluster::kubernetes::RunCleaner;
use offermill::engine::cluster_manager::{Call, ClusterManager, Event};
use serde_json::json;

use crate::eventually::eventually;
use crate::fake::{ApiServer, Fault};
use crate::framework::{Framework, PATIENCE, config};

#[track_caller]
fn wait_pods(server: &ApiServer, pods: usize) {
    eventually(PATIENCE, &format!("{pods} pods"), || {
        let now = server.state().pods.len();
        if now == pods { Ok(()) } else { Err(format!("{now} pods")) }
    });
}

/// Goal: a kill ends a pod whatever it is doing. Method: one that runs, one without a node, one that is being created,
/// one that is killed twice, and one that nobody knows.
#[test]
fn kills_end_pods() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    framework.kill("etl-1-0.0");
    framework.kill("etl-1-0.0");
    framework.wait_state("etl-1-0.0", TaskState::Killed);
    server.state().is_full = true;
    framework.launch(1);
    framework.wait_state("etl-1-1.0", TaskState::Staging);
    framework.kill("etl-1-1.0");
    framework.wait_state("etl-1-1.0", TaskState::Killed);
    server.state().faults = vec![Fault::Delay(Duration::from_millis(300))];
    framework.launch(1);
    eventually(PATIENCE, "its creation is sent", || {
        if server.count("POST /api/") == 3 { Ok(()) } else { Err(String::new()) }
    });
    framework.kill("etl-1-2.0");
    framework.wait_state("etl-1-2.0", TaskState::Killed);
    framework.kill("etl-0-9.0");
    framework.wait_state("etl-0-9.0", TaskState::Gone);
    wait_pods(&server, 0);
    assert_eq!(server.state().created.len(), 3);
    // A period is rounded up, and never 0, by which a pod is forgotten that may run on.
    assert!(server.state().graces.iter().all(|grace| *grace == Some(2)));
    server.state().is_full = false;
    framework.launch(1);
    framework.wait_state("etl-1-3.0", TaskState::Running);
    let kill = Call::Kill { executor: "etl-1-3.0", agent_id: None, grace: Duration::ZERO };
    framework.cluster.call(kill).unwrap();
    framework.wait_state("etl-1-3.0", TaskState::Killed);
    assert_eq!(server.state().graces.last(), Some(&Some(1)));
}

/// Goal: ends by others are no failures of the program. Method: a pod that was deleted without its node, and one whose
/// node started it anew.
#[test]
fn ends_by_others_are_losses() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(2);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    framework.wait_state("etl-1-1.0", TaskState::Running);
    server.remove("etl-1-0-0");
    framework.wait_state("etl-1-0.0", TaskState::Gone);
    server.change("etl-1-1-0", |pod| {
        pod["status"]["containerStatuses"][0]["containerID"] = "fake://2".into();
    });
    framework.wait_state("etl-1-1.0", TaskState::Gone);
    wait_pods(&server, 0);
}

/// Goal: an executor that can't start for want of its image is given up. Method: an image that can't be pulled.
#[test]
fn a_missing_image_is_given_up() {
    let server = ApiServer::start();
    server.state().is_full = true;
    let config = config(&server.url).with_start_timeout(Duration::from_millis(300));
    let framework = Framework::start(config, 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Staging);
    server.change("etl-1-0-0", |pod| {
        pod["spec"]["nodeName"] = "n1".into();
        let waiting = json!({ "waiting": { "reason": "ErrImagePull", "message": "not found" } });
        pod["status"]["containerStatuses"] = json!([{ "name": "executor", "state": waiting }]);
    });
    framework.wait_event(
        "what it waits for",
        |event| matches!(event, Event::Waiting { why, .. } if why == "ErrImagePull: not found"),
    );
    framework.wait_state("etl-1-0.0", TaskState::Error);
    wait_pods(&server, 0);
    assert_eq!(framework.states("etl-1-0.0").last(), Some(&TaskState::Error), "its only end");
}

/// Goal: an end that wasn't acknowledged isn't lost. Method: the pod stays, and the next list reports the end again.
#[test]
fn an_end_stays_until_it_is_acknowledged() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.withhold_acknowledgements();
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.exit("etl-1-0-0", 3);
    framework.wait_state("etl-1-0.0", TaskState::Failed);
    let ends = || {
        let updates = framework.updates("etl-1-0.0");
        updates.into_iter().filter(|update| update.state == TaskState::Failed).count()
    };
    assert_eq!(ends(), 1);
    server.compact();
    server.end_watches();
    framework.wait_epoch(2);
    eventually(PATIENCE, "the end again", || {
        if ends() == 2 { Ok(()) } else { Err(format!("{}", ends())) }
    });
    assert_eq!(server.state().pods.len(), 1);
}

/// Goal: a stop deletes all that the run has, or nothing. Method: a run that ends, and one that leaves its pods.
#[test]
fn a_stop_leaves_nothing_or_all() {
    use offermill::cluster::kubernetes::PodsAtEnd;
    for (at_end, left) in [(PodsAtEnd::Delete, 0), (PodsAtEnd::Leave, 3)] {
        let server = ApiServer::start();
        let framework = Framework::start(config(&server.url).with_at_end(at_end), 1);
        framework.launch(3);
        framework.wait_state("etl-1-2.0", TaskState::Running);
        framework.cluster.stop();
        assert_eq!(framework.cluster.why_left(), None);
        let state = server.state();
        assert_eq!(state.pods.len(), left);
        let holder = state.leases.get("etl").map(|lease| lease["spec"]["holderIdentity"].clone());
        assert_eq!(holder, (at_end == PodsAtEnd::Leave).then(|| "".into()));
    }
}

/// Goal: a step of the stop that fails keeps no other from being done. Method: pods may not be deleted any more.
#[test]
fn a_stop_goes_on_after_a_failure() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.state().is_forbidden = true;
    framework.cluster.stop();
    let why = framework.cluster.why_left().unwrap();
    assert!(why.contains("deletion of the pods"), "{why}");
    assert!(server.state().leases.is_empty(), "pods are deleted with their owner");
}

/// Goal: a pod that isn't shown any more isn't taken for gone while it runs. Method: its labels change while it is
/// watched, and while it isn't, so that a list lacks it; it can't be deleted at first.
#[test]
fn a_changed_label_is_no_end() {
    for is_watched in [true, false] {
        let server = ApiServer::start();
        let framework = Framework::start(config(&server.url), 1);
        framework.launch(1);
        framework.wait_state("etl-1-0.0", TaskState::Running);
        server.state().failing = vec![("DELETE /api/", 503)];
        if !is_watched {
            server.silence();
        }
        server.change("etl-1-0-0", |pod| pod["metadata"]["labels"]["offermill/run"] = "x".into());
        if !is_watched {
            server.compact();
            server.speak();
        }
        eventually(PATIENCE, "it is deleted", || {
            if server.count("DELETE /api/") > 1 { Ok(()) } else { Err(String::new()) }
        });
        assert_eq!(framework.states("etl-1-0.0").last(), Some(&TaskState::Running));
        server.state().failing.clear();
        framework.wait_state("etl-1-0.0", TaskState::Gone);
        assert!(server.state().pods.is_empty(), "reported when it is gone");
    }
}

/// Goal: a pod whose end was applied is deleted in the end. Method: the right to delete pods is missing for a while;
/// the engine acknowledges once.
#[test]
fn a_failed_acknowledgement_is_repeated() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.state().failing = vec![("DELETE /api/", 403)];
    server.exit("etl-1-0-0", 0);
    framework.wait_event(
        "a failure",
        |event| matches!(event, Event::CallFailed { why } if why.contains("deletion of the pod")),
    );
    server.state().failing.clear();
    wait_pods(&server, 0);
}

/// Goal: a pod on a node that is silent isn't forgotten while it may run on. Method: the node falls silent, the
/// executor is killed, and the node comes back.
#[test]
fn a_pod_on_a_silent_node_is_not_forgotten() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.state().is_silent = true;
    let ready = json!([{ "type": "Ready", "status": "False" }]);
    server.change("etl-1-0-0", |pod| pod["status"]["conditions"] = ready);
    framework.wait_state("etl-1-0.0", TaskState::Unreachable);
    framework.kill("etl-1-0.0");
    eventually(PATIENCE, "a deletion", || {
        if server.count("DELETE /api/") > 0 { Ok(()) } else { Err(String::new()) }
    });
    eventually(PATIENCE, "a further deletion", || {
        // The engine repeats its kills.
        framework.kill("etl-1-0.0");
        if server.count("DELETE /api/") > 1 { Ok(()) } else { Err(String::new()) }
    });
    assert_eq!(server.state().pods.len(), 1, "it may run on");
    assert_eq!(framework.states("etl-1-0.0").last(), Some(&TaskState::Unreachable));
    server.state().is_silent = false;
    server.exit("etl-1-0-0", 143);
    framework.wait_state("etl-1-0.0", TaskState::Killed);
    wait_pods(&server, 0);
}

/// Goal: pods that are to stay after their ends stay, and count once: neither this run nor the next one reports or
/// adopts them again. Method: one pod of each end; a failure to label; then the run's end, the next run, and a cleaner.
#[test]
fn ended_pods_stay_if_they_are_to() {
    let server = ApiServer::start();
    let mut keeping = config(&server.url);
    keeping.keeps_ended = true;
    let first = Framework::start(keeping.clone(), 1);
    first.launch(4);
    for number in 0..4 {
        first.wait_state(&format!("etl-1-{number}.0"), TaskState::Running);
    }
    server.state().failing = vec![("PATCH", 500)];
    server.exit("etl-1-0-0", 0);
    first.wait_state("etl-1-0.0", TaskState::Finished);
    server.state().failing.clear();
    server.exit("etl-1-1-0", 3);
    first.wait_state("etl-1-1.0", TaskState::Failed);
    first.kill("etl-1-2.0");
    first.wait_state("etl-1-2.0", TaskState::Killed);
    let labelled = |name: &str| {
        let label =
            server.state().pods[name]["metadata"]["labels"]["offermill/acknowledged"] == "true";
        if label { Ok(()) } else { Err(String::new()) }
    };
    eventually(PATIENCE, "the finished one is labelled", || labelled("etl-1-0-0"));
    eventually(PATIENCE, "the failed one is labelled", || labelled("etl-1-1-0"));
    let ends = |framework: &Framework, executor: &str| {
        framework.updates(executor).iter().filter(|update| update.uuid.is_some()).count()
    };
    server.compact();
    server.end_watches();
    first.wait_epoch(2);
    assert_eq!((ends(&first, "etl-1-0.0"), ends(&first, "etl-1-1.0")), (1, 1));
    first.cluster.stop();
    assert_eq!(first.cluster.why_left(), None);
    let names = || server.state().pods.keys().cloned().collect::<Vec<String>>();
    assert_eq!(names(), ["etl-1-0-0", "etl-1-1-0"], "what was running is deleted");
    let second = Framework::start(keeping.clone(), 2);
    second.launch(1);
    second.wait_state("etl-2-0.0", TaskState::Running);
    let is_adoption = |event: &Event| matches!(event, Event::Recovered { .. });
    assert!(!second.events().iter().any(is_adoption));
    second.cluster.stop();
    assert_eq!(names(), ["etl-1-0-0", "etl-1-1-0"]);
    let cleaner = RunCleaner::connect(&keeping).unwrap();
    assert_eq!(cleaner.pods(), ["etl-1-0-0", "etl-1-1-0"]);
    cleaner.delete(false).unwrap();
    assert!(names().is_empty() && server.state().leases.is_empty());
}

/// Goal: pods are labelled before their executors are ended, and ended even if they can't be labelled. Method: a kill
/// with and without the right; an end by itself, which is no such end.
#[test]
fn pods_that_are_ended_are_labelled_before() {
    let server = ApiServer::start();
    let mut labelling = config(&server.url);
    labelling.end_label = Some(("ending".to_owned(), "now".to_owned()));
    let framework = Framework::start(labelling, 1);
    framework.launch(3);
    for number in 0..3 {
        framework.wait_state(&format!("etl-1-{number}.0"), TaskState::Running);
    }
    server.state().is_silent = true;
    framework.kill("etl-1-0.0");
    eventually(PATIENCE, "it is to be deleted", || {
        let pod = server.state().pods["etl-1-0-0"]["metadata"].clone();
        let is_ending = !pod["deletionTimestamp"].is_null() && pod["labels"]["ending"] == "now";
        if is_ending { Ok(()) } else { Err(pod.to_string()) }
    });
    server.state().is_silent = false;
    server.state().failing = vec![("PATCH", 403)];
    framework.kill("etl-1-1.0");
    framework.wait_state("etl-1-1.0", TaskState::Killed);
    server.exit("etl-1-2-0", 0);
    framework.wait_state("etl-1-2.0", TaskState::Finished);
    assert_eq!(server.count("PATCH"), 2);
}

/// Goal: a pod that isn't shown any more is deleted although its first deletion was refused. Method: its labels are
/// changed while the server refuses deletions, as it does to a token that has ended.
#[test]
fn a_hidden_pod_whose_deletion_is_refused() {
    let server = ApiServer::start();
    let framework = Framework::start(config(&server.url), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    let deletions = "DELETE /api/v1/namespaces/jobs/pods/";
    server.state().failing = vec![(deletions, 401)];
    server.change("etl-1-0-0", |pod| pod["metadata"]["labels"]["offermill/run"] = "x".into());
    eventually(PATIENCE, "a deletion", || {
        if server.count(deletions) > 0 { Ok(()) } else { Err(String::new()) }
    });
    std::thread::sleep(Duration::from_secs(1));
    server.state().failing.clear();
    framework.wait_state("etl-1-0.0", TaskState::Gone);
    assert!(server.state().pods.is_empty());
}
