//! What becomes of executors: status updates, losses, kills, and time.

use std::sync::Arc;

use super::limit::LimitRule;
use super::release_batch::ReleaseBatch;
use crate::ids::{ExecutorId, Parsed};
use crate::kernel::Core;
use crate::kernel::state::executors::{Allocation, Executor, Stage, State};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::status::{Fate, Meaning, StatusUpdate};
use crate::sync::Ordering;
use crate::time::Timestamp;

/// So many updates of a batch are applied before the books are changed.
const UPDATES_AHEAD: usize = if cfg!(all(loom, test)) { 2 } else { 64 };

/// An executor's id and cell. The cell may hold another one by now: its state says so.
type Found<'k> = (ExecutorId, &'k Executor);

/// What a status update did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The executor, if the kernel knows it.
    pub executor: Option<ExecutorId>,
    /// What changed.
    pub change: Change,
    /// What was freed by it.
    pub freed: Option<Freed>,
    /// The executor must be killed: nobody knows it, or it came back and there is no room for it any more.
    pub kill: bool,
    /// The update was a failure too many: the agent is excluded.
    pub excluded: Option<Exclusion>,
}

/// What a status update changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Nothing: the update told nothing new, or came too late.
    Nothing,
    /// Nothing: no such executor was ever placed by this kernel.
    UnknownExecutor,
    /// The executor was seen running for the first time.
    Running,
    /// The executor is out of sight.
    Unreachable,
    /// The executor was out of sight and is back.
    Returned,
    /// The executor came back after its resources were given to others, and there is no room for it.
    Refused,
    /// The executor has ended.
    Ended(Fate),
}

/// Resources that no executor holds any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Cores.
    pub cores: MilliCpus,
    /// Memory, overhead included.
    pub memory: Mebibytes,
    /// GPUs.
    pub gpus: Gpus,
    /// The fixed port.
    pub port: Option<u16>,
}

impl From<Allocation> for Freed {
    fn from(allocation: Allocation) -> Freed {
        let Allocation { cores, memory, gpus, port, .. } = allocation;
        Freed { cores, memory, gpus, port }
    }
}

/// An agent that gets no more executors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// The agent's id.
    pub agent_id: Arc<str>,
    /// Until then; [`Timestamp::MAX`] is for ever.
    pub until: Timestamp,
}

/// An executor and its agent: what a kill or a reconciliation names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The executor.
    pub id: ExecutorId,
    /// The id of the agent that it was placed on.
    pub agent_id: Arc<str>,
}

impl Outcome {
    fn of(executor: Option<ExecutorId>, change: Change) -> Outcome {
        Outcome { executor, change, freed: None, kill: false, excluded: None }
    }
}

impl Core {
    /// Finds an executor by the text of its id. The cell may hold another one by now: its state says so.
    pub(crate) fn find_executor(&self, text: &str) -> Option<ExecutorId> {
        match self.ids.parse(text) {
            Some(Parsed::Id(id)) => Some(id),
            Some(Parsed::Sequence(sequence)) => {
                let slot = self.by_sequence.as_ref()?.get(&sequence)?;
                Some(ExecutorId { sequence, slot })
            }
            None => self.adopted.find(text),
        }
    }

    pub(crate) fn status_update(
        &self,
        update: &StatusUpdate<'_>,
        limit: LimitRule,
        now: Timestamp,
    ) -> Outcome {
        let mut batch = ReleaseBatch::<1>::new();
        let found = self.find_cell(update.executor);
        let outcome = self.apply(update, found, limit, now, &mut batch, |outcome| outcome);
        self.flush_releases(&mut batch);
        outcome
    }

