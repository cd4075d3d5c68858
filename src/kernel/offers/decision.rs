//! [`Decisions`]: the answer to a batch of offers, as accepts with placed executors and declines with reasons.
//!
//! The rows live in reused memory and refer to offers by their position in the batch, so that nothing is copied from an
//! offer.

use std::fmt;
use std::time::Duration;

use super::carve::ResourceCarver;
use super::remainder::Remainder;
use crate::config::{Config, RefuseDurations};
use crate::constraint::{Mismatch, Unmet};
use crate::ids::ExecutorId;
use crate::offer::Offer;
use crate::resources::{Gpus, Mebibytes, MilliCpus, Scalar};
use crate::time::Timestamp;

/// The answer to a batch of offers. Each offer is among the offers of one accept or among the declines, exactly once.
///
/// Create one per thread and pass it to every batch: its memory is reused.
#[derive(Debug, Default)]
pub struct Decisions {
    pub(crate) accepts: Vec<AcceptRow>,
    pub(crate) accepted: Vec<u32>,
    pub(crate) placed: Vec<Placed>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) declines: Vec<Decline>,
    pub(crate) leftover_refuse: Duration,
    /// Whether an offer was refused at a cap.
    pub(crate) at_cap: bool,
    pub(crate) revives: u64,
    /// The number of the policy that the batch follows.
    pub(crate) policy: u64,
}

#[derive(Debug)]
pub(crate) struct AcceptRow {
    pub(crate) offers: (u32, u32),
    pub(crate) placed: (u32, u32),
}

impl Decisions {
    /// Creates empty decisions.
    #[must_use]
    pub fn new() -> Decisions {
        Decisions::default()
    }

    /// The accepts, one per agent and role that got executors, in the order of their first offers.
    pub fn accepts(&self) -> impl ExactSizeIterator<Item = Accepted<'_>> {
        self.accepts.iter().map(|row| Accepted {
            offers: slice(&self.accepted, row.offers),
            executors: slice(&self.placed, row.placed),
            refuse: self.leftover_refuse,
            pieces: &self.pieces,
        })
    }

    /// The declines.
    #[must_use]
    pub fn declines(&self) -> &[Decline] {
        &self.declines
    }

    /// The number of executors placed.
    #[must_use]
    pub fn executors(&self) -> usize {
        self.placed.len()
    }

    pub(crate) fn clear(&mut self) {
        self.accepts.clear();
        self.accepted.clear();
        self.placed.clear();
        self.pieces.clear();
        self.declines.clear();
        self.at_cap = false;
    }
}

fn slice<T>(rows: &[T], (start, end): (u32, u32)) -> &[T] {
    rows.get(start as usize..end as usize).unwrap_or_default()
}

/// Executors placed on one agent, from offers of one role.
#[derive(Clone, Copy, Debug)]
pub struct Accepted<'d> {
    /// Positions in the batch of the offers to accept together.
    pub offers: &'d [u32],
    /// The executors, in the order in which they were placed.
    pub executors: &'d [Placed],
    /// How long to refuse the agent's remaining resources.
    pub refuse: Duration,
    pieces: &'d [Piece],
}

impl<'d> Accepted<'d> {
    /// Returns the pieces that `executor`, one of [`Accepted::executors`], takes: cores, memory, GPUs, port. Each kind
    /// comes from non-revocable resources or, if those don't suffice, from revocable ones, never from both. Reserved
    /// resources are used before unreserved ones, in the order of the offers.
    #[must_use]
    pub fn pieces(&self, executor: &Placed) -> &'d [Piece] {
        slice(self.pieces, executor.pieces)
    }

    /// Returns what the executors leave of the offers. `batch` is the batch that was answered. The cluster treats the
    /// rest as declined.
    #[must_use]
    pub fn left<'a>(&self, batch: &'a [Offer<'a>]) -> Remainder<'a> {
        let mut remainder = Remainder::of(batch, self.offers.iter().copied());
        for piece in self.executors.iter().flat_map(|executor| self.pieces(executor)) {
            let there = remainder.subtract(piece);
            debug_assert!(there, "{piece:?} is more than was offered");
        }
        remainder
    }
}

