//! Builder for [`Config`]. [`ConfigBuilder::build`] validates all settings.

use std::sync::Arc;
use std::time::Duration;

use super::{
    Compatibility, Config, ExclusionRule, ExecutorCores, ExecutorGpus, Placement, Queue, QueueId,
    Queues, RefuseDurations, UnreachableRule,
};
use crate::constraint::Constraint;
use crate::error::Error;
use crate::limits;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// The minimum default overhead of an executor's memory, in MiB.
const OVERHEAD_MEBIBYTES_MIN: u64 = 384;
/// The maximum memory of an executor, in MiB (1 EiB). Anything larger is a typing mistake.
const MEMORY_MEBIBYTES_MAX: u64 = 1 << 40;

/// Builder for [`Config`]; [`ConfigBuilder::build`] validates the settings.
///
/// What settings that can be invalid are called in errors ([`InvalidSetting::name`](crate::InvalidSetting)), and on the
/// command line:
///
/// | method | in errors | key of `offermill run` |
/// |---|---|---|
/// | [`core_cap`](Self::core_cap) | total executor cores | `spark.cores.max` |
/// | [`executor_cores`](Self::executor_cores) | executor cores | `spark.executor.cores` |
/// | [`executor_memory`](Self::executor_memory) | executor memory | `spark.executor.memory` |
/// | [`memory_overhead`](Self::memory_overhead) | memory overhead | `spark.mesos.executor.memoryOverhead` |
/// | [`executor_gpus`](Self::executor_gpus) | executor GPUs | `spark.mesos.executor.gpus` |
/// | [`executor_limit`](Self::executor_limit) | executor limit | `spark.executor.instances` |
/// | [`fixed_port`](Self::fixed_port) | executor port | `spark.blockManager.port` |
/// | [`refuse_durations`](Self::refuse_durations) | refusal for an unmet constraint, for a reached cap, while stopping, for other reasons | `spark.mesos.rejectOfferDurationForUnmetConstraints`, `…ForReachedMaxCores`, `spark.mesos.rejectOfferDuration`, none |
/// | [`exclusion`](Self::exclusion) | failures before exclusion | `spark.excludeOnFailure.application.maxFailedExecutorsPerNode` |
///
/// ```
/// use offermill::Config;
/// use offermill::config::ExecutorCores;
/// use offermill::resources::{Mebibytes, MilliCpus};
///
/// let config = Config::builder()
///     .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(4)))
///     .executor_memory(Mebibytes::new(4096))
///     .core_cap(Some(MilliCpus::from_cores(64)))
///     .build()?;
/// assert_eq!(config.memory_taken(), Mebibytes::new(4505)); // a tenth is overhead
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConfigBuilder {
    /// The settings so far; the memory overhead stands below.
    config: Config,
    /// `None` is the default for the executor's memory.
    memory_overhead: Option<Mebibytes>,
}

impl Default for ConfigBuilder {
    fn default() -> ConfigBuilder {
        let config = Config {
            core_cap: None,
            executor_cores: ExecutorCores::WholeOffer,
            executor_memory: Mebibytes::new(1024),
            memory_overhead: Mebibytes::ZERO,
            extra_cores: MilliCpus::ZERO,
            gpu_cap: Gpus::ZERO,
            executor_gpus: ExecutorGpus::default(),
            executor_limit: None,
            fixed_port: None,
            revocable: false,
            constraint: Constraint::none(),
            refuse: RefuseDurations::default(),
            exclusion: Some(ExclusionRule::default()),
            placement: Placement::default(),
            compatibility: Compatibility::default(),
            locality_wait: None,
            unreachable: UnreachableRule::default(),
            maintenance_lead: Duration::from_secs(600),
            launch_timeout: Duration::from_secs(180),
            revive_interval: Duration::from_secs(5),
            capacity_refresh: Duration::from_millis(100),
            queues: Arc::new(Queues::default()),
        };
        ConfigBuilder { config, memory_overhead: None }
    }
}

