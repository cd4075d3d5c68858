//! Adds the command, environment, files, labels and container to the tasks of answers, as Spark launches them.

use std::collections::BTreeMap;

use offermill::launch::{self, Command, ContainerKind, Setup};
use serde_json::json;

use crate::scenario::TaskLine;
use crate::scenario::answer::{ContainerLine, UriLine};

/// Adds what a task is launched with.
pub(super) fn add_command(task: &mut TaskLine, command: &Command) {
    // A command that can't be quoted for a shell is shown unquoted.
    let line = command.shown_line().unwrap_or_else(|_| command.argv.join(" "));
    task.command = Some(line);
    let nothing = Setup::default();
    let setup = command.setup.as_deref().unwrap_or(&nothing);
    let own = command.environment.iter().map(|(name, value)| (name.to_string(), value.clone()));
    let mut environment: BTreeMap<String, String> = own.collect();
    // In Spark's messages, variables with secrets have no value.
    environment
        .extend(setup.secret_variables.iter().map(|(name, _)| (name.clone(), String::new())));
    task.env = Some(environment);
    task.uris = setup
        .uris
        .iter()
        .map(|uri| UriLine { value: uri.value.clone(), cache: uri.cache })
        .collect();
    let value = |value: &Option<String>| value.clone().unwrap_or_default();
    task.labels = setup.labels.iter().map(|(key, it)| (key.clone(), value(it))).collect();
    task.container = Some(container(setup));
}

/// Returns the container of a task. Spark's tasks always have one; by default the agent's.
pub(super) fn container(setup: &Setup) -> ContainerLine {
    let agents_own =
        launch::Container::new(ContainerKind::Mesos { image: None, force_pull: false });
    let container = setup.container.as_ref().unwrap_or(&agents_own);
    let mut more = BTreeMap::new();
    let mut add = |key: &str, value: serde_json::Value| {
        let is_nothing = value == json!(false) || value == json!([]);
        if !is_nothing {
            more.insert(key.to_owned(), value);
        }
    };
    let (kind, image) = match &container.kind {
        ContainerKind::Mesos { image, force_pull } => {
            add("force_pull", json!(*force_pull && image.is_some()));
            ("MESOS", image.clone())
        }
        ContainerKind::Docker { image, force_pull, parameters } => {
            add("force_pull", json!(force_pull));
            // Spark also passes the network to Docker as a parameter.
            let networks = container.networks.iter().map(|it| ("net".to_owned(), it.name.clone()));
            let parameters: Vec<_> = parameters.iter().cloned().chain(networks).collect();
            add("parameters", json!(parameters));
            ("DOCKER", Some(image.clone()))
        }
        _ => ("MESOS", None),
    };
    let volumes = container
        .volumes
        .iter()
        .map(|it| json!({"host": it.host, "container": it.container, "read_only": it.read_only}));
    let secrets = setup
        .secret_files
        .iter()
        .map(|(path, _)| json!({"host": null, "container": path, "read_only": true}));
    add("volumes", volumes.chain(secrets).collect());
    let ports = container.port_mappings.iter().map(
        |it| json!({"host": it.host, "container": it.container, "protocol": it.protocol.as_str()}),
    );
    add("port_mappings", ports.collect());
    let networks =
        container.networks.iter().map(|it| json!({"name": it.name, "labels": it.labels}));
    add("networks", networks.collect());
    ContainerLine { kind: kind.to_owned(), image, more }
}
