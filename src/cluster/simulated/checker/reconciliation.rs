//! Checks that executors are reconciled in time: part of invariants 19 and 29.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::batches::OpenBatches;
use super::expected_cluster::ExpectedCluster;
use super::rule::RuleViolation;
use crate::engine::cluster_manager::ReconcileTask;
use crate::time::Timestamp;

/// The time within which executors are reconciled after a subscription, or after the loss of their agent.
const RECONCILE_WITHIN: Duration = Duration::from_secs(1);
/// The same for executors of an open batch, counted from the last call of the batch. Longer, because the controller
/// checks once per second.
const RECONCILE_WITHIN_OF_LAUNCH: Duration = Duration::from_secs(2);
/// The maximum time between two reconciliations of an executor that is unreachable, or whose launch has been
/// unconfirmed for too long.
const DOUBTFUL_EVERY: Duration = Duration::from_secs(20);
/// The time after which an unconfirmed launch is in doubt: the default setting.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(180);
/// The time between two checks of all executors.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The executors that must be reconciled.
#[derive(Default)]
pub(super) struct ReconcileChecker {
    /// When the present subscription began. `None` without one.
    connected: Option<Timestamp>,
    /// The executors that must be reconciled, and by when.
    due: BTreeMap<String, Timestamp>,
    /// Executors that must be reconciled once all calls of their batch have been made.
    waiting: BTreeSet<String>,
    /// Executors in doubt whose batch was open, and when that was last seen: only after that can they be reconciled.
    held: BTreeMap<String, Timestamp>,
    checked_at: Timestamp,
}

impl ReconcileChecker {
    /// A subscription begins: all executors must be reconciled.
    pub(super) fn subscribed<'a>(
        &mut self,
        executors: impl Iterator<Item = &'a str>,
        batches: &OpenBatches,
        now: Timestamp,
    ) {
        self.connected = Some(now);
        self.expect(executors, batches, now);
    }

    /// These executors must be reconciled.
    pub(super) fn expect<'a>(
        &mut self,
        executors: impl Iterator<Item = &'a str>,
        batches: &OpenBatches,
        now: Timestamp,
    ) {
        let by = now.plus(RECONCILE_WITHIN);
        for executor in executors {
            if batches.contains(executor) {
                self.waiting.insert(executor.to_owned());
            } else {
                self.due.insert(executor.to_owned(), by);
            }
        }
    }

    /// All calls of the batch of these executors have been made.
    pub(super) fn launched(&mut self, executors: &[String], now: Timestamp) {
        for executor in executors {
            if let Some(executor) = self.waiting.take(executor) {
                self.due.insert(executor, now.plus(RECONCILE_WITHIN_OF_LAUNCH));
            }
        }
    }

    pub(super) fn disconnected(&mut self) {
        self.connected = None;
        self.due.clear();
        self.waiting.clear();
        self.held.clear();
    }

    /// The framework reconciles these executors.
    pub(super) fn reconciled(
        &mut self,
        tasks: &[ReconcileTask<'_>],
        expected_cluster: &mut ExpectedCluster,
        now: Timestamp,
    ) {
        if self.connected.is_none() {
            return;
        }
        for it in tasks {
            self.due.remove(it.executor);
            self.waiting.remove(it.executor);
            self.held.remove(it.executor);
            expected_cluster.record_reconciled(it.executor, now);
        }
    }

    /// An executor has ended or was forgotten.
    pub(super) fn ended(&mut self, executor: &str) {
        self.due.remove(executor);
        self.waiting.remove(executor);
        self.held.remove(executor);
    }

    pub(super) fn polled(
        &mut self,
        expected_cluster: &ExpectedCluster,
        batches: &OpenBatches,
        now: Timestamp,
    ) -> Result<(), RuleViolation> {
        let Some(connected) = self.connected else { return Ok(()) };
        if let Some((executor, by)) = self.due.iter().find(|(_, by)| **by < now) {
            return Err((29, format!("executor {executor} should have been reconciled by {by}")));
        }
        if now.since(self.checked_at) < CHECK_EVERY {
            return Ok(());
        }
        self.checked_at = now;
        for (executor, since) in expected_cluster.in_doubt(now, LAUNCH_TIMEOUT) {
            if batches.contains(executor) {
                self.held.insert(executor.to_owned(), now);
                continue;
            }
            let held = self.held.get(executor).copied().unwrap_or_default();
            if now.since(connected.max(since).max(held)) > DOUBTFUL_EVERY {
                let why = format!(
                    "executor {executor} is in doubt, and was not reconciled since {since}"
                );
                return Err((19, why));
            }
        }
        Ok(())
    }
}
