//! What the cluster's thread does with hosts of tasks, and with the tasks in them. See
//! [`task_host`](crate::cluster::task_host).
//!
//! A task in a host has a share of the agent, as any executor has.

use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use super::actor::Actor;
use super::message::{ActorMessage, AgentShare, LaunchRequest};
use crate::cluster::process::{Exit, RunningExecutor, arguments};
use crate::cluster::task_host::{
    HostEnd, HostEvent, HostOutcome, HostedEnd, HostedKill, MARK_VARIABLE, NewHostedTask,
};
use crate::launch::{Command, Hosting};
use crate::status::{TaskState, UpdateReason};

impl Actor {
    /// Opens the connection of an executor that is about to be started, if it is a host, and returns the host's end of
    /// it. Gives its command the variable by which its tasks are found.
    pub(super) fn open_host(&mut self, host: &str, command: &mut Command) -> Option<OwnedFd> {
        // Frameworks' ids are unique in their work folder, but this is looked for in all of the machine.
        let random = RandomState::new().hash_one(host);
        let mark = format!("{}/{host}/{random:016x}", self.sandboxes.framework_id());
        let (inbox, id) = (self.own_inbox.clone(), host.to_owned());
        let deliver = move |event| inbox.send(ActorMessage::Host(id.clone(), event)).is_ok();
        let input = self.hosts.open(host, &mark, deliver)?;
        command.environment.push((MARK_VARIABLE.into(), mark));
        Some(input)
    }

    /// Starts a task in its host, which was accepted before. Its share is reserved.
    pub(super) fn start_in_host(&mut self, request: LaunchRequest, agent: usize, agent_id: &str) {
        let LaunchRequest { executor: id, amounts, port, command, .. } = request;
        let record = AgentShare { agent, agent_id: agent_id.to_owned(), amounts, port };
        let Hosting::In(host) = &command.hosting else { return };
        let argv = match arguments(&command) {
            Ok(argv) => argv.into_owned(),
            Err(error) => {
                self.release(&record);
                return self.reporter.executor_update(&id, agent_id, TaskState::Error, error.why);
            }
        };
        let host = host.to_string();
        let environment = command.environment;
        let environment = environment.into_iter().map(|(name, value)| (name.into_owned(), value));
        let environment = environment.collect();
        let name = id.clone();
        let new =
            NewHostedTask { id: id.clone(), host: host.clone(), name, argv, environment, record };
        match self.hosts.start(new) {
            Ok(()) => {
                let (state, message) = (TaskState::Starting, String::new());
                self.reporter.executor_update(&id, agent_id, state, message);
            }
            Err(record) => {
                self.release(&record);
                let why = format!("its host {host} has ended, or is about to");
                self.reporter.executor_update(&id, agent_id, TaskState::Dropped, why);
            }
        }
    }

    fn release(&mut self, share: &AgentShare) {
        let AgentShare { agent, agent_id, amounts, port } = share;
        self.offers.release(*agent, agent_id, *amounts, *port);
    }

    /// An executor's process was started. Returns whether it is a host.
    pub(super) fn begin_host(&mut self, host: &str, now: Instant) -> bool {
        if !self.hosts.is_host(host) {
            return false;
        }
        let folder = self.running.get(host).and_then(|it| it.sandbox().parent());
        let outcomes = self.hosts.started(host, folder, now);
        self.follow_outcomes(outcomes, now);
        true
    }

    pub(super) fn on_host_event(&mut self, host: &str, event: HostEvent, now: Instant) {
        let outcomes = self.hosts.on_event(host, event, str::to_owned);
        self.follow_outcomes(outcomes, now);
    }

    /// Ends hosts that say nothing, and reports those that are gone and whose connections don't end.
    pub(super) fn run_due_hosts(&mut self, now: Instant) {
        let outcomes = self.hosts.run_due(now);
        self.follow_outcomes(outcomes, now);
    }

    /// A host was not started, or its launch was taken back.
    pub(super) fn remove_host(&mut self, host: &str, why: &str) {
        let outcomes = self.hosts.remove(host, why);
        self.follow_outcomes(outcomes, Instant::now());
    }

    /// An executor's process has ended. Returns the executor if it is no host.
    pub(super) fn on_host_gone(
        &mut self,
        executor: RunningExecutor<AgentShare>,
        exit: Exit,
    ) -> Option<RunningExecutor<AgentShare>> {
        let now = Instant::now();
        match self.hosts.process_ended(executor, exit, now) {
            Ok(outcomes) => {
                self.follow_outcomes(outcomes, now);
                None
            }
            Err(executor) => Some(*executor),
        }
    }

    fn follow_outcomes(&mut self, outcomes: Vec<HostOutcome<AgentShare>>, now: Instant) {
        for outcome in outcomes {
            self.follow_outcome(outcome, now);
        }
    }

