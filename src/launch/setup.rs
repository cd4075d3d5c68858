//! What all executors of a framework are started with.

use std::time::Duration;

use super::Secret;

/// What executors share, besides their command. The default is nothing special.
///
/// A cluster that can't give one of these refuses to start the executor, and says why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setup {
    /// What is fetched into an executor's sandbox before it starts.
    pub uris: Vec<Uri>,
    /// What it runs in; in whatever the cluster runs tasks in if there is none.
    pub container: Option<Container>,
    /// Labels of its task, for people and other programs.
    pub labels: Vec<Label>,
    /// How long it may take to end when it is asked to, before it is killed, where no call says otherwise.
    pub kill_grace: Option<Duration>,
    /// Variables of its environment that are secrets, by their names.
    pub secret_variables: Vec<(String, SecretSource)>,
    /// Files that are secrets, by the paths at which it finds them; relative ones are in its sandbox.
    pub secret_files: Vec<(String, SecretSource)>,
    /// The user that it runs as; the framework's own if there is none.
    pub user: Option<String>,
}

/// A key, and its value if it has one.
pub type Label = (String, Option<String>);

/// Where a secret comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// It is this.
    Value(Secret),
    /// The cluster's store of secrets has it under this name.
    Reference(String),
}

/// Something to fetch into a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uri {
    /// Where it is.
    pub value: String,
    /// Whether it is a program. Such a file isn't unpacked.
    pub executable: bool,
    /// Whether it is unpacked if it is an archive.
    pub extract: bool,
    /// Whether the agent keeps it for others.
    pub cache: bool,
    /// Its name in the sandbox, if not its own.
    pub output_file: Option<String>,
}

impl Uri {
    /// To be unpacked if it is an archive, and not kept.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Uri {
        let (executable, extract, cache) = (false, true, false);
        Uri { value: value.into(), executable, extract, cache, output_file: None }
    }
}

/// What an executor runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Container {
    /// Who makes it.
    pub kind: ContainerKind,
    /// What of the agent's files it sees.
    pub volumes: Vec<Volume>,
    /// Which of its ports are to be reached, and as which of the agent's.
    pub port_mappings: Vec<PortMapping>,
    /// The networks that it joins, none being the agent's own.
    pub networks: Vec<Network>,
}

impl Container {
    /// A container on the agent's network, with no volumes.
    #[must_use]
    pub fn new(kind: ContainerKind) -> Container {
        let (volumes, port_mappings, networks) = Default::default();
        Container { kind, volumes, port_mappings, networks }
    }
}

/// Who makes a container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContainerKind {
    /// The agent itself.
    Mesos {
        /// The Docker image that it is made from; the agent's own file system if there is none.
        image: Option<String>,
        /// Whether the image is fetched even if the agent has it.
        force_pull: bool,
    },
    /// Docker, on the agent.
    Docker {
        /// The image.
        image: String,
        /// Whether the image is fetched even if the agent has it.
        force_pull: bool,
        /// Further options for `docker run`, each with its value.
        parameters: Vec<(String, String)>,
    },
}

/// A folder or file that a container sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Where it is on the agent; the cluster makes one if that isn't said.
    pub host: Option<String>,
    /// Where the container sees it.
    pub container: String,
    /// Whether the container can't change it.
    pub read_only: bool,
}

/// A container's port that is to be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortMapping {
    /// The agent's port.
    pub host: u16,
    /// The container's.
    pub container: u16,
    /// Of which kind both are.
    pub protocol: Protocol,
}

/// A kind of port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Connections.
    #[default]
    Tcp,
    /// Datagrams.
    Udp,
}

impl Protocol {
    /// In small letters, as Mesos has it.
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
    /// Its name.
    pub name: String,
    /// Labels for whoever runs it.
    pub labels: Vec<Label>,
}

impl Setup {
    /// What of it takes more than starting a process: in a word or two, to say what can't be had.
    #[must_use]
    pub fn beyond_a_process(&self) -> Option<&'static str> {
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
