//! The proof, at each start of a bench, that kernel and baseline give the same answers on its offers and updates.

use offermill::{Change, TaskState};

use super::fleet::{Batch, Fleet};
use super::plain::UpdateOutcome;
use super::scheduler::{Baseline, Ours, Scheduler};

/// Compares all that both answer to the fleet's offers: to agents that they meet, and to agents that they know.
/// Executors end once the next batch is answered, so that what they held is used again.
///
/// # Panics
/// When an answer differs.
pub(crate) fn check(ours: &mut Ours, baseline: &mut Baseline, fleet: &Fleet) {
    let mut live: (Vec<String>, Vec<String>) = Default::default();
    for batch in fleet.met.iter().chain(&fleet.stream) {
        ours.answer(batch);
        baseline.answer(batch);
        compare(ours, baseline, batch);
        ours.end_all(&live.0);
        baseline.end_all(&live.1);
        ours.names(&mut live.0);
        baseline.names(&mut live.1);
        assert_eq!(live.0.len(), live.1.len());
    }
    ours.end_all(&live.0);
    baseline.end_all(&live.1);
    compare_totals(ours, baseline);
}

/// Compares what both make of an update about an executor, under the names that it has with each.
///
/// # Panics
/// When that differs.
pub(crate) fn check_update(
    (ours, baseline): (&mut Ours, &mut Baseline),
    (our_name, plain_name): (&str, &str),
    state: TaskState,
) {
    let outcome = ours.outcome_of(our_name, state);
    let expected = match (outcome.change, outcome.freed) {
        (Change::UnknownExecutor, None) => UpdateOutcome::Unknown,
        (Change::Nothing, None) => UpdateOutcome::Nothing,
        (Change::Running, None) => UpdateOutcome::Running,
        (Change::Ended(_), Some(freed)) => UpdateOutcome::Ended(freed.cores, freed.memory),
        other => unreachable!("{other:?}"),
    };
    assert_eq!(expected, baseline.outcome_of(plain_name, state), "{our_name} {state:?}");
    compare_totals(ours, baseline);
}

fn compare_totals(ours: &Ours, baseline: &Baseline) {
    let (totals, unknown_updates) = (ours.kernel().totals(), ours.kernel().unknown_updates());
    assert_eq!((totals.executors, totals.cores, unknown_updates), baseline.plain.totals());
}

fn compare(ours: &Ours, baseline: &Baseline, batch: Batch) {
    let (decisions, answer) = (&ours.decisions, &baseline.answer);
    assert_eq!(decisions.declines(), answer.declines);
    assert_eq!(decisions.accepts().len(), answer.accepts.len());
    assert_eq!(decisions.declines().len() + decisions.accepts().len(), batch.len());
    for (ours, plain) in decisions.accepts().zip(&answer.accepts) {
        assert_eq!(ours.offers, [plain.offer]);
        assert_eq!(ours.refuse, answer.leftover_refuse);
        let placed = &answer.placed[plain.placed.0 as usize..plain.placed.1 as usize];
        assert_eq!(ours.executors.len(), placed.len());
        for (executor, row) in ours.executors.iter().zip(placed) {
            assert_eq!(executor.id.sequence(), row.sequence);
            assert_eq!(
                (executor.resources.cores, executor.resources.memory),
                (row.cores, row.memory)
            );
            let pieces = &answer.pieces[row.pieces.0 as usize..row.pieces.1 as usize];
            assert_eq!(ours.pieces(executor), pieces);
        }
    }
}
