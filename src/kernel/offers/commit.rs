//! Commits a plan: reserves agents, GPUs and executor cells, then admits the batch with one compare-exchange.
//!
//! The order guarantees that no cap is exceeded at any instant and that nothing leaks:
//!
//! 1. The agents' words: each counts its executors, unless the agent was excluded or forgotten since the plan was made.
//!    Offers without an agent are left out; see [`binding`](crate::kernel::lifecycle::binding).
//! 2. The word of GPUs.
//!    Then the words of the [queues](super::queues), if there are queues: if one has less room than when the batch was
//!    planned, give everything back and plan the batch again, a few times at most.
//! 3. Executor cells and sequence numbers; the cells become `Reserved`.
//! 4. The admission word, with one compare-exchange for the batch. If other launches changed the word, truncate the
//!    plan to what still fits (it is never extended) and retry. If the policy changed or plans were invalidated
//!    because an agent was excluded or suspected, give everything back and plan the batch again. If the kernel was
//!    closed, give everything back.
//! 5. The failure marks of the agents are cleared, and the cells become `Launching`. If executors take what there is,
//!    the agents' next offers will be recorded; see [`state::offered`](crate::kernel::state::offered).
//!
//! A kernel that is closed between steps 4 and 5 finds the cells `Reserved` and waits for them (see `drain`).
//!
//! What is placed are executors of the configured shape, or [tasks](crate::kernel::offers::tasks) of unequal sizes;
//! [`Planned`] has what differs.

use super::candidates::CandidateSet;
use crate::config::{Config, ExecutorGpus, QueueId};
use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::reason::Reason;
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::executors::{Allocation, ExecutorCell};
use crate::kernel::state::policy::{Headroom, Policy};
use crate::kernel::state::queues::QueueAmount;
use crate::kernel::state::slab_cursor::SlabCursor;
use crate::kernel::state::tags::ExecutorMark;
use crate::resources::{ExecutorResources, Gpus, MilliCpus};
use crate::sync::Ordering;
use crate::time::Timestamp;

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// The plan, perhaps truncated, is committed. The reason, if any, says why nothing more fits.
    Done(Option<Reason>),
    /// The policy changed or plans were invalidated. Nothing was done.
    Outdated,
}

/// An executor in a plan. The defaults are right for executors of one size.
pub(crate) trait Planned: Copy {
    /// Whether executors may differ in size whatever the settings are.
    const UNEQUAL: bool;

    /// The position of its candidate.
    fn candidate(self) -> usize;

    /// The cores that it takes.
    fn cores(self, candidates: &CandidateSet) -> MilliCpus;

    /// What it takes. Called once for each executor, in the order of the plan.
    fn allocate(self, candidates: &mut CandidateSet, config: &Config) -> ExecutorResources;

    /// The queue that it is booked in, if there are queues.
    fn queue(self, config: &Config) -> QueueId;

    /// What is booked there.
    fn amount(self, candidates: &CandidateSet, config: &Config) -> QueueAmount;

    /// The framework's number for it, if it has one.
    fn tag(self) -> Option<u64>;

    /// The GPUs that were reserved for it alone.
    fn own_gpus(self, config: &Config) -> u64;

    /// Reserves GPUs and cuts the plan off where the cap ends. Returns the reason if GPUs limit the plan.
    fn reserve_gpus(
        core: &Core,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan<Self>,
    ) -> Option<Reason>;

    /// How many executors, from the first on, are placed together or not at all; at least 1 of them.
    #[inline]
    fn group(_order: &[Self]) -> usize {
        1
    }

    /// Where a plan may be cut off: at `keep` or before.
    #[inline]
    fn boundary(_order: &[Self], keep: usize) -> usize {
        keep
    }

    /// Called after executors were removed whose agents refuse: removes those that are of no use without them.
    #[inline]
    fn remove_incomplete(_core: &Core, _candidates: &mut CandidateSet, _plan: &mut Plan<Self>) {}
}

/// An executor of the configured shape: the position of its candidate.
impl Planned for u32 {
    const UNEQUAL: bool = false;

    #[inline]
    fn candidate(self) -> usize {
        self as usize
    }

    #[inline]
    fn cores(self, candidates: &CandidateSet) -> MilliCpus {
        candidates.capacities[self as usize].cores
    }

