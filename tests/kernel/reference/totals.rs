//! The totals and caps of the reference model, each computed from scratch.

use offermill::limits::{EXECUTORS_MAX, TOTAL_CORES_MAX};
use offermill::resources::{Gpus, MilliCpus};
use offermill::{Reason, Timestamp};

use super::{Executor, Model};

impl Model {
    fn counted(&self) -> impl Iterator<Item = &Executor> {
        self.executors.iter().filter(|executor| executor.life.counted())
    }

    /// The number of executors, and their cores, that count against the caps.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.counted().count() as u64, self.counted().map(|executor| executor.cores).sum())
    }

    /// The GPUs that count against their cap.
    pub(crate) fn gpus(&self) -> u64 {
        self.counted().map(|executor| executor.gpus).sum()
    }

    pub(super) fn limit_in_force(&self) -> u64 {
        u64::from(self.limit.unwrap_or(EXECUTORS_MAX))
    }

    pub(super) fn core_cap(&self) -> u64 {
        self.setup.core_cap.unwrap_or(TOTAL_CORES_MAX.millis())
    }

    pub(super) fn cores_at_least(&self) -> u64 {
        self.setup.executor_cores.unwrap_or(1000)
    }

    /// The cap that leaves no room for another executor, if there is one.
    pub(super) fn cap_reached(&self) -> Option<Reason> {
        let (executors, cores) = self.totals();
        if executors >= self.limit_in_force() {
            return Some(Reason::ExecutorLimit { limit: self.limit_in_force() as u32 });
        }
        if cores + self.cores_at_least() > self.core_cap() {
            return Some(Reason::CoreCap {
                cap: MilliCpus::from_millis(self.core_cap()),
                acquired: MilliCpus::from_millis(cores),
                asked: MilliCpus::from_millis(self.cores_at_least()),
            });
        }
        match self.setup.executor_gpus {
            Some(asked)
                if asked > 0 && self.gpus() + u64::from(asked) > u64::from(self.setup.gpu_cap) =>
            {
                Some(Reason::GpuCap {
                    cap: Gpus::new(self.setup.gpu_cap),
                    acquired: Gpus::new(self.gpus() as u32),
                    asked: Gpus::new(asked),
                })
            }
            _ => None,
        }
    }

    /// Whether the caps allow an executor that was given up to be counted again.
    pub(super) fn has_room_for(&self, executor: &Executor) -> bool {
        let (executors, cores) = self.totals();
        let gpus =
            executor.gpus == 0 || self.gpus() + executor.gpus <= u64::from(self.setup.gpu_cap);
        !self.closed
            && executors < self.limit_in_force()
            && cores + executor.cores <= self.core_cap()
            && gpus
    }

    /// The time until which an agent is excluded, if it still is at `now`.
    pub(crate) fn excluded_until(&self, agent: &str, now: Timestamp) -> Option<Timestamp> {
        self.agents.get(agent)?.excluded_until.filter(|until| now < *until)
    }
}
