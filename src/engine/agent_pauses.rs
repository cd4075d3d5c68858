//! Agents that don't start what they are given, such as one without room on its disk, or without the program of hosts:
//! each gets no tasks for a while, the longer the more often that happens in a row. What was never started is no loss
//! of its task.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use offermill::{ResourceSums, Room, Rooms, Timestamp};

/// The first pause of an agent. Each further one is twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How often the host of an agent must have failed before it ran, in a row, to count as one that never will.
const HOST_FAILURES_MAX: u32 = 3;

/// The most hosts that are kept in mind after they have ended before they ran: until their tasks' ends are told.
const UNSTARTED_MAX: usize = 1024;

/// The agents that had pauses, until they start something.
#[derive(Debug, Default)]
pub(super) struct AgentPauses {
    agents: HashMap<String, AgentPause>,
    /// Some host of the run has run.
    has_host_run: bool,
    /// The tags of the last hosts that have ended before they ran.
    unstarted: BTreeSet<u64>,
}

/// What is known of an agent that has not started something.
#[derive(Debug)]
struct AgentPause {
    /// How many pauses it has had in a row.
    count: u32,
    /// How many hosts have failed there in a row before they ran.
    host_failures: u32,
    until: Timestamp,
    /// The present pause, until it is told.
    untold: Option<Duration>,
    why: String,
}

impl AgentPauses {
    /// An agent has not started a task or a host. It has a pause from now on, unless it has one.
    pub(super) fn refused(&mut self, agent_id: &str, why: &str, now: Timestamp) {
        let fresh = || AgentPause {
            count: 0,
            host_failures: 0,
            until: Timestamp::ORIGIN,
            untold: None,
            why: String::new(),
        };
        let agent = self.agents.entry(agent_id.to_owned()).or_insert_with(fresh);
        why.clone_into(&mut agent.why);
        if agent.count > 0 && now < agent.until {
            return;
        }
        let pause = PAUSE_MIN.saturating_mul(1 << agent.count.min(16)).min(PAUSE_MAX);
        agent.count = agent.count.saturating_add(1);
        agent.until = now.plus(pause);
        agent.untold = Some(pause);
    }

    /// The host with this tag has ended before it ran.
    pub(super) fn note_unstarted(&mut self, tag: u64) {
        if self.unstarted.insert(tag) && self.unstarted.len() > UNSTARTED_MAX {
            self.unstarted.pop_first();
        }
    }

    /// Whether the host with this tag has ended before it ran.
    pub(super) fn is_unstarted(&self, tag: u64) -> bool {
        self.unstarted.contains(&tag)
    }

    /// The host of an agent has failed before it ran.
    pub(super) fn host_failed(&mut self, agent_id: &str, why: &str, now: Timestamp) {
        self.refused(agent_id, why, now);
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.host_failures = agent.host_failures.saturating_add(1);
        }
    }

    /// An agent has started a task or a host: its next pause is a first one. The present one goes on.
    pub(super) fn started(&mut self, agent_id: &str, is_host: bool) {
        self.has_host_run |= is_host;
        if let Some(agent) = self.agents.get_mut(agent_id) {
            (agent.count, agent.host_failures) = (0, 0);
        }
    }

    /// The length of the pause that an agent has, once.
    pub(super) fn tell(&mut self, agent_id: &str) -> Option<Duration> {
        self.agents.get_mut(agent_id)?.untold.take()
    }

    /// The rooms without those of agents that have a pause, which stay in their places and are empty; `None` if there
    /// are none.
    pub(super) fn open_rooms(
        &self,
        rooms: &Rooms<'_>,
        list: &[Room],
        now: Timestamp,
    ) -> Option<Vec<Room>> {
        if self.agents.values().all(|agent| agent.until <= now) {
            return None;
        }
        let is_paused = |room: &Room| {
            let agent = rooms.offer(room).and_then(|offer| self.agents.get(offer.agent_id));
            agent.is_some_and(|agent| now < agent.until)
        };
        let open = |room: &Room| match is_paused(room) {
            true => Room::new(room.offer(), ResourceSums::NONE, 0),
            false => *room,
        };
        Some(list.iter().map(open).collect())
    }

    /// Why no host will run: none has, and on each of these agents several have failed. `None` if one may.
    pub(super) fn no_host_runs<'a>(
        &self,
        agent_ids: impl Iterator<Item = &'a str>,
    ) -> Option<String> {
        if self.has_host_run {
            return None;
        }
        let mut why = None;
        for id in agent_ids {
            let agent = self.agents.get(id).filter(|it| it.host_failures >= HOST_FAILURES_MAX)?;
            why.get_or_insert(&agent.why);
        }
        why.cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: pauses grow from 1 s to 60 s, begin again once something starts, and each is told once; what comes in a
    /// pause adds nothing. Method: refusals at the end of each pause, also several at once; a start.
    #[test]
    fn pauses_grow_and_begin_again() {
        let (mut pauses, mut now) = (AgentPauses::default(), Timestamp::ORIGIN);
        let mut seconds = Vec::new();
        for _ in 0..9 {
            pauses.refused("S1", "full", now);
            pauses.refused("S1", "full", now);
            let pause = pauses.tell("S1").unwrap();
            assert_eq!((pauses.tell("S1"), pauses.tell("S2")), (None, None));
            assert_eq!(pauses.agents["S1"].until, now.plus(pause));
            seconds.push(pause.as_secs());
            now = now.plus(pause);
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        pauses.started("S1", false);
        pauses.refused("S1", "full", now);
        assert_eq!(pauses.tell("S1"), Some(PAUSE_MIN));
    }

    /// Goal: no host is said to run only if each agent has failed three times in a row, and none ever ran. Method: two
    /// agents, one after the other; hosts that run.
    #[test]
    fn hosts_that_never_run_are_told() {
        let mut pauses = AgentPauses::default();
        let agents = || ["S1", "S2"].into_iter();
        assert_eq!(pauses.no_host_runs(std::iter::empty()), None);
        for round in 0..3 {
            let now = Timestamp::ORIGIN.plus(Duration::from_secs(round * 100));
            pauses.host_failed("S1", "not found", now);
            assert_eq!(pauses.no_host_runs(agents()), None);
        }
        (0..3).for_each(|_| pauses.host_failed("S2", "no", Timestamp::ORIGIN));
        assert_eq!(pauses.no_host_runs(agents()).as_deref(), Some("not found"));
        pauses.started("S2", true);
        (0..3).for_each(|_| pauses.host_failed("S2", "no", Timestamp::ORIGIN));
        assert_eq!(pauses.no_host_runs(agents()), None);
    }
}
