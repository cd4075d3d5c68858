//! How many executors there are to be and when, while it is read: dynamic allocation, the shuffle service that it
//! needs, locality, and how much has to be there before work begins.

use std::time::Duration;

use offermill::Error;
use offermill::allocation::Rule;
use offermill::config::ExecutorCores;
use offermill::config::text::TimeUnit;

use crate::settings::draft::Draft;
use crate::settings::flags::RunArguments;
use crate::settings::sources::Sourced;
use crate::text::format::count;

/// The most executors that Spark can count.
pub(crate) const UNLIMITED: u32 = i32::MAX as u32;

/// What the rows about dynamic allocation write to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AllocationSettings {
    /// Whether the number of executors follows the load.
    pub(crate) enabled: bool,
    pub(crate) min: u32,
    /// [`UNLIMITED`] if there is no maximum.
    pub(crate) max: u32,
    /// As it was given.
    pub(crate) asked_initial: Option<u32>,
    /// What there is to begin with: the most of the minimum, what was asked for, and `spark.executor.instances`.
    pub(crate) initial: u32,
    /// How many executors there are for as many tasks as fit into one.
    pub(crate) ratio: f64,
    pub(crate) backlog_timeout: Duration,
    pub(crate) sustained_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    /// For executors with cached data; `None` is never.
    pub(crate) cached_idle_timeout: Option<Duration>,
    /// Whether executors with shuffle files are kept.
    pub(crate) shuffle_tracking: bool,
    /// For how long; `None` is for ever.
    pub(crate) shuffle_tracking_timeout: Option<Duration>,
}

impl Default for AllocationSettings {
    fn default() -> AllocationSettings {
        AllocationSettings {
            enabled: false,
            min: 0,
            max: UNLIMITED,
            asked_initial: None,
            initial: 0,
            ratio: 1.0,
            backlog_timeout: Duration::from_secs(1),
            sustained_timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(60),
            cached_idle_timeout: None,
            shuffle_tracking: true,
            shuffle_tracking_timeout: None,
        }
    }
}

/// What the rows about the shuffle service write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShuffleSettings {
    /// Whether agents have the service.
    pub(crate) enabled: bool,
    pub(crate) port: u16,
    pub(crate) registration_timeout: Duration,
    pub(crate) heartbeat_interval: Duration,
    /// After so long a silence the service removes the files.
    pub(crate) heartbeat_timeout: Duration,
}

impl Default for ShuffleSettings {
    fn default() -> ShuffleSettings {
        ShuffleSettings {
            enabled: false,
            port: 7337,
            registration_timeout: Duration::from_secs(5),
            heartbeat_interval: Duration::from_secs(10),
            heartbeat_timeout: Duration::from_secs(120),
        }
    }
}

/// Settles what follows from other settings.
pub(crate) fn settle(draft: &mut Draft) {
    let instances = draft.executors.unwrap_or(0);
    let allocation = &mut draft.allocation;
    let asked = allocation.asked_initial.unwrap_or(0);
    allocation.initial = allocation.min.max(asked).max(instances);
}

/// Complains about settings that contradict each other.
pub(crate) fn check(draft: &mut Draft) {
    check_timeouts(draft);
    let AllocationSettings { enabled, min, max, asked_initial, .. } = draft.allocation;
    if !enabled {
        return;
    }
    const MIN: &str = "spark.dynamicAllocation.minExecutors";
    const MAX: &str = "spark.dynamicAllocation.maxExecutors";
    const INITIAL: &str = "spark.dynamicAllocation.initialExecutors";
    let above_max = |key: &str, number: u32| (number > max).then(|| (key.to_owned(), number));
    let too_many = [
        above_max(MIN, min),
        asked_initial.and_then(|asked| above_max(INITIAL, asked)),
        draft.executors.and_then(|count| above_max("spark.executor.instances", count)),
    ];
    for (key, number) in too_many.into_iter().flatten() {
        draft.contradict(&[&key, MAX], &format!("{number} executors are more than {max}"));
    }
    if asked_initial.is_some_and(|asked| asked < min) {
        let (initial, least) = (draft.name_of(INITIAL), draft.name_of(MIN));
        let remark = format!("{initial} is less than {least}, so there are {min} to begin with");
        draft.remarks.push(remark);
    }
    if !draft.shuffle.enabled && !draft.allocation.shuffle_tracking {
        const KEYS: [&str; 3] = [
            "spark.dynamicAllocation.enabled",
            "spark.shuffle.service.enabled",
            "spark.dynamicAllocation.shuffleTracking.enabled",
        ];
        let why = "executors that end would take shuffle files with them that are still needed; set one of the last \
                   two to true";
        draft.contradict(&KEYS, why);
    }
}

