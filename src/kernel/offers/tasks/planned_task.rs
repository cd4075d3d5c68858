//! [`PlannedTask`]: a task in a plan, and what is special about plans of tasks: unequal amounts, tags, gangs.

use super::picks::Task;
use crate::config::{Config, QueueId};
use crate::kernel::Core;
use crate::kernel::offers::candidates::CandidateSet;
use crate::kernel::offers::commit::{Plan, Planned};
use crate::kernel::offers::eligibility::TaskSupplies;
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

    /// The rest of a gang.
    fn group(order: &[PlannedTask]) -> usize {
        let Some(first) = order.first() else { return 1 };
        let same = |planned: &&PlannedTask| first.gang > 0 && planned.gang == first.gang;
        order.iter().take_while(same).count().max(1)
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
            let count = Self::group(&order[at..]);
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::Queue;
    use crate::kernel::Kernel;
    use crate::kernel::offers::agent_cache::AgentCache;
    use crate::kernel::state::agents::AgentKey;
    use crate::resources::Mebibytes;
    use crate::{IdScheme, Offer, Resource, Timestamp};

    /// A task of the first candidate, in a gang of this number of members.
    fn planned(pick: u32, gang: u32, members: u32) -> PlannedTask {
        let supplies = TaskSupplies::FIRM;
        let task = Task::new(0, MilliCpus::from_millis(1), Mebibytes::new(1));
        PlannedTask { task, candidate: 0, pick, gang, members, supplies }
    }

    /// The candidate that one offer makes.
    fn candidates(core: &Core) -> CandidateSet {
        let resources = [("cpus", 8.0), ("mem", 8000.0), ("gpus", 8.0)];
        let resources = resources.map(|(name, amount)| Resource::scalar(name, amount));
        let offers = [Offer::new("offer", "S1", "host", &resources, &[])];
        let (mut candidates, mut agent_cache) = (CandidateSet::default(), AgentCache::new());
        let (policy, now) = (core.policy.load(), Timestamp::ORIGIN);
        let cache = &mut agent_cache;
        candidates.collect(&offers, &policy, cache, &core.agents, now, &mut Vec::new());
        candidates
    }

    /// The candidate, on this agent.
    fn candidates_on(core: &Core, agent: AgentKey) -> CandidateSet {
        let mut candidates = candidates(core);
        candidates.list[0].agent = agent;
        candidates
    }

    /// Goal: when agents have refused some tasks of a plan, the gangs that miss one are removed, their other members
    /// are counted off their agent, and all else stays in order. Method: each subset of a plan of single tasks, two
    /// gangs and a gang of one, on an agent that counts what is left and more.
    #[test]
    fn gangs_that_miss_a_member_are_removed() {
        const GANGS: [(u32, u32); 8] =
            [(0, 1), (1, 3), (1, 3), (1, 3), (2, 2), (2, 2), (0, 1), (3, 1)];
        const OTHERS: u32 = 5;
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let (core, now) = (&*kernel.0, Timestamp::ORIGIN);
        let agents = &core.agents;
        let agent = agents.find_or_insert("S1", "host", now).unwrap();
        let mut candidates = candidates_on(core, agent);
        for subset in 0..1_u32 << GANGS.len() {
            let is_left = |pick: &u32| subset & 1 << pick != 0;
            let left: Vec<u32> = (0..GANGS.len() as u32).filter(is_left).collect();
            let gang = |pick: u32| GANGS[pick as usize];
            let members = |of: u32| left.iter().filter(|pick| gang(**pick).0 == of).count();
            let is_whole = |pick: &&u32| match gang(**pick) {
                (0, _) => true,
                (of, all) => members(of) == all as usize,
            };
            let whole: Vec<u32> = left.iter().filter(is_whole).copied().collect();
            let held = OTHERS + left.len() as u32;
            agents.reserve(agent, held, now).unwrap();
            candidates.list[0].placed = held;
            let mut plan = Plan::new(0);
            plan.order.extend(left.iter().map(|pick| planned(*pick, gang(*pick).0, gang(*pick).1)));
            PlannedTask::remove_incomplete(core, &mut candidates, &mut plan);
            let kept: Vec<u32> = plan.order.iter().map(|planned| planned.pick).collect();
            assert_eq!(kept, whole, "of {left:?}");
            let counted = OTHERS + whole.len() as u32;
            assert_eq!((agents.executors(agent), candidates.list[0].placed), (counted, counted));
            agents.release(agent.index(), counted);
        }
    }

    /// Goal: a plan that is booked one by one keeps what its queues have room for: single tasks, and gangs as a whole.
    /// Method: tasks of one core of two queues with room for two and three of them, after too many plans of which the
    /// queues had no room for all.
    #[test]
    fn gangs_are_booked_as_a_whole() {
        let cores = MilliCpus::from_cores;
        let queue = |name, most| Queue::new(name).max_cores(Some(cores(most)));
        let config = Config::builder().queue(queue("a", 2)).queue(queue("b", 3)).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        let (core, now) = (&*kernel.0, Timestamp::ORIGIN);
        let agent = core.agents.find_or_insert("S1", "host", now).unwrap();
        let (mut candidates, policy) = (candidates_on(core, agent), core.policy.load());
        let tasks = [(1, 1, 2), (1, 2, 2), (2, 1, 2), (2, 1, 2), (0, 1, 1), (3, 2, 2), (3, 2, 2)];
        let mut plan = Plan::new(0);
        for round in 0.. {
            plan.clear();
            core.agents.reserve(agent, tasks.len() as u32, now).unwrap();
            candidates.list[0].placed = tasks.len() as u32;
            for ((gang, queue, members), pick) in tasks.iter().zip(0..) {
                let planned = planned(pick, *gang, *members);
                let task = Task::new(0, cores(1), Mebibytes::new(1)).in_queue(QueueId::new(*queue));
                plan.order.push(PlannedTask { task, ..planned });
            }
            if core.claim_queues(&policy, &mut candidates, &mut plan) {
                break;
            }
            assert!(round < 100, "it is tried for ever");
            core.release_agents(&mut candidates, &mut plan, 0);
        }
        let kept: Vec<u32> = plan.order.iter().map(|planned| planned.pick).collect();
        assert_eq!(kept, [0, 1, 4, 5, 6], "the second gang found room for one of its two");
        assert_eq!((core.agents.executors(agent), candidates.list[0].placed), (5, 5));
        assert_eq!([1, 2].map(|queue| kernel.queues()[queue].cores), [cores(2), cores(3)]);
    }

    /// Goal: a gang is cut off as a whole, and nothing else with it. Method: for plans of a few gangs, the number of
    /// tasks that is kept for each that would fit.
    #[test]
    fn gangs_are_not_cut_in_two() {
        for (gangs, kept) in [
            (&[0, 0, 0][..], &[0, 1, 2, 3, 3][..]),
            (&[1, 1, 1], &[0, 0, 0, 3]),
            (&[0, 1, 1, 0, 0], &[0, 1, 1, 3, 4, 5]),
            (&[1, 1, 2, 2], &[0, 0, 2, 2, 4]),
        ] {
            let order: Vec<PlannedTask> = gangs.iter().map(|gang| planned(0, *gang, 1)).collect();
            for (fit, kept) in kept.iter().enumerate() {
                // What lies behind the plan's end cuts nothing.
                let fit = fit.min(order.len());
                assert_eq!(PlannedTask::boundary(&order, fit), *kept, "{fit} of {gangs:?}");
            }
        }
    }

    /// Goal: what a plan that is cut off had reserved of GPUs is given back, as much as each task had. Method: plans of
    /// tasks with different numbers of GPUs, and others that were admitted since, under a limit of three.
    #[test]
    fn tasks_that_are_cut_off_give_back_their_gpus() {
        let builder = Config::builder().executor_limit(Some(3)).gpu_cap(Gpus::new(100));
        let config = builder.build().unwrap();
        for others in 0..4 {
            let kernel = Kernel::new(config.clone(), IdScheme::plain());
            let core = &*kernel.0;
            let (policy, seen) = (core.policy.load(), core.admission.load());
            let commit = |gpus: &[u32]| {
                let (mut candidates, mut plan) = (candidates(core), Plan::new(0));
                plan.order.extend(gpus.iter().zip(0..).map(|(gpus, pick)| {
                    let planned = planned(pick, 0, 1);
                    PlannedTask { task: Task { gpus: Gpus::new(*gpus), ..planned.task }, ..planned }
                }));
                core.commit(&policy, seen, &mut candidates, &mut plan, Timestamp::ORIGIN);
                plan.order.len()
            };
            assert_eq!(commit(&vec![1; others]), others);
            assert_eq!(commit(&[1, 2, 4]), 3 - others);
            let kept: u64 = [1, 2, 4][..3 - others].iter().sum();
            assert_eq!(core.gpus.taken(), others as u64 + kept);
            kernel.check().unwrap();
        }
    }
}
