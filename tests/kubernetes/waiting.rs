//! Pods that wait for a node, and creations that are repeated, while the nodes that they may get change.

use std::time::Duration;

use offermill::TaskState;
use offermill::engine::cluster_manager::{AvoidedAgent, Call, ClusterManager};
use serde_json::json;

use crate::eventually::eventually;
use crate::fake::{ApiServer, Fault};
use crate::framework::{Framework, PATIENCE};
use crate::nodes::{named, on_racks, stays, waiting_pod};

const CREATIONS: &str = "POST /api/v1/namespaces/jobs/pods";

const DELETIONS: &str = "DELETE /api/v1/namespaces/jobs/pods/";

fn avoid(framework: &Framework, names: &[&str]) {
    let avoided: Vec<_> = names.iter().map(|it| AvoidedAgent::new(it, None)).collect();
    framework.cluster.call(Call::Avoid(&avoided)).unwrap();
}

/// Goal: a pod that waits can't get a node that meets the constraint no more, also if no node does; if all are excluded
/// it stays. Method: the only node is excluded, then loses the label, and gets it again.
#[test]
fn the_last_node_meets_the_constraint_no_more() {
    let server = ApiServer::start();
    let framework = waiting_pod(&server, on_racks(&server));
    avoid(&framework, &["a"]);
    stays(&server, DELETIONS, 0);
    avoid(&framework, &[]);
    server.label_node("a", &[]);
    framework.wait_state("etl-1-0.0", TaskState::Gone);
    framework.launch(1);
    stays(&server, CREATIONS, 1);
    server.label_node("a", &[("rack", "r1")]);
    framework.wait_state("etl-1-1.0", TaskState::Staging);
}

/// Goal: a creation that is repeated makes no pod that could get a node which it mustn't get any more. Method: the
/// server refuses creations for a while, in which a node is excluded or loses the label.
#[test]
fn a_creation_is_repeated_while_nodes_change() {
    for is_excluded in [true, false] {
        let server = ApiServer::start();
        server.label_node("a", &[("rack", "r1")]);
        server.label_node("b", &[("rack", "r2")]);
        server.state().always = Some(Fault::Refuse(429, json!({})));
        let framework = Framework::start(on_racks(&server), 1);
        framework.launch(1);
        let more_creations = || {
            let before = server.count(CREATIONS);
            eventually(PATIENCE, "another attempt", || {
                let now = server.count(CREATIONS);
                if now > before { Ok(()) } else { Err(format!("{now}")) }
            });
        };
        more_creations();
        if is_excluded {
            avoid(&framework, &["a"]);
        } else {
            server.label_node("a", &[]);
        }
        // The first may have begun before the change was seen.
        more_creations();
        more_creations();
        server.state().always = None;
        let created = eventually(PATIENCE, "a pod", || {
            server.state().created.first().cloned().ok_or_else(String::new)
        });
        assert_eq!(named(&created), ["b"]);
        stays(&server, DELETIONS, 0);
        assert_eq!(server.state().created.len(), 1);
    }
}

/// Goal: a pod for which the scheduler has preempted others, and which waits until they are gone, isn't made anew for
/// a node more, so that they didn't end for nothing; but it is if it could get a wrong one, or when the scheduler has
/// given that up. Method: a pod with a nominated node, of which each happens in turn.
#[test]
fn a_pod_for_which_others_were_preempted() {
    for is_given_up in [true, false] {
        let server = ApiServer::start();
        server.label_node("c", &[("rack", "r3")]);
        let framework = waiting_pod(&server, on_racks(&server));
        server.change("etl-1-0-0", |pod| pod["status"]["nominatedNodeName"] = "a".into());
        std::thread::sleep(Duration::from_secs(1));
        server.label_node("b", &[("rack", "r2")]);
        stays(&server, DELETIONS, 0);
        if is_given_up {
            server.change("etl-1-0-0", |pod| pod["status"]["nominatedNodeName"] = "".into());
        } else {
            server.label_node("c", &[]);
        }
        framework.wait_state("etl-1-0.0", TaskState::Gone);
        stays(&server, DELETIONS, 1);
    }
}
