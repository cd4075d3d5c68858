//! Totals of offers and their rate, as text.

use offermill::OfferCounts;

use crate::text::format::grouped;

/// As in `12 seen, 6 accepted, 6 declined (5 executor limit reached, 1 too little memory)`.
pub(crate) fn offers(counts: &OfferCounts) -> String {
    let mut reasons: Vec<_> = counts.declines().filter(|(_, offers)| *offers > 0).collect();
    reasons.sort_by_key(|(_, offers)| std::cmp::Reverse(*offers));
    let declined: u64 = reasons.iter().map(|(_, offers)| offers).sum();
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(kind, offers)| format!("{} {}", grouped(*offers), kind.as_str()))
        .collect();
    let reasons = match reasons.is_empty() {
        true => String::new(),
        false => format!(" ({})", reasons.join(", ")),
    };
    let seen = grouped(counts.offers);
    let accepted = grouped(counts.accepted);
    format!("{seen} seen, {accepted} accepted, {} declined{reasons}", grouped(declined))
}

/// As in `12.5/s`.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        small if small < 100.0 => format!("{small:.1}/s"),
        large => format!("{}/s", grouped(large as u64)),
    }
}
