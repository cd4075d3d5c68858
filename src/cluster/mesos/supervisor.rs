//! The supervisor of the manager's tasks: reports a task that ends or panics before the manager is stopped.
//!
//! A task that panics can't be replaced: without the subscriber no event comes, without a call sender no call leaves.
//! So the engine gets [`Event::Refused`], and the program can end or start again.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{Id, JoinError, JoinSet};

use super::active_subscription::SubscriptionSender;
use super::master_errors::is_removed;
use super::tear_down::{TearDown, TearDownOutcome};
use crate::engine::cluster_manager::{Event, EventSink};

/// A request to stop the manager.
#[derive(Debug)]
pub(super) struct StopRequest {
    /// Tear the framework down first, within this time.
    pub(super) tear_down: Option<Duration>,
}

/// The kinds of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ManagerTask {
    /// Subscribes and reads events. It may end when the cluster refuses the framework or the manager is stopped.
    Subscriber,
    /// Sends calls, until the manager is stopped.
    CallSender,
}

/// Runs and watches the tasks of the manager's thread.
pub(super) struct Supervisor {
    events: EventSink,
    subscription: SubscriptionSender,
    tasks: JoinSet<Option<String>>,
    kinds: HashMap<Id, ManagerTask>,
    /// How the subscriber ended. `None` while it runs.
    subscriber_end: Option<SubscriberEnd>,
}

/// How the subscriber ended.
enum SubscriberEnd {
    Panicked,
    /// It returned, with the reason of a refusal that came while the manager was being stopped.
    Returned(Option<String>),
}

impl Supervisor {
    pub(super) fn new(events: EventSink, subscription: SubscriptionSender) -> Supervisor {
        Supervisor {
            events,
            subscription,
            tasks: JoinSet::new(),
            kinds: HashMap::new(),
            subscriber_end: None,
        }
    }

    /// Starts a task that sends calls. Must be called on the manager's thread.
    pub(super) fn start_call_sender(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let without_refusal = async move {
            work.await;
            None
        };
        self.start(ManagerTask::CallSender, without_refusal);
    }

    /// Starts the subscriber, which may return the reason of a late refusal. Must be called on the manager's thread.
    pub(super) fn start_subscriber(
        &mut self,
        work: impl Future<Output = Option<String>> + Send + 'static,
    ) {
        self.start(ManagerTask::Subscriber, work);
    }

    fn start(
        &mut self,
        kind: ManagerTask,
        work: impl Future<Output = Option<String>> + Send + 'static,
    ) {
        let task = self.tasks.spawn(work);
        self.kinds.insert(task.id(), kind);
    }

    /// Watches the tasks until the manager is to be stopped, then tears the framework down if requested. The tasks end
    /// when the supervisor is dropped.
    pub(super) async fn run(
        mut self,
        mut stopped: oneshot::Receiver<StopRequest>,
        tear_down: TearDown,
    ) -> TearDownOutcome {
        let stop = loop {
            tokio::select! {
                stop = &mut stopped => break stop,
                Some(ended) = self.tasks.join_next_with_id() => self.on_task_ended(ended),
            }
        };
        let Ok(StopRequest { tear_down: Some(within) }) = stop else {
            return TearDownOutcome::Nothing;
        };
        let parting = tear_down.run(within);
        tokio::pin!(parting);
        loop {
            match self.subscriber_end.take() {
                Some(SubscriberEnd::Panicked) => {
                    let why = "the subscription broke down".to_owned();
                    return TearDownOutcome::Left { why, is_complete: false };
                }
                // No TEARDOWN is possible without a subscription.
                Some(SubscriberEnd::Returned(Some(why))) if !is_removed(&why) => {
                    return TearDownOutcome::Left { why, is_complete: true };
                }
                // The cluster has removed the framework, refused it before, or never knew it.
                Some(SubscriberEnd::Returned(_)) => return TearDownOutcome::Nothing,
                None => {}
            }
            tokio::select! {
                parting = &mut parting => return parting,
                Some(ended) = self.tasks.join_next_with_id() => self.on_task_ended(ended),
            }
        }
    }

    fn on_task_ended(&mut self, ended: Result<(Id, Option<String>), JoinError>) {
        let (id, panicked, refusal) = match ended {
            Ok((id, refusal)) => (id, None, refusal),
            Err(error) => (error.id(), Some(text_of(error)), None),
        };
        let kind = self.kinds.remove(&id).unwrap_or(ManagerTask::CallSender);
        let what = match kind {
            ManagerTask::Subscriber => "the task that subscribes and reads events",
            ManagerTask::CallSender => "a task that sends calls",
        };
        if kind == ManagerTask::Subscriber {
            self.subscriber_end = Some(match panicked {
                Some(_) => SubscriberEnd::Panicked,
                None => SubscriberEnd::Returned(refusal),
            });
        }
        let why = match panicked {
            None if kind == ManagerTask::Subscriber => return,
            None => format!("{what} ended unexpectedly"),
            Some(text) => format!("{what} panicked: {text}"),
        };
        if kind == ManagerTask::Subscriber && self.subscription.send_replace(None).is_some() {
            self.events.send(Event::Disconnected);
        }
        self.events.send(Event::Refused { why });
    }
}

fn text_of(error: JoinError) -> String {
    error.try_into_panic().map_or_else(|error| error.to_string(), |panic| panic_text(&*panic))
}

/// The message of a panic, if it is text.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = literal.or_else(|| panic.downcast_ref::<String>().cloned());
    message.unwrap_or_else(|| "no text".to_owned())
}
