//! The subscriber: the task that subscribes to a master, decodes its events, and subscribes again when that ends.
//!
//! ```text
//!              ┌───────────── wait, next master ◄─────────────┐
//!              ▼                                              │
//!  start ─► subscribing ──── no, not now, elsewhere ──────────┤
//!              │    └─ refused; never a Mesos ─► the end      │
//!              ▼                                              │
//!          subscribed ────── the stream ends, stalls, is bad ─┘
//!              └──────────── ERROR ─► the end
//! ```
//!
//! An event that can't be decoded is ignored and reported, because the master would send it again after the next
//! subscription. Only the first event of a subscription must be SUBSCRIBED. An event of offers that can't be told apart
//! ends the subscription: nothing else takes the offers back. So does a RESCIND that can't be decoded: the offer that
//! it names must not be used any more.
//!
//! No events are read while too many acknowledgements wait to be sent: see `call_queue.rs`.
//!
//! The subscriber continues while the manager is being stopped, because TEARDOWN needs a subscription. The engine gets
//! no events of new subscriptions then.
//!
//! Each subscription has a new number, and calls of earlier ones are dropped. Executors keep running; they are
//! reconciled after each subscription.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::active_subscription::{ActiveSubscription, SubscriptionSender};
use super::call_queue::CallPayload;
use super::call_queue::CallQueue;
use super::calls;
use super::config::{AtEnd, MesosConfig};
use super::event_decoder::{DecodedEvent, EventDecoder, Undecodable};
use super::ignored_events::IgnoredEvents;
use super::master_errors::{is_about_constraints, is_removed};
use super::state_file::FrameworkState;
use super::state_writer::SharedStateFile;
use super::subscription::{EventStream, Unsubscribed};
use crate::backoff::Backoff;
use crate::cluster::http_client::{Master, SharedHttp, StreamItem};
use crate::config::text::format_duration;
use crate::engine::cluster_manager::{Event, EventSink, RefusedOffer};
use crate::engine::trace;
use crate::mesos_v1::codec::Codec;

/// The maximum number of redirections that are followed in a row without waiting.
const REDIRECTIONS_MAX: u32 = 4;
/// The maximum number of times in a row that each address may answer unlike a Mesos master: a master that has just
/// started answers 404 until its routes exist.
const NOT_MESOS_TRIES: usize = 5;
/// A subscription that lasted for this time resets the backoff.
const STABLE_AFTER: Duration = Duration::from_secs(15);
/// After a subscription that lasted for this time, the failure that was reported last is reported again.
const REPORTED_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// The task that subscribes and reads events.
pub(super) struct Subscriber {
    pub(super) config: watch::Receiver<MesosConfig>,
    pub(super) http: SharedHttp,
    pub(super) codec: Codec,
    pub(super) events: EventSink,
    pub(super) state_file: SharedStateFile,
    pub(super) subscription: SubscriptionSender,
    /// Subscriptions up to this number are to be replaced.
    pub(super) resubscribe: watch::Receiver<u64>,
    /// The framework's id, for TEARDOWN.
    pub(super) framework_id: Arc<OnceLock<String>>,
    /// Whether the manager is being stopped.
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) call_queue: CallQueue,
    pub(super) state: SubscriberState,
}

/// What the subscriber keeps from one subscription to the next.
#[derive(Debug, Default)]
pub(super) struct SubscriberState {
    /// The number of subscriptions so far.
    epoch: u64,
    framework_id: Option<String>,
    /// The index of the master to try next.
    next: usize,
    /// The master that was named as the leader.
    leader: Option<Master>,
    redirections: u32,
    /// The number of addresses in a row that answered unlike a Mesos master.
    not_mesos: usize,
    backoff: Backoff,
    /// The master refuses the constraints. They only reduce the number of offers.
    without_constraints: bool,
    /// When the first subscription is given up. `None` once there was one.
    give_up_at: Option<Instant>,
    /// The last failure that was reported, so that it isn't reported repeatedly.
    last_failure: Option<String>,
    ignored_events: IgnoredEvents,
    /// When the present subscription began.
    subscribed_at: Option<Instant>,
}

/// What to do after an attempt to subscribe.
enum NextStep {
    /// Wait and try again.
    Retry(String),
    /// Try again at once.
    RetryNow,
    /// Give up.
    GiveUp(String),
}

