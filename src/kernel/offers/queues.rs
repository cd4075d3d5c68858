//! Queues in plans: what they have room for, and booking a plan in them.
//!
//! A plan is made on [copies](QueueDraft) of the queues' words, as it is on a copy of the admission word. It is booked
//! with one claim a queue, for all that the plan has in it, before its executors get cells; so no queue holds more than
//! its maximum at any instant, and no footprint grows into what is guaranteed to others. If another thread was faster,
//! nothing stays booked and the batch is planned again: a claim fails only if a word has changed since it was copied.
//! What is cut off a booked plan later is released at once.

use super::candidates::CandidateSet;
use super::commit::{Plan, Planned};
use crate::config::{Config, QueueId};
use crate::kernel::Core;
use crate::kernel::reason::Reason;
use crate::kernel::state::policy::Policy;
use crate::kernel::state::queues::{QueueAmount, QueueQuotas, QueueShortage, totals};
use crate::kernel::state::quota::Shortage;
use crate::kernel::state::tags::ExecutorMark;
use crate::resources::{Mebibytes, MilliCpus};

/// What the queues hold and may hold while a plan is made.
#[derive(Debug, Default)]
pub(crate) struct QueueDraft {
    quotas: Vec<QueueQuotas>,
    /// What the footprints leave of the totals: cores and memory.
    left: (u64, u64),
}

impl QueueDraft {
    /// Copies the words. Empty if there are no queues.
    pub(crate) fn load(&mut self, core: &Core, config: &Config) {
        self.quotas.clear();
        if let Some(queues) = core.queues.get() {
            self.quotas.extend(config.queues.iter().map(|(queue, _)| queues.quotas(queue)));
            let ((cores, memory), (most_cores, most_memory)) =
                (queues.footprints(), totals(config));
            self.left = (most_cores.saturating_sub(cores), most_memory.saturating_sub(memory));
        }
    }

    /// Takes an amount for a queue, or says why it has no room. Without queues there is room for all.
    pub(crate) fn take(
        &mut self,
        config: &Config,
        queue: QueueId,
        amount: QueueAmount,
    ) -> Result<(), Reason> {
        if config.queues.is_empty() {
            return Ok(());
        }
        let Some(quotas) = self.quotas.get_mut(queue.index()) else {
            return Err(Reason::Malformed);
        };
        let most = config.queues.bounds(queue);
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
        taken.map_err(|short| reason(config, queue, short, before, amount))
    }

    /// Undoes [`QueueDraft::take`].
    pub(crate) fn give_back(&mut self, queue: QueueId, amount: QueueAmount) {
        if let Some(quotas) = self.quotas.get_mut(queue.index()) {
            quotas.cores.give_back(amount.cores.millis(), &mut self.left.0);
            quotas.memory.give_back(amount.memory.get(), &mut self.left.1);
        }
    }

    /// The most cores, and the most memory, that a queue has room for.
    pub(crate) fn room(&self, config: &Config, queue: QueueId) -> QueueAmount {
        let most = config.queues.bounds(queue);
        if config.queues.is_empty() {
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
    config: &Config,
    queue: QueueId,
    short: QueueShortage,
    held: QueueQuotas,
    asked: QueueAmount,
) -> Reason {
    let most = config.queues.bounds(queue);
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
    /// Notes why candidates that got nothing, and lack nothing themselves, got none.
    #[cold]
    pub(super) fn refuse_unplaced(&mut self, reason: Option<Reason>) {
        for candidate in self.list.iter_mut().filter(|candidate| candidate.placed == 0) {
            candidate.reason = candidate.reason.or(reason);
        }
    }
}

impl Core {
    /// Why the executors' queue has no room for another one, if it has none.
    #[cold]
    pub(super) fn executor_queue_full(&self, config: &Config) -> Option<Reason> {
        let mut draft = QueueDraft::default();
        draft.load(self, config);
        let least = QueueAmount::new(config.cores_at_least(), config.memory_taken());
        draft.take(config, config.queues.executors, least).err()
    }

    /// What the executors' queue has room for.
    #[cold]
    pub(super) fn executor_queue_room(&self, config: &Config) -> QueueAmount {
        let mut draft = QueueDraft::default();
        draft.load(self, config);
        draft.room(config, config.queues.executors)
    }

    /// Books a plan in the queues. Returns `false`, with nothing booked, if one has no room for its part any more.
    #[cold]
    pub(super) fn claim_queues<P: Planned>(
        &self,
        policy: &Policy,
        candidates: &CandidateSet,
        plan: &mut Plan<P>,
    ) -> bool {
        let (config, Some(queues)) = (&policy.config, self.queues.get()) else { return true };
        let Plan { order, claims, .. } = plan;
        for planned in &*order {
            let (queue, amount) = (planned.queue(config), planned.amount(candidates, config));
            match claims.iter_mut().find(|(claimed, _)| *claimed == queue) {
                Some((_, sum)) => *sum = sum.plus(amount),
                None => claims.push((queue, amount)),
            }
        }
        for (at, (queue, amount)) in claims.iter().enumerate() {
            if queues.claim(config, *queue, *amount).is_err() {
                claims[..at].iter().for_each(|(queue, amount)| queues.release(*queue, *amount));
                claims.clear();
                return false;
            }
        }
        true
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
    }

    /// Notes which queue the executors of a plan without tags are booked in.
    #[cold]
    pub(super) fn mark_queues<P: Planned>(&self, policy: &Policy, plan: &Plan<P>) {
        for (position, planned) in plan.order.iter().enumerate() {
            let queue = Some(planned.queue(&policy.config));
            self.set_mark(plan.id(position), ExecutorMark { tag: None, queue });
        }
    }
}
