//! The first line of a journal: the settings that decisions depend on. [`head`] writes them, [`config_of`] reads them
//! back.

use offermill::config::{Compatibility, ExclusionRule, ExecutorCores};
use offermill::{Config, IdScheme};

use crate::scenario::head::FORMAT;
use crate::scenario::{CompatibilityLine, IdsLine, ScenarioHead};
use crate::settings::draft::SettingsDraft;
use crate::settings::kernel::config_builder;
use crate::settings::master::ClusterKind;
use crate::settings::table;

/// The keys of the settings that decisions depend on. None of them is a secret.
const DECISIVE: &[&str] = &[
    // The kind of cluster decides which of the others apply.
    "spark.master",
    "spark.cores.max",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.mesos.executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor",
    "spark.mesos.extra.cores",
    "spark.mesos.gpus.max",
    "spark.mesos.executor.gpus",
    "spark.blockManager.port",
    "spark.locality.wait",
    "spark.mesos.constraints",
    "offermill.placement",
    "offermill.maintenanceLead",
    "offermill.unreachableTimeout",
    "offermill.resources.revocable",
    "spark.mesos.rejectOfferDuration",
    "spark.mesos.rejectOfferDurationForUnmetConstraints",
    "spark.mesos.rejectOfferDurationForReachedMaxCores",
    "spark.excludeOnFailure.enabled",
    "spark.excludeOnFailure.application.maxFailedExecutorsPerNode",
    "spark.excludeOnFailure.timeout",
    "offermill.exclusion.window",
    "spark.dynamicAllocation.enabled",
];

/// Returns the head of a run with this configuration.
pub(crate) fn head(draft: &SettingsDraft, ids: Option<IdsLine>, config: &Config) -> ScenarioHead {
    let mut conf = draft.texts_of(DECISIVE);
    if let Some(limit) = config.executor_limit() {
        // The limit may have been derived from other settings.
        let key = match draft.allocation.enabled {
            true => "spark.dynamicAllocation.initialExecutors",
            false => "spark.executor.instances",
        };
        conf.insert(key.to_owned(), limit.to_string());
    }
    if draft.is_on(ClusterKind::Kubernetes) {
        // Both have keys or defaults of their own there.
        if let ExecutorCores::Fixed(cores) = config.executor_cores() {
            conf.insert("spark.executor.cores".to_owned(), cores.to_string());
        }
        if let Some(overhead) = draft.overhead() {
            let key = "spark.mesos.executor.memoryOverhead".to_owned();
            conf.insert(key, format!("{}m", overhead.get()));
        }
    }
    // Both may follow from flags.
    if let Some(follows_locality) = draft.follows_locality {
        conf.insert("offermill.locality".to_owned(), follows_locality.to_string());
    }
    if draft.revive_interval.is_some() {
        let interval = format!("{}ms", config.revive_interval().as_millis());
        conf.insert("offermill.reviveInterval".to_owned(), interval);
    }
    ScenarioHead {
        name: ids.as_ref().map(|ids| ids.prefix.clone()).unwrap_or_default(),
        format: FORMAT,
        compatibility: Some(CompatibilityLine::Offermill),
        ids,
        conf,
        ..ScenarioHead::default()
    }
}

/// Reads the configuration and the id scheme from a head, for Offermill's own behaviour.
///
/// # Errors
/// With a sentence for each setting that is not allowed.
pub(crate) fn config_of(head: &ScenarioHead) -> Result<(Config, IdScheme), Vec<String>> {
    let mut draft = table::read_scenario(&head.conf);
    let ids = match &head.ids {
        Some(ids) => IdScheme::unique(&ids.prefix, ids.epoch),
        None => Ok(IdScheme::plain()),
    };
    let ids = ids.map_err(|error| draft.report_error(&error)).ok();
    let limit = match draft.allocation.enabled {
        true => Some(draft.allocation.initial),
        false => draft.executors,
    };
    let exclusion = draft.excludes.then_some(draft.exclusion);
    let config = build(&mut draft, limit, exclusion, Compatibility::OFFERMILL);
    match (config, ids) {
        (Some(config), Some(ids)) if draft.problems.is_empty() => Ok((config, ids)),
        _ => Err(draft.problems),
    }
}

/// Builds the configuration, or adds the reason to the draft's problems and returns `None`.
pub(crate) fn build(
    draft: &mut SettingsDraft,
    limit: Option<u32>,
    exclusion: Option<ExclusionRule>,
    compatibility: Compatibility,
) -> Option<Config> {
    // An unreadable setting has no value that others could be checked against.
    if !draft.problems.is_empty() {
        return None;
    }
    let built = config_builder(draft, limit, exclusion).compatibility(compatibility).build();
    built.map_err(|error| draft.report_error(&error)).ok()
}
