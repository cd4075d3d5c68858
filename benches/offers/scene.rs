//! What is decided, and why: the settings of kernel and baseline, and what happens before anything is measured.

use offermill::resources::MilliCpus;
use offermill::{Config, Kernel, TaskState};

use crate::support::fleet::Fleet;
use crate::support::locked::Locked;
use crate::support::scheduler::{Baseline, Ours, Scheduler};
use crate::support::stream::Stream;
use crate::support::{self, ENOUGH, EXECUTOR_CORES, HALF, MET, UNMET, agreement};

/// More than an agent has.
const TOO_MANY_CORES: MilliCpus = MilliCpus::from_cores(8);

/// How offers are answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    /// Declined: no agent meets the constraint.
    Unmet,
    /// Declined: there is room for one executor, which is taken.
    CapReached,
    /// Declined: an executor failed on each agent.
    Excluded,
    /// Declined: an executor takes more cores than any offer has.
    TooSmall,
    /// Every other agent doesn't meet the constraint; on the others an executor is started.
    Mixed,
    /// Accepted: an executor is started on each agent.
    Accepted,
}

impl Scene {
    pub(crate) const DECLINED: [Scene; 4] =
        [Scene::Unmet, Scene::CapReached, Scene::Excluded, Scene::TooSmall];

    /// The reason's name, of those that are declined for one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scene::Unmet => "constraint unmet",
            Scene::CapReached => "cap reached",
            Scene::Excluded => "agents excluded",
            Scene::TooSmall => "too small",
            Scene::Mixed => "half unmet",
            Scene::Accepted => "accepted",
        }
    }

    fn constraint(self) -> &'static str {
        match self {
            Scene::Unmet => UNMET,
            Scene::Mixed => HALF,
            _ => MET,
        }
    }

    fn cap(self) -> MilliCpus {
        if self == Scene::CapReached { EXECUTOR_CORES } else { ENOUGH }
    }

    fn config(self) -> Config {
        let cores = if self == Scene::TooSmall { TOO_MANY_CORES } else { EXECUTOR_CORES };
        support::config_of(cores, self.constraint(), Some(self.cap()))
    }

    fn starts_executors(self) -> bool {
        matches!(self, Scene::Mixed | Scene::Accepted)
    }

    pub(crate) fn kernel(self) -> Kernel {
        support::kernel(&self.config())
    }

    pub(crate) fn baseline(self) -> Baseline {
        Baseline::new(&self.config(), self.constraint(), self.cap())
    }

    pub(crate) fn locked(self) -> Locked {
        Locked::new(&self.config(), self.constraint(), self.cap())
    }

    /// Brings about what the scene is about, by offers and updates as a cluster would send them.
    fn prepare(self, scheduler: &mut impl Scheduler, fleet: &Fleet) {
        let mut names = Vec::new();
        match self {
            Scene::CapReached => {
                fleet.met.iter().take(1).for_each(|batch| scheduler.answer(batch));
            }
            Scene::Excluded => {
                for batch in &fleet.met {
                    scheduler.answer(batch);
                    scheduler.names(&mut names);
                    scheduler.update_all(&names, TaskState::Failed);
                }
            }
            _ => {}
        }
    }

    /// A stream of the fleet's offers to a scheduler that has met its agents, where executors may start on and end.
    pub(crate) fn stream<D: Scheduler>(self, mut scheduler: D, fleet: &Fleet) -> Stream<D> {
        self.prepare(&mut scheduler, fleet);
        Stream::new(scheduler, fleet)
    }

    /// Kernel and baseline, once they were seen to decide alike before and after they are prepared; as many executors
    /// alive as are kept, if any are started.
    pub(crate) fn pair(self, fleet: &Fleet) -> (Stream<Ours>, Stream<Baseline>) {
        let (mut ours, mut baseline) = (Ours::new(&self.kernel()), self.baseline());
        agreement::check(&mut ours, &mut baseline, fleet);
        self.prepare(&mut ours, fleet);
        self.prepare(&mut baseline, fleet);
        agreement::check(&mut ours, &mut baseline, fleet);
        let (ours, baseline) = (Stream::new(ours, fleet), Stream::new(baseline, fleet));
        if self.starts_executors() { (ours.filled(), baseline.filled()) } else { (ours, baseline) }
    }
}
