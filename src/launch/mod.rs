//! What an executor is started with, built from a template and one placement.

mod template;

pub use template::CommandTemplate;

use crate::resources::{Mebibytes, MilliCpus};

/// A command, ready to be started: an argument list, never a shell line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables to add to the environment.
    pub environment: Vec<(String, String)>,
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