    #[inline]
    fn allocate(self, candidates: &mut CandidateSet, config: &Config) -> ExecutorResources {
        let candidate = &mut candidates.list[self as usize];
        let first = !std::mem::replace(&mut candidate.begun, true);
        ExecutorResources {
            cores: candidates.capacities[self as usize].cores,
            memory: config.memory_taken(),
            gpus: candidate.gpus_of(config, first),
            port: config.fixed_port,
        }
    }

    #[inline]
    fn queue(self, config: &Config) -> QueueId {
        config.queues.executors
    }

    #[inline]
    fn amount(self, candidates: &CandidateSet, config: &Config) -> QueueAmount {
        QueueAmount::new(self.cores(candidates), config.memory_taken())
    }

    #[inline]
    fn tag(self) -> Option<u64> {
        None
    }

    #[inline]
    fn own_gpus(self, config: &Config) -> u64 {
        match config.executor_gpus {
            ExecutorGpus::Exactly(each) => u64::from(each.get()),
            ExecutorGpus::WhatThereIs => 0,
        }
    }

    #[inline]
    fn reserve_gpus(
        core: &Core,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan<u32>,
    ) -> Option<Reason> {
        core.reserve_equal_gpus(policy, candidates, plan)
    }
}

/// A plan: candidates in the order of placement, one entry per executor, and what was claimed for them.
#[derive(Debug)]
pub(crate) struct Plan<P = u32> {
    pub(crate) order: Vec<P>,
    pub(crate) cells: Vec<u32>,
    /// The stack of free cells that the handler prefers.
    stack: u32,
    first_sequence: u64,
    /// Scratch memory for [`NumberTable::insert`](crate::kernel::state::numbers::NumberTable::insert).
    spare_pages: Vec<u32>,
    /// Whether an executor failed recently on one of the plan's agents.
    any_failed: bool,
    /// What was booked in queues; empty before, and without queues.
    pub(super) claims: Vec<(QueueId, QueueAmount)>,
    /// How often in a row the queues had less room than when the plan was made.
    pub(super) lost_races: u32,
    /// Whether executors were left out because of others' claims in their queues.
    pub(super) contended: bool,
    /// The [number of claims](crate::kernel::state::claim_returns) that were given back before it was made.
    pub(super) claim_returns: u64,
}

impl<P> Plan<P> {
    /// An empty plan for a handler that prefers `stack`.
    pub(crate) fn new(stack: u32) -> Plan<P> {
        Plan {
            order: Vec::new(),
            cells: Vec::new(),
            stack,
            first_sequence: 0,
            spare_pages: Vec::new(),
            any_failed: false,
            claims: Vec::new(),
            lost_races: 0,
            contended: false,
            claim_returns: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.cells.clear();
        self.claims.clear();
        self.any_failed = false;
        self.contended = false;
    }

    /// The id of the executor at `position` of the order.
    pub(crate) fn id(&self, position: usize) -> ExecutorId {
        ExecutorId {
            sequence: self.first_sequence + position as u64,
            slot: self.cells.get(position).copied().unwrap_or_default(),
        }
    }
}

impl Core {
    /// Commits `plan`, or as much of its beginning as the caps allow.
    pub(crate) fn commit<P: Planned>(
        &self,
        policy: &Policy,
        admission: AdmissionState,
        candidates: &mut CandidateSet,
        plan: &mut Plan<P>,
        now: Timestamp,
    ) -> Committed {
        self.reserve_agents(candidates, plan, now);
        let short_of_gpus = P::reserve_gpus(self, policy, candidates, plan);
        let claims = if policy.config.queues.is_empty() { None } else { self.open_claims() };
        if claims.is_some() && !self.claim_queues(policy, candidates, plan) {
            self.truncate_plan(policy, candidates, plan, 0);
            return Committed::Outdated;
        }
        let mut cells = self.executors.cursor();
        if !self.reserve_cells(&mut cells, policy, candidates, plan, now) {
            self.truncate_plan(policy, candidates, plan, 0);
        }
        let reached_cap = match self.admit(policy, admission, candidates, plan) {
            Ok(admission) => {
                let reached = self.cap_reached(policy, admission);
                // Executors may have ended since the plan was made: a cap is reached only if it still is.
                let still = reached.and_then(|_| self.cap_reached(policy, self.admission.load()));
                still.or(short_of_gpus)
            }
            Err(Some(reason)) => Some(reason),
            Err(None) => return Committed::Outdated,
        };
        if plan.any_failed {
            for candidate in candidates.list.iter().filter(|candidate| candidate.placed > 0) {
                self.agents.clear_failure_mark(candidate.agent.index());
            }
        }
        if P::UNEQUAL || policy.sizes_differ() {
            self.record_next_offers(policy, candidates, P::UNEQUAL);
        }
        for (cell, sequence) in plan.cells.iter().zip(plan.first_sequence..) {
            if let Some(executor) = cells.get(*cell) {
                executor.publish(sequence);
            }
        }
        Committed::Done(reached_cap)
    }

