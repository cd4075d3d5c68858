//! The kernel's hard limits: the widths of its packed words, and limits of Mesos.

use std::time::Duration;

use crate::resources::{Mebibytes, MilliCpus};

/// The maximum number of live executors of one kernel.
pub const EXECUTORS_MAX: u32 = (1 << 22) - 1;
/// The maximum number of cores of all live executors of one kernel together.
pub const TOTAL_CORES_MAX: MilliCpus = MilliCpus::from_millis((1 << 33) - 1);
/// The maximum number of cores of one executor.
pub const EXECUTOR_CORES_MAX: MilliCpus = MilliCpus::from_cores(1_000_000);
/// The maximum memory of one executor, including the overhead.
pub const EXECUTOR_MEMORY_MAX: Mebibytes = Mebibytes::new(1 << 41);
/// The maximum length of an executor's id, in bytes; Mesos' own limit.
pub const EXECUTOR_ID_BYTES_MAX: usize = 255;
/// The maximum number of live executors of one kernel on one agent.
pub const EXECUTORS_PER_AGENT_MAX: u32 = (1 << 16) - 1;
/// The maximum number of queues of one kernel, with the default one.
pub const QUEUES_MAX: usize = 64;
/// The maximum length of a queue's name, in bytes.
pub const QUEUE_NAME_BYTES_MAX: usize = 64;
/// The maximum memory that all executors of one queue hold together: 8 PiB less 1 MiB.
pub const QUEUE_MEMORY_MAX: Mebibytes = Mebibytes::new((1 << 33) - 1);
/// The maximum number of cores that can be guaranteed to a queue.
pub const QUEUE_GUARANTEED_CORES_MAX: MilliCpus = MilliCpus::from_millis((1 << 31) - 1);
/// The maximum memory that can be guaranteed to a queue: 2 PiB less 1 MiB.
pub const QUEUE_GUARANTEED_MEMORY_MAX: Mebibytes = Mebibytes::new((1 << 31) - 1);
/// The maximum time that an offer can be refused for; Mesos' own limit.
pub const REFUSE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// The maximum length of a message that a cluster sends, in bytes. Longer ones are cut.
pub const MESSAGE_BYTES_MAX: usize = 4096;
/// The maximum length of an id that a cluster chooses, in bytes. Offers and updates with longer ones are refused.
pub const FOREIGN_ID_BYTES_MAX: usize = 1024;
/// The maximum length of an agent's host name, in bytes. Offers with longer ones are refused.
pub const HOSTNAME_BYTES_MAX: usize = 255;
/// The maximum size of [all that is said of an agent](crate::engine::cluster_manager::AgentFacts) with an update, in
/// bytes: its texts, and 16 for each attribute, item of a set and range. Updates with more are refused.
pub const AGENT_FACTS_BYTES_MAX: usize = 1024 * 1024;
/// The maximum length of an attribute's name and of each text in its value, in bytes. Offers with longer ones are
/// refused.
pub const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;
