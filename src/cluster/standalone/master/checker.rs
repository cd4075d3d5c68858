//! What must hold after each call of a master, whatever happened before.

use std::time::Duration;

use super::frameworks::FRAMEWORKS_AWAY_MAX;
use super::registered::RegisteredFramework;
use super::workers_away::OWN_WORKERS_AWAY_MAX;
use super::{MasterAction, Peer, StandaloneMaster};
use crate::cluster::standalone::protocol::WorkerResources;
use crate::mesos_v1::messages::Event;
use crate::mesos_v1::messages::event::Type;
use crate::resources::Scalar;

impl StandaloneMaster {
    /// Checks the state after a call at `now`, and what the call wants done.
    pub(super) fn assert_sound(&self, actions: &[MasterAction], now: Duration) {
        self.assert_sums_hold();
        self.assert_references_hold();
        let away = self.frameworks.values().filter(|it| it.gone_at.is_some()).count();
        assert!(away <= FRAMEWORKS_AWAY_MAX, "{away} frameworks are away");
        let away = self.workers_away();
        assert!(
            away.values().all(|away| *away <= OWN_WORKERS_AWAY_MAX),
            "{away:?} workers are away"
        );
        if !self.is_recovering() {
            let shares = self.offer_shares();
            for id in self.workers.keys() {
                let more = self.next_offer(id, &shares, self.allocated_at);
                assert_eq!(more, None, "{id} has more to offer");
            }
        }
        for action in actions {
            if let MasterAction::TellWorker { event, .. } = action {
                assert_eq!(event.check_message(), Ok(()), "a worker would hang up");
            }
            if let MasterAction::TellFramework { to, event } = action {
                self.assert_first_in_first_out(*to, event, now);
            }
        }
    }

    /// Executors and offers together are at most what their worker has. No port is given twice.
    fn assert_sums_hold(&self) {
        for (id, worker) in &self.workers {
            let tasks = worker.tasks.values().filter(|task| !task.has_ended);
            let offers = self.offers.values().filter(|offer| offer.worker == *id);
            let parts = tasks.map(|it| &it.resources).chain(offers.map(|it| &it.resources));
            let mut sum = WorkerResources::default();
            for part in parts {
                assert!(!sum.shares_ports_with(part), "a port of {id} is given twice");
                sum = sum.plus(part);
            }
            assert!(worker.total.covers(&sum), "{id} has {}, but {sum} are given", worker.total);
        }
    }

    /// Offers are of frameworks and workers that are connected; executors, workers and connections name each other.
    fn assert_references_hold(&self) {
        for offer in self.offers.values() {
            let framework = self.frameworks.get(&offer.framework).expect("an offer's framework");
            let worker = self.workers.get(&offer.worker).expect("an offer's worker");
            assert!(framework.connection.is_some() && worker.connection.is_some(), "{offer:?}");
            assert!(!worker.is_draining && !worker.is_unreachable, "{offer:?}");
        }
        for (key, id) in &self.placed {
            let worker = self.workers.get(id).expect("an executor's worker");
            assert!(worker.tasks.contains_key(key), "{key:?} isn't on {id}");
        }
        for (id, worker) in &self.workers {
            for key in worker.tasks.keys() {
                assert_eq!(self.placed.get(key), Some(id), "{key:?} on {id} can't be found");
            }
        }
        for (connection, peer) in &self.connections {
            let own = match peer {
                Peer::Framework(number) => self.frameworks.get(number).map(|it| it.connection),
                Peer::Worker(id) => self.workers.get(id).map(|it| it.connection),
            };
            assert_eq!(own, Some(Some(*connection)), "{peer:?}");
        }
    }

    /// A framework that was just offered something is not above the cap. (Executors that come back may be.)
    fn assert_cap_holds(&self, number: u64) {
        let Some(most) = self.settings.max_cores else { return };
        let id = &self.frameworks.get(&number).expect("a framework with a connection").id;
        let offers = self.offers.values().filter(|offer| offer.framework == number);
        let tasks = self.workers.values().flat_map(|worker| &worker.tasks);
        let tasks = tasks.filter(|(key, it)| key.framework == *id && !it.has_ended);
        let cores = offers.map(|it| it.resources.cpus.thousandths());
        let cores = cores.chain(tasks.map(|(_, it)| it.resources.cpus.thousandths()));
        assert!(cores.sum::<u64>() <= most.thousandths(), "{id} is above the cap");
    }

    /// What a framework was offered, no framework before it could have been offered.
    fn assert_first_in_first_out(&self, to: u64, event: &Event, now: Duration) {
        if event.r#type() != Type::Offers {
            return;
        }
        let Some(Peer::Framework(number)) = self.connections.get(&to) else { return };
        self.assert_cap_holds(*number);
        for offer in event.offers.iter().flat_map(|it| &it.offers) {
            let made = self.offers.values().find(|it| it.id == offer.id.value);
            let Some(made) = made else { continue };
            for (before, framework) in self.frameworks.range(..number) {
                let has_one = self
                    .offers
                    .values()
                    .any(|it| it.framework == *before && it.worker == made.worker);
                let cpus = made.resources.cpus.min(self.cores_that_are_left(*before, framework));
                let cut = WorkerResources { cpus, ..made.resources.clone() };
                assert!(
                    has_one
                        || cpus == Scalar::ZERO
                        || takes_nothing(framework, &made.worker, &cut, now),
                    "{} was passed over for {number}",
                    framework.id
                );
            }
        }
    }
}

impl StandaloneMaster {
    /// How many cores more a framework may be offered.
    fn cores_that_are_left(&self, number: u64, framework: &RegisteredFramework) -> Scalar {
        let Some(most) = self.settings.max_cores else { return Scalar::MAX };
        let offered = self.offers.values().filter(|offer| offer.framework == number);
        let offered = offered.map(|offer| offer.resources.cpus);
        let tasks = self.workers.values().flat_map(|worker| &worker.tasks);
        let own = tasks.filter(|(key, task)| key.framework == framework.id && !task.has_ended);
        let used = own.map(|(_, task)| task.resources.cpus);
        offered.chain(used).fold(most, Scalar::saturating_sub)
    }
}

fn takes_nothing(
    framework: &RegisteredFramework,
    worker: &str,
    resources: &WorkerResources,
    now: Duration,
) -> bool {
    framework.connection.is_none()
        || framework.suppressed
        || framework.has_declined(worker, resources, now)
}
