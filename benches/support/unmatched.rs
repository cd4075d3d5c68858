//! Agents that don't meet [`MET`](super::MET), for a kernel whose other agents do.

use offermill::{Attribute, Offer};

use super::fleet::{Batch, Fleet};

/// A fleet's offers from agents of other names, whose zone is the wrong one.
pub(crate) fn unmatched(fleet: &Fleet) -> Fleet {
    let attributes: &[Attribute<'_>] =
        vec![Attribute::text("rack", "r7"), Attribute::text("zone", "north")].leak();
    let stranger = |offer: &Offer<'static>| {
        let agent_id: &str = format!("{}-north", offer.agent_id).leak();
        Offer::new(offer.id, agent_id, offer.hostname, offer.resources, attributes)
    };
    let all = |batches: &[Batch]| -> Vec<Batch> {
        let turned = batches.iter().map(|batch| batch.iter().map(stranger).collect::<Vec<_>>());
        turned.map(|batch| &*batch.leak()).collect()
    };
    Fleet { met: all(&fleet.met), stream: all(&fleet.stream) }
}
