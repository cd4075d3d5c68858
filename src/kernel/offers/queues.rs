//! Queues in plans: what they have room for, and booking a plan in them.
//!
//! A plan is made on [copies](QueueDraft) of the queues' words, as it is on a copy of the admission word. It is booked
//! before its executors get cells, with one claim a queue for all that the plan has in it, in the order of the queues'
//! numbers. If one has less room than its copy had, all is given back and the batch is planned again.
//!
//! A claim fails only if another thread changed a word since it was copied; but that thread may give its claim back in
//! turn, so that two batches could fail each other for ever. The order excludes that for maxima: a batch that has
//! claimed in one queue is not failed by one that still needs that queue. It doesn't for the sums of the footprints, of
//! which a batch claims a part for each of its queues. Therefore a batch that has lost [`LOST_RACES_MAX`] times in a
//! row is booked one by one, and what finds no room is left out. So each batch makes a bounded number of claims for
//! each change of the admission word by others, which is why commits are lock-free with queues, too.
//!
//! Claims that are given back are [counted](crate::kernel::state::claim_returns), so that offers that were refused
//! because of them are asked for again. What is cut off a booked plan later is released at once.

use super::candidates::{Candidate, CandidateSet};
use super::commit::{Plan, Planned};
use super::decision::Decisions;
use crate::config::{Config, QueueId, Queues};
use crate::kernel::Core;
use crate::kernel::reason::Reason;
use crate::kernel::state::policy::Policy;
use crate::kernel::state::queues::{QueueAmount, QueueQuotas, QueueShortage, QueueTable, totals};
use crate::kernel::state::quota::Shortage;
use crate::kernel::state::tags::ExecutorMark;
use crate::resources::{Mebibytes, MilliCpus};

/// How often in a row a plan may find less room in its queues than there was when it was made.
const LOST_RACES_MAX: u32 = 8;

/// What the queues hold and may hold while a plan is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueDraft {
    quotas: Vec<QueueQuotas>,
    /// What the footprints leave of the totals: cores and memory.
    left: (u64, u64),
    /// The [number of claims](crate::kernel::state::claim_returns) that were given back before.
    returns: u64,
    /// Whether an amount was refused since.
    has_refused: bool,
}

impl QueueDraft {
    /// Copies the words. Empty if there are no queues.
    pub(crate) fn load(&mut self, core: &Core, config: &Config) {
        self.quotas.clear();
        self.has_refused = false;
        if let Some(queues) = core.queues.get() {
            self.returns = queues.returns.count();
            self.quotas.extend(config.queues.iter().map(|(queue, _)| queues.quotas(queue)));
            let ((cores, memory), (most_cores, most_memory)) =
                (queues.footprints(), totals(config));
            self.left = (most_cores.saturating_sub(cores), most_memory.saturating_sub(memory));
        }
    }

    /// Takes an amount for a queue, or says why it has no room. Without queues there is room for all.
    pub(crate) fn take(
        &mut self,
        queues: &Queues,
        queue: QueueId,
        amount: QueueAmount,
    ) -> Result<(), Reason> {
        if queues.is_empty() {
            return Ok(());
        }
        let Some(quotas) = self.quotas.get_mut(queue.index()) else {
            return Err(Reason::Malformed);
        };
        let most = queues.bounds(queue);
        let QueueAmount { cores, memory } = amount;
        let (left_cores, left_memory) = (&mut self.left.0, &mut self.left.1);
        let before = *quotas;
        let taken = quotas
            .cores
            .take(cores.millis(), most.cores.millis(), left_cores)
            .map_err(QueueShortage::Cores)
            .and_then(|()| {
                let taken = quotas.memory.take(memory.get(), most.memory.get(), left_memory);
                taken.map_err(|short| {
                    quotas.cores.give_back(cores.millis(), left_cores);
                    QueueShortage::Memory(short)
                })
            });
        self.has_refused |= taken.is_err();
        taken.map_err(|short| reason(queues, queue, short, before, amount))
    }

    /// Has this count as a draft of which an amount was refused, when the number of returns was `returns`.
    pub(crate) fn refuse(&mut self, returns: u64) {
        self.returns = returns;
        self.has_refused = true;
    }

