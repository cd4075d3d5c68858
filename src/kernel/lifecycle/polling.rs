//! Polling for suppress and revive, and the beginning of subscriptions.

use crate::kernel::Core;
use crate::kernel::state::demand::DemandCall;
use crate::time::Timestamp;

impl Core {
    /// Returns the call that is due. If `subscription` is given and not the current one, returns none.
    pub(crate) fn poll_demand(
        &self,
        subscription: Option<u64>,
        now: Timestamp,
    ) -> Option<DemandCall> {
        let mut demand = self.demand.lock();
        let in_force = |number| number == self.subscription.epoch();
        if !self.subscription.connected() || !subscription.is_none_or(in_force) {
            return None;
        }
        let policy = self.policy.load();
        let admission = self.admission.load();
        let has_room = !admission.closed() && self.caps_reached(&policy, admission).is_none();
        let interval = policy.config.revive_interval;
        let mut call = demand.poll(has_room, interval, now);
        if call.is_none() && has_room {
            let answered = self.counters.sum().offers;
            let refusal = policy.config.refuse.longest();
            if !demand.watchdog_has_expired(answered, refusal, now) {
                return None;
            }
            self.demand.request_revive();
            call = demand.poll(has_room, interval, now);
        }
        if call.is_some() {
            demand.reset_watchdog();
        }
        call
    }

    /// Begins a subscription.
    pub(crate) fn registered(&self) -> u64 {
        let mut demand = self.demand.lock();
        demand.reset();
        self.subscription.begin()
    }
}
