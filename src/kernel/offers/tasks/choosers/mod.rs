//! Choosers: which task goes into which room of a proposal ([`Handler::propose`](crate::Handler::propose)).
//!
//! What they pick depends on their arguments alone; they touch nothing shared and know no caps but [those that they are
//! given](BatchCaps), since the [commit](crate::Rooms::commit) cuts off what the caps don't admit. Tasks are taken in
//! their order. One that fits in no room gets no pick, and the next one is tried: a framework keeps it for a later
//! batch, such as in [`WaitingTasks`].
//!
//! | chooser | order of rooms | cost of a task |
//! |---|---|---|
//! | [`Chooser::round_robin`] | one after the other, in turn | O(1); O(rooms) if it fits in few |
//! | [`Chooser::consolidate`] | the one with the least left that suffices | O(log rooms), and moving a position; O(rooms) if it fits in few |
//! | [`Chooser::spread`] | the domain with the fewest tasks first, its rooms in turn | O(domains + rooms) |
//! | [`Chooser::round_robin_waiting`], [`Chooser::consolidate_waiting`] | as these | of those of [`WaitingTasks`], however many, tries the ones that may have room |
//! | [`Chooser::gang`], [`Chooser::gangs`] | in turn, for all tasks or none; a [`Gang`] waits for a limited time | as `round_robin` |
//!
//! ```
//! use offermill::choosers::Chooser;
//! use offermill::resources::{Mebibytes, MilliCpus};
//! use offermill::{Picks, ResourceSums, Room, Task};
//!
//! let room = |offer, cores| {
//!     let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(4096));
//!     Room::new(offer, ResourceSums { cores, memory, ..ResourceSums::NONE }, 100)
//! };
//! let rooms = [room(0, 4), room(1, 2)];
//! let tasks = [1, 2, 3].map(|tag| Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(512)));
//! let picked = |picks: &Picks| picks.iter().map(|pick| pick.room).collect::<Vec<_>>();
//!
//! let (mut chooser, mut picks) = (Chooser::new(), Picks::new());
//! chooser.round_robin(&rooms, &tasks, &mut picks);
//! assert_eq!(picked(&picks), [0, 1, 0]);
//! picks.clear();
//! chooser.consolidate(&rooms, &tasks, &mut picks);
//! assert_eq!(picked(&picks), [1, 1, 0]);
//! ```

mod batch_caps;
mod consolidate;
mod domains;
mod gang;
mod round_robin;
mod spread;
mod task_order;
mod waiting;

pub use batch_caps::BatchCaps;
pub use domains::Domains;
pub use gang::{Gang, GangState};
pub use waiting::{AdmittedTasks, WaitingTasks};

use super::picks::{Picks, Task};
use super::room::Room;

/// Picks rooms for tasks. It has only memory that is reused, so that choosing allocates nothing in the steady state;
/// each thread has its own.
#[derive(Clone, Debug, Default)]
pub struct Chooser {
    /// What is left of the rooms.
    left: Vec<Room>,
    /// What is left of the rooms before the present gang.
    before: Vec<Room>,
    /// The rooms that take turns.
    ring: Vec<u32>,
    /// The rooms by what is left of the scarcer resource.
    by_left: Vec<(u64, u32)>,
    /// The number of tasks by domain.
    counts: Vec<u32>,
    /// The picks of a gang.
    members: Vec<(u32, Task)>,
}

impl Chooser {
    /// Creates a chooser.
    #[must_use]
    pub fn new() -> Chooser {
        Chooser::default()
    }

    /// Begins with what is left of these rooms.
    fn begin(&mut self, rooms: &[Room]) {
        self.left.clear();
        self.left.extend_from_slice(rooms);
    }

    /// Picks rooms for all of `tasks`, in turn, as one [gang](Picks::push_gang); or for none of them. Returns whether
    /// all got rooms. Picks of other gangs on the same rooms must be in another batch or known to leave enough; for
    /// several, and with a time-out, there is [`Chooser::gangs`].
    pub fn gang(&mut self, rooms: &[Room], tasks: &[Task], picks: &mut Picks) -> bool {
        let mut members = std::mem::take(&mut self.members);
        members.clear();
        self.in_turn(rooms, tasks.iter(), |room, task| members.push((room, *task)));
        let is_whole = members.len() == tasks.len();
        if is_whole {
            picks.push_gang(&members);
        }
        self.members = members;
        is_whole
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