    fn follow_outcome(&mut self, outcome: HostOutcome<AgentShare>, now: Instant) {
        match outcome {
            HostOutcome::HostReady(host) => {
                let Some(executor) = self.running.get(&host) else { return };
                let output = executor.sandbox().display();
                let message = format!("process {}, output in {output}", executor.pid());
                let process = Some(executor.process_report(None));
                let agent_id = &executor.record.agent_id;
                let state = TaskState::Running;
                self.reporter.process_update(&host, agent_id, state, message, process);
            }
            HostOutcome::EndHost(host) => {
                let _ended = self.running.terminate(&host, Duration::ZERO, now);
            }
            HostOutcome::HostEnded { executor, exit, end } => {
                let (state, message) = match end {
                    HostEnd::Faulty(fault) => (TaskState::Failed, fault),
                    HostEnd::Unasked => (TaskState::Failed, exit.to_string()),
                    HostEnd::Asked => (TaskState::Killed, self.on_request(exit)),
                };
                self.release(&executor.record);
                let process = Some(executor.process_report(exit.known()));
                let agent_id = &executor.record.agent_id;
                self.reporter.process_update(&executor.id, agent_id, state, message, process);
            }
            HostOutcome::TaskRuns { id, process } => {
                let Some(share) = self.hosts.record(&id) else { return };
                let (pid, folder) = (process.pid, process.sandbox.as_deref());
                let (pid, folder) = (pid.unwrap_or_default(), folder.unwrap_or_default());
                let message = format!("process {pid}, output in {folder}");
                let (agent_id, state) = (&share.agent_id, TaskState::Running);
                self.reporter.process_update(&id, agent_id, state, message, Some(process));
            }
            HostOutcome::TaskEnded { id, host, record, end, process } => {
                self.release(&record);
                let (state, message) = self.hosted_end(&host, end);
                self.reporter.process_update(&id, &record.agent_id, state, message, process);
            }
        }
    }

    fn on_request(&self, exit: Exit) -> String {
        match self.stopping.is_set() {
            true => format!("{exit} when the cluster stopped"),
            false => format!("on request: {exit}"),
        }
    }

    /// The last state of a task in a host, and the sentence about it.
    fn hosted_end(&self, host: &str, end: HostedEnd) -> (TaskState, String) {
        let is_stopping = self.stopping.is_set();
        match end {
            HostedEnd::NotStarted { why, is_busy: true } => (TaskState::Dropped, why),
            HostedEnd::NotStarted { why, is_busy: false } => (TaskState::Failed, why),
            HostedEnd::Withdrawn => {
                (TaskState::Killed, "on request, before it was started".to_owned())
            }
            HostedEnd::Exited { exit, is_asked, is_host_asked } => match exit {
                exit if is_asked || is_stopping && is_host_asked => {
                    (TaskState::Killed, self.on_request(exit))
                }
                // However it ends then, it may not have done its work.
                exit if is_host_asked => {
                    (TaskState::Gone, format!("its host {host} was asked to end: {exit}"))
                }
                Exit::Code(0) => (TaskState::Finished, exit.to_string()),
                exit => (TaskState::Failed, exit.to_string()),
            },
            HostedEnd::HostGone { why, is_asked, is_sent } => {
                let state = match is_sent {
                    _ if is_asked || is_stopping => TaskState::Killed,
                    true => TaskState::Gone,
                    false => TaskState::Dropped,
                };
                (state, format!("its host {host} is gone: {why}"))
            }
        }
    }

    /// Asks a task to end. Returns false if there is no such task.
    pub(super) fn kill_in_host(&mut self, id: &str, grace: Duration, now: Instant) -> bool {
        match self.hosts.kill(id, grace) {
            None => return false,
            Some(HostedKill::Ended(outcome)) => self.follow_outcome(outcome, now),
            Some(HostedKill::Asked { is_first: false }) => {}
            Some(HostedKill::Asked { is_first: true }) => {
                let Some(share) = self.hosts.record(id) else { return true };
                let (agent_id, why) = (&share.agent_id, "asked to end".to_owned());
                self.reporter.executor_update(id, agent_id, TaskState::Killing, why);
            }
        }
        true
    }

    /// The state of a task in a host, with its agent.
    pub(super) fn hosted_state(&self, id: &str) -> Option<(&str, TaskState)> {
        let (share, state) = self.hosts.state(id)?;
        Some((&share.agent_id, state))
    }

    /// Reports the states of all tasks in hosts.
    pub(super) fn report_hosted(&self) {
        for id in self.hosts.task_ids() {
            if let Some((agent_id, state)) = self.hosted_state(id) {
                let reason = UpdateReason::Reconciliation;
                self.reporter.cluster_update(id, Some(agent_id), state, reason, "");
            }
        }
    }
}
