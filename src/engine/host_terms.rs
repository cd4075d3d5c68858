//! [`HostTerms`]: the program of hosts, and what each host takes.

use std::sync::Arc;
use std::time::Duration;

use crate::config::QueueId;
use crate::kernel::{ResourceSums, Task};
use crate::launch::Setup;
use crate::resources::{Mebibytes, MilliCpus};

/// What the hosts of a framework have in common.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostTerms {
    /// The program and its arguments: `offermill task-host`, or a program of your own that calls
    /// `offermill::cluster::run_task_host`.
    pub argv: Vec<String>,
    /// The cores that a host takes beside its tasks: more than 0. Default 0.1.
    pub cores: MilliCpus,
    /// The memory that it takes. Default 32 MiB.
    pub memory: Mebibytes,
    /// How long a host without tasks is kept. Default 60 s.
    pub idle_timeout: Duration,
    /// The setup that hosts have, and their tasks with them. Default: none.
    pub setup: Option<Arc<Setup>>,
    /// The queue that hosts are in; their tasks are in their own. Default: the default queue.
    pub queue: QueueId,
}

impl HostTerms {
    /// Hosts that run this program, with the default values.
    #[must_use]
    pub fn new(argv: Vec<String>) -> HostTerms {
        HostTerms {
            argv,
            cores: MilliCpus::from_millis(100),
            memory: Mebibytes::new(32),
            idle_timeout: Duration::from_secs(60),
            setup: None,
            queue: QueueId::DEFAULT,
        }
    }

    /// What a host takes.
    #[must_use]
    pub fn sums(&self) -> ResourceSums {
        ResourceSums { cores: self.cores, memory: self.memory, ..ResourceSums::NONE }
    }

    /// A host as the kernel places it.
    #[must_use]
    pub fn task(&self, tag: u64) -> Task {
        Task::new(tag, self.cores, self.memory).in_queue(self.queue)
    }
}
