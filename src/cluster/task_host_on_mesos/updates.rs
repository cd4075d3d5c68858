//! Updates that the agent has not acknowledged, and the tasks of which it has acknowledged none.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use crate::mesos_v1::messages::executor::{Subscribe, Update};
use crate::mesos_v1::messages::{TaskInfo, TaskStatus};

/// How long an update may stay unacknowledged until it is sent again. Mesos' own executors wait as long.
const RESEND_AFTER: Duration = Duration::from_secs(10);

/// What must be sent again after a disconnection.
#[derive(Debug, Default)]
pub(super) struct UnacknowledgedUpdates {
    next: u64,
    /// In their order, with the time of the last sending.
    updates: BTreeMap<u64, (Update, Instant)>,
    by_uuid: HashMap<Vec<u8>, u64>,
    /// By task, in the order of their launches.
    tasks: BTreeMap<u64, TaskInfo>,
    by_task: HashMap<String, u64>,
}

impl UnacknowledgedUpdates {
    /// The agent has launched a task.
    pub(super) fn launched(&mut self, task: TaskInfo) {
        let number = self.number();
        if let Some(older) = self.by_task.insert(task.task_id.value.clone(), number) {
            self.tasks.remove(&older);
        }
        self.tasks.insert(number, task);
    }

    /// Adds an update, which gets a UUID and is to be sent.
    pub(super) fn add(&mut self, mut status: TaskStatus, now: Instant) -> Update {
        let number = self.number();
        let uuid = uuid(number);
        status.uuid = Some(uuid.clone());
        let update = Update { status };
        self.by_uuid.insert(uuid, number);
        self.updates.insert(number, (update.clone(), now));
        update
    }

    /// The agent has an update. Returns the id of its task; of an unknown one nothing changes.
    pub(super) fn acknowledge(&mut self, uuid: &[u8]) -> Option<String> {
        let (update, _) = self.updates.remove(&self.by_uuid.remove(uuid)?)?;
        let task = self.by_task.remove(&update.status.task_id.value);
        let _known = task.and_then(|number| self.tasks.remove(&number));
        Some(update.status.task_id.value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// What a subscription carries: all of it.
    pub(super) fn subscribe(&mut self, now: Instant) -> Subscribe {
        self.updates.values_mut().for_each(|(_, sent_at)| *sent_at = now);
        Subscribe {
            unacknowledged_tasks: self.tasks.values().cloned().collect(),
            unacknowledged_updates: self.updates.values().map(|it| it.0.clone()).collect(),
        }
    }

    /// All updates, in their order, if the first of them has waited for too long: they are to be sent again.
    pub(super) fn overdue(&mut self, now: Instant) -> Vec<Update> {
        let is_due = |sent_at: &Instant| now.saturating_duration_since(*sent_at) >= RESEND_AFTER;
        if !self.updates.values().any(|(_, sent_at)| is_due(sent_at)) {
            return Vec::new();
        }
        self.subscribe(now).unacknowledged_updates
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// A random UUID (version 4). The hasher's random keys suffice: the agent compares UUIDs of one task.
fn uuid(number: u64) -> Vec<u8> {
    let halves = [RandomState::new().hash_one(number), RandomState::new().hash_one(!number)];
    let mut uuid: Vec<u8> = halves.iter().flat_map(|half| half.to_be_bytes()).collect();
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(task: &str) -> TaskStatus {
        TaskStatus { task_id: task.into(), ..TaskStatus::default() }
    }

    fn ids(subscribe: &Subscribe) -> (Vec<&str>, Vec<&str>) {
        let tasks = subscribe.unacknowledged_tasks.iter();
        let updates = subscribe.unacknowledged_updates.iter();
        (
            tasks.map(|task| task.task_id.value.as_str()).collect(),
            updates.map(|update| update.status.task_id.value.as_str()).collect(),
        )
    }

    /// Goal: a subscription carries what isn't acknowledged, in its order, and nothing else. Method: two tasks with
    /// updates, of which one and then all are acknowledged, one of them twice.
    #[test]
    fn subscriptions_carry_what_is_not_acknowledged() {
        let (mut updates, now) = (UnacknowledgedUpdates::default(), Instant::now());
        for task in ["b", "a"] {
            updates.launched(TaskInfo { task_id: task.into(), ..TaskInfo::default() });
        }
        let all = ["b", "a", "b"].map(|task| updates.add(status(task), now));
        assert_eq!(ids(&updates.subscribe(now)), (vec!["b", "a"], vec!["b", "a", "b"]));
        let uuid = |update: &Update| update.status.uuid.clone().unwrap();
        for _ in 0..2 {
            updates.acknowledge(&uuid(&all[0]));
            assert_eq!(ids(&updates.subscribe(now)), (vec!["a"], vec!["a", "b"]));
        }
        assert_eq!(updates.acknowledge(&[0; 16]), None);
        for (update, known) in all.iter().zip([None, Some("a"), Some("b")]) {
            assert_eq!(updates.acknowledge(&uuid(update)).as_deref(), known);
        }
        assert!(updates.is_empty());
        assert_eq!(ids(&updates.subscribe(now)), (vec![], vec![]));
    }

    /// Goal: a task that the agent launches once more is carried once, and not at all once an update of it is
    /// acknowledged. Method: the same launch twice.
    #[test]
    fn a_repeated_launch_is_carried_once() {
        let (mut updates, now) = (UnacknowledgedUpdates::default(), Instant::now());
        for _ in 0..2 {
            updates.launched(TaskInfo { task_id: "a".into(), ..TaskInfo::default() });
        }
        assert_eq!(ids(&updates.subscribe(now)), (vec!["a"], vec![]));
        let update = updates.add(status("a"), now);
        updates.acknowledge(&update.status.uuid.unwrap());
        assert_eq!(ids(&updates.subscribe(now)), (vec![], vec![]));
    }

    /// Goal: an update without an acknowledgement is sent again, with those behind it, and not at once a third time.
    /// Method: the clock before and at its time.
    #[test]
    fn updates_are_sent_again() {
        let (mut updates, now) = (UnacknowledgedUpdates::default(), Instant::now());
        let first = updates.add(status("a"), now);
        let second = updates.add(status("a"), now + Duration::from_secs(5));
        assert!(first.status.uuid != second.status.uuid);
        assert_eq!(updates.overdue(now + Duration::from_secs(9)), []);
        assert_eq!(updates.overdue(now + RESEND_AFTER), [first, second]);
        assert_eq!(updates.overdue(now + RESEND_AFTER), []);
    }
}
