//! Tasks of unequal sizes: proposals, picks and commits against naive books, by example, and with threads.

mod books;
mod documented;
mod domains;
mod rooms;

use std::collections::HashMap;

use offermill::config::ExclusionRule;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    Amount, Decisions, ExecutorId, Handler, IdScheme, Kernel, Offer, Picks, ReasonKind,
    Revocability, StatusUpdate, Task, TaskState,
};
use proptest::prelude::*;

use crate::threads::{Rng, seed};
use crate::world::{Entry, OfferData, Setup, at, lend, secs};
use books::{Books, Wanted};

/// What a random round does.
#[derive(Clone, Debug)]
struct Round {
    /// What each of the agents S0, S1 and so on offers: cores, in thousandths, memory, GPUs, and whether one resource
    /// of each name is revocable.
    offers: Vec<(u64, u64, u32, bool)>,
    /// Room, cores, memory, GPUs; the number of members if it begins a gang.
    picks: Vec<(u32, u64, u64, u32, usize)>,
    /// Which of the live tasks end after it, and whether they failed.
    ends: Vec<(prop::sample::Index, bool)>,
    /// A core cap and a limit that are in force from between proposal and commit on.
    caps: Option<(u64, u32)>,
    /// An agent that is lost after that.
    lost: Option<usize>,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let offer = (0u64..6000, 0u64..3000, 0u32..3, any::<bool>());
    let gang = prop_oneof![4 => Just(1usize), 1 => 2usize..4];
    let pick = (0u32..6, 0u64..3000, 0u64..1500, prop_oneof![3 => Just(0u32), 1 => 1u32..3], gang);
    let round = (
        prop::collection::vec(offer, 0..6),
        prop::collection::vec(pick, 0..12),
        prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..6),
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

fn setup(core_cap: u64, limit: u32) -> Setup {
    Setup {
        core_cap: Some(core_cap.max(100)),
        executor_cores: Some(100),
        memory: 50,
        gpu_cap: 4,
        limit: Some(limit),
        revocable: true,
        exclusion: Some(ExclusionRule { failures: 2, window: secs(600), expiry: Some(secs(30)) }),
        ..Setup::default()
    }
}

fn offer(agent: usize, (cores, memory, gpus, revocable): (u64, u64, u32, bool)) -> OfferData {
    let (cores, memory) = (cores as f64 / 1000.0, memory as f64);
    let offer = OfferData::new(&format!("S{agent}"), cores, memory)
        .with(Entry::scalar("gpus", f64::from(gpus)));
    if !revocable {
        return offer;
    }
    let half = [("cpus", cores / 2.0), ("mem", (memory / 2.0).floor())];
    half.into_iter().fold(offer, |offer, (name, amount)| {
        offer.with(Entry::scalar(name, amount).revocability(Revocability::Revocable))
    })
}

/// The kernel and the books, and what tells them apart.
struct Pair {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    books: Books,
    /// The live tasks, by their tags, which are never used again.
    live: Vec<(u64, ExecutorId)>,
    next_tag: u64,
}

impl Pair {
    fn new(core_cap: u64, limit: u32, plain: bool) -> Pair {
        let setup = setup(core_cap, limit);
        let ids = if plain { IdScheme::plain() } else { IdScheme::unique("t", 1).unwrap() };
        let kernel = Kernel::new(setup.config(), ids);
        let books = Books::new(setup);
        Pair {
            handler: kernel.handler(),
            kernel,
            decisions: Decisions::new(),
            books,
            live: Vec::new(),
            next_tag: 1,
        }
    }

    /// Makes picks of these. Each has a tag of its own.
    fn picks(&mut self, wanted: &[(u32, u64, u64, u32, usize)]) -> (Picks, Vec<Vec<Wanted>>) {
        let (mut picks, mut groups) = (Picks::new(), Vec::new());
        let mut rest = wanted;
        while let Some((_, _, _, _, members)) = rest.first() {
            let (own, others) = rest.split_at((*members).min(rest.len()));
            rest = others;
            let members = own.iter().map(|(room, cores, memory, gpus, _)| {
                self.next_tag += 1;
                let gpus = Gpus::new(*gpus);
                let task = Task::new(
                    self.next_tag,
                    MilliCpus::from_millis(*cores),
                    Mebibytes::new(*memory),
                );
                Wanted { room: *room as usize, task: Task { gpus, ..task } }
            });
            let members: Vec<Wanted> = members.collect();
            match &members[..] {
                [alone] => picks.push(alone.room as u32, alone.task),
                gang => {
                    let gang: Vec<_> = gang.iter().map(|it| (it.room as u32, it.task)).collect();
                    picks.push_gang(&gang);
                }
            }
            groups.push(members);
        }
        (picks, groups)
    }

