//! The logic of a worker, without input and output: what happens goes in, what is to be done comes out.
//!
//! ```text
//!                 subscribe()               SUBSCRIBED
//!  disconnected ─────────────► subscribing ────────────► subscribed
//!       ▲                          │                         │
//!       └──────────────────────────┴── disconnected, or a lower term
//! ```
//!
//! An executor is held from its launch until its last update is acknowledged. Updates are kept until then and listed in
//! each SUBSCRIBE. Launches come only while the worker is subscribed; one that repeats a sequence number or names an
//! executor that is held is ignored. One of a task in a host is dropped unless the host is held, and not about to end.
//! Once a framework was shut down, nothing of it is started under the same term.

use std::collections::BTreeSet;
use std::time::Duration;

use super::held::HeldExecutors;
use super::step::{ExitReason, WorkerAction, WorkerInput, WorkerTime};
use crate::cluster::standalone::protocol::{
    EXECUTORS_MAX, ExecutorKey, ExecutorLaunch, ExecutorUpdate, RESEND_SECONDS, ReportedState,
    TERM_STEP_MAX, WorkerAttribute, WorkerCall, WorkerEvent, WorkerResources, WorkerSubscribe,
};

/// The time after which a worker leaves although acknowledgements are missing, from the end of its last executor on.
pub(super) const LEAVE_WAIT: Duration = Duration::from_secs(5);
/// The time after which an update that wasn't acknowledged is sent again.
const RESEND_AFTER: Duration = Duration::from_secs(RESEND_SECONDS);

/// What a worker tells of itself in each registration.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerFacts {
    pub(super) hostname: String,
    pub(super) address: String,
    pub(super) resources: WorkerResources,
    pub(super) attributes: Vec<WorkerAttribute>,
    /// A random number of this process, which only its master is told: another worker that knows it could take the
    /// place of this one.
    pub(super) session: u64,
    /// Another random number of this process: the first half of the numbers of its updates, which frameworks are told.
    pub(super) updates: u64,
    /// The name of the user as which executors run.
    pub(super) user: Option<String>,
    /// Whether executors that are meant for another user run as this one, too.
    pub(super) takes_any_user: bool,
}

/// Where the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Disconnected,
    /// SUBSCRIBE is being sent.
    Subscribing,
    /// The master has answered. The number is the sequence of the last launch.
    Subscribed {
        last_launch: u64,
    },
}

/// The end of the worker, which has begun.
#[derive(Clone, Debug)]
struct Leaving {
    reason: ExitReason,
    /// When it leaves although acknowledgements are missing. `None` while executors run.
    give_up_at: Option<Duration>,
}

/// A worker.
#[derive(Debug)]
pub(super) struct WorkerState {
    facts: WorkerFacts,
    id: Option<String>,
    /// The highest term that it was told.
    term: u64,
    link: LinkState,
    held: HeldExecutors,
    /// Frameworks that were shut down under this term.
    shut_down: BTreeSet<String>,
    leaving: Option<Leaving>,
    updates_made: u64,
    has_exited: bool,
}

impl WorkerState {
    /// A worker that holds no executors, with the id and the term that it was told before.
    pub(super) fn new(facts: WorkerFacts, id: Option<String>, term: u64) -> WorkerState {
        WorkerState {
            facts,
            id,
            term,
            link: LinkState::Disconnected,
            held: HeldExecutors::default(),
            shut_down: BTreeSet::new(),
            leaving: None,
            updates_made: 0,
            has_exited: false,
        }
    }

    /// The worker's id, once a master gave it one.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Whether the worker is registered over the current connection.
    pub(super) fn is_subscribed(&self) -> bool {
        matches!(self.link, LinkState::Subscribed { .. })
    }

    /// Begins to register over a new connection, and returns the first message. Nothing may be read from the connection
    /// before any more.
    pub(super) fn subscribe(&mut self, now: WorkerTime) -> WorkerCall {
        self.link = LinkState::Subscribing;
        let (executors, unacknowledged) = self.held.list(now.since_start);
        let facts = &self.facts;
        WorkerCall::Subscribe(Box::new(WorkerSubscribe {
            id: self.id.clone(),
            session: format!("{:016x}", facts.session),
            hostname: facts.hostname.clone(),
            address: facts.address.clone(),
            term: self.term,
            resources: facts.resources.clone(),
            attributes: facts.attributes.clone(),
            executors,
            unacknowledged,
            leaving: self.leaving.is_some(),
            has_hosts: true,
        }))
    }

