//! Checks the placement of tasks: invariant 50.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use super::rule::RuleViolation;
use crate::cluster::simulated::scenario::Scenario;
use crate::kernel::{Decisions, Task};
use crate::resources::ExecutorResources;

/// Verifies that each task that a framework picks is placed once and as it is, or comes back.
pub(super) struct TaskChecker {
    /// Whether a task may be placed again, once it has ended.
    may_repeat: bool,
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
        TaskChecker { may_repeat: scenario.has_work_queue(), placed: HashSet::default() }
    }

    /// A batch was decided, for which these tasks had been picked; the members of a gang are together.
    pub(super) fn decided(
        &mut self,
        picked: &[Vec<Task>],
        decisions: &Decisions,
    ) -> Result<(), RuleViolation> {
        self.outcomes(picked, decisions).map_err(|what| (50, what))
    }

    fn outcomes(&mut self, picked: &[Vec<Task>], decisions: &Decisions) -> Result<(), String> {
        let mut outcomes: BTreeMap<u64, (Task, PickOutcome)> =
            picked.iter().flatten().map(|task| (task.tag, (*task, PickOutcome::Open))).collect();
        let mut end = |tag: u64, as_what: PickOutcome| match outcomes.get_mut(&tag) {
            Some((task, outcome @ PickOutcome::Open)) => {
                *outcome = as_what;
                Ok(*task)
            }
            Some(_) => Err(format!("task {tag} is placed and comes back, or either of it twice")),
            None => Err(format!("task {tag} was not picked for this batch")),
        };
        for accepted in decisions.accepts() {
            for (tag, placed) in accepted.tasks() {
                let Task { cores, memory, gpus, .. } = end(tag, PickOutcome::Placed)?;
                if !self.placed.insert(tag) && !self.may_repeat {
                    return Err(format!("task {tag} is placed again"));
                }
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
        let mut outcome_of = outcomes.iter().map(|(tag, (_, outcome))| (tag, outcome));
        if let Some((tag, _)) = outcome_of.find(|(_, outcome)| **outcome == PickOutcome::Open) {
            return Err(format!("task {tag} is neither placed nor does it come back"));
        }
        for gang in picked {
            let mut fates = gang.iter().map(|task| outcomes.get(&task.tag).map(|it| it.1));
            let first = fates.next();
            if fates.any(|fate| Some(fate) != first) {
                let tags: Vec<u64> = gang.iter().map(|task| task.tag).collect();
                return Err(format!("the gang of tasks {tags:?} is placed in part"));
            }
        }
        Ok(())
    }
}
