//! The same manager against a real control plane with hollow nodes. Ignored, because it needs one: `.ci/kubernetes`
//! starts it, and says where it is by `KUBERNETES_WORK_DIR`, and by `KUBERNETES_CTL` how its parts are harmed.

mod census;
mod drills;
mod expiry;
mod kills;
mod rights;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use offermill::TaskState;
use offermill::cluster::kubernetes::{
    ApiServer, KubernetesConfig, PodTemplate, PodVolume, PodVolumeSource, PodsAtEnd, RunCleaner,
    Secret,
};
use offermill::engine::cluster_manager::{AvoidedAgent, Call, ClusterManager, Event};
use offermill::{Config, Constraint};
use serde_json::Value;

use crate::eventually::eventually;
use crate::framework::{Framework, settings};

#[cfg(feature = "cli")]
mod program;

/// How long a step may take: a node is found to be silent after 8 s, and confirms deletions in rounds of 10 s; on a
/// machine that has much else to do it takes several rounds.
const PATIENCE: Duration = Duration::from_secs(120);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run .ci/kubernetes"))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(PathBuf::from(variable("KUBERNETES_WORK_DIR")).join(name)).unwrap()
}

fn url() -> String {
    let kubeconfig = String::from_utf8(file("kubeconfig")).unwrap();
    let (_, rest) = kubeconfig.split_once("server: \"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// The settings of a run with a name of its own, so that scenes don't meet.
fn config(name: &str) -> KubernetesConfig {
    let token = String::from_utf8(file("pki/token")).unwrap();
    let token = Some(Secret::new(token.trim()));
    let authorities = Some(file("pki/ca.crt"));
    let server =
        ApiServer::Url { url: url(), token, token_file: None, key_pair: None, authorities };
    let mut config = KubernetesConfig::new(name)
        .with_api_server(server)
        .with_namespace("default")
        .with_image("hollow/worker:1")
        .with_lease_duration(Duration::from_secs(4));
    config.request_timeout = Duration::from_secs(3);
    config.for_kernel(&settings(100)).unwrap()
}

/// Harms a part of the control plane, or a pod.
fn ctl(arguments: &[&str]) {
    let work_dir = variable("KUBERNETES_WORK_DIR");
    let done = Command::new(variable("KUBERNETES_CTL"))
        .args(["--work-dir", &work_dir])
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A request as an administrator, without a body.
fn curl_command(method: &str, path: &str) -> Command {
    let work_dir = variable("KUBERNETES_WORK_DIR");
    let token = String::from_utf8(file("pki/token")).unwrap();
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--cacert", &format!("{work_dir}/pki/ca.crt"), "-X", method])
        .args(["-H", &format!("Authorization: Bearer {}", token.trim())])
        .arg(format!("{}{path}", url()));
    curl
}

/// Sends a request as an administrator. Returns the answer's body.
fn curl(method: &str, path: &str, body: Option<&str>) -> String {
    let mut curl = curl_command(method, path);
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    curl.args(["-H", &format!("Content-Type: {kind}")]);
    if let Some(body) = body {
        curl.args(["-d", body]);
    }
    let output = curl.output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The pods of a run in this namespace, by an independent list.
fn list(namespace: &str, run: &str) -> Vec<Value> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=offermill%2Frun%3D{run}");
    let list: Value = serde_json::from_str(&curl("GET", &path, None)).unwrap_or_default();
    list["items"].as_array().cloned().unwrap_or_default()
}

/// The names of a run's pods.
fn pods(run: &str) -> Vec<String> {
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
    list("default", run).iter().map(name).collect()
}

#[track_caller]
fn wait_state(framework: &Framework, executor: &str, state: TaskState) {
    eventually(PATIENCE, &format!("{executor} is {state:?}"), || {
        let states = framework.states(executor);
        if states.last() == Some(&state) { Ok(()) } else { Err(format!("{states:?}")) }
    });
}

#[track_caller]
fn wait_pods(run: &str, count: usize) {
    eventually(PATIENCE, &format!("{count} pods of {run}"), || {
        let pods = pods(run);
        if pods.len() == count { Ok(()) } else { Err(format!("{pods:?}")) }
    });
}

/// Waits until all pods of a run are being deleted, and deletes them at once: a node takes a minute to delete a pod
/// whose image is missing.
#[track_caller]
fn finish_deletion(run: &str) {
    eventually(PATIENCE, &format!("the pods of {run} are being deleted"), || {
        let pods = list("default", run);
        let is_deleted = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
        if pods.iter().all(is_deleted) { Ok(()) } else { Err(format!("{pods:?}")) }
    });
    for name in pods(run) {
        let path = format!("/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0");
        curl("DELETE", &path, None);
    }
    wait_pods(run, 0);
}

/// Goal: executors live, fail, are killed and are lost on a real cluster as on the fake one. Method: one of each; then
/// the run's end, which leaves nothing.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn lives() {
    let framework = Framework::start(config("lives"), 1);
    framework.launch(5);
    for number in 0..5 {
        wait_state(&framework, &format!("etl-1-{number}.0"), TaskState::Running);
    }
    assert_eq!(
        framework.states("etl-1-4.0"),
        [TaskState::Staging, TaskState::Starting, TaskState::Running]
    );
    assert!(
        framework
            .updates("etl-1-0.0")
            .last()
            .unwrap()
            .agent_id
            .as_deref()
            .unwrap()
            .starts_with("node-")
    );
    ctl(&["exit", "etl-1-0-0", "3"]);
    wait_state(&framework, "etl-1-0.0", TaskState::Failed);
    ctl(&["exit", "etl-1-1-0", "0"]);
    wait_state(&framework, "etl-1-1.0", TaskState::Finished);
    framework.kill("etl-1-2.0");
    wait_state(&framework, "etl-1-2.0", TaskState::Killed);
    curl("DELETE", "/api/v1/namespaces/default/pods/etl-1-3-0", None);
    wait_state(&framework, "etl-1-3.0", TaskState::Gone);
    wait_pods("lives", 1);
    framework.cluster.stop();
    assert_eq!(framework.cluster.why_left(), None);
    wait_pods("lives", 0);
    let lease = curl("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/lives", None);
    assert!(lease.contains("NotFound"), "{lease}");
}

/// Goal: a pod is placed only where the constraint and the exclusions allow it; what can't be placed says why and can
/// be killed. Method: a constraint that one node meets, which is then excluded.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn placement() {
    let constraint = Constraint::parse("expr:: @hostname = node-1").unwrap();
    let kernel = Config::builder()
        .executor_cores(offermill::config::ExecutorCores::Fixed(
            offermill::resources::MilliCpus::from_cores(1),
        ))
        .constraint(constraint)
        .build()
        .unwrap();
    let framework = Framework::start(config("placement").for_kernel(&kernel).unwrap(), 2);
    framework.launch(3);
    for number in 0..3 {
        let executor = format!("etl-2-{number}.0");
        wait_state(&framework, &executor, TaskState::Running);
        let node = framework.updates(&executor).pop().unwrap().agent_id;
        assert_eq!(node.as_deref(), Some("node-1"));
    }
    framework.cluster.call(Call::Avoid(&[AvoidedAgent::new("node-1", None)])).unwrap();
    framework.launch(1);
    let waiting = framework.wait_event(
        "what it waits for",
        |event| matches!(event, Event::Waiting { why, .. } if why.contains("nodes are available")),
    );
    println!("{waiting:?}");
    framework.kill("etl-2-3.0");
    wait_state(&framework, "etl-2-3.0", TaskState::Killed);
}

/// Goal: after the API server was away, the manager knows what happened and goes on. Method: SIGKILL while pods are
/// being created; one pod ends meanwhile; then more are wanted.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn restart_of_the_api_server() {
    let framework = Framework::start(config("restart"), 3);
    framework.launch(3);
    wait_state(&framework, "etl-3-2.0", TaskState::Running);
    framework.launch(8);
    ctl(&["kill", "apiserver"]);
    std::thread::sleep(Duration::from_secs(1));
    ctl(&["start", "apiserver"]);
    for number in 0..11 {
        wait_state(&framework, &format!("etl-3-{number}.0"), TaskState::Running);
    }
    assert_eq!(pods("restart").len(), 11, "one pod for each executor");
    ctl(&["compact"]);
    ctl(&["exit", "etl-3-0-0", "3"]);
    wait_state(&framework, "etl-3-0.0", TaskState::Failed);
}

