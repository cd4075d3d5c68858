//! Checks queues of tasks: invariant 51. The books are made from what is placed and reported; maxima and guarantees are
//! those that follow from the scenario.

use super::Checker;
use super::expected_cluster::FixedMap;
use super::rule::RuleViolation;
use crate::cluster::simulated::queues::SimQueues;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::config::QueueId;
use crate::engine::Notice;
use crate::engine::WorkQueue;
use crate::kernel::{Change, QueueUse};
use crate::resources::ExecutorResources;

/// What the executors of each queue hold.
pub(super) struct QueueChecker {
    queues: SimQueues,
    executors: FixedMap<String, QueuedExecutor>,
    /// By number: thousandths of cores, and MiB.
    held: Vec<[u64; 2]>,
    /// The same after the last step.
    before: Vec<[u64; 2]>,
}

struct QueuedExecutor {
    queue: QueueId,
    amounts: [u64; 2],
    is_counted: bool,
}

impl QueueChecker {
    pub(super) fn new(scenario: &Scenario) -> QueueChecker {
        let queues = SimQueues::of(scenario);
        let held = vec![[0; 2]; queues.list(FrameworkSettings::of(scenario)).len()];
        QueueChecker { queues, executors: FixedMap::default(), before: held.clone(), held }
    }

    /// Whether there are queues.
    pub(super) fn are_there(&self) -> bool {
        !self.queues.is_empty()
    }

    pub(super) fn noticed(&mut self, notice: &Notice) {
        if self.queues.is_empty() {
            return;
        }
        match notice {
            Notice::Placed(placed) => {
                let tag = placed.tag.unwrap_or(WorkQueue::HOST_TAGS);
                let queue = if tag >= WorkQueue::HOST_TAGS {
                    QueueId::DEFAULT
                } else {
                    self.queues.of_tag(tag)
                };
                let ExecutorResources { cores, memory, .. } = placed.resources;
                let amounts = [cores.millis(), memory.get()];
                let executor = QueuedExecutor { queue, amounts, is_counted: false };
                self.executors.insert(placed.executor.clone(), executor);
                self.count(&placed.executor, true);
            }
            Notice::Updated { executor, change: Change::Ended(_), .. }
            | Notice::Forgotten { executor } => {
                self.count(executor, false);
                self.executors.remove(executor);
            }
            Notice::Updated { executor, change: Change::Readmitted, .. } => {
                self.count(executor, true);
            }
            Notice::GivenUp { executor } => self.count(executor, false),
            _ => {}
        }
    }

    /// From now on an executor is counted in its queue, or not.
    fn count(&mut self, executor: &str, is_counted: bool) {
        let Some(executor) = self.executors.get_mut(executor) else { return };
        if std::mem::replace(&mut executor.is_counted, is_counted) == is_counted {
            return;
        }
        let held = &mut self.held[executor.queue.index()];
        for (held, amount) in held.iter_mut().zip(executor.amounts) {
            *held = if is_counted { *held + amount } else { held.saturating_sub(amount) };
        }
    }

    /// Checks after a step that the kernel has booked the same, that it keeps what is guaranteed to queues with demand
    /// and no more, and that nothing was booked beyond a maximum, or of what is guaranteed to other queues.
    pub(super) fn step_ends(
        &mut self,
        uses: &[QueueUse],
        settings: FrameworkSettings,
    ) -> Result<(), RuleViolation> {
        if self.queues.is_empty() {
            return Ok(());
        }
        let booked: Vec<[u64; 2]> =
            uses.iter().map(|it| [it.cores.millis(), it.memory.get()]).collect();
        let before = std::mem::replace(&mut self.before, self.held.clone());
        if booked != self.held {
            let held = &self.held;
            return Err((
                51,
                format!("queues have booked {booked:?}, their executors hold {held:?}"),
            ));
        }
        let list = self.queues.list(settings);
        let kept = uses.iter().map(|it| [it.guaranteed_cores.millis(), it.guaranteed_memory.get()]);
        let kept: Vec<[u64; 2]> = kept.collect();
        let due: Vec<[u64; 2]> =
            list.iter().map(|queue| [0, 1].map(|kind| queue.terms(kind).1)).collect();
        if kept != due {
            return Err((51, format!("{kept:?} is kept for queues, their guarantees are {due:?}")));
        }
        if self.held == before {
            return Ok(());
        }
        let totals = self.queues.totals(settings);
        for kind in [0, 1] {
            let held = |queues: &[[u64; 2]]| queues.iter().map(|it| it[kind]).collect::<Vec<_>>();
            let terms = list.iter().map(|queue| queue.terms(kind));
            check_kind(&held(&before), &held(&self.held), terms, totals[kind])
                .map_err(|what| (51, what))?;
        }
        Ok(())
    }
}

impl Checker {
    /// What each queue holds, by number: thousandths of cores, and MiB. `None` if checks are off.
    pub(in crate::cluster::simulated) fn held_in_queues(&self) -> Option<&[[u64; 2]]> {
        self.is_enabled.then_some(&*self.queues.held)
    }
}

/// Checks one kind of resource: what queues held before a step and hold after it, the maximum and the guarantee of
/// each, and what all have.
fn check_kind(
    before: &[u64],
    after: &[u64],
    terms: impl Iterator<Item = (u64, u64)> + Clone,
    total: Option<u64>,
) -> Result<(), String> {
    let grown =
        |(before, after): (&u64, &u64), least: u64| *after.max(&least) > *before.max(&least);
    let all: u64 =
        after.iter().zip(terms.clone()).map(|(held, (_, least))| *held.max(&least)).sum();
    for (number, (held, (most, least))) in before.iter().zip(after).zip(terms).enumerate() {
        let (before, after) = held;
        if after > before && *after > most {
            return Err(format!("queue {number} holds {after}, its maximum is {most}"));
        }
        if grown(held, least) && total.is_some_and(|total| all > total) {
            return Err(format!("queue {number} took what is kept for others: {all} of {total:?}"));
        }
    }
    Ok(())
}
