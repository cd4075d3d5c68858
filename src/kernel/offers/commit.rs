//! Commits a plan: reserves agents, GPUs and executor cells, then admits the batch with one compare-exchange.
//!
//! The order guarantees that no cap is exceeded at any instant and that nothing leaks:
//!
//! 1. The agents' words: each counts its executors, unless the agent was excluded or forgotten since the plan was made.
//!    Offers without an agent are left out; see [`binding`](crate::kernel::lifecycle::binding).
//! 2. The word of GPUs.
//! 3. Executor cells and sequence numbers; the cells become `Reserved`.
//! 4. The admission word, with one compare-exchange for the batch. If other launches or ends changed the word, truncate
//!    the plan to what still fits (it is never extended) and retry. If the policy changed or plans were invalidated
//!    because an agent was excluded or suspected, give everything back and plan the batch again. If the kernel was
//!    closed, give everything back.
//! 5. The failure marks of the agents are cleared, and the cells become `Launching`. If executors take what there is,
//!    the agents' next offers will be recorded; see [`state::offered`](crate::kernel::state::offered).
//!
//! A kernel that is closed between steps 4 and 5 finds the cells `Reserved` and waits for them (see `drain`).

use super::candidates::CandidateSet;
use crate::config::ExecutorGpus;
use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::reason::Reason;
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::executors::{Allocation, ExecutorCell};
use crate::kernel::state::policy::{Headroom, Policy};
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

/// A plan: candidates in the order of placement, one entry per executor, and what was claimed for them.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) order: Vec<u32>,
    pub(crate) cells: Vec<u32>,
    /// The stack of free cells that the handler prefers.
    stack: u32,
    first_sequence: u64,
    /// Scratch memory for [`NumberTable::insert`](crate::kernel::state::numbers::NumberTable::insert).
    spare_pages: Vec<u32>,
    /// Whether an executor failed recently on one of the plan's agents.
    any_failed: bool,
}

impl Plan {
    /// An empty plan for a handler that prefers `stack`.
    pub(crate) fn new(stack: u32) -> Plan {
        Plan { stack, ..Plan::default() }
    }

    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.cells.clear();
        self.any_failed = false;
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
    pub(crate) fn commit(
        &self,
        policy: &Policy,
        admission: AdmissionState,
        candidates: &mut CandidateSet,
        plan: &mut Plan,
        now: Timestamp,
    ) -> Committed {
        self.reserve_agents(candidates, plan, now);
        let short_of_gpus = self.reserve_gpus(policy, candidates, plan);
        if !self.reserve_cells(policy, candidates, plan, now) {
            self.truncate_plan(policy, candidates, plan, 0);
        }
        let reached_cap = match self.admit(policy, admission, candidates, plan) {
            Ok(admission) => self.cap_reached(policy, admission).or(short_of_gpus),
            Err(Some(reason)) => Some(reason),
            Err(None) => return Committed::Outdated,
        };
        if plan.any_failed {
            for candidate in candidates.list.iter().filter(|candidate| candidate.placed > 0) {
                self.agents.clear_failure_mark(candidate.agent.index());
            }
        }
        if policy.sizes_differ() {
            self.record_next_offers(policy, candidates);
        }
        for (position, cell) in plan.cells.iter().enumerate() {
            let id = plan.id(position);
            if let Some(executor) = self.executors.get(*cell) {
                executor.publish(id.sequence);
            }
        }
        Committed::Done(reached_cap)
    }

    /// Has the next offers recorded of agents on which executors were placed that took what there was.
    #[cold]
    fn record_next_offers(&self, policy: &Policy, candidates: &CandidateSet) {
        let takes_cores = policy.fixed_cores().is_none();
        for candidate in &candidates.list {
            if candidate.placed > 0 && (takes_cores || candidate.gpus_granted > 0) {
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
    fn reserve_agents(&self, candidates: &mut CandidateSet, plan: &mut Plan, now: Timestamp) {
        for at in &plan.order {
            candidates.list[*at as usize].placed += 1;
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
            plan.order.retain(|at| candidates.list[*at as usize].placed > 0);
        }
    }

    /// Step 2. Returns the reason if GPUs limit the plan.
    fn reserve_gpus(
        &self,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan,
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
    fn reserve_cells(
        &self,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan,
        now: Timestamp,
    ) -> bool {
        let count = plan.order.len();
        if count == 0 || !self.executors.claim_from(plan.stack, count, &mut plan.cells) {
            return count == 0;
        }
        // Relaxed: the numbers are unique; the states of the cells publish them.
        plan.first_sequence = self.sequence.fetch_add(count as u64, Ordering::Relaxed);
        if let Some(numbers) = &self.numbers
            && !numbers.insert(plan.first_sequence, &plan.cells, &mut plan.spare_pages)
        {
            return false;
        }
        let config = &policy.config;
        ExecutorCell::before_reserving();
        for (position, at) in plan.order.iter().enumerate() {
            let candidate = &mut candidates.list[*at as usize];
            let first = !std::mem::replace(&mut candidate.begun, true);
            let allocation = Allocation {
                agent: candidate.agent.index(),
                resources: ExecutorResources {
                    cores: candidates.capacities[*at as usize].cores,
                    memory: config.memory_taken(),
                    gpus: candidate.gpus_of(config, first),
                    port: config.fixed_port,
                },
            };
            let id = plan.id(position);
            if let Some((executor, hint)) = self.executors.get_with_hint(id.slot) {
                hint.set(allocation.agent);
                executor.reserve(id.sequence, &allocation, now);
            }
        }
        true
    }

    /// Step 4. Returns the word after the commit. If the plan was given back, returns the reason, or none if it is
    /// outdated.
    fn admit(
        &self,
        policy: &Policy,
        mut admission: AdmissionState,
        candidates: &mut CandidateSet,
        plan: &mut Plan,
    ) -> Result<AdmissionState, Option<Reason>> {
        let first = admission;
        let sum = |candidates: &CandidateSet, plan: &Plan| {
            let cores =
                plan.order.iter().map(|at| candidates.capacities[*at as usize].cores.millis());
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
    fn truncate_plan(
        &self,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan,
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
        if let ExecutorGpus::Exactly(each) = policy.config.executor_gpus {
            self.gpus.release((plan.order.len() - keep) as u64 * u64::from(each.get()));
        }
        self.release_agents(candidates, plan, keep);
    }

    /// Truncates the order to `keep`, uncounts the rest on their agents, and releases the GPUs of candidates left
    /// empty.
    fn release_agents(&self, candidates: &mut CandidateSet, plan: &mut Plan, keep: usize) {
        for at in plan.order.drain(keep..) {
            let candidate = &mut candidates.list[at as usize];
            self.agents.release(candidate.agent.index(), 1);
            candidate.placed -= 1;
            if candidate.placed == 0 {
                self.gpus.release(u64::from(std::mem::take(&mut candidate.gpus_granted)));
            }
        }
    }
}

/// How many executors of the plan's beginning fit.
fn fitting(candidates: &CandidateSet, plan: &Plan, headroom: Headroom) -> usize {
    let mut cores = headroom.cores.millis();
    let fits = |at: &&u32| {
        let wanted = candidates.capacities[**at as usize].cores.millis();
        let fits = wanted <= cores;
        cores = cores.saturating_sub(wanted);
        fits
    };
    plan.order.iter().take(headroom.executors as usize).take_while(fits).count()
}
