//! Reads the settings of a scenario's head, as Spark's fine-grained backend for Mesos understands them.

use offermill::Constraint;
use offermill::config::text::parse_count;

use super::executor::executor;
use crate::replay::spark_settings::{
    allowed_values, drop_unreadable_items, drop_unreadable_labels, rejected,
};
use crate::scenario::{InitLine, ScenarioHead, TaskLine};
use crate::settings::checks::spark::java_options;
use crate::settings::draft::SettingsDraft;
use crate::settings::table;

/// Whether Spark's backend for Mesos is the coarse-grained one.
const COARSE: &str = "spark.mesos.coarse";
/// The cores that an executor takes for itself.
const EXECUTOR_CORES: &str = "spark.mesos.mesosExecutor.cores";
const TASK_FAILURES: &str = "spark.task.maxFailures";
/// Settings that the fine-grained backend doesn't read, and that could be invalid otherwise, or contradict others. Keys
/// that end with a dot stand for all that begin with them.
const UNREAD: [&str; 12] = [
    "spark.cores.max",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.mesos.gpus.max",
    "spark.mesos.executor.gpus",
    "spark.mesos.extra.cores",
    "spark.blockManager.port",
    "spark.mesos.task.labels",
    "spark.mesos.executor.secret.",
    "spark.dynamicAllocation.",
    "spark.shuffle.service.",
    "spark.mesos.fetcherCache.enable",
];
/// The factor of the memory overhead if none is set.
const OVERHEAD_FACTOR: f64 = 0.1;
/// What Spark's scheduler of tasks allows by default.
const TASK_FAILURES_DEFAULT: u32 = 4;

/// The settings for a replay as Spark's fine-grained backend decides.
pub(crate) struct FineGrainedStart {
    pub(super) constraint: Constraint,
    /// How long an offer is refused that doesn't meet the constraint, in whole seconds.
    pub(super) unmet_seconds: f64,
    /// The cores and the memory in MiB that an executor takes for itself.
    pub(super) executor_cores: f64,
    pub(super) executor_memory: f64,
    pub(super) task_cores: u32,
    pub(super) task_failures: u32,
    /// The options of Java of executors, with placeholders.
    pub(super) java_options: String,
    /// What an executor is launched with, or why none can be launched.
    pub(crate) executor: Result<TaskLine, String>,
    pub(crate) init: InitLine,
}

/// Whether a scenario is for Spark's fine-grained backend.
pub(crate) fn is_fine_grained(head: &ScenarioHead) -> bool {
    head.conf.get(COARSE).is_some_and(|text| text.trim().eq_ignore_ascii_case("false"))
}

/// Reads the settings.
///
/// # Errors
/// With the first line of the answers, which says what is wrong.
pub(crate) fn fine_grained(head: &ScenarioHead) -> Result<FineGrainedStart, Box<InitLine>> {
    let mut conf = head.conf.clone();
    let is_unread = |key: &str| {
        let means = |unread: &&str| match unread.ends_with('.') {
            true => key.starts_with(*unread),
            false => key == *unread,
        };
        key == COARSE || UNREAD.iter().any(means)
    };
    conf.retain(|key, _| !is_unread(key));
    drop_unreadable_items(&mut conf);
    let unreadable = drop_unreadable_labels(&mut conf);
    let mut draft = table::read_scenario(&conf);
    draft.container.drop_unused_by_spark();
    let executor_cores = executor_cores(head, &mut draft);
    let task_failures = task_failures(head, &mut draft);
    if !draft.problems.is_empty() {
        return Err(Box::new(rejected(head, &draft.problems)));
    }
    draft.overhead_factor.get_or_insert(OVERHEAD_FACTOR);
    let memory = draft.memory.get() + draft.overhead().unwrap_or_default().get();
    let launched = executor(&draft).ok_or_else(|| {
        "spark.mesos.executor.home isn't set, which fine-grained mode needs".to_owned()
    });
    let unmet_seconds = draft.refusals.unmet_constraint.as_secs();
    let init = InitLine {
        init: "ok".to_owned(),
        executor_memory: Some(memory),
        reject_unmet_constraints_s: Some(unmet_seconds.into()),
        mesos_executor_cores: Some(executor_cores),
        task_cpus: Some(draft.spark.task_cores),
        constraints: Some(allowed_values(head)),
        ..InitLine::default()
    };
    Ok(FineGrainedStart {
        unmet_seconds: unmet_seconds as f64,
        executor_cores,
        executor_memory: memory as f64,
        task_cores: draft.spark.task_cores,
        task_failures,
        java_options: java_options(&draft.spark),
        executor: unreadable.map_or(launched, Err),
        constraint: draft.constraint,
        init,
    })
}

/// Reads the cores of an executor itself.
fn executor_cores(head: &ScenarioHead, draft: &mut SettingsDraft) -> f64 {
    let Some(text) = head.conf.get(EXECUTOR_CORES) else { return 1.0 };
    java_double(text).filter(|cores| cores.is_finite() && *cores >= 0.0).unwrap_or_else(|| {
        let problem = format!("{EXECUTOR_CORES} is {text:?}, but must be a number of 0 or more");
        draft.problems.push(problem);
        0.0
    })
}

/// Reads a decimal number as `java.lang.Double.parseDouble` does: with a `d` or an `f` at its end, too. Hexadecimal
/// numbers aren't read.
fn java_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|letter| letter <= ' ');
    text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text).parse().ok()
}

/// Reads the failures of one task after which its stage is given up.
fn task_failures(head: &ScenarioHead, draft: &mut SettingsDraft) -> u32 {
    let Some(text) = head.conf.get(TASK_FAILURES) else { return TASK_FAILURES_DEFAULT };
    match parse_count(TASK_FAILURES, text, 1..=i32::MAX as u64) {
        Ok(failures) => failures as u32,
        Err(error) => {
            draft.report_error(&error);
            TASK_FAILURES_DEFAULT
        }
    }
}
