//! The link to the cluster: subscribes, turns events into the engine's, and subscribes again when that ends.
//!
//! ```text
//!              ┌───────────── wait, next master ◄─────────────┐
//!              ▼                                              │
//!  start ─► subscribing ──── no, not now, elsewhere ──────────┤
//!              │    └─────── refused, or not Mesos ─► the end │
//!              ▼                                              │
//!          subscribed ────── the stream ends, stalls, is odd ─┘
//!              └──────────── ERROR ─► the end
//! ```
//!
//! No events are read while too many acknowledgements wait to be sent: see `outgoing.rs`.
//!
//! While the manager is being stopped this goes on, for TEARDOWN needs a subscription; the engine is told of none any
//! more then.
//!
//! Each time that a subscription stands it has a new number, and calls of earlier ones are dropped. Executors are not
//! touched by any of this: what became of them the cluster is asked after each subscription.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::active_subscription::{ActiveSubscription, StandingSender};
use super::call_queue::CallQueue;
use super::call_queue::What;
use super::calls;
use super::config::{AtEnd, MesosConfig};
use super::event_decoder::{EventDecoder, Reader};
use super::http::SharedHttp;
use super::masters::Master;
use super::state_file::FrameworkState;
use super::state_writer::SharedLedger;
use super::subscription::{Stream, Unsubscribed, redirected};
use crate::backoff::Backoff;
use crate::config::text::format_duration;
use crate::engine::cluster_manager::{Event, EventSink};
use crate::mesos_v1::codec::Codec;

/// So many redirections in a row are followed without waiting.
const HOPS_MAX: u32 = 4;
/// So often each master may look like none in a row: one that has just started answers 404 until it has put up its
/// routes.
const NOT_MESOS_TRIES: usize = 5;
/// A subscription that lasted for so long was a good one: after its end there is no long wait.
const LASTED: Duration = Duration::from_secs(15);

pub(super) struct Subscriber {
    pub(super) config: watch::Receiver<MesosConfig>,
    pub(super) http: SharedHttp,
    pub(super) codec: Codec,
    pub(super) events: EventSink,
    pub(super) ledger: SharedLedger,
    pub(super) standing: StandingSender,
    /// Subscriptions up to this number are in question.
    pub(super) reconsider: watch::Receiver<u64>,
    /// The framework's id, for whoever ends it.
    pub(super) framework_id: Arc<OnceLock<String>>,
    /// Whether the manager is being stopped: then the subscription's end is what was asked for.
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) outgoing: CallQueue,
    pub(super) state: SubscriberState,
}

/// What the link remembers from one subscription to the next.
#[derive(Debug, Default)]
pub(super) struct SubscriberState {
    /// How many subscriptions there were.
    epoch: u64,
    framework_id: Option<String>,
    /// Which of the masters is next, and which was named as the leader.
    next: usize,
    leader: Option<Master>,
    hops: u32,
    /// How many masters in a row were none.
    not_mesos: usize,
    backoff: Backoff,
    /// The master can't make anything of the constraints, which are only there to spare offers.
    without_constraints: bool,
    /// When the first subscription is given up, until there is one.
    give_up_at: Option<Instant>,
    /// What was told last, so that it isn't told again and again.
    told: Option<String>,
}

/// What is to be done next.
enum Next {
    Again(String),
    AtOnce,
    End(String),
}

impl Subscriber {
    /// Works until the cluster refuses the framework for good.
    pub(super) async fn run(mut self) {
        self.state.framework_id = self.ledger.former().framework_id;
        let config = self.config.borrow().clone();
        self.state.give_up_at = Some(Instant::now() + config.subscribe_timeout);
        loop {
            let master = self.candidate();
            let next = self.try_with(&master).await;
            let stopping = *self.stopping.borrow();
            if stopping && (self.state.epoch == 0 || config.at_end == AtEnd::Leave) {
                return;
            }
            let why = match next {
                Next::AtOnce => continue,
                Next::End(_) if stopping => return,
                Next::End(why) => return self.events.send(Event::Refused { why }),
                Next::Again(why) => why,
            };
            let wait = self.state.backoff.next();
            if self.state.give_up_at.is_some_and(|at| Instant::now() + wait >= at) {
                let masters = &config.masters;
                let within = format_duration(config.subscribe_timeout);
                let why =
                    format!("no master of {masters} could be subscribed to within {within}: {why}");
                return self.events.send(Event::Refused { why });
            }
            if !stopping {
                self.tell_once(why);
            }
            self.wait(wait).await;
        }
    }