    /// Has the next offers recorded of agents on which executors were placed that took what there was.
    #[cold]
    fn record_next_offers(&self, policy: &Policy, candidates: &CandidateSet, unequal: bool) {
        let unequal = unequal || policy.fixed_cores().is_none();
        for candidate in &candidates.list {
            if candidate.placed > 0 && (unequal || candidate.gpus_granted > 0) {
                self.agents.set_unrecorded(candidate.agent.index());
            }
        }
    }

    /// The cap that ends the batch, if one is reached.
    fn cap_reached(&self, policy: &Policy, admission: AdmissionState) -> Option<Reason> {
        let reached = self.caps_reached(policy, admission)?;
        let by_cores = policy.core_headroom(admission).err().filter(|cap| policy.outranks(cap));
        by_cores.or(Some(reached))
    }

    /// Step 1. Candidates whose agent refuses are removed from the plan and record the reason.
    fn reserve_agents<P: Planned>(
        &self,
        candidates: &mut CandidateSet,
        plan: &mut Plan<P>,
        now: Timestamp,
    ) {
        for planned in &plan.order {
            candidates.list[planned.candidate()].placed += 1;
        }
        let mut refused = false;
        for candidate in candidates.list.iter_mut().filter(|candidate| candidate.placed > 0) {
            match self.agents.reserve(candidate.agent, candidate.placed, now) {
                Ok(marked) => plan.any_failed |= marked,
                // It has no agent that could refuse.
                Err(_) if candidate.is_late() => {}
                Err(refusal) => {
                    candidate.reason = Some(refusal.into());
                    candidate.placed = 0;
                    refused = true;
                }
            }
        }
        if refused {
            plan.order.retain(|planned| candidates.list[planned.candidate()].placed > 0);
            P::remove_incomplete(self, candidates, plan);
        }
    }

    /// Step 2, for executors of the configured shape. Returns the reason if GPUs limit the plan.
    fn reserve_equal_gpus(
        &self,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan<u32>,
    ) -> Option<Reason> {
        let cap = u64::from(policy.config.gpu_cap.get());
        match policy.config.executor_gpus {
            ExecutorGpus::Exactly(each) if each > Gpus::ZERO => {
                let each = u64::from(each.get());
                let wanted = plan.order.len() as u64 * each;
                let fit = (self.gpus.reserve(wanted, each, cap) / each) as usize;
                let short = fit < plan.order.len();
                self.release_agents(candidates, plan, fit);
                short.then(|| policy.gpu_headroom(self.gpus.taken()).err()).flatten()
            }
            ExecutorGpus::WhatThereIs if cap > 0 => {
                // In the order of the plan, so that the first candidate chooses first.
                for at in &plan.order {
                    let candidate = &mut candidates.list[*at as usize];
                    if candidate.gpus_granted == 0 {
                        let wanted = u64::from(candidate.whole_gpus());
                        candidate.gpus_granted = self.gpus.reserve(wanted, 1, cap) as u32;
                    }
                }
                None
            }
            _ => None,
        }
    }

    /// Step 3. Returns `false` if the table of executors is full.
    fn reserve_cells<P: Planned>(
        &self,
        cells: &mut SlabCursor<'_, ExecutorCell>,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan<P>,
        now: Timestamp,
    ) -> bool {
        let count = plan.order.len();
        if count == 0 {
            return true;
        }
        if !cells.claim_from(plan.stack, count, &mut plan.cells) {
            return false;
        }
        // Relaxed: the numbers are unique; the states of the cells publish them.
        plan.first_sequence = self.sequence.fetch_add(count as u64, Ordering::Relaxed);
        if let Some(numbers) = &self.numbers
            && !numbers.insert(plan.first_sequence, &plan.cells, &mut plan.spare_pages)
        {
            return false;
        }
        ExecutorCell::before_reserving();
        let is_booked = !plan.claims.is_empty();
        if is_booked && !P::UNEQUAL {
            self.mark_queues(policy, plan);
        }
        let mut marks = P::UNEQUAL.then(|| self.marks());
        for (position, planned) in plan.order.iter().enumerate() {
            let resources = planned.allocate(candidates, &policy.config);
            let agent = candidates.list[planned.candidate()].agent.index();
            let id = plan.id(position);
            if let Some(marks) = &mut marks {
                let queue = is_booked.then(|| planned.queue(&policy.config));
                marks.set(id, ExecutorMark { tag: planned.tag(), queue });
            }
            if let Some((executor, hint)) = cells.get_with_hint(id.slot) {
                hint.set(agent);
                executor.reserve(id.sequence, &Allocation { agent, resources }, now);
            }
        }
        true
    }

