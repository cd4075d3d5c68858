//! The cluster's one thread: takes in messages, keeps the books, tells the engine.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::agent::Room;
use super::executors::{Executor, Executors, Stage};
use super::exit::Exit;
use super::fleet::Fleet;
use super::message::{Acceptance, Message, Order, Question};
use super::outbox::Outbox;
use super::process::{Blame, Unstarted};
use super::sandbox;
use super::starts::{Start, Started, Starts};
use super::waiting::{Queue, QueuedLaunch};
use crate::engine::cluster_manager::Event;
use crate::resources::Gpus;
use crate::status::{TaskState, UpdateReason};

/// The first subscription, and the only one: it ends with the cluster.
const EPOCH: u64 = 1;
/// As many messages are taken in before offers are made again.
const MESSAGES_MAX: usize = 256;
/// No event bears more offers.
const OFFERS_MAX: usize = 1000;
/// How long to wait for the end of executors that were killed: one that the kernel can't end must
/// not hold us up.
const FORCED_WAIT: Duration = Duration::from_secs(5);

/// Why nothing is started any more.
const STOPS: &str = "not started: the cluster stops";

/// All that the thread owns.
pub(super) struct Actor {
    pub(super) inbox: Receiver<Message>,
    pub(super) outbox: Outbox,
    pub(super) fleet: Fleet,
    pub(super) starts: Starts,
    pub(super) executors: Executors,
    pub(super) waiting: Queue,
    pub(super) grace: Duration,
    pub(super) stopping: Stopping,
}

/// Whether the cluster is to stop; set before the message that says so, which may have a long queue
/// before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stopping(Arc<Mutex<bool>>);

impl Stopping {
    pub(super) fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn is_set(&self) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
enum Then {
    GoOn,
    Stop,
}

impl Actor {
    /// Runs until it is told to stop, and ends all executors before it returns.
    pub(super) fn run(mut self, framework_id: String) {
        self.outbox.send(Event::Registered { framework_id, again: false });
        loop {
            self.make_offers();
            if self.take_messages() == Then::Stop {
                break;
            }
            self.start_some();
            self.tend(Instant::now());
        }
        self.end();
    }

    fn make_offers(&mut self) {
        let mut offers = self.fleet.offers(Instant::now());
        while !offers.is_empty() {
            let rest = offers.split_off(offers.len().min(OFFERS_MAX));
            self.outbox.send(Event::Offers(offers));
            offers = rest;
        }
    }

