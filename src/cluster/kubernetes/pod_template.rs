//! [`PodTemplate`]: a pod that says what executors' pods have beside what this manager sets.
//!
//! | of the template | in executors' pods |
//! |---|---|
//! | labels, annotations, node selector | joined; where both have a key, the setting counts |
//! | tolerations, pull secrets, volumes | those of the settings follow |
//! | node affinity that is required | both are required |
//! | the executor's container: variables, mounts, ports | joined; where both have a name, the setting counts |
//! | its requests and limits | those of cores, memory and GPUs are the executor's; others stay |
//! | its name, image, command and arguments | the executor's |
//! | other containers, init containers, security contexts, probes and all else | stay |
//! | `restartPolicy`, other metadata, the status | are ignored |

use serde_json::{Map, Value, json};

use super::pod_state::EXECUTOR_CONTAINER;
use crate::error::Error;

/// The name of the setting in errors.
const NAME: &str = "pod template";

/// The longest template, in bytes: the most that an API server takes of an object is about 1.5 MiB.
const TEMPLATE_BYTES_MAX: usize = 1 << 20;

/// What executors' pods have beside what the manager sets: labels, other containers, volumes, security contexts, and so
/// on.
#[derive(Clone, Debug, PartialEq)]
pub struct PodTemplate {
    metadata: Map<String, Value>,
    spec: Map<String, Value>,
    /// The executor's container.
    container: Map<String, Value>,
    others: Vec<Value>,
}

impl PodTemplate {
    /// Reads a template: one pod, as YAML or JSON. The executor's container is the one with the name `container`; the
    /// first one, if none is named.
    ///
    /// # Errors
    /// If the text isn't a pod with containers, if it has more than 1 MiB, if it has no container of that name or
    /// another one with the name `executor`, or if it names the node, which the scheduler has to choose.
    pub fn read(text: &str, container: Option<&str>) -> Result<PodTemplate, Error> {
        read(text, container).map_err(|allowed| Error::setting(NAME, "", allowed))
    }

    /// Builds a pod of this template and of what the manager sets.
    pub(super) fn apply(&self, pod: &mut Value) {
        let own = pod["metadata"].take();
        let mut metadata = self.metadata.clone();
        merge(&mut metadata, own);
        pod["metadata"] = Value::Object(metadata);
        let mut own_spec = pod["spec"].take();
        let mut container = self.container.clone();
        merge(&mut container, own_spec["containers"][0].take());
        if let Some(own_spec) = own_spec.as_object_mut() {
            own_spec.remove("containers");
        }
        let mut spec = self.spec.clone();
        merge(&mut spec, own_spec);
        let containers =
            std::iter::once(Value::Object(container)).chain(self.others.iter().cloned());
        spec.insert("containers".to_owned(), containers.collect());
        pod["spec"] = Value::Object(spec);
    }
}

/// What must be an object, and what a list, so that it can be joined.
const OBJECTS: [&str; 2] = ["affinity", "nodeSelector"];
const LISTS: [&str; 4] = ["imagePullSecrets", "initContainers", "tolerations", "volumes"];
const CONTAINER_LISTS: [&str; 3] = ["env", "ports", "volumeMounts"];

