//! [`WaitingTasks`]: the tasks of a [`WorkQueue`](super::WorkQueue) that wait, and which of them come first.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::QueueId;
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

/// How many tasks of a kind fit into what is left.
fn fitting((_, cores, memory, gpus): WorkKind, left: ResourceSums) -> u64 {
    let by = |left: u64, taken: u64| left.checked_div(taken).unwrap_or(u64::MAX);
    by(left.cores.millis(), cores.millis())
        .min(by(left.memory.get(), memory.get()))
        .min(by(left.gpus.get().into(), gpus.get().into()))
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
        self.by_kind.keys().any(|kind| fitting(*kind, room.left()) > 0)
    }

    /// The first ones, in their order: of each kind as many as have room if others get none.
    pub(super) fn first(&self, rooms: &[Room], queues: &QueuesLeft) -> Vec<RankedTag> {
        let mut first = Vec::new();
        let widest = rooms.iter().fold(ResourceSums::NONE, |most, it| most.max_of_each(it.left()));
        for (kind, alike) in &self.by_kind {
            // There may be many kinds, of which few fit anywhere, and of each a few tasks.
            let wanted = fitting(*kind, queues.room(kind.0)).min(alike.len() as u64);
            let wanted = if fitting(*kind, widest) > 0 { wanted } else { 0 };
            let mut most: u64 = 0;
            for room in rooms {
                if most >= wanted {
                    break;
                }
                most = most.saturating_add(fitting(*kind, room.left()).min(room.tasks().into()));
            }
            let most = most.min(wanted);
            first.extend(alike.iter().take(usize::try_from(most).unwrap_or(usize::MAX)));
        }
        first.sort_unstable();
        first
    }
}
