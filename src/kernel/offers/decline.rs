//! Declines: of the offers of one candidate, and of a whole batch.

use super::candidates::{Candidate, CandidateSet};
use crate::kernel::reason::{Decline, Reason};
use crate::kernel::state::policy::Policy;
use crate::offer::Offer;
use crate::time::Timestamp;

/// Declines the offers of a candidate on which nothing is placed.
#[inline]
pub(in crate::kernel) fn decline(
    candidates: &CandidateSet,
    candidate: &Candidate,
    policy: &Policy,
    reached_cap: &Option<Reason>,
    now: Timestamp,
    declines: &mut Vec<Decline>,
) {
    let cap = reached_cap.filter(|cap| policy.outranks(cap));
    let own = || candidate.reason.or(*reached_cap).unwrap_or(Reason::Contended);
    let reason = cap.unwrap_or_else(own);
    let refuse = reason.refuse(&policy.config.refuse, now);
    let declined = candidates.offers_of(candidate.first);
    declines.extend(declined.map(|offer| Decline { offer, reason, refuse }));
}

/// Declines a batch for one reason.
#[inline(always)]
pub(in crate::kernel) fn decline_all(
    offers: &[Offer<'_>],
    reason: &Reason,
    policy: &Policy,
    now: Timestamp,
    declines: &mut Vec<Decline>,
) {
    let refuse = reason.refuse(&policy.config.refuse, now);
    declines.extend(Decline::all(offers.len(), reason, refuse));
}
