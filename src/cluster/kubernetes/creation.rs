//! The creation of one pod, until its outcome is known: `create_outcome.rs` says what each answer means.
//!
//! A creation whose outcome is unknown is looked for by the pod's name before it is repeated. The name is the
//! executor's id, which no other executor gets, so that a repetition can't make a second pod: it is answered 409 if the
//! first attempt took effect meanwhile. A pod that isn't there may have come and gone: what happened to the name since
//! before the first attempt is asked for, too (`pod_history.rs`).
//!
//! A creation that ends without a pod, although an attempt of it has an unknown outcome, ends only when that attempt
//! can't take effect any more: the server drops a request after the time that the request names. Until then the
//! executor counts, so that no other takes its place.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::api::Api;
use super::create_outcome::{CreateOutcome, classify};
use super::lease_validity::LeaseValidity;
use super::names::CREATOR_LABEL;
use super::objects::Pod;
use super::pod_history::{PodHistory, history};
use crate::backoff::Backoff;
use crate::engine::cluster_manager::{Event, EventSink};

/// The shortest time between two notices of what a creation waits for.
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// The longest pause between two attempts or looks: once the server is back, creations soon go on.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long past its time a request may take effect: a server measures it from when it has read the request.
const EFFECT_MARGIN: Duration = Duration::from_secs(1);

/// What a creation is told while it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CreationSignal {
    GoOn,
    /// The pod isn't wanted any more, or not with these nodes.
    Abandon,
    /// The pod was shown: an attempt took effect.
    Shown,
}

/// Tells a creation that no further attempt is wanted, unless it was told something before.
pub(super) fn abandon(signal: &watch::Sender<CreationSignal>) {
    let _is_new = signal.send_if_modified(|signal| {
        let goes_on = *signal == CreationSignal::GoOn;
        if goes_on {
            *signal = CreationSignal::Abandon;
        }
        goes_on
    });
}

/// The end of a creation.
#[derive(Clone, Debug)]
pub(super) enum CreationEnd {
    /// The pod exists, in this state.
    Exists(Box<Pod>),
    /// The pod existed, and was deleted by others. This was its last state.
    Vanished(Box<Pod>),
    /// It doesn't exist, because others use what there is.
    NoRoom(String),
    /// It doesn't exist.
    Rejected(String),
    /// It doesn't exist, because another's pod has its name.
    AnothersPod(String),
    /// No further attempt was wanted. It exists if it was shown.
    Abandoned,
}

impl CreationEnd {
    /// Whether a pod of the name is known.
    fn is_of_a_pod(&self) -> bool {
        use CreationEnd::{AnothersPod, Exists, Vanished};
        matches!(self, Exists(_) | Vanished(_) | AnothersPod(_))
    }
}

/// What an attempt has led to.
enum CreationStep {
    Done(CreationEnd),
    Look,
    Again(Duration),
}

/// The creation of one pod.
pub(super) struct PodCreation {
    api: Api,
    name: String,
    manifest: Value,
    creator: String,
    /// No attempt is made, and none is waited for, while the run's lease isn't held.
    validity: LeaseValidity,
    signal: watch::Receiver<CreationSignal>,
    /// The version of the pods before the first attempt.
    since: String,
    /// Whether an attempt may have taken effect, though no answer said so.
    is_unknown: bool,
    /// What holds if there is no pod: the answer after such an attempt, or that the time is up.
    denial: Option<CreationEnd>,
    waiting: WaitingNotice,
}

/// What is said of a creation that fails and is repeated.
pub(super) struct WaitingNotice {
    executor: String,
    events: EventSink,
    /// What was said last, and when.
    last: Option<(String, Instant)>,
}

impl WaitingNotice {
    pub(super) fn new(executor: String, events: EventSink) -> WaitingNotice {
        WaitingNotice { executor, events, last: None }
    }

    fn say(&mut self, why: String) {
        let is_due = |(said, at): &(String, Instant)| {
            *said != why && (why.is_empty() || at.elapsed() >= NOTICE_INTERVAL)
        };
        if self.last.as_ref().map_or(!why.is_empty(), is_due) {
            self.last = Some((why.clone(), Instant::now()));
            self.events.send(Event::Waiting { executor: self.executor.clone(), why });
        }
    }
}

impl PodCreation {
    pub(super) fn new(
        api: Api,
        (name, manifest): (String, Value),
        creator: String,
        validity: LeaseValidity,
        signal: watch::Receiver<CreationSignal>,
        since: String,
        waiting: WaitingNotice,
    ) -> PodCreation {
        let (is_unknown, denial) = (false, None);
        PodCreation {
            api,
            name,
            manifest,
            creator,
            validity,
            signal,
            since,
            is_unknown,
            denial,
            waiting,
        }
    }

    /// Creates the pod, unless it is abandoned. If it can't be created within `give_up`, and there is no such pod, it
    /// is rejected; as long as the server can't be asked whether there is one, it waits.
    pub(super) async fn run(&mut self, give_up: Duration) -> CreationEnd {
        let end = self.attempts(give_up).await;
        if self.is_unknown && !end.is_of_a_pod() { self.settled(end).await } else { end }
    }

