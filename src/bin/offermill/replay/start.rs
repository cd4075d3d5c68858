//! From a scenario's head to settings.

use std::collections::{BTreeMap, BTreeSet};

use offermill::config::{Conduct, ExclusionRule, ExecutorCores, Placement};
use offermill::launch::{self, spark::SparkExecutor};
use offermill::resources::MilliCpus;
use offermill::{Config, IdScheme};

use crate::record::{build, config_of};
use crate::scenario::{Head, Init};
use crate::settings::draft::Draft;
use crate::settings::sources::Layers;
use crate::settings::spark::{self, spark_executor};

/// What Spark has for a core cap that isn't given.
const NO_CAP: u64 = i32::MAX as u64;
/// So many failures exclude an agent from Spark, for ever.
const SPARK_FAILURES: u8 = 2;

/// Settings that can be played with in Spark's way.
pub(super) struct Start {
    pub(super) draft: Draft,
    pub(super) config: Config,
    /// The core cap as it was given, 0 without.
    pub(super) cap_given: f64,
    /// What starts Spark's executors, if it is said where Spark is.
    pub(super) launcher: Option<SparkExecutor>,
    pub(super) init: Init,
}

/// Reads the settings of our own conduct. `Err` says what is wrong with them.
pub(super) fn own(head: &Head) -> Result<(Config, IdScheme), Box<Init>> {
    config_of(head).map_err(|problems| Box::new(refusal(head, &problems)))
}

/// Reads the settings as Spark's backend for Mesos understands them. `Err` says what is wrong with them.
pub(super) fn spark(head: &Head) -> Result<Start, Box<Init>> {
    let mut conf = head.conf.clone();
    // A cap of nothing, or less, is one that our own conduct refuses.
    let idle = conf.get(CORES_MAX).and_then(|text| text.trim().parse::<i32>().ok());
    let idle = idle.filter(|cap| *cap <= 0).map(i64::from);
    if idle.is_some() {
        conf.remove(CORES_MAX);
    }
    // Not one of Spark's.
    conf.remove("spark.mesos.executor.gpus");
    leave_out_unreadable(&mut conf);
    let can_launch = take_out_what_fails_late(&mut conf);
    let mut draft = Draft::read(Layers::of_scenario(&conf));
    draft.container.leave_images_what_is_theirs();
    spark::check(&mut draft);
    if idle.is_some() {
        draft.core_cap = Some(MilliCpus::ZERO);
    }
    let max_cores = draft.core_cap.map_or(NO_CAP, MilliCpus::whole_cores);
    let cap_given = draft.core_cap.map_or(0.0, |cap| cap.millis() as f64 / 1000.0);
    // Whole executors only.
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
    let launcher = spark_executor(&draft).map_err(|error| draft.complain(&error)).ok().flatten();
    let launcher = launcher.filter(|_| can_launch);
    if launcher.is_none() {
        // What can't be started must not be placed.
        draft.core_cap = Some(MilliCpus::ZERO);
    }
    let exclusion =
        ExclusionRule { failures: SPARK_FAILURES, window: std::time::Duration::MAX, expiry: None };
    // Nothing but a request sets a limit: that of dynamic allocation is 0 until then.
    let limit = draft.allocation.enabled.then_some(0);
    match build(&mut draft, limit, Some(exclusion), Conduct::SPARK_3_5) {
        Some(config) if draft.problems.is_empty() => {
            let init = init(head, &draft, &config, shown);
            Ok(Start { draft, config, cap_given, launcher, init })
        }
        _ => Err(Box::new(refusal(head, &draft.problems))),
    }
}

/// Drops items of lists that can't be read, as Spark does with a warning.
fn leave_out_unreadable(conf: &mut BTreeMap<String, String>) {
    /// A key, and whether an item can be read.
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

/// Drops labels that can't be read: Spark begins all the same, and throws whenever it would launch something. Whether
/// there were none.
fn take_out_what_fails_late(conf: &mut BTreeMap<String, String>) -> bool {
    const LABELS: [&str; 2] = ["spark.mesos.task.labels", "spark.mesos.network.labels"];
    let given = conf.len();
    conf.retain(|key, text| !LABELS.contains(&key.as_str()) || launch::labels(text).is_ok());
    conf.len() == given
}

fn init(head: &Head, draft: &Draft, config: &Config, max_cores: serde_json::Number) -> Init {
    Init {
        init: "ok".to_owned(),
        executor_memory: Some(config.memory_taken().get()),
        max_cores: Some(max_cores),
        reject_unmet_constraints_s: Some(draft.refusals.unmet_constraint.as_secs().into()),
        reject_max_cores_s: Some(draft.refusals.reached_cap.as_secs().into()),
        locality_wait_ms: u64::try_from(draft.locality_wait.as_millis()).ok(),
        constraints: Some(listed(head.conf.get(CONSTRAINTS).map_or("", String::as_str))),
        ..Init::default()
    }
}

const CORES_MAX: &str = "spark.cores.max";
const CONSTRAINTS: &str = "spark.mesos.constraints";

/// Settings that nothing can be played with, told as Spark does where it tells them.
fn refusal(head: &Head, problems: &[String]) -> Init {
    let told = problems.join("; ");
    let constraints = head.conf.get(CONSTRAINTS).filter(|_| {
        let one = [problems.len() == 1, told.starts_with(CONSTRAINTS)];
        one == [true; 2]
    });
    let (error, cause) = match constraints {
        Some(text) => (format!("Bad constraint string: {text}"), Some(told)),
        None => (told, None),
    };
    let class = |text: String| format!("IllegalArgumentException: {text}");
    Init {
        init: "error".to_owned(),
        error: Some(class(error)),
        cause: cause.map(class),
        ..Init::default()
    }
}

/// The values that a constraint allows, by attribute. Only for showing: the library reads the constraint.
fn listed(text: &str) -> BTreeMap<String, Vec<String>> {
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
