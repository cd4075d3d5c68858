//! Constraints that node affinities can't express: they are checked on the labels of nodes.

use std::time::Duration;

use offermill::cluster::kubernetes::KubernetesConfig;
use offermill::config::ExecutorCores;
use offermill::engine::cluster_manager::{AvoidedAgent, Call, ClusterManager, Event};
use offermill::resources::MilliCpus;
use offermill::{Config, Constraint, TaskState};
use serde_json::Value;

use crate::eventually::eventually;
use crate::fake::{ApiServer, Watches};
use crate::framework::{Framework, PATIENCE, config};

/// The settings of a run whose racks begin with `r`.
pub(crate) fn on_racks(server: &ApiServer) -> KubernetesConfig {
    let cores = ExecutorCores::Fixed(MilliCpus::from_cores(1));
    let constraint = Constraint::parse("expr:: rack like r*").unwrap();
    let kernel = Config::builder().executor_cores(cores).constraint(constraint).build().unwrap();
    config(&server.url).for_kernel(&kernel).unwrap()
}

/// The nodes that a pod's manifest names.
pub(crate) fn named(manifest: &Value) -> Vec<String> {
    let affinity = &manifest["spec"]["affinity"]["nodeAffinity"];
    let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array().unwrap().iter();
    let name = |term: &Value| term["matchFields"][0]["values"][0].as_str().unwrap().to_owned();
    terms.map(name).collect()
}

/// Launches an executor, and returns the nodes that its pod names.
fn next_named(server: &ApiServer, framework: &Framework) -> Vec<String> {
    let before = server.state().created.len();
    framework.launch(1);
    eventually(PATIENCE, "a pod", || {
        let created = server.state().created.get(before).cloned();
        created.map(|manifest| named(&manifest)).ok_or_else(String::new)
    })
}

/// Goal: pods name the nodes that meet the constraint now. Method: nodes that come, are labelled, lose their labels and
/// go; also while the versions of the watch are forgotten.
#[test]
fn nodes_come_and_go() {
    let server = ApiServer::start();
    server.label_node("a", &[("rack", "r1")]);
    server.label_node("b", &[("rack", "x")]);
    server.label_node("c", &[]);
    let framework = Framework::start(on_racks(&server), 1);
    assert_eq!(next_named(&server, &framework), ["a"]);
    let becomes = |expected: &[&str]| {
        eventually(PATIENCE, "the nodes are these", || {
            let named = next_named(&server, &framework);
            if named == expected { Ok(()) } else { Err(format!("{named:?}")) }
        });
    };
    server.label_node("b", &[("rack", "r2")]);
    becomes(&["a", "b"]);
    server.label_node("a", &[]);
    becomes(&["b"]);
    server.label_node("d", &[("rack", "r")]);
    server.compact();
    server.remove_node("b");
    server.end_watches();
    becomes(&["d"]);
}

/// Goal: watches of nodes that show nothing aren't believed for ever. Method: silent ones that end, or break, one after
/// another, while a node comes: it is found by a list.
#[test]
fn watches_of_nodes_show_nothing() {
    for is_broken in [false, true] {
        let server = ApiServer::start();
        server.label_node("a", &[("rack", "r1")]);
        let framework = Framework::start(on_racks(&server), 1);
        assert_eq!(next_named(&server, &framework), ["a"]);
        server.state().watches = Watches::Silent;
        server.state().cuts_lines = is_broken;
        server.label_node("b", &[("rack", "r2")]);
        let (watch, list) = ("WATCH /api/v1/nodes", "LIST /api/v1/nodes");
        let before = server.count(list);
        eventually(PATIENCE, "nodes are listed again", || {
            let watches = server.count(watch);
            server.end_watches();
            eventually(PATIENCE, "another watch, or a list", || {
                let is_more = server.count(watch) > watches || server.count(list) > before;
                if is_more { Ok(()) } else { Err(String::new()) }
            });
            if server.count(list) > before { Ok(()) } else { Err(format!("{watches} watches")) }
        });
        eventually(PATIENCE, "the nodes are both", || {
            let named = next_named(&server, &framework);
            if named == ["a", "b"] { Ok(()) } else { Err(format!("{named:?}")) }
        });
    }
}

