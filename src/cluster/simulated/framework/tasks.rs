//! The tasks of a simulated framework that places tasks: an endless supply of several sizes, some of them in gangs.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::engine::TaskChooser;
use crate::kernel::{Kernel, Picks, Room, Rooms, Task, Unplaced};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// How many more tasks than the kernel wants a batch picks at most: the caps have to cut some off.
const BEYOND_WANTED: u32 = 3;
/// The members of a gang.
const GANG: usize = 2;
/// One of this number of tasks begins a gang.
const GANG_EVERY: u64 = 7;
/// How many of the tasks that came back are tried for a room.
const TRIED_MAX: usize = 8;

/// What kinds of tasks take, in multiples of the configured executor's cores, memory and GPUs; the smallest first.
const KINDS: [(u64, u64, u32); 6] =
    [(1, 1, 1), (2, 1, 1), (1, 2, 1), (3, 2, 2), (1, 1, 2), (4, 3, 1)];

/// Chooses tasks for rooms: first those that came back, then new ones. For each room there is a task small enough, if
/// there is one at all. After a cap has cut off picks, which may all be too large for what it leaves, the next batch
/// gets new tasks of the smallest size alone.
pub(super) struct SimulatedTasks {
    kernel: Kernel,
    supply: Mutex<TaskSupply>,
}

struct TaskSupply {
    /// The cores, memory and GPUs of the smallest task.
    smallest: (MilliCpus, Mebibytes, u32),
    /// Tasks that were picked and not placed.
    returned: VecDeque<Task>,
    /// The number of tasks so far.
    created: u64,
    /// The picks of the last batch; the members of a gang are together.
    picked: Vec<Vec<Task>>,
    /// Whether a cap has cut off the last batch's picks.
    is_cut: bool,
}

impl SimulatedTasks {
    pub(super) fn new(kernel: Kernel, scenario: &Scenario) -> SimulatedTasks {
        let cores = FrameworkSettings::of(scenario).executor_cores_min();
        let supply = TaskSupply {
            smallest: (cores, scenario.memory_taken(), scenario.executor_gpus),
            returned: VecDeque::new(),
            created: 0,
            picked: Vec::new(),
            is_cut: false,
        };
        SimulatedTasks { kernel, supply: Mutex::new(supply) }
    }

    /// The cores of an executor were changed: from now on, new tasks have multiples of these.
    pub(super) fn set_cores(&self, settings: FrameworkSettings) {
        self.supply().smallest.0 = settings.executor_cores_min();
    }

    /// Takes what the last batch picked; the members of a gang are together.
    pub(super) fn take_picked(&self) -> Vec<Vec<Task>> {
        std::mem::take(&mut self.supply().picked)
    }

    fn supply(&self) -> MutexGuard<'_, TaskSupply> {
        self.supply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskSupply {
    /// A task for what is left of a room: one that came back, the next new one or, if both are too large, the smallest.
    fn next_for(&mut self, room: &mut Room) -> Option<Task> {
        let tried = self.returned.iter().take(if self.is_cut { 0 } else { TRIED_MAX });
        if let Some(at) = tried.enumerate().find_map(|(at, task)| room.fits(task).then_some(at)) {
            let task = self.returned.remove(at)?;
            return room.take(&task).ok().map(|()| task);
        }
        let kind = (self.created % KINDS.len() as u64) as usize;
        let tried = [kind, 0].into_iter().skip(self.is_cut.into());
        let task = tried.map(|kind| self.task(kind)).find(|task| room.take(task).is_ok())?;
        self.created += 1;
        Some(task)
    }

    /// The next task, if it is of this kind.
    fn task(&self, kind: usize) -> Task {
        let (times_cores, times_memory, times_gpus) = KINDS[kind];
        let (cores, memory, gpus) = self.smallest;
        let cores = MilliCpus::from_millis(cores.millis() * times_cores);
        let memory = Mebibytes::new(memory.get() * times_memory);
        Task { gpus: Gpus::new(gpus * times_gpus), ..Task::new(self.created, cores, memory) }
    }

    /// Picks these tasks together.
    fn push(&mut self, gang: &mut Vec<(u32, Task)>, picks: &mut Picks) {
        match gang[..] {
            [] => return,
            [(room, task)] => picks.push(room, task),
            _ => picks.push_gang(gang),
        }
        self.picked.push(gang.drain(..).map(|(_, task)| task).collect());
    }
}

impl TaskChooser for SimulatedTasks {
    fn choose(&self, rooms: &Rooms<'_>, _now: Timestamp, picks: &mut Picks) {
        let mut supply = self.supply();
        supply.picked.clear();
        let most = self.kernel.wanted().saturating_add(BEYOND_WANTED) as usize;
        let mut left: Vec<Room> = rooms.list().to_vec();
        let mut gang: Vec<(u32, Task)> = Vec::new();
        let (mut chosen, mut before) = (0, None);
        // Rooms take turns.
        while before != Some(chosen) {
            before = Some(chosen);
            for (room, position) in left.iter_mut().zip(0..) {
                if chosen == most {
                    break;
                }
                let Some(task) = supply.next_for(room) else { continue };
                chosen += 1;
                let begins_gang = task.tag % GANG_EVERY == 3 && !supply.is_cut;
                gang.push((position, task));
                if gang.len() == GANG || gang.len() == 1 && !begins_gang {
                    supply.push(&mut gang, picks);
                }
            }
        }
        supply.push(&mut gang, picks);
        supply.is_cut = false;
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let mut supply = self.supply();
        supply.is_cut = unplaced.iter().any(|it| it.reason.is_cap());
        let picked = std::mem::take(&mut supply.picked);
        let is_back = |task: &&Task| unplaced.iter().any(|it| it.tag == task.tag);
        supply.returned.extend(picked.iter().flatten().filter(is_back));
        supply.picked = picked;
    }
}
