//! What tasks are started with, in the words of answers.

use std::collections::BTreeMap;

use offermill::launch::{self, Command, ContainerKind, Setup};
use serde_json::json;

use crate::scenario::Task;
use crate::scenario::answer::{Container, UriLine};

/// Says of a task what it is started with.
pub(super) fn describe(task: &mut Task, command: &Command) {
    // One that no shell can be told of is shown as it is.
    let line = command.shown_line().unwrap_or_else(|_| command.argv.join(" "));
    task.command = Some(line);
    task.env = Some(command.environment.iter().cloned().collect());
    let nothing = Setup::default();
    let setup = command.setup.as_deref().unwrap_or(&nothing);
    task.uris = setup
        .uris
        .iter()
        .map(|uri| UriLine { value: uri.value.clone(), cache: uri.cache })
        .collect();
    let value = |value: &Option<String>| value.clone().unwrap_or_default();
    task.labels = setup.labels.iter().map(|(key, it)| (key.clone(), value(it))).collect();
    task.container = Some(container(setup.container.as_ref()));
}

/// Spark's tasks always have a container, if only the agent's own.
fn container(container: Option<&launch::Container>) -> Container {
    let Some(container) = container else {
        return Container { kind: "MESOS".to_owned(), ..Container::default() };
    };
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
            // Spark tells Docker itself of the network, too.
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
    add("volumes", volumes.collect());
    let ports = container.port_mappings.iter().map(
        |it| json!({"host": it.host, "container": it.container, "protocol": it.protocol.as_str()}),
    );
    add("port_mappings", ports.collect());
    let networks =
        container.networks.iter().map(|it| json!({"name": it.name, "labels": it.labels}));
    add("networks", networks.collect());
    Container { kind: kind.to_owned(), image, more }
}
