//! Committed batches whose calls have not all been made: no executor may be reconciled or killed before the call that
//! launches it. Part of invariant 19.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::rule::RuleViolation;
use crate::engine::PlacedExecutor;
use crate::engine::cluster_manager::Launch;

/// The executors of committed batches whose calls have not all been made.
#[derive(Default)]
pub(super) struct OpenBatches {
    /// The executors of each handler's batch.
    batches: BTreeMap<usize, Vec<String>>,
    /// The executors whose launch has not been sent.
    unsent: HashSet<String, FixedState>,
}

impl OpenBatches {
    /// A handler has committed a batch with these executors.
    pub(super) fn committed(&mut self, handler: usize, placed: &[PlacedExecutor]) {
        let names: Vec<String> = placed.iter().map(|it| it.executor.clone()).collect();
        self.unsent.extend(names.iter().cloned());
        self.batches.insert(handler, names);
    }

    /// The call that launches these executors is made.
    pub(super) fn sent(&mut self, executors: &[Launch<'_>]) {
        if !self.unsent.is_empty() {
            self.unsent.retain(|name| executors.iter().all(|launch| launch.executor != name));
        }
    }

    /// All calls of a handler's batch have been made. Returns its executors.
    pub(super) fn finish(&mut self, handler: usize) -> Vec<String> {
        self.batches.remove(&handler).unwrap_or_default()
    }

    /// Whether the executor's launch has not been sent.
    pub(super) fn is_unsent(&self, executor: &str) -> bool {
        self.unsent.contains(executor)
    }

    /// Whether the executor is in a batch whose calls have not all been made. Calls about it may wait for these.
    pub(super) fn contains(&self, executor: &str) -> bool {
        self.batches.values().flatten().any(|name| name == executor)
    }

    /// Checks that the launches of all these executors have been sent before another call about them. Otherwise the
    /// cluster would report an executor as gone that it then launches.
    pub(super) fn all_were_sent<'a>(
        &self,
        mut executors: impl Iterator<Item = &'a str>,
        what: &str,
    ) -> Result<(), RuleViolation> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let Some(executor) = executors.find(|executor| self.is_unsent(executor)) else {
            return Ok(());
        };
        Err((19, format!("executor {executor} is {what} before the call that launches it")))
    }
}
