//! Templates of pods, and the pods that are made of them.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cluster::kubernetes::PodTemplate;

/// What the manager sets, by hand.
fn own() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "etl-1-0-0", "labels": { "team": "a", "offermill/run": "etl" } },
        "spec": {
            "restartPolicy": "Never",
            "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": ["x"] }, { "matchFields": ["y"] }],
            } } },
            "tolerations": [{ "key": "own" }],
            "volumes": [{ "name": "data", "emptyDir": {} }],
            "containers": [{
                "name": "executor", "image": "w:1", "command": ["worker"],
                "env": [{ "name": "A", "value": "own" }],
                "resources": { "requests": { "cpu": "1" }, "limits": { "memory": "1Mi" } },
                "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
            }],
        },
    })
}

const TEMPLATE: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  name: ignored
  labels: {team: b, zone: "1"}
  annotations: {note: text}
spec:
  restartPolicy: Always
  hostNetwork: true
  affinity:
    podAffinity: {kept: true}
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [a]}, {matchExpressions: [b], matchFields: [c]}]
  tolerations: [{key: template}]
  volumes: [{name: data, hostPath: {path: /}}, {name: more, emptyDir: {}}]
  containers:
  - name: proxy
    image: p:1
  - name: main
    image: other
    command: [none, at, all]
    args: [none]
    env: [{name: A, value: template}, {name: B, value: template}]
    resources: {requests: {cpu: 9, ephemeral-storage: 1Gi}, limits: {cpu: 2}}
    volumeMounts: [{name: data, mountPath: /again}]
    securityContext: {runAsUser: 7}
status: {phase: Running}
"#;

/// Goal: each row of the table of `pod_template.rs` holds. Method: a template with all of them.
#[test]
fn each_part_is_joined_as_documented() {
    let mut pod = own();
    PodTemplate::read(TEMPLATE, Some("main")).unwrap().apply(&mut pod);
    let metadata = json!({
        "name": "etl-1-0-0",
        "labels": { "team": "a", "zone": "1", "offermill/run": "etl" },
        "annotations": { "note": "text" },
    });
    assert_eq!(pod["metadata"], metadata);
    assert_eq!(pod.get("status"), None);
    let spec = &pod["spec"];
    assert_eq!((&spec["restartPolicy"], &spec["hostNetwork"]), (&json!("Never"), &json!(true)));
    let affinity = json!({
        "podAffinity": { "kept": true },
        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": ["a", "x"] },
            { "matchExpressions": ["a"], "matchFields": ["y"] },
            { "matchExpressions": ["b", "x"], "matchFields": ["c"] },
            { "matchExpressions": ["b"], "matchFields": ["c", "y"] },
        ] } },
    });
    assert_eq!(spec["affinity"], affinity);
    assert_eq!(spec["tolerations"], json!([{ "key": "template" }, { "key": "own" }]));
    let volumes = json!([{ "name": "more", "emptyDir": {} }, { "name": "data", "emptyDir": {} }]);
    assert_eq!(spec["volumes"], volumes);
    let executor = json!({
        "name": "executor", "image": "w:1", "command": ["worker"],
        "env": [{ "name": "B", "value": "template" }, { "name": "A", "value": "own" }],
        "resources": {
            "requests": { "cpu": "1", "ephemeral-storage": "1Gi" },
            "limits": { "cpu": 2, "memory": "1Mi" },
        },
        "volumeMounts": [
            { "name": "data", "mountPath": "/again" }, { "name": "data", "mountPath": "/data" },
        ],
        "securityContext": { "runAsUser": 7 },
    });
    assert_eq!(spec["containers"], json!([executor, { "name": "proxy", "image": "p:1" }]));
}

/// Goal: a template that can't be used is rejected with the reason. Method: one of each kind.
#[test]
fn what_is_no_template_is_rejected() {
    let pod = |spec: &str| format!("apiVersion: v1\nkind: Pod\nspec: {spec}\n");
    let long = format!("# {}", "x".repeat(2 << 20));
    let cases = [
        (String::new(), None, "a pod in YAML or JSON"),
        ("{".to_owned(), None, "a pod in YAML or JSON ("),
        ("- 1".to_owned(), None, "a pod in YAML or JSON"),
        (long, None, "a pod of at most 1048576 bytes"),
        ("kind: Deployment\napiVersion: v1".to_owned(), None, "its kind is \"Deployment\""),
        ("kind: Pod\napiVersion: v2".to_owned(), None, "its apiVersion is \"v2\""),
        ("kind: 3\napiVersion: v1".to_owned(), None, "its kind is \"another value\""),
        ("{}".to_owned(), None, "it has no kind"),
        (pod("{}"), None, "with a list of containers"),
        (pod("{containers: []}"), None, "with a list of containers"),
        (pod("{containers: [1]}"), None, "whose containers are objects"),
        (pod("3"), None, "whose spec is an object"),
        (pod("{nodeName: n1, containers: [{name: a}]}"), None, "without nodeName"),
        (pod("{volumes: 3, containers: [{name: a}]}"), None, "whose volumes is a list"),
        (pod("{affinity: 3, containers: [{name: a}]}"), None, "whose affinity is an object"),
        (pod("{containers: [{name: a, env: {}}]}"), None, "whose env is a list"),
        (pod("{containers: [{name: a}]}"), Some("b"), "a container named \"b\""),
        (pod("{containers: [{name: a}, {name: executor}]}"), None, "no container beside the"),
        ("metadata: {labels: {a: 1}}\nkind: Pod\napiVersion: v1".to_owned(), None, "quote it"),
    ];
    for (text, container, reason) in cases {
        let error = PodTemplate::read(&text, container).unwrap_err();
        let allowed = error.invalid_setting().unwrap().allowed;
        assert!(allowed.contains(reason), "{text:.60}: {allowed}");
    }
}

proptest! {
    /// Goal: no text ends the program, whatever it is. Method: random text, also after the beginning of a pod.
    #[test]
    fn any_text_is_read_or_rejected(text in ".{0,200}", is_pod in any::<bool>()) {
        let beginning = if is_pod { "apiVersion: v1\nkind: Pod\nspec: " } else { "" };
        if let Ok(template) = PodTemplate::read(&format!("{beginning}{text}"), None) {
            let mut pod = own();
            template.apply(&mut pod);
            prop_assert_eq!(&pod["spec"]["containers"][0]["name"], "executor");
        }
    }
}
