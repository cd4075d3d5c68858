//! Adoption of executors of an earlier run in the reference model.

use std::collections::BTreeSet;

use offermill::Timestamp;
use offermill::limits::EXECUTORS_PER_AGENT_MAX;

use super::{Agent, Executor, Life, Model};
use crate::history::Relic;

impl Model {
    /// Returns the number of each executor that is adopted. Returns `None` if executors were adopted before, because
    /// that is possible only once.
    pub(crate) fn adopt(&mut self, relics: &[Relic], now: Timestamp) -> Option<Vec<Option<u64>>> {
        if std::mem::replace(&mut self.adopted, true) {
            return None;
        }
        let mut names = BTreeSet::new();
        let adopt = |relic: &Relic| {
            let is_new = names.insert(relic.name);
            if is_new { self.take_in(relic, now) } else { None }
        };
        Some(relics.iter().map(adopt).collect())
    }

    fn take_in(&mut self, relic: &Relic, now: Timestamp) -> Option<u64> {
        let barred = !relic.agent.is_empty() && self.is_barred(relic, now);
        if barred {
            return None;
        }
        let executor = Executor {
            agent: relic.agent.to_owned(),
            late: relic.agent.is_empty(),
            unwelcome: false,
            cores: relic.cores,
            memory: 100,
            gpus: relic.gpus,
            port: None,
            life: Life::Launching,
            placed_at: now,
            since: now,
            asked_to_end: false,
            // Its state is unknown.
            doubtful: true,
            adopted: true,
            returned: false,
            tag: None,
        };
        if let Some(agent) = self.agents.get_mut(relic.agent) {
            // The exclusion had expired.
            agent.excluded_until = None;
        }
        let room = self.has_room_for(&executor);
        if let (true, Some(agent)) = (room, self.agents.get_mut(relic.agent)) {
            agent.failed = None;
        }
        room.then(|| {
            self.executors.push(executor);
            self.executors.len() as u64 - 1
        })
    }

    /// Whether the agent of an executor takes none.
    fn is_barred(&mut self, relic: &Relic, now: Timestamp) -> bool {
        let agent = self.agents.entry(relic.agent.to_owned()).or_insert_with(|| Agent::met(now));
        agent.met = true;
        agent.excluded_until.is_some_and(|until| now < until)
            || now < agent.suspect_until
            || self.on_agent(relic.agent) >= EXECUTORS_PER_AGENT_MAX
    }
}
