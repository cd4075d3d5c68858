//! The embedded cluster's thread: receives messages, makes offers, starts and ends executors, sends events.

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::event_reporter::EventReporter;
use super::launch_queue::{LaunchQueue, QueuedLaunch};
use super::message::{AcceptRequest, ActorMessage, AgentShare, LaunchRequest};
use super::stop_flag::StopFlag;
use crate::cluster::process::{
    Exit, ProcessEvent, ProcessGroup, RunPhase, RunningExecutor, RunningExecutors, Sandboxes,
    StartError, StartErrorKind, StartRequest, StartingExecutor, StartingExecutors, discard,
    is_valid_name,
};
use crate::cluster::task_host::HostRegistry;
use crate::cluster::worker_offers::{CpuMemory, WorkerOffers};
use crate::engine::cluster_manager::Event;
use crate::launch::Hosting;
use crate::resources::Gpus;
use crate::status::{ProcessReport, TaskState, UpdateReason};

/// The number of the only subscription. It lasts as long as the cluster.
const EPOCH: u64 = 1;
/// The maximum number of messages that are handled before offers are made again.
const MESSAGES_PER_ROUND_MAX: usize = 256;
/// The maximum number of offers in one event.
const OFFERS_PER_EVENT_MAX: usize = 1000;
/// The maximum time that a stop waits for executors to end after SIGKILL. A process that the operating system can't end
/// must not delay it further.
const KILLED_WAIT: Duration = Duration::from_secs(5);

/// The reason that is reported for executors that are not started because of a stop.
const STOPPING: &str = "not started: the cluster stops";

/// The state of the thread.
pub(super) struct Actor {
    pub(super) inbox: Receiver<ActorMessage>,
    /// Where the events of hosts' connections go: to the inbox.
    pub(super) own_inbox: Sender<ActorMessage>,
    pub(super) reporter: EventReporter,
    pub(super) offers: WorkerOffers,
    pub(super) sandboxes: Arc<Sandboxes>,
    pub(super) starting: StartingExecutors<AgentShare>,
    pub(super) running: RunningExecutors<AgentShare>,
    pub(super) queue: LaunchQueue,
    pub(super) hosts: HostRegistry<AgentShare>,
    pub(super) grace: Duration,
    pub(super) stopping: StopFlag,
}

impl Actor {
    /// Runs until the cluster is stopped, and ends all executors before it returns.
    pub(super) fn run(mut self, framework_id: String) {
        self.reporter.send(Event::Registered { framework_id, again: false });
        loop {
            self.make_offers();
            if self.receive_messages().is_break() {
                break;
            }
            self.start_queued();
            self.run_due(Instant::now());
        }
        self.end();
    }

    fn make_offers(&mut self) {
        let mut offers = self.offers.make_offers(Instant::now());
        while !offers.is_empty() {
            let rest = offers.split_off(offers.len().min(OFFERS_PER_EVENT_MAX));
            self.reporter.send(Event::Offers(offers));
            offers = rest;
        }
    }