/// Goal: a next run adopts what a killed one has left, and kills nothing. Method: a run that leaves five executors, of
/// which one ends in between.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn adoption() {
    let first = Framework::start(config("adoption").with_at_end(PodsAtEnd::Leave), 4);
    first.launch(5);
    for number in 0..5 {
        wait_state(&first, &format!("etl-4-{number}.0"), TaskState::Running);
    }
    first.cluster.stop();
    ctl(&["exit", "etl-4-0-0", "3"]);
    let second = Framework::start(config("adoption"), 5);
    let recovered = second.wait_event("adopted", |event| matches!(event, Event::Recovered { .. }));
    let Event::Recovered { executors, .. } = recovered else { unreachable!() };
    assert_eq!(executors.len(), 5);
    wait_state(&second, "etl-4-0.0", TaskState::Failed);
    for number in 1..5 {
        wait_state(&second, &format!("etl-4-{number}.0"), TaskState::Running);
    }
    wait_pods("adoption", 4);
}

/// Goal: a real server takes what templates and volumes add; and pods that are to stay do, aren't adopted, and are
/// cleaned. Method: two executors, of which one fails; a next run; then a cleaner.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn pods_that_stay() {
    let template = "apiVersion: v1\nkind: Pod\nmetadata: {labels: {team: a}}\nspec:\n  containers:\n  - name: main\n\
                    \x20   securityContext: {runAsUser: 7}\n    env: [{name: A, value: b}]\n";
    let source = PodVolumeSource::EmptyDir { medium: None, size_limit: Some("1Gi".to_owned()) };
    let mut keeping = config("staying");
    keeping.keeps_ended = true;
    keeping.template = Some(PodTemplate::read(template, None).unwrap());
    keeping.volumes = vec![PodVolume::new("scratch", source, "/scratch")];
    let first = Framework::start(keeping.clone(), 12);
    first.launch(2);
    wait_state(&first, "etl-12-0.0", TaskState::Running);
    wait_state(&first, "etl-12-1.0", TaskState::Running);
    ctl(&["exit", "etl-12-0-0", "3"]);
    wait_state(&first, "etl-12-0.0", TaskState::Failed);
    eventually(PATIENCE, "it is labelled", || {
        let labels = list("default", "staying")[0]["metadata"]["labels"].clone();
        let is_labelled = labels["offermill/acknowledged"] == "true" && labels["team"] == "a";
        if is_labelled { Ok(()) } else { Err(labels.to_string()) }
    });
    first.cluster.stop();
    assert_eq!(first.cluster.why_left(), None);
    wait_pods("staying", 1);
    let second = Framework::start(keeping.clone(), 13);
    second.launch(1);
    wait_state(&second, "etl-13-0.0", TaskState::Running);
    let is_adoption = |event: &Event| matches!(event, Event::Recovered { .. });
    assert!(!second.events().iter().any(is_adoption));
    second.cluster.stop();
    wait_pods("staying", 1);
    let cleaner = RunCleaner::connect(&keeping).unwrap();
    assert_eq!(cleaner.pods(), ["etl-12-0-0"]);
    cleaner.delete(false).unwrap();
    wait_pods("staying", 0);
}