impl Config {
    /// Returns a builder with these settings, to change some of them.
    ///
    /// An overhead that is the default for the executor's memory stays the default if the memory is changed.
    ///
    /// ```
    /// # use offermill::{Config, IdScheme, Kernel, resources::Mebibytes};
    /// let kernel = Kernel::new(Config::builder().executor_limit(Some(4)).build()?, IdScheme::plain());
    /// kernel.reconfigure(kernel.config().to_builder().executor_memory(Mebibytes::new(8192)).build()?);
    /// assert_eq!(kernel.executor_limit(), Some(4));
    /// # Ok::<(), offermill::Error>(())
    /// ```
    #[must_use]
    pub fn to_builder(&self) -> ConfigBuilder {
        let is_default = self.memory_overhead == default_overhead(self.executor_memory);
        let memory_overhead = (!is_default).then_some(self.memory_overhead);
        ConfigBuilder { config: self.clone(), memory_overhead }
    }
}

/// The overhead of an executor's memory if none is set.
fn default_overhead(memory: Mebibytes) -> Mebibytes {
    Mebibytes::new((memory.get() / 10).max(OVERHEAD_MEBIBYTES_MIN))
}

impl ConfigBuilder {
    /// Sets the maximum number of cores of all executors together (`spark.cores.max`). Default: no maximum. A remainder
    /// smaller than the cores of one executor stays unused.
    #[must_use]
    pub fn core_cap(mut self, cap: Option<MilliCpus>) -> Self {
        self.config.core_cap = cap;
        self
    }

    /// Sets how many cores an executor takes (`spark.executor.cores`). Default: [`ExecutorCores::WholeOffer`].
    #[must_use]
    pub fn executor_cores(mut self, cores: ExecutorCores) -> Self {
        self.config.executor_cores = cores;
        self
    }

    /// Sets the memory of an executor without its overhead (`spark.executor.memory`). Default 1 GiB.
    #[must_use]
    pub fn executor_memory(mut self, memory: Mebibytes) -> Self {
        self.config.executor_memory = memory;
        self
    }

    /// Sets the memory overhead of an executor (`spark.mesos.executor.memoryOverhead`). Default: a tenth of the
    /// executor's memory, rounded down, at least 384 MiB.
    #[must_use]
    pub fn memory_overhead(mut self, overhead: Option<Mebibytes>) -> Self {
        self.memory_overhead = overhead;
        self
    }

    /// Has the configured executor be the smallest [task](crate::Task) of a framework that places tasks: its cores, its
    /// memory, and no overhead. Since such tasks end all the time, revives come 50 ms apart, not 5 s
    /// ([`revive_interval`](ConfigBuilder::revive_interval), which may be set after this): at a cap that tasks fill,
    /// that is how long the room of one that has ended stays empty.
    #[must_use]
    pub fn smallest_task(self, cores: MilliCpus, memory: Mebibytes) -> Self {
        let builder = self.executor_cores(ExecutorCores::Fixed(cores)).executor_memory(memory);
        let builder = builder.revive_interval(Duration::from_millis(50));
        builder.memory_overhead(Some(Mebibytes::ZERO))
    }

    /// Sets the cores advertised to each executor beyond those that it takes (`spark.mesos.extra.cores`). Default 0.
    ///
    /// They are task slots, not processor time: they are neither taken from the offer nor counted against the core
    /// cap. Only [`Placed::advertised_cores`](crate::Placed::advertised_cores) includes them.
    #[must_use]
    pub fn extra_cores(mut self, cores: u32) -> Self {
        self.config.extra_cores = MilliCpus::from_cores(u64::from(cores));
        self
    }

    /// Sets the maximum number of GPUs of all executors together (`spark.mesos.gpus.max`). Default 0: GPUs aren't used.
    #[must_use]
    pub fn gpu_cap(mut self, cap: Gpus) -> Self {
        self.config.gpu_cap = cap;
        self
    }

    /// Sets how many GPUs an executor takes. Default: [`ExecutorGpus::WhatThereIs`].
    #[must_use]
    pub fn executor_gpus(mut self, gpus: ExecutorGpus) -> Self {
        self.config.executor_gpus = gpus;
        self
    }

    /// Sets the maximum number of executors at a time. Default: no limit. With `Some(0)` nothing is placed until
    /// [`set_executor_limit`](crate::Kernel::set_executor_limit) is called, as dynamic allocation does.
    #[must_use]
    pub fn executor_limit(mut self, limit: Option<u32>) -> Self {
        self.config.executor_limit = limit;
        self
    }

    /// Sets a port that each executor takes (`spark.blockManager.port`), 1024 to 65535. An agent then runs at most one
    /// executor. Default: none.
    #[must_use]
    pub fn fixed_port(mut self, port: Option<u16>) -> Self {
        self.config.fixed_port = port;
        self
    }

