//! Collects all executors, for snapshots and pictures of the capacity.
//!
//! Each executor is looked at twice, and the admission word is loaded in between. The first look notes what may change
//! while an executor lives: its state, and its agent, which one that is bound late gets later. If the second look finds
//! the same states and agents, no other executors, and what adds up to the word, then the word and all cells had these
//! values together at the time of the load. No handler waits for a collection, and a collection waits for no handler.
//!
//! What never changes while an executor lives (its resources, when it was placed) is read at the second look, before
//! the state is: if the executor is still there, it is its own.
//!
//! What a report reads of agents, it reads between the two looks: an executor that is in both and had an agent at the
//! first held that agent in between, so the agent was not forgotten and its cell not reused. If no two looks are equal,
//! the executors that are gone at the second one are left out, and the same holds for the others.

use super::executor_row::{Row, SeenExecutor};
use crate::kernel::Core;
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::executors::Allocation;
use crate::sync::{Ordering, fence};

/// The number of executors ahead of the one that is looked at again for which memory is asked.
const EXECUTORS_AHEAD: usize = 8;

/// What collects executors.
pub(super) trait Collector {
    /// Called between the two looks, at each try, to read what belongs to the executors. What was collected at the try
    /// before is void.
    fn begin(&mut self, seen: &[SeenExecutor]);

    /// Asks memory for what [`Collector::add`] will need for this executor.
    fn prefetch(&self, _executor: &SeenExecutor) {}

    /// Called at the second look for each executor that is still there, in the order of the cells.
    fn add(&mut self, row: Row);
}

/// What holds for the executors that were collected.
pub(super) struct Collected {
    pub(super) admission: AdmissionState,
    /// Whether the executors are of the instant of the admission word. If not, each is as it was at some moment.
    pub(super) exact: bool,
}

impl Core {
    /// Collects all executors until the collection is exact, but at most `tries` times. `seen` is memory that is used
    /// again.
    pub(super) fn collect_exactly(
        &self,
        seen: &mut Vec<SeenExecutor>,
        tries: usize,
        collector: &mut impl Collector,
    ) -> Collected {
        let mut admission = self.admission.load();
        let mut exact = false;
        for left in (0..tries).rev() {
            seen.clear();
            seen.reserve(admission.executors() as usize);
            self.look(seen);
            collector.begin(seen);
            // Acquire: the second look is later than the first, and finds what led to what that one saw.
            fence(Ordering::Acquire);
            admission = self.admission.load();
            let is_last = left == 0;
            exact = self.look_again(seen, admission, is_last, collector);
            if exact {
                break;
            }
        }
        Collected { admission, exact }
    }

    fn look(&self, seen: &mut Vec<SeenExecutor>) {
        seen.extend(self.executors.iter().filter_map(|(slot, executor)| {
            let state = executor.seen();
            state.is_live().then(|| SeenExecutor { state, slot, agent: executor.agent() })
        }));
    }

    /// Whether all executors are as they were at the first look and add up to the admission word. Stops when they
    /// aren't, unless `is_last`: then it collects all that are still there.
    fn look_again(
        &self,
        seen: &[SeenExecutor],
        admission: AdmissionState,
        is_last: bool,
        collector: &mut impl Collector,
    ) -> bool {
        let mut is_same = true;
        let mut sums = CountedSums::default();
        let mut later = seen.iter().skip(EXECUTORS_AHEAD);
        let mut seen = seen.iter().peekable();
        for (slot, executor) in self.executors.iter() {
            let Some(first) = seen.next_if(|first| first.slot == slot) else {
                is_same &= !executor.seen().is_live();
                continue;
            };
            if let Some(later) = later.next() {
                collector.prefetch(later);
            }
            let Allocation { agent, resources } = executor.allocation();
            let launched = executor.launched();
            // Acquire: pairs with the fence in `ExecutorCell::before_reserving`. If something above is of the cell's
            // next executor, the state below shows that this one has ended.
            fence(Ordering::Acquire);
            let state = executor.seen();
            is_same &= state == first.state && agent == first.agent;
            if !is_same && !is_last {
                return false;
            }
            if state.sequence() == first.state.sequence() && state.is_live() {
                let allocation = Allocation { agent: first.agent, resources };
                let stage = first.state.stage();
                let row = Row { id: first.id(), stage, allocation, launched };
                sums.add(&row);
                collector.add(row);
            }
        }
        is_same && sums.are(admission)
    }
}

/// For the models: the executors and the indices of their agents that two looks find, of whatever instant.
#[cfg(all(loom, test))]
impl Core {
    pub(crate) fn look_twice(&self) -> Vec<(crate::ExecutorId, u32)> {
        struct Agents(Vec<(crate::ExecutorId, u32)>);
        impl Collector for Agents {
            fn begin(&mut self, _: &[SeenExecutor]) {}

            fn add(&mut self, row: Row) {
                self.0.push((row.id, row.allocation.agent));
            }
        }
        let (mut seen, mut agents) = (Vec::new(), Agents(Vec::new()));
        self.look(&mut seen);
        self.look_again(&seen, AdmissionState::default(), true, &mut agents);
        agents.0
    }
}

