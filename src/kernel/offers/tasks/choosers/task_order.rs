//! [`TaskOrder`]: the order in which a chooser tries tasks.

use crate::kernel::offers::tasks::picks::Task;
use crate::kernel::offers::tasks::room::Room;

/// Tasks in the order in which a chooser tries them, each once: a list of them, or those of many that wait which may
/// have room. A chooser settles each task before it asks for the next one.
pub(super) trait TaskOrder {
    /// A chooser begins with these rooms.
    fn begin(&mut self, rooms: &[Room]);

    /// The next task to try.
    fn next_task(&mut self) -> Option<Task>;

    /// The task that was tried has got a room, or fits in none of those that are left.
    fn settle(&mut self, is_picked: bool, left: &[Room]);
}

impl TaskOrder for std::slice::Iter<'_, Task> {
    #[inline]
    fn begin(&mut self, _: &[Room]) {}

    #[inline]
    fn next_task(&mut self) -> Option<Task> {
        self.next().copied()
    }

    #[inline]
    fn settle(&mut self, _: bool, _: &[Room]) {}
}
