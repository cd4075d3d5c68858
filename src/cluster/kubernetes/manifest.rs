//! The manifest of an executor's pod.
//!
//! * One container, `executor`, with the command as its own (the image's entry point is used only if the command is
//!   [for it](CommandForm::EntryPoint)), and with the resources as requests; memory and GPUs are limits, too. Settings
//!   may name other requests and limits of cores.
//! * `restartPolicy: Never`: what has ended is the kernel's to replace.
//! * Labels that never change, because lists and watches select by them: the run's name, the program that created the
//!   pod, the executor's id. Annotations with the resources and the queue's name, by which a next run adopts the
//!   executor.
//! * The run's lease as its owner, so that nothing stays when the lease is deleted.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::adoption_annotations::{QUEUE_ANNOTATION, RESOURCES_ANNOTATION, written_resources};
use super::config::{KubernetesConfig, Toleration, with_executor};
use super::expansion::{AGENT_ID, HOSTNAME, escaped};
use super::names::{
    CREATOR_LABEL, EXECUTOR_LABEL, MANAGER, MANAGER_LABEL, RUN_LABEL, is_label_key, is_label_value,
};
use super::node_choice::NodeChoice;
use super::pod_state::EXECUTOR_CONTAINER;
use super::quantity::{of_cores, of_memory};
use super::volumes::PodVolume;
use crate::launch::{Command, CommandForm, Container, ContainerKind, SecretSource, Setup, Volume};
use crate::resources::{ExecutorResources, Gpus};

/// Where a pod says which nodes it may get.
const NODE_AFFINITY: &str = "nodeAffinity";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The resource name of GPUs.
const GPU_RESOURCE: &str = "nvidia.com/gpu";

/// The variable with the folder of the run's files.
const FILES: &str = "OFFERMILL_FILES";

/// An executor to start.
#[derive(Clone, Debug)]
pub(super) struct PodLaunch {
    pub(super) executor: String,
    pub(super) resources: ExecutorResources,
    pub(super) command: Command,
    /// The name of its queue, if there are queues.
    pub(super) queue: Option<Arc<str>>,
}

/// What all pods of a run share.
#[derive(Debug)]
pub(super) struct PodContext<'a> {
    pub(super) config: &'a KubernetesConfig,
    pub(super) nodes: &'a NodeChoice,
    /// The id of this program, as the pods' creator.
    pub(super) creator: &'a str,
    /// The run's lease: its name and uid.
    pub(super) lease: (&'a str, &'a str),
}

/// Builds the manifest of a pod with this name.
///
/// # Errors
/// Says what of the executor's setup pods can't have.
pub(super) fn pod(
    context: &PodContext<'_>,
    name: &str,
    launch: &PodLaunch,
) -> Result<Value, String> {
    let config = context.config;
    let setup = launch.command.setup.as_deref();
    if context.nodes.is_empty() {
        return Err("no node meets the constraint".to_owned());
    }
    launch.command.hosting.refuse("Kubernetes").map_err(|error| error.to_string())?;
    if let Some(what) = setup.and_then(unsupported) {
        return Err(format!("pods have no {what}"));
    }
    let mut spec = json!({
        "restartPolicy": "Never",
        "containers": [container(config, launch)?],
    });
    let grace = setup.and_then(|it| it.kill_grace).or(config.termination_grace);
    set(&mut spec, "terminationGracePeriodSeconds", grace.map(|it| it.as_secs().max(1).into()));
    set(&mut spec, "affinity", affinity(context.nodes, &launch.executor));
    set(&mut spec, "nodeSelector", map(&config.node_selector));
    set(&mut spec, "schedulerName", config.scheduler.clone().map(Value::from));
    set(&mut spec, "priorityClassName", config.priority_class.clone().map(Value::from));
    set(&mut spec, "serviceAccountName", config.service_account.clone().map(Value::from));
    let secrets = config.pull_secrets.iter().map(|name| json!({ "name": name }));
    set(&mut spec, "imagePullSecrets", list(secrets));
    set(&mut spec, "tolerations", list(config.tolerations.iter().map(toleration)));
    let volumes = volumes(setup).enumerate();
    let volumes = volumes.map(|(at, volume)| volume_source(at, volume));
    let volumes = volumes.chain(config.volumes.iter().map(PodVolume::source));
    let secrets = config.secret_mounts.keys().enumerate().map(|(at, secret)| {
        json!({ "name": secret_volume_name(at), "secret": { "secretName": secret } })
    });
    set(
        &mut spec,
        "volumes",
        list(volumes.chain(secrets).chain(config.files.volume(&config.name))),
    );
    let [labels, annotations] = labels_and_annotations(context, launch, setup)?;
    let owner = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "name": context.lease.0, "uid": context.lease.1,
    });
    let metadata = json!({
        "name": name, "labels": labels, "annotations": annotations, "ownerReferences": [owner],
    });
    let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec });
    if let Some(template) = &config.template {
        template.apply(&mut pod);
    }
    Ok(pod)
}

