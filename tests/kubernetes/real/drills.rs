//! Whole frameworks, whose cluster is harmed. An independent watch counts the pods that are alive: never more than the
//! limit. After each harm the kernel's books are the same as an independent list.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use offermill::config::{ExclusionRule, ExecutorCores};
use offermill::engine::cluster_manager::{ClusterManager, Event};
use offermill::resources::MilliCpus;
use offermill::{Config, ConfigBuilder, Constraint, Phase, TaskState};
use serde_json::Value;

use super::census::Census;
use super::{PATIENCE, config, ctl, curl, finish_deletion, list, wait_state};
use crate::eventually::eventually;
use crate::framework::Framework;
use crate::run::Run;

/// A framework and the count of its pods.
struct Drill {
    name: &'static str,
    namespace: &'static str,
    limit: usize,
    run: Run,
    census: Census,
}

impl Drill {
    fn start(name: &'static str, limit: u32, settings: ConfigBuilder) -> Drill {
        Drill::start_in("default", name, limit, settings)
    }

    fn start_in(
        namespace: &'static str,
        name: &'static str,
        limit: u32,
        settings: ConfigBuilder,
    ) -> Drill {
        let census = Census::start(namespace, name);
        let settings = settings.executor_limit(Some(limit)).build().unwrap();
        let run = Run::start(config(name).with_namespace(namespace), settings, 1, false);
        let drill = Drill { name, namespace, limit: limit as usize, run, census };
        drill.wait_all();
        drill
    }

    /// Waits until all executors run, and the books are right. Returns the executors, each with its node.
    #[track_caller]
    fn wait_all(&self) -> Vec<(String, String)> {
        let running = self.run.wait_running(self.limit, PATIENCE);
        eventually(PATIENCE, "the kernel's books are right", || {
            let listed: BTreeSet<(String, String)> = self.alive().collect();
            let known = self.run.executors(Phase::Running).into_iter();
            let known: BTreeSet<_> = known.map(|(id, node)| (id.replace('.', "-"), node)).collect();
            if known == listed { Ok(()) } else { Err(format!("{known:?} {listed:?}")) }
        });
        running
    }

    /// The pods that haven't ended, each with its node.
    fn alive(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pods = list(self.namespace, self.name).into_iter();
        pods.filter(|pod| {
            pod["status"]["phase"] == "Running" || pod["status"]["phase"] == "Pending"
        })
        .map(move |pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"])))
    }

    /// Ends the run, which leaves nothing.
    #[track_caller]
    fn end(self) {
        let shutdown = self.run.engine.shutdown(Duration::from_secs(30));
        assert!(shutdown.drained, "{shutdown:?}");
        assert_eq!(self.run.cluster.why_left(), None);
        assert!(self.census.most() <= self.limit, "{} pods at a time", self.census.most());
        println!(
            "drill {}: {} pods in all, at most {} at a time",
            self.name,
            self.census.seen(),
            self.limit
        );
    }
}

fn one_core() -> ConfigBuilder {
    cores(1)
}

fn cores(cores: u64) -> ConfigBuilder {
    // What others do to executors is no failure; no agent is excluded.
    Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(cores)))
        .exclusion(None)
}

fn constraint(text: &str) -> Constraint {
    Constraint::parse(text).unwrap()
}

/// Goal: the loss of the API server and of etcd costs no executor and makes none too many, and creation goes on soon.
/// Method: more executors are wanted, and the server is killed in the middle of their creation, and started again; the
/// same with etcd, which hangs for longer than the lease is valid.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn loss_of_the_control_plane() {
    let mut drill = Drill::start("server", 2, one_core());
    drill.limit = 12;
    drill.run.engine.set_executor_limit(Some(12)).unwrap();
    std::thread::sleep(Duration::from_millis(60));
    ctl(&["kill", "apiserver"]);
    std::thread::sleep(Duration::from_millis(500));
    ctl(&["start", "apiserver"]);
    eventually(PATIENCE, "the server is back", || {
        if curl("GET", "/readyz", None) == "ok" { Ok(()) } else { Err(String::new()) }
    });
    let (back, before) = (Instant::now(), drill.census.seen());
    eventually(PATIENCE, "a new pod", || {
        if drill.census.seen() > before.min(11) { Ok(()) } else { Err(String::new()) }
    });
    println!("first new pod {:.1?} after the API server was back", back.elapsed());
    drill.wait_all();
    drill.limit = 20;
    drill.run.engine.set_executor_limit(Some(14)).unwrap();
    ctl(&["pause", "etcd"]);
    std::thread::sleep(Duration::from_secs(6));
    ctl(&["resume", "etcd"]);
    drill.limit = 14;
    drill.wait_all();
    drill.end();
}

