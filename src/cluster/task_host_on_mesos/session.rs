//! The conversation with the agent: subscriptions one after the other, their events, and the updates of tasks.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use prost::Message as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::agent_calls::{Agent, AgentCalls, SubscribeError};
use super::hosted_tasks::{HostedTasks, Reaction};
use super::updates::UnacknowledgedUpdates;
use crate::backoff::random_part;
use crate::cluster::http_client::{RecordStream, StreamItem};
use crate::cluster::task_host::{HostMessage, HostReport};
use crate::config::text::format_duration;
use crate::foreign_text::cut_message;
use crate::mesos_v1::messages::CapabilityType;
use crate::mesos_v1::messages::executor::{Event, EventType, Subscribed};

/// How long the first event of a subscription is waited for.
const SUBSCRIBED_WAIT: Duration = Duration::from_secs(10);
/// How long a host whose tasks have ended waits for the agent to acknowledge that.
const ACKNOWLEDGED_WAIT: Duration = Duration::from_secs(30);

/// How long the agent may say nothing until the host subscribes again. Agents send no heartbeats, or one each 30 min.
const SILENCE_MAX: Duration = Duration::from_secs(60 * 60);

/// The shortest wait before another subscription.
const BACKOFF_MIN: Duration = Duration::from_millis(50);

/// The conversation.
#[derive(Debug)]
pub(super) struct AgentSession {
    agent: Arc<Agent>,
    /// `None` once the task loop has ended.
    reports: Option<UnboundedReceiver<HostReport>>,
    to_tasks: Sender<HostMessage>,
    tasks: HostedTasks,
    updates: UnacknowledgedUpdates,
    /// The host ends at this time, whether or not its updates are acknowledged: its tasks have ended.
    ends_by: Option<Instant>,
}

/// Why a subscription has ended.
#[derive(Debug)]
enum SubscriptionEnd {
    /// The host has nothing more to do.
    Over,
    /// The agent is away.
    Away(String),
    /// The agent has said nothing for [`SILENCE_MAX`].
    Silent,
    /// The host must end.
    Final(String),
}

impl AgentSession {
    pub(super) fn new(
        agent: Arc<Agent>,
        reports: UnboundedReceiver<HostReport>,
        to_tasks: Sender<HostMessage>,
    ) -> AgentSession {
        let tasks = HostedTasks::new(&agent.environment);
        let updates = UnacknowledgedUpdates::default();
        AgentSession { agent, reports: Some(reports), to_tasks, tasks, updates, ends_by: None }
    }

    /// Speaks with the agent until the host has ended.
    ///
    /// # Errors
    /// With a sentence: if the host must end although the agent hasn't asked for it.
    pub(super) async fn run(mut self) -> Result<(), String> {
        let mut away_since = Instant::now();
        let mut was_subscribed = false;
        loop {
            let why = match self.subscribe().await {
                Ok(stream) => {
                    was_subscribed = true;
                    let ended = self.follow(stream).await;
                    away_since = Instant::now();
                    match ended {
                        SubscriptionEnd::Over => return Ok(()),
                        SubscriptionEnd::Final(why) => return Err(why),
                        SubscriptionEnd::Silent => continue,
                        SubscriptionEnd::Away(why) => why,
                    }
                }
                Err(SubscribeError::Refused(why)) => return Err(why),
                Err(SubscribeError::Later(why)) => why,
            };
            say(format_args!("no subscription with the agent: {why}"));
            let environment = &self.agent.environment;
            if was_subscribed && !environment.is_checkpointing {
                return Err(format!(
                    "the agent is gone, and the framework doesn't checkpoint: {why}"
                ));
            }
            let timeout = environment.recovery_timeout;
            if away_since.elapsed() >= timeout {
                let timeout = format_duration(timeout);
                return Err(format!("the agent hasn't come back within {timeout}: {why}"));
            }
            let wait = random_part(environment.backoff_max).max(BACKOFF_MIN);
            if self.wait(wait).await {
                return Ok(());
            }
        }
    }

