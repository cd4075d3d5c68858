//! [`Reason`]: why an offer is declined, in numbers; its kinds; and [`Decline`], the answer with a reason.

use std::fmt;
use std::time::Duration;

use crate::config::{QueueId, Queues, RefuseDurations};
use crate::constraint::{Mismatch, Unmet};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// An offer that is declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Decline {
    /// Position of the offer in the batch.
    pub offer: u32,
    /// Why it is declined.
    pub reason: Reason,
    /// How long to refuse the agent's resources.
    pub refuse: Duration,
}

impl Decline {
    /// Creates the decline of the offer at this position of a batch.
    #[must_use]
    pub const fn new(offer: u32, reason: Reason, refuse: Duration) -> Decline {
        Decline { offer, reason, refuse }
    }

    /// The decline of an offer that is refused for as long as the reason says. Always inlined: a reason is large, and
    /// would be copied for a call.
    #[inline(always)]
    pub(in crate::kernel) fn at(
        offer: u32,
        reason: Reason,
        refuse: &RefuseDurations,
        now: Timestamp,
    ) -> Decline {
        Decline { offer, reason, refuse: reason.refuse(refuse, now) }
    }

    /// The declines of all offers of a batch, which are `offers`, for one reason.
    #[inline(always)]
    pub(in crate::kernel) fn all(
        offers: usize,
        reason: &Reason,
        refuse: Duration,
    ) -> impl ExactSizeIterator<Item = Decline> {
        (0..offers as u32).map(move |offer| Decline { offer, reason: *reason, refuse })
    }
}

/// Why an offer is declined, in numbers: what was asked for and what was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
// With a shorter tag, a reason is written in small pieces and copied in larger ones, and a processor that copies it
// right after waits for the pieces.
#[repr(u32)]
pub enum Reason {
    /// The kernel is closed.
    Stopping,
    /// The subscription that the offer came under has ended.
    Disconnected,
    /// The offer has no id, or names no agent.
    Malformed,
    /// The agent doesn't meet the constraint.
    ConstraintUnmet(Unmet),
    /// The executor limit is reached.
    ExecutorLimit {
        /// The limit.
        limit: u32,
    },
    /// The core cap leaves too little for an executor.
    CoreCap {
        /// The cap.
        cap: MilliCpus,
        /// The cores acquired when the offer was answered.
        acquired: MilliCpus,
        /// The least number of cores that the next executor would take.
        asked: MilliCpus,
    },
    /// The GPU cap leaves too little for an executor.
    GpuCap {
        /// The cap.
        cap: Gpus,
        /// The GPUs acquired when the offer was answered.
        acquired: Gpus,
        /// The GPUs that the next executor would take.
        asked: Gpus,
    },
    /// Too many executors failed on the agent.
    AgentExcluded {
        /// When the exclusion ends; [`Timestamp::MAX`] is never.
        until: Timestamp,
    },
    /// The agent was recently reported as lost.
    AgentSuspect {
        /// Until when no executor is placed there.
        until: Timestamp,
    },
    /// The agent's planned maintenance is near.
    AgentMaintenance {
        /// The time from the answer to the beginning of the maintenance; zero if it had begun.
        begins_in: Duration,
    },
    /// The agent has as many executors, or the kernel knows as many agents, as can be counted.
    AgentFull,
    /// Too few cores.
    Cpus {
        /// The cores that an executor takes.
        asked: MilliCpus,
        /// The cores offered that it may take. Of revocable and non-revocable ones, the larger sum; likewise for memory
        /// and GPUs.
        offered: MilliCpus,
    },
    /// Too little memory.
    Memory {
        /// The memory that an executor takes.
        asked: Mebibytes,
        /// The memory offered that it may take, rounded down.
        offered: Mebibytes,
    },
    /// Too few GPUs.
    Gpus {
        /// The GPUs that an executor takes.
        asked: Gpus,
        /// The whole GPUs offered that it may take.
        offered: Gpus,
    },
    /// The fixed port isn't offered.
    Port {
        /// The port.
        port: u16,
    },
    /// Another thread used or removed the agent between plan and commit. Its next offer is considered again. Its text
    /// ([`ReasonKind::as_str`]), which journals and `offermill run --json` have, is `raced`; with the feature `serde`
    /// it is `contended`.
    Contended,
    /// Executors are wanted on other hosts, or the agent's host has an executor or gets one in the same batch.
    Locality {
        /// When the wait ends.
        until: Timestamp,
    },
    /// The framework picked no [task](crate::Task) for the offer's room.
    NotPicked,
    /// The queue's maximum of cores leaves too little. This is no cap: executors of other queues may be placed.
    QueueCores {
        /// The queue.
        queue: QueueId,
        /// Its maximum.
        most: MilliCpus,
        /// The cores that it held.
        held: MilliCpus,
        /// The cores that were asked for it.
        asked: MilliCpus,
    },
    /// The queue's maximum of memory leaves too little.
    QueueMemory {
        /// The queue.
        queue: QueueId,
        /// Its maximum.
        most: Mebibytes,
        /// The memory that it held.
        held: Mebibytes,
        /// The memory that was asked for it.
        asked: Mebibytes,
    },
    /// What the caps leave is guaranteed to other queues, or is all that the queues may hold together.
    QueueGuarantees {
        /// The queue that was refused.
        queue: QueueId,
    },
}

