//! The simulated cluster if it chooses the agents itself: its offers are permits, of which only it knows the agents,
//! and its updates name an executor's agent from the moment at which the executor has arrived there.
//!
//! What can go wrong: it takes long until an executor has its agent, up to a minute, or until faults are over
//! ([`LaunchesHang`](crate::cluster::simulated::FaultKind)); the executor ends or is killed before; its agent dies, is
//! cut off, or excludes itself by failures in the meantime; the constraint changes. All messages are hit by the same
//! faults as others.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Cluster, SimTask, TaskPhase, millis};
use crate::cluster::simulated::event_queue::EventQueue;
use crate::cluster::simulated::rng::Rng;
use crate::cluster::simulated::wire::{AgentRef, MasterEvent, master_update};
use crate::engine::cluster_manager::{AgentFacts, OwnedAttribute, OwnedAttributeValue, Update};
use crate::status::{TaskState, UpdateReason};

/// The time until an executor has its agent, in milliseconds: usual, and longest.
const USUAL_MS: u64 = 3_000;
const LONGEST_MS: u64 = 60_000;

/// What a cluster that chooses the agents knows of the framework.
#[derive(Debug, Default)]
pub(in super::super) struct LateBinding {
    /// The agents that it avoids, and until when.
    avoided: BTreeMap<AgentRef, u64>,
    /// How many zones the constraint allows, from the first; 0 allows all.
    pub(in super::super) zones: u32,
}

impl LateBinding {
    /// Whether no executor may start on the agent.
    pub(super) fn avoids(&self, agent: AgentRef, zone: u32, now: u64) -> bool {
        let is_excluded = self.avoided.get(&agent).is_some_and(|until| now < *until);
        is_excluded || self.zones > 0 && zone >= self.zones
    }

    /// The framework lists the agents to avoid.
    pub(super) fn avoid(&mut self, agents: Vec<(AgentRef, Duration)>, now: u64) {
        let until = |remaining| now.saturating_add(millis(remaining));
        self.avoided = agents.into_iter().map(|(agent, it)| (agent, until(it))).collect();
    }

    /// The time until an executor has its agent.
    pub(super) fn delay(rng: &mut Rng) -> u64 {
        let longest = if rng.percent(10) { LONGEST_MS } else { USUAL_MS };
        rng.between(1, longest)
    }
}

impl SimTask {
    /// The update as the cluster sends it. `zone` is that of the agent if the cluster chooses the agents: then the
    /// update names the agent, and what is known of it, only once the executor is there.
    pub(super) fn describe(&self, zone: Option<u32>, update: Update) -> Update {
        match zone {
            None => update,
            Some(_) if !self.is_named => Update { agent_id: None, ..update },
            Some(zone) => {
                let value = OwnedAttributeValue::Text(format!("z{zone}"));
                let attributes = vec![OwnedAttribute { name: "zone".to_owned(), value }];
                let host = format!("host{}", self.agent.machine);
                update.with_facts(AgentFacts::new(host).with_attributes(attributes))
            }
        }
    }
}

impl Cluster {
    /// The agent's zone, if the cluster chooses the agents.
    pub(super) fn zone_told(&self, agent: AgentRef) -> Option<u32> {
        let machine = self.machines.get(agent.machine as usize)?;
        self.late.as_ref().map(|_| machine.zone)
    }

    /// An update about an executor that isn't there. A cluster that chooses the agents has none for it.
    pub(super) fn without_task(&self, update: Update) -> Update {
        match self.late {
            Some(_) => Update { agent_id: None, ..update },
            None => update,
        }
    }

    /// Reports the state of an executor whose agent the framework doesn't know; nothing while the master can't know it.
    pub(super) fn reconcile_unbound(&mut self, events: &mut EventQueue, executor: &str) {
        let task = self.names.get(executor).map(|cell| &self.tasks[*cell as usize]);
        if let Some(agent) = task.filter(|task| task.visible).map(|task| task.agent) {
            return self.reconcile(events, executor, agent);
        }
        let may_be_absent = task.is_some() || self.is_any_absent();
        if may_be_absent && !self.waited_for_all(events.now) {
            return;
        }
        let (state, reason) = (TaskState::Gone, UpdateReason::Reconciliation);
        let update = master_update(executor, AgentRef::default(), state, reason);
        let update = self.without_task(update);
        self.network.send_event(events, MasterEvent::Update(update));
    }

    /// An executor without an agent that stays so, because the cluster finds none.
    pub(super) fn is_stuck(task: &SimTask) -> bool {
        task.hung && task.phase == TaskPhase::Ordered
    }
}