    /// Sets whether revocable resources may be used. Default: no.
    ///
    /// Mesos may kill executors that use them at any time, and offers them to frameworks with the capability
    /// `REVOCABLE_RESOURCES`. Mesos doesn't let a task mix revocable and other resources of one name: each executor
    /// takes each kind entirely from non-revocable resources or, if these don't suffice for one more executor, entirely
    /// from revocable ones. Shared resources are never used: they are persistent volumes, which executors don't need.
    #[must_use]
    pub fn revocable(mut self, revocable: bool) -> Self {
        self.config.revocable = revocable;
        self
    }

    /// Sets the constraint that agents must meet. Default: none.
    #[must_use]
    pub fn constraint(mut self, constraint: Constraint) -> Self {
        self.config.constraint = constraint;
        self
    }

    /// Sets how long declined offers are refused for, at most 365 days each.
    #[must_use]
    pub fn refuse_durations(mut self, refuse: RefuseDurations) -> Self {
        self.config.refuse = refuse;
        self
    }

    /// Sets when agents are excluded; `None` means never. Default: two failures within an hour, for an hour.
    #[must_use]
    pub fn exclusion(mut self, rule: Option<ExclusionRule>) -> Self {
        self.config.exclusion = rule;
        self
    }

    /// Sets the order in which agents are filled. Default: round robin.
    #[must_use]
    pub fn placement(mut self, placement: Placement) -> Self {
        self.config.placement = placement;
        self
    }

    /// Sets the behaviour where schedulers differ. Default: [`Compatibility::OFFERMILL`].
    #[must_use]
    pub fn compatibility(mut self, compatibility: Compatibility) -> Self {
        self.config.compatibility = compatibility;
        self
    }

    /// Sets how long executors are placed only on the hosts that
    /// [`request_executors`](crate::Kernel::request_executors) or [`set_locality`](crate::Kernel::set_locality) named
    /// (`spark.locality.wait`), one executor per named host. The wait begins with each such call, with the first batch
    /// below the executor limit, and with the first batch after one at the limit. Its last millisecond is included.
    /// `None` and zero mean no wait: hosts don't matter. Default: no wait.
    #[must_use]
    pub fn locality_wait(mut self, wait: Option<Duration>) -> Self {
        self.config.locality_wait = wait.filter(|wait| !wait.is_zero());
        self
    }

    /// Sets what happens to unreachable executors. Default: their cores count for 5 min, and they are forgotten after
    /// another 10 min.
    #[must_use]
    pub fn unreachable(mut self, rule: UnreachableRule) -> Self {
        self.config.unreachable = rule;
        self
    }

    /// Sets the minimum time before an agent's planned maintenance. No executors are placed on an agent whose
    /// maintenance begins sooner or has begun. Default 10 min.
    #[must_use]
    pub fn maintenance_lead(mut self, lead: Duration) -> Self {
        self.config.maintenance_lead = lead;
        self
    }

    /// Sets how old the picture of the cluster's [capacity](crate::Kernel::capacity) may be before it is rebuilt.
    /// Zero rebuilds it for each call. Default 100 ms.
    /// [`Duration::MAX`] switches it off: what agents offer isn't recorded, and the first picture is the last.
    #[must_use]
    pub fn capacity_refresh(mut self, refresh: Duration) -> Self {
        self.config.capacity_refresh = refresh;
        self
    }

    /// Sets how long a launch may stay unconfirmed before it is reconciled. Default 3 min.
    #[must_use]
    pub fn launch_timeout(mut self, timeout: Duration) -> Self {
        self.config.launch_timeout = timeout;
        self
    }

    /// Sets the minimum time between two revives. Default 5 s.
    #[must_use]
    pub fn revive_interval(mut self, interval: Duration) -> Self {
        self.config.revive_interval = interval;
        self
    }

