//! [`Room`]: what is left of one candidate's offers, for tasks.

use crate::kernel::offers::candidates::{Candidate, ScalarSums};
use crate::kernel::offers::eligibility::{Supply, TaskSupplies};
use crate::kernel::offers::tasks::picks::Task;
use crate::kernel::reason::Reason;
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::limits::{EXECUTOR_CORES_MAX, EXECUTOR_MEMORY_MAX};
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// What is left of the offers of one agent and role, for tasks. Plain data: a copy may be changed to try things out.
///
/// ```
/// use offermill::resources::{Mebibytes, MilliCpus};
/// use offermill::{Reason, ResourceSums, Room, Task};
///
/// let left = ResourceSums {
///     cores: MilliCpus::from_cores(2),
///     memory: Mebibytes::new(1024),
///     ..ResourceSums::NONE
/// };
/// let mut room = Room::new(0, left, 10);
/// let task = Task::new(1, MilliCpus::from_millis(1500), Mebibytes::new(512));
/// assert_eq!(room.take(&task), Ok(()));
/// assert_eq!((room.left().cores.millis(), room.left().memory.get(), room.tasks()), (500, 512, 9));
/// assert_eq!(room.take(&task).unwrap_err().to_string(), "0.5 of 1.5 cores");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    firm: ResourceSums,
    revocable: ResourceSums,
    /// The first of its offers.
    offer: u32,
    pub(super) candidate: u32,
    tasks: u32,
    failed_lately: bool,
}

impl Room {
    /// Creates a room with these amounts, none of them revocable, for up to `tasks` tasks, from the offer at position
    /// `offer` of a batch: for tests of what chooses.
    #[must_use]
    pub const fn new(offer: u32, left: ResourceSums, tasks: u32) -> Room {
        Room {
            firm: left,
            revocable: ResourceSums::NONE,
            offer,
            candidate: offer,
            tasks,
            failed_lately: false,
        }
    }

    /// The room of a candidate at this position, for up to `tasks` tasks.
    pub(super) fn of(candidate: &Candidate, position: u32, tasks: u32, failed: bool) -> Room {
        Room {
            firm: amounts(&candidate.firm),
            revocable: amounts(&candidate.revocable),
            offer: candidate.first,
            candidate: position,
            tasks,
            failed_lately: failed,
        }
    }

    /// Position in the batch of the first of its offers, which names agent, host and attributes.
    #[must_use]
    pub const fn offer(&self) -> u32 {
        self.offer
    }

    /// The number of further tasks that the agent takes, whatever their sizes.
    #[must_use]
    pub const fn tasks(&self) -> u32 {
        self.tasks
    }

    /// The most of each kind that one task can take: of revocable and non-revocable resources the larger sum, since no
    /// task may have both. Cores are exact, in thousandths; memory and GPUs are rounded down.
    #[must_use]
    pub fn left(&self) -> ResourceSums {
        self.firm.max_of_each(self.revocable)
    }

    /// Whether a task or executor failed on the agent lately, and
    /// [replacements should start elsewhere](crate::config::Compatibility::replace_elsewhere).
    #[must_use]
    pub const fn failed_lately(&self) -> bool {
        self.failed_lately
    }

    /// Whether [`Room::take`] would succeed.
    #[must_use]
    pub fn fits(&self, task: &Task) -> bool {
        let mut copy = *self;
        copy.take(task).is_ok()
    }

    /// Takes what `task` needs: each kind from non-revocable resources or, if these don't suffice, from revocable ones.
    ///
    /// # Errors
    /// Fails if it doesn't fit, with what was asked and what is left, or if the task takes no cores
    /// ([`Reason::Malformed`]). Then nothing changes.
    pub fn take(&mut self, task: &Task) -> Result<(), Reason> {
        self.take_from(task).map(|_| ())
    }

    /// [`Room::take`], with the supplies that were used. Always inlined: choosers and commits call it for each task.
    #[inline(always)]
    pub(super) fn take_from(&mut self, task: &Task) -> Result<TaskSupplies, Reason> {
        if task.cores == MilliCpus::ZERO {
            return Err(Reason::Malformed);
        }
        if self.tasks == 0 {
            return Err(Reason::AgentFull);
        }
        let firm = &mut self.firm;
        let is_firm =
            task.cores <= firm.cores && task.memory <= firm.memory && task.gpus <= firm.gpus;
        if !is_firm {
            return self.take_revocable(task);
        }
        *firm = firm.saturating_sub(task.sums());
        self.tasks -= 1;
        Ok(TaskSupplies::FIRM)
    }

    /// The same for a task that doesn't fit into what isn't revocable.
    #[inline(never)]
    fn take_revocable(&mut self, task: &Task) -> Result<TaskSupplies, Reason> {
        let left = self.left();
        let (firm, revocable) = (&self.firm, &self.revocable);
        let asked = task.cores;
        let cores = supply(firm.cores, revocable.cores, asked)
            .ok_or(Reason::Cpus { asked, offered: left.cores })?;
        let asked = task.memory;
        let memory = supply(firm.memory, revocable.memory, asked)
            .ok_or(Reason::Memory { asked, offered: left.memory })?;
        let asked = task.gpus;
        let gpus = supply(firm.gpus, revocable.gpus, asked)
            .ok_or(Reason::Gpus { asked, offered: left.gpus })?;
        let part = |supply| ResourceSums {
            cores: if cores == supply { task.cores } else { MilliCpus::ZERO },
            memory: if memory == supply { task.memory } else { Mebibytes::ZERO },
            gpus: if gpus == supply { task.gpus } else { Gpus::ZERO },
        };
        self.firm = self.firm.saturating_sub(part(Supply::NonRevocable));
        self.revocable = self.revocable.saturating_sub(part(Supply::Revocable));
        self.tasks -= 1;
        Ok(TaskSupplies::new([cores, memory, gpus]))
    }
}

/// The supply that an amount is taken from, if one has as much.
#[inline]
fn supply<T: PartialOrd>(firm: T, revocable: T, asked: T) -> Option<Supply> {
    if asked <= firm {
        Some(Supply::NonRevocable)
    } else {
        (asked <= revocable).then_some(Supply::Revocable)
    }
}

fn amounts(sums: &ScalarSums) -> ResourceSums {
    ResourceSums {
        cores: MilliCpus::from_millis(sums.cpus).min(EXECUTOR_CORES_MAX),
        memory: Mebibytes::new(sums.memory / 1000).min(EXECUTOR_MEMORY_MAX),
        gpus: Gpus::new(u32::try_from(sums.gpus / 1000).unwrap_or(u32::MAX)),
    }
}
