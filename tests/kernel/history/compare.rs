//! Comparisons of the kernel's answers and state with those of the reference model.

use std::collections::{BTreeMap, BTreeSet};

use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    Bound, CapacitySums, ClusterCapacity, Decisions, ExecutorId, Kernel, Outcome, Phase,
    ReasonKind, ResourceSums, Snapshot, Target, Timestamp,
};

use super::Whom;
use crate::reference::{Answer, Bound as BoundBy, Effect, Known, Life, Model, Started};
use crate::world::OfferData;

/// The id of each executor, by its number.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    all: Vec<ExecutorId>,
    numbers: BTreeMap<u64, u64>,
    /// The number of executors of a former run that were not adopted. Each may have left a gap in the sequence.
    pub(crate) refused: u64,
}

impl Ids {
    pub(crate) fn push(&mut self, number: u64, id: ExecutorId) {
        let (sequence, last) = (id.sequence(), self.all.last());
        assert_eq!(number, self.all.len() as u64, "numbers follow each other");
        assert!(last.is_none_or(|last| last.sequence() < sequence), "in the order of placement");
        assert!((number..=number + self.refused).contains(&sequence), "without gaps: {sequence}");
        self.all.push(id);
        self.numbers.insert(sequence, number);
    }

    pub(crate) fn of(&self, number: u64) -> ExecutorId {
        self.all[number as usize]
    }

    pub(crate) fn number(&self, id: ExecutorId) -> u64 {
        self.numbers[&id.sequence()]
    }

    /// The numbers of these executors.
    pub(crate) fn numbers(&self, targets: &[Target]) -> BTreeSet<u64> {
        let numbers: BTreeSet<u64> = targets.iter().map(|it| self.number(it.id)).collect();
        assert_eq!(numbers.len(), targets.len(), "one is named twice: {targets:?}");
        numbers
    }
}

/// Compares decisions with the expected answer, and records the ids of new executors.
pub(crate) fn expect_answer(
    decisions: &Decisions,
    answer: &Answer,
    batch: &[OfferData],
    model: &Model,
    ids: &mut Ids,
) {
    let mut answered: Vec<u32> = decisions.declines().iter().map(|row| row.offer).collect();
    answered.extend(decisions.accepts().flat_map(|accept| accept.offers.to_vec()));
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..batch.len() as u32), "each offer is answered once");
    let declines: BTreeMap<_, _> =
        decisions.declines().iter().map(|row| (row.offer, (row.reason, row.refuse))).collect();
    assert_eq!(declines, answer.declines);
    assert_eq!(decisions.accepts().len(), answer.accepts.len());
    let mut fresh: BTreeMap<u64, ExecutorId> = BTreeMap::new();
    for (accept, expected) in decisions.accepts().zip(&answer.accepts) {
        assert_eq!(accept.offers, expected.offers, "offers of {}", expected.agent);
        assert_eq!(accept.refuse, expected.refuse, "refusal of what is left");
        assert_eq!(accept.executors.len(), expected.executors.len());
        for (placed, Started { number, pieces }) in accept.executors.iter().zip(&expected.executors)
        {
            fresh.insert(*number, placed.id);
            let executor = &model.executors[*number as usize];
            assert_eq!(placed.resources.cores, MilliCpus::from_millis(executor.cores));
            assert_eq!(placed.resources.memory, Mebibytes::new(executor.memory));
            assert_eq!(placed.resources.gpus, Gpus::new(executor.gpus as u32));
            assert_eq!(placed.resources.port, executor.port);
            // A task gets no extra cores.
            let extra = if executor.tag.is_none() { model.setup.extra_cores } else { 0 };
            let told = executor.cores + u64::from(extra) * 1000;
            assert_eq!(placed.advertised_cores, MilliCpus::from_millis(told));
            let mut cut: Vec<_> = accept
                .pieces(placed)
                .iter()
                .map(|piece| (piece.offer, piece.resource, piece.amount))
                .collect();
            cut.sort_by_key(|piece| (piece.0, piece.1));
            assert_eq!(cut, *pieces, "pieces of executor {number}");
        }
        let tags: Vec<_> = accept.tasks().map(|(tag, _)| Some(tag)).collect();
        let of = |it: &Started| model.executors[it.number as usize].tag;
        let expected: Vec<_> = expected.executors.iter().map(of).filter(Option::is_some).collect();
        assert_eq!(tags, expected, "tags");
    }
    let unplaced: Vec<_> =
        decisions.unplaced().iter().map(|it| (it.pick, it.tag, it.reason)).collect();
    assert_eq!(unplaced, answer.unplaced, "picks that are not placed");
    for (number, id) in fresh {
        ids.push(number, id);
    }
}

