//! The picture of the cluster's capacity, compared with the master's own state.

use std::time::{Duration, Instant};

use offermill::ResourceSums;

use super::cluster::{RealCluster, Setup};
use super::state::{Amounts, Capacities, Capacity};
use super::{SLEEP, eventually, mesos};
use crate::framework::{Framework, small_executors};

/// The maximum time until the picture is the master's: offers come each second, and reports of executors' ends.
const PATIENCE: Duration = Duration::from_secs(30);

fn amounts(sums: ResourceSums) -> Amounts {
    Amounts { cores_milli: sums.cores.millis(), memory_mib: sums.memory.get() }
}

fn sum(all: &Capacities, of: impl Fn(&Capacity) -> Amounts) -> Amounts {
    all.values().map(of).fold(Amounts::default(), |sum, more| Amounts {
        cores_milli: sum.cores_milli + more.cores_milli,
        memory_mib: sum.memory_mib + more.memory_mib,
    })
}

/// Waits until the picture has the master's agents with what they have and what is used there, as the master has it,
/// its sums are the master's, and this number of executors is counted.
#[track_caller]
fn agree(cluster: &RealCluster, framework: &Framework, executors: u32) {
    eventually(PATIENCE, "the master's capacity", || {
        let capacity = framework.kernel.capacity(framework.engine.clock().now());
        let masters = cluster.master_state().capacities();
        let shown = capacity.agents().map(|agent| {
            let all = amounts(agent.free().saturating_add(agent.used()));
            (agent.agent_id().to_owned(), Capacity { all, used: amounts(agent.used()) })
        });
        let shown: Capacities = shown.collect();
        let differs = |agent: &&String| masters.get(*agent) != shown.get(*agent);
        if let Some(agent) = masters.keys().chain(shown.keys()).find(differs) {
            let (known, of) = (shown.len(), masters.len());
            let [ours, masters] = [shown.get(agent), masters.get(agent)];
            return Err(format!(
                "{known} of {of} agents; {agent}: {ours:?}, at the master {masters:?}"
            ));
        }
        let sums = capacity.sums();
        let all = sums.used.saturating_add(sums.free).saturating_add(sums.withheld);
        let of_master = [sum(&masters, |it| it.all), sum(&masters, |it| it.used)];
        if [all, sums.used].map(amounts) != of_master {
            return Err(format!("{sums:?}, at the master {of_master:?}"));
        }
        match capacity.totals().executors {
            found if found == executors => Ok(()),
            found => Err(format!("{found} of {executors} executors")),
        }
    });
}

/// Goal: the picture of the capacity is what the master says, for each of many agents and in its sums. Method: a
/// hundred real agents of three sizes, which share two processes; executors that can't be placed, so that only the
/// offers are there; then some that can, on some of the agents; then fewer.
#[test]
#[ignore = "needs a real Mesos"]
fn the_capacity_is_the_masters() {
    let sizes = [("8", 4096), ("4.5", 2000), ("16", 10_001)];
    let sizes =
        sizes.map(|(cpus, mem)| format!("cpus:{cpus};mem:{mem};disk:20000;ports:[31000-32000]"));
    let setup = Setup { agents: 100, per_process: 50, fast: false, ..Setup::default() };
    let began = Instant::now();
    let cluster = RealCluster::start(Setup { resources: &sizes.join("|"), ..setup });
    cluster.wait_for_agents();
    println!("{} agents after {:.1} s", cluster.agents(), began.elapsed().as_secs_f64());
    let impossible = small_executors(12).fixed_port(Some(40_000)).build().unwrap();
    let framework = Framework::start(mesos(cluster.port()), impossible, SLEEP).unwrap();
    agree(&cluster, &framework, 0);
    let capacity = framework.kernel.capacity(framework.engine.clock().now());
    assert_eq!(capacity.sums().agents, 100);
    assert_eq!(
        amounts(capacity.largest_agent()),
        Amounts { cores_milli: 16_000, memory_mib: 10_001 }
    );

    framework.engine.reconfigure(small_executors(12).build().unwrap());
    agree(&cluster, &framework, 12);
    framework.engine.set_executor_limit(Some(5)).unwrap();
    let executors = framework.snapshot().executors;
    framework.engine.kill(executors.iter().take(7).map(|executor| executor.id).collect());
    agree(&cluster, &framework, 5);
    println!("the same capacity three times after {:.1} s", began.elapsed().as_secs_f64());
    assert!(framework.engine.shutdown(Duration::from_secs(20)).drained);
    cluster.assert_deserted();
}
