//! Late binding in the reference model.

use offermill::constraint::{Mismatch, Unmet};
use offermill::limits::EXECUTORS_PER_AGENT_MAX;
use offermill::{Reason, Timestamp};

use super::{Agent, Model};

/// What a call that binds an executor must return.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Bound {
    Settled { in_doubt: bool },
    Already,
    Elsewhere(String),
    Unwelcome(Option<Reason>),
    Nothing,
}

impl Model {
    /// Binds an executor to an agent. `zone` is what is known of the agent: nothing, that it is in no zone, or the
    /// zone.
    pub(crate) fn bind(
        &mut self,
        number: Option<u64>,
        agent: &str,
        zone: Option<Option<&str>>,
        now: Timestamp,
    ) -> Bound {
        let Some(number) = number.filter(|it| self.life(*it).live() && !agent.is_empty()) else {
            return Bound::Nothing;
        };
        let executor = &self.executors[number as usize];
        if executor.unwelcome {
            return Bound::Unwelcome(None);
        }
        match &*executor.agent {
            "" => {}
            own if own == agent => return Bound::Already,
            other => return Bound::Elsewhere(other.to_owned()),
        }
        if let Some(why) = self.objection(agent, zone, now) {
            self.executors[number as usize].unwelcome = true;
            return Bound::Unwelcome(Some(why));
        }
        let mut in_doubt = false;
        if let Some(agent) = self.agents.get_mut(agent) {
            in_doubt = now < agent.suspect_until;
            agent.candidate_at = agent.candidate_at.max(now);
            // The exclusion has expired.
            agent.excluded_until = None;
            agent.failed = None;
        }
        let executor = &mut self.executors[number as usize];
        executor.agent = agent.to_owned();
        executor.doubtful |= in_doubt;
        Bound::Settled { in_doubt }
    }

    /// Why the agent doesn't take an executor that was started there.
    fn objection(
        &mut self,
        name: &str,
        zone: Option<Option<&str>>,
        now: Timestamp,
    ) -> Option<Reason> {
        let zones = &self.setup.zones;
        let is_met =
            |zone: Option<&str>| zones.is_empty() || zone.is_some_and(|zone| zones.contains(&zone));
        if let Some(zone) = zone.filter(|zone| !is_met(*zone)) {
            let mismatch = zone.map_or(Mismatch::Absent, |_| Mismatch::Differs);
            return Some(Reason::ConstraintUnmet(Unmet { condition: 0, mismatch }));
        }
        let agent = self.agents.entry(name.to_owned()).or_insert_with(|| Agent::met(now));
        agent.met = true;
        if let Some(until) = agent.excluded_until.filter(|until| now < *until) {
            return Some(Reason::AgentExcluded { until });
        }
        (self.on_agent(name) >= EXECUTORS_PER_AGENT_MAX).then_some(Reason::AgentFull)
    }
}
