//! The kernel's configuration made of a draft.

use std::time::Duration;

use offermill::config::{ExclusionRule, UnreachableRule};
use offermill::{Config, ConfigBuilder};

use crate::settings::draft::SettingsDraft;

/// The revive interval with dynamic allocation, here or by a parent: the limit may grow every second.
pub(crate) const LOAD_REVIVE_INTERVAL: Duration = Duration::from_secs(1);

/// A builder of the kernel's configuration, with this executor limit and this exclusion rule.
pub(crate) fn config_builder(
    draft: &SettingsDraft,
    limit: Option<u32>,
    exclusion: Option<ExclusionRule>,
) -> ConfigBuilder {
    let release_after = draft.unreachable_timeout;
    let unreachable = UnreachableRule { release_after, ..UnreachableRule::default() };
    let builder = Config::builder()
        .core_cap(draft.core_cap)
        .executor_cores(draft.executor_cores)
        .executor_memory(draft.memory)
        .memory_overhead(draft.overhead())
        .extra_cores(draft.extra_cores)
        .gpu_cap(draft.gpu_cap)
        .executor_gpus(draft.executor_gpus)
        .executor_limit(limit)
        // Spark's pods have addresses of their own, and take no port of a node.
        .fixed_port(draft.port.filter(|_| !draft.kubernetes.runs_spark))
        .revocable(draft.revocable)
        .maintenance_lead(draft.maintenance_lead)
        .unreachable(unreachable)
        .constraint(draft.constraint.clone())
        .refuse_durations(draft.refusals)
        .exclusion(exclusion)
        .placement(draft.placement);
    let builder = draft.queues.queues().fold(builder, ConfigBuilder::queue);
    let builder = builder.executor_queue(draft.executor_queue);
    let builder = builder.queued_memory(draft.queued_memory);
    let builder = match draft.follows_locality.unwrap_or(draft.allocation.enabled) {
        true => builder.locality_wait(Some(draft.locality_wait)),
        false => builder,
    };
    let by_load = draft.allocation.enabled.then_some(LOAD_REVIVE_INTERVAL);
    match draft.revive_interval.or(by_load) {
        Some(interval) => builder.revive_interval(interval),
        None => builder,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::table::read_scenario;

    /// Goal: the revive interval and the wait for hosts follow from dynamic allocation unless they are set. Method:
    /// each alone, and together.
    #[test]
    fn offers_are_revived_as_often_as_is_set() {
        let dynamic = ("spark.dynamicAllocation.enabled", "true");
        let (interval, locality) = ("offermill.reviveInterval", "offermill.locality");
        let wait = Some(Duration::from_secs(3));
        for (given, seconds, locality_wait) in [
            (&[][..], 5, None),
            (&[dynamic], 1, wait),
            (&[(interval, "2")], 2, None),
            (&[dynamic, (interval, "7s"), (locality, "false")], 7, None),
            (&[(locality, "true")], 5, wait),
        ] {
            let conf = given.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
            let draft = read_scenario(&conf.collect());
            assert_eq!(draft.problems, [""; 0]);
            let config = config_builder(&draft, None, None).build().unwrap();
            assert_eq!(config.revive_interval(), Duration::from_secs(seconds), "{given:?}");
            assert_eq!(config.locality_wait(), locality_wait, "{given:?}");
        }
    }

    /// Goal: the time after which an unreachable executor is replaced is a setting. Method: the default, a duration,
    /// and none.
    #[test]
    fn the_unreachable_timeout_is_set() {
        let minute = Duration::from_secs(60);
        let cases = [(None, Some(5 * minute)), (Some("1min"), Some(minute)), (Some("never"), None)];
        for (text, timeout) in cases {
            let mut conf = BTreeMap::from([("spark.master".to_owned(), "mesos://m".to_owned())]);
            conf.extend(text.map(|it| ("offermill.unreachableTimeout".to_owned(), it.to_owned())));
            let draft = read_scenario(&conf);
            assert_eq!(draft.problems, [""; 0]);
            let config = config_builder(&draft, None, None).build().unwrap();
            assert_eq!(config.unreachable().release_after, timeout, "{text:?}");
        }
    }
}
