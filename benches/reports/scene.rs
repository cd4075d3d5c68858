//! Ten thousand executors on as many agents, and what has been declined before.

use offermill::Kernel;

use crate::support::fleet::Fleet;
use crate::support::locked::Locked;
use crate::support::scheduler::{Ours, Scheduler};
use crate::support::stream::{EXECUTORS_LIVE, Stream};
use crate::support::unmatched::unmatched;
use crate::support::{self, ENOUGH, MET};

pub(crate) const BATCH: usize = 100;

/// A scheduler under load, and the object that takes its snapshots.
pub(crate) struct Scene<D, P> {
    pub(crate) stream: Stream<D>,
    pub(crate) pictured: P,
}

impl<D: Scheduler, P> Scene<D, P> {
    fn new(mut scheduler: D, pictured: P) -> Scene<D, P> {
        let fleet = Fleet::new(EXECUTORS_LIVE, BATCH);
        // So that there is something to explain.
        unmatched(&fleet).met.iter().for_each(|batch| scheduler.answer(batch));
        Scene { stream: Stream::new(scheduler, &fleet).filled(), pictured }
    }
}

pub(crate) fn ours() -> Scene<Ours, Kernel> {
    let kernel = support::kernel(&support::config(MET, None));
    let scene = Scene::new(Ours::new(&kernel), kernel);
    assert_eq!(scene.pictured.totals().executors as usize, EXECUTORS_LIVE);
    scene
}

pub(crate) fn mutex() -> Scene<Locked, Locked> {
    let locked = Locked::new(&support::config(MET, None), MET, ENOUGH);
    let scene = Scene::new(locked.clone(), locked);
    assert_eq!(scene.pictured.plain().totals().0 as usize, EXECUTORS_LIVE);
    scene
}
