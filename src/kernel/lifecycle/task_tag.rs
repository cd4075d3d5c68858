//! The tag of a task, from its placement until its end is told, and its queue.

use std::sync::Arc;

use crate::ids::ExecutorId;
use crate::kernel::state::executors::ExecutorCell;
use crate::kernel::{Core, Kernel};
use crate::sync::{Ordering, fence};

impl Kernel {
    /// Returns the tag of a [task](crate::Task), from its placement until its end; `None` for an executor that isn't a
    /// task. The [outcome](crate::Outcome::tag) of the update that ends it has its tag, too.
    ///
    /// Lock-free.
    #[must_use]
    pub fn task_tag(&self, id: ExecutorId) -> Option<u64> {
        let core = &*self.0;
        core.live_tag(id, core.executors.get(id.slot)?)
    }

    /// Returns the name of the queue that an executor was placed in, if there are queues.
    #[inline]
    pub(crate) fn queue_name(&self, id: ExecutorId) -> Option<Arc<str>> {
        self.0.queues.get()?;
        let queue = self.0.read_mark(id)?.queue?;
        self.0.policy.load().config.queues.get(queue).map(|queue| Arc::clone(&queue.name))
    }
}

impl Core {
    /// The tag of an executor, if it is a task and live. A kernel without tasks pays one load for it.
    #[inline]
    pub(super) fn live_tag(&self, id: ExecutorId, executor: &ExecutorCell) -> Option<u64> {
        self.tags.get()?;
        self.find_live_tag(id, executor)
    }

    #[cold]
    fn find_live_tag(&self, id: ExecutorId, executor: &ExecutorCell) -> Option<u64> {
        let is_live = || {
            let state = executor.state();
            state.sequence == id.sequence && state.stage.live()
        };
        let tag = is_live().then(|| self.read_tag(id)).flatten()?;
        // Pairs with the fence in `ExecutorCell::before_reserving`: if the tag is that of a later task, the state shows
        // that this one has ended.
        fence(Ordering::Acquire);
        is_live().then_some(tag)
    }
}
