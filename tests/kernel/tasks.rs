//! Tasks of unequal sizes: proposals, picks and commits against naive books, by example, and with threads.

mod books;
mod documented;
mod domains;
mod equal_tasks;
mod gangs;
mod host_books;
mod hosted;
mod pair;
mod rooms;
mod spread_threads;
mod tags;

use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{Decisions, IdScheme, Kernel, Picks, ReasonKind, StatusUpdate, Task, TaskState};
use proptest::prelude::*;

use crate::threads::{Rng, seed};
use crate::world::{OfferData, at, lend};
use pair::{Pair, Round, check_pieces, offer, setup};

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let offer = (0u64..6000, 0u64..3000, 0u32..3, any::<bool>());
    let gang = prop_oneof![4 => Just(1usize), 1 => 2usize..4];
    let pick = (0u32..6, 0u64..3000, 0u64..1500, prop_oneof![3 => Just(0u32), 1 => 1u32..3], gang);
    let round = (
        prop::collection::vec(offer, 0..6),
        prop::collection::vec(pick, 0..12),
        prop::collection::vec((any::<usize>(), any::<bool>()), 0..6),
        prop::option::weighted(0.2, (0u64..20_000, 0u32..12)),
        prop::option::weighted(0.2, 0usize..6),
    );
    let round = round.prop_map(|(offers, picks, ends, caps, lost)| Round {
        offers,
        picks,
        ends,
        caps,
        lost,
    });
    prop::collection::vec(round, 1..8)
}

proptest! {
    /// Goal: proposals, placements, what is left out and why, declines, tags and what ends free are as documented, also
    /// if settings change or an agent is lost between proposal and commit. Method: random rounds against naive books,
    /// which say all of it; the totals and the kernel's own check after each step.
    #[test]
    fn any_picks_agree_with_the_books(
        rounds in rounds(),
        (core_cap, limit) in (0u64..30_000, 0u32..15),
        plain in any::<bool>(),
    ) {
        let mut pair = Pair::new(core_cap, limit, plain);
        for (round, number) in rounds.iter().zip(1..) {
            pair.play(round, number * 7_000);
        }
    }
}

/// Goal: with several threads that place and end unequal tasks, no cap is exceeded at any instant, each task is placed
/// once, and all that was taken is freed. Method: four threads of random picks under changing caps; one more reads the
/// totals all the time; the sums are checked at the end.
#[test]
fn caps_hold_while_threads_place_tasks() {
    const CAP: u64 = 12_000;
    const LIMIT: u32 = 9;
    let kernel = Kernel::new(setup(CAP, LIMIT).config(), IdScheme::unique("t", 1).unwrap());
    let done = std::sync::atomic::AtomicBool::new(false);
    let seed = seed();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4u64)
            .map(|worker| {
                let kernel = &kernel;
                scope.spawn(move || place_and_end(kernel, Rng(seed + worker), worker))
            })
            .collect();
        let (kernel, done) = (&kernel, &done);
        scope.spawn(move || {
            while !done.load(std::sync::atomic::Ordering::Acquire) {
                let totals = kernel.totals();
                assert!(totals.executors <= LIMIT && totals.cores.millis() <= CAP, "{totals:?}");
            }
        });
        let placed: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        done.store(true, std::sync::atomic::Ordering::Release);
        assert!(placed > 500, "{placed} tasks");
    });
    let totals = kernel.totals();
    assert_eq!((totals.executors, totals.cores), (0, MilliCpus::ZERO));
    kernel.check().unwrap();
}

/// Places random tasks on agents that all threads offer, and ends them. Returns how many were placed.
fn place_and_end(kernel: &Kernel, mut rng: Rng, worker: u64) -> usize {
    let (mut handler, mut decisions, mut picks) =
        (kernel.handler(), Decisions::new(), Picks::new());
    let mut live = Vec::new();
    let mut placed = 0;
    for round in 0..600 {
        let batch: Vec<OfferData> =
            (0..3).map(|agent| offer(agent, (5000, 3000, 2, agent == 0))).collect();
        picks.clear();
        lend(&batch, |offers| {
            let rooms = handler.propose(offers, at(round));
            let count = rooms.list().len() as u64;
            for pick in 0..rng.below(6) * count.min(1) {
                let cores = MilliCpus::from_millis(1 + rng.below(3000));
                let tag = worker << 32 | round << 8 | pick;
                let task = Task::new(tag, cores, Mebibytes::new(rng.below(400)));
                let task = Task { gpus: Gpus::new(rng.below(2) as u32), ..task };
                let room = rng.below(count) as u32;
                if rng.below(4) == 0 {
                    picks.push_gang(&[(room, task), (rng.below(count) as u32, task)]);
                } else {
                    picks.push(room, task);
                }
            }
            rooms.commit(&picks, at(round), &mut decisions);
            check_pieces(offers, &decisions);
        });
        let tasks = decisions.accepts().flat_map(|accepted| accepted.tasks());
        live.extend(tasks.map(|(tag, task)| (tag, task.id, task.resources)));
        placed += decisions.executors();
        assert_eq!(decisions.executors() + decisions.unplaced().len(), picks.len());
        assert_eq!(
            decisions.unplaced().iter().find(|it| it.reason.kind() == ReasonKind::Malformed),
            None
        );
        while live.len() > 1 || round == 599 && !live.is_empty() {
            let (tag, id, resources) = live.swap_remove(rng.below(live.len() as u64) as usize);
            assert_eq!(kernel.task_tag(id), Some(tag));
            let name = kernel.executor_name(id).to_string();
            let outcome =
                kernel.status_update(&StatusUpdate::new(&name, TaskState::Finished), at(round));
            assert_eq!((outcome.tag, outcome.freed), (Some(tag), Some(resources)));
        }
    }
    placed
}
