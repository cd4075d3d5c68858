//! When the cluster is asked about which executors.
//!
//! * About those in doubt, every 15 s.
//! * About all, after each further subscription and every 15 min: by name about those that we know, and about whatever
//!   else the cluster has for us, for an executor that was forgotten may have come back without a word.
//!
//! A cluster may answer with silence while it can't know (a new Mesos master, about executors of agents that have not
//! registered with it yet), and answers can be lost. So those that nothing was heard of are asked about again, after
//! 5 s, then after twice as long, up to 5 min.
//!
//! A question must not overtake the launch of its executor: the cluster would say that there is none. Executors whose
//! launch the cluster manager has not been told of yet ([`Launches`](super::launches::Launches)) wait; they are asked
//! about at the first tick at which it was.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::cluster_manager::{Call, ReconcileTask};
use super::recorded_kernel::RecordedKernel;
use super::sinks::CallSink;
use crate::kernel::{Scope, Target};
use crate::time::Timestamp;

const DOUBTFUL_EVERY: Duration = Duration::from_secs(15);
const ALL_EVERY: Duration = Duration::from_secs(900);
const AGAIN_AFTER: Duration = Duration::from_secs(5);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(super) struct Reconciliation {
    doubtful_at: Timestamp,
    all_at: Timestamp,
    /// Asked about and not heard of since, with their agents; in the order of ids, so that equal histories make equal
    /// calls.
    unheard: BTreeMap<String, Arc<str>>,
    again_at: Timestamp,
    again_after: Duration,
    /// To be asked about when their launch has left.
    waiting: BTreeMap<String, Target>,
}

impl Reconciliation {
    /// Asks about all.
    pub(super) fn ask_about_all(
        &mut self,
        recorded_kernel: &RecordedKernel,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let all = recorded_kernel.kernel().reconcile_all(now);
        let all = self.let_wait(recorded_kernel, all);
        ask_named(pairs(&all), out);
        out.call(Call::Reconcile(&[]));
        self.unheard = all.into_iter().collect();
        self.start_again(now);
        self.all_at = now;
    }

    /// Asks about these, if there are any.
    pub(super) fn ask(
        &mut self,
        recorded_kernel: &RecordedKernel,
        targets: Vec<Target>,
        out: &mut dyn CallSink,
    ) {
        let left = self.let_wait(recorded_kernel, targets);
        ask_named(pairs(&left), out);
    }

    /// There was an update about this executor, or it is forgotten.
    pub(super) fn heard_of(&mut self, executor: &str) {
        self.unheard.remove(executor);
        self.waiting.remove(executor);
    }

    /// Asks what is due.
    pub(super) fn let_time_pass(
        &mut self,
        recorded_kernel: &RecordedKernel,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        if now.since(self.all_at) >= ALL_EVERY {
            return self.ask_about_all(recorded_kernel, now, out);
        }
        if now.since(self.doubtful_at) >= DOUBTFUL_EVERY {
            self.doubtful_at = now;
            self.ask(
                recorded_kernel,
                recorded_kernel.kernel().reconcile(Scope::Doubtful, now),
                out,
            );
        }
        if !self.unheard.is_empty() && now >= self.again_at {
            self.again_after = (self.again_after * 2).min(AGAIN_AFTER_MAX);
            self.again_at = now.plus(self.again_after);
            ask_named(self.unheard.iter(), out);
        }
        if !self.waiting.is_empty() {
            self.ask_those_that_left(recorded_kernel, now, out);
        }
    }

    /// Asks about those that waited until the cluster manager was told to launch them.
    fn ask_those_that_left(
        &mut self,
        recorded_kernel: &RecordedKernel,
        now: Timestamp,
        out: &mut dyn CallSink,
    ) {
        let waiting = std::mem::take(&mut self.waiting).into_values().collect();
        let left = self.let_wait(recorded_kernel, waiting);
        if left.is_empty() {
            return;
        }
        ask_named(pairs(&left), out);
        if self.unheard.is_empty() {
            self.start_again(now);
        }
        self.unheard.extend(left);
    }

    fn start_again(&mut self, now: Timestamp) {
        self.again_after = AGAIN_AFTER;
        self.again_at = now.plus(AGAIN_AFTER);
    }

    /// Names those whose launch has left, and lets the others wait for that.
    fn let_wait(
        &mut self,
        recorded_kernel: &RecordedKernel,
        targets: Vec<Target>,
    ) -> Vec<(String, Arc<str>)> {
        let mut left = Vec::with_capacity(targets.len());
        for target in targets {
            let executor = recorded_kernel.kernel().executor_name(target.id).to_string();
            if recorded_kernel.launches().under_way(target.id) {
                self.waiting.insert(executor, target);
            } else {
                self.waiting.remove(&executor);
                left.push((executor, target.agent_id));
            }
        }
        left
    }
}

fn pairs(named: &[(String, Arc<str>)]) -> impl Iterator<Item = (&String, &Arc<str>)> {
    named.iter().map(|(executor, agent_id)| (executor, agent_id))
}

fn ask_named<'a>(
    executors: impl Iterator<Item = (&'a String, &'a Arc<str>)>,
    out: &mut dyn CallSink,
) {
    let question =
        |(executor, agent_id): (&'a String, &'a Arc<str>)| ReconcileTask { executor, agent_id };
    let questioned: Vec<ReconcileTask<'_>> = executors.map(question).collect();
    if !questioned.is_empty() {
        out.call(Call::Reconcile(&questioned));
    }
}
