//! Consolidate: best fit by the scarcer resource, so that few rooms are used and large remainders stay whole.

use super::task_order::TaskOrder;
use super::{AdmittedTasks, Chooser};
use crate::kernel::offers::tasks::picks::{Picks, Task};
use crate::kernel::offers::tasks::room::Room;

impl Chooser {
    /// Picks for each task the room that has the least left of the scarcer resource, but enough for it. The scarcer of
    /// cores and memory is the one of which the tasks together want the larger part of what the rooms together have;
    /// cores, if the parts are equal. Of equal rooms the first is picked. Returns the number of picks.
    pub fn consolidate(&mut self, rooms: &[Room], tasks: &[Task], picks: &mut Picks) -> usize {
        self.tightest(rooms, is_memory_scarcer(rooms, tasks), tasks.iter(), picks)
    }

    /// [`Chooser::consolidate`] of tasks that wait: of all of them, of which it tries only those that may have room.
    /// The scarcer of cores and memory is the one that is scarcer for the first tasks, as many as the rooms would have
    /// if they were one.
    pub fn consolidate_waiting(
        &mut self,
        rooms: &[Room],
        tasks: AdmittedTasks<'_>,
        picks: &mut Picks,
    ) -> usize {
        self.tightest(rooms, is_memory_scarcer(rooms, &tasks.preview(rooms)), tasks, picks)
    }

    fn tightest(
        &mut self,
        rooms: &[Room],
        by_memory: bool,
        mut tasks: impl TaskOrder,
        picks: &mut Picks,
    ) -> usize {
        self.begin(rooms);
        let key = |room: &Room| {
            let left = room.left();
            if by_memory { left.memory.get() } else { left.cores.millis() }
        };
        let Chooser { left, by_left, .. } = self;
        by_left.clear();
        by_left.extend(rooms.iter().zip(0u32..).map(|(room, at)| (key(room), at)));
        by_left.sort_unstable();
        let mut picked = 0;
        tasks.begin(rooms);
        while let Some(task) = tasks.next_task() {
            let wanted = if by_memory { task.memory.get() } else { task.cores.millis() };
            let first = by_left.partition_point(|(left, _)| *left < wanted);
            let fits = |(_, room): &(u64, u32)| left[*room as usize].take(&task).is_ok();
            let found = by_left[first..].iter().position(fits);
            tasks.settle(found.is_some(), left);
            let Some(step) = found else { continue };
            let at = first + step;
            let room = by_left[at].1;
            picks.push(room, task);
            picked += 1;
            // It has less left, so it moves forward.
            let now = (key(&left[room as usize]), room);
            let (Ok(to) | Err(to)) = by_left[..at].binary_search(&now);
            by_left[at] = now;
            by_left[to..=at].rotate_right(1);
        }
        picked
    }
}

/// Whether the tasks want a larger part of the memory than of the cores.
fn is_memory_scarcer(rooms: &[Room], tasks: &[Task]) -> bool {
    let sum = |of: &mut dyn Iterator<Item = u64>| of.map(u128::from).sum::<u128>();
    let cores = sum(&mut rooms.iter().map(|room| room.left().cores.millis()));
    let memory = sum(&mut rooms.iter().map(|room| room.left().memory.get()));
    let cores_wanted = sum(&mut tasks.iter().map(|task| task.cores.millis()));
    let memory_wanted = sum(&mut tasks.iter().map(|task| task.memory.get()));
    memory_wanted.saturating_mul(cores) > cores_wanted.saturating_mul(memory)
}