impl Subscriber {
    /// Runs until the cluster refuses the framework for good, or the manager is stopped. Returns the reason of a
    /// refusal that came while the manager was being stopped; an earlier one is an event.
    pub(super) async fn run(mut self) -> Option<String> {
        self.state.framework_id = self.state_file.former_state().framework_id;
        let config = self.config.borrow().clone();
        self.state.give_up_at = Some(Instant::now() + config.subscribe_timeout);
        loop {
            let master = self.next_master();
            trace::subscribing(&master);
            let next = self.subscribe_at(&master).await;
            if let NextStep::Retry(why) | NextStep::GiveUp(why) = &next {
                trace::subscription_ended(&master, why);
            }
            let stopping = *self.stopping.borrow();
            if stopping && (self.state.epoch == 0 || config.at_end == AtEnd::Leave) {
                return None;
            }
            let why = match next {
                NextStep::RetryNow => continue,
                NextStep::GiveUp(why) if stopping => return Some(why),
                NextStep::GiveUp(why) => {
                    self.events.send(Event::Refused { why });
                    return None;
                }
                NextStep::Retry(why) => why,
            };
            let mut wait = self.state.backoff.next();
            if let Some(give_up_at) = self.state.give_up_at {
                // The last attempt is made at the limit, not before.
                wait = wait.min(give_up_at.saturating_duration_since(Instant::now()));
            }
            if wait.is_zero() {
                let masters = &config.masters;
                let within = format_duration(config.subscribe_timeout);
                let why =
                    format!("no master of {masters} could be subscribed to within {within}: {why}");
                self.events.send(Event::Refused { why });
                return None;
            }
            if !stopping {
                self.report_once(why);
            }
            self.wait(wait).await;
        }
    }

    /// Waits. When the manager is to be stopped the wait ends, because TEARDOWN needs a subscription.
    async fn wait(&mut self, wait: Duration) {
        if *self.stopping.borrow() {
            return tokio::time::sleep(wait).await;
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            Ok(_) = self.stopping.wait_for(|stopping| *stopping) => self.state.backoff.reset(),
        }
    }

    /// The master to try next: the leader if one was named, otherwise one after the other.
    fn next_master(&mut self) -> Master {
        if let Some(leader) = self.state.leader.take() {
            return leader;
        }
        let config = self.config.borrow();
        let all = config.masters.all();
        let at = self.state.next % all.len().max(1);
        self.state.next = at + 1;
        all.get(at).cloned().unwrap_or_else(|| Master { host: String::new(), port: 0 })
    }

    async fn subscribe_at(&mut self, master: &Master) -> NextStep {
        let config = self.config.borrow_and_update().clone();
        let mut call = calls::subscribe(&config, self.state.framework_id.as_deref());
        if let Some(subscribe) = call.subscribe.as_mut().filter(|_| self.state.without_constraints)
        {
            subscribe.offer_constraints = None;
        }
        let opening = EventStream::open(
            &self.http,
            master,
            self.codec.encode(&call),
            self.codec.content_type(),
            config.record_bytes_max,
            config.heartbeats_missed_max,
        );
        let opened = opening.await;
        if !matches!(opened, Err(Unsubscribed::NotMesos(_))) {
            self.state.not_mesos = 0;
        }
        match opened {
            Ok(stream) => self.read_events(stream, master, &config).await,
            Err(Unsubscribed::NotNow(why)) => {
                NextStep::Retry(format!("subscribing at {master}: {why}"))
            }
            Err(Unsubscribed::Refused(why)) => NextStep::GiveUp(format!("{master}: {why}")),
            Err(Unsubscribed::Elsewhere(location)) => self.redirect(master, &location, &config),
            Err(Unsubscribed::NotMesos(why)) => {
                let why = format!("{master} is not a Mesos master: {why}");
                self.state.not_mesos += 1;
                let none = self.state.not_mesos >= config.masters.all().len() * NOT_MESOS_TRIES;
                if self.state.epoch == 0 && none {
                    NextStep::GiveUp(why)
                } else {
                    NextStep::Retry(why)
                }
            }
        }
    }

    /// Handles a redirection to the leader. Only configured masters are followed, because a redirection could lead
    /// anywhere.
    fn redirect(&mut self, master: &Master, location: &str, config: &MesosConfig) -> NextStep {
        let location = self.http.sanitize(location);
        let Some(leader) = Master::redirected(&location, config.masters.tls()) else {
            return NextStep::Retry(format!(
                "{master} redirects to {location:?}, which is not a master"
            ));
        };
        if !config.masters.all().contains(&leader) {
            let missing = "which is not among the configured masters";
            return NextStep::Retry(format!("{master} says that {leader} leads, {missing}"));
        }
        self.state.redirections += 1;
        if self.state.redirections > REDIRECTIONS_MAX {
            self.state.redirections = 0;
            return NextStep::Retry(format!(
                "{master} says that {leader} leads, in a loop of redirections"
            ));
        }
        self.state.leader = Some(leader);
        NextStep::RetryNow
    }

