//! What the cluster's thread does with hosts of tasks, and with the tasks in them. See
//! [`task_host`](crate::cluster::task_host).
//!
//! A host is an executor with a connection; its processes, kills and watchdog are those of any executor. A task in it
//! has a share of the agent and no process of this program's. When a host has ended *and* its connection has, its tasks
//! are gone: they are reported then, and after them the host.

use std::time::{Duration, Instant};

use super::actor::Actor;
use super::message::{AgentShare, LaunchRequest};
use super::task_hosts::{HostEntry, HostedTask};
use crate::cluster::process::{Exit, RunningExecutor, arguments};
use crate::cluster::task_host::{HostEvent, HostReport, HostRequest};
use crate::launch::Hosting;
use crate::status::{ProcessReport, TaskState, UpdateReason};

/// How long a host may take to become ready. It does little before.
const READY_WAIT: Duration = Duration::from_secs(60);
/// How long the end of a host's connection is waited for after its process has ended: until its tasks were killed.
const CLOSED_WAIT: Duration = Duration::from_secs(20);

impl Actor {
    /// Starts a task in its host, which was accepted before. Its share is reserved.
    pub(super) fn start_in_host(&mut self, request: LaunchRequest, agent: usize, agent_id: &str) {
        let LaunchRequest { executor: id, amounts, port, command, .. } = request;
        let share = AgentShare { agent, agent_id: agent_id.to_owned(), amounts, port };
        let Hosting::In(host) = &command.hosting else { return };
        let argv = match arguments(&command) {
            Ok(argv) => argv.into_owned(),
            Err(error) => {
                self.offers.release(agent, agent_id, amounts, port);
                return self.reporter.executor_update(&id, agent_id, TaskState::Error, error.why);
            }
        };
        let entry = self.hosts.hosts.get_mut(&**host);
        let is_usable = |entry: &&mut HostEntry| {
            let is_ending = entry.is_finishing || entry.fault.is_some();
            !is_ending && !entry.is_closed && entry.gone.is_none()
        };
        let Some(entry) = entry.filter(is_usable) else {
            self.offers.release(agent, agent_id, amounts, port);
            let why = format!("its host {host} has ended, or is about to");
            return self.reporter.executor_update(&id, agent_id, TaskState::Gone, why);
        };
        let environment = command.environment;
        let environment = environment.into_iter().map(|(name, value)| (name.into_owned(), value));
        let environment = environment.collect();
        entry.send(HostRequest::Start { task: id.clone(), argv, environment });
        self.reporter.executor_update(&id, agent_id, TaskState::Starting, String::new());
        let host = host.to_string();
        let task = HostedTask { host, share, process: None, is_asked_to_end: false };
        self.hosts.tasks.insert(id, task);
    }

    /// An executor's process was started. Returns whether it is a host. One that has sent nonsense by now is ended.
    pub(super) fn begin_host(&mut self, host: &str, now: Instant) -> bool {
        let Some(entry) = self.hosts.hosts.get_mut(host) else { return false };
        let folder = self.running.get(host).and_then(|it| it.sandbox().parent());
        if let (Some(connection), Some(folder)) = (&entry.connection, folder) {
            connection.begin(folder.to_string_lossy().into_owned());
            entry.ready_by = Some(now + READY_WAIT);
        }
        if entry.fault.is_some() || entry.is_closed {
            let _ended = self.running.terminate(host, Duration::ZERO, now);
        }
        true
    }

    pub(super) fn on_host_event(&mut self, host: &str, event: HostEvent, now: Instant) {
        let Some(entry) = self.hosts.hosts.get_mut(host) else { return };
        match event {
            HostEvent::Report(HostReport::Ready) if entry.is_ready => {
                self.end_faulty(host, "the host sent that it is ready, twice".to_owned(), now);
            }
            HostEvent::Report(HostReport::Ready) => {
                entry.is_ready = true;
                entry.ready_by = None;
                let waiting = std::mem::take(&mut entry.waiting);
                waiting.into_iter().for_each(|request| entry.send(request));
                if let Some(executor) = self.running.get(host) {
                    let output = executor.sandbox().display();
                    let message = format!("process {}, output in {output}", executor.pid());
                    let process = Some(executor.process_report(None));
                    let agent_id = &executor.record.agent_id;
                    let running = TaskState::Running;
                    self.reporter.process_update(host, agent_id, running, message, process);
                }
            }
            HostEvent::Report(report) => self.on_host_report(host, report, now),
            HostEvent::Closed(nonsense) => {
                entry.is_closed = true;
                entry.connection = None;
                match nonsense {
                    Some(what) => self.end_faulty(host, format!("the host sent {what}"), now),
                    // The process has ended, or is of no use any more.
                    None => drop(self.running.terminate(host, Duration::ZERO, now)),
                }
                self.finish_host(host);
            }
        }
    }

