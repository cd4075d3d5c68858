//! Questions before a run begins: whether the address is an API server's, whether it knows the user, whether the
//! namespace exists, and whether the user has the rights that a run needs.
//!
//! What others may change within a moment, such as a server that restarts, is asked again. A certificate, a token, a
//! namespace or a right that is missing is not.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::api::{Api, ApiAnswer};
use crate::backoff::Backoff;

/// The API group of leases.
const LEASE_GROUP: &str = "coordination.k8s.io";

/// What a run does with pods and with its lease: the API group, the resource and the verbs.
const RIGHTS: [(&str, &str, &[&str]); 2] = [
    ("", "pods", &["create", "get", "list", "watch", "delete", "deletecollection"]),
    (LEASE_GROUP, "leases", &["create", "get", "update", "delete"]),
];

/// The right that a run needs in addition if it labels pods after their creation.
const RIGHT_TO_LABEL: (&str, &str, &[&str]) = ("", "pods", &["patch"]);

/// The rights that a run needs in addition if it has files.
const RIGHTS_TO_STORE: (&str, &str, &[&str]) = ("", "configmaps", &["create", "deletecollection"]);

/// The rights that a run needs in the whole cluster if its constraint is checked on nodes' labels.
const RIGHTS_TO_READ_NODES: [&str; 2] = ["list", "watch"];

/// How long the first answer may take until it is said that it is waited for.
const PATIENCE_UNTOLD: Duration = Duration::from_secs(1);

/// What a run does beside what all runs do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AccessNeeds {
    /// It labels pods after their creation.
    pub(super) labels_pods: bool,
    /// It has files for its executors.
    pub(super) stores_files: bool,
    /// It reads the labels of nodes, for its constraint.
    pub(super) reads_nodes: bool,
}

/// Why a run can't begin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AccessError {
    /// It won't be able to in a moment either.
    Denied(String),
    /// It may be able to in a moment.
    Failed(String),
}

use AccessError::{Denied, Failed};

/// Asks until there are answers, within `patience`. If the first doesn't come soon, `waits` is told once why.
///
/// # Errors
/// Says what is missing, or why there are no answers.
pub(super) async fn check(
    api: &Api,
    patience: Duration,
    needs: AccessNeeds,
    waits: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let began = Instant::now();
    let mut backoff = Backoff::default();
    let mut is_told = false;
    let mut tell_once = |why: &str| {
        if !std::mem::replace(&mut is_told, true) {
            waits(why);
        }
    };
    loop {
        let attempt = try_check(api, needs);
        tokio::pin!(attempt);
        let answered = match timeout(PATIENCE_UNTOLD, &mut attempt).await {
            Ok(answered) => answered,
            Err(_) => {
                tell_once("no answer so far");
                attempt.await
            }
        };
        match answered {
            Ok(()) => return Ok(()),
            Err(Denied(why)) => return Err(why),
            Err(Failed(why)) if began.elapsed() >= patience => {
                return Err(format!("the API server could not be reached: {why}"));
            }
            Err(Failed(why)) => {
                tell_once(&why);
                sleep(backoff.next().min(Duration::from_secs(1))).await;
            }
        }
    }
}

async fn try_check(api: &Api, needs: AccessNeeds) -> Result<(), AccessError> {
    check_version(&answered(api.version().await)?)?;
    check_rights(api, needs).await?;
    if needs.reads_nodes {
        check_node_rights(api).await?;
    }
    check_namespace(api).await
}

/// An answer that tells something: neither none, nor that the server is busy or doesn't know the user.
fn answered(answer: Result<ApiAnswer, String>) -> Result<ApiAnswer, AccessError> {
    let answer = answer.map_err(unanswered)?;
    match answer.status {
        401 => Err(Denied(format!(
            "the API server doesn't accept the user's token or certificate, which may have expired: {}",
            answer.why()
        ))),
        429 | 500..=599 => Err(Failed(answer.why())),
        _ => Ok(answer),
    }
}

