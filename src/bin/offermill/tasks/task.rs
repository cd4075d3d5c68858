//! A task as its line in the file says it.

use offermill::config::QueueId;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{ResourceSums, Task};

/// A task of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskSpec {
    /// Its id; of a plain command the number of its line.
    pub(crate) id: String,
    /// The number of its line, from 1.
    pub(crate) line: u64,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
    pub(crate) gpus: Gpus,
    /// How many times it is started again after it has failed.
    pub(crate) retries: u32,
    /// The ids of the tasks that must have succeeded before it starts.
    pub(crate) after: Vec<String>,
    /// The queue that it names.
    pub(crate) queue_name: Option<String>,
    /// The same queue by number, once that is known.
    pub(crate) queue: QueueId,
    /// Variables of its environment.
    pub(crate) env: Vec<(String, String)>,
}

/// What tasks have that don't say it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskDefaults {
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
    pub(crate) retries: u32,
}

impl TaskSpec {
    /// What it takes.
    pub(crate) fn sums(&self) -> ResourceSums {
        ResourceSums { cores: self.cores, memory: self.memory, gpus: self.gpus }
    }

    /// As the kernel places it, if it is at this position of the file's tasks.
    pub(crate) fn at(&self, position: u32) -> Task {
        let TaskSpec { cores, memory, gpus, queue, .. } = *self;
        Task { gpus, queue, ..Task::new(position.into(), cores, memory) }
    }

    /// A number that differs if what the task does differs: its command and its variables (FNV-1a).
    pub(crate) fn fingerprint(&self) -> u64 {
        let variables = self.env.iter().flat_map(|(name, value)| [name, value]);
        let texts = self.argv.iter().chain(variables);
        let bytes = texts.flat_map(|text| text.bytes().chain([0]));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}
