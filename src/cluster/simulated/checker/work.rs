//! Checks what a work queue tells of its tasks: invariant 52. The books are made from what is placed and reported; that
//! a task has begun is known from its agent, whether the framework was told or not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Checker;
use super::rule::RuleViolation;
use crate::cluster::simulated::scenario::Scenario;
use crate::engine::views::work_view::WorkView;
use crate::engine::{Notice, PlacedExecutor, TaskEnd, WorkQueue};
use crate::kernel::Change;
use crate::time::Timestamp;

/// The shortest and the longest pause of an agent.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long an end may wait for that of a host.
const UNDECIDED_MAX: Duration = Duration::from_secs(60);

/// The attempts of the tasks of a work queue.
#[derive(Default)]
pub(super) struct WorkChecker {
    is_enabled: bool,
    /// The tags of those that haven't ended and their agents, by executor.
    open: BTreeMap<String, (u64, String)>,
    /// Those that have ended or were given up, whose tasks neither have an end nor wait again; by tag.
    over: BTreeMap<u64, OverAttempt>,
    /// The last look for ends that are due.
    looked_at: Timestamp,
    /// By agent. What becomes of hosts begins pauses, too: none are known if tasks run in hosts.
    pauses: BTreeMap<String, FirstPause>,
    has_hosts: bool,
}

/// The pause of an agent that has started nothing, and had no pause for long.
struct FirstPause {
    since: Timestamp,
    /// When it was last told to have started nothing.
    last: Timestamp,
}

/// An attempt that has ended, and whose end may wait for that of its host.
struct OverAttempt {
    executor: String,
    agent_id: String,
    /// When its end was reported.
    at: Timestamp,
    /// When its end is told or its task waits again at the latest.
    due: Timestamp,
    /// It waits for the end of its agent's host.
    is_kept: bool,
}

impl WorkChecker {
    pub(super) fn new(scenario: &Scenario) -> WorkChecker {
        let (is_enabled, has_hosts) = (scenario.has_work_queue(), scenario.has_hosts());
        WorkChecker { is_enabled, has_hosts, ..WorkChecker::default() }
    }

    /// Follows the attempts.
    pub(super) fn noticed(&mut self, notice: &Notice, now: Timestamp) -> Result<(), RuleViolation> {
        match notice {
            Notice::Placed(PlacedExecutor { executor, agent_id, tag: Some(tag), .. })
                if self.is_enabled && *tag < WorkQueue::HOST_TAGS =>
            {
                let is_open = self.open.values().any(|(open, _)| open == tag);
                if is_open || self.over.contains_key(tag) {
                    return Err((52, format!("task {tag} is placed as {executor} beside another")));
                }
                let is_over = |it: &FirstPause| now < it.since || now >= it.since.plus(PAUSE_MIN);
                if !self.pauses.get(agent_id).is_none_or(is_over) {
                    let what = format!("{executor} is placed on {agent_id}, which has a pause");
                    return Err((52, what));
                }
                self.open.insert(executor.clone(), (*tag, agent_id.clone()));
            }
            Notice::Updated { executor, change: Change::Ended(_), .. }
            | Notice::GivenUp { executor } => {
                if let Some((tag, agent_id)) = self.open.remove(executor) {
                    let (executor, due) = (executor.clone(), now.plus(UNDECIDED_MAX));
                    let (at, is_kept) = (now, false);
                    let over = OverAttempt { executor, agent_id, at, due, is_kept };
                    self.over.insert(tag, over);
                }
            }
            Notice::AgentLost { agent_id } => {
                let there = self.over.values_mut().filter(|over| over.agent_id == *agent_id);
                there.for_each(|over| over.due = self.looked_at);
                self.pauses.remove(agent_id);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether an end waits for that of the host of this agent.
    pub(super) fn waits_for_host_on(&self, agent_id: &str, now: Timestamp) -> bool {
        let waits = |it: &OverAttempt| it.is_kept && it.agent_id == agent_id && now < it.due;
        self.over.values().any(waits)
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
            if self.over.remove(&task.tag).is_none_or(|over| over.executor != *executor) {
                return Err(format!("{executor} has an end that is early, or another's, or told"));
            }
        }
        let waiting: BTreeSet<u64> = view.waiting.iter().map(|task| task.tag).collect();
        let (again, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.over).into_iter().partition(|(tag, _)| waiting.contains(tag));
        self.over = kept;
        if let Some((tag, over)) = again.iter().find(|(_, over)| has_begun(&over.executor)) {
            return Err(format!("task {tag} waits again, and has begun as {}", over.executor));
        }
        for OverAttempt { agent_id, at, .. } in again.into_values().filter(|_| !self.has_hosts) {
            let new = FirstPause { since: at, last: at };
            let pause = self.pauses.entry(agent_id).or_insert(new);
            if at.since(pause.last) > PAUSE_MAX {
                pause.since = at;
            }
            pause.last = at;
        }
        let is_late = |over: &OverAttempt| over.due <= self.looked_at;
        let mut over = self.over.iter();
        if let Some((tag, _)) = over.find(|(tag, it)| !view.kept.contains(tag) || is_late(it)) {
            return Err(format!("task {tag} has ended, and neither has an end nor waits again"));
        }
        self.over.values_mut().for_each(|over| over.is_kept = true);
        let sent = self.open.iter().filter(|(executor, _)| !is_unsent(executor));
        let sent = sent.map(|(executor, (tag, _))| (executor, tag));
        let over = self.over.iter().map(|(tag, over)| (&over.executor, tag));
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
    /// The framework has looked for ends that are due.
    pub(in super::super) fn looks_for_ends(&mut self, now: Timestamp) {
        self.work.looked_at = now;
    }

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
