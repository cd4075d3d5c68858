//! How many workers without a connection a master remembers.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::StandaloneMaster;
use super::registered::RegisteredWorker;
use crate::mesos_v1::messages::TaskState;

/// The most workers of an owner that have neither a connection nor executors. Each has a line in the journal.
pub(super) const OWN_WORKERS_AWAY_MAX: usize = 256;
/// The most such workers of all owners.
pub(super) const WORKERS_AWAY_MAX: usize = 4096;

impl StandaloneMaster {
    /// Forgets workers that are away if there are too many: of the owner that has most of them, first those that were
    /// heard of longest ago. They are registered as before when they are back. Those that this master hasn't seen yet
    /// aren't counted, because they may have executors.
    pub(super) fn bound_workers_away(&mut self) {
        loop {
            let by_owner = self.workers_away();
            let all: usize = by_owner.values().sum();
            let most = by_owner.values().max().copied().unwrap_or(0);
            if all <= WORKERS_AWAY_MAX && most <= OWN_WORKERS_AWAY_MAX {
                return;
            }
            let rank = |(id, it): &(&String, &RegisteredWorker)| {
                let crowd = by_owner.get(&it.owner.as_deref()).copied();
                (Reverse(crowd), it.heard_at, (*id).clone())
            };
            let away = self.workers.iter().filter(|(_, it)| is_away(it));
            let Some(first) = away.min_by_key(rank).map(|(id, _)| id.clone()) else { return };
            self.forget_worker(&first, TaskState::Gone, "too many workers are away");
        }
    }

    /// The number of workers that are away, of each owner.
    pub(super) fn workers_away(&self) -> HashMap<Option<&str>, usize> {
        let mut by_owner = HashMap::new();
        for worker in self.workers.values().filter(|it| is_away(it)) {
            *by_owner.entry(worker.owner.as_deref()).or_default() += 1;
        }
        by_owner
    }
}

/// Whether a worker has neither a connection nor executors, as far as is known.
fn is_away(worker: &RegisteredWorker) -> bool {
    worker.connection.is_none() && worker.tasks.is_empty() && !worker.is_from_journal
}
