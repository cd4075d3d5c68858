//! Sums of the picture of the cluster's capacity, over agents of many shards and over roles.

use std::time::Duration;

use offermill::config::ExecutorCores;
use offermill::resources::MilliCpus;
use offermill::{
    Config, Decisions, IdScheme, Kernel, Offer, Resource, ResourceSums, Revocability, StatusUpdate,
    TaskState,
};

use crate::world::at;

/// Goal: an offer that is all reserved, or all revocable, is shown as such, also when it changes to another kind with
/// equal amounts. Method: one agent, whose offers differ in that alone, as often as it takes; each comes with one more
/// MiB, so that it is recorded.
#[test]
fn reserved_and_revocable_offers_are_shown_as_such() {
    let config = Config::builder().revocable(true).capacity_refresh(Duration::ZERO);
    let kernel = Kernel::new(config.build().unwrap(), IdScheme::plain());
    let mut handler = kernel.handler();
    for (kind, turn) in [0, 1, 1, 2, 2, 0, 3, 3, 1, 3, 2, 0].into_iter().zip(1u32..) {
        let [cpus, memory] =
            [("cpus", 0.5), ("mem", 64.0 + f64::from(turn))].map(|(name, value)| {
                let resource = Resource::scalar(name, value);
                match kind {
                    1 => resource.reserved_for("eng"),
                    2 => resource.with_revocability(Revocability::Revocable),
                    _ => resource,
                }
            });
        let further = Resource::scalar("cpus", 1.0).reserved_for("eng");
        let resources = [cpus, memory, further];
        let resources = if kind == 3 { &resources[..] } else { &resources[..2] };
        let offers = [Offer::new("1", "S1", "h", resources, &[]).with_role("eng")];
        handler.resource_offers(&offers, at(turn.into()), &mut Decisions::new());
        let capacity = kernel.capacity(at(turn.into()));
        let cores = MilliCpus::from_millis;
        let of_kind = |wanted| cores(if kind % 3 == wanted { 500 } else { 0 });
        let reserved = if kind == 3 { cores(1000) } else { of_kind(1) };
        let by_role = capacity.by_role();
        let eng = by_role["eng"];
        let shown = [eng.unreserved.cores, eng.reserved.cores, eng.revocable.cores];
        assert_eq!((by_role.len(), shown), (1, [of_kind(0), reserved, of_kind(2)]), "{turn}");
    }
}

/// Goal: sums and the largest agent are those of the agents that are shown, and an explanation names the most that one
/// of them has. Method: agents of three shards, each with other amounts and some with executors, some of which end;
/// executors of another size from the middle on, under which each agent is recorded again, or isn't.
#[test]
fn sums_are_those_of_the_agents() {
    const AGENTS: u32 = 600;
    let config = |cores| {
        let cores = ExecutorCores::Fixed(MilliCpus::from_cores(cores));
        let config = Config::builder().executor_cores(cores).capacity_refresh(Duration::ZERO);
        config.build().unwrap()
    };
    let kernel = Kernel::new(config(2), IdScheme::plain());
    let names: Vec<String> = (0..AGENTS).map(|number| format!("S{number}")).collect();
    let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    let mut offer = |number: usize, cores: u32| {
        let resources = [Resource::scalar("cpus", cores.into()), Resource::scalar("mem", 9000.0)];
        let offers = [Offer::new("1", &names[number], "h", &resources, &[])];
        handler.resource_offers(&offers, at(1), &mut decisions);
        decisions.accepts().flat_map(|accepted| accepted.executors).map(|it| it.id).next()
    };
    let check = |least: u64| {
        let capacity = kernel.capacity(at(2));
        assert!(capacity.exact());
        let (mut offered, mut used, mut free) =
            (ResourceSums::NONE, ResourceSums::NONE, ResourceSums::NONE);
        let mut largest = ResourceSums::NONE;
        for agent in capacity.agents() {
            offered = offered.saturating_add(agent.offered());
            used = used.saturating_add(agent.used());
            free = free.saturating_add(agent.free());
            largest = largest.max_of_each(agent.free().saturating_add(agent.used()));
        }
        let shown = capacity.sums();
        assert_eq!((shown.offered, shown.used, shown.free), (offered, used, free));
        assert_eq!((shown.agents, capacity.largest_agent()), (AGENTS as usize, largest));
        assert!(largest.cores.whole_cores() >= least, "{largest:?}");
        largest
    };
    let mut placed = Vec::new();
    for number in 0..AGENTS as usize {
        placed.extend(offer(number, if number % 7 == 0 { 3 } else { 1 }).map(|id| (number, id)));
        if number % 100 == 0 {
            drop(kernel.capacity(at(2)));
        }
    }
    assert_eq!(placed.len(), 86);
    check(3);
    kernel.reconfigure(config(64));
    for (number, id) in &placed {
        if number % 3 == 0 {
            let name = kernel.executor_name(*id).to_string();
            kernel.status_update(&StatusUpdate::new(&name, TaskState::Finished), at(1));
        }
        if number % 2 == 0 {
            assert_eq!(offer(*number, 1), None);
        }
        if number % 5 == 0 {
            check(3);
        }
    }
    for number in (0..AGENTS as usize).step_by(11) {
        assert_eq!(offer(number, 20 + number as u32 % 13), None);
    }
    let largest = check(32);
    let explained = kernel.explain(at(2)).to_string();
    let expected =
        format!("no agent has 64 cores for executors, the largest has {}", largest.cores);
    assert!(explained.contains(&expected), "{explained}");
}
