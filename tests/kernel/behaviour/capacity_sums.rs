//! Sums of the picture of the cluster's capacity, over agents of many shards and over roles.

use std::time::Duration;

use offermill::config::{ExecutorCores, ExecutorGpus};
use offermill::resources::{Gpus, MilliCpus};
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

/// Goal: a sum that is too large is shown as the largest number, whichever kind it is, and however many executors are
/// there. Method: two agents with most of what a number can say of cores, or of GPUs, one of them with an executor;
/// that many cores come in many offers.
#[test]
fn sums_that_are_too_large_stay_so() {
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .executor_limit(Some(1))
        .gpu_cap(Gpus::new(1))
        .executor_gpus(ExecutorGpus::Exactly(Gpus::new(1)))
        .capacity_refresh(Duration::ZERO);
    let config = config.build().unwrap();
    for (count, cpus, gpus) in [(1100, 1e16, 8.0), (1, 8.0, 4e9)] {
        let kernel = Kernel::new(config.clone(), IdScheme::plain());
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        let scalars = [("cpus", cpus), ("mem", 1e4), ("gpus", gpus)];
        let resources = scalars.map(|(name, amount)| Resource::scalar(name, amount));
        let offer = |agent| Offer::new(agent, agent, "h", &resources, &[]);
        let offers = ["S1", "S2"].map(|agent| vec![offer(agent); count]).concat();
        handler.resource_offers(&offers, at(0), &mut decisions);
        assert_eq!(decisions.executors(), 1);
        let capacity = kernel.capacity(at(0));
        let mut free = ResourceSums::NONE;
        capacity.agents().for_each(|agent| free = free.saturating_add(agent.free()));
        assert_eq!(capacity.sums().free, free);
        assert_eq!(free.cores.millis() == u64::MAX, count > 1, "{free:?}");
        assert_eq!(free.gpus.get() == u32::MAX, count == 1, "{free:?}");
    }
}

/// Goal: agents that are offered to several roles are shown with their own roles, whichever of them are recorded anew.
/// Method: three agents, each offered to a role of its own and to the default one; then each alone with other amounts.
#[test]
fn roles_stay_with_their_agents() {
    let config = Config::builder().capacity_refresh(Duration::ZERO).build().unwrap();
    let kernel = Kernel::new(config, IdScheme::plain());
    let mut handler = kernel.handler();
    let names = ["a", "b", "c"];
    let mut cores = [0.25; 3];
    for now in 0..10 {
        let offered: Vec<usize> = if now == 0 { vec![0, 1, 2] } else { vec![now % 3] };
        for at in &offered {
            cores[*at] += 0.001;
        }
        let resources = cores.map(|cores| [Resource::scalar("cpus", cores)]);
        let offer =
            |at: usize, role| Offer::new("o", names[at], "h", &resources[at], &[]).with_role(role);
        let offers: Vec<Offer<'_>> =
            offered.iter().flat_map(|at| ["*", names[*at]].map(|role| offer(*at, role))).collect();
        let now = at(now as u64);
        handler.resource_offers(&offers, now, &mut Decisions::new());
        let capacity = kernel.capacity(now);
        let shown: Vec<_> = capacity
            .agents()
            .map(|it| {
                let roles = it.roles().map(|role| (role.role, role.unreserved.cores));
                (it.agent_id(), roles.collect::<Vec<_>>())
            })
            .collect();
        let cores = cores.map(|cores| MilliCpus::from_millis((cores * 1000.0_f64).round() as u64));
        let expected: Vec<_> = names
            .iter()
            .zip(cores)
            .map(|(name, cores)| (*name, vec![("*", cores), (*name, cores)]))
            .collect();
        assert_eq!(shown, expected, "at {now:?}");
    }
}