    /// Reads the events of a subscription until it ends.
    async fn read_events(
        &mut self,
        mut stream: EventStream,
        master: &Master,
        config: &MesosConfig,
    ) -> NextStep {
        let mut subscribed = false;
        let decoder = EventDecoder::new(config.encoding, config.only_role());
        let began = Instant::now();
        // The last attempt begins at the limit, and its answer takes some time.
        let first_event_by = self.state.give_up_at.map(|at| at.max(began + config.call_timeout));
        let next = loop {
            let record = tokio::select! {
                record = next_record(&mut stream, &self.call_queue) => record,
                () = resubscribe_requested(&mut self.resubscribe, self.state.epoch), if subscribed => {
                    Err("the master doesn't know the subscription any more, or receives no calls".to_owned())
                }
                () = sleep_until(first_event_by), if !subscribed => {
                    Err("the subscription was accepted, but no event came".to_owned())
                }
            };
            let decoded = match decode(record, &decoder, &self.codec) {
                Ok(decoded) => decoded,
                Err(NoEvent::Ignored(why)) if subscribed => {
                    self.ignore_event(&why);
                    continue;
                }
                // The error may quote the record.
                Err(NoEvent::Ignored(why) | NoEvent::Lost(why)) => {
                    break NextStep::Retry(format!("{master}: {}", self.http.sanitize(&why)));
                }
            };
            match decoded {
                DecodedEvent::Subscribed { framework_id, heartbeat } if !subscribed => {
                    subscribed = true;
                    stream.records.expect_heartbeats(heartbeat);
                    self.on_subscribed(framework_id, master, &stream);
                }
                DecodedEvent::Failed(why) => break self.on_error(&why, subscribed),
                _ if !subscribed => {
                    break NextStep::Retry(format!("{master}: the first event is not SUBSCRIBED"));
                }
                DecodedEvent::Event(event) => self.forward(event),
                DecodedEvent::Offers { offers, refused } => {
                    self.events.send(Event::Offers(offers));
                    self.refuse(refused);
                }
                DecodedEvent::Answer(call) => {
                    // If there is no room now, the master sends its request again.
                    let _full = self.call_queue.enqueue(self.state.epoch, CallPayload::Plain(call));
                }
                DecodedEvent::Subscribed { .. } | DecodedEvent::Nothing => {}
            }
        };
        if let Some(at) = self.state.subscribed_at.take() {
            self.on_unsubscribed(at.elapsed(), master);
        }
        if began.elapsed() >= STABLE_AFTER {
            self.state.backoff.reset();
        }
        if began.elapsed() >= REPORTED_AGAIN_AFTER {
            self.state.last_failure = None;
        }
        next
    }

    /// Records the end of a subscription that lasted for this time.
    fn on_unsubscribed(&mut self, lasted: Duration, master: &Master) {
        self.subscription.send_replace(None);
        self.state.backoff.connection_ended(lasted);
        if !*self.stopping.borrow() {
            self.events.send(Event::Disconnected);
            // The leader is most likely the same.
            self.state.leader = Some(master.clone());
        }
    }

    /// Publishes a new subscription and sends its events.
    fn on_subscribed(&mut self, framework_id: String, master: &Master, stream: &EventStream) {
        let state = &mut self.state;
        let is_first = state.epoch == 0;
        let epoch = state.epoch + 1;
        *state = SubscriberState {
            epoch,
            framework_id: Some(framework_id.clone()),
            next: state.next,
            backoff: std::mem::take(&mut state.backoff),
            ignored_events: std::mem::take(&mut state.ignored_events),
            last_failure: state.last_failure.take(),
            without_constraints: state.without_constraints,
            subscribed_at: Some(Instant::now()),
            ..SubscriberState::default()
        };
        // Only the first subscription can continue a former run's framework. The state can be large.
        let former =
            if is_first { self.state_file.former_state() } else { FrameworkState::default() };
        let FrameworkState { framework_id: former_id, executors, finished } = former;
        let is_same = former_id.as_deref() == Some(&*framework_id);
        let written = self.state_file.identify(&framework_id);
        let events = Arc::clone(&self.events);
        tokio::spawn(async move {
            if let Ok(Err(error)) = written.await {
                let why = format!("the framework id file can't be written: {error}");
                events.send(Event::CallFailed { why });
            }
        });
        let subscription = ActiveSubscription {
            epoch,
            framework_id: framework_id.clone(),
            stream_id: stream.stream_id.clone(),
            master: master.clone(),
        };
        // Published before the engine gets the event, because its calls follow at once.
        self.subscription.send_replace(Some(Arc::new(subscription)));
        let _known = self.framework_id.set(framework_id.clone());
        if *self.stopping.borrow() {
            return;
        }
        if former_id.is_some() {
            // Of a framework that was removed, only the count of finished executors is left.
            let executors = if is_same { executors.into_values().collect() } else { Vec::new() };
            self.events.send(Event::Recovered { executors, finished });
        }
        self.events.send(Event::Registered { framework_id, again: is_same || !is_first });
    }

