//! The sizes of tasks that fit on no agent that has made an offer: since when, and which of them were told.
//!
//! On a cluster that others use as well, an agent offers what they leave, which says nothing of what it has: such a
//! task may fit once they have ended.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use offermill::engine::{FitsNowhere, TooLarge};
use offermill::{ResourceSums, Timestamp};

use crate::tasks::ready::ReadyTasks;

/// The least time between two checks, each of which looks at every size of tasks that wait.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The most sizes that a check tells, and the most whose tasks it fails: to find the agent that is nearest to a size is
/// to look at all agents.
const TOLD_MAX: usize = 50;

/// The sizes of ready tasks that fit on no agent that has made an offer.
#[derive(Debug, Default)]
pub(super) struct TooLargeSizes {
    sizes: HashMap<ResourceSums, TooLargeSize>,
    /// Those that were told, until a task of that size starts.
    told: HashSet<ResourceSums>,
    checked_at: Option<Timestamp>,
    /// The last check, if it knew of all agents: the time from it to the next such check counts.
    counted_to: Option<Timestamp>,
}

#[derive(Debug)]
struct TooLargeSize {
    /// The first task of this size.
    first: u32,
    /// How long checks have found it.
    waited: Duration,
}

impl TooLargeSizes {
    /// A task of this size starts.
    pub(super) fn started(&mut self, size: ResourceSums) {
        self.sizes.remove(&size);
        self.told.remove(&size);
    }

    /// Whether it is time for a check.
    pub(super) fn is_due(&mut self, now: Timestamp) -> bool {
        let is_due = self.checked_at.is_none_or(|last| now.since(last) >= CHECK_INTERVAL);
        self.checked_at = if is_due { Some(now) } else { self.checked_at };
        is_due
    }

    /// Not all agents had the time to make offers: what is known stays, and the time until they had doesn't count.
    pub(super) fn pause(&mut self) {
        self.counted_to = None;
    }

    /// Takes what a check has found that knew of all agents: all sizes that fit on none.
    pub(super) fn update(
        &mut self,
        found: impl IntoIterator<Item = ResourceSums>,
        ready: &ReadyTasks,
        now: Timestamp,
    ) {
        let found: HashSet<ResourceSums> = found.into_iter().collect();
        let since = self.counted_to.replace(now).unwrap_or(now);
        self.sizes.retain(|size, _| found.contains(size));
        self.sizes.values_mut().for_each(|it| it.waited += now.since(since));
        if found.len() == self.sizes.len() {
            return;
        }
        let firsts = ready.first_of_sizes();
        for size in found {
            if let Some(first) = firsts.get(&size) {
                let first = TooLargeSize { first: *first, waited: Duration::ZERO };
                self.sizes.entry(size).or_insert(first);
            }
        }
    }

    /// Removes the sizes that have waited for the time-out, in the order of their first tasks: as many as a check may
    /// tell.
    pub(super) fn take_overdue(&mut self, timeout: Duration) -> Vec<ResourceSums> {
        let mut overdue = self.in_order();
        overdue.retain(|(size, _)| self.sizes.get(size).is_some_and(|it| it.waited >= timeout));
        overdue.truncate(TOLD_MAX);
        for (size, _) in &overdue {
            self.started(*size);
        }
        overdue.into_iter().map(|(size, _)| size).collect()
    }

    /// Those that weren't told, with their first tasks, in the order of these: as many as a check may tell, and none
    /// that has waited for the time-out. They count as told from now on.
    pub(super) fn take_untold(&mut self, timeout: Option<Duration>) -> Vec<(ResourceSums, u32)> {
        let mut untold = self.in_order();
        let is_overdue = |it: &TooLargeSize| timeout.is_some_and(|timeout| it.waited >= timeout);
        let is_waiting =
            |size: &ResourceSums| self.sizes.get(size).is_some_and(|it| !is_overdue(it));
        untold.retain(|(size, _)| is_waiting(size) && !self.told.contains(size));
        untold.truncate(TOLD_MAX);
        self.told.extend(untold.iter().map(|(size, _)| *size));
        untold
    }

    /// All, with their first tasks, in the order of these.
    pub(super) fn in_order(&self) -> Vec<(ResourceSums, u32)> {
        let mut sizes: Vec<(ResourceSums, u32)> =
            self.sizes.iter().map(|(size, it)| (*size, it.first)).collect();
        sizes.sort_unstable_by_key(|(_, first)| *first);
        sizes
    }
}

/// Why a task fits on no agent, as it is told. Others may come, or offer more once tasks of others have ended.
pub(super) fn sentence(why: &FitsNowhere) -> String {
    let FitsNowhere { what, size, nearest, has, lacks, .. } = why;
    if *what == TooLarge::TaskWithHost {
        let why = "it and its host are two executors, and agents that make offers take one each";
        return format!("{why}, as the nearest, {nearest}, does");
    }
    format!(
        "{what} fits on no agent that makes offers: it takes {size}; the nearest agent, {nearest}, has {has}, \
         and lacks {lacks}"
    )
}
