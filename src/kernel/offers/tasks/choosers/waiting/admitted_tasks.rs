//! [`AdmittedTasks`]: the tasks that wait, one by one, as far as rooms, queues and caps may take them.

use std::collections::BTreeMap;

use super::room_limits::RoomLimits;
use super::task_tree::RankedTag;
use super::{WaitingTasks, task};
use crate::config::QueueId;
use crate::kernel::offers::tasks::choosers::batch_caps::BatchCaps;
use crate::kernel::offers::tasks::choosers::task_order::TaskOrder;
use crate::kernel::offers::tasks::picks::Task;
use crate::kernel::offers::tasks::queues_left::QueuesLeft;
use crate::kernel::offers::tasks::room::Room;
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// All there is.
const UNBOUNDED: ResourceSums = ResourceSums {
    cores: MilliCpus::from_millis(u64::MAX),
    memory: Mebibytes::new(u64::MAX),
    gpus: Gpus::new(u32::MAX),
};

/// The tasks that wait, in their order, as far as their queues and the caps of a batch admit them, each after those
/// that were picked before it: for one call of a [chooser](super::super::Chooser::round_robin_waiting).
///
/// A chooser takes one after the other. Those that have no room in what is left are passed over without being looked
/// at, and so are those that queue or caps don't admit: picked, such a task would have the
/// [commit](crate::Rooms::commit) leave out those behind it, whatever smaller ones they are.
#[derive(Clone, Debug)]
pub struct AdmittedTasks<'w> {
    waiting: &'w WaitingTasks,
    queues: QueuesLeft,
    caps: BatchCaps,
    /// What all tasks together may still take.
    left: ResourceSums,
    rooms: RoomLimits,
    /// Of each queue that has one, the next task that may fit.
    next: BTreeMap<(RankedTag, QueueId), ResourceSums>,
}

impl WaitingTasks {
    /// The tasks that these queues and caps admit. O(1), besides the copy of the queues.
    #[must_use]
    pub fn admitted(&self, queues: QueuesLeft, caps: BatchCaps) -> AdmittedTasks<'_> {
        AdmittedTasks {
            waiting: self,
            queues,
            caps,
            left: UNBOUNDED,
            rooms: RoomLimits::default(),
            next: BTreeMap::new(),
        }
    }
}

impl AdmittedTasks<'_> {
    /// The first ones that rooms would take if all of them were one, each of which fits into one of them.
    pub(in crate::kernel::offers::tasks::choosers) fn preview(&self, rooms: &[Room]) -> Vec<Task> {
        let mut all = self.clone();
        all.left = rooms.iter().fold(ResourceSums::NONE, |sum, it| sum.saturating_add(it.left()));
        let mut tasks = Vec::new();
        all.begin(rooms);
        while let Some(task) = all.next_task() {
            tasks.push(task);
            all.settle(true, rooms);
        }
        tasks
    }

    /// The most that a task of this queue may take.
    fn bound(&self, queue: QueueId) -> ResourceSums {
        // Caps know no memory.
        let caps = ResourceSums { memory: UNBOUNDED.memory, ..self.caps.left };
        self.queues.room(queue).min_of_each(caps).min_of_each(self.left)
    }

    /// Finds the next task of a queue that may fit.
    fn seek(&mut self, queue: QueueId, after: Option<RankedTag>) {
        let Some(tree) = self.waiting.queues.get(&queue) else { return };
        let bound = self.bound(queue);
        let fits = |needs: ResourceSums| needs.fits_in(bound) && self.rooms.admit(needs);
        if let Some((place, needs)) = tree.next(after, &fits) {
            self.next.insert((place, queue), needs);
        }
    }

    /// Passes over the first task.
    fn pass_over(&mut self) {
        if let Some(((place, queue), _)) = self.next.pop_first() {
            self.seek(queue, Some(place));
        }
    }
}

impl TaskOrder for AdmittedTasks<'_> {
    fn begin(&mut self, rooms: &[Room]) {
        self.rooms.set(rooms);
        self.next.clear();
        let waiting = self.waiting;
        waiting.queues.keys().for_each(|queue| self.seek(*queue, None));
    }

    fn next_task(&mut self) -> Option<Task> {
        if self.caps.executors == 0 {
            return None;
        }
        while let Some(((place, queue), needs)) = self.next.first_key_value() {
            // Since it was found, others may have been picked.
            if needs.fits_in(self.bound(*queue)) && self.rooms.admit(*needs) {
                return Some(task((*place, *needs), *queue));
            }
            self.pass_over();
        }
        None
    }

    fn settle(&mut self, is_picked: bool, left: &[Room]) {
        let Some(((place, queue), needs)) = self.next.first_key_value() else { return };
        let needs = *needs;
        if is_picked {
            // Both have as much, or it would have been passed over.
            let _ = self.queues.take(&task((*place, needs), *queue));
            let _ = self.caps.take(needs);
            self.left = self.left.saturating_sub(needs);
        } else {
            self.rooms.set(left);
        }
        self.pass_over();
    }
}
