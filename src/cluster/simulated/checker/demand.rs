//! Checks suppress and revive calls: invariant 20.

use std::time::Duration;

use super::rule::RuleViolation;
use crate::config::Config;
use crate::engine::cluster_manager::Call;
use crate::time::Timestamp;

/// The maximum number of polls of the control thread until it sends a call that is due.
const POLLS_MAX: u32 = 3;
/// The minimum time between two suppress calls.
const SUPPRESS_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// The minimum time without offers that justifies a revive, beyond the longest refusal.
const SILENCE_BEYOND_REFUSAL: Duration = Duration::from_secs(10);

/// The state of suppress and revive calls.
#[derive(Default)]
pub(super) struct DemandChecker {
    /// The time of the last suppress call, if no revive followed.
    suppressed: Option<Timestamp>,
    revived: Option<Timestamp>,
    /// Whether offers were refused because of a cap since the last call.
    refused: bool,
    /// Whether the settings were changed since the last revive.
    changed: bool,
    /// The time since which nothing was offered, although the caps allowed more executors.
    quiet_since: Timestamp,
    /// For how many polls a suppress or revive call has been due.
    polls_overdue: u32,
}

/// The interval of revives: the default setting.
fn revive_interval() -> Duration {
    Config::builder().build().map_or(Duration::ZERO, |config| config.revive_interval)
}

/// The minimum time without offers that justifies a revive.
fn silence(config: &Config) -> Duration {
    config.refuse_durations().longest() + SILENCE_BEYOND_REFUSAL
}

impl DemandChecker {
    /// A subscription begins. If there are queues, what one has refused in the last may be revived in this one: a claim
    /// of then is given back whenever it is.
    pub(super) fn registered(&mut self, has_queues: bool, now: Timestamp) {
        let DemandChecker { revived, refused, .. } = *self;
        let refused = refused && has_queues;
        *self = DemandChecker { revived, refused, quiet_since: now, ..DemandChecker::default() };
    }

    /// The settings were changed.
    pub(super) fn settings_changed(&mut self) {
        self.changed = true;
    }

    /// A batch was answered. `refused`: offers were refused because of a cap.
    pub(super) fn answered(&mut self, refused: bool, now: Timestamp) {
        self.refused |= refused;
        self.quiet_since = self.quiet_since.max(now);
    }

    pub(super) fn called(
        &mut self,
        call: &Call<'_>,
        room: bool,
        config: &Config,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let checked = match call {
            Call::Suppress { .. } => self.may_suppress(room, now),
            _ => self.may_revive(room, silence(config), now),
        };
        self.refused = false;
        self.quiet_since = now;
        if let Call::Suppress { .. } = call {
            self.suppressed = Some(now);
        } else {
            self.suppressed = None;
            self.revived = Some(now);
            self.changed = false;
        }
        checked.map_err(|what| (20, what))
    }

    fn may_suppress(&self, room: bool, now: Timestamp) -> Result<(), String> {
        if room {
            return Err("room, and a suppression".to_owned());
        }
        let Some(last) = self.suppressed else { return Ok(()) };
        let after = now.since(last);
        if after < SUPPRESS_INTERVAL_MIN {
            return Err(format!("two suppressions within {after:?}"));
        }
        if !self.refused {
            return Err(format!("a suppression after that of {last}, and no offer between"));
        }
        Ok(())
    }

    fn may_revive(&self, room: bool, silence: Duration, now: Timestamp) -> Result<(), String> {
        if !room {
            return Err("no room, and a revive".to_owned());
        }
        match self.revived.map(|last| now.since(last)) {
            Some(after) if after < revive_interval() => {
                return Err(format!("two revives within {after:?}"));
            }
            _ => {}
        }
        let silent = now.since(self.quiet_since) >= silence;
        if self.suppressed.is_some() || self.refused || self.changed || silent {
            return Ok(());
        }
        Err("a revive without a reason".to_owned())
    }

    /// The framework's control thread has polled. `room`: the caps allow another executor.
    pub(super) fn polled(&mut self, room: bool, now: Timestamp) -> Result<(), RuleViolation> {
        if !room {
            self.quiet_since = self.quiet_since.max(now);
        }
        let suppressed = self.suppressed.is_some();
        let due = self.revived.is_none_or(|last| now.since(last) >= revive_interval());
        let is_settled = if room { !suppressed || !due } else { suppressed };
        self.polls_overdue = if is_settled { 0 } else { self.polls_overdue + 1 };
        if self.polls_overdue < POLLS_MAX {
            return Ok(());
        }
        let what = if room { "room, and no revive" } else { "no room, and no suppression" };
        Err((20, format!("{what} for {} wake-ups", self.polls_overdue)))
    }

    pub(super) fn disconnected(&mut self) {
        self.polls_overdue = 0;
    }
}
