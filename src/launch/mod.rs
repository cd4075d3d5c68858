//! What an executor is started with, built from a template and one placement.
//!
//! A [`Command`] is an executor's own: its arguments and its environment. What all executors of a framework share, such
//! as the container that they run in, is a [`Setup`], made once.

mod read;
mod secret;
mod setup;
mod shell;
pub mod spark;
mod template;

use std::sync::Arc;

pub use read::{labels, parameters, port_mappings, uris, volumes};
pub use secret::Secret;
pub use setup::{
    Container, ContainerKind, Label, Network, PortMapping, Protocol, SecretSource, Setup, Uri,
    Volume,
};
pub use template::CommandTemplate;

use crate::resources::{Mebibytes, MilliCpus};

/// A command, ready to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables to add to the environment.
    pub environment: Vec<(String, String)>,
    /// How the cluster is given the arguments.
    pub form: Form,
    /// What executors share; nothing special if there is none.
    pub setup: Option<Arc<Setup>>,
    /// What only a shell can do before the program begins. Only for [`Form::Shell`].
    pub prelude: Prelude,
}

/// What a shell does before a program begins. Nothing of it is read as a part of a shell's language, whatever it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prelude {
    /// It goes into the first folder whose name begins with this.
    pub folder: Option<Arc<str>>,
    /// It puts this before what `LD_LIBRARY_PATH` says.
    pub library_path: Option<Arc<str>>,
}

/// How a cluster is given a command's arguments. Either way the program gets them as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// As a list, which no shell reads.
    #[default]
    Argv,
    /// As a line for `/bin/sh -c`, in which everything is in quotation marks: [`Command::shell_line`]. For containers
    /// whose entry point is a shell, agents that start nothing else, and commands with a [`Prelude`].
    Shell,
}

/// What there is to know about an executor when its command is built.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its id.
    pub executor: &'a str,
    /// The cluster's id for this framework.
    pub app: &'a str,
    /// The agent that it starts on.
    pub agent_id: &'a str,
    /// The agent's host name.
    pub hostname: &'a str,
    /// The cores that it is told of, extra cores included.
    pub cores: MilliCpus,
    /// Its memory without the overhead.
    pub memory: Mebibytes,
    /// Its port, if a fixed one was asked for.
    pub port: Option<u16>,
}

/// Builds executors' commands. Called by handler threads, once an executor, with nothing held.
pub trait Launcher: Send + Sync {
    /// The command for the executor that `facts` describe.
    fn command(&self, facts: &Facts<'_>) -> Command;
}
