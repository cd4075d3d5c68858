//! The kernel's configuration made of a draft.

use std::time::Duration;

use offermill::config::ExclusionRule;
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
