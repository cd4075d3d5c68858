//! What executors are: a command of the user's, or Spark's own.

use std::path::Path;

use offermill::IdScheme;
use offermill::config::ExecutorCores;
use offermill::launch::spark::SparkExecutor;
use offermill::launch::{Command, CommandTemplate, Facts, Form, Launcher};
use offermill::resources::{Mebibytes, MilliCpus};

use crate::settings::draft::Draft;
use crate::settings::flags::RunArguments;
use crate::settings::master::Kind;
use crate::settings::preflight;
use crate::settings::sources::Layer;
use crate::settings::spark;
use crate::target;

/// What executors are.
#[derive(Clone, Debug)]
pub(crate) enum Executors {
    /// A command of the user's.
    Command {
        template: CommandTemplate,
        /// The command as it is started.
        shown: Vec<String>,
    },
    /// Spark's.
    Spark(Box<SparkExecutor>),
}

impl Launcher for Executors {
    fn command(&self, facts: &Facts<'_>) -> Command {
        match self {
            Executors::Command { template, .. } => template.command(facts),
            Executors::Spark(executor) => executor.command(facts),
        }
    }
}

impl Executors {
    /// What they are, in words for a command line.
    pub(crate) fn shown(&self) -> Vec<String> {
        match self {
            Executors::Command { shown, .. } => shown.clone(),
            // What is an executor's own comes after the driver's URL.
            Executors::Spark(executor) => {
                executor.command(&SAMPLE).argv.into_iter().take(4).collect()
            }
        }
    }

    /// What they are, for people.
    pub(crate) fn phrase(&self) -> String {
        match self {
            Executors::Command { shown, .. } => shown.join(" "),
            Executors::Spark(executor) => {
                let argv = executor.command(&SAMPLE).argv;
                format!("Spark for {}", argv.get(3).map_or("a driver", String::as_str))
            }
        }
    }

    /// How their ids are written.
    pub(crate) fn ids(&self, unique: IdScheme) -> IdScheme {
        if self.are_named() { unique } else { IdScheme::plain() }
    }

    /// Whether their ids say whose they are. Spark's drivers read them as numbers.
    pub(crate) fn are_named(&self) -> bool {
        matches!(self, Executors::Command { .. })
    }
}

/// An executor like any other.
const SAMPLE: Facts<'static> = Facts {
    executor: "0",
    app: "app",
    agent_id: "agent",
    hostname: "host",
    cores: MilliCpus::from_millis(1000),
    memory: Mebibytes::new(1024),
    port: None,
};

/// What only Spark's executors have.
const SPARKS_OWN: &[&str] = &[
    "spark.driver.host",
    "spark.driver.port",
    "spark.app.id",
    "offermill.spark.hostname",
    "spark.mesos.executor.home",
    "spark.executor.uri",
    "spark.executor.extraClassPath",
    "spark.executor.extraLibraryPath",
    "spark.executor.defaultJavaOptions",
    "spark.executor.extraJavaOptions",
    "offermill.spark.moduleOptions",
    "spark.task.cpus",
    "offermill.spark.user",
];

/// The executors that were asked for. Complains about what can't be started.
pub(crate) fn find(arguments: &RunArguments, draft: &mut Draft) -> Option<Executors> {
    if arguments.command.is_empty() {
        if draft.only_looks && !spark::has_driver(draft) {
            let (template, shown) = (CommandTemplate::new(Vec::new()), Vec::new());
            return Some(Executors::Command { template, shown });
        }
        return sparks(draft);
    }
    if draft.spark.driver_url.is_some() {
        let name = draft.name_of("offermill.spark.driver");
        let sentence =
            "is for executors of Spark, and a command after \"--\" for others; give one of them";
        draft.problems.push(format!("{name} {sentence}"));
    }
    let is_idle = |key: &&&str| draft.given(key).is_some_and(|it| it.layer > Layer::Environment);
    let idle: Vec<String> =
        SPARKS_OWN.iter().filter(is_idle).map(|key| draft.name_of(key)).collect();
    if !idle.is_empty() {
        draft.remarks.push(format!("ignored without --spark-driver: {}", idle.join(", ")));
    }
    let command = target::find_command(&arguments.command, draft);
    let whole = Command { argv: arguments.command.clone(), ..Command::default() };
    check_form(draft, Command { form: draft.form, ..whole });
    let shown = command?;
    let mut template = CommandTemplate::new(shown.clone()).form(draft.form);
    for (name, value) in &draft.variables {
        template = template.variable(name, value);
    }
    if let Some(setup) = draft.container.setup() {
        template = template.setup(setup);
    }
    Some(Executors::Command { template, shown })
}

/// Spark's executors, with a home that is there if it has to be here.
fn sparks(draft: &mut Draft) -> Option<Executors> {
    let is_local = draft.master.as_ref().is_some_and(|(_, it)| it.kind() == Kind::Local);
    if is_local && draft.spark.home.is_some() {
        preflight::find_spark(draft);
    }
    if let ExecutorCores::Fixed(cores) = draft.executor_cores
        && cores.millis() % 1000 != 0
    {
        let name = draft.name_of("spark.executor.cores");
        let sentence =
            format!("{name} is \"{cores}\", but must be a whole number: Spark counts whole cores");
        draft.problems.push(sentence);
    }
    if draft.mesos.framework_id_file.is_some() {
        let why = "Spark's drivers know executors by numbers, which the next run would give again";
        draft.contradict(&["offermill.mesos.frameworkIdFile", "offermill.spark.driver"], why);
    }
    match spark::for_run(draft, is_local) {
        Ok(Some(executor)) => {
            check_form(draft, executor.command(&SAMPLE));
            Some(Executors::Spark(Box::new(executor)))
        }
        Ok(None) if !spark::has_driver(draft) => {
            let sentence = "there is no command for executors: give one after \"--\", or --spark-driver for Spark's";
            draft.problems.push(sentence.to_owned());
            None
        }
        Ok(None) => {
            let or = if is_local { "" } else { ", or an archive with Spark: spark.executor.uri" };
            let sentence =
                "it isn't said where Spark is: give spark.mesos.executor.home or SPARK_HOME";
            draft.problems.push(format!("{sentence}{or}"));
            None
        }
        Err(error) => {
            draft.complain(&error);
            None
        }
    }
}

/// Complains about a command that can't be said in its form.
fn check_form(draft: &mut Draft, command: Command) {
    if command.form == Form::Shell
        && let Err(error) = command.shell_line()
    {
        draft.problems.push(format!("the {error}"));
    }
}

/// A name for a run without one: the command's file name, if ids can begin with it.
pub(crate) fn name_after(command: &[String]) -> String {
    let program = command.first().map_or("spark", String::as_str);
    let name = Path::new(program).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    if IdScheme::unique(name, 0).is_ok() { name.to_owned() } else { "app".to_owned() }
}
