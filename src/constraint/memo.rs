//! What a constraint said of one agent last, so that it is asked once and not with every offer.

use super::Constraint;
use super::facts::OfferFacts;
use super::mismatch::Unmet;
use crate::offer::Offer;

/// One agent's last answer, with which constraint gave it about which attributes, as a hash of both.
///
/// An answer is given again only by the same constraint or a clone of it, and while those of the
/// agent's attributes that it asks about (and its host name, region and zone, if it asks for them)
/// are the same, but for a chance of about 2⁻⁶⁴ when either changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memo {
    asked: u64,
    unmet: Option<Unmet>,
}

impl Constraint {
    /// The same as [`Constraint::check`], from memory if `memo` has it; an agent's offers all come
    /// with one memo.
    ///
    /// # Errors
    /// As [`Constraint::check`].
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
