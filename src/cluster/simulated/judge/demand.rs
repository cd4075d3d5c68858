//! Suppress and revive: rule 20.

use std::time::Duration;

use super::Finding;
use crate::config::Config;
use crate::engine::seam::Call;
use crate::kernel::Kernel;
use crate::time::Timestamp;

/// The control thread may look at demand once between two of its wake-ups; by the third it must have.
const WAKE_UPS: u32 = 3;

#[derive(Default)]
pub(super) struct Demand {
    suppressed: bool,
    revived: Option<Timestamp>,
    /// For so many wake-ups there was no room and no suppression, or room and suppression.
    untold: u32,
}

/// As the framework's settings have it: the default.
fn revive_interval() -> Duration {
    Config::builder().build().map_or(Duration::ZERO, |config| config.revive_interval)
}

impl Demand {
    pub(super) fn registered(&mut self) {
        (self.suppressed, self.untold) = (false, 0);
    }

    pub(super) fn called(&mut self, call: &Call<'_>, now: Timestamp) -> Result<(), Finding> {
        self.suppressed = matches!(call, Call::Suppress);
        if self.suppressed {
            return Ok(());
        }
        let last = self.revived.replace(now);
        match last.map(|last| now.since(last)) {
            Some(after) if after < revive_interval() => {
                Err((20, format!("two revives within {after:?}")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn polled(
        &mut self,
        kernel: &Kernel,
        connected: bool,
        now: Timestamp,
    ) -> Result<(), Finding> {
        let room = kernel.wanted() > 0;
        let due = self.revived.is_none_or(|last| now.since(last) >= revive_interval());
        let told = if room { !self.suppressed || !due } else { self.suppressed };
        self.untold = if told || !connected { 0 } else { self.untold + 1 };
        if self.untold < WAKE_UPS {
            return Ok(());
        }
        let what = if room { "room, and no revive" } else { "no room, and no suppression" };
        Err((20, format!("{what} for {} wake-ups", self.untold)))
    }
}