    /// Handles an ERROR event: the master refuses the framework, or its id, or its constraints.
    fn on_error(&mut self, why: &str, subscribed: bool) -> NextStep {
        let why = self.http.sanitize(why);
        if is_about_constraints(&why) && !self.state.without_constraints {
            self.state.without_constraints = true;
            self.report_failure(format!(
                "the master refuses the constraint, and offers all agents ({why})"
            ));
            return NextStep::RetryNow;
        }
        let removed = is_removed(&why);
        let former =
            self.state.framework_id.take_if(|_| removed && !subscribed && self.state.epoch == 0);
        let Some(former) = former else { return NextStep::GiveUp(why) };
        // The cluster has removed the former run's framework with all its executors: a new framework begins.
        self.report_failure(format!(
            "the framework {former} of a former run was removed ({why}); a new one begins"
        ));
        NextStep::RetryNow
    }

    /// Hands an event to the engine. The end of an executor is recorded before that, so that it is written before its
    /// acknowledgement; updates that the engine ignores are not.
    fn forward(&self, event: Event) {
        if let Event::Update(update) = &event
            && update.length_problem().is_none()
        {
            self.state_file.record(update);
        }
        self.events.send(event);
    }

    /// Has offers declined that can't be decoded. The causes may quote the record.
    fn refuse(&self, mut refused: Vec<RefusedOffer>) {
        for offer in &mut refused {
            offer.why = self.http.sanitize(&offer.why);
        }
        self.events.send(Event::Unreadable(refused));
    }

    /// Goes on after an event that can't be decoded.
    fn ignore_event(&mut self, why: &str) {
        let why = self.http.sanitize(why);
        if let Some(report) = self.state.ignored_events.count(&why) {
            self.report_failure(report);
        }
    }

    fn report_failure(&self, why: String) {
        self.events.send(Event::CallFailed { why });
    }

    fn report_once(&mut self, why: String) {
        if self.state.last_failure.as_ref() != Some(&why) {
            self.report_failure(why.clone());
            self.state.last_failure = Some(why);
        }
    }
}

impl Drop for Subscriber {
    /// Withdraws the subscription, also after a panic.
    fn drop(&mut self) {
        self.subscription.send_replace(None);
    }
}

/// The next record, once there is room for its acknowledgement.
async fn next_record(
    stream: &mut EventStream,
    call_queue: &CallQueue,
) -> Result<StreamItem, String> {
    let _waited = call_queue.wait_for_room().await;
    stream.records.next().await
}

/// Why there is no event.
enum NoEvent {
    /// The record can be ignored.
    Ignored(String),
    /// The subscription has to be replaced.
    Lost(String),
}

/// Decodes what a stream has returned.
fn decode(
    item: Result<StreamItem, String>,
    decoder: &EventDecoder,
    codec: &Codec,
) -> Result<DecodedEvent, NoEvent> {
    match item {
        Ok(StreamItem::Record(record)) => {
            decoder.decode(record, codec).map_err(|error| match error {
                Undecodable { why, concerns_offers: true } => NoEvent::Lost(why),
                Undecodable { why, concerns_offers: false } => NoEvent::Ignored(why),
            })
        }
        Ok(StreamItem::Skipped(why)) => Err(NoEvent::Ignored(why)),
        Err(why) => Err(NoEvent::Lost(why)),
    }
}

/// Waits until `at`, or forever.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Waits until the subscription with this number is to be replaced.
async fn resubscribe_requested(resubscribe: &mut watch::Receiver<u64>, epoch: u64) {
    if resubscribe.wait_for(|requested| *requested >= epoch).await.is_err() {
        // All senders are gone.
        std::future::pending::<()>().await;
    }
}
