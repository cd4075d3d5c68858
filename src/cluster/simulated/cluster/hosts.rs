//! Hosts of tasks on their agents, as the agent's executors with several tasks are: a task in a host starts once its
//! host runs, and ends with it. A task that arrives when its host has ended is dropped. That a task has begun is
//! reported a while after its host has started it, and never if the host ends before; of a host and its tasks, either's
//! end may be reported first.

use super::{Cluster, SimTask, TaskPhase};
use crate::cluster::simulated::event_queue::{EventQueue, SimEvent, TaskRef};
use crate::launch::Hosting;
use crate::status::TaskState;

/// The time until a task that has waited for its host, and is started by it, is reported as running, in milliseconds:
/// usual, and longest.
const REPORTED_WITHIN_MS: u64 = 50;
const LONGEST_MS: u64 = 3_000;

impl SimTask {
    /// Whether it is a task in the host with this executor id.
    fn is_in(&self, host: &str) -> bool {
        matches!(&self.hosting, Hosting::In(name) if **name == *host)
    }
}

impl Cluster {
    /// How far the host of a task is, `Ended` if it isn't there; `None` if the task is in no host.
    pub(super) fn host_phase(&self, task: &SimTask) -> Option<TaskPhase> {
        let Hosting::In(name) = &task.hosting else { return None };
        let host = self.names.get(&**name).map(|cell| &self.tasks[*cell as usize]);
        let host = host.filter(|host| host.agent == task.agent);
        Some(host.map_or(TaskPhase::Ended, |host| host.phase))
    }

    /// An executor runs. If it is a host, the tasks that have arrived in it start.
    pub(super) fn start_hosted(&mut self, events: &mut EventQueue, host: TaskRef) {
        let Some(found) = self.task(host).filter(|it| it.hosting == Hosting::Host) else { return };
        let (name, machine) = (found.name.clone(), found.agent.machine as usize);
        for cell in self.machines[machine].tasks.clone() {
            let task = &self.tasks[cell as usize];
            if task.is_in(&name) && task.phase == TaskPhase::Starting && !task.hung {
                let name = task.name.clone();
                self.begins(name);
                let longest = if self.rng.percent(10) { LONGEST_MS } else { REPORTED_WITHIN_MS };
                let soon = self.rng.between(1, longest);
                events.after(soon, SimEvent::TaskRuns(self.reference(cell)));
            }
        }
    }

    /// A host on this machine has ended. The tasks that have arrived in it end.
    pub(super) fn end_hosted(&mut self, events: &mut EventQueue, machine: u32, host: &str) {
        for cell in self.machines[machine as usize].tasks.clone() {
            let task = &self.tasks[cell as usize];
            if task.is_in(host) && task.alive() && task.phase != TaskPhase::Ordered {
                self.end(events, self.reference(cell), TaskState::Gone);
            }
        }
    }
}
