//! Amounts of cores, memory and GPUs that agents offer.

use std::fmt;

use crate::offer::{Offer, ResourceKind};
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};

/// Amounts of cores, memory and GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ResourceSums {
    /// Cores.
    pub cores: MilliCpus,
    /// Memory.
    pub memory: Mebibytes,
    /// GPUs.
    pub gpus: Gpus,
}

impl From<ExecutorResources> for ResourceSums {
    fn from(resources: ExecutorResources) -> ResourceSums {
        let ExecutorResources { cores, memory, gpus, .. } = resources;
        ResourceSums { cores, memory, gpus }
    }
}

impl fmt::Display for ResourceSums {
    /// Prints the amounts that aren't zero, as `2 cores, 512 MiB and 1 GPU` or `0.5 cores`; `nothing` if all are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResourceSums { cores, memory, gpus } = *self;
        let cores = (cores != MilliCpus::ZERO).then(|| format!("{cores:#}"));
        let memory = (memory != Mebibytes::ZERO).then(|| memory.to_string());
        let gpus = (gpus != Gpus::ZERO).then(|| format!("{gpus:#}"));
        let amounts: Vec<String> = [cores, memory, gpus].into_iter().flatten().collect();
        match &amounts[..] {
            [] => f.write_str("nothing"),
            [one] => f.write_str(one),
            [all @ .., last] => write!(f, "{} and {last}", all.join(", ")),
        }
    }
}

impl ResourceSums {
    /// Nothing.
    pub const NONE: ResourceSums =
        ResourceSums { cores: MilliCpus::ZERO, memory: Mebibytes::ZERO, gpus: Gpus::ZERO };

    /// All that an offer has, whatever its role, without fractions of a MiB and of a GPU.
    pub(crate) fn of(offer: &Offer<'_>) -> ResourceSums {
        let mut all = Thousandths::default();
        for resource in offer.resources {
            let amount = resource.quantity();
            all.add(Thousandths(match resource.kind {
                ResourceKind::Cpus => [amount, 0, 0],
                ResourceKind::Memory => [0, amount, 0],
                ResourceKind::Gpus => [0, 0, amount],
                ResourceKind::Ports | ResourceKind::Other => continue,
            }));
        }
        all.rounded_down()
    }

    fn each(
        self,
        other: ResourceSums,
        of: impl Fn(u64, u64) -> u64,
        of_gpus: impl Fn(u32, u32) -> u32,
    ) -> ResourceSums {
        ResourceSums {
            cores: MilliCpus::from_millis(of(self.cores.millis(), other.cores.millis())),
            memory: Mebibytes::new(of(self.memory.get(), other.memory.get())),
            gpus: Gpus::new(of_gpus(self.gpus.get(), other.gpus.get())),
        }
    }

    /// Returns the sum. A sum that is too large for its unit is the largest value of it.
    #[must_use]
    pub fn saturating_add(self, other: ResourceSums) -> ResourceSums {
        self.each(other, u64::saturating_add, u32::saturating_add)
    }

    /// Returns the difference; where `other` is larger, zero.
    #[must_use]
    pub fn saturating_sub(self, other: ResourceSums) -> ResourceSums {
        self.each(other, u64::saturating_sub, u32::saturating_sub)
    }

    /// Returns how many times these amounts fit into `left`; [`u64::MAX`] if all of them are zero.
    #[must_use]
    pub fn times_in(self, left: ResourceSums) -> u64 {
        let by = |left: u64, taken: u64| left.checked_div(taken).unwrap_or(u64::MAX);
        by(left.cores.millis(), self.cores.millis())
            .min(by(left.memory.get(), self.memory.get()))
            .min(by(left.gpus.get().into(), self.gpus.get().into()))
    }

    /// Returns the larger of both for each kind.
    #[must_use]
    pub fn max_of_each(self, other: ResourceSums) -> ResourceSums {
        self.each(other, u64::max, u32::max)
    }

    /// Returns the smaller of both for each kind.
    #[must_use]
    pub(crate) fn min_of_each(self, other: ResourceSums) -> ResourceSums {
        self.each(other, u64::min, u32::min)
    }

    /// Whether `left` has as much of each kind.
    #[inline]
    pub(crate) fn fits_in(self, left: ResourceSums) -> bool {
        self.cores <= left.cores && self.memory <= left.memory && self.gpus <= left.gpus
    }

    /// Returns `times` these amounts, saturating.
    pub(crate) fn times(self, times: u32) -> ResourceSums {
        let times = ResourceSums {
            cores: MilliCpus::from_millis(times.into()),
            memory: Mebibytes::new(times.into()),
            gpus: Gpus::new(times),
        };
        self.each(times, u64::saturating_mul, u32::saturating_mul)
    }
}

/// Amounts of cores, memory and GPUs in thousandths of their units, so that fractions add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thousandths(pub(crate) [u64; 3]);

impl Thousandths {
    pub(crate) fn add(&mut self, more: Thousandths) {
        for (sum, more) in self.0.iter_mut().zip(more.0) {
            *sum = sum.saturating_add(more);
        }
    }

    /// The amounts, without fractions of a MiB and of a GPU.
    pub(crate) fn rounded_down(self) -> ResourceSums {
        let [cpus, memory, gpus] = self.0;
        ResourceSums {
            cores: MilliCpus::from_millis(cpus),
            memory: Mebibytes::new(memory / 1000),
            gpus: Gpus::new(u32::try_from(gpus / 1000).unwrap_or(u32::MAX)),
        }
    }
}

/// What was offered to one role, by the kinds that are shown apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferedAmounts {
    /// Reserved for the role or an ancestor of it.
    pub(crate) reserved: Thousandths,
    pub(crate) unreserved: Thousandths,
    pub(crate) revocable: Thousandths,
}

/// Which of [`OfferedAmounts`] there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AmountKind {
    /// Unreserved ones alone, or none.
    #[default]
    Unreserved,
    Reserved,
    Revocable,
    Several,
}

impl OfferedAmounts {
    pub(crate) fn kind(&self) -> AmountKind {
        let OfferedAmounts { reserved, unreserved, revocable } = self;
        match [reserved, unreserved, revocable].map(|amounts| *amounts != Thousandths::default()) {
            [false, _, false] => AmountKind::Unreserved,
            [true, false, false] => AmountKind::Reserved,
            [false, false, true] => AmountKind::Revocable,
            _ => AmountKind::Several,
        }
    }

    /// All of them together, without fractions of a MiB and of a GPU.
    pub(crate) fn sum(&self) -> ResourceSums {
        let mut sum = self.unreserved;
        [self.reserved, self.revocable].into_iter().for_each(|more| sum.add(more));
        sum.rounded_down()
    }

    pub(crate) fn add(&mut self, more: OfferedAmounts) {
        self.reserved.add(more.reserved);
        self.unreserved.add(more.unreserved);
        self.revocable.add(more.revocable);
    }
}