    /// Adds a queue, or replaces the one of the same name; the name `default` is that of the queue of what names none.
    /// Default: no queues, so that nothing is booked in any.
    ///
    /// A queue is known by its number, in the order in which queues were added. [`Config::to_builder`] keeps that; a
    /// configuration that is built anew must have the same queues in the same order. None can be removed: what it holds
    /// would be nobody's.
    ///
    /// ```
    /// use offermill::config::{Queue, QueueId};
    /// use offermill::resources::MilliCpus;
    /// use offermill::{Config, IdScheme, Kernel};
    ///
    /// let cores = MilliCpus::from_cores;
    /// let config = Config::builder()
    ///     .core_cap(Some(cores(20)))
    ///     .queue(Queue::new("etl").max_cores(Some(cores(16))))
    ///     .queue(Queue::new("web").guaranteed_cores(cores(4)));
    /// let kernel = Kernel::new(config.build()?, IdScheme::plain());
    /// assert_eq!(kernel.config().queues().id("web"), Some(QueueId::new(2)));
    ///
    /// let lowered = Queue::new("etl").max_cores(Some(cores(8)));
    /// kernel.reconfigure(kernel.config().to_builder().queue(lowered).build()?);
    /// # Ok::<(), offermill::Error>(())
    /// ```
    #[must_use]
    pub fn queue(mut self, queue: Queue) -> Self {
        Arc::make_mut(&mut self.config.queues).set(queue);
        self
    }

    /// Sets the most memory that the executors of all queues hold together, out of which the guarantees of memory are
    /// kept. Default: no maximum, so that there is nothing to keep.
    #[must_use]
    pub fn queued_memory(mut self, memory: Option<Mebibytes>) -> Self {
        Arc::make_mut(&mut self.config.queues).memory = memory;
        self
    }

    /// Sets the queue of the executors that [`Handler::resource_offers`](crate::Handler::resource_offers) places, and
    /// of adopted ones that name none. Default: the default queue.
    #[must_use]
    pub fn executor_queue(mut self, queue: QueueId) -> Self {
        Arc::make_mut(&mut self.config.queues).executors = queue;
        self
    }

    /// Validates the settings and builds the configuration.
    ///
    /// # Errors
    /// Fails for the first invalid setting, with its name, its value and what is allowed: an executor without cores or
    /// memory, a core cap below one executor (unless [`Compatibility::idle_allowed`]), a GPU cap below one executor, a
    /// port below 1024, a refusal over 365 days, an exclusion after zero failures, a queue with a wrong name, a
    /// guarantee above a maximum, or a size beyond the limits.
    pub fn build(self) -> Result<Config, Error> {
        self.check_executor()?;
        self.check_caps()?;
        self.check_rules()?;
        self.config.queues.check(self.config.core_cap)?;
        let default = default_overhead(self.config.executor_memory);
        Ok(Config { memory_overhead: self.memory_overhead.unwrap_or(default), ..self.config })
    }

    fn check_executor(&self) -> Result<(), Error> {
        if let ExecutorCores::Fixed(cores) = self.config.executor_cores
            && (cores == MilliCpus::ZERO || cores > limits::EXECUTOR_CORES_MAX)
        {
            let allowed = format!("more than 0 and at most {}", limits::EXECUTOR_CORES_MAX);
            return Err(Error::setting("executor cores", cores, allowed));
        }
        if self.config.executor_memory == Mebibytes::ZERO
            || self.config.executor_memory.get() > MEMORY_MEBIBYTES_MAX
        {
            let allowed = "at least 1 MiB and at most 2^40 MiB";
            return Err(Error::setting("executor memory", self.config.executor_memory, allowed));
        }
        if let Some(overhead) = self.memory_overhead
            && overhead.get() > MEMORY_MEBIBYTES_MAX
        {
            return Err(Error::setting("memory overhead", overhead, "at most 2^40 MiB"));
        }
        if let Some(port) = self.config.fixed_port
            && port < 1024
        {
            return Err(Error::setting("executor port", port, "1024 to 65535"));
        }
        Ok(())
    }

    fn check_caps(&self) -> Result<(), Error> {
        let least = match self.config.executor_cores {
            ExecutorCores::Fixed(cores) => cores,
            ExecutorCores::WholeOffer => MilliCpus::from_cores(1),
        };
        if let Some(cap) = self.config.core_cap
            && cap < least
            && !self.config.compatibility.idle_allowed
        {
            let allowed = format!("at least the {least:#} of one executor");
            return Err(Error::setting("total executor cores", cap, allowed));
        }
        if let ExecutorGpus::Exactly(gpus) = self.config.executor_gpus
            && gpus > self.config.gpu_cap
        {
            let allowed = format!("at most the cap of {:#}", self.config.gpu_cap);
            return Err(Error::setting("executor GPUs", gpus, allowed));
        }
        if let Some(limit) = self.config.executor_limit
            && limit > limits::EXECUTORS_MAX
        {
            let allowed = format!("at most {}", limits::EXECUTORS_MAX);
            return Err(Error::setting("executor limit", limit, allowed));
        }
        Ok(())
    }

