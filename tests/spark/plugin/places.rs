//! Where executors run: at the data, and with logs that can be read.

use std::time::Duration;

use super::SPARK_4;
use super::application::Application;
use crate::real::cluster::{RealCluster, Setup};
use crate::real::jobs::mesos;

/// Settings on Mesos, whose agents start executors as root here.
const ON_MESOS: [&str; 2] =
    ["spark.offermill.mesos.user=root", "spark.offermill.mesos.secretOverHttp=true"];

/// Goal: executors start at the hosts of the data, which Spark says with the number of executors. Method: two agents of
/// a real Mesos with host names of their own; a job whose data is on one of them, then one whose data is on the other,
/// each on an executor of its own; a wait that never ends.
#[test]
#[ignore = "needs Spark"]
fn executors_start_where_the_data_is() {
    let cluster = mesos();
    let dynamic = [
        "spark.dynamicAllocation.enabled=true",
        "spark.dynamicAllocation.executorIdleTimeout=1s",
        "spark.locality.wait=1h",
    ];
    let settings = [&ON_MESOS[..], &dynamic].concat();
    let hosts = ["127.0.11.1", "127.0.10.1"];
    let scene = [&["places"], &hosts[..]].concat();
    let mut application = Application::start(SPARK_4, &cluster.url(), &settings, &scene);
    for host in hosts {
        assert_eq!(application.line("HOST "), host);
    }
    assert_eq!(application.line("RESULT "), "ok");
    assert_eq!(application.end(), Some(0));
    application.assert_deserted(Duration::from_secs(5));
    cluster.assert_deserted();
}

/// Goal: the links to logs in Spark's page lead to the agents of Mesos. Method: an agent at the address that is its
/// host name, and the links that Spark's REST interface says.
#[test]
#[ignore = "needs Spark"]
fn links_lead_to_agents_of_mesos() {
    let cluster = RealCluster::start(Setup {
        agents: 1,
        hostnames: "127.0.0.1",
        resources: "cpus:2;mem:2048;disk:20000;ports:[31000-32000]",
        ..Setup::default()
    });
    let port = format!("spark.offermill.mesos.agentPort={}", cluster.port() + 1);
    let own = ["spark.executor.instances=1", "spark.ui.enabled=true", "spark.ui.port=0", &port];
    let settings = [&ON_MESOS[..], &own].concat();
    let mut application = Application::start(SPARK_4, &cluster.url(), &settings, &["links"]);
    // Two files of one executor, and what it wrote to standard error.
    assert_eq!(application.line("LOGS "), "2 1");
    assert_eq!(application.end(), Some(0));
    application.assert_deserted(Duration::from_secs(5));
    cluster.assert_deserted();
}