    /// Step 4. Returns the word after the commit. If the plan was given back, returns the reason, or none if it is
    /// outdated.
    fn admit<P: Planned>(
        &self,
        policy: &Policy,
        mut admission: AdmissionState,
        candidates: &mut CandidateSet,
        plan: &mut Plan<P>,
    ) -> Result<AdmissionState, Option<Reason>> {
        let first = admission;
        let sum = |candidates: &CandidateSet, plan: &Plan<P>| {
            let cores = plan.order.iter().map(|planned| planned.cores(candidates).millis());
            MilliCpus::from_millis(cores.sum())
        };
        let mut cores = sum(candidates, plan);
        loop {
            let executors = plan.order.len() as u32;
            if executors == 0 {
                return Ok(admission);
            }
            match self.admission.commit(admission, executors, cores) {
                Ok(after) => return Ok(after),
                Err(current) if current.closed() => {
                    self.truncate_plan(policy, candidates, plan, 0);
                    return Err(Some(Reason::Stopping));
                }
                Err(current) if !current.same_version(first) => {
                    self.truncate_plan(policy, candidates, plan, 0);
                    return Err(None);
                }
                Err(current) => {
                    admission = current;
                    let fit = match policy.headroom(current) {
                        // Usually everything still fits: retry at once, before the word changes again.
                        Ok(left) if left.executors >= executors && left.cores >= cores => continue,
                        Ok(left) => fitting(candidates, plan, left),
                        Err(_) => 0,
                    };
                    self.truncate_plan(policy, candidates, plan, fit);
                    cores = sum(candidates, plan);
                }
            }
        }
    }

    /// Truncates the plan to `keep` executors and gives back what was claimed for the rest.
    fn truncate_plan<P: Planned>(
        &self,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan<P>,
        keep: usize,
    ) {
        if keep >= plan.order.len() {
            return;
        }
        for (position, cell) in plan.cells.iter().enumerate().skip(keep) {
            let sequence = plan.id(position).sequence;
            if let Some(executor) = self.executors.get(*cell) {
                executor.withdraw(sequence);
            }
            self.executors.free(*cell);
            self.retire_number(sequence);
        }
        plan.cells.truncate(keep);
        if !plan.claims.is_empty() {
            self.unclaim_queues(policy, candidates, plan, keep);
        }
        let gpus = plan.order[keep..].iter().map(|planned| planned.own_gpus(&policy.config));
        self.gpus.release(gpus.sum());
        self.release_agents(candidates, plan, keep);
    }

    /// Truncates the order to `keep`, uncounts the rest on their agents, and releases the GPUs of candidates left
    /// empty.
    pub(crate) fn release_agents<P: Planned>(
        &self,
        candidates: &mut CandidateSet,
        plan: &mut Plan<P>,
        keep: usize,
    ) {
        for planned in plan.order.drain(keep..) {
            self.release_agent(candidates, planned);
        }
    }

    /// Uncounts a planned executor on its agent, and releases the GPUs of its candidate if that is left empty.
    #[inline]
    pub(super) fn release_agent<P: Planned>(&self, candidates: &mut CandidateSet, planned: P) {
        let candidate = &mut candidates.list[planned.candidate()];
        self.agents.release(candidate.agent.index(), 1);
        candidate.placed -= 1;
        if candidate.placed == 0 {
            self.gpus.release(u64::from(std::mem::take(&mut candidate.gpus_granted)));
        }
    }
}

/// How many executors of the plan's beginning fit.
fn fitting<P: Planned>(candidates: &CandidateSet, plan: &Plan<P>, headroom: Headroom) -> usize {
    let mut cores = headroom.cores.millis();
    let fits = |planned: &&P| {
        let wanted = planned.cores(candidates).millis();
        let fits = wanted <= cores;
        cores = cores.saturating_sub(wanted);
        fits
    };
    let fit = plan.order.iter().take(headroom.executors as usize).take_while(fits).count();
    P::boundary(&plan.order, fit)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
