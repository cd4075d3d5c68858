//! When the cluster is asked about which executors.
//!
//! * About those in doubt, every 15 s.
//! * About all, after each further subscription and every 15 min: by name about those that we know, and about whatever
//!   else the cluster has for us, for an executor that was forgotten may have come back without a word.
//!
//! A cluster may answer with silence while it can't know (a new Mesos master, about executors of agents that have not
//! registered with it yet), and answers can be lost. So those that nothing was heard of are asked about again, after
//! 5 s, then after twice as long, up to 5 min.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::seam::{Call, Questioned};
use super::steward::Outlet;
use crate::kernel::{Kernel, Scope, Target};
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
}

impl Reconciliation {
    /// Asks about all.
    pub(super) fn ask_about_all(&mut self, kernel: &Kernel, now: Timestamp, out: &mut dyn Outlet) {
        let all = named(kernel, kernel.reconcile(Scope::All, now));
        ask_named(all.iter().map(|(executor, agent_id)| (executor, agent_id)), out);
        out.call(Call::Reconcile(&[]));
        self.unheard = all.into_iter().collect();
        self.again_after = AGAIN_AFTER;
        self.again_at = now.plus(AGAIN_AFTER);
        self.all_at = now;
    }

    /// There was an update about this executor, or it is forgotten.
    pub(super) fn heard_of(&mut self, executor: &str) {
        self.unheard.remove(executor);
    }

    /// Asks what is due.
    pub(super) fn let_time_pass(&mut self, kernel: &Kernel, now: Timestamp, out: &mut dyn Outlet) {
        if now.since(self.all_at) >= ALL_EVERY {
            return self.ask_about_all(kernel, now, out);
        }
        if now.since(self.doubtful_at) >= DOUBTFUL_EVERY {
            self.doubtful_at = now;
            ask(kernel, kernel.reconcile(Scope::Doubtful, now), out);
        }
        if !self.unheard.is_empty() && now >= self.again_at {
            self.again_after = (self.again_after * 2).min(AGAIN_AFTER_MAX);
            self.again_at = now.plus(self.again_after);
            ask_named(self.unheard.iter(), out);
        }
    }
}

/// Asks about these, if there are any.
pub(super) fn ask(kernel: &Kernel, targets: Vec<Target>, out: &mut dyn Outlet) {
    let names = named(kernel, targets);
    ask_named(names.iter().map(|(executor, agent_id)| (executor, agent_id)), out);
}

fn named(kernel: &Kernel, targets: Vec<Target>) -> Vec<(String, Arc<str>)> {
    let name = |it: Target| (kernel.executor_name(it.id).to_string(), it.agent_id);
    targets.into_iter().map(name).collect()
}

fn ask_named<'a>(
    executors: impl Iterator<Item = (&'a String, &'a Arc<str>)>,
    out: &mut dyn Outlet,
) {
    let question =
        |(executor, agent_id): (&'a String, &'a Arc<str>)| Questioned { executor, agent_id };
    let questioned: Vec<Questioned<'_>> = executors.map(question).collect();
    if !questioned.is_empty() {
        out.call(Call::Reconcile(&questioned));
    }
}
