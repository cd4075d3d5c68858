//! Checks the placement of tasks: invariant 50.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::rule::RuleViolation;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::task_sizes::TaskSizes;
use crate::kernel::{Decisions, Task};
use crate::resources::ExecutorResources;

/// Verifies that each task that a framework picks is placed once and as it is, or comes back.
pub(super) struct TaskChecker {
    sizes: TaskSizes,
    /// The tags of all tasks that were placed so far.
    placed: HashSet<u64, FixedState>,
}

/// What became of a pick.
#[derive(Clone, Copy, PartialEq)]
enum PickOutcome {
    Open,
    Placed,
    CameBack,
}

impl TaskChecker {
    pub(super) fn new(scenario: &Scenario) -> TaskChecker {
        TaskChecker { sizes: TaskSizes::of(scenario), placed: HashSet::default() }
    }

    /// A batch was decided, for which these tasks had been picked.
    pub(super) fn decided(
        &mut self,
        picked: &[Task],
        decisions: &Decisions,
    ) -> Result<(), RuleViolation> {
        self.outcomes(picked, decisions).map_err(|what| (50, what))
    }

    fn outcomes(&mut self, picked: &[Task], decisions: &Decisions) -> Result<(), String> {
        let mut outcomes: BTreeMap<u64, PickOutcome> =
            picked.iter().map(|task| (task.tag, PickOutcome::Open)).collect();
        let mut end = |tag: u64, as_what: PickOutcome| match outcomes.get_mut(&tag) {
            Some(outcome @ PickOutcome::Open) => {
                *outcome = as_what;
                Ok(())
            }
            Some(_) => Err(format!("task {tag} is placed and comes back, or either of it twice")),
            None => Err(format!("task {tag} was not picked for this batch")),
        };
        for accepted in decisions.accepts() {
            for (tag, placed) in accepted.tasks() {
                end(tag, PickOutcome::Placed)?;
                if !self.placed.insert(tag) {
                    return Err(format!("task {tag} is placed again"));
                }
                let task = self.sizes.task(tag);
                let Task { cores, memory, gpus, .. } = task;
                let asked = ExecutorResources { cores, memory, gpus, ..ExecutorResources::NONE };
                if placed.resources != asked {
                    let found = placed.resources;
                    return Err(format!("task {tag} gets {found:?}, it was to get {asked:?}"));
                }
            }
        }
        for unplaced in decisions.unplaced() {
            end(unplaced.tag, PickOutcome::CameBack)?;
        }
        let is_open = |(_, outcome): &(&u64, &PickOutcome)| **outcome == PickOutcome::Open;
        if let Some((tag, _)) = outcomes.iter().find(is_open) {
            return Err(format!("task {tag} is neither placed nor does it come back"));
        }
        self.check_gangs(picked, &outcomes)
    }

    /// A gang is the task that begins it, and the next one, if there is one.
    fn check_gangs(
        &self,
        picked: &[Task],
        outcomes: &BTreeMap<u64, PickOutcome>,
    ) -> Result<(), String> {
        let mut tags = picked.iter().map(|task| task.tag);
        while let Some(first) = tags.find(|tag| self.sizes.begins_gang(*tag)) {
            let Some(second) = tags.next() else { break };
            if outcomes.get(&first) != outcomes.get(&second) {
                return Err(format!("of the gang of tasks {first} and {second} one is placed"));
            }
        }
        Ok(())
    }
}
