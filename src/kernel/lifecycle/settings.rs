//! The settings: reading and replacing them while executors run.

use crate::config::Config;
use crate::kernel::Kernel;

impl Kernel {
    /// Returns the settings in force. Their executor limit is the one in force, which
    /// [`Kernel::set_executor_limit`] and [`LimitRule::CountDown`](crate::LimitRule::CountDown) change. Therefore
    /// `kernel.reconfigure(kernel.config())` changes nothing, unless another thread changes settings or limit in
    /// between.
    #[must_use]
    pub fn config(&self) -> Config {
        let policy = self.0.policy.load();
        Config { executor_limit: policy.limit, ..policy.config.clone() }
    }

    /// Replaces the settings, including the executor limit. The next revive asks again for offers that were refused.
    ///
    /// To change one setting, start from [`Kernel::config`], which includes the limit in force. Settings that are equal
    /// to those in force change nothing.
    ///
    /// # Consistency
    /// Once this has returned, no executor is placed under the old settings, not even by a batch that began before. The
    /// exception are [guarantees](Kernel::set_queue_demand) of queues: these are in force from the return on, and a
    /// batch that has booked its executors by then may be placed after. What a batch had booked in queues under the old
    /// settings is given back; [`Kernel::queues`] may show it until then.
    ///
    /// What isn't a setting stays, and is judged by the new settings from then on:
    ///
    /// | what | afterwards |
    /// |---|---|
    /// | the executor limit | replaced |
    /// | executors, and the resources that each of them takes | kept, also beyond a new cap or limit |
    /// | executors on agents that don't meet the new constraint | kept |
    /// | ids of executors, adopted ones included | kept |
    /// | the time since when an executor is unreachable | kept; the new rule applies to all of it |
    /// | executors that were given up | kept; they don't count again before they return |
    /// | exclusions, with the ends that they have | kept, also without a rule for them |
    /// | failures counted so far | kept; the next one is judged by the new rule |
    /// | the 10 s after a report that an agent is lost | kept |
    /// | wanted hosts | kept |
    /// | handlers | kept; their next batch follows the new settings |
    /// | the subscription | kept |
    /// | counters of offers | kept |
    /// | nearest misses in an explanation | dropped: they were found under the old settings |
    /// | refusals that were sent | undone by a revive, which becomes due |
    /// | executors of a queue whose maximum is lowered | kept; no other is placed in it until it holds less |
    /// | executors that were placed while there were no queues | in none, also if there are queues now |
    /// | whether a queue has [demand](Kernel::set_queue_demand) | kept |
    /// | the close of the kernel | kept: it is permanent |
    ///
    /// Executors know their queue by its number: settings that are built anew must have the same queues in the same
    /// order, new ones at the end. A queue that is missing while others are there has no room: its executors are kept,
    /// but one that was given up is killed when it returns. Demand that was set before there were queues isn't known.
    ///
    /// # Blocking
    /// Blocks as [`Kernel::set_executor_limit`] does. Handlers never wait for it.
    ///
    /// ```
    /// # use offermill::resources::Mebibytes;
    /// # use offermill::{Config, Constraint, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp};
    /// # let kernel = Kernel::new(Config::builder().executor_limit(Some(4)).build()?, IdScheme::plain());
    /// # let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 4096.0)];
    /// # let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
    /// # let (now, mut decisions) = (Timestamp::ORIGIN, Decisions::new());
    /// let mut handler = kernel.handler();
    /// handler.resource_offers(&offers, now, &mut decisions); // an agent without a zone
    /// assert_eq!(decisions.executors(), 1);
    ///
    /// let zone = Constraint::parse("zone:east")?;
    /// kernel.reconfigure(kernel.config().to_builder().constraint(zone).build()?);
    /// handler.resource_offers(&offers, now, &mut decisions);
    /// assert_eq!(decisions.declines()[0].reason.kind().as_str(), "constraint unmet");
    /// assert_eq!(kernel.totals().executors, 1); // the first one runs on
    /// assert_eq!(kernel.executor_limit(), Some(4));
    /// # Ok::<(), offermill::Error>(())
    /// ```
    pub fn reconfigure(&self, config: Config) {
        // Before batches follow them.
        self.0.make_queues(&config);
        if self.0.policy.set_config(config, &self.0.admission) {
            self.0.apply_guarantees();
            self.0.demand.request_revive();
        }
    }
}
