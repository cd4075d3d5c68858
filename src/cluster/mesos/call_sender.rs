//! Lanes: each a task with a connection of its own, which carries out orders one after the other.
//!
//! Acknowledgements have several, for there can be very many; those of one executor go through the same. Everything
//! else goes through one lane, because its order matters: a kill or a question that overtook the launch of its executor
//! would be answered as if there were no such executor, and a revive that overtook a decline would be undone by it.
//! Only TEARDOWN goes through none: it is in `tear_down.rs`.
//!
//! | what happens to a call | an accept | any other |
//! |---|---|---|
//! | its subscription has ended, or the master refuses it | surely no effect: its executors are reported dropped | forgotten |
//! | it wasn't sent, as no connection could be made | tried again, then as above | tried again, then forgotten |
//! | it was sent, and there is no answer | may have had its effect: the executors stay counted, the kernel asks about them later | sent again |
//!
//! What is forgotten is said again by whoever said it: kills and questions are repeated by the engine, updates by the
//! master until they are acknowledged, revives by the kernel when nothing is offered. Only answers to offers are said
//! once, and the master holds an offer until it is answered. So the offers of an accept that failed, or may have, are
//! declined (of offers that are used already it takes no notice); and where a decline doesn't get through either, the
//! subscription is given up, and with it all of its offers. It is given up, too, when acknowledgements don't get
//! through and so many wait that no more events are read.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::active_subscription::{DoubtSender, StandingReceiver, doubt, standing};
use super::call_queue::{CallQueue, QueuedCall, What};
use super::caller::{Caller, Try, is_lost};
use super::calls;
use super::state_writer::SharedLedger;
use crate::backoff::Backoff;
use crate::engine::cluster_manager::{Event, EventSink, Update};
use crate::mesos_v1::messages::Call;
use crate::status::{TaskState, UpdateReason};

/// So many offers are declined in one call.
const DECLINED_MAX: usize = 10_000;
/// A call that doesn't get through is tried so often.
const TRIES: u32 = 3;
/// Offers whose executors could not be launched are refused for so long, as Mesos does where nothing is said.
pub(super) const REFUSED_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How a call went that didn't fail.
#[derive(PartialEq)]
enum Sent {
    Heard,
    /// It may have been.
    Perhaps,
}

pub(super) struct CallSender {
    pub(super) caller: Caller,
    pub(super) inbox: mpsc::Receiver<QueuedCall>,
    pub(super) standing: StandingReceiver,
    pub(super) reconsider: DoubtSender,
    /// Whether the manager is being stopped: then nothing that waits is worth keeping the framework's end waiting.
    pub(super) stopping: watch::Receiver<bool>,
    pub(super) events: EventSink,
    pub(super) ledger: SharedLedger,
    pub(super) outgoing: CallQueue,
}

impl CallSender {
    /// Works until nobody can order any more.
    pub(super) async fn run(mut self) {
        let mut kept = None;
        loop {
            let next = match kept.take() {
                Some(order) => Some(order),
                None => self.inbox.recv().await,
            };
            let Some(mut order) = next else { return };
            kept = self.merge(&mut order);
            self.carry_out(order).await;
        }
    }

    /// Adds the declines that wait right behind this one; returns the first order that is none of them.
    fn merge(&mut self, order: &mut QueuedCall) -> Option<QueuedCall> {
        let What::Decline { offers, refuse } = &mut order.what else { return None };
        while offers.len() < DECLINED_MAX {
            let next = self.inbox.try_recv().ok()?;
            match next.what {
                What::Decline { offers: more, refuse: same }
                    if next.epoch == order.epoch && same == *refuse =>
                {
                    offers.extend(more);
                }
                what => return Some(QueuedCall { epoch: next.epoch, what }),
            }
        }
        None
    }

