//! The tasks of a simulated framework that places tasks: an endless supply of several sizes, some of them in gangs.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::task_sizes::TaskSizes;
use crate::engine::TaskChooser;
use crate::kernel::{Kernel, Picks, Room, Rooms, Task, Unplaced};
use crate::time::Timestamp;

/// How many more tasks than the kernel wants a batch picks at most: the caps have to cut some off.
const BEYOND_WANTED: u32 = 3;
/// How many of the tasks that came back are tried for a room.
const TRIED_MAX: usize = 8;

/// Chooses tasks for rooms: first those that came back, then new ones. For each room there is a task small enough, if
/// there is one at all.
pub(super) struct SimulatedTasks {
    kernel: Kernel,
    sizes: TaskSizes,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// Tasks that were picked and not placed.
    returned: VecDeque<Task>,
    /// The number of tasks so far.
    created: u64,
    /// The picks of the last batch.
    picked: Vec<Task>,
}

impl SimulatedTasks {
    pub(super) fn new(kernel: Kernel, scenario: &Scenario) -> SimulatedTasks {
        SimulatedTasks { kernel, sizes: TaskSizes::of(scenario), queue: Mutex::default() }
    }

    /// Takes what the last batch picked.
    pub(super) fn take_picked(&self) -> Vec<Task> {
        std::mem::take(&mut self.queue().picked)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// A task for what is left of a room: one that came back, the next new one or, if both are too large, the smallest.
    fn next_for(&mut self, room: &mut Room, sizes: &TaskSizes) -> Option<Task> {
        let tried = self.returned.iter().take(TRIED_MAX);
        if let Some(at) = tried.enumerate().find_map(|(at, task)| room.fits(task).then_some(at)) {
            let task = self.returned.remove(at)?;
            return room.take(&task).ok().map(|()| task);
        }
        let tag = sizes.tag(self.created);
        let sizes = [tag, sizes.smallest(tag)].map(|tag| sizes.task(tag));
        let task = sizes.into_iter().find(|task| room.take(task).is_ok())?;
        self.created += 1;
        Some(task)
    }
}

impl TaskChooser for SimulatedTasks {
    fn choose(&self, rooms: &Rooms<'_>, _now: Timestamp, picks: &mut Picks) {
        let mut queue = self.queue();
        queue.picked.clear();
        let most = self.kernel.wanted().saturating_add(BEYOND_WANTED) as usize;
        let mut left: Vec<Room> = rooms.list().to_vec();
        let mut members: Vec<(u32, Task)> = Vec::new();
        let mut is_one_placed = true;
        // Rooms take turns.
        while is_one_placed {
            is_one_placed = false;
            for (room, position) in left.iter_mut().zip(0..) {
                if queue.picked.len() >= most {
                    break;
                }
                let Some(task) = queue.next_for(room, &self.sizes) else { continue };
                is_one_placed = true;
                queue.picked.push(task);
                if self.sizes.begins_gang(task.tag) || !members.is_empty() {
                    members.push((position, task));
                } else {
                    picks.push(position, task);
                }
                if members.len() == 2 {
                    picks.push_gang(&members);
                    members.clear();
                }
            }
        }
        members.iter().for_each(|(position, task)| picks.push(*position, *task));
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let returned = unplaced.iter().map(|it| self.sizes.task(it.tag));
        self.queue().returned.extend(returned);
    }
}
