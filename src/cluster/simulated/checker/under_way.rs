//! Batches that are committed and whose calls are not all made: nobody may ask about an executor, or have it end,
//! before the call that launches it. Part of rule 19.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::Finding;
use crate::engine::PlacedExecutor;
use crate::engine::cluster_manager::Launch;

#[derive(Default)]
pub(super) struct UnderWay {
    /// The executors of the batch that each handler is at.
    batches: BTreeMap<usize, Vec<String>>,
    /// Those of them whose call was not made.
    unsent: HashSet<String, FixedState>,
}

impl UnderWay {
    /// A handler has committed a batch with these.
    pub(super) fn committed(&mut self, handler: usize, placed: &[PlacedExecutor]) {
        let names: Vec<String> = placed.iter().map(|it| it.executor.clone()).collect();
        self.unsent.extend(names.iter().cloned());
        self.batches.insert(handler, names);
    }

    /// The call that launches them is made.
    pub(super) fn sent(&mut self, executors: &[Launch<'_>]) {
        if !self.unsent.is_empty() {
            self.unsent.retain(|name| executors.iter().all(|launch| launch.executor != name));
        }
    }

    /// All calls of a handler's batch are made. Returns its executors.
    pub(super) fn ends(&mut self, handler: usize) -> Vec<String> {
        self.batches.remove(&handler).unwrap_or_default()
    }

    /// Whether the call that launches it was not made.
    pub(super) fn is_unsent(&self, executor: &str) -> bool {
        self.unsent.contains(executor)
    }

    /// Whether it is of a batch whose calls are not all made: what is to be said about it may wait for them.
    pub(super) fn contains(&self, executor: &str) -> bool {
        self.batches.values().flatten().any(|name| name == executor)
    }

    /// The cluster is told something about these executors. It would answer that one is gone which it then launches.
    pub(super) fn all_were_sent<'a>(
        &self,
        mut executors: impl Iterator<Item = &'a str>,
        what: &str,
    ) -> Result<(), Finding> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let Some(executor) = executors.find(|executor| self.is_unsent(executor)) else {
            return Ok(());
        };
        Err((19, format!("executor {executor} is {what} before the call that launches it")))
    }
}
