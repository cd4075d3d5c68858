//! Checks that the kernel forgets agents: invariant 25.

use super::expected_cluster::ExpectedCluster;
use super::rule::RuleViolation;
use crate::time::Timestamp;

/// How long the kernel may remember an agent without executors, exclusion or failures, in milliseconds: 15 min, a
/// minute until its next check, and a margin.
const AGENT_REMEMBERED_MS: u64 = 17 * 60_000;
/// How long the kernel may remember too many agents before that counts as a violation, in milliseconds.
const TOO_MANY_AGENTS_MS: u64 = 120_000;

impl ExpectedCluster {
    /// Checks that the kernel, which knows `known` agents, has forgotten agents that were not offered lately, hold no
    /// executors, and aren't excluded or suspect.
    pub(super) fn check_agents_forgotten(
        &mut self,
        known: usize,
        now: Timestamp,
        virtual_now: u64,
    ) -> Result<(), RuleViolation> {
        self.checked_at = virtual_now;
        let window = self.rule.window;
        self.agents.retain(|_, agent| {
            let recent = agent.failures.last().is_some_and(|at| now.since(*at) <= window);
            agent.executors > 0
                || agent.seen + AGENT_REMEMBERED_MS >= virtual_now
                || now < agent.excluded_until
                || now < agent.suspect_until
                || recent
        });
        if known <= self.agents.len() {
            self.too_many_agents_since = None;
            return Ok(());
        }
        let since = *self.too_many_agents_since.get_or_insert(virtual_now);
        if virtual_now - since < TOO_MANY_AGENTS_MS {
            return Ok(());
        }
        Err((25, format!("the kernel remembers {known} agents, {} would do", self.agents.len())))
    }
}
