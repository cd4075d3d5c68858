//! [`CommandTemplate`]: an argument list with placeholders for an executor's own values.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::placeholder_text::PlaceholderText;
use super::{
    Command, CommandForm, EnvironmentVariable, LaunchContext, Launcher, Setup, ShellPrologue,
};

/// The names of the placeholders of a [`CommandTemplate`], without braces.
pub const PLACEHOLDERS: [&str; 7] =
    ["EXECUTOR_ID", "APP_ID", "AGENT_ID", "HOSTNAME", "CORES", "MEMORY_MB", "PORT"];

/// The variables with the values of [`PLACEHOLDERS`], in their order.
const VARIABLES: [&str; 7] = [
    "OFFERMILL_EXECUTOR_ID",
    "OFFERMILL_APP_ID",
    "OFFERMILL_AGENT_ID",
    "OFFERMILL_HOSTNAME",
    "OFFERMILL_CORES",
    "OFFERMILL_MEMORY_MB",
    "OFFERMILL_PORT",
];

/// The positions of the placeholders whose values come from the cluster: application, agent and host name.
const FROM_CLUSTER: Range<usize> = 1..4;

/// An argument list in which the placeholders `{{EXECUTOR_ID}}`, `{{APP_ID}}`, `{{AGENT_ID}}`, `{{HOSTNAME}}`,
/// `{{CORES}}`, `{{MEMORY_MB}}` and `{{PORT}}` are replaced by an executor's own values. The same values are passed as
/// the environment variables `OFFERMILL_EXECUTOR_ID` and so on.
///
/// Each argument remains one argument for all values. An argument may be text that a shell executes (`sh -c TEXT`, `su
/// USER -c TEXT`, `ssh HOST TEXT`), and the host name, the agent's id and the application's id come from the cluster.
/// Therefore in these three every character besides letters, digits and `%+,-.:@_` is replaced by `_`, and at the
/// beginning each besides letters, digits, `:` and `_`: a program could take `-x` for an option. An empty one becomes
/// `_`. Names of hosts and ids of Mesos contain no other characters, so for them nothing changes. The environment
/// variables are unchanged.
///
/// Other text in double braces is unchanged. Without a fixed port, `{{PORT}}` is unchanged as well, and
/// `OFFERMILL_PORT` is not set. So it is with `{{AGENT_ID}}` and `{{HOSTNAME}}` as long as the executor's agent isn't
/// known, because the cluster chooses it after the launch: its manager fills them in.
///
/// ```
/// use offermill::launch::{CommandTemplate, LaunchContext, Launcher};
/// use offermill::resources::{Mebibytes, MilliCpus};
///
/// let argv = ["worker", "--id={{EXECUTOR_ID}}"].map(str::to_owned).to_vec();
/// let template = CommandTemplate::new(argv).variable("THREADS", "{{CORES}}");
/// let (cores, memory) = (MilliCpus::from_cores(2), Mebibytes::new(1024));
/// let command = template.command(&LaunchContext::new("etl-1.7", "agent-1", "a1.example", cores, memory));
/// assert_eq!(command.argv, ["worker", "--id=etl-1.7"]);
/// assert!(command.environment.contains(&("THREADS".into(), "2".to_owned())));
/// ```
#[derive(Clone, Debug)]
pub struct CommandTemplate {
    argv: Vec<PlaceholderText>,
    environment: Vec<(String, PlaceholderText)>,
    /// Which of [`PLACEHOLDERS`] the texts contain.
    contained: [bool; PLACEHOLDERS.len()],
    form: CommandForm,
    setup: Option<Arc<Setup>>,
}

impl CommandTemplate {
    /// Creates a template of `argv` without variables of its own.
    #[must_use]
    pub fn new(argv: Vec<String>) -> CommandTemplate {
        let mut template = CommandTemplate {
            argv: Vec::with_capacity(argv.len()),
            environment: Vec::new(),
            contained: [false; PLACEHOLDERS.len()],
            form: CommandForm::default(),
            setup: None,
        };
        for argument in argv {
            let argument = template.text(&argument);
            template.argv.push(argument);
        }
        template
    }

