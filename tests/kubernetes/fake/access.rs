//! What the fake API server answers before a run begins: its version, whether the namespace is there, and rights.

use serde_json::{Value, json};

use super::State;
use super::http::Request;
use super::objects::failure;

/// Answers a request that isn't about pods and leases.
pub(super) fn answer(state: &State, request: &Request) -> Option<(u16, Value)> {
    let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["version"] => Some((200, json!({ "gitVersion": "v1.33.0" }))),
        [_, _, "namespaces", name] => Some(match state.missing_namespace {
            Some(missing) if missing == *name => {
                (404, failure(404, &format!("namespaces \"{name}\" not found")))
            }
            _ => (200, json!({ "kind": "Namespace" })),
        }),
        [.., "selfsubjectaccessreviews"] => {
            let asked = &request.body["spec"]["resourceAttributes"];
            let right = format!("{} {}", asked["verb"], asked["resource"]).replace('"', "");
            let allowed = !state.denied_rights.contains(&right.as_str());
            Some((201, json!({ "status": { "allowed": allowed } })))
        }
        _ => None,
    }
}
