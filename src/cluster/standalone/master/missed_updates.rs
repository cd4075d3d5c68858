//! Updates of workers for a framework that isn't connected: it gets them when it is back. Otherwise they would come
//! with their workers' next repetition, 10 s later.

use crate::cluster::standalone::protocol::ExecutorUpdate;

/// The most updates that are kept for a framework. What is beyond is repeated by its worker.
const MISSED_MAX: usize = 1024;

/// The updates that a framework has missed, in their order, each with its worker.
#[derive(Debug, Default)]
pub(super) struct MissedUpdates(Vec<(String, ExecutorUpdate)>);

impl MissedUpdates {
    /// Keeps an update, unless it is there already.
    pub(super) fn keep(&mut self, worker: &str, update: &ExecutorUpdate) {
        let is_there = || self.0.iter().any(|(_, kept)| kept.uuid == update.uuid);
        if self.0.len() < MISSED_MAX && !is_there() {
            self.0.push((worker.to_owned(), update.clone()));
        }
    }

    /// Takes all of them.
    pub(super) fn take(&mut self) -> Vec<(String, ExecutorUpdate)> {
        std::mem::take(&mut self.0)
    }
}
