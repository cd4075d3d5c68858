//! Checks which executors the report of a drain names: invariant 23.

use super::expected_cluster::ExpectedCluster;
use super::rule::RuleViolation;
use crate::status::Fate;

impl ExpectedCluster {
    /// Checks that the report of the drain names exactly the executors that have not ended.
    pub(super) fn agrees_with_fates<'a>(
        &self,
        fates: impl Iterator<Item = (&'a str, Fate)>,
    ) -> Result<(), RuleViolation> {
        let mut remaining: Vec<&str> = self.executors.keys().map(String::as_str).collect();
        let open = fates.filter(|(_, fate)| matches!(fate, Fate::Alive | Fate::Unreachable));
        let mut reported: Vec<&str> = open.map(|(name, _)| name).collect();
        remaining.sort_unstable();
        reported.sort_unstable();
        if remaining == reported {
            return Ok(());
        }
        Err((23, format!("the report names {reported:?} as left, but {remaining:?} are")))
    }
}