/// The kinds of [`Reason`], for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum ReasonKind {
    /// See [`Reason::Stopping`].
    Stopping,
    /// See [`Reason::Disconnected`].
    Disconnected,
    /// See [`Reason::Malformed`].
    Malformed,
    /// See [`Reason::ConstraintUnmet`].
    ConstraintUnmet,
    /// [`Reason::ConstraintUnmet`] because of [`Mismatch::Incomparable`]: most likely a mistake in the constraint.
    ConstraintIncomparable,
    /// See [`Reason::ExecutorLimit`].
    ExecutorLimit,
    /// See [`Reason::CoreCap`].
    CoreCap,
    /// See [`Reason::GpuCap`].
    GpuCap,
    /// See [`Reason::AgentExcluded`].
    AgentExcluded,
    /// See [`Reason::AgentSuspect`].
    AgentSuspect,
    /// See [`Reason::AgentMaintenance`].
    AgentMaintenance,
    /// See [`Reason::AgentFull`].
    AgentFull,
    /// See [`Reason::Cpus`].
    Cpus,
    /// See [`Reason::Memory`].
    Memory,
    /// See [`Reason::Gpus`].
    Gpus,
    /// See [`Reason::Port`].
    Port,
    /// See [`Reason::Contended`].
    Contended,
    /// See [`Reason::Locality`].
    Locality,
    /// See [`Reason::NotPicked`].
    NotPicked,
    /// See [`Reason::QueueCores`].
    QueueCores,
    /// See [`Reason::QueueMemory`].
    QueueMemory,
    /// See [`Reason::QueueGuarantees`].
    QueueGuarantees,
}