    /// Splits a text of this template.
    fn text(&mut self, text: &str) -> PlaceholderText {
        let text = PlaceholderText::new(text, &PLACEHOLDERS);
        text.positions().for_each(|position| self.contained[position] = true);
        text
    }

    /// Adds an environment variable. Placeholders in its value are filled in.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = self.text(&value.into());
        self.environment.push((name.into(), value));
        self
    }

    /// Sets the form of the command.
    #[must_use]
    pub fn form(mut self, form: CommandForm) -> Self {
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
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let (cores, memory) = (context.cores.to_string(), context.memory.get().to_string());
        let port = context.port.map(|port| port.to_string());
        let is_bound = !context.agent_id.is_empty();
        // In the order of the placeholders. Variables have what comes from the cluster unchanged, arguments as words.
        let values = [
            Some(context.executor),
            Some(context.app),
            is_bound.then_some(context.agent_id),
            is_bound.then_some(context.hostname),
            Some(&*cores),
            Some(&*memory),
            port.as_deref(),
        ];
        let mut environment = Vec::with_capacity(values.len() + self.environment.len());
        let known = VARIABLES.iter().zip(values).filter_map(|(name, value)| Some((*name, value?)));
        // Written where they stay: a processor waits when what it has just written in small pieces is moved in large
        // ones.
        environment.resize_with(known.clone().count(), EnvironmentVariable::default);
        for ((name, value), variable) in known.zip(&mut environment) {
            variable.0 = Cow::Borrowed(name);
            variable.1.push_str(value);
        }
        let words: [Option<Cow<'_, str>>; PLACEHOLDERS.len()] = std::array::from_fn(|position| {
            let is_word = FROM_CLUSTER.contains(&position) && self.contained[position];
            values[position].map(|value| if is_word { word(value) } else { Cow::Borrowed(value) })
        });
        let filled = words.each_ref().map(Option::as_deref);
        let argv = self.argv.iter().map(|argument| argument.fill(&filled)).collect();
        let own = self.environment.iter();
        environment.extend(own.map(|(name, value)| (name.clone().into(), value.fill(&filled))));
        let (setup, prologue) = (self.setup.clone(), ShellPrologue::default());
        Command { argv, environment, form: self.form, setup, prologue, ..Command::default() }
    }
}

/// A text of the cluster as a word, never an empty one, that means nothing to a shell in any position, is no option and
/// leads to no other folder. A shell can't be told by its name: many programs start one with one of their arguments.
fn word(text: &str) -> Cow<'_, str> {
    if text.is_empty() {
        return Cow::Borrowed("_");
    }
    // Most are ASCII, and are compared byte by byte.
    let is_ascii_word = text.is_ascii()
        && text.starts_with(|first| is_plain(0, first))
        && text.bytes().all(|byte| is_plain(1, byte.into()));
    if is_ascii_word || text.char_indices().all(|(at, c)| is_plain(at, c)) {
        return Cow::Borrowed(text);
    }
    let replaced = |(at, c): (usize, char)| if is_plain(at, c) { c } else { '_' };
    Cow::Owned(text.char_indices().map(replaced).collect())
}