/// Reads a template.
///
/// # Errors
/// Says what it must be.
fn read(text: &str, wanted: Option<&str>) -> Result<PodTemplate, String> {
    if text.len() > TEMPLATE_BYTES_MAX {
        return Err(format!("a pod of at most {TEMPLATE_BYTES_MAX} bytes"));
    }
    let pod: Value = serde_saphyr::from_str(text).map_err(|error| {
        let error = error.to_string();
        format!("a pod in YAML or JSON ({})", error.lines().next().unwrap_or_default())
    })?;
    let Value::Object(mut pod) = pod else {
        return Err("a pod in YAML or JSON".to_owned());
    };
    for (key, expected) in [("kind", "Pod"), ("apiVersion", "v1")] {
        match pod.get(key).map(|value| value.as_str().unwrap_or("another value")) {
            Some(value) if value == expected => {}
            Some(value) => return Err(format!("a pod (its {key} is {value:?}, not {expected:?})")),
            None => return Err(format!("a pod (it has no {key})")),
        }
    }
    let mut metadata = object(&mut pod, "metadata")?;
    let mut kept = Map::new();
    for key in ["annotations", "labels"] {
        let texts = object(&mut metadata, key)?;
        if let Some((name, _)) = texts.iter().find(|(_, value)| !value.is_string()) {
            return Err(format!("a pod whose {key} are texts ({name} is none; quote it)"));
        }
        if !texts.is_empty() {
            kept.insert(key.to_owned(), Value::Object(texts));
        }
    }
    let mut spec = object(&mut pod, "spec")?;
    if spec.contains_key("nodeName") {
        return Err("a pod without nodeName: the scheduler chooses nodes".to_owned());
    }
    check(&spec, &OBJECTS, "an object", Value::is_object)?;
    check(&spec, &LISTS, "a list", Value::is_array)?;
    let Some(Value::Array(listed)) = spec.remove("containers").filter(|it| it != &json!([])) else {
        return Err("a pod with a list of containers".to_owned());
    };
    let mut containers = Vec::new();
    for container in listed {
        let Value::Object(container) = container else {
            return Err("a pod whose containers are objects".to_owned());
        };
        containers.push(container);
    }
    let at = match wanted {
        None => 0,
        Some(wanted) => containers
            .iter()
            .position(|it| name(it) == Some(wanted))
            .ok_or_else(|| format!("a pod with a container named {wanted:?}"))?,
    };
    let mut container = containers.remove(at);
    check(&container, &CONTAINER_LISTS, "a list", Value::is_array)?;
    check(&container, &["resources"], "an object", Value::is_object)?;
    if containers.iter().any(|it| name(it) == Some(EXECUTOR_CONTAINER)) {
        return Err(format!(
            "a pod in which no container beside the executor's is named {EXECUTOR_CONTAINER:?}"
        ));
    }
    container.remove("args");
    let others = containers.into_iter().map(Value::Object).collect();
    Ok(PodTemplate { metadata: kept, spec, container, others })
}

fn name(container: &Map<String, Value>) -> Option<&str> {
    container.get("name").and_then(Value::as_str)
}

/// Takes an object out of another. What is absent or null is empty.
fn object(from: &mut Map<String, Value>, key: &str) -> Result<Map<String, Value>, String> {
    match from.remove(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object),
        Some(_) => Err(format!("a pod whose {key} is an object")),
    }
}

/// Checks that the fields with these keys have the right shape, where they are set.
fn check(
    object: &Map<String, Value>,
    keys: &[&str],
    what: &str,
    is_right: impl Fn(&Value) -> bool,
) -> Result<(), String> {
    let is_wrong = |key: &&&str| object.get(**key).is_some_and(|value| !is_right(value));
    match keys.iter().find(is_wrong) {
        Some(key) => Err(format!("a pod whose {key} is {what}")),
        None => Ok(()),
    }
}

/// Merges what the manager sets into what a template has: objects are joined, lists are appended, without what has the
/// same name, and of other values the manager's counts.
fn merge(template: &mut Map<String, Value>, own: Value) {
    let Value::Object(own) = own else { return };
    for (key, value) in own {
        match (template.get_mut(&key), value) {
            (Some(Value::Array(had)), Value::Array(own)) if key == "nodeSelectorTerms" => {
                *had = both(had, &own);
            }
            (Some(Value::Object(had)), value @ Value::Object(_)) => merge(had, value),
            // The command is one thing, of which the template's has no part.
            (Some(Value::Array(had)), Value::Array(own)) if key != "command" => {
                let names: Vec<Value> = own.iter().map(|it| it["name"].clone()).collect();
                let is_set = |it: &Value| !it["name"].is_null() && names.contains(&it["name"]);
                // Mounts name their volumes, of which there may be several in a container.
                had.retain(|it| key == "volumeMounts" || !is_set(it));
                had.extend(own);
            }
            (_, value) => {
                template.insert(key, value);
            }
        }
    }
}

/// The terms of which a node meets one, if it meets one of both lists.
fn both(first: &[Value], second: &[Value]) -> Vec<Value> {
    let joined = |first: &Value, second: &Value| {
        let mut term = Map::new();
        for key in ["matchExpressions", "matchFields"] {
            let parts = [&first[key], &second[key]].into_iter().filter_map(Value::as_array);
            let parts: Vec<Value> = parts.flatten().cloned().collect();
            if !parts.is_empty() {
                term.insert(key.to_owned(), Value::Array(parts));
            }
        }
        Value::Object(term)
    };
    first.iter().flat_map(|a| second.iter().map(move |b| joined(a, b))).collect()
}
