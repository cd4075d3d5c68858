//! [`CommandTemplate`]: an argument list with placeholders for an executor's facts.

use std::sync::Arc;

use super::{Command, Facts, Form, Launcher, Prelude, Setup};

/// An argument list in which the placeholders `{{EXECUTOR_ID}}`, `{{APP_ID}}`, `{{AGENT_ID}}`, `{{HOSTNAME}}`,
/// `{{CORES}}`, `{{MEMORY_MB}}` and `{{PORT}}` are replaced by the facts of an executor. The same facts are passed as
/// the environment variables `OFFERMILL_EXECUTOR_ID` and so on.
///
/// Each argument remains one argument for all values: either no shell is involved, or the argument is quoted. Other
/// text in double braces is unchanged. Without a fixed port, `{{PORT}}` is unchanged as well, and `OFFERMILL_PORT` is
/// not set.
///
/// ```
/// use offermill::launch::{CommandTemplate, Facts, Launcher};
/// use offermill::resources::{Mebibytes, MilliCpus};
///
/// let argv = ["worker", "--id={{EXECUTOR_ID}}"].map(str::to_owned).to_vec();
/// let template = CommandTemplate::new(argv).variable("THREADS", "{{CORES}}");
/// let command = template.command(&Facts {
///     executor: "etl-1.7",
///     app: "etl",
///     agent_id: "agent-1",
///     hostname: "a1.example",
///     cores: MilliCpus::from_cores(2),
///     memory: Mebibytes::new(1024),
///     port: None,
/// });
/// assert_eq!(command.argv, ["worker", "--id=etl-1.7"]);
/// assert!(command.environment.contains(&("THREADS".to_owned(), "2".to_owned())));
/// ```
#[derive(Clone, Debug)]
pub struct CommandTemplate {
    argv: Vec<String>,
    environment: Vec<(String, String)>,
    form: Form,
    setup: Option<Arc<Setup>>,
}

impl CommandTemplate {
    /// Creates a template of `argv` without variables of its own.
    #[must_use]
    pub fn new(argv: Vec<String>) -> CommandTemplate {
        CommandTemplate { argv, environment: Vec::new(), form: Form::default(), setup: None }
    }

    /// Adds an environment variable. Placeholders in its value are filled in.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the form of the command.
    #[must_use]
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets the setup that the executors share. Placeholders in it are not filled in.
    #[must_use]
    pub fn setup(mut self, setup: Setup) -> Self {
        self.setup = Some(Arc::new(setup));
        self
    }
}

impl Launcher for CommandTemplate {
    fn command(&self, facts: &Facts<'_>) -> Command {
        let mut known = vec![
            ("EXECUTOR_ID", facts.executor.to_owned()),
            ("APP_ID", facts.app.to_owned()),
            ("AGENT_ID", facts.agent_id.to_owned()),
            ("HOSTNAME", facts.hostname.to_owned()),
            ("CORES", facts.cores.to_string()),
            ("MEMORY_MB", facts.memory.get().to_string()),
        ];
        if let Some(port) = facts.port {
            known.push(("PORT", port.to_string()));
        }
        let argv = self.argv.iter().map(|argument| fill(argument, &known)).collect();
        let own = self.environment.iter().map(|(name, value)| (name.clone(), fill(value, &known)));
        let facts = known.iter().map(|(name, value)| (format!("OFFERMILL_{name}"), value.clone()));
        let environment = facts.chain(own).collect();
        let (setup, prelude) = (self.setup.clone(), Prelude::default());
        Command { argv, environment, form: self.form, setup, prelude }
    }
}

/// Replaces placeholders in one pass, so that placeholders in the inserted values are never replaced.
pub(super) fn fill(text: &str, known: &[(&str, impl AsRef<str>)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let found = after
            .split_once("}}")
            .and_then(|(name, tail)| Some((known.iter().find(|(known, _)| *known == name)?, tail)));
        match found {
            Some(((_, value), tail)) => {
                filled.push_str(value.as_ref());
                rest = tail;
            }
            None => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{Mebibytes, MilliCpus};

    fn facts() -> Facts<'static> {
        Facts {
            executor: "etl-1-0.0",
            app: "{{CORES}}",
            agent_id: "a-1",
            hostname: "h; rm -rf /",
            cores: MilliCpus::from_cores(2),
            memory: Mebibytes::new(512),
            port: None,
        }
    }

    /// Goal: each placeholder is replaced by its fact, once, and nothing else changes. Method: a value that looks like
    /// a placeholder, a host name that looks like a command, unknown and unfinished placeholders.
    #[test]
    fn placeholders_are_filled_in_once_and_stay_one_argument() {
        let argv = [
            "run",
            "{{EXECUTOR_ID}}@{{HOSTNAME}}",
            "{{APP_ID}}",
            "{{X}} {{PORT}} {{",
            "{{{{CORES}}}}",
        ];
        let template =
            CommandTemplate::new(argv.map(str::to_owned).to_vec()).variable("M", "{{MEMORY_MB}}m");
        let command = template.command(&facts());
        assert_eq!(
            command.argv,
            ["run", "etl-1-0.0@h; rm -rf /", "{{CORES}}", "{{X}} {{PORT}} {{", "{{2}}"]
        );
        assert!(command.environment.contains(&("M".to_owned(), "512m".to_owned())));
        assert!(command.environment.contains(&("OFFERMILL_CORES".to_owned(), "2".to_owned())));
    }
}