    fn on_host_report(&mut self, host: &str, report: HostReport, now: Instant) {
        let id = match &report {
            HostReport::Started { task, .. }
            | HostReport::NotStarted { task, .. }
            | HostReport::Ended { task, .. } => task.clone(),
            HostReport::Ready => return,
        };
        let Some(task) = self.hosts.tasks.get_mut(&id).filter(|task| task.host == host) else {
            let shown = id.escape_debug().take(80).collect::<String>();
            let fault =
                format!("the host sent a report of task \"{shown}\", which it doesn't have");
            return self.end_faulty(host, fault, now);
        };
        match report {
            HostReport::Started { pid, folder, .. } => {
                let message = format!("process {pid}, output in {folder}");
                let (pid, sandbox) = (u32::try_from(pid).ok(), Some(folder));
                let process = ProcessReport { pid, sandbox, exit: None };
                task.process = Some(process.clone());
                let (agent_id, state) = (&task.share.agent_id, TaskState::Running);
                if !task.is_asked_to_end {
                    self.reporter.process_update(&id, agent_id, state, message, Some(process));
                }
            }
            HostReport::NotStarted { why, is_busy, .. } => {
                let state = if is_busy { TaskState::Dropped } else { TaskState::Failed };
                self.end_task(&id, state, why, None);
            }
            HostReport::Ended { exit, .. } => {
                let is_asked = task.is_asked_to_end;
                let is_finishing = self.hosts.hosts.get(host).is_some_and(|it| it.is_finishing);
                let (state, message) = match exit {
                    exit if self.stopping.is_set() && (is_asked || is_finishing) => {
                        (TaskState::Killed, format!("{exit} when the cluster stopped"))
                    }
                    exit if is_asked => (TaskState::Killed, format!("on request: {exit}")),
                    Exit::Code(0) => (TaskState::Finished, exit.to_string()),
                    exit if is_finishing => {
                        (TaskState::Gone, format!("its host {host} was asked to end: {exit}"))
                    }
                    exit => (TaskState::Failed, exit.to_string()),
                };
                self.end_task(&id, state, message, Some(exit));
            }
            HostReport::Ready => {}
        }
    }

    /// A task has ended: frees its share and reports it.
    fn end_task(&mut self, id: &str, state: TaskState, message: String, exit: Option<Exit>) {
        let Some(HostedTask { share, process, .. }) = self.hosts.tasks.remove(id) else { return };
        let AgentShare { agent, agent_id, amounts, port } = share;
        self.offers.release(agent, &agent_id, amounts, port);
        let exit = exit.and_then(Exit::known);
        let process = process.map(|process| ProcessReport { exit, ..process });
        self.reporter.process_update(id, &agent_id, state, message, process);
    }

    /// Ends a host that is of no use, by force.
    fn end_faulty(&mut self, host: &str, fault: String, now: Instant) {
        if let Some(entry) = self.hosts.hosts.get_mut(host) {
            entry.fault.get_or_insert(fault);
            entry.ready_by = None;
        }
        let _ended = self.running.terminate(host, Duration::ZERO, now);
    }

    /// Asks a task to end. Returns false if there is no such task.
    pub(super) fn kill_in_host(&mut self, id: &str, grace: Duration) -> bool {
        let Some(task) = self.hosts.tasks.get_mut(id) else { return false };
        let is_first = !std::mem::replace(&mut task.is_asked_to_end, true);
        let agent_id = task.share.agent_id.clone();
        let Some(entry) = self.hosts.hosts.get_mut(&task.host) else { return true };
        let is_it = |request: &HostRequest| matches!(request, HostRequest::Start { task, .. } if task == id);
        if let Some(at) = entry.waiting.iter().position(is_it) {
            entry.waiting.remove(at);
            let why = "on request, before it was started".to_owned();
            self.end_task(id, TaskState::Killed, why, None);
            return true;
        }
        entry.send(HostRequest::Kill { task: id.to_owned(), grace });
        if is_first {
            let why = "asked to end".to_owned();
            self.reporter.executor_update(id, &agent_id, TaskState::Killing, why);
        }
        true
    }

