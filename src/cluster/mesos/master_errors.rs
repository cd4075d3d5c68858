//! What a master's error messages mean: Mesos gives no codes, so its texts are matched, here and nowhere else.
//!
//! The texts are those of Mesos 1.11; the functions of the master that write them are named.

use hyper::StatusCode;

use crate::cluster::http_client::is_other_leader;

/// Whether the master refuses the offer constraints: regular expressions may cost more than it allows
/// (`OfferConstraintsFilter::create`).
pub(super) fn is_about_constraints(why: &str) -> bool {
    why.contains("AttributeConstraint")
}

/// Whether the framework is completed (`Master::subscribe`).
pub(super) fn is_removed(why: &str) -> bool {
    why.contains("has been removed") || why.contains("is completed")
}

/// Whether the master doesn't know the framework (`Master::Http::scheduler`).
pub(super) fn is_unknown_framework(why: &str) -> bool {
    why.contains("cannot be found")
}

/// Whether this answer means that the master may not know the subscription any more (`Master::Http::scheduler`).
pub(super) fn is_lost(status: StatusCode, why: &str) -> bool {
    let is_lost = ["not subscribed", "stream ID"].iter().any(|text| why.contains(text));
    is_other_leader(status) || is_lost || is_unknown_framework(why)
}

/// Whether an agent has answered, which has the same path as a master, instead of a master.
pub(super) fn is_from_agent(why: &str) -> bool {
    why.contains("Failed to parse body")
}