impl ReasonKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [ReasonKind; 22] = [
        ReasonKind::Stopping,
        ReasonKind::Disconnected,
        ReasonKind::Malformed,
        ReasonKind::ConstraintUnmet,
        ReasonKind::ConstraintIncomparable,
        ReasonKind::ExecutorLimit,
        ReasonKind::CoreCap,
        ReasonKind::GpuCap,
        ReasonKind::AgentExcluded,
        ReasonKind::AgentSuspect,
        ReasonKind::AgentMaintenance,
        ReasonKind::AgentFull,
        ReasonKind::Cpus,
        ReasonKind::Memory,
        ReasonKind::Gpus,
        ReasonKind::Port,
        ReasonKind::Contended,
        ReasonKind::Locality,
        ReasonKind::NotPicked,
        ReasonKind::QueueCores,
        ReasonKind::QueueMemory,
        ReasonKind::QueueGuarantees,
    ];

    /// The kind in a few words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ReasonKind::Stopping => "stopping",
            ReasonKind::Disconnected => "disconnected",
            ReasonKind::Malformed => "malformed offer",
            ReasonKind::ConstraintUnmet => "constraint unmet",
            ReasonKind::ConstraintIncomparable => "constraint of another type",
            ReasonKind::ExecutorLimit => "executor limit reached",
            ReasonKind::CoreCap => "core cap reached",
            ReasonKind::GpuCap => "GPU cap reached",
            ReasonKind::AgentExcluded => "agent excluded",
            ReasonKind::AgentSuspect => "agent just lost",
            ReasonKind::AgentMaintenance => "agent before maintenance",
            ReasonKind::AgentFull => "agent full",
            ReasonKind::Cpus => "too few cores",
            ReasonKind::Memory => "too little memory",
            ReasonKind::Gpus => "too few GPUs",
            ReasonKind::Port => "port not offered",
            ReasonKind::Contended => "raced",
            ReasonKind::Locality => "other hosts wanted",
            ReasonKind::NotPicked => "no task picked",
            ReasonKind::QueueCores => "queue has its maximum of cores",
            ReasonKind::QueueMemory => "queue has its maximum of memory",
            ReasonKind::QueueGuarantees => "kept for other queues",
        }
    }
}

impl Reason {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ReasonKind {
        match self {
            Reason::Stopping => ReasonKind::Stopping,
            Reason::Disconnected => ReasonKind::Disconnected,
            Reason::Malformed => ReasonKind::Malformed,
            Reason::ConstraintUnmet(Unmet { mismatch: Mismatch::Incomparable, .. }) => {
                ReasonKind::ConstraintIncomparable
            }
            Reason::ConstraintUnmet(_) => ReasonKind::ConstraintUnmet,
            Reason::ExecutorLimit { .. } => ReasonKind::ExecutorLimit,
            Reason::CoreCap { .. } => ReasonKind::CoreCap,
            Reason::GpuCap { .. } => ReasonKind::GpuCap,
            Reason::AgentExcluded { .. } => ReasonKind::AgentExcluded,
            Reason::AgentSuspect { .. } => ReasonKind::AgentSuspect,
            Reason::AgentMaintenance { .. } => ReasonKind::AgentMaintenance,
            Reason::AgentFull => ReasonKind::AgentFull,
            Reason::Cpus { .. } => ReasonKind::Cpus,
            Reason::Memory { .. } => ReasonKind::Memory,
            Reason::Gpus { .. } => ReasonKind::Gpus,
            Reason::Port { .. } => ReasonKind::Port,
            Reason::Contended => ReasonKind::Contended,
            Reason::Locality { .. } => ReasonKind::Locality,
            Reason::NotPicked => ReasonKind::NotPicked,
            Reason::QueueCores { .. } => ReasonKind::QueueCores,
            Reason::QueueMemory { .. } => ReasonKind::QueueMemory,
            Reason::QueueGuarantees { .. } => ReasonKind::QueueGuarantees,
        }
    }

    /// Returns whether a cap, not the offer, is the reason.
    #[must_use]
    pub const fn is_cap(&self) -> bool {
        matches!(
            self,
            Reason::ExecutorLimit { .. } | Reason::CoreCap { .. } | Reason::GpuCap { .. }
        )
    }

    /// Whether nothing can be placed whatever is offered, so that the cluster should make no offers.
    #[inline]
    pub(in crate::kernel) fn calls_for_suppress(self) -> bool {
        self.is_cap() || self == Reason::Stopping
    }

