//! The executors that a worker holds, each with its updates that aren't acknowledged yet.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::cluster::standalone::protocol::{
    ExecutorKey, ExecutorLaunch, ExecutorUpdate, HeldExecutor, LaunchHosting, ReportedState,
    WorkerResources,
};

/// An executor that is being started, runs, or has ended without all its updates acknowledged.
#[derive(Debug)]
pub(super) struct HeldRecord {
    pub(super) state: ReportedState,
    pub(super) resources: WorkerResources,
    /// The grace period of a kill that doesn't say one.
    pub(super) grace: Duration,
    pub(super) hosting: LaunchHosting,
    /// It has ended with its host.
    is_lost: bool,
    /// The tag of its launch.
    tag: String,
    updates: VecDeque<UnacknowledgedUpdate>,
}

/// An update that isn't acknowledged.
#[derive(Debug)]
struct UnacknowledgedUpdate {
    update: ExecutorUpdate,
    /// Those of all executors are numbered as they come: a host runs before its tasks end with it.
    number: u64,
    /// When it was sent last. A registration sends all.
    sent_at: Option<Duration>,
}

/// All executors of a worker, by key.
#[derive(Debug, Default)]
pub(super) struct HeldExecutors {
    by_key: BTreeMap<ExecutorKey, HeldRecord>,
    /// The number of the next update.
    next_number: u64,
}

impl HeldExecutors {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub(super) fn get(&self, key: &ExecutorKey) -> Option<&HeldRecord> {
        self.by_key.get(key)
    }

    /// Adds the executor of a launch, which is being started.
    pub(super) fn insert(&mut self, launch: &ExecutorLaunch) {
        let record = HeldRecord {
            state: ReportedState::Starting,
            resources: launch.resources.clone(),
            grace: Duration::from_millis(launch.grace),
            hosting: launch.hosting.clone(),
            is_lost: false,
            tag: launch.tag.clone(),
            updates: VecDeque::new(),
        };
        self.by_key.insert(launch.key.clone(), record);
    }

    /// Adds an update, which wasn't sent yet, to those of its executor, and changes the executor's state.
    pub(super) fn push(&mut self, update: ExecutorUpdate) {
        if let Some(held) = self.by_key.get_mut(&update.key) {
            held.state = update.state;
            held.is_lost = update.is_lost;
            let number = self.next_number;
            self.next_number += 1;
            held.updates.push_back(UnacknowledgedUpdate { update, number, sent_at: None });
        }
    }

    /// The executors that haven't ended.
    pub(super) fn alive(&self) -> impl Iterator<Item = (&ExecutorKey, &HeldRecord)> {
        self.by_key.iter().filter(|(_, held)| !held.state.is_end())
    }

    /// Whether a key is that of a host that takes tasks.
    pub(super) fn takes_tasks(&self, key: &ExecutorKey) -> bool {
        let is_up = |held: &HeldRecord| {
            matches!(held.state, ReportedState::Starting | ReportedState::Running)
        };
        self.by_key.get(key).is_some_and(|held| held.hosting == LaunchHosting::Host && is_up(held))
    }

    /// What the executors use that haven't ended.
    pub(super) fn used(&self) -> WorkerResources {
        self.alive().fold(WorkerResources::default(), |sum, (_, held)| sum.plus(&held.resources))
    }

    /// Drops an update that was acknowledged, and its executor if that was the last one of an executor that has ended.
    pub(super) fn acknowledge(&mut self, key: &ExecutorKey, uuid: &str) {
        let Some(held) = self.by_key.get_mut(key) else { return };
        held.updates.retain(|pending| pending.update.uuid != uuid);
        if held.state.is_end() && held.updates.is_empty() {
            self.by_key.remove(key);
        }
    }

    /// What the next SUBSCRIBE lists, updates in the order in which they came; all count as sent.
    pub(super) fn list(&mut self, now: Duration) -> (Vec<HeldExecutor>, Vec<ExecutorUpdate>) {
        let executors = self.by_key.iter().map(|(key, held)| HeldExecutor {
            key: key.clone(),
            state: held.state,
            resources: match held.state.is_end() {
                true => WorkerResources::default(),
                false => held.resources.clone(),
            },
            tag: held.tag.clone(),
            is_lost: held.is_lost,
        });
        let executors = executors.collect();
        (executors, self.send(now, |_| true))
    }

    /// The updates that are to be sent now, in the order in which they came: those that weren't, and those whose
    /// acknowledgement is overdue.
    pub(super) fn due(&mut self, now: Duration, resend_after: Duration) -> Vec<ExecutorUpdate> {
        self.send(now, |sent_at| sent_at.is_none_or(|sent_at| sent_at + resend_after <= now))
    }

    fn send(
        &mut self,
        now: Duration,
        is_due: impl Fn(Option<Duration>) -> bool,
    ) -> Vec<ExecutorUpdate> {
        let pending = self.by_key.values_mut().flat_map(|held| &mut held.updates);
        let mut due: Vec<_> = pending.filter(|pending| is_due(pending.sent_at)).collect();
        due.sort_unstable_by_key(|pending| pending.number);
        let send = |pending: &mut UnacknowledgedUpdate| {
            pending.sent_at = Some(now);
            pending.update.clone()
        };
        due.into_iter().map(send).collect()
    }

    /// When [`HeldExecutors::due`] has something next, unless something happens before.
    pub(super) fn next_due(&self, resend_after: Duration) -> Option<Duration> {
        let sent = self.by_key.values().flat_map(|held| &held.updates).filter_map(|it| it.sent_at);
        sent.min().map(|sent_at| sent_at + resend_after)
    }
}
