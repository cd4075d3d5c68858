//! [`Handler`]: a thread's handle for answering batches of offers.

use std::fmt;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::agent_cache::AgentCache;
use super::candidates::{Candidate, CandidateSet};
use super::carve::{CarveGroup, ExecutorCarver};
use super::commit::{Committed, Plan};
use super::decision::{AcceptRow, Decisions, Placed};
use super::decline::{decline, decline_all};
use super::kept_answer::KeptAnswer;
use super::placement;
use crate::kernel::Core;
use crate::kernel::offers::tasks::scratch::TaskScratch;
use crate::kernel::reason::Reason;
use crate::kernel::state::admission::{AdmissionState, Pin};
use crate::kernel::state::counters::Counters;
use crate::kernel::state::near_miss::BatchContext;
use crate::kernel::state::policy::{Policy, PolicyView};
use crate::offer::Offer;
use crate::time::Timestamp;

/// Answers batches of offers. Each thread has its own handler, from [`Kernel::handler`](crate::Kernel::handler). It
/// owns scratch memory and a private cache of agents, so that answering offers allocates nothing in the steady state.
/// The [crate's documentation](crate#which-call-waits-for-which) lists the cases in which it does.
///
/// ```
/// use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp};
///
/// let config = Config::builder().executor_limit(Some(10)).build()?;
/// let kernel = Kernel::new(config, IdScheme::unique("etl", 1)?);
/// std::thread::scope(|scope| {
///     for agent in ["S1", "S2", "S3", "S4"] {
///         let kernel = &kernel;
///         scope.spawn(move || {
///             let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
///             let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 8192.0)];
///             for round in 0..5 {
///                 let id = format!("offer {round} of {agent}");
///                 let offers = [Offer::new(&id, agent, "host", &resources, &[])];
///                 handler.resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
///                 let answered = decisions.accepts().len() + decisions.declines().len();
///                 assert_eq!(answered, 1, "each offer is answered once");
///             }
///         });
///     }
/// });
/// assert_eq!(kernel.totals().executors, 10, "four threads made 20 offers");
/// # Ok::<(), offermill::Error>(())
/// ```
///
/// # Consistency
/// A batch is admitted in one step, which checks it against the caps in force. Whatever other threads do, the core cap
/// and the executor limit are never exceeded by the executors that are counted; those that were [given
/// up](crate::Ticked::given_up) aren't. Once [`set_executor_limit`](crate::Kernel::set_executor_limit),
/// [`reconfigure`](crate::Kernel::reconfigure) or [`close`](crate::Kernel::close) has returned, no executor is placed
/// under the older state. Once a call that [reports an agent as lost](crate::Kernel::agent_lost) has returned, no
/// executor is placed on it for 10 s; once an [update](crate::Kernel::status_update) that excludes it has returned,
/// none until the exclusion ends. [`Kernel::readmit_agent`](crate::Kernel::readmit_agent) ends both.
///
/// Declines follow the state at the beginning of the batch, except for offers that fit and on which the batch places
/// nothing: their reason is the cap that is reached after it. The limit of one executor per wanted host during the
/// [locality wait](crate::ConfigBuilder::locality_wait) is a preference, not a cap.
pub struct Handler {
    pub(in crate::kernel) core: Arc<Core>,
    pub(in crate::kernel) policy: PolicyView,
    pub(in crate::kernel) pin: Pin,
    pub(in crate::kernel) counters: Arc<CachePadded<Counters>>,
    pub(in crate::kernel) scratch: Scratch,
    pub(in crate::kernel) kept: KeptAnswer,
}

/// A handler's reusable memory.
#[derive(Debug)]
pub(in crate::kernel) struct Scratch {
    pub(in crate::kernel) agent_cache: AgentCache,
    pub(in crate::kernel) candidates: CandidateSet,
    plan: Plan,
    left: Vec<(u32, u32)>,
    /// For each wanted host, whether it gets an executor in this batch.
    pub(in crate::kernel) taken: Vec<bool>,
    pub(in crate::kernel) tasks: TaskScratch,
}

