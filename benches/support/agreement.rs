//! The proof, at each start of a bench, that kernel and baseline give the same answers on its offers.

use super::desk::{Baseline, Desk, Ours};
use super::fleet::{Batch, Fleet};

/// Compares all that both answer to the fleet's offers: to agents that they meet, and to agents that they know.
/// Executors end once the next batch is answered, so that what they held is used again.
///
/// # Panics
/// When an answer differs.
pub(crate) fn check(ours: &mut Ours, baseline: &mut Baseline, fleet: &Fleet) {
    let mut live = (Vec::new(), Vec::new());
    for batch in fleet.met.iter().chain(&fleet.stream) {
        ours.answer(batch);
        baseline.answer(batch);
        compare(ours, baseline, batch);
        live.0.iter().for_each(|name: &String| ours.end(name));
        live.1.iter().for_each(|name: &String| baseline.end(name));
        ours.names(&mut live.0);
        baseline.names(&mut live.1);
        assert_eq!(live.0.len(), live.1.len());
    }
    live.0.iter().for_each(|name| ours.end(name));
    live.1.iter().for_each(|name| baseline.end(name));
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
            assert_eq!((executor.cores, executor.memory), (row.cores, row.memory));
            let pieces = &answer.pieces[row.pieces.0 as usize..row.pieces.1 as usize];
            assert_eq!(ours.pieces(executor), pieces);
        }
    }
}
