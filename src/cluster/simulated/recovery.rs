//! Liveness: what must be so a while after all faults are over. Rules 9 and 29.

use std::collections::BTreeSet;

use super::checker::Finding;
use super::scenario::Scenario;
use super::simulation::Simulation;
use super::wire::Amounts;
use crate::kernel::{Phase, Snapshot};

/// So long it may take until everything is well, in milliseconds: until all executors were asked about once more, those
/// that nobody can find were given up, and excluded agents are let in again.
pub(super) fn patience(scenario: &Scenario) -> u64 {
    let rules = scenario.release_after * 3 + scenario.exclude_for;
    40 * 60_000 + rules.as_millis() as u64
}

/// Whether the executors of the kernel and those of the cluster are the same and run, and none is missing that there
/// is room for.
pub(super) fn recovered(simulation: &Simulation) -> Result<(), Finding> {
    let kernel = &simulation.framework.kernel;
    let (_, running) = simulation.cluster.census();
    let totals = kernel.totals();
    if running != totals.executors {
        return Err((
            29,
            format!("{running} executors run, the kernel counts {}", totals.executors),
        ));
    }
    let own = simulation.framework.now(&simulation.agenda);
    let snapshot = kernel.snapshot(own);
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
    if let Some(stray) =
        there.iter().find(|name| counted.binary_search_by(|it| it.as_str().cmp(name)).is_err())
    {
        return Err((29, format!("executor {stray} runs, and the kernel doesn't know it")));
    }
    if let Some(lost) = counted.iter().find(|name| there.binary_search(&name.as_str()).is_err()) {
        return Err((29, format!("executor {lost} is not there")));
    }
    if let Some(name) = simulation.judge.still_to_end() {
        return Err((29, format!("executor {name} was asked to end, and has not ended")));
    }
    // By the judge's own account, if there is one.
    let wanted = simulation.judge.wanted().unwrap_or_else(|| kernel.wanted());
    match idle_agent(simulation, &snapshot) {
        Some(agent) if wanted > 0 => {
            Err((9, format!("agent {agent} has room, and {wanted} executors are wanted")))
        }
        _ => Ok(()),
    }
}

/// An agent on which an executor could be placed now. (Whether it is excluded for good reason, the judge looks at
/// elsewhere.)
fn idle_agent(simulation: &Simulation, snapshot: &Snapshot) -> Option<String> {
    let settings = simulation.framework.settings;
    let excluded = snapshot.agents.iter().filter(|agent| agent.excluded_until.is_some());
    let excluded: BTreeSet<&str> = excluded.map(|agent| &*agent.agent_id).collect();
    let asked = settings.cores_at_least().millis();
    let memory = simulation.scenario.memory_taken().get() * 1000;
    let fits = |free: &Amounts| {
        let port = free.port || !simulation.scenario.fixed_port;
        let gpus = free.of("gpus") >= u64::from(simulation.scenario.executor_gpus) * 1000;
        free.of("cpus") >= asked && free.of("mem") >= memory && gpus && port
    };
    let mut rooms = simulation.cluster.rooms();
    rooms.find_map(|(agent, zone, free)| {
        let agent = agent.to_string();
        (settings.allow(zone) && fits(&free) && !excluded.contains(agent.as_str())).then_some(agent)
    })
}
