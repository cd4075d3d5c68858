//! Runs that are killed by SIGKILL, and started again; and two runs of one name.

use std::time::Duration;

use offermill::cluster::kubernetes::PodsAtEnd;
use offermill::engine::cluster_manager::{ClusterManager, Event};

use super::census::Census;
use super::{PATIENCE, config, ctl, curl, list, url, variable};
use crate::child::{Child, ChildSettings};
use crate::eventually::eventually;
use crate::framework::{Framework, settings};
use crate::run::Run;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/killed";

/// Gives back the lease of a run that was killed, so that the next needn't wait until it has expired.
fn free_lease() {
    curl("PATCH", LEASE, Some(r#"{"spec":{"holderIdentity":""}}"#));
}

/// Goal: whenever a run is killed, the next takes over what it has left, loses no end, and makes no executor too many.
/// Method: five executors; the run is killed before it creates pods, in the middle of creating them, after they were
/// created, when they run, and before the end of one is acknowledged; each time it is started again. Twice the next
/// run waits for the lease.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn killed_runs_are_continued() {
    let work_dir = variable("KUBERNETES_WORK_DIR");
    let child = ChildSettings {
        url: url(),
        namespace: "default".to_owned(),
        token: String::from_utf8(super::file("pki/token")).unwrap().trim().to_owned(),
        authorities: format!("{work_dir}/pki/ca.crt"),
        name: "killed".to_owned(),
        executors: 5,
        counts_down: false,
    };
    let census = Census::start("default", "killed");
    for (delay, run) in [60, 100, 140, 180, 250, 400, 700].into_iter().zip(1..) {
        let killed = Child::start(&child, run);
        std::thread::sleep(Duration::from_millis(delay));
        killed.kill();
        if run != 3 {
            free_lease();
        }
    }
    let mut ends = 0;
    for run in 8..12 {
        let mut killed = Child::start(&child, run);
        killed.wait_said("runs");
        if run % 2 == 0 {
            let ended =
                list("default", "killed")[0]["metadata"]["name"].as_str().unwrap().to_owned();
            // Nobody is there to acknowledge it: the run is stopped before.
            killed.pause();
            ctl(&["exit", &ended, "0"]);
            ends += 1;
            eventually(PATIENCE, "its pod has ended", || {
                let pods = list("default", "killed");
                let has_ended = pods.iter().any(|pod| pod["status"]["phase"] == "Succeeded");
                if has_ended { Ok(()) } else { Err(String::new()) }
            });
        }
        killed.kill();
        if run != 9 {
            free_lease();
        }
    }
    let last = Run::start(config("killed"), settings(5), 12, false);
    last.wait_running(5, PATIENCE);
    assert_eq!(census.seen(), 5 + ends, "a pod for each executor, and one for each that ended");
    assert!(census.most() <= 5, "{} at a time", census.most());
    assert!(last.engine.shutdown(Duration::from_secs(30)).drained);
    assert_eq!(last.cluster.why_left(), None);
}

/// Goal: of two runs of one name only one has pods. Method: a second one while the first is active.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn two_runs_of_one_name() {
    let first = Framework::start(config("twice").with_at_end(PodsAtEnd::Delete), 10);
    first.launch(1);
    super::wait_state(&first, "etl-10-0.0", offermill::TaskState::Running);
    let second = config("twice").with_connect_timeout(Duration::from_millis(500));
    let second = Framework::start(second, 11);
    second.launch(1);
    let refused = second.wait_event("a refusal", |event| matches!(event, Event::Refused { .. }));
    assert!(format!("{refused:?}").contains("active"), "{refused:?}");
    second.cluster.stop();
    assert_eq!(list("default", "twice").len(), 1);
    assert!(second.states("etl-11-0.0").is_empty());
}
