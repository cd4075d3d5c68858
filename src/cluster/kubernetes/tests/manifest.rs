//! Manifests of pods.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cluster::kubernetes::adoption_annotations::{
    QUEUE_ANNOTATION, RESOURCES_ANNOTATION, read_queue, read_resources,
};
use crate::cluster::kubernetes::affinity::NodeSelection;
use crate::cluster::kubernetes::config::{KubernetesConfig, Toleration};
use crate::cluster::kubernetes::expansion::tests::expanded;
use crate::cluster::kubernetes::manifest::{PodContext, PodLaunch, pod};
use crate::cluster::kubernetes::node_choice::NodeChoice;
use crate::launch::{
    Command, CommandForm, Container, ContainerKind, SecretSource, Setup, Uri, Volume,
};
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};

fn build(config: &KubernetesConfig, launch: &PodLaunch) -> Result<Value, String> {
    let context = PodContext {
        config,
        nodes: &NodeChoice { selection: NodeSelection::Everywhere, avoided: Vec::new() },
        creator: "c1",
        lease: ("etl", "uid-1"),
    };
    pod(&context, "etl-1-0-0", launch)
}

fn launch(command: Command) -> PodLaunch {
    let resources = ExecutorResources {
        cores: MilliCpus::from_millis(1500),
        memory: Mebibytes::new(1408),
        gpus: Gpus::ZERO,
        port: None,
    };
    PodLaunch { executor: "etl-1-0.0".to_owned(), resources, command, queue: None }
}

fn worker() -> Command {
    Command::new(vec!["worker".to_owned(), "--on={{HOSTNAME}}".to_owned()])
}

fn config() -> KubernetesConfig {
    KubernetesConfig::new("etl").with_image("spark:3.5")
}

/// Goal: the manifest of a plain executor has what the design names, and nothing else. Method: the whole of it.
#[test]
fn a_plain_pod_is_small() {
    let command = worker().with_environment([("HOME".to_owned(), "$(X)".to_owned())]);
    let manifest = build(&config(), &launch(command)).unwrap();
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "etl-1-0-0",
            "labels": {
                "app.kubernetes.io/managed-by": "offermill",
                "offermill/run": "etl",
                "offermill/creator": "c1",
                "offermill/executor": "etl-1-0.0",
            },
            "annotations": { "offermill/resources": "1500 1408 0 " },
            "ownerReferences": [{
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "etl",
                "uid": "uid-1",
            }],
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "executor",
                "image": "spark:3.5",
                "command": ["worker", "--on=$(OFFERMILL_HOSTNAME)"],
                "env": [
                    field("OFFERMILL_AGENT_ID", "spec.nodeName"),
                    field("OFFERMILL_HOSTNAME", "spec.nodeName"),
                    field("OFFERMILL_POD_IP", "status.podIP"),
                    { "name": "HOME", "value": "$$(X)" },
                ],
                "resources": {
                    "requests": { "cpu": "1500m", "memory": "1408Mi" },
                    "limits": { "memory": "1408Mi" },
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }],
        },
    });
    assert_eq!(manifest, expected);
}

