//! Answers that are reported as sent after a revive.

use offermill::DemandCall::{Revive, Suppress};
use offermill::{Decisions, Reason, TaskState};

use super::Fixture;
use crate::world::{OfferData, Setup, at, lend};

/// Goal: only refusals at a cap make a revive that overtook them due again. Method: a batch that is declined because
/// no subscription is active, though the limit is reached too; a revive in the next subscription; then the batch is
/// reported as sent.
#[test]
fn refusals_without_a_subscription_undo_no_revive() {
    let revive_interval = std::time::Duration::ZERO;
    let setup = Setup { limit: Some(1), revive_interval, ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    let executor = fixture.start_on("S1", 0);
    fixture.kernel.disconnected();
    let (mut handler, mut late) = (fixture.kernel.handler(), Decisions::new());
    let batch = [OfferData::new("S2", 1.0, 100.0)];
    lend(&batch, |offers| handler.resource_offers(offers, at(1), &mut late));
    assert_eq!(late.declines()[0].reason, Reason::Disconnected);
    fixture.kernel.registered();
    assert_eq!(fixture.kernel.poll_demand(at(2)), Some(Suppress));
    fixture.update(executor, TaskState::Finished, 3);
    assert_eq!(fixture.kernel.poll_demand(at(4)), Some(Revive));
    fixture.kernel.answers_sent(&late);
    assert_eq!(fixture.kernel.poll_demand(at(5)), None);
}
