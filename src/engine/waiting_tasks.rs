//! [`WaitingTasks`]: the tasks of a [`WorkQueue`](super::WorkQueue) that wait, and which of them come first.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::QueueId;
use crate::kernel::choosers::EqualTasks;
use crate::kernel::{QueuesLeft, ResourceSums, Room, Task};
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// The ranks and tags of tasks that wait, by what they take.
#[derive(Debug, Default)]
pub(super) struct WaitingTasks {
    by_kind: BTreeMap<WorkKind, BTreeSet<RankedTag>>,
}

/// The rank and the tag of a task: its place in the order.
pub(super) type RankedTag = (u64, u64);

/// What tasks have in common that have room together: their queue, cores, memory and GPUs.
type WorkKind = (QueueId, MilliCpus, Mebibytes, Gpus);

fn kind_of(task: &Task) -> WorkKind {
    (task.queue, task.cores, task.memory, task.gpus)
}

/// What a task of a kind takes.
fn sums((_, cores, memory, gpus): WorkKind) -> ResourceSums {
    ResourceSums { cores, memory, gpus }
}

impl WaitingTasks {
    pub(super) fn len(&self) -> usize {
        self.by_kind.values().map(BTreeSet::len).sum()
    }

    pub(super) fn insert(&mut self, task: &Task, rank: u64) {
        self.by_kind.entry(kind_of(task)).or_default().insert((rank, task.tag));
    }

    /// Removes a task. Returns whether it was there.
    pub(super) fn remove(&mut self, task: &Task, rank: u64) -> bool {
        let kind = kind_of(task);
        let Some(alike) = self.by_kind.get_mut(&kind) else { return false };
        let was_there = alike.remove(&(rank, task.tag));
        if alike.is_empty() {
            self.by_kind.remove(&kind);
        }
        was_there
    }

    /// Removes all, and returns them in their order.
    pub(super) fn take(&mut self) -> Vec<RankedTag> {
        let all = std::mem::take(&mut self.by_kind).into_values().flatten();
        let mut all: Vec<RankedTag> = all.collect();
        all.sort_unstable();
        all
    }

    /// Whether any of them fits into a room.
    pub(super) fn have_one_for(&self, room: &Room) -> bool {
        self.by_kind.keys().any(|kind| sums(*kind).times_in(room.left()) > 0)
    }

    /// The first ones, in their order: of each kind as many as have room if others get none.
    pub(super) fn first(&self, rooms: &[Room], queues: &QueuesLeft) -> Vec<RankedTag> {
        let (mut first, fitting) = (Vec::new(), EqualTasks::new(rooms));
        for (kind, alike) in &self.by_kind {
            let each = sums(*kind);
            let wanted = each.times_in(queues.room(kind.0)).min(alike.len() as u64);
            let most = fitting.count(each, wanted);
            first.extend(alike.iter().take(usize::try_from(most).unwrap_or(usize::MAX)));
        }
        first.sort_unstable();
        first
    }
}
