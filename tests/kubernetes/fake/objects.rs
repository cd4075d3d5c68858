//! Objects as the fake API server keeps them.

use serde_json::{Value, json};

use super::State;
use super::http::Request;

/// The body of a failure.
pub(super) fn failure(code: u16, message: &str) -> Value {
    json!({ "kind": "Status", "status": "Failure", "code": code, "message": message })
}

pub(super) fn found(object: Option<&Value>) -> (u16, Value) {
    object.map_or_else(|| (404, failure(404, "not found")), |object| (200, object.clone()))
}

/// Makes a pod run in this container.
pub(crate) fn run(pod: &mut Value, container: &str) {
    pod["status"] = json!({
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }],
        "containerStatuses": [{
            "name": "executor", "containerID": container, "ready": true, "state": { "running": {} },
        }],
    });
}

/// Ends a pod's container.
pub(super) fn end(pod: &mut Value, code: i32) {
    let terminated =
        json!({ "exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" } });
    let container = pod["status"]["containerStatuses"][0]["containerID"].clone();
    pod["status"] = json!({
        "phase": if code == 0 { "Succeeded" } else { "Failed" },
        "containerStatuses": [{
            "name": "executor", "containerID": container, "state": { "terminated": terminated },
        }],
    });
}

pub(super) fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// A request about config maps: a creation, or the deletion of those that it selects.
pub(super) fn config_maps(state: &mut State, request: &Request) -> (u16, Value) {
    if request.method == "DELETE" {
        state.config_maps.retain(|_, map| !request.selects(map));
        return (200, json!({}));
    }
    let name = request.body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if state.config_maps.contains_key(&name) {
        return (409, failure(409, &format!("configmaps \"{name}\" already exists")));
    }
    state.config_maps.insert(name, request.body.clone());
    (201, request.body.clone())
}

/// A request about a lease. A replacement must name the version that it replaces.
pub(super) fn lease(
    state: &mut State,
    method: &str,
    name: Option<String>,
    body: &Value,
) -> (u16, Value) {
    let name =
        name.or_else(|| Some(body["metadata"]["name"].as_str()?.to_owned())).unwrap_or_default();
    let former = state.leases.get(&name).cloned();
    let uid = match (method, &former) {
        ("GET", _) => return found(former.as_ref()),
        ("DELETE", Some(former)) => {
            let wanted = &body["preconditions"];
            let is_same =
                |key: &str| wanted[key].is_null() || wanted[key] == former["metadata"][key];
            if !is_same("uid") || !is_same("resourceVersion") {
                return (409, failure(409, "the precondition does not match"));
            }
            state.leases.remove(&name);
            return (200, json!({}));
        }
        ("POST", None) => state.uid(),
        ("PUT", Some(former)) => {
            if former["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
                return (409, failure(409, "the object has been modified"));
            }
            former["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
        }
        ("POST", Some(_)) => return (409, failure(409, "already exists")),
        _ => return (404, failure(404, "not found")),
    };
    state.version += 1;
    let mut lease = body.clone();
    lease["metadata"]["uid"] = uid.into();
    lease["metadata"]["resourceVersion"] = state.version.to_string().into();
    state.leases.insert(name, lease.clone());
    (200, lease)
}
