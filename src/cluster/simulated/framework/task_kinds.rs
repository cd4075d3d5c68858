//! The kinds of tasks that a simulated framework has: multiples of what the configured executor takes.

use crate::cluster::simulated::queues::SimQueues;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::kernel::{Picks, Task};
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// What kinds of tasks take, in multiples of the configured executor's cores, memory and GPUs; the smallest first.
const KINDS: [(u64, u64, u32); TaskKinds::COUNT] =
    [(1, 1, 1), (2, 1, 1), (1, 2, 1), (3, 2, 2), (1, 1, 2), (4, 3, 1)];

/// The kinds of tasks, and their queues.
pub(super) struct TaskKinds {
    /// The cores, memory and GPUs of the smallest task.
    smallest: (MilliCpus, Mebibytes, u32),
    pub(super) queues: SimQueues,
    pub(super) settings: FrameworkSettings,
}

impl TaskKinds {
    pub(super) const COUNT: usize = 6;

    pub(super) fn of(scenario: &Scenario) -> TaskKinds {
        let (settings, gpus) = (FrameworkSettings::of(scenario), scenario.executor_gpus);
        let smallest = (settings.executor_cores_min(), scenario.memory_taken(), gpus);
        TaskKinds { smallest, queues: SimQueues::of(scenario), settings }
    }

    /// The settings were changed: from now on, new tasks have multiples of the cores of an executor.
    pub(super) fn set(&mut self, settings: FrameworkSettings) {
        self.smallest.0 = settings.executor_cores_min();
        self.settings = settings;
    }

    /// The task with this tag, if it is of this kind.
    pub(super) fn task(&self, kind: usize, tag: u64) -> Task {
        let (times_cores, times_memory, times_gpus) = KINDS[kind];
        let (cores, memory, gpus) = self.smallest;
        let cores = MilliCpus::from_millis(cores.millis() * times_cores);
        let memory = Mebibytes::new(memory.get() * times_memory);
        let (gpus, queue) = (Gpus::new(gpus * times_gpus), self.queues.of_tag(tag));
        Task { gpus, queue, ..Task::new(tag, cores, memory) }
    }
}

/// The tasks that are picked; the members of a gang are together.
pub(super) fn gangs_of(picks: &Picks) -> Vec<Vec<Task>> {
    let (mut gangs, mut gang): (Vec<Vec<Task>>, u32) = (Vec::new(), 0);
    for pick in picks {
        match gangs.last_mut() {
            Some(members) if pick.gang > 0 && pick.gang == gang => members.push(pick.task),
            _ => gangs.push(vec![pick.task]),
        }
        gang = pick.gang;
    }
    gangs
}