    /// Waits for a message, or until something is due, and takes in what has come.
    fn take_messages(&mut self) -> Then {
        let now = Instant::now();
        let starts_now = (!self.waiting.is_empty() && self.starts.has_room(now)).then_some(now);
        let starts_next = self.starts.next(now);
        let due = [starts_now, starts_next, self.fleet.offers_next(), self.executors.tend_next()];
        let first = match due.into_iter().flatten().min() {
            Some(due) => self.inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let mut message = match first {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Then::Stop,
        };
        let mut room = MESSAGES_MAX;
        while let Some(taken) = message {
            if matches!(taken, Message::Stop) {
                return Then::Stop;
            }
            self.handle(taken);
            room -= 1;
            message = if room > 0 { self.inbox.try_recv().ok() } else { None };
        }
        if self.stopping.is_set() { Then::Stop } else { Then::GoOn }
    }

    fn handle(&mut self, message: Message) {
        let now = Instant::now();
        match message {
            Message::Accept(acceptance) => self.accept(acceptance, now),
            Message::Decline { epoch: EPOCH, offers, refuse } => {
                self.fleet.decline(&offers, refuse, now);
            }
            Message::Decline { .. } | Message::Stop => {}
            Message::Revive => self.fleet.revive(),
            Message::Suppress => self.fleet.suppress(),
            Message::Kill { executor, grace } => self.kill(&executor, grace, now),
            Message::Reconcile(questions) => self.reconcile(&questions),
            Message::Ended(number) => self.ended(number),
            Message::Started { number, started } => self.started(number, started, now),
            Message::Relief { number, warden } => self.executors.relieve(number, warden),
            Message::LoseAgent(seat) => self.lose_agent(seat),
            Message::RestoreAgent(seat) => self.fleet.restore(seat, now),
        }
    }

    fn accept(&mut self, acceptance: Acceptance, now: Instant) {
        let Acceptance { epoch, agent_id, offers, executors, refuse } = acceptance;
        let redeemed = match epoch {
            _ if self.stopping.is_set() => Err(STOPS.to_owned()),
            EPOCH => self.fleet.redeem(&offers, &agent_id),
            _ => Err(format!("the offers are of subscription {epoch}, this is {EPOCH}")),
        };
        let (seat, mut offered) = match redeemed {
            Ok(redeemed) => redeemed,
            Err(why) => {
                let (state, reason) = (TaskState::Dropped, UpdateReason::InvalidOffers);
                for order in &executors {
                    let agent_id = Some(agent_id.as_str());
                    self.outbox.cluster_says(&order.executor, agent_id, state, reason, &*why);
                }
                return;
            }
        };
        // All of them come out of the offer before the first is started: starting takes time, and
        // an agent that refuses the rest does so from now on.
        let mut fitting = Vec::with_capacity(executors.len());
        for order in executors {
            if self.is_known(&order, &fitting) {
                continue;
            }
            let refused = objection(&order);
            match refused.map_or_else(|| offered.take(order.room, order.port), Err) {
                Ok(()) => fitting.push(order),
                Err(why) => {
                    let (state, reason) = (TaskState::Error, UpdateReason::Other);
                    self.outbox.cluster_says(&order.executor, Some(&agent_id), state, reason, why);
                }
            }
        }
        if let Some(agent) = self.fleet.agent(seat, &agent_id) {
            agent.refuse(offered.room, refuse, now);
            fitting.iter().for_each(|order| agent.hold(order.room, order.port));
        }
        for order in fitting {
            self.waiting.push(QueuedLaunch { order, seat, agent_id: agent_id.clone() });
        }
    }

    /// Begins the starts of executors that wait for it, as far as there is room, none once the cluster is to stop.
    fn start_some(&mut self) {
        let now = Instant::now();
        while self.starts.has_room(now) && !self.stopping.is_set() {
            let Some(waiting) = self.waiting.pop() else { return };
            let id = &waiting.order.executor;
            self.outbox.executor_says(id, &waiting.agent_id, TaskState::Starting, String::new());
            if let Err(failed) = self.starts.begin(waiting, now) {
                let (start, unstarted) = *failed;
                self.not_started(&start, unstarted);
            }
        }
    }

    /// Does what is due.
    fn tend(&mut self, now: Instant) {
        for start in self.starts.give_up(now) {
            let why = match start.force_at {
                Some(_) => "on request, while it was being started",
                None => "the start hangs: its sandbox's file system or its warden doesn't answer",
            };
            let why = why.to_owned();
            self.not_started(&start, Unstarted { why, blame: Blame::Executor });
        }
        self.executors.tend(now);
    }

    /// Whether it runs already, or will in a moment: its own updates say all there is to say.
    fn is_known(&self, order: &Order, fitting: &[Order]) -> bool {
        let id = &order.executor;
        self.executors.get(id).is_some()
            || self.starts.get(id).is_some()
            || self.waiting.get(id).is_some()
            || fitting.iter().any(|other| other.executor == *id)
    }

    /// A start has come to an end.
    fn started(&mut self, number: u64, started: Result<Started, Unstarted>, now: Instant) {
        let (start, started) = match (self.starts.take(number), started) {
            (Some(start), Ok(started)) => (start, started),
            (Some(start), Err(unstarted)) => return self.not_started(&start, unstarted),
            (None, Ok(started)) => return discard(started),
            (None, Err(_)) => return,
        };
        let Start { force_at, has_ended, .. } = start;
        let executor = self.executors.take_over(number, start, started);
        if let Some(force_at) = force_at {
            self.executors.end_before(number, force_at, now);
        } else {
            let output = executor.sandbox.display();
            let message = format!("process {}, output in {output}", executor.pid());
            let (id, agent_id) = (&executor.id, &executor.agent_id);
            self.outbox.executor_says(id, agent_id, TaskState::Running, message);
        }
        if has_ended {
            self.ended(number);
        }
    }

    fn not_started(&mut self, start: &Start, Unstarted { why, blame }: Unstarted) {
        let Start { id, seat, agent_id, room, port, .. } = start;
        self.fleet.free_up(*seat, agent_id, *room, *port);
        let state = match blame {
            _ if start.force_at.is_some() => TaskState::Killed,
            Blame::Executor => TaskState::Failed,
            Blame::Description => TaskState::Error,
            Blame::Shortage => TaskState::Dropped,
        };
        self.outbox.executor_says(id, agent_id, state, why);
    }

    fn kill(&mut self, id: &str, grace: Duration, now: Instant) {
        if let Some(QueuedLaunch { order, seat, agent_id }) = self.waiting.remove(id) {
            self.fleet.free_up(seat, &agent_id, order.room, order.port);
            let (state, reason) = (TaskState::Killed, UpdateReason::Other);
            let message = "on request, before it was started";
            self.outbox.cluster_says(id, Some(&agent_id), state, reason, message);
            return;
        }
        if let Some(is_first) = self.starts.kill(id, grace, now) {
            if let Some(start) = self.starts.get(id).filter(|_| is_first) {
                let message = "asked to end while it is being started".to_owned();
                self.outbox.executor_says(id, &start.agent_id, TaskState::Killing, message);
            }
            return self.tend(now);
        }
        let killed_before = self.executors.get(id).is_some_and(|it| it.stage != Stage::Running);
        match self.executors.end(id, grace, now) {
            Some(_) if killed_before => {}
            Some(executor) => {
                let message = "asked to end".to_owned();
                self.outbox.executor_says(id, &executor.agent_id, TaskState::Killing, message);
            }
            None => self.say_gone(id, None, UpdateReason::Other),
        }
    }

    fn reconcile(&mut self, questions: &[Question]) {
        let say = |executor: &Executor| {
            let (id, agent_id) = (&executor.id, Some(executor.agent_id.as_str()));
            let reason = UpdateReason::Reconciliation;
            self.outbox.cluster_says(id, agent_id, executor.state(), reason, "");
        };
        let say_starting = |start: &Start| {
            let state = match start.force_at {
                Some(_) => TaskState::Killing,
                None => TaskState::Starting,
            };
            let reason = UpdateReason::Reconciliation;
            self.outbox.cluster_says(&start.id, Some(&start.agent_id), state, reason, "");
        };
        let say_waiting = |QueuedLaunch { order, agent_id, .. }: &QueuedLaunch| {
            let (state, reason) = (TaskState::Staging, UpdateReason::Reconciliation);
            self.outbox.cluster_says(&order.executor, Some(agent_id), state, reason, "");
        };
        if questions.is_empty() {
            self.executors.iter().for_each(say);
            self.starts.iter().for_each(say_starting);
            self.waiting.iter().for_each(say_waiting);
            return;
        }
        for Question { executor, agent_id } in questions {
            if let Some(start) = self.starts.get(executor) {
                say_starting(start);
                continue;
            }
            match (self.executors.get(executor), self.waiting.get(executor)) {
                (Some(executor), _) => say(executor),
                (None, Some(waiting)) => say_waiting(waiting),
                (None, None) => {
                    self.say_gone(executor, Some(agent_id), UpdateReason::Reconciliation)
                }
            }
        }
    }

    /// Of an executor that isn't here, other clusters can only say that they don't know it. This
    /// one is all in one process: what it has no process of does not run.
    fn say_gone(&self, executor: &str, agent_id: Option<&str>, reason: UpdateReason) {
        let message = "no such executor is running";
        self.outbox.cluster_says(executor, agent_id, TaskState::Gone, reason, message);
    }

    fn ended(&mut self, number: u64) {
        if self.starts.note_end(number) {
            return;
        }
        let Some((executor, exit)) = self.executors.reap(number) else { return };
        let Executor { id, seat, agent_id, room, port, stage, .. } = &executor;
        self.fleet.free_up(*seat, agent_id, *room, *port);
        let (state, message) = match (stage, exit) {
            (Stage::Abandoned, _) => return,
            (Stage::Ending { .. } | Stage::Forced, exit) if self.stopping.is_set() => {
                (TaskState::Killed, format!("{exit} when the cluster stopped"))
            }
            (Stage::Ending { .. }, exit) => (TaskState::Killed, format!("on request: {exit}")),
            (Stage::Forced, exit) => {
                (TaskState::Killed, format!("on request, its grace was over: {exit}"))
            }
            (Stage::Running, Exit::Code(0)) => (TaskState::Finished, exit.to_string()),
            (Stage::Running, exit) => (TaskState::Failed, exit.to_string()),
        };
        self.outbox.executor_says(id, agent_id, state, message);
    }

    fn lose_agent(&mut self, seat: usize) {
        let Some(lost) = self.fleet.lose(seat) else { return };
        let mut executors = self.executors.abandon(&lost.id);
        executors.extend(self.starts.abandon(&lost.id).into_iter().map(|start| start.id));
        executors.extend(self.waiting.remove_of(&lost.id));
        if let Some(offer_id) = lost.offer {
            self.outbox.send(Event::Rescinded { offer_id });
        }
        self.outbox.send(Event::AgentLost { agent_id: lost.id.clone() });
        let (state, reason) = (TaskState::Gone, UpdateReason::AgentRemoved);
        for executor in executors {
            let message = "its agent was lost";
            self.outbox.cluster_says(&executor, Some(&lost.id), state, reason, message);
        }
    }

    /// Ends all executors, and reports how they ended: the cluster's owner listens until the thread
    /// is gone.
    fn end(mut self) {
        self.stopping.set();
        let give_up = Instant::now() + self.grace + FORCED_WAIT;
        while let Some(QueuedLaunch { order, agent_id, .. }) = self.waiting.pop() {
            let (state, reason) = (TaskState::Dropped, UpdateReason::InvalidOffers);
            self.outbox.cluster_says(&order.executor, Some(&agent_id), state, reason, STOPS);
        }
        // What has ended by itself is taken for that, and what is asked for is answered.
        self.take_rest(give_up);
        self.executors.end_all(self.grace, Instant::now());
        self.starts.kill_all(self.grace, Instant::now());
        while !self.executors.is_empty() || !self.starts.is_empty() {
            let now = Instant::now();
            self.tend(now);
            if give_up <= now {
                break;
            }
            let due = [self.executors.tend_next(), self.starts.next(now), Some(give_up)];
            let due = due.into_iter().flatten().min().unwrap_or(give_up);
            let message = self.inbox.recv_timeout(due.saturating_duration_since(now));
            message.into_iter().for_each(|message| self.handle(message));
        }
        self.take_rest(give_up);
    }

    /// Takes in what has come. Nothing is started by that any more.
    fn take_rest(&mut self, give_up: Instant) {
        while Instant::now() < give_up
            && let Ok(message) = self.inbox.try_recv()
        {
            self.handle(message);
        }
    }
}

/// Ends what was started too late. Waits for that on a thread of its own.
fn discard(mut started: Started) {
    started.group.kill();
    let reap = move || {
        let _how = started.group.reap();
    };
    // Without a thread it stays a zombie; it was killed.
    let _no_thread = Builder::new().name("offermill-reap".into()).spawn(reap);
}

/// Why an executor can't be started whatever was offered.
fn objection(order: &Order) -> Option<String> {
    if !sandbox::can_name(&order.executor) {
        Some(format!("{:?} is no id that a sandbox could have", order.executor))
    } else if order.room == Room::default() {
        Some("asks for neither cores nor memory".to_owned())
    } else if order.gpus > Gpus::ZERO {
        Some(format!("asks for {} GPUs, and none were offered", order.gpus))
    } else {
        None
    }
}
