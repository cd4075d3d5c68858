//! The policy: everything that can change while handlers run, as one immutable value.
//!
//! | thread | operation | pairs with |
//! |---|---|---|
//! | [`PolicyCell::set_config`], [`PolicyCell::set_limit`], [`PolicyCell::set_locality`], under a lock | publish, then [`Admission::bump_version`] | a handler that sees the new version sees the new policy |
//! | [`PolicyCell::lower_limit`], for executors that have finished | the same, *then* [`Admission::release`] | a handler that sees the freed capacity sees the lower limit |
//! | the thread that excluded or suspected an agent | [`PolicyCell::invalidate_plans`]: the version, under the same lock | a handler that sees the new version sees the agent's new state |
//! | handler | loads the admission word, *then* the policy | so its policy is at least as new as the word's version |
//!
//! A commit fails if the version changed since the word was loaded, even if it changed so often that versions are
//! reused. So once a setter has returned, no executor is admitted under an older policy. Threads other than handlers
//! [freeze](PolicyCell::freeze) the policy while they admit. The cell is an `ArcSwap`; model checkers see a mock with
//! the same guarantees (see [`sync`](crate::sync)).

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{Mutex, MutexGuard, Swap, SwapGuard, SwapView, lock};

use super::admission::{Admission, AdmissionState};
use super::locality::Locality;
use crate::config::{Config, ExecutorCores, ExecutorGpus};
use crate::error::Error;
use crate::kernel::reason::Reason;
use crate::limits;
use crate::resources::{Gpus, MilliCpus};

/// The settings and limits that handlers follow.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// The settings. Their executor limit is the first one; see `limit` for the one in force.
    pub(crate) config: Config,
    /// The executor limit in force: at first the config's, then the one set last, minus the executors counted down
    /// since.
    pub(crate) limit: Option<u32>,
    /// The wanted hosts.
    pub(crate) locality: Arc<Locality>,
    /// Grows with each change.
    pub(crate) number: u64,
    /// Changes with the settings, but not if only the executor limit is set: under one number, offers are checked
    /// alike.
    pub(crate) config_version: u64,
    /// Whether the constraint was another one at first: counts of offers since then say nothing about this one.
    pub(crate) constraint_replaced: bool,
}

/// What the caps leave, at the time of one load of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headroom {
    pub(crate) executors: u32,
    pub(crate) cores: MilliCpus,
}

impl Policy {
    /// Returns what the caps leave beyond `admission`, or the cap that leaves too little for any executor.
    pub(crate) fn headroom(&self, admission: AdmissionState) -> Result<Headroom, Reason> {
        let limit = self.limit.unwrap_or(limits::EXECUTORS_MAX).min(limits::EXECUTORS_MAX);
        let executors = limit.saturating_sub(admission.executors());
        if executors == 0 {
            return Err(Reason::ExecutorLimit { limit });
        }
        Ok(Headroom { executors, cores: self.core_headroom(admission)? })
    }

    /// Returns the cores that the core cap leaves beyond `admission`, unless they are too few for any executor.
    pub(crate) fn core_headroom(&self, admission: AdmissionState) -> Result<MilliCpus, Reason> {
        let cap = self.core_cap();
        let left = MilliCpus::from_millis(cap.millis().saturating_sub(admission.cores().millis()));
        let asked = self.config.cores_at_least();
        if left < asked {
            return Err(Reason::CoreCap { cap, acquired: admission.cores(), asked });
        }
        Ok(left)
    }

    /// Whether this cap is the reason for every unused offer that meets the constraint, whatever else the offer lacks.
    /// Other caps rank after what the offer lacks.
    pub(crate) fn outranks(&self, cap: &Reason) -> bool {
        matches!(cap, Reason::CoreCap { .. }) && self.config.compatibility.constraint_before_cap
    }

    /// Whether the caps leave room beyond `admission` for one executor of exactly this size.
    pub(crate) fn has_room_for(&self, admission: AdmissionState, cores: MilliCpus) -> bool {
        let limit = self.limit.unwrap_or(limits::EXECUTORS_MAX).min(limits::EXECUTORS_MAX);
        admission.executors() < limit
            && admission.cores().millis().saturating_add(cores.millis()) <= self.core_cap().millis()
    }

    /// Returns the GPUs that the cap leaves, unless an executor takes more than that.
    pub(crate) fn gpu_headroom(&self, taken: u64) -> Result<u64, Reason> {
        let cap = u64::from(self.config.gpu_cap.get());
        let left = cap.saturating_sub(taken);
        match self.config.executor_gpus {
            ExecutorGpus::Exactly(asked) if u64::from(asked.get()) > left => {
                let acquired = Gpus::new(u32::try_from(taken).unwrap_or(u32::MAX));
                Err(Reason::GpuCap { cap: self.config.gpu_cap, acquired, asked })
            }
            _ => Ok(left),
        }
    }