    fn check_rules(&self) -> Result<(), Error> {
        let RefuseDurations { unmet_constraint, reached_cap, other, stopping } = self.config.refuse;
        let refusals = [
            ("refusal for an unmet constraint", unmet_constraint),
            ("refusal for a reached cap", reached_cap),
            ("refusal for other reasons", other),
            ("refusal while stopping", stopping),
        ];
        for (name, duration) in refusals {
            if duration > limits::REFUSE_MAX {
                let value = format!("{} s", duration.as_secs());
                return Err(Error::setting(name, value, "at most 365 days"));
            }
        }
        if let Some(rule) = self.config.exclusion
            && rule.failures == 0
        {
            return Err(Error::setting("failures before exclusion", 0, "1 to 255"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an invalid setting is rejected with a sentence that names it. Method: one bad value per rule.
    #[test]
    fn impossible_settings_are_named() {
        let cores = |cores| ExecutorCores::Fixed(MilliCpus::from_cores(cores));
        let day = Duration::from_secs(24 * 3600);
        let bad = [
            (Config::builder().executor_cores(cores(0)), "executor cores"),
            (Config::builder().executor_memory(Mebibytes::ZERO), "executor memory"),
            (
                Config::builder().executor_cores(cores(4)).core_cap(Some(MilliCpus::from_cores(3))),
                "total executor cores is \"3\", but must be at least the 4 cores",
            ),
            (Config::builder().core_cap(Some(MilliCpus::ZERO)), "total executor cores"),
            (Config::builder().executor_gpus(ExecutorGpus::Exactly(Gpus::new(1))), "executor GPUs"),
            (Config::builder().fixed_port(Some(80)), "executor port"),
            (
                Config::builder().refuse_durations(RefuseDurations {
                    other: day * 366,
                    ..RefuseDurations::default()
                }),
                "refusal for other reasons",
            ),
        ];
        for (builder, expected) in bad {
            let error = builder.build().unwrap_err();
            assert!(error.is_setting());
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    /// Goal: the default overhead is Spark's, `max(10 %, 384 MiB)`. Method: the values of Spark's own suite.
    #[test]
    fn overhead_is_a_tenth_but_at_least_384() {
        let taken = |memory, overhead: Option<u64>| {
            let builder = Config::builder()
                .executor_memory(Mebibytes::new(memory))
                .memory_overhead(overhead.map(Mebibytes::new));
            builder.build().unwrap().memory_taken().get()
        };
        assert_eq!(taken(512, None), 896);
        assert_eq!(taken(4096, None), 4505);
        assert_eq!(taken(512, Some(0)), 512);
    }

    /// Goal: a builder made of a configuration builds the same one. Method: the default, and one in which each setting
    /// differs from it; then another memory, with an overhead of its own and without.
    #[test]
    fn a_configuration_is_built_again() {
        let minute = Duration::from_secs(60);
        let all = Config::builder()
            .core_cap(Some(MilliCpus::from_cores(64)))
            .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(2)))
            .executor_memory(Mebibytes::new(2048))
            .memory_overhead(Some(Mebibytes::new(7)))
            .extra_cores(3)
            .gpu_cap(Gpus::new(4))
            .executor_gpus(ExecutorGpus::Exactly(Gpus::new(2)))
            .executor_limit(Some(5))
            .fixed_port(Some(7337))
            .revocable(true)
            .constraint(Constraint::parse("zone:east").unwrap())
            .refuse_durations(RefuseDurations { other: minute, ..RefuseDurations::default() })
            .exclusion(None)
            .placement(Placement::Consolidate)
            .compatibility(Compatibility::SPARK_3_5)
            .locality_wait(Some(minute))
            .unreachable(UnreachableRule { release_after: None, forget_after: minute })
            .maintenance_lead(minute)
            .launch_timeout(minute)
            .revive_interval(minute);
        for builder in [Config::builder(), all.clone()] {
            let config = builder.build().unwrap();
            assert_eq!(config.to_builder().build().unwrap(), config);
        }
        let overhead = |builder: ConfigBuilder| {
            let config = builder.build().unwrap();
            let larger = config.to_builder().executor_memory(Mebibytes::new(8_000));
            larger.build().unwrap().memory_overhead().get()
        };
        assert_eq!((overhead(Config::builder()), overhead(all)), (800, 7));
    }
}