    /// Returns whether offers that are declined for this reason can be compared by how near they came to being used.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        matches!(
            self,
            Reason::Cpus { .. }
                | Reason::Memory { .. }
                | Reason::Gpus { .. }
                | Reason::AgentExcluded { .. }
                | Reason::AgentSuspect { .. }
        )
    }

    /// The reason, with the queue's name instead of its number if it is about a queue and these are the settings.
    #[must_use]
    pub fn named(self, queues: &Queues) -> impl fmt::Display + '_ {
        NamedReason { reason: self, queues }
    }

    /// The queue that it is about, if it is about one.
    #[must_use]
    pub const fn queue(&self) -> Option<QueueId> {
        match self {
            Reason::QueueCores { queue, .. }
            | Reason::QueueMemory { queue, .. }
            | Reason::QueueGuarantees { queue } => Some(*queue),
            _ => None,
        }
    }

    /// Writes a reason about a queue, which is called this.
    fn of_queue(&self, queue: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::QueueCores { most, held, asked, .. } => {
                write!(
                    f,
                    "queue {queue} has reached its maximum of {most:#}: {held} held, {asked} asked"
                )
            }
            Reason::QueueMemory { most, held, asked, .. } => {
                write!(
                    f,
                    "queue {queue} has reached its maximum of {most}: {held} held, {asked} asked"
                )
            }
            _ => write!(f, "what is left for queue {queue} is kept for other queues"),
        }
    }

    /// How long to refuse: by the class of the reason, and no longer than the exclusion, suspicion or wait lasts.
    pub(crate) fn refuse(&self, durations: &RefuseDurations, now: Timestamp) -> Duration {
        match self {
            Reason::Stopping => durations.stopping,
            Reason::ConstraintUnmet(_) | Reason::AgentMaintenance { .. } => {
                durations.unmet_constraint
            }
            reason if reason.is_cap() => durations.reached_cap,
            Reason::AgentExcluded { until } => until.since(now).min(durations.unmet_constraint),
            Reason::AgentSuspect { until } | Reason::Locality { until } => {
                until.since(now).min(durations.other)
            }
            _ => durations.other,
        }
    }
}

/// A reason with the name of its queue.
struct NamedReason<'q> {
    reason: Reason,
    queues: &'q Queues,
}

impl fmt::Display for NamedReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.queue().and_then(|queue| self.queues.get(queue)) {
            Some(queue) => self.reason.of_queue(queue.name(), f),
            None => self.reason.fmt(f),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::ConstraintUnmet(unmet) => write!(f, "constraint unmet: {}", unmet.mismatch),
            Reason::ExecutorLimit { limit: 1 } => f.write_str("limit of 1 executor reached"),
            Reason::ExecutorLimit { limit } => write!(f, "limit of {limit} executors reached"),
            Reason::CoreCap { cap, acquired, asked } => {
                write!(f, "core cap reached: {acquired} of {cap:#} taken, {asked} asked")
            }
            Reason::GpuCap { cap, acquired, asked } => {
                write!(f, "GPU cap reached: {acquired} of {cap:#} taken, {asked} asked")
            }
            Reason::AgentExcluded { until: Timestamp::MAX } => {
                f.write_str("agent excluded for ever")
            }
            Reason::AgentExcluded { until } => write!(f, "agent excluded until {until}"),
            Reason::AgentSuspect { until } => {
                write!(f, "agent lost a moment ago, not used until {until}")
            }
            Reason::AgentMaintenance { begins_in: Duration::ZERO } => {
                f.write_str("agent under maintenance")
            }
            Reason::AgentMaintenance { begins_in } => {
                write!(f, "agent under maintenance in {} s", begins_in.as_secs())
            }
            Reason::Cpus { asked, offered } => write!(f, "{offered} of {asked:#}"),
            Reason::Memory { asked, offered } => {
                write!(f, "memory {} of {} MiB", offered.get(), asked.get())
            }
            Reason::Gpus { asked, offered } => write!(f, "{offered} of {asked:#}"),
            Reason::Port { port } => write!(f, "port {port} is not offered"),
            Reason::Locality { until } => write!(f, "other hosts are wanted until {until}"),
            Reason::QueueCores { queue, .. }
            | Reason::QueueMemory { queue, .. }
            | Reason::QueueGuarantees { queue } => self.of_queue(&queue.to_string(), f),
            other => f.write_str(other.kind().as_str()),
        }
    }
}