    async fn attempts(&mut self, give_up: Duration) -> CreationEnd {
        let began = Instant::now();
        let mut backoff = Backoff::default();
        let mut pause = Duration::ZERO;
        loop {
            let may_begin = async {
                sleep(pause).await;
                self.validity.held().await;
            };
            tokio::select! {
                biased;
                // The manager doesn't drop the sender before.
                _ = self.signal.wait_for(|signal| *signal != CreationSignal::GoOn) => {
                    return CreationEnd::Abandoned;
                }
                () = may_begin => {}
            }
            let mut step = self.attempt().await;
            if let CreationStep::Look = step {
                self.is_unknown = true;
                step = self.look(&mut backoff).await;
            }
            if let (CreationStep::Again(_), true) = (&step, began.elapsed() >= give_up) {
                let last = self.waiting.last.as_ref().map_or("", |(why, _)| why);
                let why = format!("its pod could not be created within {give_up:?}: {last}");
                self.denial = Some(CreationEnd::Rejected(why));
                step = self.look(&mut backoff).await;
            }
            match step {
                CreationStep::Done(created) => {
                    self.waiting.say(String::new());
                    return created;
                }
                CreationStep::Again(after) => pause = after,
                CreationStep::Look => {}
            }
        }
    }

    async fn attempt(&mut self) -> CreationStep {
        let attempt = self.validity.during(self.api.create_pod(&self.manifest)).await;
        let answer = match attempt {
            Ok(answer) => answer,
            // Without an answer the request may have taken effect.
            Err(unanswered) => {
                self.waiting.say(unanswered);
                return CreationStep::Look;
            }
        };
        if !answer.is_success() && answer.status != 409 {
            self.waiting.say(answer.why());
        }
        match classify(answer.status, &answer.failure(), answer.retry_after) {
            CreateOutcome::Created => match answer.read::<Pod>() {
                Ok(pod) if pod.metadata.name == self.name => {
                    CreationStep::Done(CreationEnd::Exists(Box::new(pod)))
                }
                Ok(_) | Err(_) => CreationStep::Look,
            },
            CreateOutcome::Look => CreationStep::Look,
            CreateOutcome::Again(pause) => CreationStep::Again(pause),
            CreateOutcome::NoRoom(why) => self.deny(CreationEnd::NoRoom(why)),
            CreateOutcome::Rejected(why) => self.deny(CreationEnd::Rejected(why)),
        }
    }

    /// A denial says nothing about an earlier attempt without an answer.
    fn deny(&mut self, denial: CreationEnd) -> CreationStep {
        if self.is_unknown {
            self.denial = Some(denial);
            CreationStep::Look
        } else {
            CreationStep::Done(denial)
        }
    }

    /// Looks for the pod, until the server says whether it exists.
    async fn look(&mut self, backoff: &mut Backoff) -> CreationStep {
        match self.find(backoff).await {
            Some(found) => CreationStep::Done(found),
            None => match self.denial.take() {
                Some(denial) => CreationStep::Done(denial),
                None => CreationStep::Again(backoff.next().min(PAUSE_MAX)),
            },
        }
    }

    /// What the server says of the pod's name: `None` if there is no such pod, and was none as far as it knows.
    async fn find(&self, backoff: &mut Backoff) -> Option<CreationEnd> {
        loop {
            if let Ok(answer) = self.api.pod(&self.name).await {
                if answer.status == 404 {
                    let history = history(&self.api, &self.name, &self.since).await;
                    return match history {
                        PodHistory::Deleted(pod) if self.is_own(&pod) => {
                            Some(CreationEnd::Vanished(pod))
                        }
                        PodHistory::Exists(pod) if self.is_own(&pod) => {
                            Some(CreationEnd::Exists(pod))
                        }
                        _ => None,
                    };
                }
                if let (true, Ok(pod)) = (answer.is_success(), answer.read::<Pod>()) {
                    return Some(if self.is_own(&pod) {
                        CreationEnd::Exists(Box::new(pod))
                    } else {
                        CreationEnd::AnothersPod(format!("another pod is named {}", self.name))
                    });
                }
            }
            sleep(backoff.next().min(PAUSE_MAX)).await;
        }
    }

    fn is_own(&self, pod: &Pod) -> bool {
        pod.metadata.labels.get(CREATOR_LABEL) == Some(&self.creator)
    }

    /// Waits until no attempt can take effect any more. Returns what has come of it: the pod, or `end`.
    async fn settled(&mut self, end: CreationEnd) -> CreationEnd {
        if *self.signal.borrow() == CreationSignal::Shown {
            return end;
        }
        let mut backoff = Backoff::default();
        // The first look shows that the server is at work: what it was sent before, it has read, and measures its time.
        if let Some(found) = self.find(&mut backoff).await {
            return found;
        }
        let effect = self.api.timeout() + EFFECT_MARGIN;
        let mut signal = self.signal.clone();
        tokio::select! {
            biased;
            _ = signal.wait_for(|signal| *signal == CreationSignal::Shown) => return end,
            () = sleep(effect) => {}
        }
        self.find(&mut backoff).await.unwrap_or(end)
    }
}