    /// When [`WorkerInput::Tick`] has an effect next, unless something else happens before.
    pub(super) fn next_tick(&self) -> Option<Duration> {
        let resend = self.held.next_due(RESEND_AFTER).filter(|_| self.is_subscribed());
        let give_up = self.leaving.as_ref().and_then(|leaving| leaving.give_up_at);
        resend.into_iter().chain(give_up).min()
    }

    /// Handles what has happened.
    pub(super) fn handle(&mut self, input: WorkerInput, now: WorkerTime) -> Vec<WorkerAction> {
        let mut actions = Vec::new();
        match input {
            WorkerInput::Event(event) => self.on_event(event, now, &mut actions),
            WorkerInput::Disconnected => self.disconnect(),
            WorkerInput::Running { key, pid, message, folder } => {
                // An executor that was asked to end while it was being started has said so already.
                if self.held.get(&key).is_some_and(|it| it.state == ReportedState::Starting) {
                    let mut update = self.update(key, ReportedState::Running, message, now);
                    update.pid = pid;
                    self.record(update.with_folder(folder), &mut actions);
                }
            }
            WorkerInput::Ended { key, state, message, is_lost } => {
                if self.held.get(&key).is_some_and(|it| !it.state.is_end()) {
                    let update = self.update(key, state, message, now);
                    self.record(ExecutorUpdate { is_lost, ..update }, &mut actions);
                }
            }
            WorkerInput::Exhausted { key, message } => {
                if self.held.get(&key).is_some_and(|it| !it.state.is_end()) {
                    let update = self.update(key, ReportedState::Failed, message, now);
                    self.record(ExecutorUpdate { is_exhausted: true, ..update }, &mut actions);
                }
            }
            WorkerInput::Leave { grace } => {
                self.leave(ExitReason::Left, Some(grace), now, &mut actions);
            }
            WorkerInput::Tick => {}
        }
        self.send_due(now, &mut actions);
        self.exit_if_done(now, &mut actions);
        actions
    }

    fn on_event(&mut self, event: WorkerEvent, now: WorkerTime, actions: &mut Vec<WorkerAction>) {
        match (self.link, event) {
            (LinkState::Disconnected, _) | (_, WorkerEvent::Heartbeat) => {}
            (LinkState::Subscribing, WorkerEvent::Subscribed { id, term, heartbeat }) => {
                if self.obeys(term, actions) {
                    self.id = Some(id.clone());
                    self.link = LinkState::Subscribed { last_launch: 0 };
                    actions.push(WorkerAction::Persist { id: id.clone(), term });
                    actions.push(WorkerAction::Registered { id, term, heartbeat });
                    if self.leaving.is_some() {
                        // It may have begun to leave after it sent SUBSCRIBE.
                        actions.push(WorkerAction::Send(WorkerCall::Leaving));
                    }
                }
            }
            (LinkState::Subscribing, WorkerEvent::Refused { why, may_retry: true }) => {
                self.disconnect();
                let why = format!("the master refuses the worker: {why}");
                actions.push(WorkerAction::Disconnect { why });
            }
            (LinkState::Subscribing, WorkerEvent::Refused { why, may_retry: false }) => {
                self.disconnect();
                self.leave(ExitReason::Refused { why }, None, now, actions);
            }
            (LinkState::Subscribing, _) => {
                let why = "the master's first message is neither SUBSCRIBED nor REFUSED";
                self.give_up_connection(why, actions);
            }
            (LinkState::Subscribed { last_launch }, event) => {
                self.on_command(event, last_launch, now, actions);
            }
        }
    }

