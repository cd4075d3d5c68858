//! Ten thousand executors on as many agents, and what has been declined before.

use offermill::Kernel;

use crate::support::desk::{Desk, Ours};
use crate::support::fleet::Fleet;
use crate::support::locked::Locked;
use crate::support::stream::{EXECUTORS_LIVE, Stream};
use crate::support::unmatched::strangers;
use crate::support::{self, ENOUGH, MET};

pub(crate) const BATCH: usize = 100;

/// A desk that works, and what can be asked for pictures meanwhile.
pub(crate) struct Scene<D, P> {
    pub(crate) stream: Stream<D>,
    pub(crate) pictured: P,
}

impl<D: Desk, P> Scene<D, P> {
    fn new(mut desk: D, pictured: P) -> Scene<D, P> {
        let fleet = Fleet::new(EXECUTORS_LIVE, BATCH);
        // So that there is something to explain.
        strangers(&fleet).met.iter().for_each(|batch| desk.answer(batch));
        Scene { stream: Stream::new(desk, &fleet).filled(), pictured }
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