    /// How many executors the GPU cap leaves room for.
    pub(crate) fn room_by_gpus(&self, taken: u64) -> u32 {
        match self.config.executor_gpus {
            ExecutorGpus::Exactly(each) if each > Gpus::ZERO => {
                let left = u64::from(self.config.gpu_cap.get()).saturating_sub(taken);
                u32::try_from(left / u64::from(each.get())).unwrap_or(u32::MAX)
            }
            _ => u32::MAX,
        }
    }

    /// Whether a limit or cap bounds the number of executors.
    pub(crate) fn is_bounded(&self) -> bool {
        self.limit.is_some() || self.config.core_cap.is_some() || self.room_by_gpus(0) < u32::MAX
    }

    pub(crate) fn core_cap(&self) -> MilliCpus {
        self.config.core_cap.unwrap_or(limits::TOTAL_CORES_MAX).min(limits::TOTAL_CORES_MAX)
    }

    /// The cores of an executor, if they are fixed.
    pub(crate) fn fixed_cores(&self) -> Option<MilliCpus> {
        match self.config.executor_cores {
            ExecutorCores::Fixed(cores) => Some(cores),
            ExecutorCores::WholeOffer => None,
        }
    }

    /// Whether executors may differ in size, as they take what there is of cores or of GPUs.
    pub(crate) fn sizes_differ(&self) -> bool {
        let config = &self.config;
        let takes_gpus =
            config.gpu_cap > Gpus::ZERO && config.executor_gpus == ExecutorGpus::WhatThereIs;
        takes_gpus || self.fixed_cores().is_none()
    }
}

/// Returns an error if the executor limit is too large.
pub(crate) fn check_limit(limit: Option<u32>) -> Result<(), Error> {
    match limit {
        Some(limit) if limit > limits::EXECUTORS_MAX => {
            let allowed = format!("at most {}", limits::EXECUTORS_MAX);
            Err(Error::setting("executor limit", limit, allowed))
        }
        _ => Ok(()),
    }
}

/// The policy in force, and the lock of threads that replace it.
#[derive(Debug)]
pub(crate) struct PolicyCell {
    current: Swap<Policy>,
    /// On another cache line than the pointer that each batch reads.
    publisher: CachePadded<Mutex<()>>,
}

/// A handler's cached pointer to the policy: one comparison while nothing changes.
pub(crate) type PolicyView = SwapView<Policy>;

impl PolicyCell {
    pub(crate) fn new(config: Config) -> PolicyCell {
        let limit = config.executor_limit;
        let policy = Policy {
            config,
            limit,
            locality: Arc::default(),
            number: 0,
            config_version: 0,
            constraint_replaced: false,
        };
        PolicyCell { current: Swap::new(policy), publisher: CachePadded::new(Mutex::new(())) }
    }

    pub(crate) fn view(&self) -> PolicyView {
        self.current.view()
    }

    /// Loads the policy, for use within one function.
    pub(crate) fn load(&self) -> SwapGuard<Policy> {
        self.current.load()
    }

