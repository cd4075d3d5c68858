//! Wanted hosts: a thread that sees them waits, and takes counted executors into account.

use std::time::Duration;

use loom::sync::Arc;

use super::scenes::{LATER, NOW, config, kernel, offer_from, offer_of, offer_to};
use super::{explore, race};
use crate::kernel::state::admission::Admission;
use crate::kernel::state::agents::{AgentKey, AgentTable};
use crate::kernel::state::locality::{Locality, WantedHost};
use crate::resources::MilliCpus;
use crate::{Decisions, Kernel, Timestamp};

/// A batch long after the last one, while `set` wants another host. The wait is shorter than the time between the
/// batches, so only a wait that begins anew prevents a placement.
fn batch_and_setter(set: fn(&Kernel)) {
    let kernel = kernel(config().locality_wait(Some(Duration::from_millis(500))));
    let (here, there) = (kernel.clone(), kernel.clone());
    let mut handler = here.handler();
    let ((), after_setting) = race(
        move || {
            let mut decisions = Decisions::new();
            offer_of("S0", 1, |offers| handler.resource_offers(offers, LATER, &mut decisions));
        },
        move || {
            set(&there);
            there.totals().executors
        },
    );
    assert_eq!(kernel.totals().executors, after_setting, "nobody waited for the new hosts");
}

/// Goal: once `set_locality` has returned, nothing starts elsewhere before the wait is over. Method: a concurrent
/// batch; the count after the setter bounds that at the end.
#[test]
fn threads_that_see_hosts_wait() {
    explore("locality/set-launch", Some(3), || {
        batch_and_setter(|kernel| kernel.set_locality(["elsewhere"]));
    });
}

/// Mutant: the hosts are published before the wait begins anew.
#[test]
#[ignore = "mutant"]
fn mutant_hosts_before_the_wait() {
    explore("mutant locality/set-launch", Some(3), || {
        batch_and_setter(|kernel| {
            let core = &*kernel.0;
            let locality = Locality::new(["elsewhere"], Timestamp::ORIGIN, &core.agents);
            core.policy.set_locality(std::sync::Arc::new(locality), |limit| limit, &core.admission);
            core.locality_clock.pause();
        });
    });
}

/// An executor is placed while hosts are set by `set`, its own among them. The wait is not over afterwards, and another
/// agent of the host is offered.
fn placement_and_setter(set: fn(&Kernel)) {
    let kernel = kernel(config().locality_wait(Some(Duration::from_millis(500))));
    let there = kernel.clone();
    let mut handler = kernel.handler();
    let (placed, ()) = race(move || offer_to(&mut handler, "S0", 1).len(), move || set(&there));
    let again = offer_from(&kernel, "S1", 1).len();
    assert_eq!(placed + again, 1, "{placed} on the host, and then {again}");
}

/// Goal: once hosts are set, all executors on them are taken into account. Method: a batch that may not know the hosts
/// is answered while they are set; then a further agent of the host is offered.
#[test]
fn setters_of_hosts_see_concurrent_placements() {
    explore("locality/set-place", Some(3), || {
        placement_and_setter(|kernel| kernel.set_locality(["host"]));
    });
}

/// Mutant: agents with executors are listed before the hosts are published, and not again.
#[test]
#[ignore = "mutant"]
fn mutant_one_look_at_holders() {
    explore("mutant locality/set-place", Some(3), || {
        placement_and_setter(|kernel| {
            let core = &*kernel.0;
            let locality = Locality::new(["host"], Timestamp::ORIGIN, &core.agents);
            core.locality_clock.pause();
            core.policy.set_locality(std::sync::Arc::new(locality), |limit| limit, &core.admission);
        });
    });
}

struct Place {
    host: WantedHost,
    agents: AgentTable,
    admission: Admission,
}

impl Place {
    fn launch(&self, agent: AgentKey) {
        self.agents.reserve(agent, 1, NOW).unwrap();
        self.admission.commit(self.admission.load(), 1, MilliCpus::from_cores(1)).unwrap();
    }
}

/// An executor is placed on an agent of a wanted host by `place`, while another handler examines the host.
fn placement_and_look(place: fn(&Place, AgentKey)) {
    let agents = AgentTable::new();
    let agent = agents.find_or_insert("S0", "host", NOW).unwrap();
    let shared = Arc::new(Place { host: WantedHost::new(0), agents, admission: Admission::new() });
    let (here, there) = (Arc::clone(&shared), shared);
    race(
        move || place(&here, agent),
        move || {
            let counted = there.admission.load().executors() > 0;
            assert!(!counted || there.host.has_executors(&there.agents), "counted, not seen");
        },
    );
}

/// Goal: a thread that sees an executor counted sees that its host has one. Method: a placement and a check at once.
#[test]
fn a_counted_executor_is_seen_on_its_host() {
    explore("locality/place-look", None, || {
        placement_and_look(|place, agent| {
            place.host.record(agent, &place.agents);
            place.launch(agent);
        });
    });
}

/// Mutant: the agent is listed after its executor is admitted.
#[test]
#[ignore = "mutant"]
fn mutant_noted_too_late() {
    explore("mutant locality/place-look", None, || {
        placement_and_look(|place, agent| {
            place.launch(agent);
            place.host.record(agent, &place.agents);
        });
    });
}
