//! The executor limit: setting it, reading it, and counting it down when executors finish.
//!
//! The limit in force is a field of the [policy](crate::kernel::state::policy), whose table says which threads write
//! it.

use super::outcome::{LimitRule, Outcome};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::kernel::state::policy::check_limit;
use crate::status::StatusUpdate;
use crate::time::Timestamp;

impl Kernel {
    /// Sets the executor limit; `None` is no limit. Once this has returned, no executor is placed beyond it. Executors
    /// that are already beyond it keep running.
    ///
    /// # Blocking
    /// Waits for other threads that change limit, settings or wanted hosts, that create or drop a
    /// [`Handler`](crate::Handler), that report an agent as lost or exclude it, or that admit an executor which returns
    /// or is adopted. With more than 128 handlers, if batches in progress and the first 128 handlers together pin all
    /// 256 versions of the policy, it waits until one of these batches ends. Handlers never wait for it.
    ///
    /// # Errors
    /// Fails if the limit exceeds [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX).
    pub fn set_executor_limit(&self, limit: Option<u32>) -> Result<(), Error> {
        check_limit(limit)?;
        self.0.policy.set_limit(limit, &self.0.admission);
        Ok(())
    }

    /// Lowers the executor limit by `by` in one step, to 0 at the least.
    pub(crate) fn lower_executor_limit(&self, by: u32) {
        self.0.policy.lower_limit(by, &self.0.admission);
    }

    /// Returns the executor limit in force.
    #[must_use]
    pub fn executor_limit(&self) -> Option<u32> {
        self.0.policy.load().limit
    }

    /// [`Kernel::status_update`] with a rule for the executor limit.
    ///
    /// With [`LimitRule::CountDown`] an update that ends a live executor as finished lowers the limit by one, to 0 at
    /// the least, before the executor's capacity is free, so that no offer replaces it. Duplicates change nothing. This
    /// is one step: a limit that is set concurrently is set before it and lowered, or after it and kept. So the limit
    /// in force is the one that was set last, minus the executors that finished after that.
    ///
    /// Not lock-free if the executor finished: it takes the lock that setters of settings take.
    pub fn status_update_with(
        &self,
        update: &StatusUpdate<'_>,
        limit: LimitRule,
        now: Timestamp,
    ) -> Outcome {
        self.0.status_update(update, limit, now)
    }

    /// [`Kernel::status_updates`] with a rule for the executor limit, as in [`Kernel::status_update_with`]. Executors
    /// that are released together lower the limit together, before that.
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use crate::{Config, IdScheme, Kernel};

    /// Goal: the limit is lowered by a number, to 0 at the least, and no limit stays none. Method: these three.
    #[test]
    fn the_limit_is_lowered_to_zero_at_the_least() {
        let config = Config::builder().executor_limit(Some(5)).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        for (by, left) in [(2, 3), (0, 3), (4, 0)] {
            kernel.lower_executor_limit(by);
            assert_eq!(kernel.executor_limit(), Some(left));
        }
        kernel.set_executor_limit(None).unwrap();
        kernel.lower_executor_limit(1);
        assert_eq!(kernel.executor_limit(), None);
    }
}
