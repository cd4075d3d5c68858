//! The kernel's configuration made of a draft.

use std::time::Duration;

use offermill::config::{ExclusionRule, UnreachableRule};
use offermill::{Config, ConfigBuilder};

use crate::settings::draft::SettingsDraft;

/// The revive interval with dynamic allocation: the limit may grow every second.
const LOAD_REVIVE_INTERVAL: Duration = Duration::from_secs(1);

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
        .fixed_port(draft.port)
        .revocable(draft.revocable)
        .maintenance_lead(draft.maintenance_lead)
        .unreachable(unreachable)
        .constraint(draft.constraint.clone())
        .refuse_durations(draft.refusals)
        .exclusion(exclusion)
        .placement(draft.placement);
    // Clients that report the hosts of the data also report the load.
    match draft.allocation.enabled {
        true => {
            builder.locality_wait(Some(draft.locality_wait)).revive_interval(LOAD_REVIVE_INTERVAL)
        }
        false => builder,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::table::read_scenario;

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
