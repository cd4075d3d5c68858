//! What happens because time passes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::allocation::REFUSE_DEFAULT;
use super::statuses::event;
use super::{MasterNotice, Peer, StandaloneMaster};
use crate::cluster::standalone::protocol::WorkerEvent;
use crate::mesos_v1::messages::TaskState;
use crate::mesos_v1::messages::event::Type;

/// How long an unreachable worker is remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(15 * 60);
/// The time for which an offer is open.
const OFFER_TIMEOUT: Duration = Duration::from_secs(60);

/// The shortest time without a tick that is a standstill: some ticks.
const STANDSTILL_MIN: Duration = Duration::from_secs(1);

impl StandaloneMaster {
    /// Does what is due. To be called once a second or more often.
    pub fn tick(&mut self, now: Duration) {
        self.notice_standstill(now);
        if self.recovering_until.is_some_and(|until| until <= now) {
            self.finish_recovery(now);
        }
        self.rescind_old_offers(now);
        self.watch_workers(now);
        self.remove_gone_frameworks(now);
        self.bound_workers_away();
        if self.next_heartbeat <= now {
            self.next_heartbeat = now + self.settings.heartbeat();
            self.send_heartbeats();
        }
        self.allocate(now);
    }

    /// Time in which this master couldn't hear workers isn't their silence: its process was stopped, or
    /// the machine slept.
    fn notice_standstill(&mut self, now: Duration) {
        let still = now.saturating_sub(self.ticked_at);
        self.ticked_at = now;
        if still >= self.settings.heartbeat().max(STANDSTILL_MIN) {
            self.notices.push(MasterNotice::StoodStill { time: still });
            for worker in self.workers.values_mut() {
                worker.heard_at = now.min(worker.heard_at.saturating_add(still));
            }
        }
    }

    fn rescind_old_offers(&mut self, now: Duration) {
        let is_old = |made_at: Duration| made_at + OFFER_TIMEOUT <= now;
        let old = self.offers.values().filter(|offer| is_old(offer.made_at));
        let old: Vec<_> =
            old.map(|it| (it.framework, it.worker.clone(), it.resources.clone())).collect();
        self.rescind(|offer| is_old(offer.made_at));
        let mut unanswered = BTreeMap::<u64, usize>::new();
        old.iter().for_each(|(framework, ..)| *unanswered.entry(*framework).or_default() += 1);
        for (number, offers) in unanswered {
            if let Some(framework) = self.frameworks.get(&number) {
                let (id, principal) = (framework.id.clone(), framework.info.principal.clone());
                let rescinded = MasterNotice::OffersRescinded { framework: id, principal, offers };
                self.notices.push(rescinded);
            }
        }
        for (framework, worker, resources) in old {
            self.hold_back(framework, &worker, resources, REFUSE_DEFAULT, now);
        }
    }

    fn watch_workers(&mut self, now: Duration) {
        if self.is_recovering() {
            return;
        }
        let silent = self.workers.iter().filter_map(|(id, worker)| {
            let silence = now.saturating_sub(worker.heard_at);
            (silence >= self.settings.worker_timeout)
                .then(|| (id.clone(), silence, worker.is_unreachable))
        });
        let silent: Vec<_> = silent.collect();
        for (id, silence, is_unreachable) in silent {
            if silence >= self.settings.worker_timeout.saturating_add(REMEMBERED_FOR) {
                self.forget_worker(&id, TaskState::Unreachable, "it was silent for too long");
            } else if !is_unreachable {
                self.give_up_worker(&id);
            }
        }
    }

    fn send_heartbeats(&mut self) {
        let mut peers: Vec<_> =
            self.connections.iter().map(|(it, peer)| (*it, peer.clone())).collect();
        peers.sort_by_key(|(connection, _)| *connection);
        for (_, peer) in peers {
            match peer {
                Peer::Framework(number) => self.tell_framework(number, event(Type::Heartbeat)),
                Peer::Worker(id) => self.tell_worker(&id, WorkerEvent::Heartbeat),
            }
        }
    }
}
