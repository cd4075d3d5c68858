//! Kill retries: repeats each kill until the executor's end is reported, because a cluster may lose a call silently.
//!
//! * A kill without effect is repeated after 15 s, then after twice as long, up to 5 min. The grace period doesn't
//!   matter for that: whether the call has arrived is unknown, and if it has, repeating it changes nothing.
//! * A shutdown's kills are repeated more often, because it doesn't wait that long: see [`KillTerms::of_shutdown`].
//! * Without a subscription no kill is repeated, because no master would receive it. When the next subscription begins,
//!   all kills are made again at once, and their intervals start anew.
//! * If an unreachable executor is reported alive again, its kill was made while no agent could receive it: it is made
//!   again at once.
//! * If an executor is otherwise reported alive and not as ending, its kill was lost or ignored: it is made again at
//!   the next tick, but not within 5 s of the last one.
//! * A kill must not overtake the launch of its executor, or it would have no effect: it is made at the first tick
//!   after the launching call has returned (see [`Launches`]).

use std::collections::BTreeMap;
use std::time::Duration;

use super::EngineOptions;
use super::cluster_manager::Call;
use super::launches::Launches;
use super::sinks::CallSink;
use crate::ids::ExecutorId;
use crate::kernel::Target;
use crate::time::Timestamp;

/// The first interval after which a kill without effect is repeated; each further one is twice as long.
const AGAIN_AFTER: Duration = Duration::from_secs(15);
/// The longest such interval.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);
/// The shortest interval at which a shutdown repeats kills: that of the controller's ticks.
const AGAIN_AFTER_MIN: Duration = Duration::from_secs(1);
/// The shortest interval after which the kill of an executor that is reported alive is repeated.
const AGAIN_IF_ALIVE: Duration = Duration::from_secs(5);
/// How often the kill of an unknown executor, which the kernel doesn't count, is repeated. If its agent is unreachable
/// for longer, it is reported, and killed, when it returns.
pub(super) const UNKNOWN_TRIES: u32 = 20;
/// The maximum number of unknown executors whose kills are repeated: the cluster may report any number of them. Further
/// ones are killed once for each report.
pub(super) const UNKNOWN_MAX: usize = 65_536;

/// How much longer than the timeout of a shutdown a grace is that would end with it.
const GRACE_BEYOND_TIMEOUT: Duration = Duration::from_secs(5);

/// How a kill is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KillTerms {
    /// How long the executor may take to end by itself.
    grace: Duration,
    /// The longest interval after which the kill is repeated.
    repeat_max: Duration,
}

impl KillTerms {
    /// The terms of kills outside a shutdown.
    pub(crate) fn of(options: &EngineOptions) -> KillTerms {
        KillTerms { grace: options.kill_grace, repeat_max: AGAIN_AFTER_MAX }
    }

    /// The terms of the kills of a shutdown with this timeout.
    ///
    /// A kill that was lost must be made again while the shutdown still waits, so the longest interval is a sixth of
    /// the timeout, but 1 s at least.
    ///
    /// A grace that isn't shorter than the timeout ends clearly after it. Otherwise chance would decide whether
    /// executors that don't end on request still count as ended in time. The manager's stop ends them before.
    pub(crate) fn of_shutdown(options: &EngineOptions, timeout: Duration) -> KillTerms {
        let grace = match options.kill_grace {
            _ if timeout.is_zero() => Duration::ZERO,
            grace if grace < timeout => grace,
            _ => timeout.saturating_add(GRACE_BEYOND_TIMEOUT),
        };
        let repeat_max = (timeout / 6).clamp(AGAIN_AFTER_MIN, AGAIN_AFTER_MAX);
        KillTerms { grace, repeat_max }
    }
}

/// The kills that have not been confirmed.
pub(super) struct KillRetries {
    launches: Launches,
    /// By id, so that equal histories make equal calls.
    open: BTreeMap<String, Kill>,
    /// The number of unknown executors in `open`.
    unknown: usize,
    /// Whether it was reported that there are too many unknown executors.
    excess_reported: bool,
    /// Whether the subscription has ended and the next has not begun.
    disconnected: bool,
}

