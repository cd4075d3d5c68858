//! Checks of executor limits and of caps on cores and GPUs.

use offermill::ConfigBuilder;
use offermill::config::{ExecutorCores, ExecutorGpus};

use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;

/// Reports caps that are too low for one executor, and removes them from the builder, so that it can check the rest.
pub(crate) fn check_caps(draft: &mut SettingsDraft, mut builder: ConfigBuilder) -> ConfigBuilder {
    if let (Some(cap), ExecutorCores::Fixed(cores)) = (draft.core_cap, draft.executor_cores)
        && cap < cores
    {
        let name = draft.name_of("spark.cores.max");
        let other = draft.name_of("spark.executor.cores");
        let allowed = format!("at least the {cores:#} of one executor ({other})");
        draft.problems.push(format!("{name} is \"{cap}\", but must be {allowed}"));
        builder = builder.core_cap(None);
    }
    if let ExecutorGpus::Exactly(gpus) = draft.executor_gpus
        && gpus > draft.gpu_cap
    {
        let why = "the second caps all executors together, and must be enough for one";
        draft.report_conflict(&["spark.mesos.executor.gpus", "spark.mesos.gpus.max"], why);
        builder = builder.executor_gpus(ExecutorGpus::WhatThereIs);
    }
    builder
}

/// Reports a limit of 0 that nothing could raise: neither dynamic allocation, nor a command, which can't change the
/// goal of `--until-finished`, nor the number of tasks at a time.
pub(crate) fn check_limit(draft: &mut SettingsDraft, arguments: &RunArguments) {
    let is_fixed = arguments.until_finished || arguments.tasks.is_some();
    let has_commands = arguments.takes_commands() && !is_fixed;
    if draft.executors == Some(0) && !draft.allocation.enabled && !has_commands {
        let name = draft.name_of("spark.executor.instances");
        let allowed = match (arguments.until_finished, &arguments.tasks) {
            (true, _) => "at least 1 with --until-finished",
            (false, Some(_)) => "at least 1 with --tasks",
            (false, None) => {
                "at least 1, as nothing could raise it later; --control accepts commands that do"
            }
        };
        draft.problems.push(format!("{name} is \"0\", but must be {allowed}"));
    }
}

/// The number of executors that fit into the core cap, if both are given.
pub(crate) fn limit_by_core_cap(draft: &SettingsDraft) -> Option<u32> {
    match (draft.core_cap, draft.executor_cores) {
        (Some(cap), ExecutorCores::Fixed(cores)) => {
            u32::try_from(cap.millis() / cores.millis().max(1)).ok()
        }
        _ => None,
    }
}

/// The settings that the number of executors follows from.
const COUNTED_BY: [&str; 3] =
    ["spark.executor.instances", "spark.cores.max", "spark.executor.cores"];

/// The number of executors that `--until-finished` waits for. Reports that it is unknown.
pub(crate) fn finished_goal(draft: &mut SettingsDraft, by_core_cap: Option<u32>) -> Option<u32> {
    match draft.executors.or(by_core_cap) {
        // A number that was given, and reported because it can't be read.
        None if !COUNTED_BY.iter().all(|key| draft.is_read(key)) => None,
        None => {
            let sentence = "--until-finished needs to know how many executors there are to be: \
                            give --num-executors, or --total-executor-cores and --executor-cores";
            draft.problems.push(sentence.to_owned());
            None
        }
        known => known,
    }
}
