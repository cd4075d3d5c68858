//! [`CommandTemplate`]: an argument list with placeholders for an executor's facts.

use std::sync::Arc;

use super::shell::PLAIN;
use super::{Command, Facts, Form, Launcher, Prelude, Setup};

/// An argument list in which the placeholders `{{EXECUTOR_ID}}`, `{{APP_ID}}`, `{{AGENT_ID}}`, `{{HOSTNAME}}`,
/// `{{CORES}}`, `{{MEMORY_MB}}` and `{{PORT}}` are replaced by the facts of an executor. The same facts are passed as
/// the environment variables `OFFERMILL_EXECUTOR_ID` and so on.
///
/// Each argument remains one argument for all values: either no shell is involved, or the argument is quoted. In the
/// text that a shell executes (the argument after `sh -c`), a value with characters that are special to shells is
/// replaced by its variable, as in `"$OFFERMILL_HOSTNAME"`: the shell never parses a value as a command. Better write
/// the variables there. A value may begin with `-`: a program that could take it for an option is better given
/// `--host={{HOSTNAME}}`. Other text in double braces is unchanged. Without a fixed port, `{{PORT}}` is unchanged as
/// well, and `OFFERMILL_PORT` is not set.
///
/// ```
/// use offermill::launch::{CommandTemplate, Facts, Launcher};
/// use offermill::resources::{Mebibytes, MilliCpus};
///
/// let argv = ["worker", "--id={{EXECUTOR_ID}}"].map(str::to_owned).to_vec();
/// let template = CommandTemplate::new(argv).variable("THREADS", "{{CORES}}");
/// let (cores, memory) = (MilliCpus::from_cores(2), Mebibytes::new(1024));
/// let command = template.command(&Facts::new("etl-1.7", "agent-1", "a1.example", cores, memory));
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
        let quoted = known.iter().map(|(name, value)| (*name, quoted(name, value)));
        let quoted: Vec<(&str, String)> = quoted.collect();
        let shell_text = shell_text(&self.argv);
        let argument = |(place, argument): (usize, &String)| match Some(place) == shell_text {
            true => fill(argument, &quoted),
            false => fill(argument, &known),
        };
        let argv = self.argv.iter().enumerate().map(argument).collect();
        let own = self.environment.iter().map(|(name, value)| (name.clone(), fill(value, &known)));
        let facts = known.iter().map(|(name, value)| (format!("OFFERMILL_{name}"), value.clone()));
        let environment = facts.chain(own).collect();
        let (setup, prelude) = (self.setup.clone(), Prelude::default());
        Command { argv, environment, form: self.form, setup, prelude }
    }
}

/// The programs that execute the argument after `-c`.
const SHELLS: [&str; 16] = [
    "sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "yash", "zsh",
    "su", "runuser", "script", "sg",
];
/// Their options that take the next argument as their value, besides those that end with `o` or `O`.
const OPTIONS_WITH_VALUE: [&str; 2] = ["--rcfile", "--init-file"];
/// The long forms of `-c`.
const COMMAND_OPTIONS: [&str; 2] = ["--command", "--session-command"];

/// The place of the argument that a shell executes, also if the shell is started by
/// another program, as in `timeout 10 sh -c TEXT`.
fn shell_text(argv: &[String]) -> Option<usize> {
    let is_shell =
        |argument: &String| SHELLS.contains(&argument.rsplit('/').next().unwrap_or_default());
    let shell = argv.iter().position(is_shell)?;
    let mut is_command = false;
    let mut is_value = false;
    for (place, argument) in argv.iter().enumerate().skip(shell + 1) {
        if std::mem::take(&mut is_value) {
            continue;
        }
        if let Some((option, _)) = argument.split_once('=')
            && COMMAND_OPTIONS.contains(&option)
        {
            return Some(place);
        }
        match argument.strip_prefix(['-', '+']) {
            Some(options) if !options.starts_with('-') => {
                is_command |= argument.starts_with('-') && options.contains('c');
                // As in `-o pipefail` and `+O extglob`.
                is_value = options.ends_with(['o', 'O']);
            }
            Some(_) => {
                is_command |= COMMAND_OPTIONS.contains(&argument.as_str());
                is_value = OPTIONS_WITH_VALUE.contains(&argument.as_str());
            }
            None if is_command => return Some(place),
            // A script, or a user's name as in `su USER -c TEXT`: a `-c` may follow.
            None => {}
        }
    }
    None
}

/// A value in the text of a shell command, or its variable if it may mean something to a shell. A variable's value is
/// never parsed, whatever quotation marks are around it.
fn quoted(name: &str, value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
    match value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("\"$OFFERMILL_{name}\""),
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
            gpus: crate::resources::Gpus::ZERO,
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

    /// Goal: in the text of a shell command no value is parsed as a command, and usual values are filled in. Method: a
    /// host name that is a command, in each kind of quotation marks, in the ways to start a shell; a real shell prints
    /// it.
    #[test]
    fn values_are_no_shell_commands() {
        let argv = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let hostile = Facts { hostname: "a$(echo X)`echo X`'\"; echo X; #", ..facts() };
        let text = "echo {{HOSTNAME}}; echo \"{{HOSTNAME}}\"; echo '{{HOSTNAME}}'; echo {{CORES}}";
        for words in [
            &["sh", "-c", text][..],
            &["/bin/bash", "-o", "pipefail", "-ec", text],
            &["timeout", "10", "sh", "-ec", text],
            &["bash", "-O", "extglob", "-c", text],
            &["bash", "-c", "+O", "extglob", text],
            &["bash", "--rcfile", "x", "-c", text],
            &["su", "nobody", "-c", text],
            &["fish", "-c", text],
        ] {
            let command = CommandTemplate::new(argv(words)).command(&hostile);
            let filled = command.argv.last().unwrap();
            assert!(!filled.contains("echo X") && filled.ends_with("echo 2"), "{filled}");
        }
        for words in [
            &["sh", "{{HOSTNAME}}"][..],
            &["sh", "-c", "x", "{{HOSTNAME}}"],
            &["-c", "{{HOSTNAME}}"],
            &["bash", "-O", "extglob", "{{HOSTNAME}}"],
        ] {
            let command = CommandTemplate::new(argv(words)).command(&hostile);
            assert_eq!(command.argv.last().unwrap(), hostile.hostname);
        }
        let usual = Facts { hostname: "a-1.example", ..facts() };
        let command =
            CommandTemplate::new(argv(&["sh", "-c", "echo {{HOSTNAME}}"])).command(&usual);
        assert_eq!(command.argv[2], "echo a-1.example");
    }

    /// Goal: the same. Method: a real shell prints the value, and nothing else.
    #[cfg(unix)]
    #[test]
    fn a_shell_prints_values_as_they_are() {
        let hostile = Facts { hostname: "a$(echo X)`echo X`'\"; echo X; #", ..facts() };
        let argv = ["sh", "-c", "printf '%s\\n' {{HOSTNAME}} \"{{HOSTNAME}}\""];
        let command = CommandTemplate::new(argv.map(str::to_owned).to_vec()).command(&hostile);
        let output = std::process::Command::new(&command.argv[0])
            .args(&command.argv[1..])
            .envs(command.environment)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(&format!("{}\n", hostile.hostname)), "{text}");
        assert!(!text.lines().any(|line| line == "X"), "{text}");
    }
}