    pub(crate) fn status_updates(
        &self,
        updates: &[StatusUpdate<'_>],
        limit: LimitRule,
        now: Timestamp,
        outcomes: &mut Vec<Outcome>,
    ) {
        outcomes.reserve(updates.len());
        let mut batch = ReleaseBatch::<UPDATES_AHEAD>::new();
        for ahead in updates.chunks(UPDATES_AHEAD) {
            let located = self.locate(ahead);
            for (update, located) in ahead.iter().zip(&located) {
                let found = located.or_else(|| self.find_cell(update.executor));
                self.apply(update, found, limit, now, &mut batch, |outcome| outcomes.push(outcome));
            }
            self.flush_releases(&mut batch);
        }
    }

    /// Finds the executors of these updates, those whose ids say where they are, and brings in the lines that the
    /// updates will change: in short passes, so that the processor waits for many at a time.
    fn locate(&self, updates: &[StatusUpdate<'_>]) -> [Option<Found<'_>>; UPDATES_AHEAD] {
        let mut located = [None; UPDATES_AHEAD];
        for (located, update) in located.iter_mut().zip(updates) {
            if let Some(Parsed::Id(id)) = self.ids.parse(update.executor) {
                *located = self.executors.get(id.slot).map(|cell| (id, cell));
            }
        }
        // The cell may be another's, and the agent too: nothing is decided by them here.
        let agents = located.map(|found| found.map(|(_, executor)| executor.agent()));
        for (agent, update) in agents.into_iter().zip(updates) {
            // No other update changes an agent's word.
            if let (Some(agent), Meaning::Ended(_)) = (agent, update.state.meaning(update.reason)) {
                self.agents.prefetch(agent);
            }
        }
        located
    }

    fn find_cell(&self, text: &str) -> Option<Found<'_>> {
        let id = self.find_executor(text)?;
        Some((id, self.executors.get(id.slot)?))
    }

    /// Applies one update about the executor that was `found`; what it leaves if it has ended is written down in
    /// `batch`. The outcome goes to `emit`, which puts it where it is to lie: moving it afterwards takes long.
    #[inline]
    fn apply<const N: usize, R>(
        &self,
        update: &StatusUpdate<'_>,
        found: Option<Found<'_>>,
        limit: LimitRule,
        now: Timestamp,
        batch: &mut ReleaseBatch<N>,
        emit: impl FnOnce(Outcome) -> R,
    ) -> R {
        let Some((id, executor)) = found else { return emit(self.unknown(update, None)) };
        let meaning = update.state.meaning(update.reason);
        let changed = match meaning {
            Meaning::Unreachable => self.mark_unreachable(id, executor, now),
            _ => executor.change(id.sequence, |state| next_state(state, meaning)),
        };
        let (before, after) = match changed {
            Ok(change) => change,
            Err(state) => {
                if state.stage == Stage::GivenUp {
                    // It may want the room of those that ended just before.
                    self.flush_releases(batch);
                }
                return emit(self.unchanged_outcome(update, id, executor, state, meaning));
            }
        };
        let change = match meaning {
            Meaning::Ended(fate) => {
                let blamed = update.state.blames_agent(update.reason) && !before.asked_to_end;
                let excluded = if blamed { self.count_agent_failure(executor, now) } else { None };
                let allocation = executor.allocation();
                // The agent counts this executor still: any other may be one that is being placed.
                let invalidates =
                    excluded.is_some() && self.agents.executors_at(allocation.agent) > 1;
                self.record_release(id, &allocation, before, batch);
                if invalidates {
                    batch.invalidate_plans();
                }
                if limit == LimitRule::CountDown && fate == Fate::Finished {
                    batch.count_down();
                }
                let counted = before.stage.counted();
                let freed = Some(if counted { allocation.into() } else { Freed::default() });
                let (executor, change) = (Some(id), Change::Ended(fate));
                return emit(Outcome { executor, change, freed, kill: false, excluded });
            }
            Meaning::Unreachable => Change::Unreachable,
            Meaning::Running | Meaning::Launching if before.stage == Stage::Unreachable => {
                self.unreachable.fetch_sub(1, Ordering::Relaxed);
                Change::Returned
            }
            Meaning::Running if before.stage != after.stage => Change::Running,
            Meaning::Running | Meaning::Launching => Change::Nothing,
        };
        emit(Outcome::of(Some(id), change))
    }

    /// Moves an executor out of sight, if it is in sight.
    #[inline(never)]
    fn mark_unreachable(
        &self,
        id: ExecutorId,
        executor: &Executor,
        now: Timestamp,
    ) -> Result<(State, State), State> {
        let seen = executor.state();
        if seen.sequence != id.sequence || !seen.stage.is_reachable() {
            return Err(seen);
        }
        // Before the change: if others see it, and uncount it, the count is never too low for those that remain.
        self.unreachable.fetch_add(1, Ordering::Relaxed);
        let changed = executor.mark_unreachable(id.sequence, now);
        if changed.is_err() {
            self.unreachable.fetch_sub(1, Ordering::Relaxed);
        }
        changed
    }

    /// What an update comes to that left the executor's cell as it was, in `state`.
    #[inline(never)]
    fn unchanged_outcome(
        &self,
        update: &StatusUpdate<'_>,
        id: ExecutorId,
        executor: &Executor,
        state: State,
        meaning: Meaning,
    ) -> Outcome {
        if state.sequence != id.sequence || state.stage == Stage::Vacant {
            return self.unknown(update, Some(id));
        }
        if state.stage == Stage::GivenUp {
            return self.readmit(id, executor, state, meaning);
        }
        Outcome::of(Some(id), Change::Nothing)
    }

    /// An update for an executor that isn't there: one that has ended, or one that nobody here has placed. Alive, it
    /// is a stray.
    fn unknown(&self, update: &StatusUpdate<'_>, found: Option<ExecutorId>) -> Outcome {
        // Relaxed: the number is compared, nothing is read by it.
        let placed = self.sequence.load(Ordering::Relaxed);
        // Plain ids of executors that have ended find nothing.
        let known = match found.map(Parsed::Id).or_else(|| self.ids.parse(update.executor)) {
            Some(Parsed::Id(id)) => id.sequence < placed,
            Some(Parsed::Sequence(sequence)) => sequence < placed,
            None => self.adopted.find(update.executor).is_some(),
        };
        let change = if known { Change::Nothing } else { Change::UnknownExecutor };
        if !known {
            self.unknown_updates.fetch_add(1, Ordering::Relaxed);
        }
        Outcome { kill: update.state.alive(), ..Outcome::of(found.filter(|_| known), change) }
    }

    /// Counts a failure against the executor's agent. The caller has not freed its hold yet.
    fn count_agent_failure(&self, executor: &Executor, now: Timestamp) -> Option<Exclusion> {
        let policy = self.policy.load();
        let index = executor.allocation().agent;
        self.agents.mark_failed(index, now);
        let until = self.agents.count_failure(index, policy.config.exclusion.as_ref()?, now)?;
        Some(Exclusion { agent_id: (*self.agents.name(index)?.id).into(), until })
    }

    /// Frees what an executor holds. Only who moved it from `before` to `Vacant` may call this.
    pub(crate) fn vacate(&self, id: ExecutorId, executor: &Executor, before: State) {
        let mut batch = ReleaseBatch::<1>::new();
        self.record_release(id, &executor.allocation(), before, &mut batch);
        self.flush_releases(&mut batch);
    }

    /// An executor that was given up, as `seen`, is heard of again: it gets its resources back if the caps allow.
    ///
    /// Two reports of that may come at once, and the one find no room because of the other. So a refusal counts only
    /// if it leaves its mark before the executor is back, and a return only if no refusal came before.
    fn readmit(
        &self,
        id: ExecutorId,
        executor: &Executor,
        seen: State,
        meaning: Meaning,
    ) -> Outcome {
        if !matches!(meaning, Meaning::Running | Meaning::Launching) {
            return Outcome::of(Some(id), Change::Nothing);
        }
        let allocation = executor.allocation();
        let adrift = |state: State| state.stage == Stage::GivenUp;
        if !self.readmit_allocation(&allocation) {
            let marked = executor.change(id.sequence, |state| {
                adrift(state).then_some(State { refusals: state.refusals.wrapping_add(1), ..state })
            });
            let (change, kill) =
                if marked.is_ok() { (Change::Refused, true) } else { (Change::Nothing, false) };
            return Outcome { kill, ..Outcome::of(Some(id), change) };
        }
        let back = |state: State| {
            let back = State { stage: Stage::Running, doubtful: false, ..state };
            (adrift(state) && state.refusals == seen.refusals).then_some(back)
        };
        if executor.change(id.sequence, back).is_ok() {
            self.unreachable.fetch_sub(1, Ordering::Relaxed);
            return Outcome::of(Some(id), Change::Returned);
        }
        // Another update was faster; what was counted for this one is one too many.
        self.release_allocation(&allocation);
        Outcome::of(Some(id), Change::Nothing)
    }

    /// Puts a hold into the books again, if the caps allow.
    pub(crate) fn readmit_allocation(&self, allocation: &Allocation) -> bool {
        let gpus = u64::from(allocation.gpus.get());
        // No version is pinned here.
        let _policy = self.policy.freeze();
        loop {
            // The word before the policy, as for a batch.
            let admission = self.admission.load();
            let policy = self.policy.load();
            let fits = !admission.closed() && policy.has_room_for(admission, allocation.cores);
            let cap = u64::from(policy.config.gpu_cap.get());
            if !fits || gpus > 0 && self.gpus.reserve(gpus, gpus, cap) < gpus {
                return false;
            }
            if self.admission.commit(admission, 1, allocation.cores).is_ok() {
                return true;
            }
            self.gpus.release(gpus);
        }
    }
}

/// The state after an update that means `meaning`; none if it changes nothing. That an executor goes out of sight is
/// [elsewhere](Executor::lose_sight): one that is out of sight already doesn't go anew, and its clock runs on.
fn next_state(state: State, meaning: Meaning) -> Option<State> {
    let live = matches!(state.stage, Stage::Launching | Stage::Running | Stage::Unreachable);
    let next = match meaning {
        Meaning::Ended(fate) if live || state.stage == Stage::GivenUp => {
            return Some(State { stage: Stage::Vacant, fate, doubtful: false, ..state });
        }
        Meaning::Running if live => State { stage: Stage::Running, doubtful: false, ..state },
        Meaning::Launching if state.stage == Stage::Unreachable => {
            State { stage: Stage::Running, doubtful: false, ..state }
        }
        Meaning::Launching if live => State { doubtful: false, ..state },
        _ => return None,
    };
    (next != state).then_some(next)
}
