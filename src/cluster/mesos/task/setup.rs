//! Converts the setup that executors share (container, files, secrets, labels) into a task's fields.

use crate::cluster::mesos::calls::kill_policy;
use crate::error::Error;
use crate::launch::{
    Container, ContainerKind, ContainerLabel, Network, PortMapping, SecretSource, Setup, Uri,
    Volume,
};
use crate::mesos_v1::messages::{
    ContainerInfo, ContainerType, DockerImage, DockerInfo, DockerNetwork, DockerPortMapping,
    Environment, Image, ImageType, Label as WireLabel, Labels, MesosInfo, NetworkInfo, Parameter,
    PortMapping as NetworkPort, Secret, SecretReference, SecretType, SecretValue, TaskInfo,
    Uri as WireUri, Variable, VariableType, Volume as WireVolume, VolumeMode, VolumeSource,
    VolumeSourceType,
};

/// Adds a setup to a task.
///
/// # Errors
/// If the container has ports but no network that supports them, or if there are secrets for a Docker container: only
/// the agents' own containers support secrets.
pub(super) fn add(setup: &Setup, task: &mut TaskInfo) -> Result<(), Error> {
    if let Some(command) = &mut task.command {
        command.uris = setup.uris.iter().map(uri).collect();
        command.user.clone_from(&setup.user);
        if !setup.secret_variables.is_empty() {
            let environment = command.environment.get_or_insert_with(Environment::default);
            environment.variables.extend(setup.secret_variables.iter().map(secret_variable));
        }
    }
    task.labels = labels(&setup.labels);
    task.kill_policy = setup.kill_grace.map(kill_policy);
    task.container = match (&setup.container, setup.secret_files.is_empty()) {
        (Some(asked), _) => Some(container(asked)?),
        (None, true) => None,
        // Secret files are volumes, which only containers have.
        (None, false) => {
            let kind = ContainerKind::Mesos { image: None, force_pull: false };
            Some(container(&Container::new(kind))?)
        }
    }
    .map(Box::new);
    let has_secrets = !setup.secret_variables.is_empty() || !setup.secret_files.is_empty();
    if let Some(info) = &mut task.container {
        if has_secrets && info.r#type == i32::from(ContainerType::Docker) {
            let allowed = "left out for a Docker container: only Mesos containers support secrets";
            return Err(Error::setting("secret for executors", "set", allowed));
        }
        info.volumes.extend(setup.secret_files.iter().map(secret_file));
    }
    Ok(())
}

fn secret_variable((name, source): &(String, SecretSource)) -> Variable {
    Variable {
        name: name.clone(),
        r#type: Some(VariableType::Secret.into()),
        value: None,
        secret: Some(secret(source)),
    }
}

fn secret_file((path, source): &(String, SecretSource)) -> WireVolume {
    let source = VolumeSource {
        r#type: Some(VolumeSourceType::Secret.into()),
        secret: Some(secret(source)),
        ..VolumeSource::default()
    };
    WireVolume {
        mode: VolumeMode::Ro.into(),
        container_path: path.clone(),
        source: Some(source),
        ..WireVolume::default()
    }
}

fn secret(source: &SecretSource) -> Secret {
    match source {
        SecretSource::Value(value) => Secret {
            r#type: Some(SecretType::Value.into()),
            value: Some(SecretValue { data: value.expose().as_bytes().to_vec() }),
            reference: None,
        },
        SecretSource::Reference(name) => Secret {
            r#type: Some(SecretType::Reference.into()),
            reference: Some(SecretReference { name: name.clone(), key: None }),
            value: None,
        },
    }
}

fn uri(uri: &Uri) -> WireUri {
    WireUri {
        value: uri.value.clone(),
        executable: Some(uri.executable),
        extract: Some(uri.extract),
        cache: Some(uri.cache),
        output_file: uri.output_file.clone(),
    }
}

fn labels(labels: &[ContainerLabel]) -> Option<Labels> {
    let label =
        |(key, value): &ContainerLabel| WireLabel { key: key.clone(), value: value.clone() };
    let labels: Vec<WireLabel> = labels.iter().map(label).collect();
    (!labels.is_empty()).then_some(Labels { labels })
}

fn container(container: &Container) -> Result<ContainerInfo, Error> {
    let Container { kind, volumes, port_mappings, networks } = container;
    let mut info = ContainerInfo {
        volumes: volumes.iter().map(volume).collect(),
        network_infos: networks.iter().map(network).collect(),
        ..ContainerInfo::default()
    };
    match kind {
        ContainerKind::Mesos { image, force_pull } => {
            info.r#type = ContainerType::Mesos.into();
            let image = image.as_ref().map(|name| docker_image(name, *force_pull));
            info.mesos = Some(MesosInfo { image });
            if !port_mappings.is_empty() {
                let first = info.network_infos.first_mut().ok_or_else(network_missing)?;
                first.port_mappings = port_mappings.iter().map(network_port).collect();
            }
        }
        ContainerKind::Docker { image, force_pull, parameters } => {
            info.r#type = ContainerType::Docker.into();
            let parameter = |(key, value): &(String, String)| Parameter {
                key: key.clone(),
                value: value.clone(),
            };
            // Ports can't be mapped on the host's network, which is the default of Docker containers.
            let network = match (networks.is_empty(), port_mappings.is_empty()) {
                (false, _) => DockerNetwork::User,
                (true, false) => DockerNetwork::Bridge,
                (true, true) => DockerNetwork::Host,
            };
            info.docker = Some(DockerInfo {
                image: image.clone(),
                network: Some(network.into()),
                port_mappings: port_mappings.iter().map(docker_port).collect(),
                parameters: parameters.iter().map(parameter).collect(),
                force_pull_image: Some(*force_pull),
                ..DockerInfo::default()
            });
        }
    }
    Ok(info)
}

#[cold]
fn network_missing() -> Error {
    let allowed = "left out for a Mesos container that joins no network: it has the agent's ports";
    Error::setting("port mapping", "set", allowed)
}

fn docker_image(name: &str, force_pull: bool) -> Image {
    Image {
        r#type: ImageType::Docker.into(),
        docker: Some(DockerImage { name: name.to_owned(), config: None }),
        cached: Some(!force_pull),
        ..Image::default()
    }
}

fn volume(volume: &Volume) -> WireVolume {
    let mode = if volume.read_only { VolumeMode::Ro } else { VolumeMode::Rw };
    WireVolume {
        mode: mode.into(),
        container_path: volume.container.clone(),
        host_path: volume.host.clone(),
        ..WireVolume::default()
    }
}

fn network(network: &Network) -> NetworkInfo {
    NetworkInfo {
        name: Some(network.name.clone()),
        labels: labels(&network.labels),
        ..NetworkInfo::default()
    }
}

fn network_port(mapping: &PortMapping) -> NetworkPort {
    NetworkPort {
        host_port: mapping.host.into(),
        container_port: mapping.container.into(),
        protocol: Some(mapping.protocol.as_str().to_owned()),
    }
}

fn docker_port(mapping: &PortMapping) -> DockerPortMapping {
    DockerPortMapping {
        host_port: mapping.host.into(),
        container_port: mapping.container.into(),
        protocol: Some(mapping.protocol.as_str().to_owned()),
    }
}
