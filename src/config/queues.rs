//! Queues: named parts of a framework, each with what it holds at most and what is kept for it.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::limits;
use crate::resources::{Mebibytes, MilliCpus};

/// The number of a queue: its position among those of the [settings](crate::config::Queues), from 1.
/// [`QueueId::DEFAULT`] is the queue of what names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "u8", into = "u8")
)]
// As wide as the other small numbers of a `Reason`, which would be copied in more pieces otherwise.
pub struct QueueId(u32);

impl QueueId {
    /// The queue `default`, which is always there.
    pub const DEFAULT: QueueId = QueueId(0);

    /// The queue with this number. [`Queues::id`] finds it by its name.
    #[must_use]
    pub const fn new(number: u8) -> QueueId {
        QueueId(number as u32)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0 as u8
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<u8> for QueueId {
    fn from(number: u8) -> QueueId {
        QueueId::new(number)
    }
}

impl From<QueueId> for u8 {
    fn from(queue: QueueId) -> u8 {
        queue.number()
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A queue: its name, what it holds at most, and what is kept for it.
///
/// ```
/// use offermill::config::Queue;
/// use offermill::resources::{Mebibytes, MilliCpus};
///
/// let etl = Queue::new("etl")
///     .max_cores(Some(MilliCpus::from_cores(16)))
///     .max_memory(Some(Mebibytes::new(32 * 1024)))
///     .guaranteed_cores(MilliCpus::from_cores(4));
/// assert_eq!(etl.name(), "etl");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    pub(crate) name: Arc<str>,
    pub(crate) max_cores: Option<MilliCpus>,
    pub(crate) max_memory: Option<Mebibytes>,
    pub(crate) guaranteed_cores: MilliCpus,
    pub(crate) guaranteed_memory: Mebibytes,
}

impl Queue {
    /// A queue without bounds, for which nothing is kept. A name has 1 to 64 letters (a to z, A to Z), digits, `.`, `_`
    /// and `-`; `default` is the queue of what names none.
    #[must_use]
    pub fn new(name: &str) -> Queue {
        Queue {
            name: name.into(),
            max_cores: None,
            max_memory: None,
            guaranteed_cores: MilliCpus::ZERO,
            guaranteed_memory: Mebibytes::ZERO,
        }
    }

    /// Sets the most cores that its executors hold together; `None` is no maximum.
    #[must_use]
    pub fn max_cores(mut self, cores: Option<MilliCpus>) -> Queue {
        self.max_cores = cores;
        self
    }

    /// Sets the most memory that its executors hold together; `None` is no maximum but
    /// [`limits::QUEUE_MEMORY_MAX`].
    #[must_use]
    pub fn max_memory(mut self, memory: Option<Mebibytes>) -> Queue {
        self.max_memory = memory;
        self
    }

    /// Sets the cores that are kept for it: as long as it holds less and has demand, other queues leave it the rest
    /// below the core cap; see [what exactly holds](crate::Kernel::set_queue_demand). Without a core cap there is
    /// nothing to keep. At most [`limits::QUEUE_GUARANTEED_CORES_MAX`].
    #[must_use]
    pub fn guaranteed_cores(mut self, cores: MilliCpus) -> Queue {
        self.guaranteed_cores = cores;
        self
    }

    /// Sets the memory that is kept for it, out of that of [all queues](crate::ConfigBuilder::queued_memory). At most
    /// [`limits::QUEUE_GUARANTEED_MEMORY_MAX`].
    #[must_use]
    pub fn guaranteed_memory(mut self, memory: Mebibytes) -> Queue {
        self.guaranteed_memory = memory;
        self
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the most cores and the most memory that its executors hold together.
    #[must_use]
    pub fn maxima(&self) -> (Option<MilliCpus>, Option<Mebibytes>) {
        (self.max_cores, self.max_memory)
    }

    /// Returns the cores and the memory that are kept for it.
    #[must_use]
    pub fn guarantees(&self) -> (MilliCpus, Mebibytes) {
        (self.guaranteed_cores, self.guaranteed_memory)
    }

    fn check(&self) -> Result<(), Error> {
        let name = &*self.name;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=limits::QUEUE_NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(allowed) {
            let allowed = "1 to 64 letters, digits, dots, underscores and hyphens";
            return Err(Error::setting("queue name", name, allowed));
        }
        let most = self.max_cores.unwrap_or(limits::TOTAL_CORES_MAX);
        if most > limits::TOTAL_CORES_MAX {
            let allowed = format!("at most {}", limits::TOTAL_CORES_MAX);
            return Err(Error::setting(self.setting("maximum of cores"), most, allowed));
        }
        let least = most.min(limits::QUEUE_GUARANTEED_CORES_MAX);
        if self.guaranteed_cores > least {
            let allowed = format!("at most {least}");
            return Err(Error::setting(
                self.setting("guarantee of cores"),
                self.guaranteed_cores,
                allowed,
            ));
        }
        let most = self.max_memory.unwrap_or(limits::QUEUE_MEMORY_MAX);
        if most > limits::QUEUE_MEMORY_MAX {
            let allowed = format!("at most {}", limits::QUEUE_MEMORY_MAX);
            return Err(Error::setting(self.setting("maximum of memory"), most, allowed));
        }
        let least = most.min(limits::QUEUE_GUARANTEED_MEMORY_MAX);
        if self.guaranteed_memory > least {
            let allowed = format!("at most {least}");
            let name = self.setting("guarantee of memory");
            return Err(Error::setting(name, self.guaranteed_memory, allowed));
        }
        Ok(())
    }

    fn setting(&self, what: &str) -> String {
        format!("{what} of the queue {}", self.name)
    }
}

/// What a queue may hold at most, in thousandths of cores and MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueBounds {
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
}

impl QueueBounds {
    const NOTHING: QueueBounds = QueueBounds { cores: MilliCpus::ZERO, memory: Mebibytes::ZERO };
    const ANY: QueueBounds =
        QueueBounds { cores: limits::TOTAL_CORES_MAX, memory: limits::QUEUE_MEMORY_MAX };
}

/// The queues of a configuration. Without any, nothing is booked in queues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queues {
    /// By number, the default queue first; empty if there are none.
    list: Vec<Queue>,
    /// What all of them hold together at most.
    pub(crate) memory: Option<Mebibytes>,
    /// The queue of executors that are placed by [`Handler::resource_offers`](crate::Handler::resource_offers).
    pub(crate) executors: QueueId,
}

impl Queues {
    /// The name of the default queue.
    pub const DEFAULT_NAME: &str = "default";

    /// Collects queues. The default one is among them; one that has the name of a former one replaces it.
    ///
    /// # Errors
    /// Fails if one of them is wrong, or if there are more than [`limits::QUEUES_MAX`] with the default one. What is
    /// guaranteed is compared with what there is when a configuration is built.
    pub fn new(queues: impl IntoIterator<Item = Queue>) -> Result<Queues, Error> {
        let mut all = Queues::default();
        queues.into_iter().for_each(|queue| all.set(queue));
        all.check(None)?;
        Ok(all)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The queues with their numbers, the default queue first.
    pub fn iter(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.list.iter().zip(0..).map(|(queue, number)| (QueueId::new(number), queue))
    }

    /// The queue with this name.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<QueueId> {
        self.iter().find(|(_, queue)| &*queue.name == name).map(|(id, _)| id)
    }

    /// The queue with this number.
    #[must_use]
    pub fn get(&self, id: QueueId) -> Option<&Queue> {
        self.list.get(id.index())
    }

    /// The queue of executors that are placed by [`Handler::resource_offers`](crate::Handler::resource_offers).
    #[must_use]
    pub fn executor_queue(&self) -> QueueId {
        self.executors
    }

    /// Whether cores are guaranteed to any.
    pub(crate) fn guarantee_cores(&self) -> bool {
        self.list.iter().any(|queue| queue.guaranteed_cores > MilliCpus::ZERO)
    }

    /// What a queue may hold. A number without a queue may hold nothing more, unless there are no queues at all.
    pub(crate) fn bounds(&self, id: QueueId) -> QueueBounds {
        let any = QueueBounds::ANY;
        match self.get(id) {
            Some(queue) => QueueBounds {
                cores: queue.max_cores.unwrap_or(any.cores),
                memory: queue.max_memory.unwrap_or(any.memory),
            },
            None if self.list.is_empty() => any,
            None => QueueBounds::NOTHING,
        }
    }

    /// Adds a queue, or replaces the one of its name.
    pub(super) fn set(&mut self, queue: Queue) {
        if self.list.is_empty() {
            self.list.push(Queue::new(Queues::DEFAULT_NAME));
        }
        match self.list.iter_mut().find(|known| known.name == queue.name) {
            Some(known) => *known = queue,
            None => self.list.push(queue),
        }
    }

    /// Returns an error for the first queue that is wrong, or if more is guaranteed than there is.
    pub(super) fn check(&self, core_cap: Option<MilliCpus>) -> Result<(), Error> {
        if self.list.len() > limits::QUEUES_MAX {
            let allowed = format!("at most {}, with the default one", limits::QUEUES_MAX);
            return Err(Error::setting("number of queues", self.list.len(), allowed));
        }
        self.list.iter().try_for_each(Queue::check)?;
        if self.executors.index() >= self.list.len().max(1) {
            let allowed = "the number of a queue that there is";
            return Err(Error::setting("executors' queue", self.executors, allowed));
        }
        let cores = self.list.iter().map(|queue| queue.guaranteed_cores.millis()).sum();
        let cores = MilliCpus::from_millis(cores);
        if let Some(cap) = core_cap
            && cores > cap
        {
            let allowed = format!("at most {cap}, the cores of all executors");
            return Err(Error::setting("guaranteed cores of all queues", cores, allowed));
        }
        let memory =
            Mebibytes::new(self.list.iter().map(|queue| queue.guaranteed_memory.get()).sum());
        if let Some(most) = self.memory
            && memory > most
        {
            let allowed = format!("at most {most}, the memory of all queues");
            return Err(Error::setting("guaranteed memory of all queues", memory, allowed));
        }
        Ok(())
    }
}
