//! The setup that all executors of a framework share: container, URIs, labels, secrets, user.

use std::time::Duration;

use super::Secret;

/// The setup that executors share, in addition to their commands. The default is empty.
///
/// A cluster that doesn't support a part of it rejects the launch with a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setup {
    /// Files that are fetched into an executor's sandbox before it starts.
    pub uris: Vec<Uri>,
    /// The container that it runs in. `None` means the cluster's default.
    pub container: Option<Container>,
    /// Labels of its task.
    pub labels: Vec<ContainerLabel>,
    /// The grace period between the request to terminate and the kill, unless a call overrides it. `None` means the
    /// cluster's default.
    pub kill_grace: Option<Duration>,
    /// Secret environment variables, by name.
    pub secret_variables: Vec<(String, SecretSource)>,
    /// Secret files, by path. Relative paths are in its sandbox.
    pub secret_files: Vec<(String, SecretSource)>,
    /// The user that it runs as. `None` means the framework's user.
    pub user: Option<String>,
}

impl Setup {
    /// Whether it contains secrets themselves, rather than their names.
    #[cfg(feature = "mesos")]
    pub(crate) fn has_secret_values(&self) -> bool {
        let sources = self.secret_variables.iter().chain(&self.secret_files);
        sources.into_iter().any(|(_, source)| matches!(source, SecretSource::Value(_)))
    }
}

/// A label: a key and an optional value.
pub type ContainerLabel = (String, Option<String>);

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// The secret itself.
    Value(Secret),
    /// The name of the secret in the cluster's secret store.
    Reference(String),
}

/// A file to fetch into the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uri {
    /// The URI.
    pub value: String,
    /// Whether the file is made executable. Executable files aren't extracted.
    pub executable: bool,
    /// Whether an archive is extracted.
    pub extract: bool,
    /// Whether the agent caches the file.
    pub cache: bool,
    /// The file name in the sandbox, if it differs from the URI's.
    pub output_file: Option<String>,
}

impl Uri {
    /// Creates a file that is extracted if it is an archive, and not cached.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Uri {
        Uri {
            value: value.into(),
            executable: false,
            extract: true,
            cache: false,
            output_file: None,
        }
    }
}

/// The container that an executor runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Container {
    /// The containerizer and the image.
    pub kind: ContainerKind,
    /// The mounted volumes.
    pub volumes: Vec<Volume>,
    /// The published ports.
    pub port_mappings: Vec<PortMapping>,
    /// The networks that it joins. Empty means the agent's network.
    pub networks: Vec<Network>,
}

impl Container {
    /// Creates a container on the agent's network, without volumes.
    #[must_use]
    pub fn new(kind: ContainerKind) -> Container {
        Container { kind, volumes: Vec::new(), port_mappings: Vec::new(), networks: Vec::new() }
    }
}

/// The containerizer, with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContainerKind {
    /// The Mesos containerizer of the agent.
    Mesos {
        /// The Docker image. `None` means the agent's file system.
        image: Option<String>,
        /// Whether the image is pulled even if the agent has it.
        force_pull: bool,
    },
    /// Docker on the agent.
    Docker {
        /// The image.
        image: String,
        /// Whether the image is pulled even if the agent has it.
        force_pull: bool,
        /// Further options of `docker run`, with their values.
        parameters: Vec<(String, String)>,
    },
}

/// A folder or file that is mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The path on the agent. `None` lets the cluster create one.
    pub host: Option<String>,
    /// The path in the container.
    pub container: String,
    /// Whether the mount is read-only.
    pub read_only: bool,
}

/// A container port that is published on the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMapping {
    /// The port on the agent.
    pub host: u16,
    /// The port in the container.
    pub container: u16,
    /// The protocol.
    pub protocol: Protocol,
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Returns the name in lower case, as Mesos writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }
}

/// A network that a container joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The name.
    pub name: String,
    /// Labels for the network's provider.
    pub labels: Vec<ContainerLabel>,
}

impl Setup {
    /// Returns the first part of the setup that a plain process doesn't support, as a few words for an error message.
    /// `None` if it supports all of them.
    #[must_use]
    pub fn unsupported_by_process(&self) -> Option<&'static str> {
        let Setup {
            uris,
            container,
            user,
            secret_variables,
            secret_files,
            labels: _,
            kill_grace: _,
        } = self;
        if container.is_some() {
            Some("containers")
        } else if !uris.is_empty() {
            Some("a fetcher for URIs")
        } else if !secret_variables.is_empty() || !secret_files.is_empty() {
            Some("secrets for executors")
        } else {
            user.is_some().then_some("other users")
        }
    }
}
