//! Checks of the program of executors.

use std::collections::BTreeSet;
use std::path::Path;

use offermill::IdScheme;
use offermill::config::ExecutorCores;
use offermill::launch::spark::{Software, SparkExecutor};
use offermill::launch::{Command, CommandForm, CommandTemplate, Launcher, PLACEHOLDERS};

use crate::settings::checks::{executor_queue, preflight, spark, tasks};
use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;
use crate::settings::master::ClusterKind;
use crate::settings::sources::SettingSource;
use crate::settings::unused_keys::SPARK_ONLY;
use crate::settings::values::executors::{ExecutorProgram, SAMPLE};

/// The program of the executors. Reports a program that can't be started.
pub(crate) fn executor_program(
    arguments: &RunArguments,
    draft: &mut SettingsDraft,
) -> Option<ExecutorProgram> {
    if let Some(name) = &arguments.tasks {
        return tasks::task_program(name, arguments, draft);
    }
    tasks::refuse_without_tasks(arguments, draft);
    executor_queue::find_executor_queue(draft, arguments);
    if arguments.command.is_empty() {
        if draft.is_dry_run && !spark::has_driver(draft) {
            let template = CommandTemplate::new(Vec::new());
            return Some(ExecutorProgram::Command { template, shown: Vec::new() });
        }
        return spark_executors(draft);
    }
    if draft.spark.driver_url.is_some() {
        let name = draft.name_of("offermill.spark.driver");
        let sentence =
            "is for executors of Spark, a command after \"--\" for others; give one of them";
        draft.problems.push(format!("{name} {sentence}"));
    }
    let is_given =
        |key: &&&str| draft.given(key).is_some_and(|it| it.source > SettingSource::Environment);
    let ignored: Vec<String> =
        SPARK_ONLY.iter().filter(is_given).map(|key| draft.name_of(key)).collect();
    if !ignored.is_empty() && !draft.ignores_quietly {
        draft.remarks.push(format!("ignored without --spark-driver: {}", ignored.join(", ")));
    }
    let command = preflight::find_command(&arguments.command, draft);
    check_form(draft, Command::new(arguments.command.clone()).with_form(draft.form));
    let command = command?;
    // A program that was found in PATH is shown as it was given.
    let is_name = arguments.command.first().is_some_and(|program| !program.contains('/'));
    let shown = if is_name { arguments.command.clone() } else { command.clone() };
    let shown = draft.redaction.arguments(&shown);
    remark_on_placeholders(draft, &arguments.command);
    let mut template = CommandTemplate::new(command).form(draft.form);
    for (name, value) in &draft.variables {
        template = template.variable(name, value);
    }
    if let Some(setup) = draft.container.setup() {
        template = template.setup(setup);
    }
    Some(ExecutorProgram::Command { template, shown })
}

/// Spark's executors. Checks Spark's home if the agents are on this machine.
fn spark_executors(draft: &mut SettingsDraft) -> Option<ExecutorProgram> {
    let is_local = draft.is_on(ClusterKind::Local);
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
        let why = "Spark's drivers know executors by numbers, which the next run would use again";
        draft.report_conflict(&["offermill.mesos.frameworkIdFile", "offermill.spark.driver"], why);
    }
    match spark::for_run(draft, is_local) {
        Ok(Some(executor)) => {
            draft.kubernetes.runs_spark = draft.is_on(ClusterKind::Kubernetes);
            check_form(draft, executor.command(&SAMPLE));
            let log_links = spark::log_links(draft);
            Some(ExecutorProgram::Spark { executor: Box::new(executor), log_links })
        }
        Ok(None) if !spark::has_driver(draft) => {
            let sentence = "there is no command for executors: give one after \"--\", or --spark-driver for Spark's, \
                            or --tasks FILE";
            draft.problems.push(sentence.to_owned());
            None
        }
        Ok(None) => {
            // The URL is checked with the place of Spark, which is missing.
            if let Ok(Some(url)) = draft.spark.driver_url()
                && let Err(error) = SparkExecutor::new(&url, Software::Home("/".to_owned()))
            {
                draft.report_error(&error);
            }
            let or = if is_local { "" } else { ", or an archive with Spark: spark.executor.uri" };
            let sentence =
                "the place of Spark is missing: give spark.mesos.executor.home or SPARK_HOME";
            draft.problems.push(format!("{sentence}{or}"));
            None
        }
        Err(error) => {
            draft.report_error(&error);
            None
        }
    }
}

/// Adds a remark for each text in double braces that looks like a placeholder and is none.
fn remark_on_placeholders(draft: &mut SettingsDraft, command: &[String]) {
    let mut unknown: BTreeSet<&str> = BTreeSet::new();
    for text in command {
        let names = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0));
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let has_value = |name: &&str| match *name {
            "PORT" => draft.port.is_some(),
            name => PLACEHOLDERS.contains(&name),
        };
        unknown.extend(names.filter(is_name).filter(|name| !has_value(name)));
    }
    for name in unknown {
        let distance = |known: &str| strsim::levenshtein(&name.to_ascii_uppercase(), known);
        let nearest = PLACEHOLDERS.iter().min_by_key(|known| distance(known));
        let why = match nearest {
            _ if name == "PORT" => "has no value without a fixed port".to_owned(),
            Some(near) if distance(near) <= 2 => {
                format!("is no placeholder; is {{{{{near}}}}} meant?")
            }
            _ => "is no placeholder".to_owned(),
        };
        draft.remarks.push(format!("{{{{{name}}}}} in the command stays as it is: it {why}"));
    }
}

/// Reports a command that can't be written in its form.
fn check_form(draft: &mut SettingsDraft, command: Command) {
    if command.form == CommandForm::Shell
        && let Err(error) = command.shell_line()
    {
        draft.problems.push(format!("the {error}"));
    }
}

/// The default name of a run: the command's file name, if ids can begin with it.
pub(crate) fn default_name(command: &[String]) -> String {
    let program = command.first().map_or("spark", String::as_str);
    let name = Path::new(program).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    if IdScheme::unique(name, 0).is_ok() { name.to_owned() } else { "app".to_owned() }
}