/// The labels and annotations of a pod.
fn labels_and_annotations(
    context: &PodContext<'_>,
    launch: &PodLaunch,
    setup: Option<&Setup>,
) -> Result<[Map<String, Value>; 2], String> {
    let config = context.config;
    let filled = |(key, value): (&String, &String)| {
        (key.clone(), with_executor(value, &launch.executor).into())
    };
    let mut labels: Map<String, Value> = config.labels.iter().map(filled).collect();
    for (key, value) in setup.into_iter().flat_map(|it| &it.labels) {
        let value = value.as_deref().unwrap_or_default();
        if !is_label_key(key) || !is_label_value(value) {
            return Err(format!("label {key}={value}: pods have no such labels"));
        }
        labels.insert(key.clone(), value.into());
    }
    for (key, value) in [
        (MANAGER_LABEL, MANAGER),
        (RUN_LABEL, &config.name),
        (CREATOR_LABEL, context.creator),
        (EXECUTOR_LABEL, &launch.executor),
    ] {
        labels.insert(key.to_owned(), value.into());
    }
    let mut annotations: Map<String, Value> = config.annotations.iter().map(filled).collect();
    annotations.insert(RESOURCES_ANNOTATION.to_owned(), written_resources(launch.resources).into());
    if let Some(queue) = &launch.queue {
        annotations.insert(QUEUE_ANNOTATION.to_owned(), (**queue).into());
    }
    Ok([labels, annotations])
}