/// Goal: each setting reaches the pod. Method: all of them at once.
#[test]
fn settings_reach_the_pod() {
    let mut config = config();
    config.pull_policy = Some("IfNotPresent".to_owned());
    config.pull_secrets = vec!["registry".to_owned()];
    config.labels = [("team".to_owned(), "a".to_owned())].into();
    config.annotations = [("note".to_owned(), "any text".to_owned())].into();
    config.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    let mut toleration = Toleration::new("gpu");
    toleration.effect = Some("NoSchedule".to_owned());
    config.tolerations = vec![toleration];
    config.service_account = Some("executors".to_owned());
    config.scheduler = Some("volcano".to_owned());
    config.priority_class = Some("batch".to_owned());
    config.termination_grace = Some(Duration::from_millis(1500));
    let container = Container {
        volumes: vec![
            Volume { host: Some("/data".into()), container: "/mnt".into(), read_only: true },
            Volume { host: None, container: "/tmp".into(), read_only: false },
        ],
        ..Container::new(ContainerKind::Mesos { image: Some("own:1".into()), force_pull: true })
    };
    let setup = Setup {
        container: Some(container),
        secret_variables: vec![("PASS".into(), SecretSource::Reference("db/password".into()))],
        ..Setup::default()
    };
    let mut launch = launch(worker().with_setup(Arc::new(setup)).with_form(CommandForm::Shell));
    launch.resources.gpus = Gpus::new(2);
    launch.resources.port = Some(7077);
    let manifest = build(&config, &launch).unwrap();
    let (metadata, spec) = (&manifest["metadata"], &manifest["spec"]);
    assert_eq!(
        (&metadata["labels"]["team"], &metadata["annotations"]["note"]),
        (&json!("a"), &json!("any text"))
    );
    assert_eq!(spec["imagePullSecrets"], json!([{ "name": "registry" }]));
    assert_eq!(spec["nodeSelector"], json!({ "disk": "ssd" }));
    let tolerated = json!([{ "operator": "Exists", "key": "gpu", "effect": "NoSchedule" }]);
    assert_eq!(spec["tolerations"], tolerated);
    assert_eq!(spec["serviceAccountName"], "executors");
    assert_eq!(
        (&spec["schedulerName"], &spec["priorityClassName"]),
        (&json!("volcano"), &json!("batch"))
    );
    assert_eq!(spec["terminationGracePeriodSeconds"], 1);
    assert_eq!(
        spec["volumes"],
        json!([
            { "name": "volume-0", "hostPath": { "path": "/data" } },
            { "name": "volume-1", "emptyDir": {} },
        ])
    );
    let container = &spec["containers"][0];
    assert_eq!(
        (&container["image"], &container["imagePullPolicy"]),
        (&json!("own:1"), &json!("Always"))
    );
    assert_eq!(container["command"][0], "/bin/sh");
    assert_eq!(
        container["volumeMounts"][0],
        json!({ "name": "volume-0", "mountPath": "/mnt", "readOnly": true })
    );
    assert_eq!(container["ports"], json!([{ "containerPort": 7077, "hostPort": 7077 }]));
    assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"], "2");
    let secret = json!({ "name": "PASS", "valueFrom": { "secretKeyRef": { "name": "db", "key": "password" } } });
    assert_eq!(container["env"].as_array().unwrap().last(), Some(&secret));
}

/// Goal: secrets are mounted, and cores can be requested and limited apart from those that are counted. Method: one of
/// each.
#[test]
fn secrets_and_cores_reach_the_pod() {
    let mut config = config();
    config.cpu_request = Some(MilliCpus::from_millis(100));
    config.cpu_limit = Some(MilliCpus::from_cores(3));
    config.secret_mounts = [("db".to_owned(), "/etc/db".to_owned())].into();
    let manifest = build(&config, &launch(worker())).unwrap();
    let spec = &manifest["spec"];
    let container = &spec["containers"][0];
    let volumes = json!([{ "name": "secret-0", "secret": { "secretName": "db" } }]);
    assert_eq!(spec["volumes"], volumes);
    let mounts = json!([{ "name": "secret-0", "mountPath": "/etc/db", "readOnly": true }]);
    assert_eq!(container["volumeMounts"], mounts);
    assert_eq!(container["resources"]["requests"]["cpu"], "100m");
    assert_eq!(container["resources"]["limits"]["cpu"], "3");
}