/// One executor.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Its id; [`Kernel::executor_name`](crate::Kernel::executor_name) gives its text.
    pub id: ExecutorId,
    /// The cores that it takes.
    pub cores: MilliCpus,
    /// The cores that it is told: those that it takes and the extra cores.
    pub advertised_cores: MilliCpus,
    /// The memory that it takes, overhead included.
    pub memory: Mebibytes,
    /// The memory that it is told, without the overhead.
    pub advertised_memory: Mebibytes,
    /// The GPUs that it takes.
    pub gpus: Gpus,
    /// The port that it takes, if the config has a fixed one.
    pub port: Option<u16>,
    pub(crate) pieces: (u32, u32),
}

impl Placed {
    pub(crate) const NONE: Placed = Placed {
        id: ExecutorId { sequence: 0, slot: 0 },
        cores: MilliCpus::ZERO,
        advertised_cores: MilliCpus::ZERO,
        memory: Mebibytes::ZERO,
        advertised_memory: Mebibytes::ZERO,
        gpus: Gpus::ZERO,
        port: None,
        pieces: (0, 0),
    };

    pub(crate) fn new(id: ExecutorId, cores: MilliCpus, gpus: Gpus, config: &Config) -> Placed {
        Placed {
            id,
            cores,
            advertised_cores: MilliCpus::from_millis(cores.millis() + config.extra_cores.millis()),
            memory: config.memory_taken(),
            advertised_memory: config.executor_memory,
            gpus,
            port: config.fixed_port,
            pieces: (0, 0),
        }
    }

    /// Carves what the executor takes.
    pub(crate) fn carve(&self, carver: &mut ResourceCarver<'_>, pieces: &mut Vec<Piece>) {
        let (memory, gpus) = (self.memory.get() * 1000, u64::from(self.gpus.get()) * 1000);
        carver.carve(self.cores.millis(), memory, gpus, self.port, pieces);
    }
}

/// A piece of an offered resource. Its role and reservation are those of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Position of the offer in the batch.
    pub offer: u32,
    /// Position of the resource in the offer.
    pub resource: u32,
    /// How much is taken.
    pub amount: Amount,
}

/// How much is taken of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A quantity.
    Scalar(Scalar),
    /// One port.
    Port(u16),
}

/// An offer that is declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decline {
    /// Position of the offer in the batch.
    pub offer: u32,
    /// Why it is declined.
    pub reason: Reason,
    /// How long to refuse the agent's resources.
    pub refuse: Duration,
}

/// Why an offer is declined, in numbers: what was asked for and what was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Another thread used or removed the agent between plan and commit. Its next offer is considered again.
    Raced,
    /// Executors are wanted on other hosts, or the agent's host has an executor or gets one in the same batch.
    Locality {
        /// When the wait ends.
        until: Timestamp,
    },
}

/// The kinds of [`Reason`], for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// See [`Reason::Raced`].
    Raced,
    /// See [`Reason::Locality`].
    Locality,
}

impl ReasonKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [ReasonKind; 18] = [
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
        ReasonKind::Raced,
        ReasonKind::Locality,
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
            ReasonKind::Raced => "raced",
            ReasonKind::Locality => "other hosts wanted",
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
            Reason::Raced => ReasonKind::Raced,
            Reason::Locality { .. } => ReasonKind::Locality,
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::ConstraintUnmet(unmet) => write!(f, "constraint unmet: {}", unmet.mismatch),
            Reason::ExecutorLimit { limit } => write!(f, "limit of {limit} executors reached"),
            Reason::CoreCap { cap, acquired, asked } => {
                write!(f, "core cap reached: {acquired} of {cap} cores taken, {asked} asked")
            }
            Reason::GpuCap { cap, acquired, asked } => {
                write!(f, "GPU cap reached: {acquired} of {cap} GPUs taken, {asked} asked")
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
            Reason::Cpus { asked, offered } => write!(f, "{offered} of {asked} cores"),
            Reason::Memory { asked, offered } => {
                write!(f, "memory {} of {} MiB", offered.get(), asked.get())
            }
            Reason::Gpus { asked, offered } => write!(f, "{offered} of {asked} GPUs"),
            Reason::Port { port } => write!(f, "port {port} is not offered"),
            Reason::Locality { until } => write!(f, "other hosts are wanted until {until}"),
            other => f.write_str(other.kind().as_str()),
        }
    }
}
