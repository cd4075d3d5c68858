//! [`EqualTasks`]: how many equal tasks have room, before any are picked.

use crate::kernel::offers::tasks::room::Room;
use crate::kernel::state::offered_amounts::ResourceSums;

/// Counts equal tasks that rooms have place for if others get none: a framework with many tasks need not look at more
/// of each size.
#[derive(Clone, Copy, Debug)]
pub struct EqualTasks<'r> {
    rooms: &'r [Room],
    /// The most of each kind that a room has.
    most: ResourceSums,
}

impl<'r> EqualTasks<'r> {
    /// For tasks in these rooms.
    #[must_use]
    pub fn new(rooms: &'r [Room]) -> EqualTasks<'r> {
        let most = rooms.iter().fold(ResourceSums::NONE, |most, it| most.max_of_each(it.left()));
        EqualTasks { rooms, most }
    }

    /// How many tasks that take `each` have room, at most `wanted`. It looks at no room if none is large enough, and at
    /// no more than are needed for `wanted`.
    #[must_use]
    pub fn count(&self, each: ResourceSums, wanted: u64) -> u64 {
        let wanted = if each.times_in(self.most) > 0 { wanted } else { 0 };
        let mut count: u64 = 0;
        for room in self.rooms {
            if count >= wanted {
                break;
            }
            count = count.saturating_add(each.times_in(room.left()).min(room.tasks().into()));
        }
        count.min(wanted)
    }
}
