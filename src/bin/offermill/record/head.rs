//! The first line of a journal: the settings that decisions depend on, so that they can be taken again.

use offermill::Config;

use crate::scenario::head::FORMAT;
use crate::scenario::{Conducts, Head, Ids};
use crate::settings::draft::Draft;

/// The settings that decisions depend on. None of them is a secret.
const DECISIVE: &[&str] = &[
    // Some settings mean nothing on some clusters.
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

/// The head of a run with this configuration.
pub(crate) fn head(draft: &Draft, ids: Option<Ids>, config: &Config) -> Head {
    let mut conf = draft.texts_of(DECISIVE);
    if let Some(limit) = config.executor_limit() {
        // It may follow from others.
        let key = match draft.allocation.enabled {
            true => "spark.dynamicAllocation.initialExecutors",
            false => "spark.executor.instances",
        };
        conf.insert(key.to_owned(), limit.to_string());
    }
    Head {
        name: ids.as_ref().map(|ids| ids.prefix.clone()).unwrap_or_default(),
        format: FORMAT,
        conduct: Some(Conducts::Offermill),
        ids,
        conf,
        ..Head::default()
    }
}
