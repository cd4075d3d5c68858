//! Reconciliation: when the cluster is asked about the states of which executors.
//!
//! * Executors in doubt are reconciled every 15 s. Executors without an agent, which may wait for hours, are in doubt
//!   only if something was reported about them, not because of the launch timeout.
//! * All executors are reconciled after each further subscription and every 15 min: those that the kernel knows by
//!   name, and implicitly all others that the cluster has, because a forgotten executor may have returned unreported.
//!
//! A cluster may not answer while it can't know (for instance a new Mesos master, about executors of agents that have
//! not registered with it yet), and answers can be lost. So executors without an answer are reconciled again after 5 s,
//! then after twice as long, up to 5 min.
//!
//! A reconciliation must not overtake the launch of its executor, or the cluster would answer that there is none.
//! Executors whose launching call has not returned ([`Launches`](super::launches::Launches)) are deferred to the first
//! tick at which it has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::cluster_manager::{Call, ReconcileTask};
use super::recorded_kernel::RecordedKernel;
use super::sinks::CallSink;
use crate::kernel::{Scope, Target};
use crate::time::Timestamp;

/// The interval at which executors in doubt are reconciled.
const DOUBTFUL_EVERY: Duration = Duration::from_secs(15);
/// The interval at which all executors are reconciled.
const ALL_EVERY: Duration = Duration::from_secs(900);
/// The first interval after which executors without an answer are reconciled again; each further one is twice as long.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The longest such interval.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);

/// When executors were reconciled last, and which have not been answered.
#[derive(Default)]
pub(super) struct Reconciliation {
    /// When executors in doubt were reconciled last.
    doubtful_at: Timestamp,
    /// When all executors were reconciled last.
    all_at: Timestamp,
    /// The executors without an answer, and their agents; by id, so that equal histories make equal calls.
    unanswered: BTreeMap<String, Arc<str>>,
    again_at: Timestamp,
    again_after: Duration,
    /// The executors that are deferred until their launching call has returned.
    deferred: BTreeMap<String, Target>,
}

impl Reconciliation {
    /// Reconciles all executors.
    pub(super) fn reconcile_all_executors(
        &mut self,
        recorded_kernel: &RecordedKernel,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let targets = recorded_kernel.kernel().reconcile_all(now);
        let all = self.defer_unlaunched(recorded_kernel, targets);
        call_reconcile(pairs(&all), out);
        out.call(Call::Reconcile(&[]));
        self.unanswered = all.into_iter().collect();
        self.start_again(now);
        self.all_at = now;
    }

    /// Reconciles these executors, if there are any.
    pub(super) fn reconcile(
        &mut self,
        recorded_kernel: &RecordedKernel,
        targets: Vec<Target>,
        out: &mut dyn CallSink,
    ) {
        let launched = self.defer_unlaunched(recorded_kernel, targets);
        call_reconcile(pairs(&launched), out);
    }

    /// Removes an executor that was reported by an update, or is forgotten.
    pub(super) fn confirm(&mut self, executor: &str) {
        self.unanswered.remove(executor);
        self.deferred.remove(executor);
    }

    /// Reconciles the executors that are due.
    pub(super) fn run_timers(
        &mut self,
        recorded_kernel: &RecordedKernel,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        if now.since(self.all_at) >= ALL_EVERY {
            return self.reconcile_all_executors(recorded_kernel, now, out);
        }
        if now.since(self.doubtful_at) >= DOUBTFUL_EVERY {
            self.doubtful_at = now;
            let doubtful = recorded_kernel.kernel().reconcile(Scope::InDoubt, now);
            self.reconcile(recorded_kernel, doubtful, out);
        }
        if !self.unanswered.is_empty() && now >= self.again_at {
            self.again_after = (self.again_after * 2).min(AGAIN_AFTER_MAX);
            self.again_at = now.plus(self.again_after);
            call_reconcile(self.unanswered.iter(), out);
        }
        if !self.deferred.is_empty() {
            self.reconcile_launched(recorded_kernel, now, out);
        }
    }

    /// Reconciles the deferred executors whose launching call has returned.
    fn reconcile_launched(
        &mut self,
        recorded_kernel: &RecordedKernel,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let deferred = std::mem::take(&mut self.deferred).into_values().collect();
        let launched = self.defer_unlaunched(recorded_kernel, deferred);
        if launched.is_empty() {
            return;
        }
        call_reconcile(pairs(&launched), out);
        if self.unanswered.is_empty() {
            self.start_again(now);
        }
        self.unanswered.extend(launched);
    }

    fn start_again(&mut self, now: Timestamp) {
        self.again_after = AGAIN_AFTER;
        self.again_at = now.plus(AGAIN_AFTER);
    }

    /// Returns the names and agents of the executors whose launching call has returned, and defers the others.
    fn defer_unlaunched(
        &mut self,
        recorded_kernel: &RecordedKernel,
        targets: Vec<Target>,
    ) -> Vec<(String, Arc<str>)> {
        let mut launched = Vec::with_capacity(targets.len());
        for target in targets {
            let executor = recorded_kernel.kernel().executor_name(target.id).to_string();
            if recorded_kernel.launches().under_way(target.id) {
                self.deferred.insert(executor, target);
            } else {
                self.deferred.remove(&executor);
                launched.push((executor, target.agent_id));
            }
        }
        launched
    }
}

fn pairs(named: &[(String, Arc<str>)]) -> impl Iterator<Item = (&String, &Arc<str>)> {
    named.iter().map(|(executor, agent_id)| (executor, agent_id))
}

/// Reconciles executors by name, if there are any.
fn call_reconcile<'a>(
    executors: impl Iterator<Item = (&'a String, &'a Arc<str>)>,
    out: &mut dyn CallSink,
) {
    let task =
        |(executor, agent_id): (&'a String, &'a Arc<str>)| ReconcileTask { executor, agent_id };
    let tasks: Vec<ReconcileTask<'_>> = executors.map(task).collect();
    if !tasks.is_empty() {
        out.call(Call::Reconcile(&tasks));
    }
}
