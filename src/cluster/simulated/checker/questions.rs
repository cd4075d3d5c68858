//! Questions that the cluster must be asked: part of rules 19 and 29.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Finding;
use super::ledger::Ledger;
use super::under_way::UnderWay;
use crate::engine::cluster_manager::ReconcileTask;
use crate::time::Timestamp;

/// After a subscription, or the loss of an agent, its executors are asked about within so long.
const SOON: Duration = Duration::from_secs(1);
/// When the last call of a batch was made, its executors that were in question meanwhile are asked about within so
/// long: the controller looks each second.
const SOON_AFTER_LAUNCH: Duration = Duration::from_secs(2);
/// Executors out of sight, and those whose launch is unconfirmed for too long, are asked about so often at least.
const DOUBTFUL_EVERY: Duration = Duration::from_secs(20);
/// The default: an unconfirmed launch is in doubt after so long.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(180);
/// All executors are looked through so often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Questions {
    /// When the present subscription began, if there is one.
    connected: Option<Timestamp>,
    /// Who must be asked about, and by when.
    due: BTreeMap<String, Timestamp>,
    /// The same, as soon as the calls of their batches are made.
    waiting: BTreeSet<String>,
    looked: Timestamp,
}

impl Questions {
    /// A subscription begins: everyone is in question.
    pub(super) fn subscribed<'a>(
        &mut self,
        executors: impl Iterator<Item = &'a str>,
        under_way: &UnderWay,
        now: Timestamp,
    ) {
        self.connected = Some(now);
        self.in_question(executors, under_way, now);
    }

    /// These are in question.
    pub(super) fn in_question<'a>(
        &mut self,
        executors: impl Iterator<Item = &'a str>,
        under_way: &UnderWay,
        now: Timestamp,
    ) {
        let by = now.plus(SOON);
        for executor in executors {
            if under_way.contains(executor) {
                self.waiting.insert(executor.to_owned());
            } else {
                self.due.insert(executor.to_owned(), by);
            }
        }
    }

    /// The calls that launch these were made.
    pub(super) fn launched(&mut self, executors: &[String], now: Timestamp) {
        for executor in executors {
            if let Some(executor) = self.waiting.take(executor) {
                self.due.insert(executor, now.plus(SOON_AFTER_LAUNCH));
            }
        }
    }

    pub(super) fn disconnected(&mut self) {
        self.connected = None;
        self.due.clear();
        self.waiting.clear();
    }

    /// The cluster is asked.
    pub(super) fn asked(
        &mut self,
        questioned: &[ReconcileTask<'_>],
        ledger: &mut Ledger,
        now: Timestamp,
    ) {
        if self.connected.is_none() {
            return;
        }
        for it in questioned {
            self.due.remove(it.executor);
            self.waiting.remove(it.executor);
            ledger.asked_about(it.executor, now);
        }
    }

    /// An executor left the ledger.
    pub(super) fn ended(&mut self, executor: &str) {
        self.due.remove(executor);
        self.waiting.remove(executor);
    }

    pub(super) fn polled(
        &mut self,
        ledger: &Ledger,
        under_way: &UnderWay,
        now: Timestamp,
    ) -> Result<(), Finding> {
        let Some(connected) = self.connected else { return Ok(()) };
        if let Some((executor, by)) = self.due.iter().find(|(_, by)| **by < now) {
            return Err((29, format!("executor {executor} was to be asked about until {by}")));
        }
        if now.since(self.looked) < LOOK_EVERY {
            return Ok(());
        }
        self.looked = now;
        let doubtful = ledger.in_doubt(now, LAUNCH_TIMEOUT);
        let doubtful = doubtful.filter(|(executor, _)| !under_way.contains(executor));
        let mut late =
            doubtful.filter(|(_, since)| now.since(connected.max(*since)) > DOUBTFUL_EVERY);
        let Some((executor, since)) = late.next() else { return Ok(()) };
        Err((19, format!("executor {executor} is in doubt, and was not asked about since {since}")))
    }
}
