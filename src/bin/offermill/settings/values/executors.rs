//! The program of executors: a command of the user, or Spark's executors.

use std::sync::Arc;

use offermill::IdScheme;
use offermill::launch::spark::SparkExecutor;
use offermill::launch::{Command, CommandTemplate, LaunchContext, Launcher};
use offermill::resources::{Mebibytes, MilliCpus};

use crate::settings::values::log_links::LogLinks;
use crate::tasks::queue::TaskQueue;
use crate::text::format::count;

/// The program of executors.
#[derive(Clone, Debug)]
pub(crate) enum ExecutorProgram {
    /// A command of the user.
    Command {
        template: CommandTemplate,
        /// The command with its program found.
        shown: Vec<String>,
    },
    /// Spark's executors.
    Spark { executor: Box<SparkExecutor>, log_links: Option<LogLinks> },
    /// The tasks of a file.
    Tasks(Arc<TaskQueue>),
}

impl Launcher for ExecutorProgram {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        match self {
            ExecutorProgram::Command { template, .. } => template.command(context),
            ExecutorProgram::Spark { executor, log_links } => {
                let mut command = executor.command(context);
                if let Some(log_links) = log_links {
                    log_links.add_to(&mut command.environment, context);
                }
                command
            }
            ExecutorProgram::Tasks(queue) => queue.command(context),
        }
    }
}

impl ExecutorProgram {
    /// The command line for display, without secrets and what differs from executor to executor.
    pub(crate) fn shown(&self) -> Vec<String> {
        match self {
            ExecutorProgram::Command { shown, .. } => shown.clone(),
            // The arguments after the driver's URL differ.
            ExecutorProgram::Spark { executor, .. } => {
                executor.command(&SAMPLE).argv.into_iter().take(4).collect()
            }
            ExecutorProgram::Tasks(_) => vec![self.phrase()],
        }
    }

    /// The program as a phrase.
    pub(crate) fn phrase(&self) -> String {
        match self {
            ExecutorProgram::Command { shown, .. } => shown.join(" "),
            ExecutorProgram::Spark { executor, .. } => {
                format!("Spark for {}", executor.driver())
            }
            ExecutorProgram::Tasks(queue) => {
                let list = queue.list();
                format!("{} of {}", count(list.tasks.len() as u64, "task"), list.source)
            }
        }
    }

    /// The scheme of executors' ids.
    pub(crate) fn ids(&self, unique: IdScheme) -> IdScheme {
        if self.are_named() { unique } else { IdScheme::plain() }
    }

    /// Whether ids begin with the run's name. Spark's drivers require numbers.
    pub(crate) fn are_named(&self) -> bool {
        !matches!(self, ExecutorProgram::Spark { .. })
    }

    /// The tasks, if they are what is run.
    pub(crate) fn tasks(&self) -> Option<&Arc<TaskQueue>> {
        match self {
            ExecutorProgram::Tasks(queue) => Some(queue),
            ExecutorProgram::Command { .. } | ExecutorProgram::Spark { .. } => None,
        }
    }
}

/// The context of an example executor.
pub(crate) const SAMPLE: LaunchContext<'static> =
    LaunchContext::new("0", "agent", "host", MilliCpus::from_millis(1000), Mebibytes::new(1024))
        .with_app("app");