/// Whether executors that hold shuffle data are kept for it. A service keeps it when they end.
pub(crate) fn tracks_shuffle(draft: &Draft) -> bool {
    draft.allocation.shuffle_tracking && !draft.shuffle.enabled
}

/// How the number of executors follows the load, if it does; with a remark that it has to be told of.
pub(crate) fn rule(draft: &mut Draft, arguments: &RunArguments) -> Option<Rule> {
    let settings = draft.allocation.clone();
    if !settings.enabled {
        return None;
    }
    const ENABLED: &str = "spark.dynamicAllocation.enabled";
    if arguments.until_finished {
        let (enabled, name) = (draft.name_of(ENABLED), "--until-finished");
        let why = "executors that finish are not replaced, whatever the load";
        draft.problems.push(format!("{enabled} and {name} don't go together: {why}"));
    }
    let tasks = draft.spark.task_cores.max(1);
    let slots = match draft.executor_cores {
        ExecutorCores::Fixed(cores) => cores.millis() / 1000 / u64::from(tasks),
        // As Spark does, which doesn't know better either.
        ExecutorCores::WholeOffer => 1,
    };
    let rule = Rule::builder()
        .min(settings.min)
        .max(settings.max)
        .initial(settings.initial)
        .ratio(settings.ratio)
        .slots(u32::try_from(slots).unwrap_or(u32::MAX).max(1))
        .backlog_timeout(settings.backlog_timeout)
        .sustained_timeout(Some(settings.sustained_timeout))
        .idle_timeout(settings.idle_timeout)
        .cached_idle_timeout(settings.cached_idle_timeout)
        .shuffle_timeout(settings.shuffle_tracking_timeout.filter(|_| tracks_shuffle(draft)))
        .build();
    // What is wrong with the settings was said by `check`, in the words of who gave them.
    let said = !draft.problems.is_empty();
    let rule = rule
        .map_err(|error| {
            if !said {
                draft.complain(&error)
            }
        })
        .ok()?;
    let (initial, min, max) = (rule.initial(), rule.min(), settings.max.min(rule.max()));
    let begins = format!("dynamic allocation begins with {}", count(initial.into(), "executor"));
    draft.remarks.push(match arguments.control.is_empty() {
        true => format!("{begins} and stays there: only --control could tell of the load"),
        false => {
            format!("{begins} and follows the load from {min} to {max}, once it is told of any")
        }
    });
    Some(rule)
}

fn check_timeouts(draft: &mut Draft) {
    const INTERVAL: &str = "spark.executor.heartbeatInterval";
    const TIMEOUT: &str = "spark.network.timeout";
    const SERVICE: &str = "spark.storage.blockManagerHeartbeatTimeoutMs";
    let interval = draft.shuffle.heartbeat_interval;
    if interval >= draft.network_timeout {
        let why = "executors would be taken for lost between two heartbeats";
        draft.contradict(&[INTERVAL, TIMEOUT], why);
    }
    if draft.text_of(SERVICE).is_some() && interval >= draft.shuffle.heartbeat_timeout {
        let why = "the shuffle service would miss heartbeats that are not due yet";
        draft.contradict(&[INTERVAL, SERVICE], why);
    }
    if draft.shuffle.enabled && draft.spark.authenticate {
        let why =
            "the shuffle service would want a proof of who registers, which Offermill can't give";
        draft.contradict(&["spark.authenticate", "spark.shuffle.service.enabled"], why);
    }
}

/// Reads a duration that has to be more than nothing.
pub(crate) fn positive(
    draft: &mut Draft,
    given: &Sourced,
    unit: TimeUnit,
) -> Result<Duration, Error> {
    let duration = given.duration(unit)?;
    if duration.is_zero() {
        draft.refuse(given, "more than 0");
    }
    Ok(duration)
}

/// Reads a share above 0, up to all.
pub(crate) fn ratio(draft: &mut Draft, given: &Sourced) {
    match given.text.trim().parse::<f64>() {
        Ok(ratio) if ratio > 0.0 && ratio <= 1.0 => draft.allocation.ratio = ratio,
        _ => draft.refuse(given, "a number above 0 and up to 1, such as 0.5"),
    }
}