    /// Waits, but not long beyond the moment when the manager is to be stopped: the end needs a subscription soon.
    async fn wait(&mut self, wait: Duration) {
        if *self.stopping.borrow() {
            return tokio::time::sleep(wait).await;
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            Ok(_) = self.stopping.wait_for(|stopping| *stopping) => self.state.backoff.reset(),
        }
    }

    /// Whom to ask next: the leader, if one was named; else one after the other.
    fn candidate(&mut self) -> Master {
        if let Some(leader) = self.state.leader.take() {
            return leader;
        }
        let config = self.config.borrow();
        let all = config.masters.all();
        let at = self.state.next % all.len().max(1);
        self.state.next = at + 1;
        all.get(at).cloned().unwrap_or_else(|| Master { host: String::new(), port: 0 })
    }

    async fn try_with(&mut self, master: &Master) -> Next {
        let config = self.config.borrow_and_update().clone();
        let mut call = calls::subscribe(&config, self.state.framework_id.as_deref());
        if let Some(subscribe) = call.subscribe.as_mut().filter(|_| self.state.without_constraints)
        {
            subscribe.offer_constraints = None;
        }
        let opening = Stream::open(
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
            Ok(stream) => self.follow(stream, master, &config).await,
            Err(Unsubscribed::NotNow(why)) => {
                Next::Again(format!("subscribing at {master}: {why}"))
            }
            Err(Unsubscribed::Refused(why)) => Next::End(format!("{master}: {why}")),
            Err(Unsubscribed::Elsewhere(location)) => self.redirect(master, &location, &config),
            Err(Unsubscribed::NotMesos(why)) => {
                let why = format!("{master} is no Mesos master: {why}");
                self.state.not_mesos += 1;
                let none = self.state.not_mesos >= config.masters.all().len() * NOT_MESOS_TRIES;
                if self.state.epoch == 0 && none { Next::End(why) } else { Next::Again(why) }
            }
        }
    }

    /// Another master leads. It is asked only if it is among those that were given: a redirection could lead anywhere.
    fn redirect(&mut self, master: &Master, location: &str, config: &MesosConfig) -> Next {
        let location = self.http.presentable(location);
        let Some(leader) = redirected(&location, config.masters.tls()) else {
            return Next::Again(format!("{master} leads to {location:?}, which is no master"));
        };
        if !config.masters.all().contains(&leader) {
            let missing = "which is not among the masters that were given";
            return Next::Again(format!("{master} says that {leader} leads, {missing}"));
        }
        self.state.hops += 1;
        if self.state.hops > HOPS_MAX {
            self.state.hops = 0;
            return Next::Again(format!(
                "{master} says that {leader} leads, and so on, in circles"
            ));
        }
        self.state.leader = Some(leader);
        Next::AtOnce
    }

    /// Reads a subscription to its end.
    async fn follow(&mut self, mut stream: Stream, master: &Master, config: &MesosConfig) -> Next {
        let mut subscribed = false;
        let reader = Reader::new(config.encoding, config.only_role());
        let began = Instant::now();
        let next = loop {
            let record = tokio::select! {
                record = next_record(&mut stream, &self.outgoing) => record,
                () = put_in_question(&mut self.reconsider, self.state.epoch), if subscribed => {
                    Err("the master doesn't know the subscription any more, or hears no calls".to_owned())
                }
                () = moment(self.state.give_up_at), if !subscribed => {
                    Err("the subscription was taken, but no event came".to_owned())
                }
            };
            let news = match record.and_then(|record| reader.read(record, &self.codec)) {
                Ok(news) => news,
                // What can't be read may be repeated in the error.
                Err(why) => {
                    break Next::Again(format!("{master}: {}", self.http.presentable(&why)));
                }
            };
            match news {
                EventDecoder::Subscribed { framework_id, heartbeat } if !subscribed => {
                    subscribed = true;
                    stream.expect_heartbeats(heartbeat);
                    self.subscribed(framework_id, master, &stream);
                }
                EventDecoder::Failed(why) => break self.failed(&why, subscribed),
                _ if !subscribed => {
                    break Next::Again(format!("{master}: the first event is not SUBSCRIBED"));
                }
                EventDecoder::Event(event) => self.pass_on(event),
                EventDecoder::Answer(call) => {
                    // Asked for again if there is no room now.
                    let _full = self.outgoing.order(self.state.epoch, What::Plain(call));
                }
                EventDecoder::Subscribed { .. } | EventDecoder::Nothing => {}
            }
        };
        if subscribed {
            self.standing.send_replace(None);
        }
        if subscribed && !*self.stopping.borrow() {
            self.events.send(Event::Disconnected);
            // Whoever leads now is most likely the same.
            self.state.leader = Some(master.clone());
        }
        if began.elapsed() >= LASTED {
            self.state.backoff.reset();
        }
        next
    }