/// Goal: while no node meets the constraint no pod is created, that is said once, and the first node that does ends it.
/// Method: a node without the label, which gets it.
#[test]
fn no_node_meets_the_constraint() {
    let server = ApiServer::start();
    server.label_node("a", &[]);
    let framework = Framework::start(on_racks(&server), 1);
    framework.launch(2);
    let is_said =
        |event: &Event| matches!(event, Event::CallFailed { why } if why.contains("no node meets"));
    framework.wait_event("why there is none", is_said);
    server.label_node("b", &[]);
    server.remove_node("b");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(framework.events().iter().filter(|event| is_said(event)).count(), 1);
    assert_eq!(server.count("POST /api/v1/namespaces/jobs/pods"), 0);
    server.label_node("a", &[("rack", "r1")]);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    framework.wait_state("etl-1-1.0", TaskState::Running);
}

/// Goal: a pod that waits for a node is made anew when another node meets the constraint, and one that has a node
/// isn't; what doesn't concern it makes none anew. Method: one pod that runs and one that waits; a node that doesn't
/// meet the constraint, one that is gone, and one that meets it.
#[test]
fn pods_that_wait_are_made_anew() {
    let server = ApiServer::start();
    server.label_node("a", &[("rack", "r1")]);
    server.label_node("c", &[("rack", "r3")]);
    let framework = Framework::start(on_racks(&server), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.state().is_full = true;
    framework.launch(1);
    framework.wait_state("etl-1-1.0", TaskState::Staging);
    server.label_node("b", &[("rack", "x")]);
    server.remove_node("c");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(server.count("DELETE"), 0);
    server.label_node("b", &[("rack", "r2")]);
    framework.wait_state("etl-1-1.0", TaskState::Gone);
    let message = framework.updates("etl-1-1.0").pop().unwrap().message;
    assert!(message.ends_with("it is made anew"), "{message}");
    assert_eq!(next_named(&server, &framework), ["a", "b"]);
    assert_eq!(framework.states("etl-1-0.0").last(), Some(&TaskState::Running));
    // Nodes that come again and again don't make pods anew each time.
    let before = server.count("DELETE");
    for round in 0..20 {
        let name = format!("n{round}");
        server.label_node(&name, &[("rack", "r4")]);
        server.remove_node(&name);
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!(server.count("DELETE") - before <= 1, "{}", server.count("DELETE") - before);
}

/// Goal: a pod that waits is made anew although the scheduler has looked at it meanwhile, as it does when a node comes;
/// one that names the node already isn't. Method: the pod's version changes just before it is deleted; then a node
/// loses the label and gets it again.
#[test]
fn pods_that_the_scheduler_looks_at_are_made_anew() {
    let server = ApiServer::start();
    server.label_node("a", &[("rack", "r1")]);
    let framework = Framework::start(on_racks(&server), 1);
    server.state().is_full = true;
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Staging);
    server.state().schedules_again = true;
    server.label_node("b", &[("rack", "r2")]);
    framework.wait_state("etl-1-0.0", TaskState::Gone);
    assert_eq!(next_named(&server, &framework), ["a", "b"]);
    assert_eq!(server.count("DELETE"), 2);
    server.label_node("b", &[]);
    server.label_node("b", &[("rack", "r2")]);
    // Longer than the pause between two replacements.
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(server.count("DELETE"), 2);
}

/// A run with the constraint, a node `a` that meets it, and a pod that waits.
pub(crate) fn waiting_pod(server: &ApiServer, config: KubernetesConfig) -> Framework {
    server.label_node("a", &[("rack", "r1")]);
    server.state().is_full = true;
    let framework = Framework::start(config, 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Staging);
    framework
}

/// The requests of this kind when they are this many, which they stay for a while.
#[track_caller]
pub(crate) fn stays(server: &ApiServer, kind: &str, count: usize) {
    eventually(PATIENCE, kind, || {
        let now = server.count(kind);
        if now == count { Ok(()) } else { Err(format!("{now}")) }
    });
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(server.count(kind), count, "{kind}");
}

/// Goal: a pod that gets a node and ends while it is about to be made anew is an end like any other: it is deleted once
/// if its end was acknowledged, labelled if ended pods stay, and otherwise left alone. Method: the deletion is held in
/// the server, the pod runs and ends, and the deletion is refused then.
#[test]
fn a_pod_that_ends_while_it_is_to_be_made_anew() {
    for (is_acknowledged, stays_after) in [(true, false), (true, true), (false, false)] {
        let server = ApiServer::start();
        let mut config = on_racks(&server);
        config.keeps_ended = stays_after;
        let framework = waiting_pod(&server, config);
        if !is_acknowledged {
            framework.withhold_acknowledgements();
        }
        server.state().holds_conditional = true;
        server.label_node("b", &[("rack", "r2")]);
        let kind = "DELETE /api/v1/namespaces/jobs/pods/";
        eventually(PATIENCE, "a deletion", || {
            if server.count(kind) == 1 { Ok(()) } else { Err(String::new()) }
        });
        server.place("etl-1-0-0", "a");
        framework.wait_state("etl-1-0.0", TaskState::Running);
        server.exit("etl-1-0-0", 0);
        framework.wait_state("etl-1-0.0", TaskState::Finished);
        server.release_conditional();
        let deletions = if is_acknowledged && !stays_after { 2 } else { 1 };
        stays(&server, kind, deletions);
        assert_eq!(server.count("PATCH"), usize::from(stays_after));
        assert_eq!(server.state().pods.contains_key("etl-1-0-0"), deletions == 1);
        assert_eq!(framework.states("etl-1-0.0").last(), Some(&TaskState::Finished));
    }
}

/// Goal: a pod that waits is made anew when the exclusion of a node has ended that it doesn't name, but not when
/// another node is excluded. Method: with a constraint that is checked on labels, and without a constraint.
#[test]
fn an_exclusion_ends_while_a_pod_waits() {
    for is_on_racks in [true, false] {
        let server = ApiServer::start();
        server.label_node("b", &[("rack", "r2")]);
        let config = if is_on_racks { on_racks(&server) } else { config(&server.url) };
        let avoid = |framework: &Framework, names: &[&str]| {
            let avoided: Vec<_> = names.iter().map(|it| AvoidedAgent::new(it, None)).collect();
            framework.cluster.call(Call::Avoid(&avoided)).unwrap();
        };
        let framework = Framework::start(config, 1);
        framework.wait_epoch(1);
        avoid(&framework, &["b"]);
        server.label_node("a", &[("rack", "r1")]);
        server.state().is_full = true;
        framework.launch(1);
        framework.wait_state("etl-1-0.0", TaskState::Staging);
        avoid(&framework, &["a", "b"]);
        stays(&server, "DELETE", 0);
        avoid(&framework, &[]);
        framework.wait_state("etl-1-0.0", TaskState::Gone);
        framework.launch(1);
        framework.wait_state("etl-1-1.0", TaskState::Staging);
        let affinity = server.state().created[1]["spec"]["affinity"].to_string();
        assert!(!affinity.contains("NotIn"), "{affinity}");
        stays(&server, "DELETE", 1);
    }
}

/// Goal: a pod that waits and was created by a former run is made anew if this run would give it other nodes, and
/// otherwise adopted as it is. Method: a run that is killed; the next one finds the same nodes or one more, or has
/// another constraint.
#[test]
fn a_waiting_pod_of_a_former_run() {
    let of_zone = |server: &ApiServer, zone: &str| {
        let cores = ExecutorCores::Fixed(MilliCpus::from_cores(1));
        let constraint = Constraint::parse(&format!("zone:{zone}")).unwrap();
        let kernel = Config::builder().executor_cores(cores).constraint(constraint);
        config(&server.url).for_kernel(&kernel.build().unwrap()).unwrap()
    };
    let server = ApiServer::start();
    let first = waiting_pod(&server, on_racks(&server));
    let abandon = |framework: Framework, server: &ApiServer| {
        server.state().leases.clear();
        framework.wait_event("a refusal", |event| matches!(event, Event::Refused { .. }));
    };
    abandon(first, &server);
    let second = Framework::start(on_racks(&server), 2);
    second.wait_event("adopted", |event| matches!(event, Event::Recovered { .. }));
    stays(&server, "DELETE", 0);
    server.label_node("b", &[("rack", "r2")]);
    second.wait_state("etl-1-0.0", TaskState::Gone);
    second.launch(1);
    second.wait_state("etl-2-0.0", TaskState::Staging);
    abandon(second, &server);
    server.remove_node("b");
    let third = Framework::start(on_racks(&server), 3);
    third.wait_state("etl-2-0.0", TaskState::Gone);
    third.launch(1);
    third.wait_state("etl-3-0.0", TaskState::Staging);
    abandon(third, &server);
    let fourth = Framework::start(of_zone(&server, "eu"), 4);
    fourth.wait_state("etl-3-0.0", TaskState::Gone);
    stays(&server, "DELETE", 3);
}

/// Goal: when the constraint becomes another, pods that wait are made anew if they could get a node that doesn't meet
/// it, or lack one that does. Method: a constraint that is checked on labels becomes narrower, then one that affinities
/// express, which becomes another.
#[test]
fn the_constraint_changes_while_a_pod_waits() {
    let server = ApiServer::start();
    server.label_node("b", &[("rack", "r2")]);
    let framework = waiting_pod(&server, on_racks(&server));
    let mut executor = 0;
    for text in ["expr:: rack like r1*", "zone:eu", "zone:us"] {
        let cores = ExecutorCores::Fixed(MilliCpus::from_cores(1));
        let constraint = Constraint::parse(text).unwrap();
        let kernel = Config::builder().executor_cores(cores).constraint(constraint);
        framework.cluster.reconfigure(&kernel.build().unwrap()).unwrap();
        framework.wait_state(&format!("etl-1-{executor}.0"), TaskState::Gone);
        framework.launch(1);
        executor += 1;
        framework.wait_state(&format!("etl-1-{executor}.0"), TaskState::Staging);
    }
    let last = server.state().created.last().unwrap()["spec"]["affinity"].to_string();
    assert!(last.contains("\"us\"") && !last.contains("metadata.name"), "{last}");
}

/// Goal: without the right to read nodes a run doesn't begin, and says which right is missing; it needs none for a
/// constraint that affinities express. Method: each of the two rights denied.
#[test]
fn rights_to_read_nodes_are_needed() {
    for right in ["list nodes", "watch nodes"] {
        let server = ApiServer::start();
        server.state().denied_rights = vec![right];
        let framework = Framework::start(on_racks(&server), 1);
        framework.launch(1);
        let refused =
            framework.wait_event("a refusal", |event| matches!(event, Event::Refused { .. }));
        let Event::Refused { why } = refused else { unreachable!() };
        let missing = format!("no right to {right} in the cluster: the constraint has patterns");
        assert!(why.contains(&missing), "{why}");
        assert_eq!(server.count("POST /api/v1/namespaces/jobs/pods"), 0);
        assert_eq!(server.count("LIST"), 0);
        let exact = Framework::start(config(&server.url), 2);
        exact.launch(1);
        exact.wait_state("etl-2-0.0", TaskState::Running);
        assert_eq!(server.count("LIST /api/v1/nodes"), 0);
    }
}

/// Goal: what is shown of nodes after the right was withdrawn goes on to count, and the lack is said. Method: requests
/// for nodes that fail after the first list.
#[test]
fn the_right_to_read_nodes_is_withdrawn() {
    let server = ApiServer::start();
    server.label_node("a", &[("rack", "r1")]);
    let framework = Framework::start(on_racks(&server), 1);
    framework.launch(1);
    framework.wait_state("etl-1-0.0", TaskState::Running);
    server.state().failing =
        vec![("GET /api/v1/nodes", 403), ("LIST /api/v1/nodes", 403), ("WATCH /api/v1/nodes", 403)];
    server.end_watches();
    framework.wait_event(
        "what can't be read",
        |event| matches!(event, Event::CallFailed { why } if why.starts_with("labels of nodes: ")),
    );
    assert_eq!(next_named(&server, &framework), ["a"]);
}