/// Compares the outcome of an update.
pub(crate) fn expect_outcome(outcome: &Outcome, effect: &Effect, whom: &Whom, ids: &Ids) {
    let excluded = outcome
        .excluded
        .as_ref()
        .map(|exclusion| (exclusion.agent_id.to_string(), exclusion.until));
    let found = Effect {
        change: outcome.change,
        tag: outcome.tag,
        freed: outcome.freed,
        kill: outcome.kill,
        excluded,
    };
    assert_eq!(found, *effect);
    match (whom, outcome.executor) {
        (Whom::Number(number), Some(id)) => assert_eq!(id, ids.of(*number)),
        (Whom::Text(text), Some(id)) => panic!("{text} is no executor, but was found as {id:?}"),
        (_, None) => {}
    }
}

/// Compares what a binding did.
pub(crate) fn expect_bound(found: Bound, expected: &BoundBy, whom: &Whom, ids: &Ids) {
    let (found, executor) = match found {
        Bound::Settled { executor, in_doubt } => (BoundBy::Settled { in_doubt }, Some(executor)),
        Bound::Already => (BoundBy::Already, None),
        Bound::Elsewhere { agent_id } => (BoundBy::Elsewhere(agent_id.to_string()), None),
        Bound::Unwelcome { executor, why } => (BoundBy::Unwelcome(why), Some(executor)),
        Bound::Nothing => (BoundBy::Nothing, None),
        other => panic!("a result that the reference does not know: {other:?}"),
    };
    assert_eq!(found, *expected);
    match (whom, executor) {
        (Whom::Number(number), Some(id)) => assert_eq!(id, ids.of(*number)),
        (Whom::Text(text), Some(id)) => panic!("{text} is no executor, but was found as {id:?}"),
        (_, None) => {}
    }
}

/// Compares the totals and counters.
pub(crate) fn expect_same_sums(kernel: &Kernel, model: &Model) {
    let totals = kernel.totals();
    let (executors, cores) = model.totals();
    assert_eq!(u64::from(totals.executors), executors);
    assert_eq!(totals.cores, MilliCpus::from_millis(cores));
    assert_eq!(totals.closed, model.closed);
    assert_eq!(u64::from(kernel.wanted()), model.wanted(), "wanted");
}

/// Compares all other visible state.
pub(crate) fn expect_same_state(
    kernel: &Kernel,
    snapshot: &Snapshot,
    model: &Model,
    now: Timestamp,
    ids: &Ids,
) {
    assert!(snapshot.exact, "no other thread runs");
    assert_eq!(kernel.totals(), snapshot.totals);
    assert_eq!(kernel.executor_limit(), model.limit);
    assert_eq!(kernel.epoch(), model.epoch);
    for ratio in [0.0, 0.5, 1.0] {
        assert_eq!(kernel.sufficient_resources_registered(ratio), model.sufficient(ratio));
    }
    same_executors(kernel, snapshot, model, ids);
    same_agents(kernel, snapshot, model, now);
    same_counts(kernel, model);
    same_capacity(&kernel.capacity(now), model, now);
}

fn same_executors(kernel: &Kernel, snapshot: &Snapshot, model: &Model, ids: &Ids) {
    let shown: BTreeSet<u64> = snapshot.executors.iter().map(|it| ids.number(it.id)).collect();
    assert_eq!(shown, model.living().collect(), "living");
    assert_eq!(shown.len(), snapshot.executors.len());
    for view in &snapshot.executors {
        let number = ids.number(view.id);
        let executor = &model.executors[number as usize];
        assert_eq!(view.id, ids.of(number));
        let name = kernel.executor_name(view.id).to_string();
        assert_eq!(kernel.executor_id(&name), Some(view.id), "{name}");
        assert_eq!(*view.agent_id, executor.agent);
        let life = match view.phase {
            Phase::Launching => Life::Launching,
            Phase::Running => Life::Running,
            Phase::Unreachable => Life::Unreachable,
            Phase::GivenUp => Life::GivenUp,
            other => panic!("a phase that the reference does not know: {other:?}"),
        };
        assert_eq!(life, executor.life, "executor {number}");
        assert_eq!(view.resources.cores.millis(), executor.cores);
        assert_eq!(view.resources.memory.get(), executor.memory);
        assert_eq!(u64::from(view.resources.gpus.get()), executor.gpus);
        assert_eq!(view.placed_at, executor.placed_at);
        assert_eq!(view.tag, executor.tag);
        assert_eq!(kernel.task_tag(view.id), executor.tag);
    }
}