/// Goal: creations whose outcome nobody knows for long make no executor too many. Method: more executors are wanted,
/// and etcd hangs for half a minute in the middle of their creation: requests end at their time, and the lease expires.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn etcd_hangs_during_creations() {
    let mut drill = Drill::start("etcd", 2, one_core());
    drill.limit = 12;
    drill.run.engine.set_executor_limit(Some(12)).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    ctl(&["pause", "etcd"]);
    std::thread::sleep(Duration::from_secs(30));
    let before = drill.census.seen();
    ctl(&["resume", "etcd"]);
    let back = Instant::now();
    eventually(PATIENCE, "a new pod", || {
        if drill.census.seen() > before.min(11) { Ok(()) } else { Err(String::new()) }
    });
    println!("{before} pods before, the next {:.1?} after etcd was back", back.elapsed());
    drill.wait_all();
    drill.end();
}

/// Goal: executors on a node that is no longer part of the cluster are lost and replaced, once the cluster has given up
/// their pods. Method: the node's object is deleted; later the node registers anew.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn deletion_of_a_node() {
    let drill = Drill::start("deleted", 4, one_core());
    let there = drill.alive().filter(|(_, node)| node == "node-1").count();
    assert!(there > 0, "none was on the node");
    curl("DELETE", "/api/v1/nodes/node-1", None);
    eventually(2 * PATIENCE, "all run elsewhere", || {
        let running = drill.run.executors(Phase::Running);
        let is_elsewhere = running.iter().all(|(_, node)| node == "node-0");
        if running.len() == 4 && is_elsewhere { Ok(()) } else { Err(format!("{running:?}")) }
    });
    drill.wait_all();
    ctl(&["kill", "node-1"]);
    ctl(&["start", "node-1"]);
    eventually(PATIENCE, "the node is ready", || {
        let node = curl("GET", "/api/v1/nodes/node-1", None);
        let read: Value = serde_json::from_str(&node).unwrap_or_default();
        let conditions = read["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_ready = |it: &Value| it["type"] == "Ready" && it["status"] == "True";
        if conditions.iter().any(is_ready) { Ok(()) } else { Err(node) }
    });
    drill.end();
}

/// Goal: an executor whose pod gets a node that was excluded meanwhile is killed, blames nobody, and is started
/// elsewhere. Method: the scheduler is silent while a pod is created and the only open node is excluded for a failure.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn a_node_is_excluded_meanwhile() {
    let cordon = |is_closed: bool| {
        let body = format!(r#"{{"spec":{{"unschedulable":{is_closed}}}}}"#);
        curl("PATCH", "/api/v1/nodes/node-0", Some(&body));
    };
    cordon(true);
    let rule = ExclusionRule { failures: 1, ..ExclusionRule::default() };
    let mut drill = Drill::start("excluded", 1, one_core().exclusion(Some(rule)));
    let first = drill.alive().next().unwrap();
    assert_eq!(first.1, "node-1");
    ctl(&["pause", "scheduler"]);
    drill.limit = 2;
    drill.run.engine.set_executor_limit(Some(2)).unwrap();
    let second = eventually(PATIENCE, "a pod without a node", || {
        let pod = drill.alive().find(|(_, node)| node.is_empty());
        pod.map(|(name, _)| name).ok_or_else(String::new)
    });
    ctl(&["exit", &first.0, "3"]);
    eventually(PATIENCE, "the node is excluded", || {
        let now = drill.run.engine.clock().now();
        let snapshot = drill.run.engine.kernel().snapshot(now);
        let is_excluded = snapshot.agents.iter().any(|it| it.excluded_until.is_some());
        if is_excluded { Ok(()) } else { Err(String::new()) }
    });
    ctl(&["resume", "scheduler"]);
    eventually(PATIENCE, "its pod is deleted", || {
        let pods: Vec<String> = drill.alive().map(|(name, _)| name).collect();
        if pods.contains(&second) { Err(format!("{pods:?}")) } else { Ok(()) }
    });
    cordon(false);
    for (_, node) in drill.wait_all() {
        assert_eq!(node, "node-0");
    }
    drill.end();
}

