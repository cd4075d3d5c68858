//! [`Task`] and [`Picks`]: what a framework wants to be placed, and where.

use crate::config::QueueId;
use crate::kernel::reason::Reason;
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// A task that a framework wants to be placed.
///
/// ```
/// use offermill::Task;
/// use offermill::resources::{Gpus, Mebibytes, MilliCpus};
///
/// let small = Task::new(7, MilliCpus::from_millis(500), Mebibytes::new(256));
/// let large = Task { gpus: Gpus::new(1), ..Task::new(8, MilliCpus::from_cores(4), Mebibytes::new(4096)) };
/// assert_eq!((small.gpus, large.tag), (Gpus::ZERO, 8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Task {
    /// The cores that it takes, in thousandths: at least one thousandth, at most
    /// [`limits::EXECUTOR_CORES_MAX`](crate::limits::EXECUTOR_CORES_MAX).
    pub cores: MilliCpus,
    /// The memory that it takes, in MiB: 0 to
    /// [`limits::EXECUTOR_MEMORY_MAX`](crate::limits::EXECUTOR_MEMORY_MAX). No overhead is added.
    pub memory: Mebibytes,
    /// The GPUs that it takes.
    pub gpus: Gpus,
    /// The framework's own number for it, which the kernel keeps and returns. Tags needn't be unique.
    pub tag: u64,
    /// The [queue](crate::ConfigBuilder::queue) that it is in, if there are queues.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: QueueId,
}

impl Task {
    /// Creates a task without GPUs, in the default queue.
    #[must_use]
    pub const fn new(tag: u64, cores: MilliCpus, memory: Mebibytes) -> Task {
        Task { cores, memory, gpus: Gpus::ZERO, tag, queue: QueueId::DEFAULT }
    }

    /// What it takes.
    #[must_use]
    #[inline]
    pub const fn sums(&self) -> ResourceSums {
        ResourceSums { cores: self.cores, memory: self.memory, gpus: self.gpus }
    }

    /// The same task in this queue.
    #[must_use]
    pub const fn in_queue(mut self, queue: QueueId) -> Task {
        self.queue = queue;
        self
    }
}

/// A task on a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pick {
    /// The position of the room in [`Rooms::list`](crate::Rooms::list).
    pub room: u32,
    /// The task.
    pub task: Task,
    /// Which gang it belongs to; 0 is none. The picks of a gang follow each other.
    pub(crate) gang: u32,
}

/// Tasks on rooms, in the order in which they are wanted. Keep one per thread: its memory is reused.
///
/// ```
/// # use offermill::resources::{Mebibytes, MilliCpus};
/// # use offermill::{Picks, Task};
/// let mut picks = Picks::new();
/// let task = |tag| Task::new(tag, MilliCpus::from_cores(1), Mebibytes::new(512));
/// picks.push(0, task(1));
/// picks.push_gang(&[(0, task(2)), (1, task(3))]); // both or none
/// assert_eq!(picks.iter().map(|pick| (pick.room, pick.task.tag)).collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 3)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Picks {
    list: Vec<Pick>,
    gangs: u32,
}

impl Picks {
    /// Creates picks without tasks.
    #[must_use]
    pub fn new() -> Picks {
        Picks::default()
    }

    /// Removes all picks.
    pub fn clear(&mut self) {
        self.list.clear();
        self.gangs = 0;
    }

    /// Wants `task` on the room at position `room` of [`Rooms::list`](crate::Rooms::list). Nothing is checked before
    /// the commit: a task that doesn't fit is then [returned](crate::Decisions::unplaced).
    pub fn push(&mut self, room: u32, task: Task) {
        self.list.push(Pick { room, task, gang: 0 });
    }

    /// Wants all of these tasks on these rooms, or none of them. A commit that has no room for one of them, by its room
    /// or by the caps, leaves out all.
    pub fn push_gang(&mut self, members: &[(u32, Task)]) {
        // 2³² gangs need more memory than a machine has.
        self.gangs += 1;
        let gang = self.gangs;
        self.list.extend(members.iter().map(|(room, task)| Pick {
            room: *room,
            task: *task,
            gang,
        }));
    }

    /// The number of picks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The picks, in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Pick> {
        self.list.iter()
    }

    pub(super) fn list(&self) -> &[Pick] {
        &self.list
    }
}

impl<'p> IntoIterator for &'p Picks {
    type Item = &'p Pick;
    type IntoIter = std::slice::Iter<'p, Pick>;

    fn into_iter(self) -> std::slice::Iter<'p, Pick> {
        self.iter()
    }
}

/// A pick that was not placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Unplaced {
    /// Its position among the picks.
    pub pick: u32,
    /// The tag of its task.
    pub tag: u64,
    /// Why.
    ///
    /// | reason | |
    /// |---|---|
    /// | [`Malformed`](Reason::Malformed) | there is no such room or no such queue, or the task takes no cores |
    /// | [`Cpus`](Reason::Cpus), [`Memory`](Reason::Memory), [`Gpus`](Reason::Gpus) | the room has less, after the picks before |
    /// | [`AgentFull`](Reason::AgentFull) | the room takes no more tasks |
    /// | [`ExecutorLimit`](Reason::ExecutorLimit), [`CoreCap`](Reason::CoreCap), [`GpuCap`](Reason::GpuCap) | this task, or one before, is more than the cap leaves |
    /// | [`QueueCores`](Reason::QueueCores), [`QueueMemory`](Reason::QueueMemory), [`QueueGuarantees`](Reason::QueueGuarantees) | its queue has no room; tasks of other queues aren't concerned |
    /// | [`AgentExcluded`](Reason::AgentExcluded), [`AgentSuspect`](Reason::AgentSuspect), [`ConstraintUnmet`](Reason::ConstraintUnmet) and others of agents | since the proposal, the agent can't be used any more |
    /// | [`Stopping`](Reason::Stopping), [`Disconnected`](Reason::Disconnected) | the kernel was closed, or the subscription ended |
    /// | [`Contended`](Reason::Contended) | another thread was faster; or a member of its gang was not placed |
    pub reason: Reason,
}