/// Goal: a node that is silent makes its executors unreachable, and they come back with it. Method: a node is paused
/// until it is missed, and resumed before its pods are evicted.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn silence_of_a_node() {
    let constraint = Constraint::parse("expr:: @hostname = node-0").unwrap();
    let kernel = Config::builder()
        .executor_cores(offermill::config::ExecutorCores::Fixed(
            offermill::resources::MilliCpus::from_cores(1),
        ))
        .constraint(constraint)
        .build()
        .unwrap();
    let mut config = config("silence").for_kernel(&kernel).unwrap();
    // Its pods stay bound to a silent node.
    config.tolerations = vec![offermill::cluster::kubernetes::Toleration::new("")];
    let framework = Framework::start(config, 6);
    framework.launch(1);
    wait_state(&framework, "etl-6-0.0", TaskState::Running);
    ctl(&["pause", "node-0"]);
    wait_state(&framework, "etl-6-0.0", TaskState::Unreachable);
    ctl(&["resume", "node-0"]);
    wait_state(&framework, "etl-6-0.0", TaskState::Running);
}

/// Goal: a quota is kept and used whole. Method: five executors are wanted, two pods are allowed; one is killed.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn quota() {
    curl("POST", "/api/v1/namespaces", Some(r#"{"metadata":{"name":"small"}}"#));
    let limit = r#"{"metadata":{"name":"q"},"spec":{"hard":{"pods":"2"}}}"#;
    curl("POST", "/api/v1/namespaces/small/resourcequotas", Some(limit));
    // The quota's controller counts before it admits.
    eventually(PATIENCE, "the quota is counted", || {
        let quota = curl("GET", "/api/v1/namespaces/small/resourcequotas/q", None);
        if quota.contains("\"used\"") { Ok(()) } else { Err(quota) }
    });
    let framework = Framework::start(config("quota").with_namespace("small"), 7);
    framework.launch(5);
    framework.wait_event(
        "a denial",
        |event| matches!(event, Event::CallFailed { why } if why.contains("exceeded quota")),
    );
    wait_state(&framework, "etl-7-0.0", TaskState::Running);
    wait_state(&framework, "etl-7-1.0", TaskState::Running);
    framework.kill("etl-7-0.0");
    wait_state(&framework, "etl-7-0.0", TaskState::Killed);
    let is_third = |event: &Event| {
        matches!(event, Event::Update(update) if update.state == TaskState::Running
            && !["etl-7-0.0", "etl-7-1.0"].contains(&update.executor.as_str()))
    };
    eventually(PATIENCE, "a third one", || {
        framework.events().iter().find(|event| is_third(event)).map(|_| ()).ok_or_else(String::new)
    });
}
