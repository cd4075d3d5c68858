//! [`Decisions`]: the answer to a batch of offers, as accepts with placed executors and declines with reasons.
//!
//! The rows live in reused memory and refer to offers by their position in the batch, so that nothing is copied from an
//! offer.

use std::time::Duration;

use super::piece::Piece;
use super::remainder::Remainder;
use super::reused_rows::ReusedRows;
use crate::config::Config;
use crate::ids::ExecutorId;
use crate::kernel::offers::tasks::picks::{Task, Unplaced};
use crate::kernel::reason::Decline;
use crate::offer::Offer;
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};

/// The answer to a batch of offers. Each offer is among the offers of one accept or among the declines, exactly once.
///
/// Create one per thread and pass it to every batch: its memory is reused.
///
/// ```
/// # use offermill::config::ExecutorCores;
/// # use offermill::resources::{Mebibytes, MilliCpus};
/// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp};
/// # let config = Config::builder()
/// #     .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(3)))
/// #     .executor_memory(Mebibytes::new(1024))
/// #     .memory_overhead(Some(Mebibytes::new(0)))
/// #     .build()?;
/// # let kernel = Kernel::new(config, IdScheme::plain());
/// let unreserved = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 8192.0)];
/// let reserved = [Resource::scalar("cpus", 1.0).reserved_for("etl")];
/// let offers = [
///     Offer::new("O1", "S1", "host-1", &reserved, &[]).with_role("etl"),
///     Offer::new("O2", "S2", "host-2", &unreserved[1..], &[]).with_role("etl"),
///     Offer::new("O3", "S1", "host-1", &unreserved, &[]).with_role("etl"),
/// ];
/// let mut decisions = Decisions::new();
/// kernel.handler().resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
///
/// // One ACCEPT for each of these. Offers of one agent are used together.
/// let accepted = decisions.accepts().next().unwrap();
/// assert_eq!(accepted.offers, [0, 2]);
/// let pieces = accepted.pieces(&accepted.executors[0]);
/// let cores = |offer| pieces.iter().find(|piece| piece.offer == offer && piece.resource == 0);
/// println!("{:?} of O1, {:?} of O3", cores(0), cores(2)); // the reserved core first, then two others
/// # assert!(cores(0).is_some() && cores(2).is_some());
///
/// // One DECLINE for each of these.
/// let decline = &decisions.declines()[0];
/// assert_eq!(offers[decline.offer as usize].id, "O2");
/// assert_eq!(decline.reason.to_string(), "0 of 3 cores");
/// assert_eq!(decline.refuse.as_secs(), 5);
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Decisions {
    pub(crate) accepts: Vec<AcceptRow>,
    pub(crate) accepted: Vec<u32>,
    pub(crate) placed: ReusedRows<Placed>,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) declines: Vec<Decline>,
    /// The tags of what was placed, if it was placed as tasks; otherwise empty.
    pub(crate) tags: ReusedRows<u64>,
    pub(crate) unplaced: Vec<Unplaced>,
    pub(crate) leftover_refuse: Duration,
    /// Whether an offer was refused at a cap.
    pub(crate) at_cap: bool,
    /// Whether a queue had no room for what was asked.
    pub(crate) at_queue: bool,
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
            tags: slice(&self.tags, row.placed),
        })
    }

    /// The declines.
    #[must_use]
    pub fn declines(&self) -> &[Decline] {
        &self.declines
    }

    /// The picks that [`Rooms::commit`](crate::Rooms::commit) didn't place, in their order, each with the reason.
    #[must_use]
    pub fn unplaced(&self) -> &[Unplaced] {
        &self.unplaced
    }

    /// The number of executors placed, tasks included.
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
        self.tags.clear();
        self.unplaced.clear();
        self.at_cap = false;
        self.at_queue = false;
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
    tags: &'d [u64],
}

impl<'d> Accepted<'d> {
    /// Returns the pieces that `executor`, one of [`Accepted::executors`], takes: cores, memory, GPUs, port. Each kind
    /// comes from non-revocable resources or, if those don't suffice, from revocable ones, never from both. Reserved
    /// resources are used before unreserved ones, in the order of the offers.
    #[must_use]
    pub fn pieces(&self, executor: &Placed) -> &'d [Piece] {
        slice(self.pieces, executor.pieces)
    }

    /// The tags of the executors and the executors, if they are [tasks](crate::Task); otherwise nothing.
    pub fn tasks(&self) -> impl ExactSizeIterator<Item = (u64, &'d Placed)> + use<'d> {
        self.tags.iter().copied().zip(self.executors)
    }

    /// The tag of the executor at this position, if it is a task.
    pub(crate) fn tag(&self, position: usize) -> Option<u64> {
        self.tags.get(position).copied()
    }

    /// Returns what the executors leave of the offers. The cluster treats the rest as declined.
    ///
    /// `batch` must be the batch that was answered: pieces name offers and resources by their positions in it. With
    /// another batch the result means nothing, but the call doesn't fail: pieces that the batch doesn't have are
    /// ignored.
    #[must_use]
    pub fn left<'a>(&self, batch: &'a [Offer<'a>]) -> Remainder<'a> {
        let mut remainder = Remainder::of(batch, self.offers.iter().copied());
        for piece in self.executors.iter().flat_map(|executor| self.pieces(executor)) {
            // It fails only if `batch` is not the batch that was answered.
            let _ = remainder.subtract(piece);
        }
        remainder
    }
}

/// One executor.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// Its id; [`Kernel::executor_name`](crate::Kernel::executor_name) gives its text.
    pub id: ExecutorId,
    /// The resources that it takes.
    pub resources: ExecutorResources,
    /// The cores advertised to it: those that it takes and the extra cores.
    pub advertised_cores: MilliCpus,
    /// The memory advertised to it, without the overhead.
    pub advertised_memory: Mebibytes,
    pub(crate) pieces: (u32, u32),
}

impl Placed {
    pub(crate) const NONE: Placed = Placed {
        id: ExecutorId { sequence: 0, slot: 0 },
        resources: ExecutorResources::NONE,
        advertised_cores: MilliCpus::ZERO,
        advertised_memory: Mebibytes::ZERO,
        pieces: (0, 0),
    };

    pub(crate) fn new(id: ExecutorId, cores: MilliCpus, gpus: Gpus, config: &Config) -> Placed {
        Placed {
            id,
            resources: ExecutorResources {
                cores,
                memory: config.memory_taken(),
                gpus,
                port: config.fixed_port,
            },
            advertised_cores: MilliCpus::from_millis(cores.millis() + config.extra_cores.millis()),
            advertised_memory: config.executor_memory,
            pieces: (0, 0),
        }
    }

    /// An executor that is a task: it is advertised what it takes.
    pub(crate) fn task(id: ExecutorId, task: &Task) -> Placed {
        let Task { cores, memory, gpus, .. } = *task;
        Placed {
            id,
            resources: ExecutorResources { cores, memory, gpus, port: None },
            advertised_cores: cores,
            advertised_memory: memory,
            pieces: (0, 0),
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: each executor's tag is that of its position. Method: an accept with two tasks, and one without.
    #[test]
    fn tags_are_found_by_position() {
        let executors = [Placed::NONE; 2];
        let accepted = |tags| Accepted {
            offers: &[0],
            executors: &executors,
            refuse: Duration::ZERO,
            pieces: &[],
            tags,
        };
        assert_eq!([0, 1, 2].map(|at| accepted(&[7, 9]).tag(at)), [Some(7), Some(9), None]);
        assert_eq!(accepted(&[]).tag(0), None);
    }
}
