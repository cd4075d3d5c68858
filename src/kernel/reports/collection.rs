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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::ExecutorCores;
    use crate::kernel::state::admission::Admission;
    use crate::resources::MilliCpus;
    use crate::time::Timestamp;
    use crate::{Config, Decisions, IdScheme, Kernel, Offer, Resource, StatusUpdate, TaskState};

    const NOW: Timestamp = Timestamp::ORIGIN;

    /// Places an executor with this number of cores.
    fn place(kernel: &Kernel, cores: f64) {
        let resources = [Resource::scalar("cpus", cores), Resource::scalar("mem", 2000.0)];
        let offers = [Offer::new("o", "S1", "host", &resources, &[])];
        let mut decisions = Decisions::new();
        kernel.handler().resource_offers(&offers, NOW, &mut decisions);
        assert_eq!(decisions.executors(), 1);
    }

    fn end(kernel: &Kernel, id: &str) {
        kernel.status_update(&StatusUpdate::new(id, TaskState::Finished), NOW);
    }

    /// A kernel with executors 0 and 1 of one core and of two.
    fn kernel() -> Kernel {
        let config = Config::builder().executor_cores(ExecutorCores::WholeOffer).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        place(&kernel, 1.0);
        place(&kernel, 2.0);
        kernel
    }

    /// The numbers of the executors that were collected, and whether all of it is of one instant.
    fn collect(kernel: &Kernel, tries: usize, between: impl FnMut(&[Row])) -> (Vec<u64>, bool) {
        let Collection { rows, exact, .. } = kernel.0.collect_exactly(Vec::new(), tries, between);
        let mut numbers: Vec<u64> = rows.iter().map(|(id, ..)| id.sequence).collect();
        numbers.sort_unstable();
        (numbers, exact)
    }

    /// Goal: a collection during which something has changed isn't exact, and has no executor that was gone at its end;
    /// the next try is exact. Method: between the two looks an executor ends, another one takes its place, or one more
    /// is placed; of equal size and of another.
    #[test]
    fn changes_between_are_noticed() {
        let undisturbed = kernel();
        assert_eq!(collect(&undisturbed, 1, |_| ()), (vec![0, 1], true));
        for (ends, placed) in [(1, None), (1, Some(2.0)), (1, Some(1.0)), (0, Some(1.0))] {
            let change = |kernel: &Kernel| {
                (0..ends).for_each(|_| end(kernel, "1"));
                placed.into_iter().for_each(|cores| place(kernel, cores));
            };
            let changed = kernel();
            let stay = if ends > 0 { vec![0] } else { vec![0, 1] };
            assert_eq!(collect(&changed, 1, |_| change(&changed)), (stay.clone(), false));
            let changed = kernel();
            let mut tries = 0;
            let once = |_: &[Row]| {
                tries += 1;
                if tries == 1 {
                    change(&changed);
                }
            };
            let now = [stay, placed.map(|_| 2).into_iter().collect()].concat();
            assert_eq!(collect(&changed, 3, once), (now, true));
            assert_eq!(tries, 2);
            changed.check().unwrap();
        }
    }

    /// Goal: a collection adds up if both the executors and their cores do. Method: admission words with one more or
    /// less of one of them, or of both.
    #[test]
    fn executors_and_cores_add_up() {
        let kernel = kernel();
        let mut rows = Vec::new();
        kernel.0.collect(&mut rows);
        for (executors, cores) in [1, 2, 3].into_iter().flat_map(|it| [2, 3, 4].map(|n| (it, n))) {
            let admission = Admission::new();
            let cores_sum = MilliCpus::from_cores(cores);
            let word = admission.commit(admission.load(), executors, cores_sum).unwrap();
            assert_eq!(adds_up(&rows, word), (executors, cores) == (2, 3), "{executors} {cores}");
        }
    }
}