    fn on_command(
        &mut self,
        event: WorkerEvent,
        last_launch: u64,
        now: WorkerTime,
        actions: &mut Vec<WorkerAction>,
    ) {
        match event {
            WorkerEvent::Launch(launch) => {
                if !self.obeys(launch.term, actions) || launch.sequence <= last_launch {
                    return;
                }
                self.link = LinkState::Subscribed { last_launch: launch.sequence };
                self.launch(launch, now, actions);
            }
            WorkerEvent::Kill { key, term, grace } => {
                if self.obeys(term, actions) {
                    self.end(&key, Some(Duration::from_millis(grace)), now, actions);
                }
            }
            WorkerEvent::Ack { key, uuid } => self.held.acknowledge(&key, &uuid),
            WorkerEvent::ShutdownFramework { framework, term } => {
                if !self.obeys(term, actions) {
                    return;
                }
                let own =
                    self.held.alive().map(|(key, _)| key).filter(|it| it.framework == framework);
                for key in own.cloned().collect::<Vec<_>>() {
                    self.end(&key, None, now, actions);
                }
                self.shut_down.insert(framework);
            }
            WorkerEvent::Drain { term, grace } => {
                if self.obeys(term, actions) {
                    let grace = Duration::from_millis(grace);
                    let executors = self.held.alive().count();
                    actions.push(WorkerAction::Drains { executors, grace });
                    self.leave(ExitReason::Left, Some(grace), now, actions);
                }
            }
            WorkerEvent::Subscribed { .. } | WorkerEvent::Refused { .. } => {
                self.give_up_connection("the master answers a registration twice", actions);
            }
            WorkerEvent::Heartbeat => {}
        }
    }

    /// Whether a message with this term is obeyed: a lower one ends the connection, a higher one is remembered.
    fn obeys(&mut self, term: u64, actions: &mut Vec<WorkerAction>) -> bool {
        if term < self.term {
            let why = format!(
                "the master has term {term}, and one with term {} was there after it",
                self.term
            );
            self.give_up_connection(&why, actions);
            return false;
        }
        if term - self.term > TERM_STEP_MAX {
            // Once remembered, it would keep the worker from its true masters for ever.
            let why =
                format!("the master claims term {term}, and the one before was {}", self.term);
            self.give_up_connection(&why, actions);
            return false;
        }
        if term > self.term {
            self.term = term;
            self.shut_down.clear();
            if let (Some(id), true) = (&self.id, self.is_subscribed()) {
                actions.push(WorkerAction::Persist { id: id.clone(), term });
            }
        }
        true
    }

    fn launch(
        &mut self,
        launch: Box<ExecutorLaunch>,
        now: WorkerTime,
        actions: &mut Vec<WorkerAction>,
    ) {
        if self.held.get(&launch.key).is_some() {
            return;
        }
        if self.held.len() >= EXECUTORS_MAX {
            // It isn't held, so that a registration stays within its bounds. If this is lost, the launch is absent from
            // the next SUBSCRIBE, and the master reports it as dropped.
            let why = format!("not started: the worker holds {EXECUTORS_MAX} executors already");
            let update = self.update(launch.key, ReportedState::Dropped, why, now);
            actions.push(WorkerAction::Changed(Box::new(update.clone())));
            actions.push(WorkerAction::Send(WorkerCall::Update(update)));
            return;
        }
        let refused = self.refusal(&launch);
        self.held.insert(&launch);
        let (state, message) = match refused {
            None => (ReportedState::Starting, String::new()),
            Some((state, why)) => (state, why),
        };
        let update = self.update(launch.key.clone(), state, message, now);
        self.record(update, actions);
        if state == ReportedState::Starting {
            actions.push(WorkerAction::Start(launch));
        }
    }

    /// Why an executor isn't started, and as what that is reported.
    fn refusal(&self, launch: &ExecutorLaunch) -> Option<(ReportedState, String)> {
        let dropped = |why: String| Some((ReportedState::Dropped, why));
        if self.leaving.is_some() {
            return dropped("not started: the worker is leaving".to_owned());
        }
        if self.shut_down.contains(&launch.key.framework) {
            return dropped("not started: its framework was shut down".to_owned());
        }
        if let Some(host) = launch.hosting.host()
            && !self.held.takes_tasks(&ExecutorKey::new(launch.key.framework.clone(), host))
        {
            return dropped(format!("not started: its host {host} isn't here, or is about to end"));
        }
        let used = self.held.used();
        if used.shares_ports_with(&launch.resources)
            || !self.facts.resources.covers(&used.plus(&launch.resources))
        {
            return dropped(format!(
                "not started: it needs {}, and of {} the executors here use {used}",
                launch.resources, self.facts.resources
            ));
        }
        let WorkerFacts { user: own, takes_any_user, .. } = &self.facts;
        let asked = launch.command.user.as_ref().filter(|user| Some(*user) != own.as_ref());
        let asked = asked.filter(|_| !takes_any_user)?;
        let own = own.as_ref().map_or(String::new(), |own| format!(" {own:?}"));
        let why = format!(
            "not started: the framework asks for the user {asked:?}, but executors of this worker run as its own \
             user{own}"
        );
        Some((ReportedState::Failed, why))
    }

