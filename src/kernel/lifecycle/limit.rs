//! The executor limit: how it is set, read, and counted down by executors that finish.
//!
//! The limit in force is a field of the [policy](crate::kernel::state::policy), whose table says who writes it.

use super::updates::Outcome;
use crate::error::Error;
use crate::kernel::Kernel;
use crate::kernel::state::policy::check_limit;
use crate::status::StatusUpdate;
use crate::time::Timestamp;

/// What the end of an executor does to the executor limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitRule {
    /// Nothing.
    #[default]
    Keep,
    /// An executor that [finished](crate::Fate::Finished) lowers the limit by one, so that it is not replaced.
    CountDown,
}

impl Kernel {
    /// Puts a new executor limit in force; `None` is no limit. Once this has returned, no executor is placed beyond
    /// it. Executors that are beyond it already run on.
    ///
    /// # Blocking
    /// Waits for other threads that change limit, settings or wanted hosts, for one that makes or drops a
    /// [`Handler`](crate::Handler), for one that reports an agent as lost or excludes it, and for one that takes an
    /// executor into the books that returns or is adopted. If there are over 128 handlers, and batches in progress
    /// and the first 128 handlers together hold all 256 versions of the policy, it waits until one of these batches
    /// ends. No handler waits for it.
    ///
    /// # Errors
    /// When the limit is over [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX).
    pub fn set_executor_limit(&self, limit: Option<u32>) -> Result<(), Error> {
        check_limit(limit)?;
        self.0.policy.set_limit(limit, &self.0.admission);
        Ok(())
    }

    /// Lowers the executor limit by so many, as one step, to 0 at the least.
    pub(crate) fn lower_executor_limit(&self, by: u32) {
        self.0.policy.lower_limit(by, &self.0.admission);
    }

    /// The executor limit in force.
    #[must_use]
    pub fn executor_limit(&self) -> Option<u32> {
        self.0.policy.load().limit
    }

    /// [`Kernel::status_update`], with a rule for the executor limit.
    ///
    /// With [`LimitRule::CountDown`] an update that ends a live executor as finished lowers the limit by one, to 0 at
    /// the least, before the executor's place is free: no offer fills it. Duplicates change nothing. This is one step:
    /// a limit that is set at the same time comes before it, and is lowered, or after it, and stays. So the limit in
    /// force is the one that was set last, less the executors that finished after it.
    ///
    /// Not lock-free if the executor finished: it takes the lock of those that change settings.
    pub fn status_update_with(
        &self,
        update: &StatusUpdate<'_>,
        limit: LimitRule,
        now: Timestamp,
    ) -> Outcome {
        self.0.status_update(update, limit, now)
    }

    /// [`Kernel::status_updates`], with a rule for the executor limit, as in [`Kernel::status_update_with`]: executors
    /// that leave the books together lower the limit together, before that.
    pub fn status_updates_with(
        &self,
        updates: &[StatusUpdate<'_>],
        limit: LimitRule,
        now: Timestamp,
        outcomes: &mut Vec<Outcome>,
    ) {
        self.0.status_updates(updates, limit, now, outcomes);
    }
}