    /// Keeps the policy from changing until the guard is dropped. For threads that admit without a pin.
    pub(crate) fn freeze(&self) -> MutexGuard<'_, ()> {
        lock(&self.publisher)
    }

    /// Makes batches in progress plan again, as a change of policy does. Once this has returned, no executor is
    /// admitted by a plan that was made before.
    pub(crate) fn invalidate_plans(&self, admission: &Admission) {
        let _publisher = lock(&self.publisher);
        admission.bump_version();
    }

    /// Publishes a policy. The caller holds the lock.
    fn publish(&self, old: &Policy, new: Policy, admission: &Admission) {
        self.current.store(Arc::new(Policy { number: old.number + 1, ..new }));
        admission.bump_version();
    }

    /// Replaces the settings, including the executor limit. Returns whether anything changed.
    pub(crate) fn set_config(&self, config: Config, admission: &Admission) -> bool {
        let _publisher = lock(&self.publisher);
        let old = self.load();
        let limit = config.executor_limit;
        // The limit in force is the policy's, not that of its settings.
        let config = Config { executor_limit: old.config.executor_limit, ..config };
        let differs = old.config != config;
        if !differs && old.limit == limit {
            return false;
        }
        let config_version = old.config_version + u64::from(differs);
        let constraint_replaced =
            old.constraint_replaced || old.config.constraint != config.constraint;
        let replaced =
            Policy { config, limit, config_version, constraint_replaced, ..Policy::clone(&old) };
        self.publish(&old, replaced, admission);
        true
    }

    /// Publishes the same policy with the next number. What was refused under the number before may be wanted now: a
    /// batch or an answer that finds another number in force requests a revive.
    pub(crate) fn renumber(&self, admission: &Admission) {
        let _publisher = lock(&self.publisher);
        let old = self.load();
        self.publish(&old, Policy::clone(&old), admission);
    }

    /// Sets the executor limit.
    pub(crate) fn set_limit(&self, limit: Option<u32>, admission: &Admission) {
        self.change_limit(|_| limit, admission);
    }

    /// Lowers the executor limit by `by`, to 0 at the least, if there is one. This is one step: a limit that is set
    /// concurrently is set before it and lowered, or after it and kept.
    pub(crate) fn lower_limit(&self, by: u32, admission: &Admission) {
        self.change_limit(|limit| limit.map(|limit| limit.saturating_sub(by)), admission);
    }

    fn change_limit(&self, limit: impl FnOnce(Option<u32>) -> Option<u32>, admission: &Admission) {
        let _publisher = lock(&self.publisher);
        let old = self.load();
        let limit = limit(old.limit);
        if old.limit != limit {
            self.publish(&old, Policy { limit, ..Policy::clone(&old) }, admission);
        }
    }

    /// Sets the wanted hosts, and the executor limit to what `limit` returns. Returns whether anything changed.
    pub(crate) fn set_locality(
        &self,
        locality: Arc<Locality>,
        limit: impl FnOnce(Option<u32>) -> Option<u32>,
        admission: &Admission,
    ) -> bool {
        let _publisher = lock(&self.publisher);
        let old = self.load();
        let limit = limit(old.limit);
        let nobody_waits = old.config.locality_wait.is_none();
        if nobody_waits && limit == old.limit && locality.same_hosts(&old.locality) {
            return false;
        }
        self.publish(&old, Policy { limit, locality, ..Policy::clone(&old) }, admission);
        true
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn policy(config: Config) -> Policy {
        Policy::clone(&PolicyCell::new(config).load())
    }

    /// Goal: the executor limit is at most the number of executors that can be. Method: the numbers around it.
    #[test]
    fn the_limit_has_a_limit() {
        let max = limits::EXECUTORS_MAX;
        for (limit, allowed) in [
            (None, true),
            (Some(0), true),
            (Some(max), true),
            (Some(max + 1), false),
            (Some(u32::MAX), false),
        ] {
            assert_eq!(check_limit(limit).is_ok(), allowed, "{limit:?}");
        }
    }

    /// Goal: a policy that is published anew has the next number, and plans made before are invalid. Method: both, and
    /// that nothing else changes.
    #[test]
    fn a_new_number_invalidates_plans() {
        let admission = Admission::new();
        let cell = PolicyCell::new(Config::builder().executor_limit(Some(3)).build().unwrap());
        for number in 1..4 {
            let before = admission.load();
            cell.renumber(&admission);
            assert!(!admission.load().same_version(before));
            let policy = cell.load();
            assert_eq!((policy.number, policy.limit, policy.config_version), (number, Some(3), 0));
        }
    }

    /// Goal: a policy bounds executors and says whether their sizes differ as its settings say. Method: each setting
    /// that counts, alone and with others.
    #[test]
    fn settings_bound_executors_and_their_sizes() {
        let [one, none] = [1, 0].map(Gpus::new);
        let exactly = ExecutorGpus::Exactly(one);
        for (limit, cores, gpus, cap, bounded) in [
            (None, None, ExecutorGpus::WhatThereIs, none, false),
            (None, None, ExecutorGpus::WhatThereIs, one, false),
            (Some(3), None, ExecutorGpus::WhatThereIs, none, true),
            (None, Some(MilliCpus::from_cores(5)), ExecutorGpus::WhatThereIs, none, true),
            (None, None, exactly, one, true),
            (Some(3), None, exactly, one, true),
        ] {
            for whole in [false, true] {
                let builder = Config::builder()
                    .executor_limit(limit)
                    .core_cap(cores)
                    .executor_gpus(gpus)
                    .gpu_cap(cap);
                let cores_each = match whole {
                    true => ExecutorCores::WholeOffer,
                    false => ExecutorCores::Fixed(MilliCpus::from_cores(1)),
                };
                let policy = policy(builder.executor_cores(cores_each).build().unwrap());
                let case = (limit, cores, gpus, cap, whole);
                assert_eq!(policy.is_bounded(), bounded, "{case:?}");
                let differ = whole || gpus == ExecutorGpus::WhatThereIs && cap > none;
                assert_eq!(policy.sizes_differ(), differ, "{case:?}");
            }
        }
    }
}
