//! A handler's private memory of agents: found by id without touching anything that another thread writes.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::agents::{AgentKey, Agents, Barred};
use crate::constraint::{self, Constraint};
use crate::offer::{Attribute, Offer};
use crate::time::Timestamp;

/// An agent that no offer came from for so long, in seconds, is forgotten when the memory would have to grow.
const FORGET_AFTER: u32 = 900;
/// How often, in seconds, a handler tells the others that an agent is there.
const NOTE_EVERY: u32 = 60;
/// So many agents are remembered before any is forgotten.
const KEEP: usize = 1024;

/// What a handler knows of an agent.
#[derive(Debug)]
pub(crate) struct Sighting {
    id: Box<str>,
    /// The shared entry, once the agent was a candidate for placement.
    agent: Option<AgentKey>,
    fingerprint: u64,
    /// One more than the version of the constraint that was answered; 0 for none.
    answered: u64,
    /// The last batch that the agent was a candidate in, and its first group there.
    pub(crate) batch: u32,
    pub(crate) group: u32,
    /// When an offer came last, and when the shared entry was told last, in seconds.
    seen: u32,
    noted: u32,
    meets: bool,
}

fn seconds(now: Timestamp) -> u32 {
    u32::try_from(now.as_millis() / 1000).unwrap_or(u32::MAX)
}

impl Sighting {
    /// Whether the agent meets the constraint; worked out when the constraint or the attributes are new.
    pub(crate) fn meets(
        &mut self,
        constraint: &Constraint,
        version: u64,
        attributes: &[Attribute<'_>],
    ) -> bool {
        let fingerprint = constraint::fingerprint(attributes);
        if self.answered != version + 1 || self.fingerprint != fingerprint {
            self.meets = constraint.matches(attributes);
            self.answered = version + 1;
            self.fingerprint = fingerprint;
        }
        self.meets
    }

    /// The agent's shared entry and how many executors it has room for, or why none. Meets the agent again if it was
    /// forgotten meanwhile.
    pub(crate) fn room(
        &mut self,
        agents: &Agents,
        offer: &Offer<'_>,
        now: Timestamp,
    ) -> Result<(AgentKey, u32), Barred> {
        if let Some(key) = self.agent {
            if self.seen.saturating_sub(self.noted) >= NOTE_EVERY {
                agents.note_seen(key, now);
                self.noted = self.seen;
            }
            match agents.room(key, now) {
                Err(Barred::Retired) => {}
                room => return room.map(|room| (key, room)),
            }
        }
        let key = agents.meet(offer.agent_id, offer.hostname, now).ok_or(Barred::Full)?;
        agents.note_seen(key, now);
        self.agent = Some(key);
        self.noted = self.seen;
        agents.room(key, now).map(|room| (key, room))
    }
}

/// All agents that a handler remembers: at most twice those that it saw in the last quarter of an hour, or
/// [`KEEP`].
#[derive(Debug)]
pub(crate) struct Sightings {
    table: HashTable<Sighting>,
    hasher: RandomState,
    sweep_at: usize,
}

impl Sightings {
    pub(crate) fn new() -> Sightings {
        Sightings { table: HashTable::new(), hasher: RandomState::default(), sweep_at: KEEP }
    }

    /// The agent with this id, remembered from now on.
    pub(crate) fn of(&mut self, id: &str, now: Timestamp) -> &mut Sighting {
        let hash = self.hasher.hash_one(id);
        let hasher = &self.hasher;
        let seconds = seconds(now);
        if self.table.len() >= self.sweep_at
            && self.table.find(hash, |known| *known.id == *id).is_none()
        {
            let table = &mut self.table;
            table.retain(|known| seconds.saturating_sub(known.seen) <= FORGET_AFTER);
            self.sweep_at = (table.len() * 2).max(KEEP);
            table.shrink_to(self.sweep_at, |known| hasher.hash_one(&*known.id));
        }
        let entry =
            self.table.entry(hash, |known| *known.id == *id, |known| hasher.hash_one(&*known.id));
        let sighting = entry
            .or_insert_with(|| Sighting {
                id: id.into(),
                agent: None,
                fingerprint: 0,
                answered: 0,
                batch: 0,
                group: 0,
                seen: seconds,
                noted: seconds,
                meets: false,
            })
            .into_mut();
        sighting.seen = seconds;
        sighting
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: agents that come and go leave nothing behind. Method: a million ids over a day, one seen throughout.
    #[test]
    fn memory_follows_the_agents_that_are_there() {
        let mut sightings = Sightings::new();
        for number in 0..1_000_000u64 {
            let now = Timestamp::from_millis(number * 86_400 / 1000);
            sightings.of(&format!("agent-{number}"), now);
            sightings.of("always", now).batch = 7;
        }
        assert!(sightings.len() < 40_000, "{}", sightings.len());
        assert!(sightings.table.capacity() < 80_000, "{}", sightings.table.capacity());
        assert_eq!(sightings.of("always", Timestamp::MAX).batch, 7);
    }
}