    /// Waits for a message or the next due time, and handles the messages that have arrived.
    fn receive_messages(&mut self) -> ControlFlow<()> {
        let now = Instant::now();
        let can_start = !self.queue.is_empty() && self.starting.has_room(now);
        let due = [
            can_start.then_some(now),
            self.starting.next_due(now),
            self.offers.next_offer_at(),
            self.running.next_due(),
            self.hosts.next_due(),
        ];
        let first = match due.into_iter().flatten().min() {
            Some(due) => self.inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let mut message = match first {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return ControlFlow::Break(()),
        };
        let mut room = MESSAGES_PER_ROUND_MAX;
        while let Some(received) = message {
            if matches!(received, ActorMessage::Stop) {
                return ControlFlow::Break(());
            }
            self.handle(received);
            room -= 1;
            message = if room > 0 { self.inbox.try_recv().ok() } else { None };
        }
        if self.stopping.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn handle(&mut self, message: ActorMessage) {
        let now = Instant::now();
        match message {
            ActorMessage::Accept(request) => self.accept(request, now),
            ActorMessage::Decline { epoch: EPOCH, offers, refuse } => {
                self.offers.decline(&offers, refuse, now);
            }
            ActorMessage::Decline { .. } | ActorMessage::Stop => {}
            ActorMessage::Revive => self.offers.revive(),
            ActorMessage::Suppress => self.offers.suppress(),
            ActorMessage::Kill { executor, grace } => self.kill(&executor, grace, now),
            ActorMessage::Reconcile(requests) => self.reconcile(&requests),
            ActorMessage::Process(ProcessEvent::Ended(number)) => self.on_ended(number),
            ActorMessage::Process(ProcessEvent::Started { number, started }) => {
                self.on_started(number, started, now);
            }
            ActorMessage::Process(ProcessEvent::WatchdogReplaced { number, watchdog }) => {
                self.running.replace_watchdog(number, watchdog);
            }
            ActorMessage::Host(host, event) => self.on_host_event(&host, event, now),
            ActorMessage::LoseAgent(agent) => self.lose_agent(agent),
            ActorMessage::RestoreAgent(agent) => self.offers.register(agent, now),
        }
    }

    fn accept(&mut self, request: AcceptRequest, now: Instant) {
        let AcceptRequest { epoch, agent_id, offers, executors, refuse } = request;
        let accepted = match epoch {
            _ if self.stopping.is_set() => Err(STOPPING.to_owned()),
            EPOCH => self.offers.accept(&offers, &agent_id),
            _ => Err(format!("the offers are of subscription {epoch}, this is {EPOCH}")),
        };
        let (agent, mut offered) = match accepted {
            Ok(accepted) => accepted,
            Err(why) => {
                let agent_id = Some(agent_id.as_str());
                for launch in &executors {
                    self.reporter.cluster_update(
                        &launch.executor,
                        agent_id,
                        TaskState::Dropped,
                        UpdateReason::InvalidOffers,
                        &*why,
                    );
                }
                return;
            }
        };
        // All resources are allocated before the first executor is started: a start takes time, and the rest of the
        // offer counts as declined from now on.
        let mut fitting = Vec::with_capacity(executors.len());
        for launch in executors {
            if self.is_known(&launch, &fitting) {
                continue;
            }
            let allocated =
                check_launch(&launch).and_then(|()| offered.allocate(launch.amounts, launch.port));
            match allocated {
                Ok(()) => fitting.push(launch),
                Err(why) => self.reporter.cluster_update(
                    &launch.executor,
                    Some(&agent_id),
                    TaskState::Error,
                    UpdateReason::Other,
                    why,
                ),
            }
        }
        self.offers.refuse(agent, &agent_id, offered.amounts, refuse, now);
        for request in fitting {
            self.offers.reserve(agent, &agent_id, request.amounts, request.port);
            match request.command.hosting {
                Hosting::In(_) => {
                    self.start_in_host(request, agent, &agent_id);
                    continue;
                }
                Hosting::Host => self.hosts.add(&request.executor),
                Hosting::Alone => {}
            }
            self.queue.push(QueuedLaunch { request, agent, agent_id: agent_id.clone() });
        }
    }

    /// Starts queued executors as long as there is room. Starts none during a stop.
    fn start_queued(&mut self) {
        let now = Instant::now();
        while self.starting.has_room(now) && !self.stopping.is_set() {
            let Some(mut launch) = self.queue.pop() else { return };
            let id = launch.request.executor.clone();
            let (state, message) = (TaskState::Starting, String::new());
            self.reporter.executor_update(&id, &launch.agent_id, state, message);
            let input = self.open_host(&id, &mut launch.request.command);
            if let Err(failed) = self.starting.begin(self.start_request(launch, input), now) {
                let (executor, error) = *failed;
                self.on_start_failed(&executor, error);
            }
        }
    }

    fn start_request(
        &self,
        launch: QueuedLaunch,
        input: Option<OwnedFd>,
    ) -> StartRequest<AgentShare> {
        let QueuedLaunch { request, agent, agent_id } = launch;
        let LaunchRequest { executor, amounts, port, command, .. } = request;
        StartRequest {
            id: executor.clone(),
            command,
            sandboxes: Arc::clone(&self.sandboxes),
            agent_id: agent_id.clone(),
            folder: executor,
            input,
            record: AgentShare { agent, agent_id, amounts, port },
        }
    }

    /// Gives up starts, kills executors and replaces watchdogs that are due.
    fn run_due(&mut self, now: Instant) {
        for executor in self.starting.give_up_due(now) {
            let why = match executor.force_at {
                Some(_) => "on request, while it was being started",
                None => "the start hangs: its sandbox's file system or its watchdog doesn't answer",
            };
            let why = why.to_owned();
            self.on_start_failed(&executor, StartError { why, kind: StartErrorKind::Failed });
        }
        self.running.run_due(now);
        self.run_due_hosts(now);
    }

    /// Whether an executor with this id is queued, being started or running. Its own updates report its state.
    fn is_known(&self, launch: &LaunchRequest, fitting: &[LaunchRequest]) -> bool {
        let id = &launch.executor;
        self.running.get(id).is_some()
            || self.starting.get(id).is_some()
            || self.queue.get(id).is_some()
            || self.hosts.record(id).is_some()
            || fitting.iter().any(|other| other.executor == *id)
    }

    fn on_started(&mut self, number: u64, started: Result<ProcessGroup, StartError>, now: Instant) {
        let (start, group) = match (self.starting.finish(number), started) {
            (Some(start), Ok(group)) => (start, group),
            (Some(start), Err(error)) => return self.on_start_failed(&start, error),
            (None, Ok(group)) => return discard(group),
            (None, Err(_)) => return,
        };
        let StartingExecutor { force_at, has_ended, .. } = start;
        let id = start.id.clone();
        self.running.insert(number, start, group);
        let is_host = self.begin_host(&id, now);
        if let Some(force_at) = force_at {
            self.running.terminate_before(number, force_at, now);
        } else if let Some(executor) = self.running.get(&id).filter(|_| !is_host) {
            let output = executor.sandbox().display();
            let message = format!("process {}, output in {output}", executor.pid());
            let process = Some(executor.process_report(None));
            let RunningExecutor { id, record, .. } = executor;
            self.reporter.process_update(
                id,
                &record.agent_id,
                TaskState::Running,
                message,
                process,
            );
        }
        if has_ended {
            self.on_ended(number);
        }
    }

    fn on_start_failed(&mut self, executor: &StartingExecutor<AgentShare>, error: StartError) {
        let StartingExecutor { id, record, .. } = executor;
        let AgentShare { agent, agent_id, amounts, port } = record;
        self.offers.release(*agent, agent_id, *amounts, *port);
        let state = match error.kind {
            _ if executor.force_at.is_some() => TaskState::Killed,
            StartErrorKind::Failed | StartErrorKind::Exhausted => TaskState::Failed,
            StartErrorKind::Unsupported => TaskState::Error,
            StartErrorKind::LimitReached => TaskState::Dropped,
        };
        let process =
            error.kind.is_agents().then(|| ProcessReport::default().with_agent_exhausted());
        self.remove_host(id, &error.why);
        self.reporter.process_update(id, agent_id, state, error.why, process);
    }

    fn kill(&mut self, id: &str, grace: Duration, now: Instant) {
        if let Some(QueuedLaunch { request, agent, agent_id }) = self.queue.remove(id) {
            self.offers.release(agent, &agent_id, request.amounts, request.port);
            self.remove_host(id, "it was killed before it was started");
            self.reporter.cluster_update(
                id,
                Some(&agent_id),
                TaskState::Killed,
                UpdateReason::Other,
                "on request, before it was started",
            );
            return;
        }
        if self.kill_in_host(id, grace, now) {
            return;
        }
        self.hosts.finish(id, grace);
        if let Some(is_first) = self.starting.kill(id, grace, now) {
            if let Some(executor) = self.starting.get(id).filter(|_| is_first) {
                let message = "asked to end while it is being started".to_owned();
                self.reporter.executor_update(
                    id,
                    &executor.record.agent_id,
                    TaskState::Killing,
                    message,
                );
            }
            return self.run_due(now);
        }
        let killed_before = self.running.get(id).is_some_and(|it| it.phase != RunPhase::Running);
        match self.running.terminate(id, grace, now) {
            Some(_) if killed_before => {}
            Some(executor) => {
                let message = "asked to end".to_owned();
                self.reporter.executor_update(
                    id,
                    &executor.record.agent_id,
                    TaskState::Killing,
                    message,
                );
            }
            None => self.report_gone(id, None, UpdateReason::Other),
        }
    }

    fn on_ended(&mut self, number: u64) {
        if self.starting.record_end(number) {
            return;
        }
        let Some((executor, exit)) = self.running.reap(number) else { return };
        let Some(executor) = self.on_host_gone(executor, exit) else { return };
        let RunningExecutor { id, record, phase, .. } = &executor;
        let AgentShare { agent, agent_id, amounts, port } = record;
        self.offers.release(*agent, agent_id, *amounts, *port);
        let (state, message) = match (phase, exit) {
            (RunPhase::Abandoned, _) => return,
            (RunPhase::Terminating { .. } | RunPhase::Killed, exit) if self.stopping.is_set() => {
                (TaskState::Killed, format!("{exit} when the cluster stopped"))
            }
            (RunPhase::Terminating { .. }, exit) => {
                (TaskState::Killed, format!("on request: {exit}"))
            }
            (RunPhase::Killed, exit) => {
                (TaskState::Killed, format!("on request, after its grace period: {exit}"))
            }
            (RunPhase::Running, Exit::Code(0)) => (TaskState::Finished, exit.to_string()),
            (RunPhase::Running, exit) => (TaskState::Failed, exit.to_string()),
        };
        let process = Some(executor.process_report(exit.known()));
        self.reporter.process_update(id, agent_id, state, message, process);
    }

    fn lose_agent(&mut self, agent: usize) {
        let Some(lost) = self.offers.remove(agent) else { return };
        let is_on_it = |share: &AgentShare| share.agent_id == lost.id;
        let mut executors = self.running.abandon(is_on_it);
        let given_up = self.starting.give_up_matching(is_on_it);
        executors.extend(given_up.into_iter().map(|executor| executor.id));
        executors.extend(self.queue.remove_agent(&lost.id));
        let hosted = self.hosts.forget(&executors, is_on_it);
        executors.extend(hosted);
        if let Some(offer_id) = lost.offer {
            self.reporter.send(Event::Rescinded { offer_id });
        }
        self.reporter.send(Event::AgentLost { agent_id: lost.id.clone() });
        for executor in executors {
            self.reporter.cluster_update(
                &executor,
                Some(&lost.id),
                TaskState::Gone,
                UpdateReason::AgentRemoved,
                "its agent was lost",
            );
        }
    }

    /// Ends all executors, and reports how they ended. The cluster's owner receives events until the thread has ended.
    fn end(mut self) {
        self.stopping.set();
        let give_up = Instant::now() + self.grace + KILLED_WAIT;
        while let Some(QueuedLaunch { request, agent_id, .. }) = self.queue.pop() {
            self.remove_host(&request.executor, STOPPING);
            self.reporter.cluster_update(
                &request.executor,
                Some(&agent_id),
                TaskState::Dropped,
                UpdateReason::InvalidOffers,
                STOPPING,
            );
        }
        // Executors that have ended by themselves are reported as such, and calls that have arrived are answered.
        self.handle_rest(give_up);
        self.hosts.finish_all(self.grace);
        self.running.terminate_all(self.grace, Instant::now());
        self.starting.kill_all(self.grace, Instant::now());
        while !self.running.is_empty()
            || !self.starting.is_empty()
            || self.hosts.has_unreported_ends()
        {
            let now = Instant::now();
            self.run_due(now);
            if give_up <= now {
                break;
            }
            let hosts_due = self.hosts.next_due();
            let due =
                [self.running.next_due(), self.starting.next_due(now), hosts_due, Some(give_up)];
            let due = due.into_iter().flatten().min().unwrap_or(give_up);
            let message = self.inbox.recv_timeout(due.saturating_duration_since(now));
            message.into_iter().for_each(|message| self.handle(message));
        }
        self.handle_rest(give_up);
    }

    /// Handles the messages that have arrived. They start no executors any more.
    fn handle_rest(&mut self, give_up: Instant) {
        while Instant::now() < give_up
            && let Ok(message) = self.inbox.try_recv()
        {
            self.handle(message);
        }
    }
}

/// Refuses launches that no agent of this cluster can carry out.
fn check_launch(launch: &LaunchRequest) -> Result<(), String> {
    if !is_valid_name(&launch.executor) {
        Err(format!("{:?} is not allowed as the id of a sandbox", launch.executor))
    } else if launch.amounts == CpuMemory::default() {
        Err("asks for neither cores nor memory".to_owned())
    } else if launch.gpus > Gpus::ZERO {
        Err(format!("asks for {:#}, and none were offered", launch.gpus))
    } else {
        Ok(())
    }
}
