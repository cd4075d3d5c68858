//! Commits of plans that were made for an earlier state of the kernel, and of plans beyond a cap.

use super::*;
use crate::config::{ConfigBuilder, ExecutorCores, Queue};
use crate::kernel::offers::agent_cache::AgentCache;
use crate::{Config, IdScheme, Kernel, Offer, Resource, StatusUpdate, TaskState};

const NOW: Timestamp = Timestamp::ORIGIN;

/// The settings of a kernel whose executors have one core and one GPU.
fn builder() -> ConfigBuilder {
    Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_gpus(ExecutorGpus::Exactly(Gpus::new(1)))
        .gpu_cap(Gpus::new(100))
}

/// A plan of executors on one agent, and the admission word for which it was made.
struct MadePlan {
    candidates: CandidateSet,
    plan: Plan,
    admission: AdmissionState,
}

impl MadePlan {
    fn new(kernel: &Kernel, executors: usize) -> MadePlan {
        let core = &*kernel.0;
        let admission = core.admission.load();
        let scalar = |name, value| Resource::scalar(name, value);
        let resources = [scalar("cpus", 8.0), scalar("mem", 80_000.0), scalar("gpus", 8.0)];
        let offers = [Offer::new("offer", "S1", "host", &resources, &[])];
        let (mut candidates, mut agent_cache) = (CandidateSet::default(), AgentCache::new());
        let policy = core.policy.load();
        let agents = &core.agents;
        candidates.collect(&offers, &policy, &mut agent_cache, agents, NOW, &mut Vec::new());
        let mut plan = Plan::new(core.executors.assign_stack());
        plan.order.resize(executors, 0);
        MadePlan { candidates, plan, admission }
    }

    fn commit(&mut self, kernel: &Kernel, policy: &Policy) -> Committed {
        let MadePlan { candidates, plan, admission } = self;
        kernel.0.commit(policy, *admission, candidates, plan, NOW)
    }

    /// The executors that the agent counts, and the GPUs that are taken.
    fn held(&self, kernel: &Kernel) -> (u32, u64) {
        let agent = self.candidates.list[0].agent;
        (kernel.0.agents.executors(agent), kernel.0.gpus.taken())
    }
}

/// Goal: if others were admitted since a plan was made, it is cut off to what still fits. Method: plans of three, and
/// up to five others, under a limit of five executors, and under a cap of five cores.
#[test]
fn a_plan_is_cut_off_to_what_still_fits() {
    let limited = builder().executor_limit(Some(5)).build().unwrap();
    let capped = builder().core_cap(Some(MilliCpus::from_cores(5))).build().unwrap();
    for (config, others) in [limited, capped].iter().flat_map(|it| (0..6).map(move |n| (it, n))) {
        let kernel = Kernel::new(config.clone(), IdScheme::plain());
        let policy = kernel.0.policy.load();
        let mut late = MadePlan::new(&kernel, 3);
        let mut first = MadePlan::new(&kernel, others);
        assert!(matches!(first.commit(&kernel, &policy), Committed::Done(_)));
        assert_eq!(first.plan.order.len(), others);
        let Committed::Done(reached) = late.commit(&kernel, &policy) else { panic!("outdated") };
        let executors = (others + 3).min(5);
        assert_eq!(late.plan.order.len(), executors - others);
        assert_eq!(reached.is_some_and(|reason| reason.is_cap()), executors == 5);
        assert_eq!(kernel.totals().executors as usize, executors);
        assert_eq!(late.held(&kernel), (executors as u32, executors as u64));
        kernel.check().unwrap();
    }
}

/// Goal: a cap that isn't reached any more when a plan is admitted ends no batch. Method: a plan up to the limit, and
/// an end after it was made.
#[test]
fn a_cap_is_reached_only_if_it_still_is() {
    for is_ended in [false, true] {
        let kernel =
            Kernel::new(builder().executor_limit(Some(2)).build().unwrap(), IdScheme::plain());
        let policy = kernel.0.policy.load();
        MadePlan::new(&kernel, 1).commit(&kernel, &policy);
        let mut late = MadePlan::new(&kernel, 1);
        if is_ended {
            kernel.status_update(&StatusUpdate::new("0", TaskState::Finished), NOW);
        }
        let Committed::Done(reached) = late.commit(&kernel, &policy) else { panic!("outdated") };
        assert_eq!(reached, (!is_ended).then_some(Reason::ExecutorLimit { limit: 2 }));
        kernel.check().unwrap();
    }
}

/// Goal: a plan gives everything back if the kernel was closed since it was made, and if the settings were changed.
/// Method: both, with plain ids and others.
#[test]
fn a_plan_that_is_too_late_gives_everything_back() {
    for ids in [IdScheme::plain(), IdScheme::unique("job", 36).unwrap()] {
        for closed in [false, true] {
            let kernel = Kernel::new(builder().build().unwrap(), ids.clone());
            let policy = kernel.0.policy.load();
            let mut late = MadePlan::new(&kernel, 3);
            let expected = if closed {
                kernel.close();
                Committed::Done(Some(Reason::Stopping))
            } else {
                kernel.reconfigure(builder().executor_limit(Some(5)).build().unwrap());
                Committed::Outdated
            };
            assert_eq!(late.commit(&kernel, &policy), expected);
            assert_eq!((late.plan.order.len(), late.held(&kernel)), (0, (0, 0)));
            assert_eq!(kernel.totals().executors, 0);
            kernel.check().unwrap();
        }
    }
}

/// Goal: a plan whose queue has less room than it was made for is made again a few times, then placed as far as there
/// is room, and marked for a revive. Method: plans of three executors in a queue with room for two, of which another
/// takes one.
#[test]
fn a_plan_that_loses_too_often_takes_what_there_is() {
    let queue = Queue::new("q").max_cores(Some(MilliCpus::from_cores(2)));
    let config = builder().queue(queue).executor_queue(QueueId::new(1)).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let policy = kernel.0.policy.load();
    let mut late = MadePlan::new(&kernel, 3);
    assert_eq!(MadePlan::new(&kernel, 1).commit(&kernel, &policy), Committed::Done(None));
    for _ in 0..8 {
        assert_eq!(late.commit(&kernel, &policy), Committed::Outdated);
        assert_eq!((late.plan.order.len(), late.held(&kernel)), (0, (1, 1)));
        kernel.check().unwrap();
        late.plan.clear();
        late.plan.order.resize(3, 0);
    }
    assert_eq!(late.commit(&kernel, &policy), Committed::Done(None));
    assert_eq!((late.plan.order.len(), late.held(&kernel)), (1, (2, 2)));
    assert!(late.plan.contended);
    kernel.check().unwrap();
    late.plan.clear();
    late.plan.order.resize(1, 0);
    assert_eq!(late.commit(&kernel, &policy), Committed::Outdated, "it is counted from 0 again");
}

/// Goal: a plan beyond the GPU cap is cut off there, which is told only then. Method: plans around a cap of two GPUs.
#[test]
fn a_plan_ends_at_the_gpu_cap() {
    for executors in 1..5 {
        let config = builder().gpu_cap(Gpus::new(2)).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::plain());
        let policy = kernel.0.policy.load();
        let MadePlan { mut candidates, mut plan, .. } = MadePlan::new(&kernel, executors);
        kernel.0.reserve_agents(&mut candidates, &mut plan, NOW);
        let reason = kernel.0.reserve_equal_gpus(&policy, &mut candidates, &mut plan);
        assert_eq!(plan.order.len(), executors.min(2));
        assert_eq!(reason.is_some(), executors > 2);
    }
}