    async fn carry_out(&mut self, order: QueuedCall) {
        let QueuedCall { epoch, what } = order;
        if *self.stopping.borrow() {
            return;
        }
        match what {
            What::Decline { offers, refuse } => {
                self.decline(epoch, offers, refuse).await;
            }
            What::Plain(call) => {
                let _forgotten = self.send(epoch, *call, true).await;
            }
            What::Accept { call, agent_id, executors } => {
                let accept = call.accept.iter();
                let ids = accept.flat_map(|accept| &accept.offer_ids).map(|id| id.value.clone());
                let offers: Vec<String> = ids.collect();
                let sent = self.send(epoch, *call, false).await;
                if let Err(why) = &sent {
                    let end = (TaskState::Dropped, UpdateReason::InvalidOffers);
                    self.never_launched(executors, &agent_id, end, why);
                }
                if sent != Ok(Sent::Heard) {
                    self.decline(epoch, offers, REFUSED_AFTER_FAILURE).await;
                }
            }
            What::Indescribable { offers, agent_id, executors, why } => {
                self.decline(epoch, offers, REFUSED_AFTER_FAILURE).await;
                // As the master would put it. It counts as a failure, which slows the next tries down.
                let end = (TaskState::Error, UpdateReason::Other);
                self.never_launched(executors, &agent_id, end, &why);
            }
            What::Acknowledge { call, place } => {
                let about = call.acknowledge.as_ref().map_or("", |it| it.task_id.value.as_str());
                if self.ledger.until_written(about).await {
                    let _sent_again = self.send(epoch, *call, true).await;
                }
                drop(place);
            }
        }
    }

    async fn decline(&mut self, epoch: u64, offers: Vec<String>, refuse: Duration) {
        // What is said of it here is said once.
        let _ended_or_told = self.send(epoch, calls::decline(offers, refuse), true).await;
    }

    /// Sends a call. An error says that it surely had no effect or is given up, and why; of those the host was told
    /// already.
    async fn send(&mut self, epoch: u64, mut call: Call, repeatable: bool) -> Result<Sent, String> {
        let mut backoff = Backoff::default();
        let mut tries = 0;
        loop {
            let Some(standing) = standing(&self.standing, epoch) else {
                return Err("its subscription has ended".to_owned());
            };
            calls::sign(&mut call, &standing.framework_id);
            let why = match self.caller.attempt(&standing, &call).await {
                Try::Done => return Ok(Sent::Heard),
                Try::Refused(status, why) => {
                    self.tell(&format!("{}: {}: {why}", calls::name(&call), standing.master));
                    if is_lost(status, &why) {
                        doubt(&self.reconsider, epoch);
                    }
                    return Err(why);
                }
                Try::Unknown(why) if !repeatable => {
                    let what = calls::name(&call);
                    let then = "it may have been heard; its executors will be asked about";
                    self.tell(&format!("{what}: {}: {why}; {then}", standing.master));
                    return Ok(Sent::Perhaps);
                }
                Try::Unknown(why) | Try::Unsent(why) => why,
            };
            tries += 1;
            let stopping = *self.stopping.borrow();
            if tries == TRIES || stopping {
                self.tell(&format!("{}: {}: {why}", calls::name(&call), standing.master));
                let is_urgent = call.decline.is_some()
                    || call.acknowledge.is_some() && self.outgoing.is_crowded();
                if !stopping && is_urgent {
                    doubt(&self.reconsider, epoch);
                }
                return Err(why);
            }
            tokio::time::sleep(backoff.next()).await;
        }
    }

    /// Executors whose launch surely had no effect.
    fn never_launched(
        &self,
        executors: Vec<String>,
        agent_id: &str,
        (state, reason): (TaskState, UpdateReason),
        why: &str,
    ) {
        for executor in executors {
            self.ledger.forget(&executor);
            self.events.send(Event::Update(Update {
                executor,
                agent_id: Some(agent_id.to_owned()),
                state,
                reason,
                message: format!("the launch failed: {why}"),
                uuid: None,
            }));
        }
    }

    fn tell(&self, why: &str) {
        self.events.send(Event::CallFailed { why: why.to_owned() });
    }
}

#[cfg(test)]
#[path = "tests/call_sender.rs"]
mod tests;
