//! [`LeastNeeds`]: what the tasks of a set need at least, which says whether any of them fits into a room.

use crate::kernel::state::offered_amounts::ResourceSums;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// How many minima are kept. Of more, the two that are most alike become one.
const LEAST_MAX: usize = 16;

/// The minima of what the tasks of a set need: each task needs as much as one of them or more, of each kind. So if none
/// of them fits into a room, no task of the set does.
///
/// If nothing is [merged](LeastNeeds::is_merged), each of them is what a task needs, and what fits into a room is a
/// task. Tasks that take no cores are left out, since no room takes them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastNeeds {
    /// By GPUs, then by cores, then by memory.
    list: [ResourceSums; LEAST_MAX],
    len: usize,
    is_merged: bool,
}

impl LeastNeeds {
    /// Those of no task.
    pub(super) const NONE: LeastNeeds =
        LeastNeeds { list: [ResourceSums::NONE; LEAST_MAX], len: 0, is_merged: false };

    /// The minima.
    pub(super) fn list(&self) -> &[ResourceSums] {
        &self.list[..self.len]
    }

    /// Whether some of them were more than are kept, so that one may be less than any task needs.
    pub(super) fn is_merged(&self) -> bool {
        self.is_merged
    }

    /// Adds what a task needs.
    pub(super) fn add(&mut self, needs: ResourceSums) {
        if needs.cores == MilliCpus::ZERO || self.list().iter().any(|it| it.fits_in(needs)) {
            return;
        }
        let mut kept = 0;
        for at in 0..self.len {
            if !needs.fits_in(self.list[at]) {
                self.list[kept] = self.list[at];
                kept += 1;
            }
        }
        self.len = kept;
        self.is_merged &= kept > 0;
        let at = self.list().partition_point(|it| order(it) < order(&needs));
        if self.len == LEAST_MAX {
            return self.add_and_merge(at, needs);
        }
        self.list.copy_within(at..self.len, at + 1);
        self.list[at] = needs;
        self.len += 1;
    }

    /// Adds one more than are kept at this position, and has the two neighbours that are most alike become one.
    fn add_and_merge(&mut self, at: usize, needs: ResourceSums) {
        let mut all = [needs; LEAST_MAX + 1];
        all[..at].copy_from_slice(&self.list[..at]);
        all[at + 1..].copy_from_slice(&self.list[at..]);
        let difference_of = |at: &usize| difference(all[*at], all[at + 1]);
        let first = (0..LEAST_MAX).min_by_key(difference_of).unwrap_or(0);
        self.list[..first].copy_from_slice(&all[..first]);
        self.list[first..LEAST_MAX - 1].copy_from_slice(&all[first + 2..]);
        self.len = LEAST_MAX - 1;
        self.add(all[first].min_of_each(all[first + 1]));
        self.is_merged = true;
    }

    /// Adds those of another set.
    pub(super) fn add_all(&mut self, other: &LeastNeeds) {
        other.list().iter().for_each(|needs| self.add(*needs));
        self.is_merged |= other.is_merged;
    }

    /// Whether those of a set that this one has as a part may be others, after those of the part were `before` and are
    /// `after`: not if what was less in the part is more than others need.
    pub(super) fn depend_on(&self, before: &LeastNeeds, after: &LeastNeeds) -> bool {
        if before.list() == after.list() && before.is_merged == after.is_merged {
            return false;
        }
        let is_gone = |needs: &&ResourceSums| !after.list().contains(needs);
        self.is_merged
            || before.is_merged
            || after.is_merged
            || before.list().iter().filter(is_gone).any(|needs| self.list().contains(needs))
    }
}

fn order(needs: &ResourceSums) -> (Gpus, MilliCpus, Mebibytes) {
    (needs.gpus, needs.cores, needs.memory)
}

/// How unlike two are: of each kind the part by which the larger one is larger, about in 1024ths.
fn difference(one: ResourceSums, other: ResourceSums) -> u64 {
    let part = |one: u64, other: u64| one.abs_diff(other) / (one.max(other) / 1024 + 1);
    part(one.cores.millis(), other.cores.millis())
        + part(one.memory.get(), other.memory.get())
        + part(u64::from(one.gpus.get()) << 10, u64::from(other.gpus.get()) << 10)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn needs((cores, memory, gpus): (u64, u64, u32)) -> ResourceSums {
        ResourceSums {
            cores: MilliCpus::from_millis(cores),
            memory: Mebibytes::new(memory),
            gpus: Gpus::new(gpus),
        }
    }

    /// Goal: what needs no less than another is left out, whichever comes first, and so is what takes no cores. Method:
    /// a few in both orders.
    #[test]
    fn minima_alone_are_kept() {
        let all = [(4, 1, 0), (1, 4, 0), (4, 4, 0), (4, 1, 1), (1, 4, 0), (0, 0, 0), (2, 2, 0)];
        for reversed in [false, true] {
            let mut least = LeastNeeds::NONE;
            let mut all = all.map(needs);
            if reversed {
                all.reverse();
            }
            all.into_iter().for_each(|it| least.add(it));
            assert_eq!(least.list(), [(1, 4, 0), (2, 2, 0), (4, 1, 0)].map(needs));
            assert!(!least.is_merged());
        }
    }

    /// Goal: of more minima than are kept, the most alike become one, and none is lost sight of. Method: one more of
    /// them, of which two differ by little; then a thousand, also with the largest amounts.
    #[test]
    fn the_most_alike_become_one() {
        let mut least = LeastNeeds::NONE;
        let far = (0..LEAST_MAX).map(|at| needs((1 << at, 1 << (40 - at), 0)));
        far.clone().chain([needs((33, (1 << 35) - 1, 0))]).for_each(|it| least.add(it));
        let mut expected: Vec<ResourceSums> = far.collect();
        expected[5] = needs((32, (1 << 35) - 1, 0));
        assert_eq!(least.list(), expected);
        assert!(least.is_merged());

        let mut least = LeastNeeds::NONE;
        let many = (1..1000).map(|it| needs((it, u64::MAX / it, u32::MAX / it as u32)));
        for one in many.clone() {
            least.add(one);
        }
        assert!(many.clone().all(|one| least.list().iter().any(|it| it.fits_in(one))));
    }
}
