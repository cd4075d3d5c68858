//! Pods that wait for a node while the nodes that they may get change.

use offermill::TaskState;
use offermill::engine::cluster_manager::{AvoidedAgent, Call, ClusterManager};

use crate::fake::ApiServer;
use crate::framework::Framework;
use crate::nodes::{on_racks, stays, waiting_pod};

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
