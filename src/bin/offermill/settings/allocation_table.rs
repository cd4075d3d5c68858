//! The table of the settings that say how many executors there are to be and when. How it works is said in
//! `key_table.rs`.

use offermill::config::text::{TimeUnit, parse_bool, parse_count, parse_ratio};

use crate::settings::allocation::{self as read, UNLIMITED};
use crate::settings::option::Key;

/// Dynamic allocation, the shuffle service, heartbeats, locality.
pub(crate) const ALLOCATION_KEYS: &[Key] = &[
    Key::spark("spark.dynamicAllocation.enabled", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.allocation.enabled, parse_bool)),
    Key::spark("spark.dynamicAllocation.minExecutors", "number").default("0").read(
        |draft, given| {
            given.read_into(&mut draft.allocation.min, |name, text| {
                parse_count(name, text, 0..=UNLIMITED.into()).map(|count| count as u32)
            })
        },
    ),
    Key::spark("spark.dynamicAllocation.initialExecutors", "number")
        .otherwise("minExecutors")
        .read(|draft, given| {
            given.read_into(&mut draft.allocation.asked_initial, |name, text| {
                parse_count(name, text, 0..=UNLIMITED.into()).map(|count| Some(count as u32))
            })
        }),
    Key::spark("spark.dynamicAllocation.maxExecutors", "number").default("2147483647").read(
        |draft, given| {
            given.read_into(&mut draft.allocation.max, |name, text| {
                parse_count(name, text, 1..=UNLIMITED.into()).map(|count| count as u32)
            })
        },
    ),
    Key::spark("spark.dynamicAllocation.executorAllocationRatio", "number above 0, up to 1")
        .default("1.0")
        .read(|draft, given| {
            read::ratio(draft, given);
            Ok(())
        }),
    Key::spark("spark.dynamicAllocation.schedulerBacklogTimeout", "duration (s)")
        .default("1s")
        .read(|draft, given| {
            let timeout = read::positive(draft, given, TimeUnit::Seconds)?;
            draft.allocation.backlog_timeout = timeout;
            draft.allocation.sustained_timeout = timeout;
            Ok(())
        }),
    Key::spark("spark.dynamicAllocation.sustainedSchedulerBacklogTimeout", "duration (s)")
        .otherwise("schedulerBacklogTimeout")
        .read(|draft, given| {
            draft.allocation.sustained_timeout = read::positive(draft, given, TimeUnit::Seconds)?;
            Ok(())
        }),
    Key::spark("spark.dynamicAllocation.executorIdleTimeout", "duration (s)").default("60s").read(
        |draft, given| {
            draft.allocation.idle_timeout = given.duration(TimeUnit::Seconds)?;
            Ok(())
        },
    ),
    Key::spark("spark.dynamicAllocation.cachedExecutorIdleTimeout", "duration (s)")
        .otherwise("never")
        .read(|draft, given| {
            draft.allocation.cached_idle_timeout = Some(given.duration(TimeUnit::Seconds)?);
            Ok(())
        }),
    Key::spark("spark.dynamicAllocation.shuffleTracking.enabled", "true or false")
        .default("true")
        .read(|draft, given| given.read_into(&mut draft.allocation.shuffle_tracking, parse_bool)),
    Key::spark("spark.dynamicAllocation.shuffleTracking.timeout", "duration (ms)")
        .otherwise("never")
        .read(|draft, given| {
            let timeout = given.duration(TimeUnit::Milliseconds)?;
            draft.allocation.shuffle_tracking_timeout = Some(timeout);
            Ok(())
        }),
    Key::spark("spark.shuffle.service.enabled", "true or false")
        .default("false")
        .read(|draft, given| given.read_into(&mut draft.shuffle.enabled, parse_bool)),
    Key::spark("spark.shuffle.service.port", "port").default("7337").read(|draft, given| {
        given.read_into(&mut draft.shuffle.port, |name, text| {
            parse_count(name, text, 1..=65_535).map(|port| port as u16)
        })
    }),
    Key::spark("spark.shuffle.registration.timeout", "duration (ms)").default("5000ms").read(
        |draft, given| {
            draft.shuffle.registration_timeout =
                read::positive(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        },
    ),
    Key::spark("spark.executor.heartbeatInterval", "duration (ms)").default("10s").read(
        |draft, given| {
            draft.shuffle.heartbeat_interval =
                read::positive(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        },
    ),
    Key::spark("spark.network.timeout", "duration (s)").default("120s").read(|draft, given| {
        let timeout = read::positive(draft, given, TimeUnit::Seconds)?;
        (draft.network_timeout, draft.shuffle.heartbeat_timeout) = (timeout, timeout);
        Ok(())
    }),
    Key::spark("spark.storage.blockManagerHeartbeatTimeoutMs", "duration (ms)")
        .formerly(&["spark.storage.blockManagerSlaveTimeoutMs"])
        .otherwise("spark.network.timeout")
        .read(|draft, given| {
            draft.shuffle.heartbeat_timeout = read::positive(draft, given, TimeUnit::Milliseconds)?;
            Ok(())
        }),
    Key::spark("spark.locality.wait", "duration (ms)").default("3s").read(|draft, given| {
        draft.locality_wait = given.duration(TimeUnit::Milliseconds)?;
        Ok(())
    }),
    Key::spark("spark.scheduler.minRegisteredResourcesRatio", "number from 0 to 1")
        .default("0.0")
        .read(|draft, given| given.read_into(&mut draft.registered_ratio, parse_ratio)),
    Key::spark("spark.scheduler.maxRegisteredResourcesWaitingTime", "duration (ms)")
        .default("30s")
        .read(|draft, given| {
            draft.registered_wait = given.duration(TimeUnit::Milliseconds)?;
            Ok(())
        }),
];
