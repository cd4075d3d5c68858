//! The tasks that are ready to start.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use offermill::choosers::WaitingTasks;
use offermill::{ResourceSums, Task};

/// The tasks that are ready to start, in the order of their positions.
#[derive(Debug, Default)]
pub(super) struct ReadyTasks {
    waiting: WaitingTasks,
    /// How many there are of each size.
    sizes: HashMap<ResourceSums, u32>,
}

impl ReadyTasks {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a task, whose tag is its position, if it isn't there.
    pub(super) fn insert(&mut self, task: &Task) {
        if self.waiting.insert(task.tag, task) {
            *self.sizes.entry(task.sums()).or_default() += 1;
        }
    }

    /// Removes a task, if it is there.
    pub(super) fn remove(&mut self, task: &Task) {
        if !self.waiting.remove(task.tag, task) {
            return;
        }
        if let Entry::Occupied(mut count) = self.sizes.entry(task.sums()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// The tasks for a chooser.
    pub(super) fn waiting(&self) -> &WaitingTasks {
        &self.waiting
    }

    /// The positions of all, in their order.
    pub(super) fn all(&self) -> Vec<u32> {
        self.waiting.all().iter().map(|task| task.tag as u32).collect()
    }

    /// The sizes of all.
    pub(super) fn sizes(&self) -> impl Iterator<Item = ResourceSums> {
        self.sizes.keys().copied()
    }

    /// How many have this size.
    pub(super) fn count_of(&self, size: ResourceSums) -> u32 {
        self.sizes.get(&size).copied().unwrap_or_default()
    }

    /// The position of the first of each size. O(tasks).
    pub(super) fn first_of_sizes(&self) -> HashMap<ResourceSums, u32> {
        let all = self.waiting.all().into_iter().rev();
        all.map(|task| (task.sums(), task.tag as u32)).collect()
    }

    /// The tasks that start nowhere, each with the reason that `why` has for its size. O(sizes), and O(tasks) if there
    /// are such.
    pub(super) fn refused(
        &self,
        why: impl Fn(ResourceSums) -> Option<String>,
    ) -> Vec<(u32, String)> {
        let refused = self.sizes.keys().filter_map(|size| Some((*size, why(*size)?)));
        let refused: HashMap<ResourceSums, String> = refused.collect();
        if refused.is_empty() {
            return Vec::new();
        }
        let all = self.waiting.all().into_iter();
        all.filter_map(|task| Some((task.tag as u32, refused.get(&task.sums())?.clone()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use offermill::resources::{Mebibytes, MilliCpus};

    use super::*;

    /// Goal: the tasks of the sizes that are refused are told with the reason, in their order, and none is counted
    /// twice. Method: tasks of three sizes that are added and removed twice, and a reason for one size.
    #[test]
    fn tasks_are_refused_by_their_sizes() {
        let mut ready = ReadyTasks::default();
        let task = |(cores, tag)| Task::new(tag, MilliCpus::from_cores(cores), Mebibytes::new(1));
        let tasks: Vec<Task> = [2, 5, 4, 5].into_iter().zip(0..).map(task).collect();
        tasks.iter().chain(&tasks).for_each(|task| ready.insert(task));
        let refused = |ready: &ReadyTasks| {
            ready.refused(|size| (size.cores.whole_cores() > 4).then(|| size.to_string()))
        };
        let told = |tag| (tag, "5 cores and 1 MiB".to_owned());
        assert_eq!(refused(&ready), [told(1), told(3)]);
        (0..2).for_each(|_| ready.remove(&tasks[1]));
        assert_eq!(refused(&ready), [told(3)]);
        ready.remove(&tasks[3]);
        assert_eq!(refused(&ready), []);
        assert_eq!(ready.all(), [0, 2]);
        let firsts = ready.first_of_sizes();
        assert_eq!((firsts[&tasks[0].sums()], firsts[&tasks[2].sums()], firsts.len()), (0, 2, 2));
    }
}