/// Whether a character may stand at this place of a word.
fn is_plain(at: usize, c: char) -> bool {
    match c {
        ':' | '_' => true,
        '%' | '+' | ',' | '-' | '.' | '@' => at > 0,
        _ => c.is_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{Mebibytes, MilliCpus};

    fn context() -> LaunchContext<'static> {
        LaunchContext {
            executor: "etl-1-0.0",
            app: "{{CORES}}",
            agent_id: "a-1",
            hostname: "h; rm -rf /",
            cores: MilliCpus::from_cores(2),
            memory: Mebibytes::new(512),
            gpus: crate::resources::Gpus::ZERO,
            port: None,
            tag: None,
        }
    }

    /// Goal: each placeholder is replaced by its value, once, and nothing else changes. Method: a value that looks like
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
        let command = template.command(&context());
        assert_eq!(
            command.argv,
            ["run", "etl-1-0.0@h__rm_-rf__", "__CORES__", "{{X}} {{PORT}} {{", "{{2}}"]
        );
        assert!(command.environment.contains(&("M".into(), "512m".to_owned())));
        assert!(command.environment.contains(&("OFFERMILL_CORES".into(), "2".to_owned())));
    }

    /// Goal: what only the cluster will know is left to its manager. Method: an executor without an agent.
    #[test]
    fn an_unknown_agent_is_left_to_the_manager() {
        let argv = ["run", "{{AGENT_ID}}@{{HOSTNAME}}", "{{CORES}}"].map(str::to_owned).to_vec();
        let context = LaunchContext { agent_id: "", hostname: "", ..context() };
        let command = CommandTemplate::new(argv).command(&context);
        assert_eq!(command.argv, ["run", "{{AGENT_ID}}@{{HOSTNAME}}", "2"]);
        let is_agent = |name: &str| name.ends_with("AGENT_ID") || name.ends_with("HOSTNAME");
        assert!(!command.environment.iter().any(|(name, _)| is_agent(name)));
    }

    /// Goal: no program can take a value of the cluster for a command, an option or another folder. Method: host names,
    /// ids of agents and of applications with each ASCII character, at the beginning and later, in an argument and in a
    /// variable; usual ones stay as they are.
    #[test]
    fn values_of_the_cluster_are_words() {
        let argv = ["su", "-c{{HOSTNAME}} {{AGENT_ID}} {{APP_ID}}"].map(str::to_owned).to_vec();
        let template = CommandTemplate::new(argv).variable("OPTIONS", "{{HOSTNAME}}");
        for c in (0..128u8).map(char::from) {
            let value = format!("{c}x{c}");
            let context =
                LaunchContext { hostname: &value, agent_id: &value, app: &value, ..context() };
            let command = template.command(&context);
            let filled = command.argv[1].strip_prefix("-c").unwrap();
            let [first, second, third] = filled.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{value:?}: {filled}")
            };
            assert_eq!((first, second), (second, third));
            let is_word = |c: char| c.is_ascii_alphanumeric() || "%+,-.:@_".contains(c);
            let is_option = first.starts_with(['-', '+', '.', '@', '%', ',']);
            assert!(first.chars().all(is_word) && !is_option, "{first}");
            assert_eq!(first.chars().count(), 3);
            assert!(command.environment.contains(&("OPTIONS".into(), first.to_owned())));
            assert!(command.environment.contains(&("OFFERMILL_HOSTNAME".into(), value)));
        }
        assert_eq!(word(""), "_");
        for usual in ["a-1.example", "10.0.0.1", "fe80::1%eth0", "0a1b-S12", "rechner.größe"] {
            assert_eq!(word(usual), usual);
        }
    }

    /// Goal: whatever program starts a shell, it executes no value as a command. Method: real shells in four spellings
    /// print a host name that is a command, and the variable, which is unchanged.
    #[cfg(unix)]
    #[test]
    fn a_shell_executes_no_value() {
        let hostile = LaunchContext { hostname: "a$(echo X)`echo X`'\"; echo X; #", ..context() };
        let text =
            "printf '%s\\n' {{HOSTNAME}} \"{{HOSTNAME}}\" '{{HOSTNAME}}' \"$OFFERMILL_HOSTNAME\"";
        for start in [
            &["sh", "-c"][..],
            &["env", "-S", "sh -ec"],
            &["bash", "-oc", "pipefail"],
            &["xargs", "-a", "/dev/null", "sh", "-c"],
        ] {
            let argv = start.iter().copied().chain([text]).map(str::to_owned).collect();
            let command = CommandTemplate::new(argv).command(&hostile);
            let output = std::process::Command::new(&command.argv[0])
                .args(&command.argv[1..])
                .envs(command.environment.iter().map(|(name, value)| (&**name, value)))
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let filled = "a__echo_X__echo_X_____echo_X___";
            let lines = [filled, filled, filled, hostile.hostname];
            assert_eq!(printed.lines().collect::<Vec<_>>(), lines, "{start:?}");
        }
    }
}
