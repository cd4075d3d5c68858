//! The framework's end: TEARDOWN, sent past all that waits in the lanes, until the master takes it or the time is over.
//!
//! A master takes calls only under a subscription that stands. So when the subscription has ended, or the master says
//! that it doesn't know it, this waits for the next one, which the link opens also while the manager is being stopped.
//!
//! | the master | then |
//! |---|---|
//! | takes it | done |
//! | doesn't know the framework, after a try without an answer | done: that try was heard |
//! | doesn't know the subscription, or doesn't lead | again, under the next subscription |
//! | refuses it | failed |
//! | doesn't answer, can't be reached, fails | again, until the time is over: failed |

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper::StatusCode;
use tokio::time::{sleep, timeout};

use super::active_subscription::{ActiveSubscription, DoubtSender, StandingReceiver, doubt};
use super::caller::{Caller, Try, is_lost};
use super::calls;
use crate::backoff::Backoff;

pub(super) struct TearDown {
    pub(super) caller: Caller,
    pub(super) standing: StandingReceiver,
    pub(super) reconsider: DoubtSender,
    /// The framework's id, once it has one.
    pub(super) framework_id: Arc<OnceLock<String>>,
}

/// What became of the framework when the manager was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    /// There is nothing to tear down, or it was to be left, or the cluster has refused it before.
    Nothing,
    /// The master has torn it down.
    TornDown,
    /// It was to be torn down and was not, for this reason.
    Left(String),
}

impl TearDown {
    /// Tears the framework down, if this run has subscribed it.
    pub(super) async fn run(mut self, within: Duration) -> Parting {
        if self.framework_id.get().is_none() {
            return Parting::Nothing;
        }
        let mut why = "there is no subscription".to_owned();
        match timeout(within, self.until_taken(&mut why)).await {
            Ok(Ok(())) => Parting::TornDown,
            Ok(Err(refused)) => Parting::Left(refused),
            Err(_) => Parting::Left(why),
        }
    }

    /// Tries until the master has taken it; an error says why it never will. `failure` is the last try's.
    async fn until_taken(&mut self, failure: &mut String) -> Result<(), String> {
        let mut backoff = Backoff::default();
        let (mut lost_epoch, mut may_be_done) = (0, false);
        loop {
            let Some(standing) = self.subscription_after(lost_epoch).await else {
                return Err("there will be no subscription any more".to_owned());
            };
            let mut call = calls::teardown();
            calls::sign(&mut call, &standing.framework_id);
            // What follows may not come to its end.
            *failure = format!("{}: no answer in time", standing.master);
            let why = match self.caller.attempt(&standing, &call).await {
                Try::Done => return Ok(()),
                Try::Refused(_, why) if may_be_done && why.contains("cannot be found") => {
                    return Ok(());
                }
                Try::Refused(status, why) if is_lost(status, &why) => {
                    lost_epoch = standing.epoch;
                    doubt(&self.reconsider, lost_epoch);
                    why
                }
                Try::Refused(StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS, why)
                | Try::Unsent(why) => why,
                Try::Refused(_, why) => return Err(format!("{}: {why}", standing.master)),
                Try::Unknown(why) => {
                    may_be_done = true;
                    why
                }
            };
            *failure = format!("{}: {why}", standing.master);
            sleep(backoff.next()).await;
        }
    }

    /// The subscription that stands, or the next one, if its number is greater; `None` if there can be none any more.
    async fn subscription_after(&mut self, epoch: u64) -> Option<Arc<ActiveSubscription>> {
        let is_newer = |standing: &Option<Arc<ActiveSubscription>>| {
            standing.as_ref().is_some_and(|standing| standing.epoch > epoch)
        };
        self.standing.wait_for(is_newer).await.ok()?.clone()
    }
}
