//! Checks hosts of tasks: invariant 49. The books are made from what is placed and reported, by agent; what the
//! framework's ledger holds, and what the kernel's [`Hosts`](crate::Hosts) says of each host, must be the same after
//! each step. Each task is launched in the host that it was placed in, and hosts are ended once they have been idle for
//! their time-out, at that look and not before.

use std::collections::{BTreeMap, BTreeSet};

use super::Checker;
use super::rule::RuleViolation;
use crate::cluster::simulated::framework::IDLE_TIMEOUT;
use crate::cluster::simulated::scenario::Scenario;
use crate::engine::cluster_manager::{Accept, Launch};
use crate::engine::views::ledger_view::{HostView, LedgerView, MemberView};
use crate::engine::{HostLedger, Notice, PlacedExecutor, WorkQueue};
use crate::kernel::{Change, TaskHostStage};
use crate::launch::Hosting;
use crate::time::Timestamp;

/// The hosts of a framework and the tasks in them.
#[derive(Default)]
pub(super) struct HostChecker {
    /// Whether tasks run in hosts.
    is_enabled: bool,
    /// Whether the framework is a work queue: tasks may join hosts and leave them unseen, and hosts that haven't run
    /// may have to wait before they count as idle.
    is_work_queue: bool,
    /// The number of batches so far.
    batch: u64,
    /// By executor id. None of them has ended or was given up.
    hosts: BTreeMap<String, ExpectedHost>,
    /// The executor ids of hosts by agent.
    of_agent: BTreeMap<String, String>,
    /// The tasks that haven't ended, also if their host has; by executor id. Tasks and hosts that were given up are in
    /// it until they have ended.
    tasks: BTreeMap<String, ExpectedTask>,
}

struct ExpectedHost {
    tag: u64,
    agent_id: String,
    /// The batch that has added it.
    batch: u64,
    stage: TaskHostStage,
    tasks: u32,
    /// The first look since anything is known to have happened to it, if it was without tasks then.
    idle_since: Option<Timestamp>,
    /// The first look since anything may have happened to it.
    undisturbed_since: Option<Timestamp>,
}

enum ExpectedTask {
    /// It is in this host, which may have ended.
    In { tag: u64, host: String, host_tag: u64 },
    /// It, or the host that it is, was given up. It may come back, and then it has to end.
    GivenUp,
}

impl ExpectedHost {
    /// Something has happened to it.
    fn is_disturbed(&mut self) {
        (self.idle_since, self.undisturbed_since) = (None, None);
    }
}