    /// The subscription stands.
    fn subscribed(&mut self, framework_id: String, master: &Master, stream: &Stream) {
        let state = &mut self.state;
        let (epoch, first) = (state.epoch + 1, state.epoch == 0);
        *state = SubscriberState {
            epoch,
            framework_id: Some(framework_id.clone()),
            next: state.next,
            backoff: std::mem::take(&mut state.backoff),
            without_constraints: state.without_constraints,
            ..SubscriberState::default()
        };
        // Only the first can be another run's: the book can be long.
        let book = if first { self.ledger.former() } else { FrameworkState::default() };
        let FrameworkState { framework_id: former_id, executors, finished } = book;
        let is_same = former_id.as_deref() == Some(&*framework_id);
        let (written, events) = (self.ledger.identify(&framework_id), Arc::clone(&self.events));
        tokio::spawn(async move {
            if let Ok(Err(error)) = written.await {
                let why = format!("the framework id file can't be written: {error}");
                events.send(Event::CallFailed { why });
            }
        });
        let standing = ActiveSubscription {
            epoch,
            framework_id: framework_id.clone(),
            stream_id: stream.stream_id.clone(),
            master: master.clone(),
        };
        // Before the engine is told, which calls at once.
        self.standing.send_replace(Some(Arc::new(standing)));
        let _known = self.framework_id.set(framework_id.clone());
        if *self.stopping.borrow() {
            return;
        }
        if former_id.is_some() {
            // Of a framework that is no more nothing is left but what has finished.
            let executors = if is_same { executors.into_values().collect() } else { Vec::new() };
            self.events.send(Event::Recovered { executors, finished });
        }
        self.events.send(Event::Registered { framework_id, again: is_same || !first });
    }

    /// The master has sent an ERROR: the framework is not wanted, at least under this id.
    fn failed(&mut self, why: &str, subscribed: bool) -> Next {
        let why = self.http.presentable(why);
        // Expressions may cost more than this master takes: `OfferConstraintsFilter::create`.
        if why.contains("AttributeConstraint") && !self.state.without_constraints {
            self.state.without_constraints = true;
            self.tell(format!(
                "the master doesn't take the constraint, and offers all agents ({why})"
            ));
            return Next::AtOnce;
        }
        // `Master::subscribe` of a framework that is completed, in its words.
        let removed = why.contains("has been removed") || why.contains("is completed");
        let former =
            self.state.framework_id.take_if(|_| removed && !subscribed && self.state.epoch == 0);
        let Some(former) = former else { return Next::End(why) };
        // A former run's id, which the cluster has buried with all its executors: a new framework begins.
        self.tell(format!(
            "the framework {former} of a former run is no more ({why}); a new one begins"
        ));
        Next::AtOnce
    }

    fn pass_on(&self, event: Event) {
        if let Event::Update(update) = &event {
            self.ledger.note(update);
        }
        self.events.send(event);
    }

    fn tell(&self, why: String) {
        self.events.send(Event::CallFailed { why });
    }

    fn tell_once(&mut self, why: String) {
        if self.state.told.as_ref() != Some(&why) {
            self.tell(why.clone());
            self.state.told = Some(why);
        }
    }
}

impl Drop for Subscriber {
    /// However it ends, by a panic too: without it no subscription stands.
    fn drop(&mut self) {
        self.standing.send_replace(None);
    }
}

/// The next record, once there is room for what will be said to it.
async fn next_record(stream: &mut Stream, outgoing: &CallQueue) -> Result<Vec<u8>, String> {
    if outgoing.until_there_is_room().await {
        stream.resume();
    }
    stream.next().await
}

/// Ends at that moment, if there is one.
async fn moment(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Ends when the subscription with this number is put in question.
async fn put_in_question(reconsider: &mut watch::Receiver<u64>, epoch: u64) {
    if reconsider.wait_for(|worst| *worst >= epoch).await.is_err() {
        // Nobody is left who could.
        std::future::pending::<()>().await;
    }
}
