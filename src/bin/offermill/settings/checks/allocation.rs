//! Checks of dynamic allocation and of the shuffle service, and the allocation rule.

use offermill::allocation::AllocationRule;
use offermill::config::ExecutorCores;

use crate::settings::draft::SettingsDraft;
use crate::settings::flags::RunArguments;
use crate::settings::values::allocation::AllocationSettings;
use crate::text::format::count;

/// Reports settings that contradict each other.
pub(crate) fn check(draft: &mut SettingsDraft) {
    check_timeouts(draft);
    let AllocationSettings { enabled, min, max, given_initial, .. } = draft.allocation;
    if !enabled {
        return;
    }
    const MIN: &str = "spark.dynamicAllocation.minExecutors";
    const MAX: &str = "spark.dynamicAllocation.maxExecutors";
    const INITIAL: &str = "spark.dynamicAllocation.initialExecutors";
    let above_max = |key: &str, number: u32| (number > max).then(|| (key.to_owned(), number));
    let too_many = [
        above_max(MIN, min),
        given_initial.and_then(|given| above_max(INITIAL, given)),
        draft.executors.and_then(|count| above_max("spark.executor.instances", count)),
    ];
    for (key, number) in too_many.into_iter().flatten() {
        draft.report_conflict(&[&key, MAX], &format!("{number} executors are more than {max}"));
    }
    if given_initial.is_some_and(|given| given < min) {
        let initial = draft.name_of(INITIAL);
        let least = draft.name_of(MIN);
        let remark = format!("{initial} is less than {least}, so {min} are the initial number");
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
        draft.report_conflict(&KEYS, why);
    }
}

/// Whether executors are kept because they hold shuffle data. A shuffle service keeps the data when they end.
pub(crate) fn tracks_shuffle(draft: &SettingsDraft) -> bool {
    draft.allocation.shuffle_tracking && !draft.shuffle.enabled
}

/// The rule of dynamic allocation, if that is enabled. Adds a remark about where the load comes from.
pub(crate) fn rule(draft: &mut SettingsDraft, arguments: &RunArguments) -> Option<AllocationRule> {
    let settings = draft.allocation.clone();
    if !settings.enabled {
        return None;
    }
    const ENABLED: &str = "spark.dynamicAllocation.enabled";
    if arguments.until_finished {
        let enabled = draft.name_of(ENABLED);
        let why = "executors that finish are not replaced, whatever the load";
        draft.problems.push(format!("{enabled} and --until-finished exclude each other: {why}"));
    }
    let tasks = draft.spark.task_cores.max(1);
    let slots = match draft.executor_cores {
        ExecutorCores::Fixed(cores) => cores.millis() / 1000 / u64::from(tasks),
        // Spark assumes the same.
        ExecutorCores::WholeOffer => 1,
    };
    let rule = AllocationRule::builder()
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
    // `check` has reported wrong settings by the names under which they were given.
    let is_reported = !draft.problems.is_empty();
    let rule = rule
        .map_err(|error| {
            if !is_reported {
                draft.report_error(&error)
            }
        })
        .ok()?;
    let min = rule.min();
    let max = settings.max.min(rule.max());
    let begins =
        format!("dynamic allocation begins with {}", count(rule.initial().into(), "executor"));
    draft.remarks.push(match (!arguments.takes_commands(), rule.initial()) {
        (true, 0) => format!(
            "{begins} and stays there, so nothing will run: the load can be reported only with --control; give it, or \
             set spark.dynamicAllocation.initialExecutors"
        ),
        (true, _) => {
            format!("{begins} and stays there: the load can be reported only with --control")
        }
        (false, _) => {
            format!("{begins} and follows the load from {min} to {max}, once one is reported")
        }
    });
    Some(rule)
}

fn check_timeouts(draft: &mut SettingsDraft) {
    const INTERVAL: &str = "spark.executor.heartbeatInterval";
    const TIMEOUT: &str = "spark.network.timeout";
    const SERVICE: &str = "spark.storage.blockManagerHeartbeatTimeoutMs";
    let interval = draft.shuffle.heartbeat_interval;
    if interval >= draft.network_timeout {
        let why = "executors would count as lost between two heartbeats";
        draft.report_conflict(&[INTERVAL, TIMEOUT], why);
    }
    if draft.text_of(SERVICE).is_some() && interval >= draft.shuffle.heartbeat_timeout {
        let why = "the shuffle service would miss heartbeats that are not due yet";
        draft.report_conflict(&[INTERVAL, SERVICE], why);
    }
    if draft.shuffle.enabled && draft.spark.authenticate {
        let why =
            "the shuffle service would require authentication, which Offermill doesn't support";
        draft.report_conflict(&["spark.authenticate", "spark.shuffle.service.enabled"], why);
    }
}