/// Sorts failures to get an answer.
fn unanswered(why: String) -> AccessError {
    if why.contains("invalid peer certificate") {
        return Denied(format!("the API server's certificate is not trusted: {why}"));
    }
    if why.starts_with("token file") {
        return Denied(why);
    }
    let is_foreign = ["corrupt message", "invalid HTTP version", "InvalidContentType"];
    if is_foreign.iter().any(|it| why.contains(it)) {
        return Denied(format!("there is no API server at this address: {why}"));
    }
    Failed(why)
}

fn check_version(answer: &ApiAnswer) -> Result<(), AccessError> {
    let version = answer.read::<Value>().unwrap_or_default();
    // Users whom the server doesn't know may not ask for its version everywhere.
    if answer.status == 403 || version["gitVersion"].is_string() {
        return Ok(());
    }
    let why =
        "there is no API server at this address: it answers the question for its version with";
    let text = answer.text();
    let said: String = text.lines().next().unwrap_or_default().chars().take(80).collect();
    let colon = if said.trim().is_empty() { "" } else { ": " };
    Err(Denied(format!("{why} HTTP status {}{colon}{}", answer.status, said.trim())))
}

/// Asks for each right, all at once.
async fn check_rights(api: &Api, needs: AccessNeeds) -> Result<(), AccessError> {
    let mut missing = Vec::new();
    let rights = RIGHTS
        .into_iter()
        .chain(needs.labels_pods.then_some(RIGHT_TO_LABEL))
        .chain(needs.stores_files.then_some(RIGHTS_TO_STORE));
    for (group, resource, verbs) in rights {
        let mut denied = Vec::new();
        for verb in verbs {
            let answer = answered(api.review(verb, group, resource).await)?;
            if is_denied(&answer)? {
                denied.push(*verb);
            }
        }
        if !denied.is_empty() {
            missing.push(format!("{} {resource}", denied.join(", ")));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", nor to ");
    Err(Denied(format!("no right to {missing} in namespace {}", api.namespace())))
}

/// Asks for the rights to read nodes.
async fn check_node_rights(api: &Api) -> Result<(), AccessError> {
    let mut denied = Vec::new();
    for verb in RIGHTS_TO_READ_NODES {
        if is_denied(&answered(api.review_in_cluster(verb, "", "nodes").await)?)? {
            denied.push(verb);
        }
    }
    if denied.is_empty() {
        return Ok(());
    }
    let denied = denied.join(", ");
    Err(Denied(format!(
        "no right to {denied} nodes in the cluster: the constraint has patterns, comparisons of numbers or many \
         values, which are checked on the labels of nodes"
    )))
}

/// Whether the answer to a question for a right is no.
fn is_denied(answer: &ApiAnswer) -> Result<bool, AccessError> {
    let why = answer.why();
    if answer.status == 403 && why.contains("system:anonymous") {
        return Err(Denied(format!("the API server was given no token or certificate: {why}")));
    }
    // A server that doesn't tell is asked by doing.
    let review = answer.read::<Value>().unwrap_or_default();
    Ok(answer.is_success() && review["status"]["allowed"] == json!(false))
}

/// Looks for the namespace; without the right to read it, by what a creation in it would lead to.
async fn check_namespace(api: &Api) -> Result<(), AccessError> {
    let mut answer = answered(api.namespace_object().await)?;
    if answer.status == 403 {
        answer = answered(api.try_create_lease().await)?;
    }
    let is_missing = answer.status == 404 && answer.why().contains("namespaces");
    match is_missing {
        true => Err(Denied(format!("there is no namespace {}", api.namespace()))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what a moment mends is told from what it doesn't. Method: the texts of failures as the client words them.
    #[test]
    fn failures_are_told_apart() {
        for why in [
            "client error (Connect): invalid peer certificate: UnknownIssuer",
            "client error (Connect): received corrupt message of type InvalidContentType",
            "client error (SendRequest): invalid HTTP version parsed",
        ] {
            assert!(matches!(unanswered(why.to_owned()), Denied(_)), "{why}");
        }
        for why in [
            "client error (Connect): tcp connect error: Connection refused (os error 111)",
            "no answer within 10s",
        ] {
            assert_eq!(unanswered(why.to_owned()), Failed(why.to_owned()));
        }
    }
}
