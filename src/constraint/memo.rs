//! Cache of a constraint's last result for one agent, so that it isn't evaluated again for every offer.

use super::Constraint;
use super::facts::OfferFacts;
use super::mismatch::Unmet;
use crate::offer::Offer;

/// The last result of a constraint for one agent, stored with a hash of the constraint and the attributes that it
/// examined.
///
/// The result is used again only for the same constraint or a clone of it, and only while the agent's attributes that
/// the constraint examines are unchanged; likewise host name, region and zone, if the constraint examines them. If the
/// constraint or the attributes change, a stale result is returned with a probability of about 2⁻⁶⁴.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memo {
    asked: u64,
    unmet: Option<Unmet>,
}

impl Memo {
    /// Whether the last answer was that the constraint isn't met.
    #[inline]
    pub(crate) fn was_unmet(&self) -> bool {
        self.unmet.is_some()
    }
}

impl Constraint {
    /// Like [`Constraint::check`], but returns the result stored in `memo` if it still applies. Use one memo per agent.
    ///
    /// # Errors
    /// Same as [`Constraint::check`].
    #[inline]
    pub fn check_with(&self, memo: &mut Memo, offer: &Offer<'_>) -> Result<(), Unmet> {
        let Some(compiled) = &self.0 else { return Ok(()) };
        let asked = compiled.fingerprints.of(offer);
        if memo.asked != asked {
            let unmet = compiled.program.run(&OfferFacts::of_offer(offer)).err();
            *memo = Memo { asked, unmet };
        }
        memo.unmet.map_or(Ok(()), Err)
    }
}