fn same_agents(kernel: &Kernel, snapshot: &Snapshot, model: &Model, now: Timestamp) {
    let mut shown = BTreeSet::new();
    for state in &snapshot.agents {
        let name = state.agent_id.to_string();
        let agent = model.agents.get(&name);
        let Some(agent) = agent else { panic!("{name} ought to be forgotten") };
        assert_eq!(state.executors, model.on_agent(&name), "executors on {name}");
        assert_eq!(state.excluded_until, model.excluded_until(&name, now), "exclusion of {name}");
        assert_eq!(&*state.hostname, if agent.met { "host" } else { "" });
        assert!(shown.insert(name));
    }
    for (name, agent) in &model.agents {
        let must_be = agent.known == Known::Yes;
        assert!(!must_be || shown.contains(name), "{name} was forgotten too soon");
    }
    assert_eq!(kernel.agents_known(), shown.len());
}

fn same_counts(kernel: &Kernel, model: &Model) {
    let counts = kernel.offer_counts();
    assert_eq!(counts.batches, model.counts.batches);
    assert_eq!(counts.offers, model.counts.offers);
    assert_eq!(counts.accepted, model.counts.accepted);
    assert_eq!(counts.executors, model.counts.executors);
    for kind in ReasonKind::ALL {
        let expected = model.counts.declined.get(kind.as_str()).copied().unwrap_or(0);
        assert_eq!(counts.declined(kind), expected, "declined: {kind:?}");
    }
    assert_eq!(
        kernel.unknown_updates(),
        model.counts.unknown_updates,
        "updates about unknown executors"
    );
}

/// Compares the picture of the cluster's capacity.
fn same_capacity(capacity: &ClusterCapacity, model: &Model, now: Timestamp) {
    let amounts =
        |sums: ResourceSums| [sums.cores.millis(), sums.memory.get(), u64::from(sums.gpus.get())];
    assert!(capacity.exact(), "no other thread runs");
    let (executors, cores) = model.totals();
    assert_eq!(u64::from(capacity.totals().executors), executors);
    assert_eq!(capacity.sums().used.cores, MilliCpus::from_millis(cores));
    let mut shown = BTreeSet::new();
    let mut sums = [[0u64; 3]; 3];
    let mut largest = [0u64; 3];
    for view in capacity.agents() {
        let name = view.agent_id();
        let agent = &model.agents[name];
        assert!(shown.insert(name), "{name} is shown twice");
        assert_eq!(view.hostname(), if agent.met { "host" } else { "" });
        assert_eq!(view.executors(), model.on_agent(name), "executors on {name}");
        assert_eq!(view.excluded_until(), model.excluded_until(name, now), "{name}");
        assert_eq!(amounts(view.used()), model.used_on(name), "used on {name}");
        let largest_kinds = amounts(view.free().saturating_add(view.used()));
        largest = std::array::from_fn(|kind| largest[kind].max(largest_kinds[kind]));
        match (view.offered_at(), agent.offered.last()) {
            (Some(at), Some(_)) => {
                if let Some(free) = model.free_on(name) {
                    assert_eq!(amounts(view.free()), free, "free on {name}, recorded at {at:?}");
                }
                if let Some(expected) = model.whole_offer(name) {
                    let shown = [view.offered(), view.free()].map(amounts);
                    assert_eq!(shown, expected, "{name}, recorded at {at:?}");
                }
            }
            (None, None) => assert_eq!(view.free(), ResourceSums::NONE),
            (None, Some(_)) => assert_eq!(agent.known, Known::Perhaps, "{name} was not recorded"),
            (Some(at), None) => panic!("{name} was never offered, but at {at:?}"),
        }
        let is_withheld = view.excluded_until().is_some() || view.suspect_until().is_some();
        for (sum, more) in [(0, view.offered()), (1 + usize::from(is_withheld), view.free())] {
            for (sum, more) in sums[sum].iter_mut().zip(amounts(more)) {
                *sum = sum.saturating_add(more);
            }
            sums[sum][2] = sums[sum][2].min(u32::MAX.into());
        }
    }
    assert_eq!(amounts(capacity.largest_agent()), largest, "the largest agent");
    let CapacitySums { agents, offered, free, withheld, .. } = capacity.sums();
    assert_eq!((agents, [offered, free, withheld].map(amounts)), (shown.len(), sums));
    for (name, agent) in &model.agents {
        assert!(agent.known != Known::Yes || shown.contains(&**name), "{name} is missing");
    }
}
