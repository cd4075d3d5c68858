//! A run with the rights that docs/kubernetes.md names, and no others.

use std::time::Duration;

use offermill::TaskState;
use offermill::cluster::kubernetes::{ApiServer, Secret};
use offermill::engine::cluster_manager::{ClusterManager, Event};
use serde_json::{Value, json};

use super::{PATIENCE, config, curl, file, url, wait_state};
use crate::eventually::eventually;
use crate::framework::Framework;

/// The rules of the role in the guide.
fn rules() -> Value {
    let guide = include_str!("../../../docs/kubernetes.md");
    let yaml = guide.split("rules:\n").nth(1).unwrap().split("---").next().unwrap();
    let words = |line: &str| -> Vec<String> {
        let inner = line.split('[').nth(1).unwrap().trim_end_matches(']');
        inner.split(',').map(|word| word.trim().trim_matches('"').to_owned()).collect()
    };
    let lines: Vec<&str> = yaml.lines().collect();
    let rule = |rule: &[&str]| {
        assert!(rule[0].starts_with("- apiGroups: ["), "{rule:?}");
        assert!(rule[1].starts_with("  resources: [") && rule[2].starts_with("  verbs: ["));
        json!({ "apiGroups": words(rule[0]), "resources": words(rule[1]), "verbs": words(rule[2]) })
    };
    lines.chunks(3).map(rule).collect()
}

const GROUP: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

fn post(path: &str, body: &Value) -> String {
    curl("POST", path, Some(&body.to_string()))
}

/// Creates a service account with the guide's rights, and a role and a binding of its name.
pub(super) fn grant(account: &str) {
    let metadata = json!({ "name": account });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    post(accounts, &json!({ "metadata": metadata }));
    let made = post(&format!("{GROUP}/roles"), &json!({ "metadata": metadata, "rules": rules() }));
    assert!(made.contains("\"rules\""), "{made}");
    bind(account);
}

fn bind(account: &str) {
    let subject = json!({ "kind": "ServiceAccount", "name": account, "namespace": "default" });
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account });
    let metadata = json!({ "name": account });
    let body = json!({ "metadata": metadata, "roleRef": role, "subjects": [subject] });
    post(&format!("{GROUP}/rolebindings"), &body);
}

/// The name of the secret with a service account's token, and the token.
pub(super) fn account_token(account: &str) -> (String, String) {
    eventually(PATIENCE, "a token", || {
        let list = curl("GET", "/api/v1/namespaces/default/secrets", None);
        let secrets: Value = serde_json::from_str(&list).map_err(|error| error.to_string())?;
        let of_account = |secret: &&Value| {
            secret["metadata"]["annotations"]["kubernetes.io/service-account.name"] == account
        };
        let secrets = secrets["items"].as_array().cloned().unwrap_or_default();
        let secret = secrets.iter().find(of_account).ok_or("none")?;
        let token = secret["data"]["token"].as_str().map(decoded).ok_or("no token")?;
        Ok::<_, String>((secret["metadata"]["name"].as_str().unwrap_or_default().to_owned(), token))
    })
}

/// A further token of a service account.
pub(super) fn further_token(account: &str) -> String {
    let (name, path) = (format!("{account}-further"), "/api/v1/namespaces/default/secrets");
    let annotations = json!({ "kubernetes.io/service-account.name": account });
    let metadata = json!({ "name": name, "annotations": annotations });
    let kind = "kubernetes.io/service-account-token";
    post(path, &json!({ "metadata": metadata, "type": kind }));
    eventually(PATIENCE, "a further token", || {
        let secret: Value = serde_json::from_str(&curl("GET", &format!("{path}/{name}"), None))
            .map_err(|error| error.to_string())?;
        secret["data"]["token"].as_str().map(decoded).ok_or_else(|| secret.to_string())
    })
}

/// Goal: the rights in the guide suffice, and a run from which they are withdrawn says so and goes on when it has them
/// again; nothing ends meanwhile. Method: a service account with the guide's role; its binding is deleted until the
/// lease has expired, and made again.
#[test]
#[ignore = "needs a Kubernetes control plane"]
fn withdrawn_and_given_back() {
    grant("limited");
    let (_, token) = account_token("limited");
    let server = ApiServer::Url {
        url: url(),
        token: Some(Secret::new(token)),
        token_file: None,
        authorities: Some(file("pki/ca.crt")),
        key_pair: None,
    };
    let framework = Framework::start(config("rights").with_api_server(server), 9);
    framework.launch(2);
    wait_state(&framework, "etl-9-0.0", TaskState::Running);
    wait_state(&framework, "etl-9-1.0", TaskState::Running);
    curl("DELETE", &format!("{GROUP}/rolebindings/limited"), None);
    let names_lease = |why: &str| why.contains("renewal") && why.contains("leases");
    let is_said = |event: &Event| matches!(event, Event::CallFailed { why } if names_lease(why));
    framework.wait_event("what right is missing", is_said);
    framework.launch(1);
    std::thread::sleep(Duration::from_secs(1));
    assert!(framework.states("etl-9-2.0").is_empty());
    bind("limited");
    wait_state(&framework, "etl-9-2.0", TaskState::Running);
    for executor in ["etl-9-0.0", "etl-9-1.0"] {
        assert_eq!(framework.states(executor).last(), Some(&TaskState::Running));
    }
    framework.cluster.stop();
    assert_eq!(framework.cluster.why_left(), None);
}

/// Decodes base64.
fn decoded(text: &str) -> String {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut base64 = Command::new("base64");
    let piped = base64.arg("-d").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = piped.spawn().unwrap();
    running.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(running.wait_with_output().unwrap().stdout).unwrap()
}
