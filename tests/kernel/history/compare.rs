//! Comparisons of the kernel's answers and state with those of the reference model.

use std::collections::{BTreeMap, BTreeSet};

use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    Decisions, ExecutorId, Kernel, Outcome, Phase, ReasonKind, Snapshot, Target, Timestamp,
};

use super::Whom;
use crate::reference::{Answer, Effect, Known, Life, Model, Started};
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
            let told = executor.cores + u64::from(model.setup.extra_cores) * 1000;
            assert_eq!(placed.advertised_cores, MilliCpus::from_millis(told));
            let mut cut: Vec<_> = accept
                .pieces(placed)
                .iter()
                .map(|piece| (piece.offer, piece.resource, piece.amount))
                .collect();
            cut.sort_by_key(|piece| (piece.0, piece.1));
            assert_eq!(cut, *pieces, "pieces of executor {number}");
        }
    }
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
    let found =
        Effect { change: outcome.change, freed: outcome.freed, kill: outcome.kill, excluded };
    assert_eq!(found, *effect);
    match (whom, outcome.executor) {
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
