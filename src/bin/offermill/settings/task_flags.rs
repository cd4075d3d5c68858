//! The flags of tasks with their defaults, and the settings that tasks don't use.

use crate::settings::flags::RunArguments;
use crate::settings::unused_keys::{SPARK_ONLY, stands_for};

/// The cores of a task that doesn't say them.
pub(crate) const TASK_CORES: &str = "1";
/// The memory of a task that doesn't say it.
pub(crate) const TASK_MEMORY: &str = "512m";
/// How many times a task that doesn't say it is started again.
pub(crate) const TASK_RETRIES: &str = "0";
/// The cores of a host.
pub(crate) const HOST_CORES: &str = "0.1";
/// The memory of a host.
pub(crate) const HOST_MEMORY: &str = "32m";
/// How long a host without tasks is kept.
pub(crate) const HOST_IDLE_TIMEOUT: &str = "60s";

/// Keys that only executors of one size use, or those of Spark. One that ends in a dot stands for all that begin with
/// it.
const OF_EXECUTORS: &[&str] = &[
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor",
    "spark.executor.pyspark.memory",
    "spark.mesos.executor.memoryOverhead",
    "spark.mesos.extra.cores",
    "spark.mesos.executor.gpus",
    "spark.mesos.coarse",
    "spark.mesos.driver.failoverTimeout",
    "spark.blockManager.port",
    "spark.dynamicAllocation.",
    "spark.shuffle.",
    "spark.executor.heartbeatInterval",
    "spark.network.timeout",
    "spark.storage.blockManagerHeartbeatTimeoutMs",
    "spark.scheduler.",
    "spark.authenticate",
    "spark.memory.",
    "spark.ssl.",
    "spark.kubernetes.",
    "offermill.kubernetes.",
    "offermill.spark.",
    "offermill.mesos.frameworkIdFile",
    "offermill.executorQueue",
];

/// Keys of the exclusion of agents, which tasks use only if the number of failures was given.
const OF_EXCLUSION: &[&str] = &["spark.excludeOnFailure.", "offermill.exclusion.window"];

/// A flag of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskFlag {
    pub(crate) name: &'static str,
    /// Its value, if it was given.
    pub(crate) given: Option<String>,
    /// What its value is else.
    pub(crate) default: String,
    /// Whether it means nothing without `--task-hosts`.
    pub(crate) is_of_hosts: bool,
}

/// All flags of tasks but `--tasks` and those that have keys.
pub(crate) fn task_flags(arguments: &RunArguments) -> Vec<TaskFlag> {
    let flag = |name, given: &Option<String>, default: &str, is_of_hosts| TaskFlag {
        name,
        given: given.clone(),
        default: default.to_owned(),
        is_of_hosts,
    };
    let switch =
        |name, is_given: bool| flag(name, &is_given.then(|| "true".to_owned()), "false", false);
    let it = arguments;
    let results = it.tasks.as_ref().map_or("none".to_owned(), |name| format!("{name}.results"));
    vec![
        flag("--task-cores", &it.task_cores, TASK_CORES, false),
        flag("--task-memory", &it.task_memory, TASK_MEMORY, false),
        flag("--task-retries", &it.task_retries, TASK_RETRIES, false),
        flag("--total-task-memory", &it.total_task_memory, "no cap", false),
        flag("--placement-timeout", &it.placement_timeout, "none", false),
        flag("--results", &it.results, &results, false),
        switch("--resume", it.resume),
        switch("--task-hosts", it.task_hosts),
        flag("--host-cores", &it.host_cores, HOST_CORES, true),
        flag("--host-memory", &it.host_memory, HOST_MEMORY, true),
        flag("--host-idle-timeout", &it.host_idle_timeout, HOST_IDLE_TIMEOUT, true),
        flag("--host-queue", &it.host_queue, "default", true),
        flag("--host-program", &it.host_program, "this program", true),
    ]
}

/// Whether tasks don't use the setting with this key. `excludes`: whether agents are excluded after failures.
pub(crate) fn is_unused_by_tasks(key: &str, excludes: bool) -> bool {
    let exclusion = if excludes { &[] } else { OF_EXCLUSION };
    OF_EXECUTORS.iter().chain(SPARK_ONLY).chain(exclusion).any(|known| stands_for(known, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::table;

    /// Goal: each key that tasks don't use is that of an option, so that a misspelt one is noticed, and what they use
    /// is not among them. Method: all options, and some keys.
    #[test]
    fn unused_keys_are_those_of_options() {
        let specs = table::specs();
        for known in OF_EXECUTORS.iter().chain(SPARK_ONLY).chain(OF_EXCLUSION) {
            assert!(specs.iter().any(|spec| stands_for(known, spec.key)), "{known} is no option");
        }
        for (key, excludes, expected) in [
            ("spark.executor.cores", false, true),
            ("spark.executor.instances", false, false),
            ("spark.executorEnv.A", false, false),
            ("spark.mesos.coarse.shutdownTimeout", false, false),
            ("spark.cores.max", false, false),
            ("spark.dynamicAllocation.minExecutors", false, true),
            ("spark.excludeOnFailure.timeout", false, true),
            ("spark.excludeOnFailure.timeout", true, false),
        ] {
            assert_eq!(is_unused_by_tasks(key, excludes), expected, "{key}");
        }
    }
}
