//! Status updates: how they change executors, and what they free.

use super::outcome::{Change, Exclusion, LimitRule, Outcome, OutcomeSink, ReturnedOutcome};
use super::release::{AtOnce, Ended, Release, ReleaseBatch};
use crate::config::QueueId;
use crate::ids::{ExecutorId, Parsed};
use crate::kernel::Core;
use crate::kernel::state::claim_returns::NoRoom;
use crate::kernel::state::executor_state::{CellStage, CellState};
use crate::kernel::state::executors::{Allocation, ExecutorCell};
use crate::kernel::state::numbers::Page;
use crate::kernel::state::queues::OpenClaims;
use crate::status::{Fate, Meaning, StatusUpdate};
use crate::sync::{Ordering, prefetch};
use crate::time::Timestamp;

/// The number of updates of a batch that are applied before the shared sums are changed.
const UPDATES_AHEAD: usize = if cfg!(all(loom, test)) { 2 } else { 64 };

/// An executor's id and cell. The cell may hold another executor by now; its state says so.
pub(crate) type Found<'k> = (ExecutorId, &'k ExecutorCell);

impl Core {
    /// Finds an executor's id by its text. Its cell may hold another executor by now; its state says so.
    #[inline]
    pub(crate) fn find_executor(&self, text: &str) -> Option<ExecutorId> {
        match self.ids.parse(text) {
            Some(Parsed::Id(id)) => self.unless_adopted(id),
            Some(Parsed::Sequence(sequence)) => {
                self.find_with_page(sequence).map(|((id, _), _)| id)
            }
            None => self.adopted.find(text),
        }
    }

    /// Finds an executor by its number, and the page that the number is in. Not inlined: ids that contain their slot
    /// don't pay for it.
    #[inline(never)]
    fn find_with_page(&self, sequence: u64) -> Option<(Found<'_>, &Page)> {
        let (slot, page) = self.numbers.as_ref()?.find_with_page(sequence)?;
        let found = self.cell(ExecutorId { sequence, slot })?;
        self.holds_number(&found).then_some((found, page))
    }