struct Kill {
    /// The executor, if the kernel knows it.
    id: Option<ExecutorId>,
    agent_id: Option<String>,
    terms: KillTerms,
    /// When the last call was made.
    asked_at: Timestamp,
    again_at: Timestamp,
    again_after: Duration,
    /// Of an unknown executor: how many more calls will be made.
    unknown_tries: Option<u32>,
}

impl KillRetries {
    pub(super) fn new(launches: Launches) -> KillRetries {
        KillRetries {
            launches,
            open: BTreeMap::new(),
            unknown: 0,
            excess_reported: false,
            disconnected: false,
        }
    }

    /// Kills an executor that the kernel knows.
    pub(super) fn kill(
        &mut self,
        executor: String,
        target: &Target,
        terms: KillTerms,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        // Empty if the executor isn't bound yet.
        let agent_id = Some(&*target.agent_id).filter(|id| !id.is_empty());
        let mut kill = Kill::new(agent_id, terms, now);
        kill.id = Some(target.id);
        if kill.must_wait(&self.launches) {
            kill.again_at = now;
        } else {
            kill.make_call(&executor, now, out);
        }
        let former = self.open.insert(executor, kill);
        self.unknown -= usize::from(former.is_some_and(|kill| kill.is_unknown()));
    }

    /// Whether an executor is being killed.
    pub(super) fn has(&self, executor: &str) -> bool {
        self.open.contains_key(executor)
    }

    /// Kills an unknown executor, which the kernel doesn't count. Beyond [`UNKNOWN_MAX`] of them the kill isn't
    /// repeated; returns the report of that, once.
    pub(super) fn kill_unknown(
        &mut self,
        executor: &str,
        agent_id: Option<&str>,
        grace: Duration,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) -> Option<String> {
        if self.unknown < UNKNOWN_MAX || self.open.contains_key(executor) {
            self.kill_surplus(executor, agent_id, grace, now, out);
            return None;
        }
        out.call(Call::Kill { executor, agent_id, grace });
        let is_first = !std::mem::replace(&mut self.excess_reported, true);
        is_first.then(|| {
            format!(
                "more than {UNKNOWN_MAX} unknown executors run: kills of others aren't repeated"
            )
        })
    }

    /// Kills an unknown executor, and keeps the kill to repeat it. For executors of a former run that the kernel has no
    /// room for: the number of those is that of the records of this program, so it isn't limited.
    pub(super) fn kill_surplus(
        &mut self,
        executor: &str,
        agent_id: Option<&str>,
        grace: Duration,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let kill = self.open.entry(executor.to_owned()).or_insert_with(|| {
            let unknown_tries = Some(UNKNOWN_TRIES);
            let terms = KillTerms { grace, repeat_max: AGAIN_AFTER_MAX };
            self.unknown += 1;
            Kill { unknown_tries, ..Kill::new(agent_id, terms, now) }
        });
        kill.make_call(executor, now, out);
    }

    /// Makes all kills again: a subscription has begun, and earlier calls may be lost.
    pub(super) fn registered(&mut self, now: Timestamp, out: &mut dyn CallSink) {
        self.disconnected = false;
        for (executor, kill) in &mut self.open {
            kill.repeat_now(executor, &self.launches, now, out);
        }
    }

    /// Makes the kill of an executor again, if there is one: it was unreachable, and its agent is back.
    pub(super) fn returned(&mut self, executor: &str, now: Timestamp, out: &mut dyn CallSink) {
        if let Some(kill) = self.open.get_mut(executor) {
            kill.repeat_now(executor, &self.launches, now, out);
        }
    }

    /// Stops repeating kills: the subscription has ended.
    pub(super) fn disconnected(&mut self) {
        self.disconnected = true;
    }

