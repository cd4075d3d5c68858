//! [`RoomLimits`]: how much one task may need to have room in one of several rooms.

use crate::kernel::offers::tasks::room::Room;
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::resources::MilliCpus;

/// The maxima of what rooms have left: a task has room exactly if it fits into one of them. While rooms are filled,
/// they are an upper bound until they are set again.
#[derive(Clone, Debug, Default)]
pub(super) struct RoomLimits {
    most: Vec<ResourceSums>,
}

impl RoomLimits {
    /// The limits of these rooms. O(rooms × maxima).
    pub(super) fn set(&mut self, rooms: &[Room]) {
        self.most.clear();
        for room in rooms.iter().filter(|room| room.tasks() > 0) {
            let left = room.left();
            if left.cores > MilliCpus::ZERO && !self.most.iter().any(|most| left.fits_in(*most)) {
                self.most.retain(|most| !most.fits_in(left));
                self.most.push(left);
            }
        }
    }

    /// Whether a task that needs this has room.
    #[inline]
    pub(super) fn admit(&self, needs: ResourceSums) -> bool {
        needs.cores > MilliCpus::ZERO && self.most.iter().any(|most| needs.fits_in(*most))
    }
}
