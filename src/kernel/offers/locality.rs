//! Locality: during the locality wait, executors start only on requested hosts that have no executor yet.
//!
//! The wanted hosts and their words are in [`state::locality`](crate::kernel::state::locality).
//!
//! Handlers don't wait for each other: two handlers that examine one host at once may each place an executor there.
//! Until the setter has returned, a host may get an executor although a batch that doesn't know the new hosts has just
//! placed one there.

use std::sync::Arc;

use super::candidates::CandidateSet;
use crate::error::Error;
use crate::kernel::reason::Reason;
use crate::kernel::state::agents::AgentTable;
use crate::kernel::state::locality::Locality;
use crate::kernel::state::policy::{Policy, check_limit};
use crate::kernel::{Core, Kernel};
use crate::offer::Offer;
use crate::time::Timestamp;

/// Filters a batch's candidates by the wanted hosts.
#[derive(Debug)]
pub(crate) struct LocalityFilter<'a> {
    locality: &'a Locality,
    /// Until when only wanted hosts may be used, if the wait lasts.
    until: Option<Timestamp>,
}

impl LocalityFilter<'_> {
    /// Whether wanted hosts are waited for, and each takes one executor.
    pub(in crate::kernel) fn is_waiting(&self) -> bool {
        self.until.is_some()
    }

    /// Leaves capacity for one executor on each wanted host that has none, and none elsewhere. Call it when all other
    /// reasons to decline an offer are known.
    #[inline(never)]
    pub(crate) fn apply(
        &self,
        candidates: &mut CandidateSet,
        offers: &[Offer<'_>],
        agents: &AgentTable,
        taken: &mut Vec<bool>,
    ) {
        taken.clear();
        taken.resize(self.locality.hosts.len(), false);
        // In the order in which capacities are used.
        for last in [false, true] {
            for (candidate, room) in candidates.list.iter_mut().zip(&mut candidates.capacities) {
                let Some(offer) = offers.get(candidate.first as usize) else { continue };
                if room.executors == 0 || room.last != last || candidate.is_late() {
                    continue;
                }
                let host = self.locality.hosts.get(offer.hostname);
                if let Some(host) = host {
                    host.record(candidate.agent, agents);
                }
                let Some(until) = self.until else { continue };
                let has_own = agents.executors(candidate.agent) > 0;
                let place = host.filter(|host| !has_own && !host.has_executors(agents));
                match place.and_then(|host| taken.get_mut(host.at)) {
                    Some(taken) if !*taken => {
                        *taken = true;
                        room.executors = 1;
                    }
                    _ => {
                        room.executors = 0;
                        candidate.reason = Some(Reason::Locality { until });
                    }
                }
            }
        }
    }
}

impl Core {
    fn set_locality(&self, locality: Locality, limit: impl FnOnce(Option<u32>) -> Option<u32>) {
        let locality = Arc::new(locality);
        if self.policy.set_locality(Arc::clone(&locality), limit, &self.admission) {
            // From now on each commit follows a policy that has these or later hosts.
            locality.record_holders(&self.agents);
        }
    }

    /// The filter for a batch that begins now, if hosts are wanted and a wait is configured. `closed` is the reason for
    /// which no offer can be used, whatever its host.
    #[inline]
    pub(crate) fn locality_filter<'p>(
        &self,
        policy: &'p Policy,
        closed: Option<&Reason>,
        now: Timestamp,
    ) -> Option<LocalityFilter<'p>> {
        let wait = policy.config.locality_wait?;
        match closed {
            Some(Reason::ExecutorLimit { .. }) => {
                self.locality_clock.pause();
                return None;
            }
            Some(Reason::Stopping | Reason::Disconnected) => return None,
            _ => {}
        }
        let locality = &*policy.locality;
        let since = self.locality_clock.since(now).max(locality.asked_at);
        // The last millisecond belongs to the wait.
        let until = since.plus(wait).plus(std::time::Duration::from_millis(1));
        let locality_filter = LocalityFilter { locality, until: (now < until).then_some(until) };
        (!locality.hosts.is_empty()).then_some(locality_filter)
    }
}

impl Kernel {
    /// Sets the hosts on which executors should start; replaces all former ones. Without hosts they start anywhere. Has
    /// an effect only with a [`locality_wait`](crate::ConfigBuilder::locality_wait), which starts anew with the next
    /// batch below the executor limit.
    ///
    /// During the wait, an offer is used only if its host is wanted and has no executor of this kernel, and each wanted
    /// host gets one. Once this has returned, no batch follows the former hosts, and all executors placed before are
    /// taken into account. With several threads the wait is a preference, not a cap: two handlers that examine one host
    /// at once may each place an executor there, and so may a batch that begins before this has returned.
    ///
    /// O(hosts and agents) on the caller's thread; handlers never wait for it. Blocks as [`Kernel::set_executor_limit`]
    /// does.
    pub fn set_locality<'a>(&self, hosts: impl IntoIterator<Item = &'a str>) {
        let core = &*self.0;
        let locality = Locality::new(hosts, Timestamp::ORIGIN, &core.agents);
        // Before the hosts are published: batches that see them start the wait.
        core.locality_clock.pause();
        core.set_locality(locality, |limit| limit);
    }

    /// Sets the executor limit and the wanted hosts in one step, as dynamic allocation does; see
    /// [`Kernel::set_executor_limit`] and [`Kernel::set_locality`]. The wait for wanted hosts starts anew at `now`.
    /// (`set_executor_limit` alone leaves hosts and wait as they are.) Blocks as [`Kernel::set_executor_limit`] does.
    ///
    /// # Errors
    /// Fails if the limit exceeds [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX). Then nothing changes.
    pub fn request_executors<'a>(
        &self,
        limit: Option<u32>,
        hosts: impl IntoIterator<Item = &'a str>,
        now: Timestamp,
    ) -> Result<(), Error> {
        check_limit(limit)?;
        let core = &*self.0;
        let locality = Locality::new(hosts, now, &core.agents);
        core.set_locality(locality, |_| limit);
        Ok(())
    }
}