    /// Asks an executor to end. Repeated requests may shorten its grace period.
    fn end(
        &mut self,
        key: &ExecutorKey,
        grace: Option<Duration>,
        now: WorkerTime,
        actions: &mut Vec<WorkerAction>,
    ) {
        let Some(held) = self.held.get(key).filter(|held| !held.state.is_end()) else { return };
        let grace = grace.unwrap_or(held.grace);
        if held.state != ReportedState::Killing {
            let message = "asked to end".to_owned();
            let update = self.update(key.clone(), ReportedState::Killing, message, now);
            self.record(update, actions);
        }
        actions.push(WorkerAction::End { key: key.clone(), grace });
    }

    /// Begins the worker's end: takes no launches, and ends all executors.
    fn leave(
        &mut self,
        reason: ExitReason,
        grace: Option<Duration>,
        now: WorkerTime,
        actions: &mut Vec<WorkerAction>,
    ) {
        if self.leaving.is_none() && self.is_subscribed() {
            actions.push(WorkerAction::Send(WorkerCall::Leaving));
        }
        for key in self.held.alive().map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.end(&key, grace, now, actions);
        }
        self.leaving.get_or_insert(Leaving { reason, give_up_at: None });
    }

    /// Ends the worker if no executor runs and all ends are acknowledged, or if it waited long enough for that.
    fn exit_if_done(&mut self, now: WorkerTime, actions: &mut Vec<WorkerAction>) {
        let is_connected = self.is_subscribed();
        let runs = self.held.alive().next().is_some();
        let Some(leaving) = self.leaving.as_mut().filter(|_| !runs && !self.has_exited) else {
            return;
        };
        let refused = matches!(leaving.reason, ExitReason::Refused { .. });
        let give_up_at = *leaving.give_up_at.get_or_insert(now.since_start + LEAVE_WAIT);
        // A worker that no master knows has nothing to tell.
        let is_settled = self.held.is_empty() && (is_connected || self.id.is_none());
        if is_settled || refused || give_up_at <= now.since_start {
            let reason = leaving.reason.clone();
            self.has_exited = true;
            if is_connected {
                actions.push(WorkerAction::Send(WorkerCall::Leave));
            }
            actions.push(WorkerAction::Exit(reason));
        }
    }

    fn give_up_connection(&mut self, why: &str, actions: &mut Vec<WorkerAction>) {
        self.disconnect();
        actions.push(WorkerAction::Disconnect { why: why.to_owned() });
    }

    fn disconnect(&mut self) {
        self.link = LinkState::Disconnected;
    }

    fn send_due(&mut self, now: WorkerTime, actions: &mut Vec<WorkerAction>) {
        if self.is_subscribed() {
            let due = self.held.due(now.since_start, RESEND_AFTER).into_iter();
            actions.extend(due.map(|update| WorkerAction::Send(WorkerCall::Update(update))));
        }
    }

    /// Keeps an update until it is acknowledged.
    fn record(&mut self, update: ExecutorUpdate, actions: &mut Vec<WorkerAction>) {
        actions.push(WorkerAction::Changed(Box::new(update.clone())));
        self.held.push(update);
    }

    /// An update with a number of its own: this process's, and that of the update.
    fn update(
        &mut self,
        key: ExecutorKey,
        state: ReportedState,
        message: String,
        now: WorkerTime,
    ) -> ExecutorUpdate {
        self.updates_made += 1;
        let uuid = format!("{:016x}{:016x}", self.facts.updates, self.updates_made);
        let held = self.held.get(&key);
        let host = held.and_then(|held| held.hosting.host()).map(str::to_owned);
        let update = ExecutorUpdate { host, ..ExecutorUpdate::new(key, uuid, state, now.unix) };
        if message.is_empty() { update } else { update.with_message(message) }
    }
}