/// How a batch was answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchResult {
    /// All offers were declined for one reason.
    DeclinedAlike,
    /// Each offer was answered by itself.
    Each,
    /// Nothing was done: the plan was outdated.
    Outdated,
}

/// A batch that isn't declined alike.
struct OpenBatch<'a> {
    admission: AdmissionState,
    /// The reason for all offers that nothing else outranks.
    closed: &'a Option<Reason>,
    offers: &'a [Offer<'a>],
    now: Timestamp,
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        self.core.counters.unregister(&self.counters);
        self.core.admission.unregister(&self.pin);
    }
}

impl Handler {
    pub(crate) fn new(core: Arc<Core>) -> Handler {
        let stack = core.executors.assign_stack();
        let scratch = Scratch {
            agent_cache: AgentCache::new(),
            candidates: CandidateSet::default(),
            plan: Plan::new(stack),
            left: Vec::new(),
            taken: Vec::new(),
            tasks: TaskScratch::new(stack),
        };
        let policy = core.policy.view();
        let pin = core.admission.register();
        let counters = core.counters.register();
        Handler { core, policy, pin, counters, scratch, kept: KeptAnswer::none() }
    }

    /// The word that says which version of the policy the handler's batch follows.
    #[cfg(all(counting, test))]
    pub(crate) fn pin(&self) -> &impl Sized {
        self.pin.word()
    }

