//! Tasks of one size beside executors of that size.

use offermill::choosers::Chooser;
use offermill::config::ExclusionRule;
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Decisions, ExecutorId, Handler, IdScheme, Kernel, Picks, StatusUpdate, Task, TaskState,
};
use proptest::prelude::*;

use super::pair::offer;
use crate::world::{OfferData, Setup, at, lend, secs};

const CORES: u64 = 1_000;
const MEMORY: u64 = 100;
/// More tasks than six offers have room for.
const ENOUGH: u64 = 100;

/// What each of some agents offers, and which of the live executors end afterwards, and whether they failed.
type Round = (Vec<(u64, u64, bool)>, Vec<(usize, bool)>);

/// A kernel that places executors, or as many tasks of their size as there is room for, in turn.
struct Placer {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    chooser: Option<Chooser>,
}

impl Placer {
    fn new(setup: &Setup, chooser: Option<Chooser>) -> Placer {
        let kernel = Kernel::new(setup.config(), IdScheme::unique("t", 1).unwrap());
        Placer { handler: kernel.handler(), kernel, decisions: Decisions::new(), chooser }
    }

    fn place(&mut self, batch: &[OfferData], now: u64) {
        let Placer { handler, decisions, chooser, .. } = self;
        lend(batch, |offers| match chooser {
            None => handler.resource_offers(offers, at(now), decisions),
            Some(chooser) => {
                let size = (MilliCpus::from_millis(CORES), Mebibytes::new(MEMORY));
                let tasks: Vec<Task> =
                    (0..ENOUGH).map(|tag| Task::new(tag, size.0, size.1)).collect();
                let (rooms, mut picks) = (handler.propose(offers, at(now)), Picks::new());
                chooser.round_robin(rooms.list(), &tasks, &mut picks);
                rooms.commit(&picks, at(now), decisions);
            }
        });
    }

    /// All that the decisions say: what was accepted, with the executors, their resources and the pieces of these; and
    /// what was declined, why and for how long.
    fn answer(&self) -> (Vec<String>, Vec<String>) {
        let accepts = self.decisions.accepts().map(|accepted| {
            let executors = accepted.executors.iter();
            let executors = executors.map(|it| (it.id, it.resources, accepted.pieces(it)));
            let executors: Vec<_> = executors.collect();
            format!("{:?} {:?} {executors:?}", accepted.offers, accepted.refuse)
        });
        let mut declines = self.decisions.declines().to_vec();
        declines.sort_by_key(|decline| decline.offer);
        (accepts.collect(), declines.iter().map(|decline| format!("{decline:?}")).collect())
    }

    fn end(&self, id: ExecutorId, has_failed: bool, now: u64) {
        let state = if has_failed { TaskState::Failed } else { TaskState::Finished };
        let name = self.kernel.executor_name(id).to_string();
        self.kernel.status_update(&StatusUpdate::new(&name, state), at(now));
    }
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let offers = prop::collection::vec((0u64..6_000, 0u64..1_000, any::<bool>()), 0..6);
    let ends = prop::collection::vec((any::<usize>(), any::<bool>()), 0..6);
    prop::collection::vec((offers, ends), 1..8)
}

proptest! {
    /// Goal: proposal, choice and commit of as many tasks of one size as there is room for place, decline and say what
    /// a batch of executors of that size does: coarse placement is this choice. Method: two kernels, one of each kind,
    /// through random rounds of offers and ends, with caps, revocable resources, failures and exclusions.
    #[test]
    fn equal_tasks_agree_with_executors(
        rounds in rounds(),
        (core_cap, limit) in (0u64..30_000, 0u32..15),
    ) {
        let setup = Setup {
            core_cap: Some(core_cap.max(CORES)),
            executor_cores: Some(CORES),
            memory: MEMORY,
            limit: Some(limit),
            revocable: true,
            exclusion: Some(ExclusionRule { failures: 3, window: secs(600), expiry: Some(secs(30)) }),
            ..Setup::default()
        };
        let mut placers = [None, Some(Chooser::new())].map(|chooser| Placer::new(&setup, chooser));
        let mut live: Vec<ExecutorId> = Vec::new();
        for ((offers, ends), number) in rounds.iter().zip(1..) {
            let offers = offers.iter().map(|(cores, memory, revocable)| (*cores, *memory, 0, *revocable));
            let batch: Vec<OfferData> = (0..).zip(offers).map(|(agent, it)| offer(agent, it)).collect();
            let now = number * 7_000;
            placers.iter_mut().for_each(|placer| placer.place(&batch, now));
            let [executors, tasks] = &placers;
            prop_assert_eq!(executors.answer(), tasks.answer());
            prop_assert_eq!(executors.kernel.totals(), tasks.kernel.totals());
            let accepts = executors.decisions.accepts();
            live.extend(accepts.flat_map(|accepted| accepted.executors.iter().map(|it| it.id)));
            for (which, has_failed) in ends {
                if !live.is_empty() {
                    let id = live.swap_remove(which % live.len());
                    placers.iter().for_each(|placer| placer.end(id, *has_failed, now));
                }
            }
        }
    }
}