    /// The state of a task in a host, with its agent.
    pub(super) fn hosted_state(&self, id: &str) -> Option<(&str, TaskState)> {
        let task = self.hosts.tasks.get(id)?;
        let state = match &task.process {
            _ if task.is_asked_to_end => TaskState::Killing,
            None => TaskState::Starting,
            Some(_) => TaskState::Running,
        };
        Some((&task.share.agent_id, state))
    }

    /// Reports the states of all tasks in hosts.
    pub(super) fn report_hosted(&self) {
        for id in self.hosts.tasks.keys() {
            if let Some((agent_id, state)) = self.hosted_state(id) {
                let reason = UpdateReason::Reconciliation;
                self.reporter.cluster_update(id, Some(agent_id), state, reason, "");
            }
        }
    }

    /// A host's process has ended. Its end is reported after those of its tasks.
    pub(super) fn on_host_gone(&mut self, executor: RunningExecutor<AgentShare>, exit: Exit) {
        let id = executor.id.clone();
        let Some(entry) = self.hosts.hosts.get_mut(&id) else { return };
        entry.ready_by = None;
        entry.gone = Some((executor, exit, Instant::now() + CLOSED_WAIT));
        self.finish_host(&id);
    }

    /// Whether an executor is a host.
    pub(super) fn is_host(&self, id: &str) -> bool {
        self.hosts.hosts.contains_key(id)
    }

    /// Ends hosts that don't become ready, and reports those that are gone and whose connections don't end.
    pub(super) fn run_due_hosts(&mut self, now: Instant) {
        let is_late = |host: &HostEntry| host.ready_by.is_some_and(|by| by <= now);
        let late = self.hosts.hosts.iter().filter(|(_, host)| is_late(host));
        let late: Vec<String> = late.map(|(id, _)| id.clone()).collect();
        for id in late {
            let fault = format!("the host isn't ready after {} s", READY_WAIT.as_secs());
            self.end_faulty(&id, fault, now);
        }
        let is_due = |host: &HostEntry| host.gone.as_ref().is_some_and(|gone| gone.2 <= now);
        let due = self.hosts.hosts.iter().filter(|(_, host)| is_due(host));
        let due: Vec<String> = due.map(|(id, _)| id.clone()).collect();
        for id in due {
            self.hosts.hosts.entry(id.clone()).and_modify(|host| host.is_closed = true);
            self.finish_host(&id);
        }
    }

    /// Reports the end of a host and of its tasks, once both its process and its connection have ended.
    fn finish_host(&mut self, id: &str) {
        let Some(entry) = self.hosts.hosts.get_mut(id) else { return };
        if !entry.is_closed || entry.gone.is_none() {
            return;
        }
        let Some(entry) = self.hosts.hosts.remove(id) else { return };
        let HostEntry { gone: Some((executor, exit, _)), fault, is_finishing, .. } = entry else {
            return;
        };
        let (state, message) = match fault {
            Some(fault) => (TaskState::Failed, fault),
            None if !is_finishing => (TaskState::Failed, exit.to_string()),
            None if self.stopping.is_set() => {
                (TaskState::Killed, format!("{exit} when the cluster stopped"))
            }
            None => (TaskState::Killed, format!("on request: {exit}")),
        };
        self.lose_tasks(id, &message);
        let AgentShare { agent, agent_id, amounts, port } = &executor.record;
        self.offers.release(*agent, agent_id, *amounts, *port);
        let process = Some(executor.process_report(exit.known()));
        self.reporter.process_update(id, agent_id, state, message, process);
    }

    /// The tasks of a host are gone with it.
    pub(super) fn lose_tasks(&mut self, host: &str, why: &str) {
        let lost = self.hosts.tasks.iter().filter(|(_, task)| task.host == host);
        let lost: Vec<(String, bool)> =
            lost.map(|(id, task)| (id.clone(), task.is_asked_to_end)).collect();
        for (id, is_asked_to_end) in lost {
            let is_killed = is_asked_to_end || self.stopping.is_set();
            let state = if is_killed { TaskState::Killed } else { TaskState::Gone };
            self.end_task(&id, state, format!("its host {host} is gone: {why}"), None);
        }
    }

    /// A host was not started, or its launch was taken back.
    pub(super) fn remove_host(&mut self, host: &str, why: &str) {
        if self.hosts.hosts.remove(host).is_some() {
            self.lose_tasks(host, why);
        }
    }
}
