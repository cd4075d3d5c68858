//! Reads the settings of a scenario's head, as Spark's backend for Mesos understands them.

use std::collections::{BTreeMap, BTreeSet};

use offermill::config::{Compatibility, ExclusionRule, ExecutorCores, Placement};
use offermill::launch::{self, spark::SparkExecutor};
use offermill::resources::MilliCpus;
use offermill::{Config, Constraint, IdScheme};

use crate::record::{build, config_of};
use crate::scenario::{InitLine, ScenarioHead};
use crate::settings::checks::spark::{self, spark_executor};
use crate::settings::draft::SettingsDraft;
use crate::settings::table;
use crate::settings::values::containers::ContainerSettings;
use crate::text::format::count;

/// Spark's core cap if none is set.
const NO_CAP: u64 = i32::MAX as u64;
/// The number of failures after which Spark excludes an agent, for ever.
const SPARK_FAILURES: u8 = 2;

/// The settings for a replay as Spark decides.
pub(super) struct SparkStart {
    pub(super) draft: SettingsDraft,
    pub(super) config: Config,
    /// The core cap as it was set; 0 if it wasn't.
    pub(super) cap_given: f64,
    /// The launcher of Spark's executors, or why none can be launched.
    pub(super) launcher: Result<SparkExecutor, String>,
    pub(super) init: InitLine,
}

/// Reads the settings as Offermill understands them.
///
/// # Errors
/// With the first line of the answers, which says what is wrong.
pub(super) fn own(head: &ScenarioHead) -> Result<(Config, IdScheme), Box<InitLine>> {
    config_of(head).map_err(|problems| Box::new(rejected(head, &problems)))
}

/// Reads the settings as Spark's backend for Mesos understands them.
///
/// # Errors
/// With the first line of the answers, which says what is wrong.
pub(super) fn spark(head: &ScenarioHead) -> Result<SparkStart, Box<InitLine>> {
    let mut conf = head.conf.clone();
    // Offermill rejects a cap of zero or less; Spark accepts it.
    let idle = conf.get(CORES_MAX).and_then(|text| text.trim().parse::<i32>().ok());
    let idle = idle.filter(|cap| *cap <= 0).map(i64::from);
    if idle.is_some() {
        conf.remove(CORES_MAX);
    }
    // Spark has no such setting.
    conf.remove("spark.mesos.executor.gpus");
    drop_unreadable_items(&mut conf);
    let unreadable_labels = drop_unreadable_labels(&mut conf);
    let mut draft = table::read_scenario(&conf);
    draft.container.drop_unused_by_spark();
    spark::check(&mut draft);
    if idle.is_some() {
        draft.core_cap = Some(MilliCpus::ZERO);
    }
    let max_cores = draft.core_cap.map_or(NO_CAP, MilliCpus::whole_cores);
    let cap_given = draft.core_cap.map_or(0.0, |cap| cap.millis() as f64 / 1000.0);
    // The cap is rounded down to whole executors.
    let step = match draft.executor_cores {
        ExecutorCores::Fixed(cores) => cores.whole_cores().max(1),
        ExecutorCores::WholeOffer => 1,
    };
    let max_cores = max_cores - max_cores % step;
    let shown: serde_json::Number = match idle {
        Some(cap) => (cap - cap % i64::try_from(step).unwrap_or(i64::MAX)).into(),
        None => max_cores.into(),
    };
    draft.core_cap = draft.core_cap.map(|_| MilliCpus::from_cores(max_cores));
    draft.placement = Placement::RoundRobin;
    let launcher =
        spark_executor(&draft).map_err(|error| draft.report_error(&error)).ok().flatten();
    let launcher = match unreadable_labels.or_else(|| unpaired_secrets(&draft.container)) {
        Some(why) => Err(why),
        None => launcher.ok_or_else(|| {
            "neither spark.mesos.executor.home nor spark.executor.uri is set".to_owned()
        }),
    };
    if launcher.is_err() {
        // Executors that can't be launched must not be placed.
        draft.core_cap = Some(MilliCpus::ZERO);
    }
    let exclusion =
        ExclusionRule { failures: SPARK_FAILURES, window: std::time::Duration::MAX, expiry: None };
    // Only a request sets a limit. With dynamic allocation, the limit is 0 until then.
    let limit = draft.allocation.enabled.then_some(0);
    match build(&mut draft, limit, Some(exclusion), Compatibility::SPARK_3_5) {
        Some(config) if draft.problems.is_empty() => {
            let init = init(head, &draft, &config, shown);
            Ok(SparkStart { draft, config, cap_given, launcher, init })
        }
        _ => Err(Box::new(rejected(head, &draft.problems))),
    }
}