/// Goal: a name that a pod has which is about to go costs an executor, and no more. Method: another's pod of the first
/// executor's name, which a finalizer keeps although it is being deleted.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn a_name_is_taken_by_a_pod_that_goes() {
    let path = "/api/v1/namespaces/default/pods";
    let pod = r#"{"metadata":{"name":"etl-21-0-0","finalizers":["offermill.test/hold"]},
        "spec":{"containers":[{"name":"a","image":"a/b:1"}]}}"#;
    curl("POST", path, Some(pod));
    curl("DELETE", &format!("{path}/etl-21-0-0?gracePeriodSeconds=0"), None);
    let framework = Framework::start(config("terminating"), 21);
    framework.launch(1);
    wait_state(&framework, "etl-21-0.0", TaskState::Dropped);
    wait_state(&framework, "etl-21-1.0", TaskState::Running);
    curl("PATCH", &format!("{path}/etl-21-0-0"), Some(r#"{"metadata":{"finalizers":null}}"#));
    framework.cluster.stop();
    assert_eq!(framework.cluster.why_left(), None);
}

/// Goal: executors that are evicted are started elsewhere, and nothing goes back to the node. Method: a node is
/// cordoned, and its pods are evicted as a drain does it.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn drain_of_a_node() {
    let drill = Drill::start("drain", 4, one_core());
    let cordon = |is_closed: bool| {
        let body = format!(r#"{{"spec":{{"unschedulable":{is_closed}}}}}"#);
        curl("PATCH", "/api/v1/nodes/node-0", Some(&body));
    };
    cordon(true);
    let there: Vec<String> =
        drill.alive().filter(|(_, node)| node == "node-0").map(|(name, _)| name).collect();
    for name in &there {
        let body = format!(
            r#"{{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{{"name":"{name}"}}}}"#
        );
        curl("POST", &format!("/api/v1/namespaces/default/pods/{name}/eviction"), Some(&body));
    }
    eventually(PATIENCE, "all run elsewhere", || {
        let running = drill.run.executors(Phase::Running);
        let is_elsewhere = running.iter().all(|(_, node)| node == "node-1");
        if running.len() == 4 && is_elsewhere { Ok(()) } else { Err(format!("{running:?}")) }
    });
    drill.wait_all();
    cordon(false);
    assert!(!there.is_empty(), "none was on the node");
    drill.end();
}

/// Goal: an executor that gives way to others is replaced as soon as there is room. Method: two executors fill a node;
/// a pod of a higher priority takes the place of one, and is deleted.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn preemption() {
    let class = r#"{"metadata":{"name":"high"},"value":1000}"#;
    curl("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", Some(class));
    let settings = cores(3).constraint(constraint("expr:: @hostname = node-1"));
    let drill = Drill::start("preempted", 2, settings);
    let before: BTreeSet<(String, String)> = drill.alive().collect();
    let high = r#"{"metadata":{"name":"high"},"spec":{"priorityClassName":"high",
        "nodeSelector":{"kubernetes.io/hostname":"node-1"},"containers":[{"name":"a","image":"a/b:1",
        "resources":{"requests":{"cpu":"4"}}}]}}"#;
    curl("POST", "/api/v1/namespaces/default/pods", Some(high));
    eventually(PATIENCE, "one has ended", || {
        let now = drill.alive().filter(|pod| before.contains(pod)).count();
        if now == 1 { Ok(()) } else { Err(now.to_string()) }
    });
    curl("DELETE", "/api/v1/namespaces/default/pods/high?gracePeriodSeconds=0", None);
    drill.wait_all();
    drill.end();
}

/// Goal: executors of a node that comes back without their containers are lost, not doubled; those of a node that was
/// silent for so long that they were evicted end with it. Method: a node is killed and started anew; then it is paused
/// until its pods are to be deleted, and resumed.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn loss_of_a_node() {
    let settings = one_core().constraint(constraint("expr:: @hostname = node-1"));
    let drill = Drill::start("nodes", 3, settings);
    let replaced = |before: &[(String, String)]| {
        eventually(PATIENCE, "others in their place", || {
            let now = drill.run.executors(Phase::Running);
            let is_new = now.iter().all(|executor| !before.contains(executor));
            if now.len() == 3 && is_new { Ok(()) } else { Err(format!("{now:?}")) }
        });
        drill.wait_all()
    };
    let before = drill.wait_all();
    ctl(&["kill", "node-1"]);
    ctl(&["start", "node-1"]);
    let before = replaced(&before);
    ctl(&["pause", "node-1"]);
    eventually(PATIENCE, "they are evicted", || {
        let pods = list("default", "nodes");
        let is_evicted = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
        if pods.iter().all(is_evicted) { Ok(()) } else { Err(String::new()) }
    });
    assert_eq!(drill.run.executors(Phase::Unreachable).len(), 3);
    ctl(&["resume", "node-1"]);
    replaced(&before);
    drill.end();
}

