//! Collects all executors, for snapshots and pictures of the capacity.
//!
//! The executors are collected twice, and the admission word is loaded in between. If both collections are equal and
//! add up to the word, the word and all cells had these values together at the time of the load. No handler waits for a
//! collection, and a collection waits for no handler.
//!
//! What a report reads of agents, it reads between the two collections as well: an executor that is in both held its
//! agent in between, so the agent was not forgotten and its cell not reused. If no two collections are equal, the
//! executors that are gone in the second one are left out, and the same holds for the others.

use super::executor_row::Row;
use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::state::admission::AdmissionState;
use crate::sync::{Ordering, fence};

/// All executors.
pub(super) struct Collection {
    pub(super) rows: Vec<Row>,
    pub(super) admission: AdmissionState,
    /// Whether the rows are of the instant of the admission word. If not, each is as it was at some moment.
    pub(super) exact: bool,
}

impl Core {
    /// Collects all executors until the collection is exact, but at most `tries` times. Calls `between` each time, with
    /// the rows of the first of the two collections, to read what belongs to them.
    /// `rows` is memory that is used again.
    pub(super) fn collect_exactly(
        &self,
        mut rows: Vec<Row>,
        tries: usize,
        mut between: impl FnMut(&[Row]),
    ) -> Collection {
        let mut admission = self.admission.load();
        rows.clear();
        rows.reserve(admission.executors() as usize);
        let mut exact = false;
        for _ in 0..tries {
            self.collect(&mut rows);
            between(&rows);
            // Acquire: pairs with the fence in `ExecutorCell::before_reserving`. If an allocation was read that belongs
            // to a cell's next executor, the states read below show that the former one has ended.
            fence(Ordering::Acquire);
            admission = self.admission.load();
            exact = adds_up(&rows, admission) && self.unchanged(&rows);
            if exact {
                break;
            }
        }
        if !exact {
            rows.retain(|(id, ..)| self.is_live(*id));
        }
        Collection { rows, admission, exact }
    }

    fn collect(&self, rows: &mut Vec<Row>) {
        rows.clear();
        let live = self.live();
        rows.extend(
            live.map(|(id, executor, state)| {
                (id, state, executor.allocation(), executor.launched())
            }),
        );
    }

    /// Whether the cells still are as in `rows` and no other executor is live.
    fn unchanged(&self, rows: &[Row]) -> bool {
        self.live().map(|(id, _, state)| (id, state)).eq(rows.iter().map(|row| (row.0, row.1)))
    }

    fn is_live(&self, id: ExecutorId) -> bool {
        self.executors.get(id.slot).is_some_and(|executor| {
            let state = executor.state();
            state.sequence == id.sequence && state.stage.live()
        })
    }
}

fn adds_up(rows: &[Row], admission: AdmissionState) -> bool {
    let counted = rows.iter().filter(|row| row.1.stage.counted());
    let (executors, cores) = counted.fold((0u32, 0u64), |(executors, cores), row| {
        (executors + 1, cores + row.2.resources.cores.millis())
    });
    executors == admission.executors() && cores == admission.cores().millis()
}
