//! What "the same" means.

use std::collections::{BTreeMap, BTreeSet};

use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{
    Decisions, ExecutorId, Kernel, Outcome, Phase, ReasonKind, Snapshot, Target, Timestamp,
};

use super::Whom;
use crate::reference::{Answer, Effect, Knowing, Life, Model, Started};
use crate::world::Sheet;

/// The numbers of some executors.
pub(crate) fn names(targets: &[Target]) -> BTreeSet<u64> {
    let numbers: BTreeSet<u64> = targets.iter().map(|target| target.id.sequence()).collect();
    assert_eq!(numbers.len(), targets.len(), "one is named twice: {targets:?}");
    numbers
}

/// Compares decisions with the answer; notes the ids of new executors.
pub(crate) fn expect_answer(
    decisions: &Decisions,
    answer: &Answer,
    sheets: &[Sheet],
    model: &Model,
    ids: &mut Vec<ExecutorId>,
) {
    let mut answered: Vec<u32> = decisions.declines().iter().map(|row| row.offer).collect();
    answered.extend(decisions.accepts().flat_map(|accept| accept.offers.to_vec()));
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..sheets.len() as u32), "each offer is answered once");
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
            assert_eq!(placed.id.sequence(), *number);
            fresh.insert(*number, placed.id);
            let executor = &model.executors[*number as usize];
            assert_eq!(placed.cores, MilliCpus::from_millis(executor.cores));
            assert_eq!(placed.memory, Mebibytes::new(executor.memory));
            assert_eq!(placed.gpus, Gpus::new(executor.gpus as u32));
            assert_eq!(placed.port, executor.port);
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
        assert_eq!(number, ids.len() as u64, "numbers follow each other");
        ids.push(id);
    }
}

/// Compares what an update did.
pub(crate) fn expect_outcome(outcome: &Outcome, effect: &Effect, whom: &Whom, ids: &[ExecutorId]) {
    let excluded = outcome
        .excluded
        .as_ref()
        .map(|exclusion| (exclusion.agent_id.to_string(), exclusion.until));
    let found =
        Effect { change: outcome.change, freed: outcome.freed, kill: outcome.kill, excluded };
    assert_eq!(found, *effect);
    match (whom, outcome.executor) {
        (Whom::Number(number), Some(id)) => assert_eq!(id, ids[*number as usize]),
        (Whom::Text(text), Some(id)) => panic!("{text} is no executor, but was found as {id:?}"),
        (_, None) => {}
    }
}

/// Compares what is counted.
pub(crate) fn expect_same_sums(kernel: &Kernel, model: &Model) {
    let totals = kernel.totals();
    let (executors, cores) = model.totals();
    assert_eq!(u64::from(totals.executors), executors);
    assert_eq!(totals.cores, MilliCpus::from_millis(cores));
    assert_eq!(totals.closed, model.closed);
    assert_eq!(u64::from(kernel.wanted()), model.wanted(), "wanted");
}

/// Compares everything else that can be seen.
pub(crate) fn expect_same_state(
    kernel: &Kernel,
    snapshot: &Snapshot,
    model: &Model,
    now: Timestamp,
    ids: &[ExecutorId],
) {
    assert!(snapshot.exact, "nobody else is at work");
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

fn same_executors(kernel: &Kernel, snapshot: &Snapshot, model: &Model, ids: &[ExecutorId]) {
    let shown: BTreeSet<u64> = snapshot.executors.iter().map(|view| view.id.sequence()).collect();
    assert_eq!(shown, model.living().collect(), "living");
    assert_eq!(shown.len(), snapshot.executors.len());
    for view in &snapshot.executors {
        let number = view.id.sequence() as usize;
        let executor = &model.executors[number];
        assert_eq!(view.id, ids[number]);
        let name = kernel.executor_name(view.id).to_string();
        assert_eq!(kernel.executor_id(&name), Some(view.id), "{name}");
        assert_eq!(*view.agent_id, executor.agent);
        let life = match view.phase {
            Phase::Launching => Life::Launching,
            Phase::Running => Life::Running,
            Phase::OutOfSight => Life::OutOfSight,
            Phase::GivenUp => Life::GivenUp,
            other => panic!("a phase that the reference does not know: {other:?}"),
        };
        assert_eq!(life, executor.life, "executor {number}");
        assert_eq!(view.cores.millis(), executor.cores);
        assert_eq!(view.memory.get(), executor.memory);
        assert_eq!(u64::from(view.gpus.get()), executor.gpus);
        assert_eq!(view.placed_at, executor.placed_at);
    }
}

fn same_agents(kernel: &Kernel, snapshot: &Snapshot, model: &Model, now: Timestamp) {
    let mut shown = BTreeSet::new();
    for state in &snapshot.agents {
        let name = state.agent_id.to_string();
        assert!(model.agents.contains_key(&name), "{name} ought to be forgotten");
        assert_eq!(state.executors, model.on_agent(&name), "executors on {name}");
        assert_eq!(state.excluded_until, model.excluded_until(&name, now), "exclusion of {name}");
        assert_eq!(&*state.hostname, "host");
        assert!(shown.insert(name));
    }
    for (name, agent) in &model.agents {
        let must_be = agent.knowing == Knowing::Yes;
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
    assert_eq!(kernel.unknown_updates(), model.counts.strays, "updates about nobody");
}