    /// The words that no other handler writes.
    #[cfg(all(counting, test))]
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Answers each of `offers` exactly once. Replaces the content of `decisions`.
    ///
    /// Offers that meet the constraint get executors, as the placement and the caps allow. All others are declined with
    /// a reason. Offers of one agent and role are used together, unless the
    /// [compatibility flags](crate::config::Compatibility) say otherwise. An invalid quantity counts as zero, and an
    /// offer without an agent id is declined.
    ///
    /// # Panics
    /// Never, whatever the input.
    ///
    /// # Blocking
    /// Lock-free once the handler knows the agents: what is free is looked at again while others end executors; a
    /// commit is retried only if another thread's commit succeeded, the policy changed, or an agent was excluded or
    /// suspected; with [queues](crate::ConfigBuilder::queue) also, a few times at most, if another batch took room in
    /// one of them, which that may give back. The first offer of an agent reads a sharded map under its lock, and may
    /// write it.
    pub fn resource_offers(
        &mut self,
        offers: &[Offer<'_>],
        now: Timestamp,
        decisions: &mut Decisions,
    ) {
        if self.kept.is_some() {
            self.decline_again(offers, now, decisions);
        } else {
            self.answer_anew(offers, now, decisions);
        }
    }

    /// Answers a batch by its offers.
    #[inline]
    fn answer_anew(&mut self, offers: &[Offer<'_>], now: Timestamp, decisions: &mut Decisions) {
        while !self.try_to_answer(offers, now, decisions) {}
    }

    /// Answers a batch, unless its plan is outdated before it is committed: then it returns `false`, and nothing was
    /// done. A function of its own: around its body, the loop would keep addresses on the stack, which costs a batch of
    /// one 3 % of its instructions.
    #[inline(never)]
    fn try_to_answer(
        &mut self,
        offers: &[Offer<'_>],
        now: Timestamp,
        decisions: &mut Decisions,
    ) -> bool {
        let core = &*self.core;
        decisions.clear();
        decisions.revives = core.demand.revives();
        // The word is loaded before the policy, so the policy is at least as new as the word's version.
        let admission = core.admission.load_pinned(&mut self.pin);
        let policy: &Policy = self.policy.load();
        let config_version = policy.config_version;
        decisions.policy = policy.number;
        let result = self.scratch.answer(core, policy, admission, offers, now, decisions);
        match result {
            BatchResult::Outdated => return false,
            BatchResult::DeclinedAlike => {
                self.kept.keep(policy, admission, decisions.declines.first());
            }
            BatchResult::Each => self.kept.forget(),
        }
        let alike = result == BatchResult::DeclinedAlike;
        self.end_batch(offers, admission, config_version, alike, now, decisions);
        true
    }

    /// Declines a batch as the last one, all of which was declined at a cap, while that answer holds.
    #[inline(never)]
    fn decline_again(&mut self, offers: &[Offer<'_>], now: Timestamp, decisions: &mut Decisions) {
        let core = &*self.core;
        let revives = core.demand.revives();
        // In the same order as for an answer that isn't kept.
        let admission = core.admission.load_pinned(&mut self.pin);
        let policy: &Policy = self.policy.load();
        if !self.kept.holds(core, policy, admission) {
            return self.answer_anew(offers, now, decisions);
        }
        decisions.clear();
        (decisions.revives, decisions.policy) = (revives, policy.number);
        let batch = BatchContext { offers, config_version: policy.config_version, now };
        self.kept.decline(offers.len(), &mut decisions.declines);
        if !offers.is_empty() {
            core.record_refused_at_cap(decisions);
        }
        self.leave_policy(admission, decisions.policy);
        self.counters.count_again(self.kept.kind(), &decisions.declines, &batch);
    }

    /// Ends a batch that was answered by a plan for the admission word as it was then, and counts it.
    #[inline(always)]
    pub(in crate::kernel) fn end_batch(
        &mut self,
        offers: &[Offer<'_>],
        admission: AdmissionState,
        config_version: u64,
        alike: bool,
        now: Timestamp,
        decisions: &Decisions,
    ) {
        self.leave_policy(admission, decisions.policy);
        let batch = BatchContext { offers, config_version, now };
        let accepted = decisions.accepted.len();
        let executors = decisions.placed.len();
        self.counters.count(&decisions.declines, accepted, executors, alike, &batch);
    }

    /// Requests a revive if the policy of this number, under which a batch was answered, has been replaced meanwhile;
    /// the pin may be cleared then.
    #[inline(always)]
    fn leave_policy(&mut self, admission: AdmissionState, policy: u64) {
        let core = &*self.core;
        let outdated = !core.admission.has_version_of(admission);
        if outdated && core.policy.load().number != policy {
            // The policy was replaced while the batch was answered. The new policy may want what was refused here, and
            // its revive may already be on its way.
            core.demand.request_revive();
        }
        self.pin.end_batch();
    }
}

impl Scratch {
    /// Answers a batch under one policy.
    fn answer(
        &mut self,
        core: &Core,
        policy: &Policy,
        admission: AdmissionState,
        offers: &[Offer<'_>],
        now: Timestamp,
        decisions: &mut Decisions,
    ) -> BatchResult {
        let closed = core.reason_for_all(policy, admission);
        if let Some(reason) = &closed
            && !policy.outranks(reason)
        {
            // The wait for wanted hosts may pause.
            core.locality_filter(policy, Some(reason), now);
            decline_all(offers, reason, policy, now, &mut decisions.declines);
            // Offers arrive though nothing can be placed: suppress must be sent again.
            if !offers.is_empty() && reason.calls_for_suppress() {
                core.record_refused_at_cap(decisions);
            }
            return BatchResult::DeclinedAlike;
        }
        let batch = OpenBatch { admission, closed: &closed, offers, now };
        self.answer_each(core, policy, &batch, decisions)
    }

    /// Answers a batch, each offer of which is looked at. Always inlined: a call would cost a batch of one 3 % of its
    /// instructions.
    #[inline(always)]
    fn answer_each(
        &mut self,
        core: &Core,
        policy: &Policy,
        batch: &OpenBatch<'_>,
        decisions: &mut Decisions,
    ) -> BatchResult {
        let OpenBatch { admission, closed, offers, now } = *batch;
        let Scratch { agent_cache, candidates, plan, left, taken, .. } = self;
        candidates.collect(offers, policy, agent_cache, &core.agents, now, &mut decisions.declines);
        core.record_offered(candidates, agent_cache, offers, policy, now);
        if let Some(locality_filter) = core.locality_filter(policy, closed.as_ref(), now) {
            locality_filter.apply(candidates, offers, &core.agents, taken);
        }
        if candidates.is_full() {
            // Nothing fits, so nothing is planned.
            if closed.is_some() {
                core.record_refused_at_cap(decisions);
            }
            decline_candidates(candidates, policy, closed, now, decisions);
            return BatchResult::Each;
        }
        plan.clear();
        let reached;
        let has_queues = !policy.config.queues.is_empty();
        let reached_cap = if make_plan(core, policy, admission, candidates, plan, left) {
            match core.commit(policy, admission, candidates, plan, now) {
                Committed::Done(reached_cap) => reached = reached_cap,
                Committed::Outdated => return BatchResult::Outdated,
            }
            &reached
        } else {
            closed
        };
        if has_queues && reached_cap.is_none() {
            core.refuse_by_queue(&policy.config, candidates, plan, decisions);
        }
        if reached_cap.is_some() {
            // The rest of the accepted offers is refused for the cap, like the other offers.
            core.record_refused_at_cap(decisions);
        }
        self.write_decisions(policy, offers, reached_cap, now, decisions);
        BatchResult::Each
    }

    /// Writes the committed plan as decisions.
    fn write_decisions(
        &mut self,
        policy: &Policy,
        offers: &[Offer<'_>],
        reached_cap: &Option<Reason>,
        now: Timestamp,
        decisions: &mut Decisions,
    ) {
        let Scratch { candidates, plan, .. } = self;
        let refuse = &policy.config.refuse;
        decisions.leftover_refuse =
            if reached_cap.is_some() { refuse.reached_cap } else { refuse.other };
        let mut rows = 0;
        for candidate in &mut candidates.list {
            candidate.start = rows;
            rows += std::mem::take(&mut candidate.placed);
        }
        debug_assert_eq!(rows as usize, plan.order.len(), "each row is written");
        decisions.placed.begin(rows, Placed::NONE);
        for (position, at) in plan.order.iter().enumerate() {
            let candidate = &mut candidates.list[*at as usize];
            let gpus = candidate.gpus_of(&policy.config, candidate.placed == 0);
            let cores = candidates.capacities[*at as usize].cores;
            decisions.placed[(candidate.start + candidate.placed) as usize] =
                Placed::new(plan.id(position), cores, gpus, &policy.config);
            candidate.placed += 1;
        }
        for candidate in &candidates.list {
            let first_offer = decisions.accepted.len() as u32;
            if candidate.placed == 0 {
                let declines = &mut decisions.declines;
                decline(candidates, candidate, policy, reached_cap, now, declines);
                continue;
            }
            decisions.accepted.extend(candidates.offers_of(candidate.first));
            let own = &decisions.accepted[first_offer as usize..];
            let Candidate { firm, sources, .. } = *candidate;
            let config = &policy.config;
            let group = CarveGroup { batch: offers, offers: own, config, firm, sources };
            let placed = (candidate.start, candidate.start + candidate.placed);
            let rows = &mut decisions.placed[placed.0 as usize..placed.1 as usize];
            let mut carver = ExecutorCarver::new(group, candidate.placed, &rows[0].resources);
            for executor in rows {
                let start = decisions.pieces.len() as u32;
                carver.carve(&executor.resources, &mut decisions.pieces);
                executor.pieces = (start, decisions.pieces.len() as u32);
            }
            let offers = (first_offer, decisions.accepted.len() as u32);
            decisions.accepts.push(AcceptRow { offers, placed });
        }
    }
}

impl Core {
    /// The reason for which every offer is declined, if there is one.
    pub(in crate::kernel) fn reason_for_all(
        &self,
        policy: &Policy,
        admission: AdmissionState,
    ) -> Option<Reason> {
        if admission.closed() {
            return Some(Reason::Stopping);
        }
        if !self.subscription.connected() {
            return Some(Reason::Disconnected);
        }
        self.caps_reached(policy, admission)
    }

    /// Records that offers were refused at a cap.
    pub(in crate::kernel) fn record_refused_at_cap(&self, decisions: &mut Decisions) {
        self.demand.record_refused();
        decisions.at_cap = true;
    }

    /// The cap that leaves no room for any executor, if there is one.
    pub(crate) fn caps_reached(
        &self,
        policy: &Policy,
        admission: AdmissionState,
    ) -> Option<Reason> {
        policy.headroom(admission).err().or_else(|| policy.gpu_headroom(self.gpus.taken()).err())
    }
}

/// Plans the batch. Returns `false` if there is nothing to place.
fn make_plan(
    core: &Core,
    policy: &Policy,
    admission: AdmissionState,
    candidates: &mut CandidateSet,
    plan: &mut Plan,
    left: &mut Vec<(u32, u32)>,
) -> bool {
    let Ok(mut headroom) = policy.headroom(admission) else { return false };
    let mut budget = headroom.executors.min(policy.room_by_gpus(core.gpus.taken()));
    if !policy.config.queues.is_empty() {
        let room = core.executor_queue_room(&policy.config, plan);
        let by_memory = room.memory.get() / policy.config.memory_taken().get();
        budget = budget.min(u32::try_from(by_memory).unwrap_or(u32::MAX));
        headroom.cores = headroom.cores.min(room.cores);
    }
    match policy.fixed_cores() {
        Some(cores) => {
            let by_cores = headroom.cores.millis() / cores.millis();
            budget = budget.min(u32::try_from(by_cores).unwrap_or(u32::MAX));
            placement::place(
                &candidates.capacities,
                budget,
                policy.config.placement,
                &mut plan.order,
                left,
            );
        }
        None => {
            placement::place_whole(
                &mut candidates.capacities,
                budget,
                headroom.cores,
                &mut plan.order,
            );
        }
    }
    !plan.order.is_empty()
}

/// Declines the offers of all candidates, on which nothing is placed.
#[inline]
fn decline_candidates(
    candidates: &CandidateSet,
    policy: &Policy,
    reached_cap: &Option<Reason>,
    now: Timestamp,
    decisions: &mut Decisions,
) {
    for candidate in &candidates.list {
        decline(candidates, candidate, policy, reached_cap, now, &mut decisions.declines);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{Config, DemandCall, IdScheme, Kernel, Resource};

    /// Goal: a batch that was answered under settings that were replaced in the meantime has offers revived; one whose
    /// plan was invalidated alone has not. Method: the end of a batch that began before either, and of one that didn't.
    #[test]
    fn settings_that_change_during_a_batch_revive_offers() {
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        let resources = [Resource::scalar("cpus", 0.5)];
        let offers = [Offer::new("o", "S1", "host", &resources, &[])];
        let mut now = Timestamp::ORIGIN;
        handler.resource_offers(&offers, now, &mut decisions);
        let mut end = |admission, decisions: &Decisions| {
            handler.end_batch(&offers, admission, 0, false, now, decisions);
            now = now.plus(std::time::Duration::from_secs(60));
            kernel.poll_demand(now)
        };
        let admission = kernel.0.admission.load();
        assert_eq!(end(admission, &decisions), None);
        kernel.0.policy.invalidate_plans(&kernel.0.admission);
        assert_eq!(end(admission, &decisions), None);
        kernel.reconfigure(Config::builder().executor_limit(Some(5)).build().unwrap());
        assert_eq!(kernel.poll_demand(Timestamp::ORIGIN), Some(DemandCall::Revive));
        assert_eq!(end(admission, &decisions), Some(DemandCall::Revive));
        assert_eq!(end(kernel.0.admission.load(), &decisions), None);
    }
}
