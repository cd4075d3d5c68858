//! Commands of executors: templates, Spark's command line, containers, volumes, URIs and secrets.
//!
//! A [`Command`] belongs to one executor: its arguments and its environment. A [`Setup`], such as the container, is
//! created once and shared by all executors of a framework.

mod hosting;
mod placeholder_text;
mod read;
mod secret;
mod setup;
mod shell;
pub mod spark;
mod template;

use std::borrow::Cow;
use std::sync::Arc;

pub use hosting::Hosting;
pub use read::{labels, parameters, port_mappings, uris, volumes};
pub use secret::{SECRET_VARIABLES, Secret};
pub use setup::{
    Container, ContainerKind, ContainerLabel, Network, PortMapping, Protocol, SecretSource, Setup,
    Uri, Volume,
};
pub use template::{CommandTemplate, PLACEHOLDERS};

use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// The name of an environment variable, and its value.
pub type EnvironmentVariable = (Cow<'static, str>, String);

/// The command of one executor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables that are added to the environment.
    pub environment: Vec<EnvironmentVariable>,
    /// How the arguments are passed to the cluster.
    pub form: CommandForm,
    /// The setup that executors share, if any.
    pub setup: Option<Arc<Setup>>,
    /// Steps that a shell performs before it starts the program. Only for [`CommandForm::Shell`].
    pub prologue: ShellPrologue,
    /// Whether it is a host of tasks, or a task in one.
    pub hosting: Hosting,
}

impl Command {
    /// Creates a command of a program and its arguments, passed as a list.
    #[must_use]
    pub fn new(argv: Vec<String>) -> Command {
        Command { argv, ..Command::default() }
    }

    /// Adds variables to the environment.
    #[must_use]
    pub fn with_environment<N: Into<Cow<'static, str>>>(
        mut self,
        variables: impl IntoIterator<Item = (N, String)>,
    ) -> Command {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value)));
        self
    }

    /// Sets how the arguments are passed.
    #[must_use]
    pub fn with_form(self, form: CommandForm) -> Command {
        Command { form, ..self }
    }

    /// Makes it a host of tasks, or a task in one.
    #[must_use]
    pub fn with_hosting(self, hosting: Hosting) -> Command {
        Command { hosting, ..self }
    }

    /// Sets the setup that executors share.
    #[must_use]
    pub fn with_setup(self, setup: Arc<Setup>) -> Command {
        Command { setup: Some(setup), ..self }
    }
}

/// Steps that a shell performs before it starts the program. All values are quoted, so the shell never interprets them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShellPrologue {
    /// Changes into the first folder with a name that begins with this text.
    pub folder: Option<Arc<str>>,
    /// A path that is prepended to `LD_LIBRARY_PATH`.
    pub library_path: Option<Arc<str>>,
}

/// How a command's arguments are passed to the cluster. In all forms the program receives them unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CommandForm {
    /// As a list, without a shell.
    #[default]
    Argv,
    /// As a fully quoted line for `/bin/sh -c`: [`Command::shell_line`]. For containers with a shell as entry point,
    /// for agents that accept nothing else, and for commands with a [`ShellPrologue`].
    Shell,
    /// As arguments of the entry point of the container's image. For Kubernetes, and for Docker on Mesos.
    EntryPoint,
}

/// What a [`Launcher`] is told about one executor to build its command.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LaunchContext<'a> {
    /// The executor's id.
    pub executor: &'a str,
    /// The cluster's id for this framework.
    pub app: &'a str,
    /// The id of the agent that it starts on.
    pub agent_id: &'a str,
    /// The agent's host name.
    pub hostname: &'a str,
    /// The cores advertised to it, including extra cores.
    pub cores: MilliCpus,
    /// Its memory without the overhead.
    pub memory: Mebibytes,
    /// Its GPUs.
    pub gpus: Gpus,
    /// The fixed port, if configured.
    pub port: Option<u16>,
    /// The tag of the [task](crate::Task) that it is; `None` if it isn't one.
    pub tag: Option<u64>,
}

impl<'a> LaunchContext<'a> {
    /// Creates the context of an executor, for tests of a launcher: `app` is empty, and there are no GPUs, no port
    /// and no tag.
    #[must_use]
    pub const fn new(
        executor: &'a str,
        agent_id: &'a str,
        hostname: &'a str,
        cores: MilliCpus,
        memory: Mebibytes,
    ) -> LaunchContext<'a> {
        let (app, gpus, port, tag) = ("", Gpus::ZERO, None, None);
        LaunchContext { executor, app, agent_id, hostname, cores, memory, gpus, port, tag }
    }

    /// Sets the cluster's id for this framework.
    #[must_use]
    pub const fn with_app(self, app: &'a str) -> LaunchContext<'a> {
        LaunchContext { app, ..self }
    }

    /// Sets the number of GPUs.
    #[must_use]
    pub const fn with_gpus(self, gpus: Gpus) -> LaunchContext<'a> {
        LaunchContext { gpus, ..self }
    }

    /// Sets the fixed port.
    #[must_use]
    pub const fn with_port(self, port: Option<u16>) -> LaunchContext<'a> {
        LaunchContext { port, ..self }
    }

    /// Sets the tag of the task that it is.
    #[must_use]
    pub const fn with_tag(self, tag: Option<u64>) -> LaunchContext<'a> {
        LaunchContext { tag, ..self }
    }
}

/// Builds the commands of executors. Handler threads call it once per executor, without holding a lock.
pub trait Launcher: Send + Sync {
    /// Returns the command of the executor that `context` describes. It must not block for long, because the handler
    /// thread waits for it.
    fn command(&self, context: &LaunchContext<'_>) -> Command;
}
