//! Call senders: tasks that each send the calls of one queue, one after the other, over a connection of their own.
//!
//! Acknowledgements have several senders, because there can be very many; those of one executor go through the same
//! one. All other calls go through one sender, because their order matters: if a kill or a reconciliation overtook the
//! launch of its executor, the master would answer that there is no such executor, and a decline that arrives after a
//! later revive would undo it. Only TEARDOWN goes through no queue: see `tear_down.rs`.
//!
//! | what happens to a call | an accept | any other |
//! |---|---|---|
//! | its subscription has ended, or the master refuses it | no effect: its executors are reported dropped | dropped |
//! | it wasn't sent, as no connection could be made | retried, then as above | retried, then dropped |
//! | it was sent, and there is no answer | may have had its effect: the executors stay counted, and the kernel reconciles them later | sent again |
//!
//! Dropped calls are repeated: kills and reconciliations by the engine, updates by the master until they are
//! acknowledged, revives by the kernel when nothing is offered. Only answers to offers are sent once, and the master
//! holds an offer until it is answered. So if an accept failed or may have failed, its offers are declined (the master
//! ignores declines of used offers). If a decline doesn't get through either, the subscription is replaced, which ends
//! all of its offers. It is also replaced when acknowledgements don't get through and too many wait to read more
//! events.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::active_subscription::{
    ResubscribeSender, SubscriptionReceiver, active, request_resubscription,
};
use super::call_queue::{CallPayload, CallQueue, QueuedCall};
use super::caller::{CallOutcome, Caller};
use super::calls;
use super::master_errors::is_lost;
use super::state_writer::SharedStateFile;
use crate::backoff::Backoff;
use crate::engine::cluster_manager::{Event, EventSink, Update};
use crate::mesos_v1::messages::Call;
use crate::status::{TaskState, UpdateReason};

/// The maximum number of offers in one decline.
const DECLINED_MAX: usize = 10_000;
/// The maximum number of times that a call is sent.
const TRIES: u32 = 3;
/// How long offers are refused whose executors could not be launched: Mesos' default.
pub(super) const REFUSED_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The outcome of a call that didn't fail.
#[derive(PartialEq)]
enum Delivery {
    Confirmed,
    /// The call may have had its effect.
    Uncertain,
}

/// The task that sends the calls of one queue.
pub(super) struct CallSender {
    pub(super) caller: Caller,
    pub(super) inbox: mpsc::Receiver<QueuedCall>,
    pub(super) subscription: SubscriptionReceiver,
    pub(super) resubscribe: ResubscribeSender,
    /// Whether the manager is being stopped. Queued calls are dropped then, so that they don't delay TEARDOWN.
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) events: EventSink,
    pub(super) state_file: SharedStateFile,
    pub(super) call_queue: CallQueue,
}

impl CallSender {
    /// Runs until the queue is closed.
    pub(super) async fn run(mut self) {
        let mut kept = None;
        loop {
            let next = match kept.take() {
                Some(order) => Some(order),
                None => self.inbox.recv().await,
            };
            let Some(mut order) = next else { return };
            kept = self.merge(&mut order);
            self.send_queued(order).await;
        }
    }

    /// Merges the declines that follow this one in the queue. Returns the first other call.
    fn merge(&mut self, order: &mut QueuedCall) -> Option<QueuedCall> {
        let CallPayload::Decline { offers, refuse } = &mut order.what else { return None };
        while offers.len() < DECLINED_MAX {
            let next = self.inbox.try_recv().ok()?;
            match next.what {
                CallPayload::Decline { offers: more, refuse: same }
                    if next.epoch == order.epoch && same == *refuse =>
                {
                    offers.extend(more);
                }
                what => return Some(QueuedCall { epoch: next.epoch, what }),
            }
        }
        None
    }

