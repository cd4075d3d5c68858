//! Adoption of executors of a former run, concurrent with other calls. These models run the whole kernel.

use std::time::Duration;

use super::scenes::{NOW, SWEPT, config, kernel, update};
use super::{explore, race};
use crate::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use crate::{Binding, ExecutorId, Fate, Kernel, Phase, Recovered, TaskState};

/// Adopts one executor on the agent that the kernel knows. Returns its id, or none if it was left out. Fails if
/// executors were adopted before.
fn adopt(kernel: &Kernel) -> Result<Option<ExecutorId>, crate::Error> {
    let former = Recovered {
        executor: "former",
        agent_id: "S0",
        hostname: "host",
        resources: ExecutorResources {
            cores: MilliCpus::from_cores(1),
            memory: Mebibytes::new(1),
            gpus: Gpus::ZERO,
            port: None,
        },
        binding: Binding::Immediate,
        tag: None,
        queue: None,
    };
    kernel.adopt(&[former], NOW).map(|ids| ids[0])
}

/// Goal: of two adoptions, one is made and one is refused, and each executor is counted once. Method: both at once.
#[test]
fn one_of_two_adoptions_is_made() {
    explore("adoption/adopt-adopt", Some(3), || {
        let kernel = kernel(config());
        let (here, there) = (kernel.clone(), kernel.clone());
        let (one, other) = race(move || adopt(&here), move || adopt(&there));
        assert!(one.is_ok() ^ other.is_ok(), "{one:?}, {other:?}");
        assert_eq!(one.or(other).unwrap(), kernel.executor_id("former"));
        assert_eq!(kernel.totals().executors, 1);
        kernel.check().unwrap();
    });
}

/// Goal: an executor is adopted though its agent is forgotten meanwhile. Method: an adoption and a sweep of agents at
/// once.
#[test]
fn an_adoption_survives_a_sweep() {
    explore("adoption/sweep", Some(3), || {
        let kernel = kernel(config());
        let (here, there) = (kernel.clone(), kernel.clone());
        let (adopted, _) = race(move || adopt(&here).unwrap(), move || there.tick(SWEPT));
        assert!(adopted.is_some(), "left out, though there is room");
        assert_eq!(*kernel.snapshot(NOW).executors[0].agent_id, *"S0");
        kernel.check().unwrap();
    });
}

/// Goal: an executor that was adopted before a close is drained with the others, and one that was not is not counted.
/// The executors to be killed have the cluster's names. Method: an adoption and a close at once; then the executor
/// ends.
#[test]
fn an_adopted_executor_is_drained() {
    explore("adoption/close", Some(3), || {
        let kernel = kernel(config());
        let (here, there) = (kernel.clone(), kernel.clone());
        let (adopted, ()) = race(
            move || adopt(&here).unwrap(),
            move || {
                let mut named = there.close().into_iter().map(|target| target.id);
                assert!(named.all(|id| there.executor_name(id).to_string() == "former"));
            },
        );
        assert_eq!(
            kernel.close().iter().map(|target| target.id).collect::<Vec<_>>(),
            Vec::from_iter(adopted)
        );
        update(&kernel, "former", TaskState::Finished);
        let report = kernel.drain(Duration::MAX);
        let ended: Vec<_> =
            report.executors.iter().map(|row| (row.executor.id, row.fate)).collect();
        assert_eq!(ended, Vec::from_iter(adopted.map(|id| (id, Fate::Finished))));
        kernel.check().unwrap();
    });
}

/// Goal: once a loss has been reported, each executor on the agent is in doubt, even one that is adopted meanwhile.
/// Method: an adoption and a report at once.
#[test]
fn an_adopted_executor_on_a_lost_agent_is_in_doubt() {
    explore("adoption/lost", Some(2), || {
        let kernel = kernel(config());
        let (here, there) = (kernel.clone(), kernel.clone());
        race(
            move || adopt(&here).unwrap(),
            move || {
                there.agent_lost("S0", NOW);
                let rows = there.snapshot(NOW).executors.len();
                assert!(there.reconcile(crate::Scope::InDoubt, NOW).len() >= rows);
            },
        );
        kernel.check().unwrap();
    });
}

/// Goal: an update that arrives during the adoption of its executor is applied entirely, or leaves the executor in
/// doubt, so that it is reconciled. Method: the executor's end and its adoption at once.
#[test]
fn an_early_update_is_applied_or_reconciled() {
    explore("adoption/update", Some(3), || {
        let kernel = kernel(config());
        let (here, there) = (kernel.clone(), kernel.clone());
        let (adopted, outcome) = race(
            move || adopt(&here).unwrap(),
            move || update(&there, "former", TaskState::Finished),
        );
        let doubtful = kernel.reconcile(crate::Scope::InDoubt, NOW);
        let rows = kernel.snapshot(NOW).executors;
        if outcome.freed.is_some() {
            assert!(rows.is_empty() && doubtful.is_empty(), "{rows:?}");
        } else {
            assert_eq!(
                doubtful.iter().map(|target| target.id).collect::<Vec<_>>(),
                Vec::from_iter(adopted)
            );
            assert!(rows.iter().all(|row| row.phase == Phase::Launching), "{rows:?}");
        }
        assert_eq!(kernel.totals().executors as usize, rows.len());
        kernel.check().unwrap();
    });
}
