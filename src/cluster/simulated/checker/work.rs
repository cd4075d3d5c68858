//! Checks what a work queue tells of its tasks: invariant 52. The books are made from what is placed and reported; that
//! a task has begun is known from its agent, whether the framework was told or not.

use std::collections::{BTreeMap, BTreeSet};

use super::Checker;
use super::rule::RuleViolation;
use crate::cluster::simulated::scenario::Scenario;
use crate::engine::views::work_view::WorkView;
use crate::engine::{Notice, PlacedExecutor, TaskEnd, WorkQueue};
use crate::kernel::Change;

/// The attempts of the tasks of a work queue.
#[derive(Default)]
pub(super) struct WorkChecker {
    is_enabled: bool,
    /// The tags of those that haven't ended, by executor.
    open: BTreeMap<String, u64>,
    /// Those that have ended or were given up, whose tasks neither have an end nor wait again; by tag.
    over: BTreeMap<u64, String>,
}

impl WorkChecker {
    pub(super) fn new(scenario: &Scenario) -> WorkChecker {
        WorkChecker { is_enabled: scenario.has_work_queue(), ..WorkChecker::default() }
    }

    /// Follows the attempts.
    pub(super) fn noticed(&mut self, notice: &Notice) -> Result<(), RuleViolation> {
        match notice {
            Notice::Placed(PlacedExecutor { executor, tag: Some(tag), .. })
                if self.is_enabled && *tag < WorkQueue::HOST_TAGS =>
            {
                let is_open = self.open.values().any(|open| open == tag);
                if is_open || self.over.contains_key(tag) {
                    return Err((52, format!("task {tag} is placed as {executor} beside another")));
                }
                self.open.insert(executor.clone(), *tag);
            }
            Notice::Updated { executor, change: Change::Ended(_), .. }
            | Notice::GivenUp { executor } => {
                if let Some(tag) = self.open.remove(executor) {
                    self.over.insert(tag, executor.clone());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The queue has told these ends, and is as it says.
    fn told(
        &mut self,
        view: &WorkView,
        ends: &[TaskEnd],
        is_unsent: impl Fn(&str) -> bool,
        has_begun: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        for TaskEnd { task, executor, .. } in ends.iter().filter(|end| !end.executor.is_empty()) {
            if self.over.remove(&task.tag).as_ref() != Some(executor) {
                return Err(format!("{executor} has an end that is early, or another's, or told"));
            }
        }
        let waiting: BTreeSet<u64> = view.waiting.iter().map(|task| task.tag).collect();
        let (again, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.over).into_iter().partition(|(tag, _)| waiting.contains(tag));
        self.over = kept;
        if let Some((tag, executor)) = again.iter().find(|(_, executor)| has_begun(executor)) {
            return Err(format!("task {tag} waits again, and has begun as {executor}"));
        }
        let mut undecided = self.over.keys();
        if let Some(tag) = undecided.find(|tag| !view.kept.contains(*tag)) {
            return Err(format!("task {tag} has ended, and neither has an end nor waits again"));
        }
        let sent = self.open.iter().filter(|(executor, _)| !is_unsent(executor));
        let over = self.over.iter().map(|(tag, executor)| (executor, tag));
        let launched: BTreeMap<&String, &u64> = sent.chain(over).collect();
        if !view.launched.iter().eq(launched.iter().map(|(executor, tag)| (*executor, *tag))) {
            let found = &view.launched;
            return Err(format!("{found:?} are launched, expected {launched:?}"));
        }
        let expected = waiting.len() + self.open.len() + self.over.len();
        if view.tasks.len() != expected || view.kept.len() != self.over.len() {
            let (tasks, kept) = (view.tasks.len(), view.kept.len());
            return Err(format!(
                "{tasks} tasks are in the queue, {kept} kept, expected {expected}"
            ));
        }
        if view.undecided != view.kept {
            return Err(format!("{:?} are undecided, {:?} kept", view.undecided, view.kept));
        }
        let picked = view.tasks.iter().filter(|task| !waiting.contains(&task.tag));
        let gpus: u32 = picked.map(|task| task.gpus.get()).sum();
        if view.gpus_picked != gpus {
            let found = view.gpus_picked;
            return Err(format!("{found} GPUs are picked, expected {gpus}"));
        }
        Ok(())
    }
}

impl Checker {
    /// A work queue has told these ends, and is as it says.
    pub(in super::super) fn check_work(
        &mut self,
        view: &WorkView,
        ends: &[TaskEnd],
        has_begun: impl Fn(&str) -> bool,
    ) {
        if self.is_enabled {
            let Checker { work, batches, .. } = self;
            let checked = work.told(view, ends, |name| batches.is_unsent(name), has_begun);
            self.record(checked.map_err(|what| (52, what)));
        }
    }
}
