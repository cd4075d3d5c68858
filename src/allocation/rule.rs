//! The validated settings of dynamic allocation, and their builder.

use std::time::Duration;

use crate::error::Error;
use crate::limits;

/// The validated settings of an [`Allocator`](super::Allocator). Create one with [`AllocationRule::builder`].
#[derive(Clone, Debug, PartialEq)]
pub struct AllocationRule {
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) initial: u32,
    pub(super) ratio: f64,
    pub(super) slots: u32,
    pub(super) backlog_timeout: Duration,
    pub(super) sustained_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) cached_idle_timeout: Option<Duration>,
    pub(super) shuffle_timeout: Option<Duration>,
}

impl AllocationRule {
    /// Returns a builder with every setting at its default, which is Spark's.
    #[must_use]
    pub fn builder() -> AllocationRuleBuilder {
        AllocationRuleBuilder::default()
    }

    /// Returns the minimum number of executors.
    #[must_use]
    pub fn min(&self) -> u32 {
        self.min
    }

    /// Returns the maximum number of executors.
    #[must_use]
    pub fn max(&self) -> u32 {
        self.max
    }

    /// Returns the initial executor limit.
    #[must_use]
    pub fn initial(&self) -> u32 {
        self.initial
    }

    /// Returns how many tasks an executor runs at a time.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns how long an executor without cached blocks and shuffle data may be idle.
    #[must_use]
    pub fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }
}

/// Builder for [`AllocationRule`]; [`AllocationRuleBuilder::build`] validates the settings.
#[derive(Clone, Debug)]
pub struct AllocationRuleBuilder {
    min: u32,
    max: u32,
    initial: u32,
    ratio: f64,
    slots: u32,
    backlog_timeout: Duration,
    sustained_timeout: Option<Duration>,
    idle_timeout: Duration,
    cached_idle_timeout: Option<Duration>,
    shuffle_timeout: Option<Duration>,
}

impl Default for AllocationRuleBuilder {
    fn default() -> AllocationRuleBuilder {
        AllocationRuleBuilder {
            min: 0,
            max: limits::EXECUTORS_MAX,
            initial: 0,
            ratio: 1.0,
            slots: 1,
            backlog_timeout: Duration::from_secs(1),
            sustained_timeout: None,
            idle_timeout: Duration::from_secs(60),
            cached_idle_timeout: None,
            shuffle_timeout: None,
        }
    }
}

impl AllocationRuleBuilder {
    /// Sets the minimum number of executors (`spark.dynamicAllocation.minExecutors`). Default 0.
    #[must_use]
    pub fn min(mut self, executors: u32) -> Self {
        self.min = executors;
        self
    }

    /// Sets the maximum number of executors, at least 1 (`spark.dynamicAllocation.maxExecutors`). Values above
    /// [`limits::EXECUTORS_MAX`] mean that limit, which is also the default: Spark's default is the largest `Int`.
    #[must_use]
    pub fn max(mut self, executors: u32) -> Self {
        self.max = executors.min(limits::EXECUTORS_MAX);
        self
    }

    /// Sets the initial executor limit (`spark.dynamicAllocation.initialExecutors`, or `spark.executor.instances` if
    /// that is larger). The default, and the minimum, is [`AllocationRuleBuilder::min`].
    #[must_use]
    pub fn initial(mut self, executors: u32) -> Self {
        self.initial = executors;
        self
    }

    /// Sets the fraction of the executors that could run all tasks at once, above 0 and at most 1
    /// (`spark.dynamicAllocation.executorAllocationRatio`). Default 1.
    #[must_use]
    pub fn ratio(mut self, ratio: f64) -> Self {
        self.ratio = ratio;
        self
    }

    /// Sets how many tasks an executor runs at a time, at least 1 (`spark.executor.cores ÷ spark.task.cpus`, rounded
    /// down). Default 1.
    #[must_use]
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// Sets how long tasks wait before the limit grows, at least 1 ms
    /// (`spark.dynamicAllocation.schedulerBacklogTimeout`). Like all timeouts here, it has a resolution of one
    /// millisecond. Default 1 s.
    #[must_use]
    pub fn backlog_timeout(mut self, timeout: Duration) -> Self {
        self.backlog_timeout = timeout;
        self
    }

    /// Sets how long tasks continue to wait before the limit grows again
    /// (`spark.dynamicAllocation.sustainedSchedulerBacklogTimeout`), at least 1 ms. `None`, the default, means
    /// [`AllocationRuleBuilder::backlog_timeout`].
    #[must_use]
    pub fn sustained_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.sustained_timeout = timeout;
        self
    }

    /// Sets how long an executor without cached blocks and shuffle data may be idle
    /// (`spark.dynamicAllocation.executorIdleTimeout`). Default 60 s.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets how long an executor with cached blocks may be idle (`spark.dynamicAllocation.cachedExecutorIdleTimeout`).
    /// `None`, the default, means forever.
    #[must_use]
    pub fn cached_idle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.cached_idle_timeout = timeout;
        self
    }

    /// Sets how long an executor with shuffle data that no running job needs may be idle
    /// (`spark.dynamicAllocation.shuffleTracking.timeout`). It has no effect unless shuffle data is reported to
    /// [`Allocator::shuffle`], which is unnecessary with an external shuffle service. `None`, the default, means
    /// forever.
    ///
    /// [`Allocator::shuffle`]: super::Allocator::shuffle
    #[must_use]
    pub fn shuffle_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.shuffle_timeout = timeout;
        self
    }

    /// Validates the settings and builds the rule.
    ///
    /// # Errors
    /// Fails for the first invalid setting: a maximum of 0 executors, a minimum or initial number above the maximum, a
    /// ratio outside of (0, 1], 0 task slots, or a backlog timeout below 1 ms.
    pub fn build(self) -> Result<AllocationRule, Error> {
        let AllocationRuleBuilder { min, max, ratio, slots, .. } = self;
        if max == 0 {
            return Err(Error::setting("maximum of executors", max, "at least 1"));
        }
        if min > max {
            let allowed = format!("at most the maximum, {max}");
            return Err(Error::setting("minimum of executors", min, allowed));
        }
        let initial = self.initial.max(min);
        if initial > max {
            let allowed = format!("at most the maximum, {max}");
            return Err(Error::setting("initial number of executors", initial, allowed));
        }
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err(Error::setting("executor allocation ratio", ratio, "above 0, at most 1"));
        }
        if slots == 0 {
            return Err(Error::setting("number of task slots", slots, "at least 1"));
        }
        let backlog_timeout = positive("backlog timeout", self.backlog_timeout)?;
        let sustained = self.sustained_timeout.unwrap_or(backlog_timeout);
        let sustained_timeout = positive("sustained backlog timeout", sustained)?;
        let AllocationRuleBuilder { idle_timeout, cached_idle_timeout, shuffle_timeout, .. } = self;
        Ok(AllocationRule {
            min,
            max,
            initial,
            ratio,
            slots,
            backlog_timeout,
            sustained_timeout,
            idle_timeout,
            cached_idle_timeout,
            shuffle_timeout,
        })
    }
}

fn positive(name: &str, timeout: Duration) -> Result<Duration, Error> {
    if timeout < Duration::from_millis(1) {
        return Err(Error::setting(name, format!("{timeout:?}"), "at least 1 ms"));
    }
    Ok(timeout)
}