    /// The cell to which a number leads. It may hold another executor, or none.
    #[inline(never)]
    fn locate_by_number(&self, sequence: u64) -> Option<Found<'_>> {
        let slot = self.numbers.as_ref()?.find(sequence)?;
        self.cell(ExecutorId { sequence, slot })
    }

    /// Whether a cell that was found by a number holds the executor with this number, and the executor is live.
    #[inline(never)]
    fn holds_number(&self, (id, executor): &Found<'_>) -> bool {
        let state = executor.state();
        // An adopted executor has another name.
        state.sequence == id.sequence && state.stage.live() && !self.adopted.has_number(id.sequence)
    }

    /// The id, unless an adopted executor has its sequence number: such an executor has another text.
    #[inline]
    fn unless_adopted(&self, id: ExecutorId) -> Option<ExecutorId> {
        (!self.adopted.has_number(id.sequence)).then_some(id)
    }

    /// Like [`Core::find_executor`], but returns only ids that this kernel may have made.
    pub(crate) fn executor_id(&self, text: &str) -> Option<ExecutorId> {
        let state = |id: ExecutorId| self.executors.get(id.slot).map(ExecutorCell::state);
        self.find_executor(text)
            .filter(|id| state(*id).is_some_and(|state| self.may_have_made(*id, state)))
    }

    /// Whether the id may be that of an executor whose cell is in `state` now. Of an executor that has ended, no more
    /// is known.
    #[inline]
    fn may_have_made(&self, id: ExecutorId, state: CellState) -> bool {
        // Relaxed: the number is only compared.
        id.sequence < self.sequence.load(Ordering::Relaxed) && state.may_follow(id.sequence)
    }

    pub(crate) fn status_update(
        &self,
        update: &StatusUpdate<'_>,
        limit: LimitRule,
        now: Timestamp,
    ) -> Outcome {
        let (found, page) = self.find_with_number(update.executor);
        self.apply(update, found, limit, now, &mut AtOnce { page }, ReturnedOutcome)
    }

    /// Finds an executor's cell, and the page of its number if it is found by that.
    #[inline(always)]
    pub(crate) fn find_with_number(&self, text: &str) -> (Option<Found<'_>>, Option<&Page>) {
        match self.ids.parse(text) {
            Some(Parsed::Id(id)) => (self.unless_adopted(id).and_then(|id| self.cell(id)), None),
            Some(Parsed::Sequence(sequence)) => self.find_with_page(sequence).unzip(),
            None => (self.find_adopted(text), None),
        }
    }

    #[inline(never)]
    fn find_adopted(&self, text: &str) -> Option<Found<'_>> {
        self.cell(self.adopted.find(text)?)
    }

    pub(crate) fn status_updates(
        &self,
        updates: &[StatusUpdate<'_>],
        limit: LimitRule,
        now: Timestamp,
        outcomes: &mut Vec<Outcome>,
    ) {
        outcomes.reserve(updates.len());
        let by_number = self.numbers.is_some();
        let mut batch = ReleaseBatch::<UPDATES_AHEAD>::new();
        for ahead in updates.chunks(UPDATES_AHEAD) {
            let located = self.locate(ahead);
            for (update, located) in ahead.iter().zip(&located) {
                let found = match located {
                    Some(found) if !by_number || self.holds_number(found) => Some(*found),
                    _ => self.find_cell(update.executor),
                };
                self.apply(update, found, limit, now, &mut batch, &mut *outcomes);
            }
            batch.flush(self);
        }
    }

    /// Finds the cells of updates, but for adopted executors, and prefetches the lines that the updates will change:
    /// those of all executors first, because the agents are read from there. With plain ids, a cell may hold another
    /// executor.
    fn locate(&self, updates: &[StatusUpdate<'_>]) -> [Option<Found<'_>>; UPDATES_AHEAD] {
        let mut located = [None; UPDATES_AHEAD];
        for (located, update) in located.iter_mut().zip(updates) {
            *located = self.locate_one(update.executor);
        }
        for (found, update) in located.iter().zip(updates) {
            // Only updates that end an executor change its agent's word.
            if let (Some((_, executor)), Meaning::Ended(_)) =
                (found, update.state.meaning(update.reason))
            {
                self.agents.prefetch(executor.agent());
            }
        }
        located
    }

    /// Finds the cell of an executor, unless it is adopted, and prefetches it.
    #[inline]
    pub(in crate::kernel::lifecycle) fn locate_one(&self, text: &str) -> Option<Found<'_>> {
        let located = match self.ids.parse(text)? {
            Parsed::Id(id) => self.unless_adopted(id).and_then(|id| self.cell(id)),
            Parsed::Sequence(sequence) => self.locate_by_number(sequence),
        };
        if let Some((id, executor)) = located {
            prefetch(executor);
            if let Some(marks) = self.tags.get() {
                marks.prefetch(id.slot);
            }
        }
        located
    }

    fn find_cell(&self, text: &str) -> Option<Found<'_>> {
        self.cell(self.find_executor(text)?)
    }

    #[inline]
    fn cell(&self, id: ExecutorId) -> Option<Found<'_>> {
        Some((id, self.executors.get(id.slot)?))
    }

    /// Applies one update to the executor that was `found`. If it has ended, what it held goes to `releases`. The
    /// outcome goes to `sink`, which writes it to its final place: moving it afterwards is expensive.
    #[inline]
    pub(in crate::kernel::lifecycle) fn apply<R: Release, S: OutcomeSink>(
        &self,
        update: &StatusUpdate<'_>,
        found: Option<Found<'_>>,
        limit: LimitRule,
        now: Timestamp,
        releases: &mut R,
        sink: S,
    ) -> S::Written {
        let Some((id, executor)) = found else {
            return sink.other(self.unknown_outcome(update, None));
        };
        let meaning = update.state.meaning(update.reason);
        let Meaning::Ended(fate) = meaning else {
            return sink.other(self.apply_alive(update, (id, executor), meaning, now, releases));
        };
        if R::PREFETCHES_AGENT {
            // The cell may be another's by now; nothing is decided by it here.
            self.agents.prefetch(executor.agent());
        }
        let before = match executor.end(id.sequence, fate) {
            Ok(before) => before,
            Err(state) => {
                let found = (id, executor);
                return sink.other(self.unchanged_outcome(update, found, None, state, meaning));
            }
        };
        let lowers_limit = limit == LimitRule::CountDown && fate == Fate::Finished;
        let allocation = executor.ended_allocation(id.sequence);
        let ended = || Ended { lowers_limit, ..Ended::alone(id, executor, before, allocation) };
        // Not put together before it is known which way it goes: it would lie in memory on both.
        let is_failure = update.state.blames_agent(update.reason, true);
        if is_failure || !before.counted() || self.tags.get().is_some() {
            return sink.other(self.release_other(update, fate, ended(), now, releases));
        }
        releases.release(self, ended());
        // Not taken from what lies in memory for the release: it was written there in pieces.
        sink.ended(id, fate, allocation.resources)
    }

    /// Releases what an executor held that may be a task, whose failure may count against its agent, or whose resources
    /// aren't counted.
    #[inline(never)]
    fn release_other<R: Release>(
        &self,
        update: &StatusUpdate<'_>,
        fate: Fate,
        ended: Ended<'_>,
        now: Timestamp,
        releases: &mut R,
    ) -> Outcome {
        let Ended { id, allocation, before, .. } = ended;
        let agent = allocation.agent;
        // Its cell isn't freed yet, so that no other task is in it.
        let mark = self.read_mark(id);
        let (tag, queue) = mark.map_or((None, None), |mark| (mark.tag, mark.queue));
        let blamed = update.state.blames_agent(update.reason, true) && !before.asked_to_end();
        let excluded = if blamed { self.count_agent_failure(update, agent, now) } else { None };
        // The agent still counts this executor; any other may be one that is being placed.
        let invalidates_plans = excluded.is_some() && self.agents.executors_at(agent) > 1;
        releases.release(self, Ended { queue, invalidates_plans, ..ended });
        let freed = before.counted().then_some(allocation.resources);
        Outcome { tag, freed, excluded, ..Outcome::of(Some(id), Change::Ended(fate)) }
    }

    /// Applies an update that doesn't end the executor.
    #[inline]
    fn apply_alive<R: Release>(
        &self,
        update: &StatusUpdate<'_>,
        (id, executor): Found<'_>,
        meaning: Meaning,
        now: Timestamp,
        releases: &mut R,
    ) -> Outcome {
        // Before the change: after it, another thread may end the task.
        let tag = self.live_tag(id, executor);
        let changed = match meaning {
            Meaning::Unreachable => self.mark_unreachable(id, executor, now),
            _ => executor.change(id.sequence, |state| next_state(state, meaning)),
        };
        let (before, after) = match changed {
            Ok(change) => change,
            Err(state) => {
                if state.stage == CellStage::GivenUp {
                    // It may need the room of executors that have just ended.
                    releases.flush(self);
                }
                return self.unchanged_outcome(update, (id, executor), tag, state, meaning);
            }
        };
        let change = match meaning {
            Meaning::Unreachable => Change::Unreachable,
            _ if before.stage == CellStage::Unreachable => {
                self.unreachable.fetch_sub(1, Ordering::Relaxed);
                Change::Returned
            }
            Meaning::Running if before.stage != after.stage => Change::Running,
            _ => Change::Nothing,
        };
        Outcome { tag, ..Outcome::of(Some(id), change) }
    }

    /// Marks an executor as unreachable, if it is reachable.
    #[inline(never)]
    fn mark_unreachable(
        &self,
        id: ExecutorId,
        executor: &ExecutorCell,
        now: Timestamp,
    ) -> Result<(CellState, CellState), CellState> {
        let seen = executor.state();
        if seen.sequence != id.sequence || !seen.stage.is_reachable() {
            return Err(seen);
        }
        // Counted before the change: if another thread sees the change and uncounts the executor, the count is never
        // too low.
        self.unreachable.fetch_add(1, Ordering::Relaxed);
        let changed = executor.mark_unreachable(id.sequence, now);
        if changed.is_err() {
            self.unreachable.fetch_sub(1, Ordering::Relaxed);
        }
        changed
    }

    /// The outcome of an update that left the executor's cell in `state`.
    #[inline(never)]
    fn unchanged_outcome(
        &self,
        update: &StatusUpdate<'_>,
        (id, executor): Found<'_>,
        tag: Option<u64>,
        state: CellState,
        meaning: Meaning,
    ) -> Outcome {
        if state.sequence != id.sequence || state.stage == CellStage::Vacant {
            return self.unknown_outcome(update, Some((id, state)));
        }
        if state.stage == CellStage::GivenUp {
            return Outcome { tag, ..self.readmit(id, executor, state, meaning) };
        }
        Outcome { tag, ..Outcome::of(Some(id), Change::Nothing) }
    }

    /// The outcome of an update for an executor that has ended or that this kernel never placed. If the executor is
    /// alive, it must be killed.
    fn unknown_outcome(
        &self,
        update: &StatusUpdate<'_>,
        found: Option<(ExecutorId, CellState)>,
    ) -> Outcome {
        let known = match found {
            Some((id, state)) => self.may_have_made(id, state),
            // Plain ids of ended executors lead nowhere. Relaxed: the number is only compared.
            None => match self.ids.parse(update.executor) {
                Some(Parsed::Sequence(sequence)) => {
                    sequence < self.sequence.load(Ordering::Relaxed)
                        && !self.adopted.has_number(sequence)
                }
                _ => false,
            },
        };
        let change = if known { Change::Nothing } else { Change::UnknownExecutor };
        if !known {
            self.unknown_updates.fetch_add(1, Ordering::Relaxed);
        }
        let executor = found.map(|(id, _)| id).filter(|_| known);
        Outcome { kill: update.state.alive(), ..Outcome::of(executor, change) }
    }

    /// Counts a failure against the executor's agent, the one in the cell `agent`. The agent still counts the executor.
    /// A failure of an executor that was never bound counts against none.
    fn count_agent_failure(
        &self,
        update: &StatusUpdate<'_>,
        agent: u32,
        now: Timestamp,
    ) -> Option<Exclusion> {
        let policy = self.policy.load();
        let rejections_count = policy.config.compatibility.rejections_count;
        if !update.state.blames_agent(update.reason, rejections_count) {
            return None;
        }
        let until = self.agents.record_failure(agent, policy.config.exclusion.as_ref(), now)?;
        Some(Exclusion { agent_id: self.agents.id(agent)?, until })
    }

    /// Releases what an executor holds. Only the thread that moved it from `before` to `Vacant` may call this.
    pub(crate) fn vacate(&self, id: ExecutorId, executor: &ExecutorCell, before: CellState) {
        let allocation = executor.ended_allocation(id.sequence);
        let ended = Ended::alone(id, executor, before.into(), allocation);
        AtOnce { page: None }.release(self, Ended { queue: self.read_queue(id), ..ended });
    }

    /// Handles an update for an executor that was given up, in state `seen`: it gets its resources back if the caps
    /// allow.
    ///
    /// Two such updates may be applied at once, and one may find no room because of the other. Therefore a refusal
    /// counts only if it is recorded before the executor is back, and a return only if no refusal was recorded since
    /// `seen`.
    ///
    /// If another thread has booked the room in its queue, and may give it back, the executor stays given up:
    /// [reconciliation](crate::Scope::InDoubt) asks about it again.
    fn readmit(
        &self,
        id: ExecutorId,
        executor: &ExecutorCell,
        seen: CellState,
        meaning: Meaning,
    ) -> Outcome {
        if !matches!(meaning, Meaning::Running | Meaning::Launching) {
            return Outcome::of(Some(id), Change::Nothing);
        }
        let allocation = executor.allocation();
        let is_given_up = |state: CellState| state.stage == CellStage::GivenUp;
        // If it has ended since, what follows changes nothing in the end, whichever queue this is.
        let queue = self.read_queue(id);
        let claims = queue.and_then(|_| self.open_claims());
        let admitted = self.readmit_allocation(&allocation, queue, claims.as_ref());
        if admitted == Err(NoRoom::Claimed) {
            return Outcome::of(Some(id), Change::Nothing);
        }
        if admitted.is_err() {
            let marked = executor.change(id.sequence, |state| {
                is_given_up(state)
                    .then_some(CellState { refusals: state.refusals.wrapping_add(1), ..state })
            });
            let (change, kill) =
                if marked.is_ok() { (Change::Refused, true) } else { (Change::Nothing, false) };
            return Outcome { kill, ..Outcome::of(Some(id), change) };
        }
        let back = |state: CellState| {
            let back = CellState { stage: CellStage::Running, doubtful: false, ..state };
            (is_given_up(state) && state.refusals == seen.refusals).then_some(back)
        };
        if executor.change(id.sequence, back).is_ok() {
            self.unreachable.fetch_sub(1, Ordering::Relaxed);
            return Outcome::of(Some(id), Change::Readmitted);
        }
        // Another update came first: undo what was counted for this one.
        self.give_back_claim(queue, allocation.booked());
        self.release_allocation(&allocation);
        Outcome::of(Some(id), Change::Nothing)
    }

    /// Counts an allocation again, and books it in this queue, as one of these claims, if the caps and the queue allow.
    pub(crate) fn readmit_allocation(
        &self,
        allocation: &Allocation,
        queue: Option<QueueId>,
        claims: Option<&OpenClaims<'_>>,
    ) -> Result<(), NoRoom> {
        let cores = allocation.resources.cores;
        let gpus = u64::from(allocation.resources.gpus.get());
        // This thread has no pinned version.
        let _policy = self.policy.freeze();
        loop {
            // The word is loaded before the policy, as for a batch.
            let admission = self.admission.load();
            let policy = self.policy.load();
            let fits = !admission.closed() && policy.has_room_for(admission, cores);
            let cap = u64::from(policy.config.gpu_cap.get());
            if !fits || gpus > 0 && self.gpus.reserve(gpus, gpus, cap) < gpus {
                return Err(NoRoom::Taken);
            }
            let claim = |queue| self.claim_queue(&policy.config, queue, allocation.booked());
            if let (Some(queue), Some(claims)) = (queue, claims)
                && let Err(no_room) = claims.claim(|| claim(queue))
            {
                self.gpus.release(gpus);
                self.record_claim_return();
                return Err(no_room);
            }
            if self.admission.commit(admission, 1, cores).is_ok() {
                return Ok(());
            }
            self.give_back_claim(queue, allocation.booked());
            self.gpus.release(gpus);
        }
    }
}

