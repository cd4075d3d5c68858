//! What the plain loop knows of agents.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use offermill::constraint::{Memo, Unmet};
use offermill::{Constraint, Offer, Timestamp};

#[derive(Default)]
pub(super) struct Agents {
    table: HashTable<Agent>,
    hasher: RandomState,
    /// By the agent's number.
    pub(super) accounts: Vec<AgentAccount>,
    /// By the agent's number, for reports.
    pub(super) names: Vec<Name>,
}

/// What an agent is called.
pub(super) struct Name {
    pub(super) id: Arc<str>,
    pub(super) hostname: Arc<str>,
}

#[derive(Default)]
pub(super) struct AgentAccount {
    /// Live ones.
    pub(super) executors: u32,
    /// No executor is started there before.
    pub(super) excluded_until: Timestamp,
}

struct Agent {
    id: Arc<str>,
    number: u32,
    memo: Memo,
    seen: Timestamp,
}

impl Agents {
    /// The number of an offer's agent, if it meets the constraint: worked out at first sight, and when its attributes
    /// are new.
    pub(super) fn meeting(
        &mut self,
        constraint: &Constraint,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<u32, Unmet> {
        let hash = self.hasher.hash_one(offer.agent_id);
        let known = |agent: &Agent| *agent.id == *offer.agent_id;
        let agent = match self.table.entry(hash, known, |agent| self.hasher.hash_one(&*agent.id)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.accounts.push(AgentAccount::default());
                let id: Arc<str> = offer.agent_id.into();
                let hostname = offer.hostname.into();
                self.names.push(Name { id: Arc::clone(&id), hostname });
                let agent = Agent {
                    id,
                    number: self.accounts.len() as u32 - 1,
                    memo: Memo::default(),
                    seen: now,
                };
                entry.insert(agent).into_mut()
            }
        };
        agent.seen = now;
        constraint.check_with(&mut agent.memo, offer).map(|()| agent.number)
    }
}