    /// Undoes [`QueueDraft::take`].
    pub(crate) fn give_back(&mut self, queue: QueueId, amount: QueueAmount) {
        if let Some(quotas) = self.quotas.get_mut(queue.index()) {
            quotas.cores.give_back(amount.cores.millis(), &mut self.left.0);
            quotas.memory.give_back(amount.memory.get(), &mut self.left.1);
        }
    }

    /// The most cores, and the most memory, that a queue has room for.
    pub(crate) fn room(&self, queues: &Queues, queue: QueueId) -> QueueAmount {
        let most = queues.bounds(queue);
        if queues.is_empty() {
            return QueueAmount::new(most.cores, most.memory);
        }
        let Some(quotas) = self.quotas.get(queue.index()) else { return QueueAmount::default() };
        let cores = quotas.cores.room(most.cores.millis(), self.left.0);
        let memory = quotas.memory.room(most.memory.get(), self.left.1);
        QueueAmount::new(MilliCpus::from_millis(cores), Mebibytes::new(memory))
    }
}

/// Why a queue, which held this, has no room for an amount.
#[cold]
fn reason(
    queues: &Queues,
    queue: QueueId,
    short: QueueShortage,
    held: QueueQuotas,
    asked: QueueAmount,
) -> Reason {
    let most = queues.bounds(queue);
    match short {
        QueueShortage::Cores(Shortage::Maximum) => {
            let held = MilliCpus::from_millis(held.cores.held());
            Reason::QueueCores { queue, most: most.cores, held, asked: asked.cores }
        }
        QueueShortage::Memory(Shortage::Maximum) => {
            let held = Mebibytes::new(held.memory.held());
            Reason::QueueMemory { queue, most: most.memory, held, asked: asked.memory }
        }
        _ => Reason::QueueGuarantees { queue },
    }
}

impl CandidateSet {
    /// Notes why candidates that got nothing, and lack nothing themselves, got none. Returns whether there are any.
    fn refuse_unplaced(&mut self, reason: Option<Reason>) -> bool {
        let mut found = false;
        let lacks_nothing = |it: &&mut Candidate| it.placed == 0 && it.reason.is_none();
        for candidate in self.list.iter_mut().filter(lacks_nothing) {
            candidate.reason = reason;
            found = true;
        }
        found
    }
}

impl Core {
    /// What the executors' queue has room for, for this plan.
    #[cold]
    pub(super) fn executor_queue_room(&self, config: &Config, plan: &mut Plan) -> QueueAmount {
        let mut draft = QueueDraft::default();
        draft.load(self, config);
        plan.claim_returns = draft.returns;
        draft.room(&config.queues, config.queues.executors)
    }

    /// Called after a plan of executors that no cap has cut off: notes that its queue has no room for more, if so.
    #[cold]
    pub(super) fn refuse_by_queue(
        &self,
        config: &Config,
        candidates: &mut CandidateSet,
        plan: &Plan,
        decisions: &mut Decisions,
    ) {
        let mut draft = QueueDraft::default();
        draft.load(self, config);
        let least = QueueAmount::new(config.cores_at_least(), config.memory_taken());
        let reason = draft.take(&config.queues, config.queues.executors, least).err();
        let is_refused = candidates.refuse_unplaced(reason);
        let has_room_again = is_refused && reason.is_none() || draft.returns != plan.claim_returns;
        self.record_refused_by_queue(&draft, plan.contended || has_room_again, decisions);
    }