/// The state after an update with this meaning, or none if it changes nothing. [`ExecutorCell::end`] handles those that
/// end, and [`ExecutorCell::mark_unreachable`] those that become unreachable: one that is already unreachable keeps its
/// clock.
fn next_state(state: CellState, meaning: Meaning) -> Option<CellState> {
    let live =
        matches!(state.stage, CellStage::Launching | CellStage::Running | CellStage::Unreachable);
    let next = match meaning {
        Meaning::Running if live => {
            CellState { stage: CellStage::Running, doubtful: false, ..state }
        }
        Meaning::Launching if state.stage == CellStage::Unreachable => {
            CellState { stage: CellStage::Running, doubtful: false, ..state }
        }
        Meaning::Launching if live => CellState { doubtful: false, ..state },
        _ => return None,
    };
    (next != state).then_some(next)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::ExclusionRule;
    use crate::{Config, Decisions, IdScheme, Kernel, Offer, Resource, TaskState};

    /// Goal: a failure that excludes an agent invalidates the plans that may have been made for it, and nothing else
    /// does. Method: failures that exclude and that don't, on an agent with another executor and without one, one by
    /// one and in a batch.
    #[test]
    fn exclusions_invalidate_plans() {
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 2000.0)];
        let offers = [Offer::new("o", "S1", "host", &resources, &[])];
        let now = Timestamp::ORIGIN;
        for case in 0..8 {
            let [excludes, has_other, in_batch] = [1, 2, 4].map(|bit| case & bit != 0);
            let failures = if excludes { 1 } else { 2 };
            let rule = ExclusionRule { failures, ..ExclusionRule::default() };
            let config = Config::builder().exclusion(Some(rule)).build().unwrap();
            let kernel = Kernel::new(config, IdScheme::plain());
            let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
            for _ in 0..=u32::from(has_other) {
                handler.resource_offers(&offers, now, &mut decisions);
                assert_eq!(decisions.executors(), 1);
            }
            let before = kernel.0.admission.load();
            let failed = [StatusUpdate::new("0", TaskState::Failed)];
            if in_batch {
                kernel.status_updates(&failed, now, &mut Vec::new());
            } else {
                kernel.status_update(&failed[0], now);
            }
            let is_valid = kernel.0.admission.load().same_version(before);
            assert_eq!(is_valid, !(excludes && has_other), "{case}");
        }
    }

    /// Goal: an executor comes back only if no refusal was recorded since it was looked at. Method: one that was given
    /// up, which the limit refuses; it comes back in the state before that and in the state since.
    #[test]
    fn a_return_that_began_before_a_refusal_fails() {
        let config = Config::builder().executor_limit(Some(1)).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        let core = &*kernel.0;
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 2000.0)];
        let offers = [Offer::new("o", "S1", "host", &resources, &[])];
        let mut decisions = Decisions::new();
        kernel.handler().resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
        let id = core.executors.iter().map(|(slot, it)| (slot, it.state().sequence)).next();
        let id = id.map(|(slot, sequence)| ExecutorId { sequence, slot }).unwrap();
        let lost = StatusUpdate::new("0", TaskState::Unreachable);
        kernel.status_update(&lost, Timestamp::ORIGIN);
        kernel.tick(Timestamp::from_millis(3_600_000));
        kernel.tick(Timestamp::from_millis(3_600_001));
        let executor = core.executors.get(id.slot).unwrap();
        let before = executor.state();
        assert_eq!((before.stage, kernel.totals().executors), (CellStage::GivenUp, 0));
        kernel.set_executor_limit(Some(0)).unwrap();
        let outcome = core.readmit(id, executor, before, Meaning::Running);
        assert!(outcome.kill);
        let since = executor.state();
        assert_eq!(since, CellState { refusals: before.refusals + 1, ..before });
        kernel.set_executor_limit(Some(1)).unwrap();
        core.readmit(id, executor, before, Meaning::Running);
        assert_eq!((executor.state(), kernel.totals().executors), (since, 0));
        core.readmit(id, executor, since, Meaning::Running);
        assert_eq!(executor.state(), CellState { stage: CellStage::Running, ..since });
        assert_eq!(kernel.totals().executors, 1);
        kernel.check().unwrap();
    }
}
