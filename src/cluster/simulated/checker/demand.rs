//! Suppress and revive: rule 20.

use std::time::Duration;

use super::Finding;
use crate::config::Config;
use crate::engine::cluster_manager::Call;
use crate::time::Timestamp;

/// The control thread may look at demand once between two of its wake-ups; by the third it must have.
const WAKE_UPS: u32 = 3;
/// A suppression is not repeated sooner.
const SUPPRESS_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// So much longer than the longest refusal is silence.
const SILENCE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Demand {
    /// When suppression was said last, if nothing took it back.
    suppressed: Option<Timestamp>,
    revived: Option<Timestamp>,
    /// Since the last call offers were refused for the sake of a cap.
    refused: bool,
    /// Since the last revive the settings were changed.
    changed: bool,
    /// Nothing was offered since, though there was room.
    quiet_since: Timestamp,
    /// For so many wake-ups there was no room and no suppression, or room and suppression.
    untold: u32,
}

/// As the framework's settings have it: the default.
fn revive_interval() -> Duration {
    Config::builder().build().map_or(Duration::ZERO, |config| config.revive_interval)
}

/// How long nothing is offered before that is a reason to revive.
fn silence(config: &Config) -> Duration {
    config.refuse_durations().longest() + SILENCE
}

impl Demand {
    pub(super) fn registered(&mut self, now: Timestamp) {
        let revived = self.revived;
        *self = Demand { revived, quiet_since: now, ..Demand::default() };
    }

    /// The settings were changed.
    pub(super) fn settings_changed(&mut self) {
        self.changed = true;
    }

    /// A batch was answered; whether offers were refused for the sake of a cap.
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
    ) -> Result<(), Finding> {
        let judged = match call {
            Call::Suppress { .. } => self.may_suppress(room, now),
            _ => self.may_revive(room, silence(config), now),
        };
        (self.refused, self.quiet_since) = (false, now);
        if let Call::Suppress { .. } = call {
            self.suppressed = Some(now);
        } else {
            (self.suppressed, self.revived, self.changed) = (None, Some(now), false);
        }
        judged.map_err(|what| (20, what))
    }

    fn may_suppress(&self, room: bool, now: Timestamp) -> Result<(), String> {
        if room {
            return Err("room, and a suppression".to_owned());
        }
        let Some(last) = self.suppressed else { return Ok(()) };
        let after = now.since(last);
        if after < SUPPRESS_AGAIN_AFTER {
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

    /// The framework's control thread was woken by time; whether there is room for an executor.
    pub(super) fn polled(&mut self, room: bool, now: Timestamp) -> Result<(), Finding> {
        if !room {
            self.quiet_since = self.quiet_since.max(now);
        }
        let suppressed = self.suppressed.is_some();
        let due = self.revived.is_none_or(|last| now.since(last) >= revive_interval());
        let told = if room { !suppressed || !due } else { suppressed };
        self.untold = if told { 0 } else { self.untold + 1 };
        if self.untold < WAKE_UPS {
            return Ok(());
        }
        let what = if room { "room, and no revive" } else { "no room, and no suppression" };
        Err((20, format!("{what} for {} wake-ups", self.untold)))
    }

    pub(super) fn disconnected(&mut self) {
        self.untold = 0;
    }
}