impl HostChecker {
    pub(super) fn new(scenario: &Scenario) -> HostChecker {
        let (is_enabled, is_work_queue) = (scenario.has_hosts(), scenario.has_work_queue());
        HostChecker { is_enabled, is_work_queue, ..HostChecker::default() }
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
        let Some(tag) = *tag else { return Err(format!("{executor} is placed without a tag")) };
        let current = self.of_agent.get(agent_id);
        if tag >= WorkQueue::HOST_TAGS {
            if let Some(host) = current {
                return Err(format!("agent {agent_id} gets the host {executor}, and has {host}"));
            }
            self.of_agent.insert(agent_id.clone(), executor.clone());
            let (agent_id, stage) = (agent_id.clone(), TaskHostStage::Starting);
            let host = ExpectedHost {
                tag,
                agent_id,
                batch: self.batch,
                stage,
                tasks: 0,
                idle_since: None,
                undisturbed_since: None,
            };
            self.hosts.insert(executor.clone(), host);
            return Ok(());
        }
        let found = current.and_then(|name| Some((name.clone(), self.hosts.get_mut(name)?)));
        let Some((name, host)) = found else {
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
        host.is_disturbed();
        let task = ExpectedTask::In { tag, host: name, host_tag: host.tag };
        self.tasks.insert(executor.clone(), task);
        Ok(())
    }

    fn runs(&mut self, executor: &str) {
        if let Some(host) = self.hosts.get_mut(executor)
            && host.stage == TaskHostStage::Starting
        {
            host.stage = TaskHostStage::Up;
            host.is_disturbed();
        }
    }

    /// An executor has ended or was given up.
    fn remove(&mut self, executor: &str, has_ended: bool) {
        if let Some(host) = self.hosts.remove(executor) {
            self.of_agent.remove(&host.agent_id);
        }
        let task = if has_ended {
            self.tasks.remove(executor)
        } else {
            self.tasks.insert(executor.to_owned(), ExpectedTask::GivenUp)
        };
        let Some(ExpectedTask::In { host, .. }) = task else { return };
        if let Some(host) = self.hosts.get_mut(&host) {
            host.tasks = host.tasks.saturating_sub(1);
        }
    }

    /// Tasks were to join the hosts of these agents, or may have been, whether they were placed or not.
    fn joined(&mut self, agents: &BTreeSet<String>) {
        for host in self.hosts.values_mut().filter(|host| agents.contains(&host.agent_id)) {
            host.undisturbed_since = None;
            if !self.is_work_queue {
                host.idle_since = None;
            }
        }
    }

    /// An executor is launched on this agent. A task is launched in the host that it was placed in; in none if that is
    /// gone.
    fn launched(&self, agent_id: &str, launch: &Launch<'_>) -> Result<(), String> {
        let (executor, hosting) = (launch.executor, &launch.command.hosting);
        let (live, in_host) = match (self.hosts.get(executor), self.tasks.get(executor)) {
            (Some(host), _) if *hosting == Hosting::Host && host.agent_id == agent_id => {
                return Ok(());
            }
            (None, Some(ExpectedTask::In { host, .. })) => (self.hosts.get(host), host.as_str()),
            (None, _) => (None, ""),
            (Some(_), _) => {
                return Err(format!("host {executor} is launched on {agent_id} as {hosting:?}"));
            }
        };
        let is_right = match (hosting, live) {
            (Hosting::In(name), Some(host)) => **name == *in_host && host.agent_id == agent_id,
            (Hosting::In(name), None) => !self.hosts.contains_key(&**name),
            // It was given up before its launch was sent.
            (_, None) => !self.tasks.contains_key(executor),
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        Err(format!("{executor} is launched on {agent_id} as {hosting:?}, and is in '{in_host}'"))
    }

    /// The framework ends an executor.
    pub(super) fn ending(&mut self, executor: &str) {
        if let Some(host) = self.hosts.get_mut(executor) {
            host.stage = TaskHostStage::Ending;
        }
    }

    /// The framework looks for hosts without tasks, and ends these.
    fn end_idle(
        &mut self,
        executors: &[String],
        is_unsent: impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let ended: BTreeSet<&str> = executors.iter().map(|name| &**name).collect();
        for (name, host) in self.hosts.iter_mut().filter(|(name, _)| !is_unsent(name)) {
            let is_open = matches!(host.stage, TaskHostStage::Starting | TaskHostStage::Up);
            if host.tasks > 0 || !is_open {
                host.is_disturbed();
            }
            let is_idle = is_open && host.tasks == 0;
            let is_over = |since: &mut Option<Timestamp>| {
                is_idle && now.since(*since.get_or_insert(now)) >= IDLE_TIMEOUT
            };
            let may_end = is_over(&mut host.idle_since);
            let may_wait = self.is_work_queue && host.stage == TaskHostStage::Starting;
            let must_end = is_over(&mut host.undisturbed_since) && !may_wait;
            match ended.contains(&**name) {
                true if !may_end => {
                    return Err((
                        49,
                        format!("host {name} is ended as idle, and isn't so for long"),
                    ));
                }
                false if must_end => {
                    return Err((49, format!("host {name} is idle for long, and isn't ended")));
                }
                true => host.stage = TaskHostStage::Ending,
                false => {}
            }
        }
        match ended.iter().find(|name| !self.hosts.contains_key(**name) || is_unsent(name)) {
            Some(name) => Err((49, format!("host {name} is ended as idle, and is gone"))),
            None => Ok(()),
        }
    }

    /// Compares the hosts and the tasks in them with what the framework's ledger holds, and what the kernel's word of
    /// each agent says. What is launched later has no name until then.
    fn agrees_with(
        &self,
        view: &LedgerView<'_>,
        is_unsent: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let (found, expected) = (view.hosts.len(), self.hosts.len());
        if found != expected || view.of_agent.len() != expected {
            let agents = view.of_agent.len();
            return Err(format!("{found} hosts on {agents} agents, expected {expected}"));
        }
        let told = |name: &str| if is_unsent(name) { String::new() } else { name.to_owned() };
        for HostView { tag, agent_id, executor, stage, tasks } in &view.hosts {
            let name = self.of_agent.get(*agent_id);
            let host = name.and_then(|name| Some((name, self.hosts.get(name)?)));
            let expected = host.map(|(name, it)| (it.tag, told(name), it.stage, it.tasks));
            let found = Some((*tag, (*executor).to_owned(), *stage, *tasks));
            if expected != found || view.of_agent.get(*agent_id) != Some(tag) {
                let what = format!("the host of {agent_id} is {found:?}, expected {expected:?}");
                return Err(what);
            }
        }
        let mut expected = BTreeMap::new();
        for (name, task) in &self.tasks {
            if let ExpectedTask::In { tag, host_tag, .. } = task {
                expected.insert(*tag, (told(name), *host_tag));
            }
        }
        if view.members.len() != expected.len() {
            let (found, expected) = (view.members.len(), expected.len());
            return Err(format!("{found} tasks are in hosts, expected {expected}"));
        }
        for MemberView { tag, host_tag, executor } in &view.members {
            let found = Some(((*executor).to_owned(), *host_tag));
            if expected.get(tag) != found.as_ref() {
                let expected = expected.get(tag);
                return Err(format!("task {tag} is {found:?}, expected {expected:?}"));
            }
        }
        let hosts = view.hosts.iter().map(|host| (host.executor, host.tag));
        let named = hosts.chain(view.members.iter().map(|task| (task.executor, task.tag)));
        let mut named = named.filter(|(name, _)| !name.is_empty());
        let known = named.clone().count();
        let is_lost = |(name, tag): &(&str, u64)| view.launched.get(*name) != Some(tag);
        match named.find(is_lost) {
            Some((name, _)) => Err(format!("{name} is launched, and not known by its name")),
            None if view.launched.len() != known => {
                let names = view.launched.len();
                Err(format!("{names} names are known, and {known} executors are launched"))
            }
            None => Ok(()),
        }
    }

    /// A task that has not ended though its host is gone, or a task or host that has not though it was given up.
    fn orphan(&self) -> Option<&str> {
        let is_orphan = |task: &ExpectedTask| match task {
            ExpectedTask::In { host, .. } => !self.hosts.contains_key(host),
            ExpectedTask::GivenUp => true,
        };
        self.tasks.iter().find_map(|(name, task)| is_orphan(task).then_some(&**name))
    }
}

impl Checker {
    /// Tasks of a batch were to join the hosts of these agents.
    pub(in super::super) fn tasks_joined(&mut self, agents: &BTreeSet<String>) {
        self.hosts.joined(agents);
    }

    /// A call launches executors.
    pub(super) fn launched(&self, accept: &Accept<'_>) -> Result<(), RuleViolation> {
        if !self.hosts.is_enabled {
            return Ok(());
        }
        let mut launched = accept.executors.iter();
        launched
            .try_for_each(|launch| self.hosts.launched(accept.agent_id, launch))
            .map_err(|what| (49, what))
    }

    /// The framework looks for hosts that have no tasks, and ends these.
    pub(in super::super) fn ends_idle_hosts(&mut self, executors: &[String], now: Timestamp) {
        if self.is_enabled {
            let Checker { hosts, batches, work, .. } = self;
            let agent = |name| hosts.hosts.get(name).map_or("", |host| &*host.agent_id);
            let mut decisive =
                executors.iter().filter(|name| work.waits_for_host_on(agent(*name), now));
            let decides = decisive.next().map(|name| {
                (52, format!("host {name} is ended as idle, and an end waits for that"))
            });
            let checked = hosts.end_idle(executors, |name| batches.is_unsent(name), now);
            self.record(checked.and(decides.map_or(Ok(()), Err)));
        }
    }

    /// A task whose host is gone, or a task or host that was given up, that has not ended.
    pub(in super::super) fn task_without_host(&self) -> Option<&str> {
        self.hosts.orphan()
    }

    /// Checks what the framework knows of its hosts.
    pub(in super::super) fn check_hosts(&mut self, hosts: &HostLedger) {
        if self.is_enabled {
            let is_unsent = |name: &str| self.batches.is_unsent(name);
            let checked = self.hosts.agrees_with(&hosts.view(), is_unsent);
            self.record(checked.map_err(|what| (49, what)));
        }
    }
}