    async fn send_queued(&mut self, order: QueuedCall) {
        let QueuedCall { epoch, what } = order;
        if *self.stopping.borrow() {
            return;
        }
        match what {
            CallPayload::Decline { offers, refuse } => {
                self.decline(epoch, offers, refuse).await;
            }
            CallPayload::Plain(call) => {
                let _dropped = self.send(epoch, *call, true).await;
            }
            CallPayload::Accept { call, agent_id, executors } => {
                let accept = call.accept.iter();
                let ids = accept.flat_map(|accept| &accept.offer_ids).map(|id| id.value.clone());
                let offers: Vec<String> = ids.collect();
                let sent = self.send(epoch, *call, false).await;
                if let Err(why) = &sent {
                    let end = (TaskState::Dropped, UpdateReason::InvalidOffers);
                    self.report_never_launched(executors, &agent_id, end, why);
                }
                if sent != Ok(Delivery::Confirmed) {
                    self.decline(epoch, offers, REFUSED_AFTER_FAILURE).await;
                }
            }
            CallPayload::Unlaunchable { offers, agent_id, executors, why } => {
                self.decline(epoch, offers, REFUSED_AFTER_FAILURE).await;
                // The master would report the same. The refusal of the offers slows down further attempts.
                let end = (TaskState::Error, UpdateReason::Other);
                self.report_never_launched(executors, &agent_id, end, &why);
            }
            CallPayload::Acknowledge { call, slot } => {
                let about = call.acknowledge.as_ref().map_or("", |it| it.task_id.value.as_str());
                if self.state_file.until_written(about).await {
                    let _sent_again = self.send(epoch, *call, true).await;
                }
                drop(slot);
            }
        }
    }

    async fn decline(&mut self, epoch: u64, offers: Vec<String>, refuse: Duration) {
        // `send` reports failures and resubscribes.
        let _reported = self.send(epoch, calls::decline(offers, refuse), true).await;
    }

    /// Sends a call. Fails if the call had no effect or was given up, with the reason; such failures have been
    /// reported.
    async fn send(
        &mut self,
        epoch: u64,
        mut call: Call,
        repeatable: bool,
    ) -> Result<Delivery, String> {
        let mut backoff = Backoff::default();
        let mut tries = 0;
        loop {
            let Some(subscription) = active(&self.subscription, epoch) else {
                return Err("its subscription has ended".to_owned());
            };
            calls::sign(&mut call, &subscription.framework_id);
            let why = match self.caller.attempt(&subscription, &call).await {
                CallOutcome::Done => return Ok(Delivery::Confirmed),
                CallOutcome::Refused(status, why) => {
                    self.report_failure(&format!(
                        "{}: {}: {why}",
                        calls::name(&call),
                        subscription.master
                    ));
                    if is_lost(status, &why) {
                        request_resubscription(&self.resubscribe, epoch);
                    }
                    return Err(why);
                }
                CallOutcome::Unknown(why) if !repeatable => {
                    let what = calls::name(&call);
                    let then = "it may have arrived; its executors will be reconciled";
                    self.report_failure(&format!("{what}: {}: {why}; {then}", subscription.master));
                    return Ok(Delivery::Uncertain);
                }
                CallOutcome::Unknown(why) | CallOutcome::Unsent(why) => why,
            };
            tries += 1;
            let stopping = *self.stopping.borrow();
            if tries == TRIES || stopping {
                self.report_failure(&format!(
                    "{}: {}: {why}",
                    calls::name(&call),
                    subscription.master
                ));
                let is_urgent = call.decline.is_some()
                    || call.acknowledge.is_some() && self.call_queue.is_crowded();
                if !stopping && is_urgent {
                    request_resubscription(&self.resubscribe, epoch);
                }
                return Err(why);
            }
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// Reports executors whose launch had no effect.
    fn report_never_launched(
        &self,
        executors: Vec<String>,
        agent_id: &str,
        (state, reason): (TaskState, UpdateReason),
        why: &str,
    ) {
        for executor in executors {
            self.state_file.forget(&executor);
            self.events.send(Event::Update(Update {
                executor,
                agent_id: Some(agent_id.to_owned()),
                state,
                reason,
                message: format!("the launch failed: {why}"),
                uuid: None,
                reported_at: None,
                process: None,
                facts: None,
            }));
        }
    }

    fn report_failure(&self, why: &str) {
        self.events.send(Event::CallFailed { why: why.to_owned() });
    }
}

#[cfg(test)]
#[path = "tests/call_sender.rs"]
mod tests;
