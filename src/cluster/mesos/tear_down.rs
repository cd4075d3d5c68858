//! TEARDOWN, which ends the framework: sent past all queued calls, until the master accepts it or the time is over.
//!
//! A master accepts calls only under an active subscription. So when the subscription has ended, or the master answers
//! that it doesn't know it, this waits for the next one, which the subscriber opens also while the manager is being
//! stopped.
//!
//! | the master | then |
//! |---|---|
//! | accepts it | done |
//! | doesn't know the framework, after a try without an answer | done: that try had its effect |
//! | doesn't know the subscription, or doesn't lead | again, under the next subscription |
//! | refuses it | failed |
//! | doesn't answer, can't be reached, fails | again, until the time is over: failed |

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::StatusCode;
use tokio::time::{sleep, timeout};

use super::active_subscription::{
    ActiveSubscription, ResubscribeSender, SubscriptionReceiver, request_resubscription,
};
use super::caller::{CallOutcome, Caller};
use super::calls;
use super::master_errors::{is_lost, is_unknown_framework};
use crate::backoff::Backoff;

/// Sends TEARDOWN.
pub(super) struct TearDown {
    pub(super) caller: Caller,
    pub(super) subscription: SubscriptionReceiver,
    pub(super) resubscribe: ResubscribeSender,
    /// The framework's id, once there is one.
    pub(super) framework_id: Arc<OnceLock<String>>,
}

/// The framework's fate when the manager was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TearDownOutcome {
    /// There is nothing to tear down, the framework was to be left, or the cluster refused it before.
    Nothing,
    /// The master has torn it down.
    TornDown,
    /// It was to be torn down and was not.
    Left {
        why: String,
        /// Whether the run is over nevertheless, so that the next one doesn't continue it. Otherwise the manager broke
        /// down before.
        is_complete: bool,
    },
}

impl TearDown {
    /// Tears the framework down, if this run has subscribed it.
    pub(super) async fn run(mut self, within: Duration) -> TearDownOutcome {
        if self.framework_id.get().is_none() {
            return TearDownOutcome::Nothing;
        }
        let mut why = "there is no subscription".to_owned();
        match timeout(within, self.until_accepted(&mut why)).await {
            Ok(Ok(())) => TearDownOutcome::TornDown,
            Ok(Err(why)) => TearDownOutcome::Left { why, is_complete: true },
            Err(_) => TearDownOutcome::Left { why, is_complete: true },
        }
    }

    /// Tries until the master has accepted it. Fails with the reason for which it never will. `failure` is set to the
    /// failure of the last try.
    async fn until_accepted(&mut self, failure: &mut String) -> Result<(), String> {
        let mut backoff = Backoff::default();
        let mut lost_epoch = 0;
        let mut may_be_done = false;
        loop {
            let Some(subscription) = self.subscription_after(lost_epoch).await else {
                return Err("there will be no further subscription".to_owned());
            };
            let mut call = calls::teardown();
            calls::sign(&mut call, &subscription.framework_id);
            // Used if the time is over before the answer arrives.
            *failure = format!("{}: no answer in time", subscription.master);
            let why = match self.caller.attempt(&subscription, &call).await {
                CallOutcome::Done => return Ok(()),
                CallOutcome::Refused(_, why) if may_be_done && is_unknown_framework(&why) => {
                    return Ok(());
                }
                CallOutcome::Refused(status, why) if is_lost(status, &why) => {
                    lost_epoch = subscription.epoch;
                    request_resubscription(&self.resubscribe, lost_epoch);
                    why
                }
                CallOutcome::Refused(
                    StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS,
                    why,
                )
                | CallOutcome::Unsent(why) => why,
                CallOutcome::Refused(_, why) => {
                    return Err(format!("{}: {why}", subscription.master));
                }
                CallOutcome::Unknown(why) => {
                    may_be_done = true;
                    why
                }
            };
            *failure = format!("{}: {why}", subscription.master);
            sleep(backoff.next()).await;
        }
    }

    /// Waits for a subscription with a greater number. `None` if there will be none.
    async fn subscription_after(&mut self, epoch: u64) -> Option<Arc<ActiveSubscription>> {
        let is_newer = |subscription: &Option<Arc<ActiveSubscription>>| {
            subscription.as_ref().is_some_and(|subscription| subscription.epoch > epoch)
        };
        self.subscription.wait_for(is_newer).await.ok()?.clone()
    }
}
