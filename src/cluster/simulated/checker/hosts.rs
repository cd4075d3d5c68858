//! Checks hosts of tasks: invariant 49. The books are made from what is placed and reported, by agent; what the
//! kernel's [`Hosts`](crate::Hosts) says of each host must be the same after each step.

use std::collections::BTreeMap;

use super::rule::RuleViolation;
use crate::cluster::simulated::framework::{HOST_TAGS, HostView};
use crate::cluster::simulated::scenario::Scenario;
use crate::engine::{Notice, PlacedExecutor};
use crate::kernel::{Change, TaskHostStage};

/// The hosts of a framework and the tasks in them.
#[derive(Default)]
pub(super) struct HostChecker {
    /// Whether tasks run in hosts.
    is_enabled: bool,
    /// The number of batches so far.
    batch: u64,
    /// By executor id. None of them has ended or was given up.
    hosts: BTreeMap<String, ExpectedHost>,
    /// The executor ids of hosts by agent.
    of_agent: BTreeMap<String, String>,
    /// The host of each task that hasn't ended, also if that host has; by executor id. Tasks and hosts that were given
    /// up are in it until they have ended, with no host.
    tasks: BTreeMap<String, String>,
}

struct ExpectedHost {
    agent_id: String,
    /// The batch that has added it.
    batch: u64,
    stage: TaskHostStage,
    tasks: u32,
}

impl HostChecker {
    pub(super) fn new(scenario: &Scenario) -> HostChecker {
        HostChecker { is_enabled: scenario.has_hosts(), ..HostChecker::default() }
    }

    pub(super) fn batch_begins(&mut self) {
        self.batch += 1;
    }

    /// Follows the executors.
    pub(super) fn noticed(&mut self, notice: &Notice) -> Result<(), RuleViolation> {
        if !self.is_enabled {
            return Ok(());
        }
        let followed = match notice {
            Notice::Placed(placed) => self.placed(placed),
            Notice::Updated { executor, change, .. } => {
                match change {
                    Change::Ended(_) => self.remove(executor, true),
                    Change::Running | Change::Returned => self.runs(executor),
                    _ => {}
                }
                Ok(())
            }
            Notice::GivenUp { executor } => {
                self.remove(executor, false);
                Ok(())
            }
            Notice::Forgotten { executor } => {
                self.tasks.remove(executor);
                Ok(())
            }
            _ => Ok(()),
        };
        followed.map_err(|what| (49, what))
    }

    fn placed(&mut self, placed: &PlacedExecutor) -> Result<(), String> {
        let PlacedExecutor { executor, agent_id, tag, .. } = placed;
        let current = self.of_agent.get(agent_id);
        if tag.is_some_and(|tag| tag >= HOST_TAGS) {
            if let Some(host) = current {
                return Err(format!("agent {agent_id} gets the host {executor}, and has {host}"));
            }
            self.of_agent.insert(agent_id.clone(), executor.clone());
            let (agent_id, stage) = (agent_id.clone(), TaskHostStage::Starting);
            let host = ExpectedHost { agent_id, batch: self.batch, stage, tasks: 0 };
            self.hosts.insert(executor.clone(), host);
            return Ok(());
        }
        let host = current.and_then(|name| Some((name.clone(), self.hosts.get_mut(name)?)));
        let Some((name, host)) = host else {
            return Err(format!("task {executor} is placed on {agent_id}, which has no host"));
        };
        match host.stage {
            TaskHostStage::Up => {}
            TaskHostStage::Starting if host.batch == self.batch => {}
            stage => {
                return Err(format!("task {executor} is placed in {name}, which is {stage:?}"));
            }
        }
        host.tasks += 1;
        self.tasks.insert(executor.clone(), name);
        Ok(())
    }

    fn runs(&mut self, executor: &str) {
        if let Some(host) = self.hosts.get_mut(executor)
            && host.stage == TaskHostStage::Starting
        {
            host.stage = TaskHostStage::Up;
        }
    }

    /// An executor has ended or was given up.
    fn remove(&mut self, executor: &str, has_ended: bool) {
        if let Some(host) = self.hosts.remove(executor) {
            self.of_agent.remove(&host.agent_id);
        }
        let host = if has_ended {
            self.tasks.remove(executor)
        } else {
            // It may come back, and then it has to end.
            self.tasks.insert(executor.to_owned(), String::new())
        };
        if let Some(host) = host.and_then(|host| self.hosts.get_mut(&host)) {
            host.tasks = host.tasks.saturating_sub(1);
        }
    }

    /// The framework ends an executor.
    pub(super) fn ending(&mut self, executor: &str) {
        if let Some(host) = self.hosts.get_mut(executor) {
            host.stage = TaskHostStage::Ending;
        }
    }

    /// The framework ends these hosts because they have no tasks.
    pub(super) fn end_idle(&self, executors: &[String]) -> Result<(), RuleViolation> {
        let busy = |name: &&String| self.hosts.get(*name).is_none_or(|host| host.tasks > 0);
        match executors.iter().find(busy) {
            Some(name) => {
                Err((49, format!("host {name} is ended as idle, and has tasks or is gone")))
            }
            None => Ok(()),
        }
    }

    /// Compares the hosts with what the kernel's word of each agent says.
    pub(super) fn agrees_with(&self, views: &[HostView]) -> Result<(), RuleViolation> {
        if views.len() != self.hosts.len() {
            let (found, expected) = (views.len(), self.hosts.len());
            return Err((49, format!("the framework has {found} hosts, expected {expected}")));
        }
        for HostView { agent_id, stage, tasks } in views {
            let host = self.of_agent.get(agent_id).and_then(|name| self.hosts.get(name));
            let expected = host.map(|host| (host.stage, host.tasks));
            if expected != Some((*stage, *tasks)) {
                let what = format!(
                    "the host of {agent_id} is {stage:?} with {tasks} tasks, expected {expected:?}"
                );
                return Err((49, what));
            }
        }
        Ok(())
    }

    /// A task that has not ended though its host is gone, or a task or host that has not though it was given up.
    pub(super) fn orphan(&self) -> Option<&str> {
        let is_orphan = |host: &String| !self.hosts.contains_key(host);
        self.tasks.iter().find_map(|(task, host)| is_orphan(host).then_some(&**task))
    }
}