fn container(config: &KubernetesConfig, launch: &PodLaunch) -> Result<Value, String> {
    let PodLaunch { resources, command, .. } = launch;
    let setup = command.setup.as_deref();
    let own = setup.and_then(|it| it.container.as_ref());
    let (own_image, is_pulled) = match own.map(|it| &it.kind) {
        Some(ContainerKind::Mesos { image, force_pull }) => (image.as_deref(), *force_pull),
        Some(ContainerKind::Docker { image, force_pull, .. }) => (Some(&**image), *force_pull),
        None => (None, false),
    };
    let Some(image) = own_image.or(config.image.as_deref()) else {
        return Err("no image is set for the executor's container".to_owned());
    };
    let mut container = json!({
        "name": EXECUTOR_CONTAINER,
        "image": image,
        "env": variables(config, command, setup)?,
        "resources": requests(config, resources),
        // Of a program that fails, what it said last is part of the reason: its pod is deleted, and with it its logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    let part = if command.form == CommandForm::EntryPoint { "args" } else { "command" };
    set(&mut container, part, Some(argv(command)?.into()));
    let policy = if is_pulled { Some("Always") } else { config.pull_policy.as_deref() };
    set(&mut container, "imagePullPolicy", policy.map(Value::from));
    let mounts = volumes(setup).enumerate().map(|(at, volume)| {
        json!({ "name": volume_name(at), "mountPath": volume.container, "readOnly": volume.read_only })
    });
    let secrets = config.secret_mounts.values().enumerate().map(
        |(at, path)| json!({ "name": secret_volume_name(at), "mountPath": path, "readOnly": true }),
    );
    let volumes = config.volumes.iter().map(PodVolume::mount);
    let mounts = mounts.chain(volumes).chain(secrets).chain(config.files.mount());
    set(&mut container, "volumeMounts", list(mounts));
    let fixed = resources.port.map(|port| json!({ "containerPort": port, "hostPort": port }));
    let mapped = own.into_iter().flat_map(|it| &it.port_mappings).map(|it| {
        let protocol = it.protocol.as_str().to_uppercase();
        json!({ "containerPort": it.container, "hostPort": it.host, "protocol": protocol })
    });
    let named =
        config.ports.iter().map(|(name, port)| json!({ "name": name, "containerPort": port }));
    set(&mut container, "ports", list(fixed.into_iter().chain(mapped).chain(named)));
    Ok(container)
}

fn argv(command: &Command) -> Result<Vec<String>, String> {
    let line;
    let argv: Vec<&str> = match command.form {
        CommandForm::Argv | CommandForm::EntryPoint => {
            command.argv.iter().map(String::as_str).collect()
        }
        CommandForm::Shell => {
            line = command.shell_line().map_err(|error| error.to_string())?;
            vec!["/bin/sh", "-c", &line]
        }
    };
    if argv.is_empty() {
        return Err("the command is empty".to_owned());
    }
    Ok(argv.into_iter().map(escaped).collect())
}

/// The environment: first the values that only the node knows, so that others can refer to them.
fn variables(
    config: &KubernetesConfig,
    command: &Command,
    setup: Option<&Setup>,
) -> Result<Vec<Value>, String> {
    let field = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let mut variables = vec![
        field(AGENT_ID, "spec.nodeName"),
        field(HOSTNAME, "spec.nodeName"),
        field("OFFERMILL_POD_IP", "status.podIP"),
    ];
    if !config.files.is_empty() {
        variables.push(json!({ "name": FILES, "value": escaped(&config.files.folder) }));
    }
    variables.extend(config.field_variables.iter().map(|(name, path)| field(name, path)));
    let is_of_pod = |name: &str| {
        [AGENT_ID, HOSTNAME].contains(&name)
            || name == FILES && !config.files.is_empty()
            || config.field_variables.contains_key(name)
    };
    let own = command.environment.iter().filter(|(name, _)| !is_of_pod(name));
    variables.extend(own.map(|(name, value)| json!({ "name": name, "value": escaped(value) })));
    for (name, source) in setup.into_iter().flat_map(|it| &it.secret_variables) {
        let reference = match source {
            SecretSource::Reference(reference) => reference.split_once('/'),
            SecretSource::Value(_) => None,
        };
        let Some((secret, key)) = reference else {
            return Err(format!("secret variable {name}: a reference SECRET/KEY is needed"));
        };
        let reference = json!({ "secretKeyRef": { "name": secret, "key": key } });
        variables.push(json!({ "name": name, "valueFrom": reference }));
    }
    Ok(variables)
}

fn requests(config: &KubernetesConfig, resources: &ExecutorResources) -> Value {
    let memory = of_memory(resources.memory);
    let cores = config.cpu_request.unwrap_or(resources.cores);
    let mut requests = json!({ "cpu": of_cores(cores), "memory": &memory });
    let mut limits = json!({ "memory": &memory });
    set(&mut limits, "cpu", config.cpu_limit.map(|limit| of_cores(limit).into()));
    if resources.gpus != Gpus::ZERO {
        let gpus = Value::from(resources.gpus.get().to_string());
        set(&mut requests, GPU_RESOURCE, Some(gpus.clone()));
        set(&mut limits, GPU_RESOURCE, Some(gpus));
    }
    json!({ "requests": requests, "limits": limits })
}

fn affinity(nodes: &NodeChoice, executor: &str) -> Option<Value> {
    nodes.affinity(executor).map(|affinity| json!({ NODE_AFFINITY: affinity }))
}

/// Whether a pod with this affinity may get the same nodes as the one that would be created now for its executor.
pub(super) fn names_nodes(context: &PodContext<'_>, executor: &str, pods: &Value) -> bool {
    let mut pod = json!({ "metadata": {}, "spec": { "containers": [{}] } });
    set(&mut pod["spec"], "affinity", affinity(context.nodes, executor));
    if let Some(template) = &context.config.template {
        template.apply(&mut pod);
    }
    pod["spec"]["affinity"][NODE_AFFINITY][REQUIRED] == pods[NODE_AFFINITY][REQUIRED]
}

/// What of a setup pods of this manager don't have.
fn unsupported(setup: &Setup) -> Option<&'static str> {
    let container = setup.container.as_ref();
    if !setup.uris.is_empty() {
        Some("fetcher for URIs: put the files into the image")
    } else if !setup.secret_files.is_empty() {
        Some("secret files from a store of their own")
    } else if setup.user.is_some() {
        Some("users by name: set one in the image")
    } else if container.is_some_and(|it| !it.networks.is_empty()) {
        Some("networks by name")
    } else {
        let docker = container.map(|it| &it.kind);
        let has_parameters = matches!(docker, Some(ContainerKind::Docker { parameters, .. }) if !parameters.is_empty());
        has_parameters.then_some("parameters of Docker")
    }
}

fn volumes(setup: Option<&Setup>) -> impl Iterator<Item = &Volume> {
    let container: Option<&Container> = setup.and_then(|it| it.container.as_ref());
    container.into_iter().flat_map(|it| &it.volumes)
}

fn volume_name(at: usize) -> String {
    format!("volume-{at}")
}

fn secret_volume_name(at: usize) -> String {
    format!("secret-{at}")
}

fn volume_source(at: usize, volume: &Volume) -> Value {
    let name = volume_name(at);
    match &volume.host {
        Some(path) => json!({ "name": name, "hostPath": { "path": path } }),
        None => json!({ "name": name, "emptyDir": {} }),
    }
}

fn toleration(toleration: &Toleration) -> Value {
    let Toleration { key, value, effect } = toleration;
    let mut written = json!({ "operator": if value.is_some() { "Equal" } else { "Exists" } });
    set(&mut written, "key", (!key.is_empty()).then(|| key.as_str().into()));
    set(&mut written, "value", value.clone().map(Value::from));
    set(&mut written, "effect", effect.clone().map(Value::from));
    written
}

fn map(pairs: &std::collections::BTreeMap<String, String>) -> Option<Value> {
    (!pairs.is_empty()).then(|| json!(pairs))
}

fn list(items: impl Iterator<Item = Value>) -> Option<Value> {
    let items: Vec<Value> = items.collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

fn set(object: &mut Value, key: &str, value: Option<Value>) {
    if let (Some(value), Some(object)) = (value, object.as_object_mut()) {
        object.insert(key.to_owned(), value);
    }
}