    /// Books a plan in the queues. Returns `false`, with nothing booked, if one has no room for its part any more; if
    /// that has happened too often, books what there is room for, and removes the rest from the plan.
    #[cold]
    pub(in crate::kernel::offers) fn claim_queues<P: Planned>(
        &self,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan<P>,
    ) -> bool {
        let (config, Some(queues)) = (&policy.config, self.queues.get()) else { return true };
        if plan.lost_races >= LOST_RACES_MAX {
            plan.lost_races = 0;
            self.claim_one_by_one(queues, config, candidates, plan);
            return true;
        }
        let Plan { order, claims, .. } = plan;
        for planned in &*order {
            let (queue, amount) = (planned.queue(config), planned.amount(candidates, config));
            match claims.binary_search_by_key(&queue, |(queue, _)| *queue) {
                Ok(at) => claims[at].1 = claims[at].1.plus(amount),
                Err(at) => claims.insert(at, (queue, amount)),
            }
        }
        let claim =
            |(queue, amount): &(QueueId, QueueAmount)| self.claim_queue(config, *queue, *amount);
        let claimed = claims.iter().take_while(|it| claim(it)).count();
        if claimed < claims.len() {
            claims[..claimed].iter().for_each(|(queue, amount)| queues.release(*queue, *amount));
            claims.clear();
            plan.lost_races += 1;
            self.record_claim_return();
            return false;
        }
        plan.lost_races = 0;
        true
    }

    /// Books executors one by one, gangs all or none, and removes those that their queues have no room for.
    fn claim_one_by_one<P: Planned>(
        &self,
        queues: &QueueTable,
        config: &Config,
        candidates: &mut CandidateSet,
        plan: &mut Plan<P>,
    ) {
        let Plan { order, claims, .. } = plan;
        let (mut kept, mut at) = (0, 0);
        while at < order.len() {
            let group = at..at + P::group(&order[at..]);
            let first = claims.len();
            for planned in &order[group.clone()] {
                let (queue, amount) = (planned.queue(config), planned.amount(candidates, config));
                if !self.claim_queue(config, queue, amount) {
                    break;
                }
                claims.push((queue, amount));
            }
            if claims.len() - first == group.len() {
                order.copy_within(group.clone(), kept);
                kept += group.len();
            } else {
                claims.drain(first..).for_each(|(queue, amount)| queues.release(queue, amount));
                for planned in &order[group.clone()] {
                    self.gpus.release(planned.own_gpus(config));
                    self.release_agent(candidates, *planned);
                }
                self.record_claim_return();
                plan.contended = true;
            }
            at = group.end;
        }
        order.truncate(kept);
    }

    /// Books an amount in a queue, all or none. If it returns `false`, [`Core::record_claim_return`] must be called.
    #[cold]
    pub(in crate::kernel) fn claim_queue(
        &self,
        config: &Config,
        queue: QueueId,
        amount: QueueAmount,
    ) -> bool {
        let Some(queues) = self.queues.get() else { return true };
        let claimed = queues.claim(config, queue, amount);
        if claimed == Ok(true) {
            self.record_claim_return();
        }
        claimed.is_ok()
    }

    /// Called after a claim was given back.
    #[cold]
    pub(in crate::kernel) fn record_claim_return(&self) {
        if self.queues.get().is_some_and(|queues| queues.returns.add()) {
            self.demand.request_revive();
        }
    }

    /// Called when a batch is answered that has a queue: `draft` is what it was planned on, and `contended` is whether
    /// something was left out though there may be room for it.
    #[cold]
    pub(super) fn record_refused_by_queue(
        &self,
        draft: &QueueDraft,
        contended: bool,
        decisions: &mut Decisions,
    ) {
        let Some(queues) = self.queues.get() else { return };
        decisions.at_queue = draft.has_refused || contended;
        if contended || draft.has_refused && queues.returns.refuse(draft.returns) {
            self.demand.request_revive();
        }
    }

    /// Releases what is booked for the plan from `keep` on, if it is booked.
    #[cold]
    pub(super) fn unclaim_queues<P: Planned>(
        &self,
        policy: &Policy,
        candidates: &CandidateSet,
        plan: &Plan<P>,
        keep: usize,
    ) {
        for planned in &plan.order[keep..] {
            let amount = planned.amount(candidates, &policy.config);
            self.release_queue(Some(planned.queue(&policy.config)), amount);
        }
        self.record_claim_return();
    }

    /// Notes which queue the executors of a plan without tags are booked in.
    #[cold]
    pub(super) fn mark_queues<P: Planned>(&self, policy: &Policy, plan: &Plan<P>) {
        let mut marks = self.marks();
        for (position, planned) in plan.order.iter().enumerate() {
            let queue = Some(planned.queue(&policy.config));
            marks.set(plan.id(position), ExecutorMark { tag: None, queue });
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
