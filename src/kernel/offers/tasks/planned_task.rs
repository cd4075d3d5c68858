//! [`PlannedTask`]: a task in a plan, and what is special about plans of tasks: unequal amounts, tags, gangs.

use super::picks::Task;
use super::room::TaskSupplies;
use crate::config::{Config, QueueId};
use crate::kernel::Core;
use crate::kernel::offers::candidates::CandidateSet;
use crate::kernel::offers::commit::{Plan, Planned};
use crate::kernel::reason::Reason;
use crate::kernel::state::policy::Policy;
use crate::kernel::state::queues::QueueAmount;
use crate::resources::{ExecutorResources, Gpus, MilliCpus};

/// A task in a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedTask {
    pub(super) task: Task,
    pub(super) candidate: u32,
    /// Its position among the picks.
    pub(super) pick: u32,
    /// Its gang, 0 is none, and the number of members. They follow each other.
    pub(super) gang: u32,
    pub(super) members: u32,
    pub(super) supplies: TaskSupplies,
}

impl Planned for PlannedTask {
    const UNEQUAL: bool = true;

    fn candidate(self) -> usize {
        self.candidate as usize
    }

    fn cores(self, _: &CandidateSet) -> MilliCpus {
        self.task.cores
    }

    fn allocate(self, _: &mut CandidateSet, _: &Config) -> ExecutorResources {
        let Task { cores, memory, gpus, .. } = self.task;
        ExecutorResources { cores, memory, gpus, port: None }
    }

    fn queue(self, _: &Config) -> QueueId {
        self.task.queue
    }

    fn amount(self, _: &CandidateSet, _: &Config) -> QueueAmount {
        QueueAmount::new(self.task.cores, self.task.memory)
    }

    fn tag(self) -> Option<u64> {
        Some(self.task.tag)
    }

    fn own_gpus(self, _: &Config) -> u64 {
        u64::from(self.task.gpus.get())
    }

    /// Reserves the GPUs of as many tasks as the cap allows, from the first on.
    fn reserve_gpus(
        core: &Core,
        policy: &Policy,
        candidates: &mut CandidateSet,
        plan: &mut Plan<PlannedTask>,
    ) -> Option<Reason> {
        let gpus = |planned: &PlannedTask| u64::from(planned.task.gpus.get());
        let wanted: u64 = plan.order.iter().map(gpus).sum();
        if wanted == 0 {
            return None;
        }
        let cap = policy.config.gpu_cap;
        let (mut fit, mut keep) = (0, 0);
        // No more than is kept, for however short: what is of no use to a gang isn't missing elsewhere.
        core.gpus.reserve_of(u64::from(cap.get()), |mut left| {
            let fits = |planned: &&PlannedTask| match left.checked_sub(gpus(planned)) {
                Some(rest) => {
                    left = rest;
                    true
                }
                None => false,
            };
            fit = plan.order.iter().take_while(fits).count();
            keep = Self::boundary(&plan.order, fit);
            plan.order[..keep].iter().map(gpus).sum()
        });
        let short = plan.order.get(fit).map(|planned| Reason::GpuCap {
            cap,
            acquired: Gpus::new(u32::try_from(core.gpus.taken()).unwrap_or(u32::MAX)),
            asked: planned.task.gpus,
        });
        core.release_agents(candidates, plan, keep);
        short
    }

    /// A gang is not cut in two.
    fn boundary(order: &[PlannedTask], keep: usize) -> usize {
        match order.get(keep) {
            Some(first) if first.gang > 0 => {
                let members = order[..keep].iter().rev();
                keep - members.take_while(|planned| planned.gang == first.gang).count()
            }
            _ => keep,
        }
    }

    /// Removes the gangs of which a member was removed.
    fn remove_incomplete(core: &Core, candidates: &mut CandidateSet, plan: &mut Plan<PlannedTask>) {
        let order = &mut plan.order;
        let (mut kept, mut at) = (0, 0);
        while let Some(first) = order.get(at).copied() {
            let same = |planned: &&PlannedTask| first.gang > 0 && planned.gang == first.gang;
            let count = order[at..].iter().take_while(same).count().max(1);
            if first.gang > 0 && count < first.members as usize {
                for member in &order[at..at + count] {
                    let candidate = &mut candidates.list[member.candidate()];
                    core.agents.release(candidate.agent.index(), 1);
                    candidate.placed -= 1;
                }
            } else {
                order.copy_within(at..at + count, kept);
                kept += count;
            }
            at += count;
        }
        order.truncate(kept);
    }
}