/// Goal: a setup that pods can't have is refused, not left out. Method: each kind.
#[test]
fn what_pods_cant_have_is_refused() {
    let refused =
        |setup: Setup| build(&config(), &launch(worker().with_setup(Arc::new(setup)))).unwrap_err();
    let secret = |source| vec![("A".to_owned(), source)];
    let value = SecretSource::Value(crate::launch::Secret::new("hidden"));
    for (setup, expected) in [
        (Setup { uris: vec![Uri::new("hdfs:///a")], ..Setup::default() }, "URIs"),
        (Setup { user: Some("root".into()), ..Setup::default() }, "users"),
        (Setup { secret_variables: secret(value.clone()), ..Setup::default() }, "SECRET/KEY"),
        (Setup { secret_files: secret(value), ..Setup::default() }, "secret files"),
        (Setup { labels: vec![("a b".into(), None)], ..Setup::default() }, "label"),
    ] {
        let why = refused(setup);
        assert!(why.contains(expected) && !why.contains("hidden"), "{why}");
    }
    assert!(build(&config(), &launch(Command::default())).unwrap_err().contains("empty"));
    let without = KubernetesConfig::new("etl");
    assert!(build(&without, &launch(worker())).unwrap_err().contains("image"));
}

proptest! {
    /// Goal: a next run reads an executor's resources as they were. Method: random ones, through the annotation.
    #[test]
    fn resources_are_read_back(cores: u64, memory: u64, gpus: u32, port: Option<u16>) {
        let mut launch = launch(worker());
        launch.resources = ExecutorResources {
            cores: MilliCpus::from_millis(cores),
            memory: Mebibytes::new(memory),
            gpus: Gpus::new(gpus),
            port,
        };
        let manifest = build(&config(), &launch).unwrap();
        let text = manifest["metadata"]["annotations"][RESOURCES_ANNOTATION].as_str().unwrap();
        prop_assert_eq!(read_resources(text), Some(launch.resources));
    }

    /// Goal: a next run reads the name of an executor's queue as it was, and no other text as one. Method: random
    /// names; no text, and one that is longer than any name.
    #[test]
    fn queues_are_read_back(name in "[A-Za-z0-9._-]{1,64}") {
        let launch = PodLaunch { queue: Some(name.as_str().into()), ..launch(worker()) };
        let manifest = build(&config(), &launch).unwrap();
        let annotations = serde_json::from_value(manifest["metadata"]["annotations"].clone());
        let annotations = annotations.unwrap();
        prop_assert_eq!(read_queue(&annotations), Some(&*name));
        for odd in [String::new(), "q".repeat(65)] {
            let annotations = [(QUEUE_ANNOTATION.to_owned(), odd)].into();
            prop_assert_eq!(read_queue(&annotations), None);
        }
    }

    /// Goal: an annotation that others have changed is no panic. Method: random text.
    #[test]
    fn odd_annotations_are_none(text in "[0-9 a-]{0,20}") {
        let _read = read_resources(&text);
    }
}

fn texts() -> impl Strategy<Value = String> {
    "([$(){}A_é ]|\\$\\(A\\)|\\$\\$|OFFERMILL_HOSTNAME|.){0,12}"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Goal: an executor gets its arguments and its environment as they were given, in order. Method: random ones,
    /// through the manifest as JSON and through Kubernetes' expansion, with variables of all names defined.
    #[test]
    fn commands_come_out_as_they_went_in(
        argv in prop::collection::vec(texts(), 1..6),
        values in prop::collection::vec(texts(), 0..3),
    ) {
        let names = ["A", "HOME", "LANG"].map(str::to_owned);
        let environment: Vec<(String, String)> = names.into_iter().zip(values).collect();
        let command = Command::new(argv.clone()).with_environment(environment.clone());
        let manifest = build(&config(), &launch(command)).unwrap().to_string();
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        let container = &manifest["spec"]["containers"][0];
        let any = |_: &str| Some("wrong".to_owned());
        let arrived = |value: &Value| expanded(value.as_str().unwrap(), any);
        let got: Vec<String> = container["command"].as_array().unwrap().iter().map(arrived).collect();
        prop_assert_eq!(got, argv);
        let own = container["env"].as_array().unwrap().iter().filter(|it| !it["value"].is_null());
        let got: Vec<(String, String)> =
            own.map(|it| (it["name"].as_str().unwrap().to_owned(), arrived(&it["value"]))).collect();
        prop_assert_eq!(got, environment);
    }
}