    /// The cluster reports that the executor runs or is about to.
    pub(super) fn seen_alive(&mut self, executor: &str) {
        if let Some(kill) = self.open.get_mut(executor) {
            let again_after = AGAIN_IF_ALIVE.min(kill.terms.repeat_max);
            kill.again_at = kill.again_at.min(kill.asked_at.plus(again_after));
        }
    }

    /// Removes the kill of an executor that has ended or is forgotten.
    pub(super) fn ended(&mut self, executor: &str) {
        self.remove(executor);
    }

    /// Removes the kill of an unknown executor that the cluster reports as not running: no further report will follow.
    pub(super) fn not_seen_alive(&mut self, executor: &str) {
        if self.open.get(executor).is_some_and(Kill::is_unknown) {
            self.remove(executor);
        }
    }

    fn remove(&mut self, executor: &str) {
        let former = self.open.remove(executor);
        self.unknown -= usize::from(former.is_some_and(|kill| kill.is_unknown()));
    }

    /// Repeats the kills that are due.
    pub(super) fn repeat_due(&mut self, now: Timestamp, out: &mut dyn CallSink) {
        if self.disconnected {
            return;
        }
        self.open.retain(|executor, kill| {
            if now < kill.again_at || kill.must_wait(&self.launches) {
                return true;
            }
            match &mut kill.unknown_tries {
                Some(0) => {
                    self.unknown -= 1;
                    return false;
                }
                Some(tries) => *tries -= 1,
                None => {}
            }
            kill.again_after = (kill.again_after * 2).min(kill.terms.repeat_max);
            kill.again_at = now.plus(kill.again_after);
            kill.make_call(executor, now, out);
            true
        });
    }
}

impl Kill {
    /// A kill whose first call is made now.
    fn new(agent_id: Option<&str>, terms: KillTerms, now: Timestamp) -> Kill {
        let mut kill = Kill {
            id: None,
            agent_id: agent_id.map(str::to_owned),
            terms,
            asked_at: now,
            again_at: now,
            again_after: Duration::ZERO,
            unknown_tries: None,
        };
        kill.restart_intervals(now);
        kill
    }

    /// Whether the kernel doesn't know the executor.
    fn is_unknown(&self) -> bool {
        self.unknown_tries.is_some()
    }

    /// Begins the intervals of repetition anew.
    fn restart_intervals(&mut self, now: Timestamp) {
        self.again_after = AGAIN_AFTER.min(self.terms.repeat_max);
        self.again_at = now.plus(self.again_after);
    }

    /// Makes the call now, or when the launch has returned, with fresh intervals.
    fn repeat_now(
        &mut self,
        executor: &str,
        launches: &Launches,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        self.restart_intervals(now);
        if self.must_wait(launches) {
            self.again_at = now;
        } else {
            self.make_call(executor, now, out);
        }
    }

    /// Whether the call that launches the executor may not have returned yet.
    fn must_wait(&self, launches: &Launches) -> bool {
        self.id.is_some_and(|id| launches.under_way(id))
    }

    fn make_call(&mut self, executor: &str, now: Timestamp, out: &mut dyn CallSink) {
        self.asked_at = now;
        let agent_id = self.agent_id.as_deref();
        out.call(Call::Kill { executor, agent_id, grace: self.terms.grace });
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: no executor is ended by force at the same time as the shutdown stops waiting, so that chance doesn't
    /// decide whether it counts as ended. Method: graces below, at and above the timeout.
    #[test]
    fn a_grace_does_not_end_with_the_timeout() {
        let seconds = Duration::from_secs;
        for (grace, timeout, expected) in [(5, 10, 5), (10, 10, 15), (20, 10, 15), (5, 0, 0)] {
            let options = EngineOptions { kill_grace: seconds(grace), ..EngineOptions::default() };
            assert_eq!(KillTerms::of_shutdown(&options, seconds(timeout)).grace, seconds(expected));
        }
    }
}