    /// Subscribes, and waits for the first event.
    async fn subscribe(&mut self) -> Result<RecordStream, SubscribeError> {
        let carried = self.updates.subscribe(Instant::now());
        let mut stream = self.agent.subscribe(carried).await?;
        let first = timeout(SUBSCRIBED_WAIT, stream.next()).await;
        let first = first.map_err(|_| SubscribeError::Later("it sends no event".to_owned()))?;
        let first = first.map_err(SubscribeError::Later)?;
        let event = read(first).map_err(SubscribeError::Refused)?;
        let Some(Subscribed { framework_info }) = event.subscribed else {
            let why = format!("the agent's first event is {}, not SUBSCRIBED", name(&event));
            return Err(SubscribeError::Refused(why));
        };
        let killing = CapabilityType::TaskKillingState.into();
        self.tasks.knows_killing =
            framework_info.capabilities.iter().any(|it| it.r#type == Some(killing));
        say(format_args!("subscribed with the agent {}", self.agent.environment.agent));
        Ok(stream)
    }

    /// Follows events and reports while a subscription lasts.
    async fn follow(&mut self, mut stream: RecordStream) -> SubscriptionEnd {
        let mut calls = AgentCalls::start(Arc::clone(&self.agent));
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard_at = Instant::now();
        loop {
            if self.is_over() {
                return SubscriptionEnd::Over;
            }
            tokio::select! {
                item = stream.next() => {
                    heard_at = Instant::now();
                    let event = match item {
                        Ok(item) => read(item),
                        Err(why) => return SubscriptionEnd::Away(why),
                    };
                    if let Err(why) = event.and_then(|event| self.follow_event(event, &calls)) {
                        return SubscriptionEnd::Final(why);
                    }
                }
                report = next_report(&mut self.reports) => {
                    let reaction = self.follow_report(report);
                    self.react(reaction, Some(&calls));
                }
                _ = ticks.tick() => {
                    let now = Instant::now();
                    if now.saturating_duration_since(heard_at) > SILENCE_MAX {
                        return SubscriptionEnd::Silent;
                    }
                    // What the agent has not taken yet would be sent twice.
                    if calls.are_sent() {
                        for update in self.updates.overdue(now) {
                            calls.send(self.agent.update(update));
                        }
                    }
                }
                Ok(why) = &mut calls.refused => return SubscriptionEnd::Final(why),
            }
        }
    }

    /// Waits before the next subscription, and takes reports meanwhile, which it will carry. Returns whether the host
    /// has nothing more to do.
    async fn wait(&mut self, wait: Duration) -> bool {
        let end = sleep(wait);
        tokio::pin!(end);
        loop {
            if self.is_over() {
                return true;
            }
            tokio::select! {
                () = &mut end => return false,
                report = next_report(&mut self.reports) => {
                    let reaction = self.follow_report(report);
                    self.react(reaction, None);
                }
            }
        }
    }

    /// Follows an event.
    ///
    /// # Errors
    /// If it makes no sense, or says that something else did: the host can't tell what the agent expects of it.
    fn follow_event(&mut self, event: Event, calls: &AgentCalls) -> Result<(), String> {
        let kind = event.r#type();
        let without = || format!("the agent sent {} without its content", name(&event));
        match kind {
            EventType::Launch => {
                let task = event.launch.as_ref().ok_or_else(without)?.task.clone();
                let reaction = self.tasks.launch(&task);
                if reaction.is_some() {
                    self.updates.launched(task);
                }
                self.react(reaction, Some(calls));
            }
            EventType::Kill => {
                let kill = event.kill.as_ref().ok_or_else(without)?;
                let reactions = self.tasks.kill(&kill.task_id.value, kill.kill_policy.as_ref());
                self.react(reactions, Some(calls));
            }
            EventType::Acknowledged => {
                let uuid = &event.acknowledged.as_ref().ok_or_else(without)?.uuid;
                let task = self.updates.acknowledge(uuid);
                let starts = task.map(|task| self.tasks.acknowledged(&task)).unwrap_or_default();
                self.react(starts, Some(calls));
            }
            EventType::Shutdown => {
                let reactions = self.tasks.finish(self.agent.environment.shutdown_grace);
                self.react(reactions, Some(calls));
            }
            // There is nothing else to ask for.
            EventType::Message => calls.send(self.agent.message(self.tasks.list())),
            EventType::Error => {
                let why = cut_message(event.error.unwrap_or_default().message);
                return Err(format!("the agent sent ERROR: {why}"));
            }
            EventType::LaunchGroup => {
                return Err("the agent launched a group of tasks, which hosts don't run".to_owned());
            }
            EventType::Subscribed | EventType::Heartbeat | EventType::Unknown => {}
        }
        Ok(())
    }

    /// Follows a report of the task loop, or its end.
    fn follow_report(&mut self, report: Option<HostReport>) -> Option<Reaction> {
        if let Some(report) = report {
            let reaction = self.tasks.follow(report);
            if self.tasks.is_abandoned() {
                let finish = self.tasks.finish(Duration::ZERO);
                self.react(finish, None);
            }
            return reaction;
        }
        self.reports = None;
        let wait = if self.tasks.is_finishing() { ACKNOWLEDGED_WAIT } else { Duration::ZERO };
        self.ends_by = Some(Instant::now() + wait);
        self.tasks.anchor_end().filter(|_| !wait.is_zero())
    }

    fn react(&mut self, reactions: impl IntoIterator<Item = Reaction>, calls: Option<&AgentCalls>) {
        for reaction in reactions {
            match reaction {
                Reaction::Wait => {}
                Reaction::Request(request) => {
                    // A loop that has ended has ended its tasks.
                    let _sent = self.to_tasks.send(HostMessage::Request(request));
                }
                Reaction::Report(status) => {
                    let update = self.updates.add(*status, Instant::now());
                    if let Some(calls) = calls {
                        calls.send(self.agent.update(update));
                    }
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.ends_by.is_some_and(|by| self.updates.is_empty() || by <= Instant::now())
    }
}

/// Writes a sentence to standard error, which may be a file on a full disk.
fn say(sentence: fmt::Arguments<'_>) {
    let _unwritten = writeln!(io::stderr(), "offermill: {sentence}");
}

/// The next report; `None` is the end of the loop, once.
async fn next_report(reports: &mut Option<UnboundedReceiver<HostReport>>) -> Option<HostReport> {
    match reports {
        Some(reports) => reports.recv().await,
        None => std::future::pending().await,
    }
}

/// Reads an event.
///
/// # Errors
/// If it is too long or isn't one. What it asked for can't be known, so the host must end.
fn read(item: StreamItem) -> Result<Event, String> {
    match item {
        StreamItem::Record(record) => {
            Event::decode(&*record).map_err(|error| format!("the agent sent nonsense: {error}"))
        }
        StreamItem::Skipped(why) => Err(format!("the agent sent nonsense: {why}")),
    }
}

fn name(event: &Event) -> String {
    format!("{:?}", event.r#type()).to_uppercase()
}
