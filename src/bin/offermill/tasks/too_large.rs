//! The sizes of tasks that fit on no agent that has made an offer: since when, why, and which of them were told.
//!
//! On a cluster that others use as well, an agent offers what they leave, which says nothing of what it has: such a
//! task may fit once they have ended.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use offermill::{ResourceSums, Timestamp};

use crate::tasks::ready::ReadyTasks;

/// The least time between two checks, each of which looks at every size of tasks that wait.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// What a sentence of the survey says, and what it says here.
const ON_NO_AGENT: [&str; 2] = ["fits on no agent:", "fits on no agent that has offered so far:"];

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
pub(super) struct TooLargeSize {
    /// The first task of this size.
    pub(super) first: u32,
    pub(super) why: String,
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

    /// Takes what a check has found that knew of all agents: all sizes that fit on none, with the reason.
    pub(super) fn update(
        &mut self,
        found: HashMap<ResourceSums, String>,
        ready: &ReadyTasks,
        now: Timestamp,
    ) {
        let since = self.counted_to.replace(now).unwrap_or(now);
        self.sizes.retain(|size, _| found.contains_key(size));
        self.sizes.values_mut().for_each(|it| it.waited += now.since(since));
        let firsts = match found.keys().all(|size| self.sizes.contains_key(size)) {
            true => HashMap::new(),
            false => ready.first_of_sizes(),
        };
        for (size, why) in found {
            let why = why.replacen(ON_NO_AGENT[0], ON_NO_AGENT[1], 1);
            if let Some(known) = self.sizes.get_mut(&size) {
                known.why = why;
            } else if let Some(first) = firsts.get(&size) {
                self.sizes
                    .insert(size, TooLargeSize { first: *first, why, waited: Duration::ZERO });
            }
        }
    }

    /// Removes the sizes that have waited for the time-out, with the reason.
    pub(super) fn take_overdue(&mut self, timeout: Duration) -> HashMap<ResourceSums, String> {
        let overdue = self.sizes.extract_if(|_, it| it.waited >= timeout);
        let overdue: HashMap<_, _> = overdue.map(|(size, it)| (size, it.why)).collect();
        self.told.retain(|size| !overdue.contains_key(size));
        overdue
    }

    /// Those that weren't told, in the order of their first tasks. They count as told from now on.
    pub(super) fn take_untold(&mut self) -> Vec<ResourceSums> {
        let mut untold = self.in_order();
        untold.retain(|size| self.told.insert(*size));
        untold
    }

    /// All, in the order of their first tasks.
    pub(super) fn in_order(&self) -> Vec<ResourceSums> {
        let mut sizes: Vec<(&ResourceSums, &TooLargeSize)> = self.sizes.iter().collect();
        sizes.sort_unstable_by_key(|(_, it)| it.first);
        sizes.into_iter().map(|(size, _)| *size).collect()
    }

    pub(super) fn get(&self, size: ResourceSums) -> Option<&TooLargeSize> {
        self.sizes.get(&size)
    }
}
