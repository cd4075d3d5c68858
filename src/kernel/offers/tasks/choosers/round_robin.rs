//! Round robin: rooms take turns.

use super::task_order::TaskOrder;
use super::{AdmittedTasks, Chooser};
use crate::kernel::offers::tasks::picks::{Picks, Task};
use crate::kernel::offers::tasks::room::Room;
use crate::resources::MilliCpus;

impl Chooser {
    /// Picks for each task the next room in turn that has what it needs. Rooms on whose agents one
    /// [failed lately](Room::failed_lately) come after the others in each round. Returns the number of picks.
    ///
    /// Tasks of one size get the rooms that executors of this size would get by
    /// [`Placement::RoundRobin`](crate::config::Placement::RoundRobin).
    pub fn round_robin(&mut self, rooms: &[Room], tasks: &[Task], picks: &mut Picks) -> usize {
        self.in_turn(rooms, tasks.iter(), |room, task| picks.push(room, *task))
    }

    /// [`Chooser::round_robin`] of tasks that wait: what it would pick of all of them, of which it tries only those
    /// that may have room.
    pub fn round_robin_waiting(
        &mut self,
        rooms: &[Room],
        tasks: AdmittedTasks<'_>,
        picks: &mut Picks,
    ) -> usize {
        self.in_turn(rooms, tasks, |room, task| picks.push(room, *task))
    }

    /// Calls `pick` for each task that gets a room.
    pub(super) fn in_turn(
        &mut self,
        rooms: &[Room],
        mut tasks: impl TaskOrder,
        mut pick: impl FnMut(u32, &Task),
    ) -> usize {
        self.begin(rooms);
        let Chooser { left, ring, .. } = self;
        ring.clear();
        for last in [false, true] {
            let all = rooms.iter().zip(0u32..);
            ring.extend(all.filter(|(room, _)| room.failed_lately() == last).map(|(_, at)| at));
        }
        let (mut turn, mut picked) = (0, 0);
        tasks.begin(rooms);
        while let Some(task) = tasks.next_task() {
            let mut fits = |at: usize| {
                ring.get(at).is_some_and(|room| left[*room as usize].take(&task).is_ok())
            };
            // Mostly the one whose turn it is has room.
            let found = if fits(turn) {
                Some(turn)
            } else {
                (turn + 1..ring.len()).chain(0..turn).find(|at| fits(*at))
            };
            tasks.settle(found.is_some(), left);
            let Some(at) = found else { continue };
            let room = ring[at];
            pick(room, &task);
            picked += 1;
            turn = at + 1;
            if is_full(&left[room as usize]) {
                ring.remove(at);
                turn = at;
            }
            if turn == ring.len() {
                turn = 0;
            }
        }
        picked
    }
}

/// Whether a room takes no task, whatever its size.
fn is_full(room: &Room) -> bool {
    room.tasks() == 0 || room.left().cores == MilliCpus::ZERO
}
