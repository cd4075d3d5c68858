//! Actions of a cluster's operators: draining agents, planning maintenance, requiring credentials.

use std::time::Duration;

use offermill::cluster::mesos::{Credential, Secret};
use offermill::engine::Notice;
use serde_json::{Value, json};

use super::cluster::{RealCluster, Setup};
use super::{SLEEP, accounts, eventually, mesos, sleepers};
use crate::framework::{Framework, small_executors};
use crate::http::post_json;

/// Goal: executors of a drained agent are replaced on others, and none of that counts as a failure. Method:
/// DRAIN_AGENT; kernel and master agree on nine executors on the other two agents, and no agent is excluded.
#[test]
#[ignore = "needs a real Mesos"]
fn executors_move_off_an_agent_that_is_drained() {
    let cluster = RealCluster::start(Setup::default());
    let config = small_executors(9).exclusion(Some(Default::default())).build().unwrap();
    let framework = Framework::start(mesos(cluster.port()), config, SLEEP).unwrap();
    accounts::agree(&cluster, &framework, 9);
    let drained = cluster.master_state().agent_id("agent-1").unwrap().to_owned();
    cluster.drain_agent(&drained);
    eventually(Duration::from_secs(30), "nobody on the drained agent", || {
        let tasks = accounts::agree(&cluster, &framework, 9);
        let there = tasks.values().filter(|task| task.agent_id == drained).count();
        if there == 0 { Ok(()) } else { Err(format!("{there} executors")) }
    });
    let excluded = |notice: &Notice| matches!(notice, Notice::AgentExcluded { .. });
    assert_eq!(framework.notices.count(excluded), 0, "{:#?}", framework.notices.all());
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
}

/// Goal: planned maintenance is answered, and executors continue to run. Method: a schedule that begins in an hour for
/// one agent, for which the master sends an inverse offer; its status shows that the framework has answered; the same
/// nine executors run.
#[test]
#[ignore = "needs a real Mesos"]
fn inverse_offers_are_answered() {
    let cluster = RealCluster::start(Setup::default());
    let framework = sleepers(&cluster, 9);
    let before = accounts::agree(&cluster, &framework, 9);
    let hour = Duration::from_secs(3600);
    let start = (std::time::UNIX_EPOCH.elapsed().unwrap() + hour).as_nanos() as u64;
    let machine = json!({"hostname": "agent-0", "ip": "127.0.0.1"});
    let schedule = json!({"windows": [{"machine_ids": [machine], "unavailability": {
        "start": {"nanoseconds": start}, "duration": {"nanoseconds": hour.as_nanos() as u64}}}]});
    let answer = post_json(cluster.port(), "/maintenance/schedule", &schedule).unwrap();
    assert!(answer.starts_with("HTTP/1.1 2"), "{schedule}: {answer}");
    eventually(Duration::from_secs(30), "an answer to the inverse offer", || {
        let status = cluster.look("/maintenance/status");
        let answers = &status["draining_machines"][0]["statuses"];
        let answered = |one: &Value| one["status"] == "ACCEPT" || one["status"] == "DECLINE";
        let answered = answers.as_array().is_some_and(|all| all.iter().any(answered));
        if answered { Ok(()) } else { Err(status.to_string()) }
    });
    assert_eq!(accounts::agree(&cluster, &framework, 9), before);
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
}

/// Goal: the framework authenticates if the master requires it, and reports if the master rejects it. Method: HTTP
/// authentication with one credential; the right secret runs three executors; a wrong secret, and no credential, get
/// 401.
#[test]
#[ignore = "needs a real Mesos"]
fn credentials() {
    let credential = Some(("etl", "right"));
    let cluster = RealCluster::start(Setup { credential, ..Setup::default() });
    let settings = |secret: Option<&str>| {
        let mut settings = mesos(cluster.port());
        settings.secret_over_plain_http = true;
        settings.credential = secret.map(|secret| Credential {
            principal: "etl".to_owned(),
            secret: Some(Secret::new(secret)),
        });
        settings.subscribe_timeout = Duration::from_secs(5);
        settings
    };
    let config = small_executors(3).build().unwrap();
    for secret in [Some("another"), None] {
        let why = match Framework::start(settings(secret), config.clone(), SLEEP) {
            Err(error) => error.to_string(),
            Ok(framework) => framework.notices.wait("refusal", |notice| match notice {
                Notice::Refused { why } => Some(why.clone()),
                _ => None,
            }),
        };
        assert!(why.contains("401") && !why.contains("another"), "{why}");
    }
    let framework = Framework::start(settings(Some("right")), config, SLEEP).unwrap();
    accounts::agree(&cluster, &framework, 3);
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
}
