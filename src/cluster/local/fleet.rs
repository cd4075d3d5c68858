//! All agents of the cluster, and the offers that are open.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::agent::{Agent, Offered, Room, Seat};
use crate::engine::cluster_manager::OwnedOffer;

/// The agents, each in its seat. A lost agent leaves its seat empty; who comes back has another id.
pub(super) struct Fleet {
    framework_id: String,
    interval: Duration,
    seats: Vec<Seat>,
    agents: Vec<Option<Agent>>,
    /// Open offers, and whose they are.
    open: HashMap<String, usize>,
    agents_named: u64,
    offers_named: u64,
    suppressed: bool,
}

/// An agent that was lost: its id, and the offer that was open.
pub(super) struct LostAgent {
    pub(super) id: String,
    pub(super) offer: Option<String>,
}

impl Fleet {
    pub(super) fn new(framework_id: String, seats: Vec<Seat>, interval: Duration) -> Fleet {
        let agents = seats.iter().map(|_| None).collect();
        let mut fleet = Fleet {
            framework_id,
            interval,
            seats,
            agents,
            open: HashMap::new(),
            agents_named: 0,
            offers_named: 0,
            suppressed: false,
        };
        let now = Instant::now();
        for seat in 0..fleet.seats.len() {
            fleet.restore(seat, now);
        }
        fleet
    }

    /// Puts a new agent into an empty seat.
    pub(super) fn restore(&mut self, seat: usize, now: Instant) {
        if let (Some(place @ None), Some(seat)) = (self.agents.get_mut(seat), self.seats.get(seat))
        {
            let id = format!("{}-S{}", self.framework_id, self.agents_named);
            self.agents_named += 1;
            *place = Some(Agent::new(id, seat.clone(), now));
        }
    }

    /// Empties a seat; `None` if it was empty.
    pub(super) fn lose(&mut self, seat: usize) -> Option<LostAgent> {
        let mut agent = self.agents.get_mut(seat)?.take()?;
        let offer = agent.take_offered().map(|offered| offered.id);
        if let Some(offer) = &offer {
            self.open.remove(offer);
        }
        Some(LostAgent { id: agent.id, offer })
    }

    /// The agent in a seat, if it is still the one with this id.
    pub(super) fn agent(&mut self, seat: usize, id: &str) -> Option<&mut Agent> {
        self.agents.get_mut(seat)?.as_mut().filter(|agent| agent.id == id)
    }

    /// What can be offered now.
    pub(super) fn offers(&mut self, now: Instant) -> Vec<OwnedOffer> {
        if self.suppressed {
            return Vec::new();
        }
        let mut offers = Vec::new();
        for (seat, agent) in self.agents.iter_mut().enumerate() {
            let Some(agent) = agent else { continue };
            if agent.offers_from().is_some_and(|from| from <= now) {
                let id = format!("{}-O{}", self.framework_id, self.offers_named);
                self.offers_named += 1;
                self.open.insert(id.clone(), seat);
                offers.push(agent.offer(id, now, self.interval));
            }
        }
        offers
    }

    /// When there will be something to offer, if nothing else happens.
    pub(super) fn offers_next(&self) -> Option<Instant> {
        let agents = self.agents.iter().flatten().filter(|_| !self.suppressed);
        agents.filter_map(Agent::offers_from).min()
    }

    pub(super) fn decline(&mut self, offers: &[String], refuse: Duration, now: Instant) {
        for id in offers {
            if let Some((agent, offered)) = self.close(id) {
                agent.refuse(offered.room, refuse, now);
            }
        }
    }

    pub(super) fn suppress(&mut self) {
        self.suppressed = true;
    }

    pub(super) fn revive(&mut self) {
        self.suppressed = false;
        self.agents.iter_mut().flatten().for_each(Agent::revive);
    }

    /// Ends the offers that an accept names. As in Mesos, all must be open and of the agent named,
    /// or none is used; and as an agent has no more than one open, that is one offer.
    ///
    /// # Errors
    /// A sentence that says which is not valid.
    pub(super) fn redeem(
        &mut self,
        offers: &[String],
        agent_id: &str,
    ) -> Result<(usize, Offered), String> {
        let mut redeemed = None;
        let mut invalid = None;
        for id in offers {
            let seat = self.open.get(id).copied();
            match (seat, self.close(id)) {
                (Some(seat), Some((agent, offered))) if agent.id == agent_id => {
                    redeemed = Some((seat, offered));
                }
                _ => invalid = Some(format!("offer {id:?} of agent {agent_id:?} is not open")),
            }
        }
        match (redeemed, invalid) {
            (_, Some(invalid)) => Err(invalid),
            (None, None) => Err("no offer was named".to_owned()),
            (Some(redeemed), None) => Ok(redeemed),
        }
    }

    fn close(&mut self, offer: &str) -> Option<(&mut Agent, Offered)> {
        let agent = self.agents.get_mut(self.open.remove(offer)?)?.as_mut()?;
        let offered = agent.take_offered()?;
        Some((agent, offered))
    }

    /// Notes that an executor ended; an agent that was lost meanwhile needs no note.
    pub(super) fn free_up(&mut self, seat: usize, agent_id: &str, room: Room, port: Option<u16>) {
        if let Some(agent) = self.agent(seat, agent_id) {
            agent.free_up(room, port);
        }
    }
}