    fn play(&mut self, round: &Round, now: u64) {
        let batch: Vec<OfferData> =
            (0..).zip(&round.offers).map(|(agent, amounts)| offer(agent, *amounts)).collect();
        let (picks, groups) = self.picks(&round.picks);
        let lost = round.lost.filter(|agent| *agent < batch.len());
        let Pair { kernel, handler, decisions, books, .. } = self;
        let expected = lend(&batch, |offers| {
            let rooms = handler.propose(offers, at(now));
            let shown = books.rooms(&batch, now);
            let list: Vec<_> =
                rooms.list().iter().map(|room| (room.offer(), room.left())).collect();
            assert_eq!(list, shown.iter().map(books::Room::shown).collect::<Vec<_>>());
            let changed = round.caps.map(|(core_cap, limit)| setup(core_cap, limit));
            if let Some(setup) = changed.filter(|setup| *setup != books.setup) {
                kernel.reconfigure(setup.config());
                books.setup = setup;
                // Without new settings, only rooms with picks are looked at again.
                if let Some(agent) = lost {
                    let name = format!("S{agent}");
                    kernel.agent_lost(&name, at(now));
                    books.lose(&name, now);
                }
            }
            rooms.commit(&picks, at(now), decisions);
            check_pieces(offers, decisions);
            books.commit(&batch, &shown, &groups, now)
        });
        self.compare(&batch, &expected);
        self.end(round, now);
    }

    /// Compares the decisions with what the books say.
    fn compare(&mut self, batch: &[OfferData], expected: &books::Answer) {
        let decisions = &self.decisions;
        let mut placed = Vec::new();
        for accepted in decisions.accepts() {
            assert_eq!(accepted.tasks().len(), accepted.executors.len());
            let agent = &batch[accepted.offers[0] as usize].agent;
            for (tag, task) in accepted.tasks() {
                assert_eq!(self.kernel.task_tag(task.id), Some(tag));
                let taken = task.resources;
                placed.push((
                    tag,
                    agent.clone(),
                    taken.cores.millis(),
                    taken.memory.get(),
                    taken.gpus.get(),
                ));
                self.live.push((tag, task.id));
            }
        }
        placed.sort();
        assert_eq!(placed, expected.placed);
        let unplaced: Vec<_> =
            decisions.unplaced().iter().map(|it| (it.pick, it.tag, it.reason.kind())).collect();
        assert_eq!(unplaced, expected.unplaced);
        let mut declined: Vec<_> =
            decisions.declines().iter().map(|it| (it.offer, it.reason.kind())).collect();
        declined.sort_by_key(|(offer, _)| *offer);
        assert_eq!(declined, expected.declined);
        self.check_totals();
    }

    fn end(&mut self, round: &Round, now: u64) {
        for (which, failed) in &round.ends {
            if self.live.is_empty() {
                break;
            }
            let (tag, id) = self.live.swap_remove(which.index(self.live.len()));
            let state = if *failed { TaskState::Failed } else { TaskState::Finished };
            let name = self.kernel.executor_name(id).to_string();
            let outcome = self.kernel.status_update(&StatusUpdate::new(&name, state), at(now));
            let (cores, memory, gpus) = self.books.end(tag, *failed, now);
            let freed = outcome.freed.unwrap();
            assert_eq!(
                (freed.cores.millis(), freed.memory.get(), freed.gpus.get()),
                (cores, memory, gpus)
            );
            assert_eq!(self.kernel.task_tag(id), None, "it has ended");
            self.check_totals();
        }
    }

    fn check_totals(&self) {
        let totals = self.kernel.totals();
        assert_eq!((totals.executors as usize, totals.cores.millis()), self.books.totals());
        self.kernel.check().unwrap();
    }
}

/// The pieces of each task add up to what it takes, and all pieces to no more than is offered.
fn check_pieces(offers: &[Offer<'_>], decisions: &Decisions) {
    for accepted in decisions.accepts() {
        let mut remainder = offermill::Remainder::of(offers, accepted.offers.iter().copied());
        for (_, task) in accepted.tasks() {
            let mut sums: HashMap<&str, (u64, Vec<bool>)> = HashMap::new();
            for piece in accepted.pieces(task) {
                assert!(remainder.subtract(piece), "{piece:?} is more than there is");
                let resource = &offers[piece.offer as usize].resources[piece.resource as usize];
                let Amount::Scalar(amount) = piece.amount else { panic!("{piece:?}") };
                let sum = sums.entry(resource.name).or_default();
                sum.0 += amount.thousandths();
                sum.1.push(resource.revocability == Revocability::Revocable);
            }
            assert!(
                sums.values().all(|(_, revocable)| revocable.iter().all(|it| *it == revocable[0]))
            );
            let sum = |name| sums.get(name).map_or(0, |(sum, _)| *sum);
            let taken = &task.resources;
            assert_eq!(sum("cpus"), taken.cores.millis());
            assert_eq!(sum("mem"), taken.memory.get() * 1000);
            assert_eq!(sum("gpus"), u64::from(taken.gpus.get()) * 1000);
        }
    }
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
            assert_eq!(outcome.freed, Some(resources));
        }
    }
    placed
}