/// The counted executors of a collection, and their cores in thousandths.
#[derive(Default)]
struct CountedSums {
    executors: u32,
    cores: u64,
}

impl CountedSums {
    #[inline]
    fn add(&mut self, row: &Row) {
        if row.stage.counted() {
            self.executors += 1;
            self.cores += row.allocation.resources.cores.millis();
        }
    }

    fn are(&self, admission: AdmissionState) -> bool {
        self.executors == admission.executors() && self.cores == admission.cores().millis()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::TaskState;
    use crate::config::ExecutorCores;
    use crate::kernel::state::admission::Admission;
    use crate::kernel::state::agent_binding::NO_AGENT;
    use crate::resources::MilliCpus;
    use crate::time::Timestamp;
    use crate::{BoundAgent, Config, Decisions, IdScheme, Kernel, Offer, Resource, StatusUpdate};

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

    /// Collects rows, and calls `between`.
    struct Rows<F> {
        rows: Vec<Row>,
        between: F,
    }

    impl<F: FnMut()> Collector for Rows<F> {
        fn begin(&mut self, _: &[SeenExecutor]) {
            self.rows.clear();
            (self.between)();
        }

        fn add(&mut self, row: Row) {
            self.rows.push(row);
        }
    }

    fn collect_rows(kernel: &Kernel, tries: usize, between: impl FnMut()) -> (Vec<Row>, bool) {
        let mut collector = Rows { rows: Vec::new(), between };
        let Collected { exact, .. } =
            kernel.0.collect_exactly(&mut Vec::new(), tries, &mut collector);
        (collector.rows, exact)
    }

    /// The numbers of the executors that were collected, and whether all of it is of one instant.
    fn collect(kernel: &Kernel, tries: usize, between: impl FnMut()) -> (Vec<u64>, bool) {
        let (rows, exact) = collect_rows(kernel, tries, between);
        let mut numbers: Vec<u64> = rows.iter().map(|row| row.id.sequence).collect();
        numbers.sort_unstable();
        (numbers, exact)
    }

    /// Goal: a collection during which something has changed isn't exact, and has no executor that was gone at its end;
    /// the next try is exact. Method: between the two looks an executor ends, another one takes its place, or one more
    /// is placed; of equal size and of another.
    #[test]
    fn changes_between_are_noticed() {
        let undisturbed = kernel();
        assert_eq!(collect(&undisturbed, 1, || ()), (vec![0, 1], true));
        for (ends, placed) in [(1, None), (1, Some(2.0)), (1, Some(1.0)), (0, Some(1.0))] {
            let change = |kernel: &Kernel| {
                (0..ends).for_each(|_| end(kernel, "1"));
                placed.into_iter().for_each(|cores| place(kernel, cores));
            };
            let changed = kernel();
            let stay = if ends > 0 { vec![0] } else { vec![0, 1] };
            assert_eq!(collect(&changed, 1, || change(&changed)), (stay.clone(), false));
            let changed = kernel();
            let mut tries = 0;
            let once = || {
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

    /// Goal: a collection during which an executor is bound isn't exact, and has it as it was at the first look, when
    /// the agents had not been read; the next try is exact. Method: an executor that was placed on no agent is bound
    /// between the two looks.
    #[test]
    fn a_binding_between_is_noticed() {
        for (tries, exact) in [(1, false), (2, true)] {
            let kernel = kernel();
            let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 2000.0)];
            let permit = Offer::late("p", &resources);
            kernel.handler().resource_offers(&[permit], NOW, &mut Decisions::new());
            let bind = || drop(kernel.bind("2", &BoundAgent::new("S2", "host"), NOW));
            let (rows, found_exact) = collect_rows(&kernel, tries, bind);
            assert_eq!(found_exact, exact);
            let late: Vec<&Row> = rows.iter().filter(|row| row.id.sequence == 2).collect();
            assert_eq!(late.len(), 1, "it was there all the time");
            assert_eq!(late[0].allocation.agent == NO_AGENT, !exact);
            kernel.check().unwrap();
        }
    }

    /// Goal: a collection adds up if both the executors and their cores do. Method: admission words with one more or
    /// less of one of them, or of both.
    #[test]
    fn executors_and_cores_add_up() {
        let kernel = kernel();
        let mut sums = CountedSums::default();
        collect_rows(&kernel, 1, || ()).0.iter().for_each(|row| sums.add(row));
        for (executors, cores) in [1, 2, 3].into_iter().flat_map(|it| [2, 3, 4].map(|n| (it, n))) {
            let admission = Admission::new();
            let cores_sum = MilliCpus::from_cores(cores);
            let word = admission.commit(admission.load(), executors, cores_sum).unwrap();
            assert_eq!(sums.are(word), (executors, cores) == (2, 3), "{executors} {cores}");
        }
    }
}
