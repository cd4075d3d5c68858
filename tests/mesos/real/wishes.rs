//! Requests of a framework to a master: roles, reserved resources, agents that meet a constraint, a port, JSON.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use offermill::ReasonKind;
use offermill::cluster::mesos::Encoding;

use super::cluster::{RealCluster, Setup};
use super::{SLEEP, accounts, eventually, mesos};
use crate::framework::{Framework, small_executors};

/// Goal: the kernel works equally with both encodings. Method: nine executors over JSON, a crash of the master, and the
/// shutdown.
#[test]
#[ignore = "needs a real Mesos"]
fn json_will_do() {
    let cluster = RealCluster::start(Setup::default());
    let mut settings = mesos(cluster.port());
    settings.encoding = Encoding::Json;
    let config = small_executors(9).build().unwrap();
    let framework = Framework::start(settings, config, SLEEP).unwrap();
    let before = accounts::agree(&cluster, &framework, 9);
    cluster.kill_master();
    cluster.start_master();
    cluster.wait_for_agents();
    assert_eq!(accounts::agree(&cluster, &framework, 9), before);
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}

/// Goal: resources reserved for a role, and unreserved ones, are used by a framework of that role; no other framework
/// gets reserved resources. Method: agents with four cores for `etl` and two for all: a framework of `etl` runs twelve
/// executors on two agents, and one without a role runs four.
#[test]
#[ignore = "needs a real Mesos"]
fn reserved_resources_are_used_by_their_role() {
    let resources = "cpus(etl):4;mem(etl):1024;cpus:2;mem:512;disk:100";
    let cluster = RealCluster::start(Setup { agents: 2, resources, ..Setup::default() });
    for (role, executors) in [("etl", 12), ("*", 4)] {
        let mut settings = mesos(cluster.port());
        settings.roles = vec![role.to_owned()];
        let config = small_executors(20).build().unwrap();
        let framework = Framework::start(settings, config, SLEEP).unwrap();
        accounts::agree(&cluster, &framework, executors);
        // Leaves time for further executors, of which there must be none.
        sleep(Duration::from_secs(3));
        accounts::agree(&cluster, &framework, executors);
        assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    }
    cluster.assert_deserted();
}

/// Goal: a framework of two roles uses the resources of both, and no ACCEPT mixes them. Method: agents whose resources
/// are reserved for one role or the other.
#[test]
#[ignore = "needs a real Mesos"]
fn two_roles() {
    let resources = "cpus(etl):2;mem(etl):512;cpus(web):3;mem(web):512;disk:100";
    let cluster = RealCluster::start(Setup { agents: 2, resources, ..Setup::default() });
    let mut settings = mesos(cluster.port());
    settings.roles = vec!["etl".to_owned(), "web".to_owned()];
    let config = small_executors(20).build().unwrap();
    let framework = Framework::start(settings, config, SLEEP).unwrap();
    accounts::agree(&cluster, &framework, 10);
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}

/// Goal: the master doesn't offer agents that the constraint excludes, and offers all others. Method: five agents, of
/// which three are in allowed zones; the kernel never sees the others, and all three get executors. The master shows
/// the constraint.
#[test]
#[ignore = "needs a real Mesos"]
fn constraints_are_the_masters_too() {
    let attributes =
        "zone:east;rack:r%d|zone:west;rack:r%d|zone:north|zone:south;rack:r%d|zone:east";
    let cluster = RealCluster::start(Setup { agents: 5, attributes, ..Setup::default() });
    let constraint = "zone:east,west,south;rack:".parse().unwrap();
    let config = small_executors(6).constraint(constraint).build().unwrap();
    let framework = Framework::start(mesos(cluster.port()), config, SLEEP).unwrap();
    let tasks = accounts::agree(&cluster, &framework, 6);
    let agents: BTreeSet<&str> = tasks.values().map(|task| task.agent_id.as_str()).collect();
    assert_eq!(agents.len(), 3, "{tasks:#?}");
    let state = cluster.master_state();
    let shown = &state.framework(&framework.id()).unwrap()["offer_constraints"];
    assert!(shown.to_string().contains("zone"), "the master has {shown}");
    framework.kernel.set_executor_limit(Some(20)).unwrap();
    accounts::agree(&cluster, &framework, 20);
    let unmet = framework.kernel.offer_counts().declined(ReasonKind::ConstraintUnmet);
    assert_eq!(unmet, 0, "offers that needn't have come");
    assert_eq!(framework.kernel.agents_known(), 3);
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
}

/// Goal: a fixed port is taken once per agent, and passed to the executor. Method: three agents, more executors wanted;
/// three run.
#[test]
#[ignore = "needs a real Mesos"]
fn a_fixed_port_is_taken_once_an_agent() {
    let cluster = RealCluster::start(Setup::default());
    let config = small_executors(9).fixed_port(Some(31_007)).build().unwrap();
    let script = "echo port-$OFFERMILL_PORT; exec sleep 100000";
    let framework = Framework::start(mesos(cluster.port()), config, script).unwrap();
    accounts::agree(&cluster, &framework, 3);
    sleep(Duration::from_secs(3));
    accounts::agree(&cluster, &framework, 3);
    eventually(Duration::from_secs(5), "executors that know their port", || {
        let told = cluster.outputs().iter().filter(|text| text.trim() == "port-31007").count();
        if told == 3 { Ok(()) } else { Err(format!("{told} of 3 do")) }
    });
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
}

/// Goal: a framework that needs nothing more gets no offers, and gets offers again when it wants more. Method: six
/// executors; then few offers arrive during five allocation intervals; then twelve are wanted, and run.
#[test]
#[ignore = "needs a real Mesos"]
fn offers_come_when_they_are_wanted() {
    let cluster = RealCluster::start(Setup::default());
    let config = small_executors(6).build().unwrap();
    let framework = Framework::start(mesos(cluster.port()), config, SLEEP).unwrap();
    accounts::agree(&cluster, &framework, 6);
    sleep(Duration::from_secs(2));
    let before = framework.kernel.offer_counts().offers;
    sleep(Duration::from_secs(5));
    let while_content = framework.kernel.offer_counts().offers - before;
    assert!(while_content <= 3, "{while_content} offers while none was wanted");
    framework.kernel.set_executor_limit(Some(12)).unwrap();
    accounts::agree(&cluster, &framework, 12);
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
}
