//! Updates that are ignored because an agent reports an executor that is on another one, and their reports: one for
//! each agent, and one whenever the number of such updates reaches a power of ten.

use std::collections::BTreeSet;

/// The maximum number of agents that are told apart.
const AGENTS_MAX: usize = 16;

/// The updates that were ignored so far.
#[derive(Debug, Default)]
pub(super) struct MisattributedUpdates {
    /// The agents that were reported.
    agents: BTreeSet<String>,
    updates: u64,
}

impl MisattributedUpdates {
    /// Counts an update of `agent_id` about an executor that is on the agent `actual`. Returns the report, if one is
    /// due.
    pub(super) fn count(&mut self, executor: &str, agent_id: &str, actual: &str) -> Option<String> {
        self.updates = self.updates.saturating_add(1);
        let is_new = !self.agents.contains(agent_id) && self.agents.len() < AGENTS_MAX;
        if is_new {
            self.agents.insert(agent_id.to_owned());
        }
        let updates = self.updates;
        let is_power = updates >= 10 && updates == 10_u64.pow(updates.ilog10());
        let what =
            format!("agent {agent_id} reported executor {executor}, which is on agent {actual}");
        match (is_new, is_power) {
            (_, true) => {
                Some(format!("{updates} updates were ignored so far, the last one because {what}"))
            }
            (true, false) => Some(format!("an update was ignored: {what}")),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: updates without end make a bounded number of reports, and are counted. Method: a hundred thousand updates
    /// of a thousand agents.
    #[test]
    fn reports_are_bounded() {
        let mut updates = MisattributedUpdates::default();
        let reports: Vec<_> = (0..100_000_u32)
            .filter_map(|number| updates.count("e", &format!("S{}", number % 1000), "T"))
            .collect();
        assert_eq!(reports.len(), AGENTS_MAX + 4, "{reports:#?}");
        assert_eq!(
            reports.last().map(String::as_str),
            Some(
                "100000 updates were ignored so far, the last one because agent S999 reported executor e, which is on \
                 agent T"
            )
        );
    }
}
