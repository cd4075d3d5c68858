//! Compares the kernel's state with the master's.

use std::collections::BTreeMap;
use std::time::Duration;

use offermill::Phase;

use super::cluster::RealCluster;
use super::eventually;
use super::state::{Task, Tasks};
use crate::framework::Framework;

/// The maximum time until both agree once all faults are over: a lost agent has to be noticed, executors in doubt are
/// reconciled every 15 s, and lost kills are repeated after 15, 30, 60 and 120 s.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until exactly `executors` run: the same ones, on the same agents, with the same resources, in the kernel, in
/// the master and in the agents. Returns them.
#[track_caller]
pub(crate) fn agree(cluster: &RealCluster, framework: &Framework, executors: u32) -> Tasks {
    eventually(PATIENCE, "equal accounts", || compare(cluster, framework, executors))
}

fn compare(cluster: &RealCluster, framework: &Framework, executors: u32) -> Result<Tasks, String> {
    let told = |notice: &_| match notice {
        offermill::engine::Notice::Registered { framework_id, .. } => Some(framework_id.clone()),
        _ => None,
    };
    let id = framework.notices.wait_for(Duration::ZERO, told).ok_or("not registered")?;
    let ours = kernels(framework)?;
    let state = cluster.master_state();
    let masters = state.tasks(&id);
    let kernels_only: Vec<_> =
        ours.iter().filter(|one| masters.get(one.0) != Some(one.1)).collect();
    let masters_only: Vec<_> =
        masters.iter().filter(|one| ours.get(one.0) != Some(one.1)).collect();
    if !kernels_only.is_empty() || !masters_only.is_empty() {
        return Err(format!("the kernel has {kernels_only:#?}, the master {masters_only:#?}"));
    }
    let unreachable = state.unreachable_tasks(&id);
    if !unreachable.is_empty() {
        return Err(format!("unreachable: {unreachable:#?}"));
    }
    if ours.len() != executors as usize {
        return Err(format!("{} of {executors} run: {:#?}", ours.len(), framework.snapshot()));
    }
    let on_agents: usize = (0..cluster.agents()).map(|i| cluster.executors_of_agent(i)).sum();
    if on_agents != ours.len() {
        return Err(format!("{on_agents} on the agents, {} in the kernel", ours.len()));
    }
    framework.kernel.check().map_err(|violation| violation.to_string())?;
    Ok(masters)
}

/// A snapshot of the kernel's executors. Fails unless all of them run.
fn kernels(framework: &Framework) -> Result<Tasks, String> {
    let snapshot = framework.snapshot();
    if !snapshot.exact {
        return Err("executors come and go".to_owned());
    }
    let mut tasks = BTreeMap::new();
    for one in &snapshot.executors {
        let name = framework.kernel.executor_name(one.id).to_string();
        if one.phase != Phase::Running {
            return Err(format!("{name} is {:?} on {}", one.phase, one.agent_id));
        }
        let task = Task {
            agent_id: one.agent_id.to_string(),
            state: "TASK_RUNNING".to_owned(),
            cores_milli: one.resources.cores.millis(),
            memory_mib: one.resources.memory.get(),
        };
        tasks.insert(name, task);
    }
    let cores: u64 = tasks.values().map(|task| task.cores_milli).sum();
    let totals = snapshot.totals;
    if totals.executors as usize != tasks.len() || totals.cores.millis() != cores {
        return Err(format!("{totals:?} is not the sum of {tasks:#?}"));
    }
    Ok(tasks)
}
