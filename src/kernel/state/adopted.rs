//! The names of adopted executors. This kernel didn't make them, so a table maps them to cells.
//!
//! The table is made once and never changes. If an executor has ended, its name leads to a cell that has another
//! sequence number.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | [`Kernel::adopt`](crate::kernel::Kernel::adopt) | `claimed`: swap | Relaxed | nothing: one thread finds it unclaimed and continues |
//! | the thread that claimed it | numbers the executors, sets the range of the numbers and the table of names, then fills their cells | std's `OnceLock` | a thread that finds an executor in its cell finds its name |
//! | the thread that claimed it | sets `left_out`, after the others are in their cells | std's `OnceLock` | a lookup of a name |

use std::collections::HashMap;

use crate::ids::ExecutorId;
use crate::sync::{AtomicU32, OnceLock, Ordering, UntrackedOnceLock};

/// The names of adopted executors.
#[derive(Debug)]
pub(crate) struct Adopted {
    /// Whether an adoption was made or is in progress.
    claimed: AtomicU32,
    names: OnceLock<AdoptedNames>,
    /// The smallest and the largest sequence number in the table, if it isn't empty. Each update reads it.
    numbers: UntrackedOnceLock<(u64, u64)>,
    /// The sequence numbers of executors in the table that were not adopted, sorted.
    left_out: OnceLock<Vec<u64>>,
}

/// The table of names.
#[derive(Debug, Default)]
pub(crate) struct AdoptedNames {
    by_name: HashMap<Box<str>, ExecutorId>,
    /// Sorted by sequence number.
    names: Vec<(u64, Box<str>)>,
}

impl AdoptedNames {
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Adds a name.
    pub(crate) fn insert(&mut self, name: &str, id: ExecutorId) {
        self.by_name.insert(name.into(), id);
        self.names.push((id.sequence, name.into()));
    }
}

impl Adopted {
    pub(crate) fn new() -> Adopted {
        Adopted {
            claimed: AtomicU32::new(0),
            names: OnceLock::new(),
            numbers: UntrackedOnceLock::new(),
            left_out: OnceLock::new(),
        }
    }

    /// Returns whether the caller is the first.
    pub(crate) fn claim(&self) -> bool {
        self.claimed.swap(1, Ordering::Relaxed) == 0
    }

    /// Publishes the table. Called once, by the thread that claimed the adoption.
    pub(crate) fn set_names(&self, mut names: AdoptedNames) {
        names.names.sort_unstable();
        if let (Some((first, _)), Some((last, _))) = (names.names.first(), names.names.last()) {
            let range = (*first, *last);
            self.numbers.get_or_init(|| range);
        }
        self.names.get_or_init(|| names);
    }

    /// Publishes the sequence numbers of executors that were not adopted, sorted.
    pub(crate) fn set_left_out(&self, left_out: Vec<u64>) {
        self.left_out.get_or_init(|| left_out);
    }

    /// Whether the adoption used up this sequence number, so that no id of the kernel's own scheme has it.
    #[inline]
    pub(crate) fn has_number(&self, sequence: u64) -> bool {
        match self.numbers.get() {
            None => false,
            Some(range) => self.is_in(range, sequence),
        }
    }

    #[cold]
    fn is_in(&self, (first, last): &(u64, u64), sequence: u64) -> bool {
        (*first..=*last).contains(&sequence) && self.name_of(sequence).is_some()
    }

    #[inline(never)]
    pub(crate) fn find(&self, name: &str) -> Option<ExecutorId> {
        let id = self.names.get()?.by_name.get(name).copied()?;
        let is_left_out = |left_out: &Vec<u64>| left_out.binary_search(&id.sequence).is_ok();
        if self.left_out.get().is_some_and(is_left_out) { None } else { Some(id) }
    }

    pub(crate) fn name(&self, id: ExecutorId) -> Option<&str> {
        self.name_of(id.sequence)
    }

    fn name_of(&self, sequence: u64) -> Option<&str> {
        let names = &self.names.get()?.names;
        let at = names.binary_search_by_key(&sequence, |(sequence, _)| *sequence).ok()?;
        names.get(at).map(|(_, name)| &**name)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: an adoption used up the numbers in its table, and no others. Method: a table with gaps, the numbers in
    /// them and around them; no table, and an empty one.
    #[test]
    fn gaps_are_not_used_up() {
        let adopted = Adopted::new();
        let used =
            |adopted: &Adopted| (0..10).filter(|it| adopted.has_number(*it)).collect::<Vec<_>>();
        assert!(used(&adopted).is_empty());
        let mut names = AdoptedNames::default();
        for (sequence, slot) in [(7, 0), (2, 1), (4, 2), (5, 3)] {
            names.insert(&format!("task-{sequence}"), ExecutorId { sequence, slot });
        }
        adopted.set_names(names);
        assert_eq!(used(&adopted), [2, 4, 5, 7]);
        let empty = Adopted::new();
        empty.set_names(AdoptedNames::default());
        assert!(used(&empty).is_empty());
    }
}
