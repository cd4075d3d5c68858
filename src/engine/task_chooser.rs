//! [`TaskChooser`]: what a framework brings to have tasks of its own choice placed, in place of equal executors.

use crate::kernel::{Picks, Rooms, Unplaced};
use crate::time::Timestamp;

/// Chooses the tasks of a framework for an engine that is [started with it](super::Engine::start_with_tasks).
///
/// For each batch of offers, a handler thread has the kernel [propose](crate::Handler::propose) what is left of them,
/// calls [`choose`](TaskChooser::choose), and [commits](crate::Rooms::commit) the picks. Nothing is locked or reserved
/// meanwhile. Several threads may choose at the same time, for different offers.
///
/// # A task's way
/// 1. A chooser takes a task out of its queue when it picks a room for it, so that no other thread picks it as well.
/// 2. It comes back by [`unplaced`](TaskChooser::unplaced) if it isn't placed. Otherwise the
///    [`Launcher`](crate::launch::Launcher) is asked for its command, with its tag in the
///    [context](crate::launch::LaunchContext::tag), and the [observer](super::Observer) receives
///    [`Notice::Placed`](super::Notice::Placed) with its tag.
/// 3. Its end is reported as that of any executor, also if it could not be launched:
///    [`Change::Ended`](crate::Change::Ended) with [`Fate::Lost`](crate::Fate::Lost).
///
/// # Demand
/// Offers in which nothing is picked are declined for [`other`](crate::config::RefuseDurations::other). What the
/// framework wants in all is the executor limit, as without tasks: at the limit the engine suppresses offers, and
/// revives them when it rises. Without a limit, offers keep coming.
pub trait TaskChooser: Send + Sync {
    /// Picks tasks for `rooms`, of which there is one at least, in the order in which they are wanted. `picks` is empty
    /// before. The handler thread waits for it.
    ///
    /// If it panics, the batch is declined, and what was picked comes back by [`unplaced`](TaskChooser::unplaced).
    fn choose(&self, rooms: &Rooms<'_>, now: Timestamp, picks: &mut Picks);

    /// Sees a batch without rooms, whose offers are declined for what they or their agents are, such as too small for
    /// the smallest task, as their [declines](Rooms::declines) say. For choosers that want to know what agents there
    /// are, as an [`AgentSurvey`](super::AgentSurvey) does. Not called while a cap has all offers declined. The default
    /// does nothing.
    fn without_rooms(&self, rooms: &Rooms<'_>, now: Timestamp) {
        let _unused = (rooms, now);
    }

    /// Takes back picks that were not placed. Called on the same thread after the commit, unless there are none.
    fn unplaced(&self, unplaced: &[Unplaced]);

    /// An executor with this tag is about to be [killed](super::Engine::kill). Called on the thread that has it killed,
    /// which may be the control thread; not for what a shutdown kills. If it is a host of tasks, no more tasks should
    /// join it; those that were picked already may still be launched in it. The tag may be that of an attempt that was
    /// given up and has come back, while another one has it, too. If this panics, the executor is killed all the same.
    /// The default does nothing.
    fn killing(&self, tag: u64) {
        let _unused = tag;
    }
}
