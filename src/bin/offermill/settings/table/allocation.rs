//! The options of dynamic allocation, the shuffle service, heartbeats, locality and readiness.

use offermill::config::text::{TimeUnit, parse_bool, parse_count, parse_ratio};

use crate::settings::draft::SettingsDraft;
use crate::settings::sources::Sourced;
use crate::settings::table::row::{OptionRow, positive_duration};
use crate::settings::values::allocation::UNLIMITED;

/// Dynamic allocation, the shuffle service, heartbeats, locality, readiness.
pub(super) const ALLOCATION_ROWS: &[OptionRow] = &[
    OptionRow::spark("spark.dynamicAllocation.enabled", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.allocation.enabled, parse_bool)),
    OptionRow::spark("spark.dynamicAllocation.minExecutors", "number").default("0").read(
        |draft, given| {
            given.read_into(&mut draft.allocation.min, |name, text| {
                parse_count(name, text, 0..=UNLIMITED.into()).map(|count| count as u32)
            })
        },
    ),
    OptionRow::spark("spark.dynamicAllocation.initialExecutors", "number")
        .derived("minExecutors")
        .read(|draft, given| {
            given.read_into(&mut draft.allocation.given_initial, |name, text| {
                parse_count(name, text, 0..=UNLIMITED.into()).map(|count| Some(count as u32))
            })
        }),
    OptionRow::spark("spark.dynamicAllocation.maxExecutors", "number").default("2147483647").read(
        |draft, given| {
            given.read_into(&mut draft.allocation.max, |name, text| {
                parse_count(name, text, 1..=UNLIMITED.into()).map(|count| count as u32)
            })
        },
    ),
    OptionRow::spark("spark.dynamicAllocation.executorAllocationRatio", "number above 0, up to 1")
        .default("1.0")
        .read(|draft, given| {
            read_ratio(draft, given);
            Ok(())
        }),
    OptionRow::spark("spark.dynamicAllocation.schedulerBacklogTimeout", "duration (s)")
        .default("1s")
        .read(|draft, given| {
            let timeout = positive_duration(draft, given, TimeUnit::Seconds)?;
            draft.allocation.backlog_timeout = timeout;
            draft.allocation.sustained_timeout = timeout;
            Ok(())
        }),
    OptionRow::spark("spark.dynamicAllocation.sustainedSchedulerBacklogTimeout", "duration (s)")
        .derived("schedulerBacklogTimeout")
        .read(|draft, given| {
            draft.allocation.sustained_timeout =
                positive_duration(draft, given, TimeUnit::Seconds)?;
            Ok(())
        }),
    OptionRow::spark("spark.dynamicAllocation.executorIdleTimeout", "duration (s)")
        .default("60s")
        .read(|draft, given| {
            draft.allocation.idle_timeout = given.duration(TimeUnit::Seconds)?;
            Ok(())
        }),
    OptionRow::spark("spark.dynamicAllocation.cachedExecutorIdleTimeout", "duration (s) or never")
        .derived("never")
        .read(|draft, given| {
            if let Some(timeout) = draft.duration_or(given, "never", TimeUnit::Seconds) {
                draft.allocation.cached_idle_timeout = timeout;
            }
            Ok(())
        }),
    OptionRow::spark("spark.dynamicAllocation.shuffleTracking.enabled", "true or false")
        .default("true")
        .read(|draft, given| given.read_into(&mut draft.allocation.shuffle_tracking, parse_bool)),
    OptionRow::spark("spark.dynamicAllocation.shuffleTracking.timeout", "duration (ms) or never")
        .derived("never")
        .read(|draft, given| {
            if let Some(timeout) = draft.duration_or(given, "never", TimeUnit::Milliseconds) {
                draft.allocation.shuffle_tracking_timeout = timeout;
            }
            Ok(())
        }),
    OptionRow::spark("spark.shuffle.service.enabled", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.shuffle.enabled, parse_bool)),
    OptionRow::spark("spark.shuffle.service.port", "port").default("7337").read(|draft, given| {
        given.read_into(&mut draft.shuffle.port, |name, text| {
            parse_count(name, text, 1..=65_535).map(|port| port as u16)
        })
    }),
    OptionRow::spark("spark.shuffle.registration.timeout", "duration (ms)").default("5000ms").read(
        |draft, given| {
            draft.shuffle.registration_timeout =
                positive_duration(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        },
    ),
    OptionRow::spark("spark.executor.heartbeatInterval", "duration (ms)").default("10s").read(
        |draft, given| {
            draft.shuffle.heartbeat_interval =
                positive_duration(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        },
    ),
    OptionRow::spark("spark.network.timeout", "duration (s)").default("120s").read(
        |draft, given| {
            let timeout = positive_duration(draft, given, TimeUnit::Seconds)?;
            draft.network_timeout = timeout;
            draft.shuffle.heartbeat_timeout = timeout;
            Ok(())
        },
    ),
    OptionRow::spark("spark.storage.blockManagerHeartbeatTimeoutMs", "duration (ms)")
        .aliases(&["spark.storage.blockManagerSlaveTimeoutMs"])
        .derived("spark.network.timeout")
        .read(|draft, given| {
            draft.shuffle.heartbeat_timeout =
                positive_duration(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        }),
    OptionRow::spark("spark.locality.wait", "duration (ms)").default("3s").read(|draft, given| {
        draft.locality_wait = given.duration(TimeUnit::Milliseconds)?;
        Ok(())
    }),
    OptionRow::offermill(
        "offermill.locality",
        "true or false: whether executors wait for the hosts of locality commands",
    )
    .derived("true with commands or dynamic allocation")
    .read(|draft, given| {
        given.read_into(&mut draft.follows_locality, |name, text| parse_bool(name, text).map(Some))
    }),
    OptionRow::offermill(
        "offermill.reviveInterval",
        "duration (s): the least time between two calls for declined offers",
    )
    .derived(
        "5s; 1s with --steered or dynamic allocation; with --tasks 200ms, on local agents 10ms",
    )
    .read(|draft, given| {
        draft.revive_interval = Some(positive_duration(draft, given, TimeUnit::Seconds)?);
        Ok(())
    }),
    OptionRow::spark("spark.scheduler.minRegisteredResourcesRatio", "number from 0 to 1")
        .derived("0.0; 0.8 on Kubernetes")
        .read(|draft, given| {
            given.read_into(&mut draft.registered_ratio, |name, text| {
                parse_ratio(name, text).map(Some)
            })
        }),
    OptionRow::spark("spark.scheduler.maxRegisteredResourcesWaitingTime", "duration (ms)")
        .default("30s")
        .read(|draft, given| {
            draft.registered_wait = given.duration(TimeUnit::Milliseconds)?;
            Ok(())
        }),
];

/// Reads a ratio above 0, up to 1.
fn read_ratio(draft: &mut SettingsDraft, given: &Sourced) {
    match given.text.trim().parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio <= 1.0 => draft.allocation.ratio = ratio,
        _ => draft.reject(given, "a number above 0 and up to 1, such as 0.5"),
    }
}
