//! Checks executors that are bound late: invariant 47.

use super::expected_cluster::ExpectedCluster;
use super::rule::RuleViolation;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::cluster::simulated::wire::AgentRef;
use crate::kernel::{Phase, ResourceSums};
use crate::resources::ExecutorResources;
use crate::time::Timestamp;

impl ExpectedCluster {
    /// An executor is bound to an agent: once, and only if the agent takes it.
    pub(super) fn bind(
        &mut self,
        executor: &str,
        agent_id: &str,
        settings: FrameworkSettings,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let broken = |what: String| Err((47, format!("executor {executor} {what}")));
        let Some(agent) = AgentRef::parse(agent_id) else {
            return broken(format!("is bound to {agent_id}"));
        };
        if let Some(why) = self.objection(agent, settings, now) {
            return broken(format!("is bound to {agent}, {why}"));
        }
        let Some(entry) = self.executors.get_mut(executor) else {
            return broken(format!("is bound to {agent}, and isn't there"));
        };
        if let Some(before) = entry.agent.replace(agent) {
            return broken(format!("is bound to {agent}, and is on {before}"));
        }
        if entry.is_unwelcome {
            return broken(format!("is bound to {agent}, and was found unwelcome"));
        }
        // While it had no agent, it was in no doubt.
        entry.reconciled_at = entry.reconciled_at.max(now);
        let seen = self.checked_at;
        let holder = self.agents.entry(agent).or_default();
        holder.executors += 1;
        holder.failed = false;
        holder.seen = holder.seen.max(seen);
        Ok(())
    }

    /// An executor is found unwelcome on an agent: only if the agent doesn't take it.
    pub(super) fn refuse(
        &mut self,
        executor: &str,
        agent_id: &str,
        settings: FrameworkSettings,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let agent = AgentRef::parse(agent_id).unwrap_or_default();
        let objection = self.objection(agent, settings, now);
        match self.executors.get_mut(executor) {
            Some(entry) if entry.agent.is_none() && !entry.is_unwelcome && objection.is_some() => {
                entry.is_killed = true;
                entry.is_unwelcome = true;
                Ok(())
            }
            _ => Err((47, format!("executor {executor} is found unwelcome on {agent_id}"))),
        }
    }

    /// Why an executor that is found on the agent must be killed.
    fn objection(
        &self,
        agent: AgentRef,
        settings: FrameworkSettings,
        now: Timestamp,
    ) -> Option<&'static str> {
        let is_excluded = self.agent(agent).is_some_and(|agent| now < agent.excluded_until);
        if !settings.allows_zone(agent.machine % self.zones) {
            Some("whose zone isn't allowed")
        } else {
            is_excluded.then_some("which is excluded")
        }
    }

    /// What counted executors use that aren't bound.
    pub(super) fn used_unbound(&self) -> ResourceSums {
        let unbound = self.executors.values().filter(|entry| entry.agent.is_none());
        let counted = unbound.filter(|entry| entry.phase != Phase::GivenUp);
        let used = counted.map(|entry| {
            let ExecutorResources { cores, memory, gpus, .. } = entry.resources;
            ResourceSums { cores, memory, gpus }
        });
        used.fold(ResourceSums::NONE, ResourceSums::saturating_add)
    }
}
