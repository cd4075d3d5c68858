//! The kernel beside naive books: rounds of offers, picks and ends, after each of which both must say the same.
//!
//! The property test of tasks and the fuzz target `task_picks` share it.

use std::collections::HashMap;

use offermill::config::ExclusionRule;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    Amount, Decisions, ExecutorId, Handler, IdScheme, Kernel, Offer, Picks, Revocability,
    StatusUpdate, Task, TaskState,
};

use super::books::{self, Books, Wanted};
use crate::world::{Entry, OfferData, Setup, at, lend, secs};

/// What a random round does.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    /// What each of the agents S0, S1 and so on offers: cores, in thousandths, memory, GPUs, and whether one resource
    /// of each name is revocable.
    pub(crate) offers: Vec<(u64, u64, u32, bool)>,
    /// Room, cores, memory, GPUs; the number of members if it begins a gang.
    pub(crate) picks: Vec<(u32, u64, u64, u32, usize)>,
    /// Which of the live tasks end after it, and whether they failed.
    pub(crate) ends: Vec<(usize, bool)>,
    /// A core cap and a limit that are in force from between proposal and commit on.
    pub(crate) caps: Option<(u64, u32)>,
    /// An agent that is lost after that.
    pub(crate) lost: Option<usize>,
}

pub(crate) fn setup(core_cap: u64, limit: u32) -> Setup {
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

pub(crate) fn offer(
    agent: usize,
    (cores, memory, gpus, revocable): (u64, u64, u32, bool),
) -> OfferData {
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
pub(crate) struct Pair {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    books: Books,
    /// The live tasks, by their tags, which are never used again.
    live: Vec<(u64, ExecutorId)>,
    next_tag: u64,
}

impl Pair {
    pub(crate) fn new(core_cap: u64, limit: u32, plain: bool) -> Pair {
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

    pub(crate) fn play(&mut self, round: &Round, now: u64) {
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
            let (tag, id) = self.live.swap_remove(which % self.live.len());
            let state = if *failed { TaskState::Failed } else { TaskState::Finished };
            let name = self.kernel.executor_name(id).to_string();
            let outcome = self.kernel.status_update(&StatusUpdate::new(&name, state), at(now));
            let (cores, memory, gpus) = self.books.end(tag, *failed, now);
            assert_eq!(outcome.tag, Some(tag));
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
pub(crate) fn check_pieces(offers: &[Offer<'_>], decisions: &Decisions) {
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
