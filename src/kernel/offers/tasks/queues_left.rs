//! [`QueuesLeft`]: what the queues have room for, for a framework that chooses tasks.

use std::fmt;
use std::sync::Arc;

use super::picks::Task;
use super::rooms::Rooms;
use crate::config::{QueueId, Queues};
use crate::kernel::offers::queues::QueueDraft;
use crate::kernel::reason::Reason;
use crate::kernel::state::queues::QueueAmount;
use crate::kernel::{Core, Kernel, ResourceSums};
use crate::resources::Gpus;

/// What the queues have room for, as the next commit would find it: a copy, from which a framework takes what the tasks
/// that it chooses need. Other threads may be faster: the commit checks again.
///
/// ```
/// use offermill::config::Queue;
/// use offermill::resources::{Mebibytes, MilliCpus};
/// use offermill::{Config, IdScheme, Kernel, Task};
///
/// let cores = MilliCpus::from_cores;
/// let config = Config::builder()
///     .core_cap(Some(cores(8)))
///     .queue(Queue::new("etl").max_cores(Some(cores(5))))
///     .queue(Queue::new("web").guaranteed_cores(cores(4)));
/// let kernel = Kernel::new(config.build()?, IdScheme::plain());
/// let etl = kernel.config().queues().id("etl").unwrap();
///
/// let mut left = kernel.queues_left();
/// assert_eq!(left.room(etl).cores, cores(4), "four are kept for the other queue");
/// let task = |tag| Task::new(tag, cores(3), Mebibytes::new(512)).in_queue(etl);
/// assert!(left.take(&task(1)).is_ok());
/// assert!(left.take(&task(2)).is_err());
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone)]
pub struct QueuesLeft {
    queues: Arc<Queues>,
    draft: QueueDraft,
}

impl QueuesLeft {
    fn of(core: &Core) -> QueuesLeft {
        let policy = core.policy.load();
        let mut draft = QueueDraft::default();
        draft.load(core, &policy.config);
        QueuesLeft { queues: Arc::clone(&policy.config.queues), draft }
    }

    /// The most cores, and the most memory, that a queue has room for; GPUs have no quotas. Nothing if there is no such
    /// queue, unless there are none at all.
    #[must_use]
    pub fn room(&self, queue: QueueId) -> ResourceSums {
        let QueueAmount { cores, memory } = self.draft.room(&self.queues, queue);
        ResourceSums { cores, memory, gpus: Gpus::new(u32::MAX) }
    }

    /// Takes what a task needs of its queue.
    ///
    /// # Errors
    /// If its queue has no room for it, with the reason that the commit would have. Then nothing changes.
    pub fn take(&mut self, task: &Task) -> Result<(), Reason> {
        let amount = QueueAmount::new(task.cores, task.memory);
        self.draft.take(&self.queues, task.queue, amount)
    }

    /// Whether any queue has room for less than its maximum.
    fn is_less(&self) -> bool {
        self.queues.iter().any(|(id, _)| {
            let (room, most) = (self.draft.room(&self.queues, id), self.queues.bounds(id));
            room.cores < most.cores || room.memory < most.memory
        })
    }
}

impl fmt::Debug for QueuesLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rooms = self.queues.iter().map(|(id, queue)| (queue.name(), self.room(id)));
        f.debug_map().entries(rooms).finish()
    }
}

impl Kernel {
    /// What the queues have room for now.
    ///
    /// Lock-free. O(queues).
    #[must_use]
    pub fn queues_left(&self) -> QueuesLeft {
        QueuesLeft::of(&self.0)
    }
}

impl Rooms<'_> {
    /// What the queues have room for now, whatever the rooms have. If it is less because of what another batch has
    /// booked and gives back, offers are revived.
    ///
    /// Lock-free. O(queues).
    #[must_use]
    pub fn queues_left(&self) -> QueuesLeft {
        let left = QueuesLeft::of(self.core());
        if left.is_less() {
            self.told_less();
        }
        left
    }
}