/// Removes items of lists that can't be parsed, as Spark does with a warning.
pub(super) fn drop_unreadable_items(conf: &mut BTreeMap<String, String>) {
    /// A key, and whether an item can be parsed.
    type List = (&'static str, fn(&str) -> bool);
    const LISTS: [List; 4] = [
        ("spark.mesos.executor.docker.volumes", |item| launch::volumes(item).is_ok()),
        ("spark.mesos.executor.docker.portmaps", |item| launch::port_mappings(item).is_ok()),
        ("spark.mesos.executor.docker.parameters", |item| launch::parameters(item).is_ok()),
        ("spark.mesos.uris", |item| launch::uris(item).is_ok()),
    ];
    for (key, is_readable) in LISTS {
        if let Some(text) = conf.get_mut(key) {
            let items = text.split(',').map(str::trim);
            let readable: Vec<&str> =
                items.filter(|item| !item.is_empty() && is_readable(item)).collect();
            *text = readable.join(",");
        }
    }
}

/// Removes labels that can't be parsed: Spark starts in spite of them, and throws at each launch. Returns what is wrong
/// with them. Spark doesn't read the labels of a network without a name.
pub(super) fn drop_unreadable_labels(conf: &mut BTreeMap<String, String>) -> Option<String> {
    const TASK_LABELS: &str = "spark.mesos.task.labels";
    const NETWORK_LABELS: &str = "spark.mesos.network.labels";
    if conf.get("spark.mesos.network.name").is_none_or(|name| name.trim().is_empty()) {
        conf.remove(NETWORK_LABELS);
    }
    let mut problem = None;
    for key in [TASK_LABELS, NETWORK_LABELS] {
        if let Some(Err(error)) = conf.get(key).map(|text| launch::labels(text)) {
            conf.remove(key);
            problem.get_or_insert_with(|| format!("{key}: {error}"));
        }
    }
    problem
}

/// Returns what is wrong with the places of secrets, if Spark throws at each launch because of them.
fn unpaired_secrets(container: &ContainerSettings) -> Option<String> {
    let names = container.secret_names.len();
    let values = container.secret_values.len();
    if names > 0 && values > 0 {
        return Some("secrets are given both by their names and by their values".to_owned());
    }
    let secrets = names + values;
    let places = [container.secret_variables.len(), container.secret_files.len()];
    let unpaired = places.into_iter().find(|places| *places > 0 && *places != secrets)?;
    let places = count(unpaired as u64, "place");
    Some(format!("secrets: {places} for {}", count(secrets as u64, "secret")))
}

fn init(
    head: &ScenarioHead,
    draft: &SettingsDraft,
    config: &Config,
    max_cores: serde_json::Number,
) -> InitLine {
    InitLine {
        init: "ok".to_owned(),
        executor_memory: Some(config.memory_taken().get()),
        max_cores: Some(max_cores),
        reject_unmet_constraints_s: Some(draft.refusals.unmet_constraint.as_secs().into()),
        reject_max_cores_s: Some(draft.refusals.reached_cap.as_secs().into()),
        locality_wait_ms: u64::try_from(draft.locality_wait.as_millis()).ok(),
        constraints: Some(allowed_values(head)),
        ..InitLine::default()
    }
}

const CORES_MAX: &str = "spark.cores.max";
const CONSTRAINTS: &str = "spark.mesos.constraints";

/// Returns the first line of the answers for invalid settings, in Spark's words if the constraint is the only one.
pub(super) fn rejected(head: &ScenarioHead, problems: &[String]) -> InitLine {
    let sentences = problems.join("; ");
    let is_invalid = |text: &&String| Constraint::parse(text).is_err();
    let constraints = head.conf.get(CONSTRAINTS).filter(is_invalid).filter(|_| problems.len() == 1);
    let (error, cause) = match constraints {
        Some(text) => (format!("Bad constraint string: {text}"), Some(sentences)),
        None => (sentences, None),
    };
    let class = |text: String| format!("IllegalArgumentException: {text}");
    InitLine {
        init: "error".to_owned(),
        error: Some(class(error)),
        cause: cause.map(class),
        ..InitLine::default()
    }
}

/// Returns the values that a constraint allows, by attribute, for the first line of the answers. Decisions use the
/// library's own parser.
pub(super) fn allowed_values(head: &ScenarioHead) -> BTreeMap<String, Vec<String>> {
    let text = head.conf.get(CONSTRAINTS).map_or("", String::as_str);
    let entry = |entry: &str| {
        let (name, values) = entry.trim().split_once(':')?;
        let values = values.trim_end_matches(',');
        let values: BTreeSet<&str> = match values {
            "" => BTreeSet::new(),
            values => values.split(',').collect(),
        };
        Some((name.to_owned(), values.into_iter().map(str::to_owned).collect()))
    };
    match text {
        text if text.trim_start().starts_with("expr::") => BTreeMap::new(),
        text => text.split(';').filter_map(entry).collect(),
    }
}