/// Goal: a quota that is lowered below what is used ends nothing, and one that is raised is used. Method: three
/// executors; a quota of one; an executor ends; then three again.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn quota_lowered_and_raised() {
    curl("POST", "/api/v1/namespaces", Some(r#"{"metadata":{"name":"tight"}}"#));
    let body = |pods: u32| {
        format!(r#"{{"metadata":{{"name":"q"}},"spec":{{"hard":{{"pods":"{pods}"}}}}}}"#)
    };
    curl("POST", "/api/v1/namespaces/tight/resourcequotas", Some(&body(3)));
    let quota = "/api/v1/namespaces/tight/resourcequotas/q";
    let wait_counted = |pods: u32| {
        let pods = pods.to_string();
        eventually(PATIENCE, "the quota is counted", || {
            let read: Value = serde_json::from_str(&curl("GET", quota, None)).unwrap_or_default();
            let is_counted = read["status"]["hard"]["pods"] == *pods;
            if is_counted { Ok(()) } else { Err(read.to_string()) }
        });
    };
    wait_counted(3);
    let drill = Drill::start_in("tight", "tight", 3, one_core());
    curl("PATCH", quota, Some(&body(1)));
    wait_counted(1);
    let name = drill.alive().next().unwrap().0;
    ctl(&["exit", "-n", "tight", &name, "0"]);
    eventually(PATIENCE, "its pod is deleted", || {
        let pods = list("tight", "tight").len();
        if pods == 2 { Ok(()) } else { Err(pods.to_string()) }
    });
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(drill.alive().count(), 2, "the two others run on");
    curl("PATCH", quota, Some(&body(3)));
    drill.wait_all();
    drill.end();
}

/// Goal: an executor that finds no node runs as soon as there is one. Method: a constraint that no node meets, until
/// one is labelled.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn a_node_is_labelled() {
    let label = |value: &str| {
        let body = format!(r#"{{"metadata":{{"labels":{{"disk":{value}}}}}}}"#);
        curl("PATCH", "/api/v1/nodes/node-0", Some(&body));
    };
    let settings = one_core().constraint(constraint("disk:ssd")).executor_limit(Some(1));
    let run = Run::start(config("labelled"), settings.build().unwrap(), 1, false);
    eventually(PATIENCE, "a pod without a node", || {
        let pods = list("default", "labelled");
        let waits = pods.iter().any(|pod| pod["status"].to_string().contains("Unschedulable"));
        if waits { Ok(()) } else { Err(format!("{pods:?}")) }
    });
    label(r#""ssd""#);
    assert_eq!(run.wait_running(1, PATIENCE)[0].1, "node-0");
    label("null");
    assert!(run.engine.shutdown(Duration::from_secs(30)).drained);
}

/// Goal: executors run where nodes' labels meet a pattern, which affinities don't have, as soon as one does. Method: a
/// pattern that no node meets, so that no pod is created; one node is labelled, then the other in its place.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn a_pattern_of_labels() {
    let label = |node: &str, value: &str| {
        let body = format!(r#"{{"metadata":{{"labels":{{"tier":{value}}}}}}}"#);
        curl("PATCH", &format!("/api/v1/nodes/{node}"), Some(&body));
    };
    let settings = one_core().constraint(constraint("expr:: tier like gold* and tier != gold-0"));
    let settings = settings.executor_limit(Some(2)).build().unwrap();
    label("node-1", r#""gold-0""#);
    let run = Run::start(config("pattern"), settings, 1, false);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(list("default", "pattern").len(), 0);
    label("node-0", r#""gold-1""#);
    let running = run.wait_running(2, PATIENCE);
    assert!(running.iter().all(|(_, node)| node == "node-0"), "{running:?}");
    label("node-0", "null");
    label("node-1", r#""gold-2""#);
    for name in list("default", "pattern") {
        ctl(&["exit", name["metadata"]["name"].as_str().unwrap(), "0"]);
    }
    eventually(PATIENCE, "others run on the other node", || {
        let running = run.executors(Phase::Running);
        let is_there = running.iter().all(|(_, node)| node == "node-1");
        if running.len() == 2 && is_there { Ok(()) } else { Err(format!("{running:?}")) }
    });
    label("node-1", "null");
    assert!(run.engine.shutdown(Duration::from_secs(30)).drained);
}

/// Goal: an image that can't be pulled is said and given up. Method: one that the hollow nodes can't pull.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn an_image_is_missing() {
    let config = config("image").with_image("missing/worker:1");
    let framework = Framework::start(config.with_start_timeout(Duration::from_secs(2)), 8);
    framework.launch(1);
    framework.wait_event(
        "what it waits for",
        |event| matches!(event, Event::Waiting { why, .. } if why.contains("Image")),
    );
    wait_state(&framework, "etl-8-0.0", TaskState::Error);
    framework.cluster.stop();
    assert_eq!(framework.cluster.why_left(), None);
    finish_deletion("image");
}
