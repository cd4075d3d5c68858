//! [`TaskSizes`]: what the tasks of a scenario take.

use super::scenario::Scenario;
use crate::kernel::Task;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// Multiples of the scenario's executor: cores, memory and GPUs by kinds, the smallest first.
const KINDS: [(u64, u64, u32); 6] =
    [(1, 1, 1), (2, 1, 1), (1, 2, 1), (3, 2, 2), (1, 1, 2), (4, 3, 1)];

/// What the tasks of a scenario take. A task's tag says its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskSizes {
    cores: MilliCpus,
    memory: Mebibytes,
    gpus: u32,
}

impl TaskSizes {
    pub(super) fn of(scenario: &Scenario) -> TaskSizes {
        let cores = match scenario.executor_cores {
            MilliCpus::ZERO => MilliCpus::from_cores(1),
            cores => cores,
        };
        TaskSizes { cores, memory: scenario.memory_taken(), gpus: scenario.executor_gpus }
    }

    /// The tag of the task with this number. Those of different numbers differ.
    pub(super) fn tag(&self, number: u64) -> u64 {
        number * KINDS.len() as u64 + number % KINDS.len() as u64
    }

    /// The tag of a task of the smallest size, in place of that of another tag.
    pub(super) fn smallest(&self, tag: u64) -> u64 {
        tag - tag % KINDS.len() as u64
    }

    /// Whether the task is the first of a gang.
    pub(super) fn begins_gang(&self, tag: u64) -> bool {
        (tag / KINDS.len() as u64) % 7 == 3
    }

    /// The task with this tag.
    pub(super) fn task(&self, tag: u64) -> Task {
        let kind = usize::try_from(tag % KINDS.len() as u64).unwrap_or_default();
        let (cores, memory, gpus) = KINDS[kind];
        Task {
            cores: MilliCpus::from_millis(self.cores.millis() * cores),
            memory: Mebibytes::new(self.memory.get() * memory),
            gpus: Gpus::new(self.gpus * gpus),
            tag,
        }
    }
}
