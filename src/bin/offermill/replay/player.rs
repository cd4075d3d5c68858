//! What plays events.

use crate::scenario::{After, Call, What};

/// A scheduler that is told what happens.
pub(super) trait Player {
    /// Takes in an event; adds the calls that follow, in their order. Some events have a result.
    fn play(
        &mut self,
        at_ms: Option<u64>,
        what: &What,
        calls: &mut Vec<Call>,
    ) -> Option<serde_json::Value>;

    /// How things stand now.
    fn after(&self) -> After;
}
