//! The offer path: from a batch of offers to decisions.

pub(crate) mod agent_cache;
pub(crate) mod candidates;
pub(crate) mod carve;
pub(crate) mod commit;
pub(crate) mod decision;
pub(crate) mod decline;
pub(crate) mod eligibility;
pub(crate) mod fingerprint;
pub(crate) mod handler;
pub(crate) mod kept_answer;
pub(crate) mod locality;
pub(crate) mod offered;
pub(crate) mod piece;
pub(crate) mod placement;
pub(crate) mod queues;
pub(crate) mod remainder;
pub(crate) mod reused_rows;
pub(crate) mod tasks;
