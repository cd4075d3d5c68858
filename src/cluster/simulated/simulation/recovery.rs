//! Liveness: whether the framework has recovered after all faults are over. Invariants 9 and 29.

use std::collections::BTreeSet;

use super::Simulation;
use crate::cluster::simulated::checker::RuleViolation;
use crate::cluster::simulated::queues::{SimQueues, have_room};
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::wire::Amounts;
use crate::config::QueueId;
use crate::kernel::{Phase, ResourceSums, Snapshot};
use crate::resources::{Mebibytes, MilliCpus};

/// The maximum duration of the recovery, in milliseconds: until all executors were reconciled once more, lost ones were
/// given up, and exclusions have expired.
pub(super) fn recovery_timeout_ms(scenario: &Scenario) -> u64 {
    let expiries = scenario.release_after * 3 + scenario.exclude_for;
    40 * 60_000 + expiries.as_millis() as u64
}

/// Checks that the kernel and the cluster have the same executors, that all of them run, and that no executor is
/// missing for which there are free resources.
pub(super) fn recovered(simulation: &Simulation) -> Result<(), RuleViolation> {
    let kernel = &simulation.framework.kernel;
    let (_, running) = simulation.cluster.count_running();
    let totals = kernel.totals();
    if running != totals.executors {
        return Err((
            29,
            format!("{running} executors run, the kernel counts {}", totals.executors),
        ));
    }
    let snapshot = kernel.snapshot(simulation.framework.now(&simulation.events));
    if let Some(view) = snapshot.executors.iter().find(|view| view.phase != Phase::Running) {
        let name = kernel.executor_name(view.id);
        return Err((29, format!("executor {name} is {:?} for the kernel", view.phase)));
    }
    let ids = snapshot.executors.iter().map(|view| kernel.executor_name(view.id).to_string());
    let mut counted: Vec<String> = ids.collect();
    let facts = simulation.cluster.executors().filter(|fact| fact.in_reach);
    let mut there: Vec<&str> = facts.map(|fact| fact.name).collect();
    counted.sort_unstable();
    there.sort_unstable();
    if let Some(unknown) =
        there.iter().find(|name| counted.binary_search_by(|it| it.as_str().cmp(name)).is_err())
    {
        return Err((29, format!("executor {unknown} runs, and the kernel doesn't know it")));
    }
    if let Some(lost) = counted.iter().find(|name| there.binary_search(&name.as_str()).is_err()) {
        return Err((29, format!("executor {lost} is not there")));
    }
    if let Some(name) = simulation.checker.still_to_end() {
        return Err((29, format!("executor {name} was killed, and has not ended")));
    }
    if let Some(task) = simulation.checker.task_without_host() {
        return Err((
            49,
            format!("{task} has not ended, though it or its host was given up or is gone"),
        ));
    }
    // The checker's own count, if it is enabled.
    let wanted = simulation.checker.wanted().unwrap_or_else(|| kernel.wanted());
    match idle_agent(simulation, &snapshot) {
        Some(agent) if wanted > 0 => {
            Err((9, format!("agent {agent} has room, and {wanted} executors are wanted")))
        }
        _ => Ok(()),
    }
}

/// An agent on which an executor could be placed now. (The checker verifies elsewhere that exclusions are justified.)
fn idle_agent(simulation: &Simulation, snapshot: &Snapshot) -> Option<String> {
    let settings = simulation.framework.settings;
    let excluded = snapshot.agents.iter().filter(|agent| agent.excluded_until.is_some());
    let excluded: BTreeSet<&str> = excluded.map(|agent| &*agent.agent_id).collect();
    let asked = settings.executor_cores_min().millis();
    let memory = simulation.scenario.memory_taken().get() * 1000;
    let fits = |free: &Amounts| {
        let port = free.port || !simulation.scenario.fixed_port;
        let gpus = free.of("gpus") >= u64::from(simulation.scenario.executor_gpus) * 1000;
        free.of("cpus") >= asked && free.of("mem") >= memory && gpus && port
    };
    let mut agents = simulation.cluster.free_resources();
    agents.find_map(|(agent, zone, mut free)| {
        let agent = agent.to_string();
        let beside = simulation.tasks.as_ref().map_or(Some(None), |it| it.beside_a_task(&agent))?;
        if let Some(host) = beside {
            free.take_up_to(host.cores.millis(), host.memory.get() * 1000);
        }
        let is_free = settings.allows_zone(zone) && fits(&free);
        let is_able = is_free && !excluded.contains(agent.as_str());
        (is_able && may_be_placed(simulation, beside)).then_some(agent)
    })
}

/// Whether the caps and the queues admit the smallest executor and a host with it, if it needs one.
fn may_be_placed(simulation: &Simulation, host: Option<ResourceSums>) -> bool {
    let Simulation { framework, scenario, .. } = simulation;
    let (kernel, settings) = (&framework.kernel, framework.settings);
    let totals = kernel.totals();
    let least = (settings.executor_cores_min(), scenario.memory_taken());
    let executors = 1 + u32::from(host.is_some());
    let cores = least.0.millis() + host.map_or(0, |host| host.cores.millis());
    let cap = settings.core_cap.millis();
    let is_admitted = totals.executors.saturating_add(executors) <= settings.limit
        && (cap == 0 || totals.cores.millis() + cores <= cap);
    let all = SimQueues::of(scenario);
    let (list, totals) = (all.list(settings), all.totals(settings));
    // The checker's own books, if it is enabled.
    let booked = || kernel.queues().iter().map(|it| amounts(it.cores, it.memory)).collect();
    let held = simulation.checker.held_in_queues().map_or_else(booked, <[_]>::to_vec);
    let host = host.map(|host| (QueueId::DEFAULT, amounts(host.cores, host.memory)));
    let has_room = |queue: u8| {
        let task = (QueueId::new(queue), amounts(least.0, least.1));
        let wanted: Vec<_> = host.into_iter().chain([task]).collect();
        have_room(&list, &held, totals, &wanted)
    };
    let mut numbered = list.iter().zip(0..);
    is_admitted
        && (all.is_empty() || numbered.any(|(it, number)| it.has_demand && has_room(number)))
}

/// Thousandths of cores, and MiB.
fn amounts(cores: MilliCpus, memory: Mebibytes) -> [u64; 2] {
    [cores.millis(), memory.get()]
}
