//! [`WaitingTasks`]: the tasks of a framework that wait for room, in the order in which they are to start.
//!
//! The tasks of each queue are a [tree](task_tree) in which the next one that fits is found by what tasks [need at
//! least](least_needs). A batch takes them from [`AdmittedTasks`], one by one, as long as one may fit into what is
//! [left of its rooms](room_limits): it looks at what it places and little more.

mod admitted_tasks;
mod least_needs;
mod room_limits;
mod task_tree;

use std::collections::BTreeMap;

pub use admitted_tasks::AdmittedTasks;

use self::task_tree::{PlacedNeeds, RankedTag, TaskTree};
use crate::config::QueueId;
use crate::kernel::offers::tasks::picks::Task;
use crate::kernel::offers::tasks::room::Room;
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::resources::MilliCpus;

/// The tasks of a framework that wait for room, in their order: by rank, those of one rank by tag, and those of one
/// rank and tag by queue. A task without room holds up none of those behind it.
///
/// A batch has a [chooser](super::Chooser::round_robin_waiting) pick of those that queues and caps
/// [admit](WaitingTasks::admitted). What is picked still waits: remove it, and insert it again if it isn't placed.
///
/// ```
/// use offermill::choosers::{BatchCaps, Chooser, WaitingTasks};
/// use offermill::resources::{Mebibytes, MilliCpus};
/// use offermill::{Config, IdScheme, Kernel, Picks, ResourceSums, Room, Task};
///
/// let kernel = Kernel::new(Config::builder().build()?, IdScheme::plain());
/// let mut waiting = WaitingTasks::new();
/// let task = |tag, cores| Task::new(tag, MilliCpus::from_cores(cores), Mebibytes::new(512));
/// for (rank, task) in [(7, task(1, 1)), (0, task(2, 3)), (0, task(3, 2)), (9, task(4, 1))] {
///     waiting.insert(rank, &task);
/// }
///
/// let left = ResourceSums { cores: MilliCpus::from_cores(2), memory: Mebibytes::new(4096), ..ResourceSums::NONE };
/// let rooms = [Room::new(0, left, 100), Room::new(1, left, 100)]; // those of a proposal
/// let admitted = waiting.admitted(kernel.queues_left(), BatchCaps::default());
/// let mut picks = Picks::new();
/// Chooser::new().round_robin_waiting(&rooms, admitted, &mut picks);
/// let picked = picks.iter().map(|pick| (pick.room, pick.task.tag));
/// assert_eq!(picked.collect::<Vec<_>>(), [(0, 3), (1, 1), (1, 4)]);
/// # Ok::<(), offermill::Error>(())
/// ```
///
/// # Cost
/// A batch costs O(log tasks) for each task that it picks and for each queue in which tasks wait, besides what the
/// chooser costs; for each pick, and once more, a chooser tries at most one task in vain. That is so for any number of
/// sizes, as long as the *smallest* ones are few: those for which no other takes as little or less of each of cores,
/// memory and GPUs. If there are more than sixteen in a part of the order, some count as smaller than they are, and
/// tasks of that part may be compared with the rooms one by one.
#[derive(Clone, Debug, Default)]
pub struct WaitingTasks {
    /// None is empty.
    queues: BTreeMap<QueueId, TaskTree>,
}

impl WaitingTasks {
    /// No tasks.
    #[must_use]
    pub fn new() -> WaitingTasks {
        WaitingTasks::default()
    }

    /// How many tasks wait. O(queues).
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.values().map(TaskTree::len).sum()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Adds a task. Returns `false`, and changes nothing, if one of this rank and tag waits in its queue. One that
    /// takes no cores waits for ever, since no room takes it. O(log tasks).
    pub fn insert(&mut self, rank: u64, task: &Task) -> bool {
        self.queues.entry(task.queue).or_default().insert((rank, task.tag), task.sums())
    }

    /// Removes the task of this rank with the tag and the queue of `task`. Returns whether it waited. O(log tasks).
    pub fn remove(&mut self, rank: u64, task: &Task) -> bool {
        let Some(tree) = self.queues.get_mut(&task.queue) else { return false };
        let was_there = tree.remove((rank, task.tag)).is_some();
        if tree.len() == 0 {
            self.queues.remove(&task.queue);
        }
        was_there
    }

    /// All that wait, in their order. O(tasks × log tasks).
    #[must_use]
    pub fn all(&self) -> Vec<Task> {
        let mut all: Vec<(RankedTag, Task)> = Vec::with_capacity(self.len());
        for (queue, tree) in &self.queues {
            tree.for_each(&mut |(place, needs)| all.push((place, task((place, needs), *queue))));
        }
        all.sort_by_key(|(place, task)| (*place, task.queue));
        all.into_iter().map(|(_, task)| task).collect()
    }

    /// Removes all, and returns them in their order. O(tasks × log tasks).
    pub fn take(&mut self) -> Vec<Task> {
        std::mem::take(self).all()
    }

    /// Whether any of them fits into a room, whatever queues and caps admit. O(queues × log tasks), with the exception
    /// that the [type](WaitingTasks#cost) names.
    #[must_use]
    pub fn have_one_for(&self, room: &Room) -> bool {
        let left = room.left();
        let fits = |needs: ResourceSums| needs.cores > MilliCpus::ZERO && needs.fits_in(left);
        self.queues.values().any(|tree| tree.next(None, &fits).is_some())
    }
}

/// A task that waits in this queue.
fn task(((_, tag), needs): PlacedNeeds, queue: QueueId) -> Task {
    let ResourceSums { cores, memory, gpus } = needs;
    Task { cores, memory, gpus, tag, queue }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
