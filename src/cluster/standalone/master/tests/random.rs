//! Random worlds: whatever happens, the checker finds nothing, and at the end all resources are back.

use std::time::Duration;

use proptest::prelude::*;

use super::world::TestWorld;
use crate::cluster::standalone::protocol::{ExecutorKey, ReportedState};
use crate::mesos_v1::messages::call::{self, Type};
use crate::mesos_v1::messages::{Call, Filters};

/// Something that happens; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    ConnectWorker(usize),
    DisconnectWorker(usize),
    BreakWorker(usize),
    CrashWorker(usize),
    ImpersonateWorker(usize, bool),
    ClaimExecutors(usize, usize),
    DrainWorker(usize),
    LeaveWorker(usize),
    Report(usize, usize, ReportedState),
    Subscribe(usize),
    DisconnectFramework(usize),
    Accept(usize, usize, u8, Option<u8>),
    Decline(usize, usize, f64),
    Simple(usize, Type),
    Kill(usize, usize),
    Pass(u64),
    RestartMaster,
}

fn steps() -> impl Strategy<Value = Step> {
    let states = prop::sample::select(vec![
        ReportedState::Running,
        ReportedState::Finished,
        ReportedState::Failed,
    ]);
    let simple = prop::sample::select(vec![
        Type::Revive,
        Type::Revive,
        Type::Suppress,
        Type::Reconcile,
        Type::Teardown,
    ]);
    let worker = || 0..4usize;
    let framework = || 0..3usize;
    prop_oneof![
        3 => worker().prop_map(Step::ConnectWorker),
        1 => worker().prop_map(Step::DisconnectWorker),
        1 => worker().prop_map(Step::BreakWorker),
        1 => worker().prop_map(Step::CrashWorker),
        1 => (worker(), any::<bool>()).prop_map(|(w, by_id)| Step::ImpersonateWorker(w, by_id)),
        1 => (worker(), worker()).prop_map(|(thief, victim)| Step::ClaimExecutors(thief, victim)),
        1 => worker().prop_map(Step::DrainWorker),
        1 => worker().prop_map(Step::LeaveWorker),
        4 => (worker(), any::<usize>(), states).prop_map(|(w, e, s)| Step::Report(w, e, s)),
        3 => framework().prop_map(Step::Subscribe),
        1 => framework().prop_map(Step::DisconnectFramework),
        6 => (framework(), any::<usize>(), 1..9u8, prop::option::of(0..10u8))
            .prop_map(|(f, o, c, p)| Step::Accept(f, o, c, p)),
        3 => (framework(), any::<usize>(), 0.0..30.0f64).prop_map(|(f, o, r)| Step::Decline(f, o, r)),
        2 => (framework(), simple).prop_map(|(f, of)| Step::Simple(f, of)),
        2 => (framework(), any::<usize>()).prop_map(|(f, e)| Step::Kill(f, e)),
        3 => prop::sample::select(vec![0, 1, 5, 20, 70, 1000]).prop_map(Step::Pass),
        1 => Just(Step::RestartMaster),
    ]
}

fn choose<T: Clone>(from: impl Iterator<Item = T>, choice: usize) -> Option<T> {
    let all: Vec<T> = from.collect();
    (!all.is_empty()).then(|| all[choice % all.len()].clone())
}

fn do_step(world: &mut TestWorld, step: Step) {
    match step {
        Step::ConnectWorker(index) => {
            world.disconnect_worker(index);
            world.connect_worker(index);
        }
        Step::DisconnectWorker(index) => world.disconnect_worker(index),
        Step::BreakWorker(index) => world.workers[index].breaks = true,
        Step::CrashWorker(index) => world.crash_worker(index),
        Step::ImpersonateWorker(index, by_id) => world.impersonate_worker(index, by_id),
        Step::ClaimExecutors(thief, victim) => world.claim_executors(thief, victim),
        Step::DrainWorker(index) => world.drain_worker(index),
        Step::LeaveWorker(index) => world.begin_to_leave(index),
        Step::Report(index, choice, state) => {
            let key = choose(world.workers[index].running.keys().cloned(), choice);
            if let Some(key) = key {
                world.report(index, &key, state);
                world.deliver();
            }
        }
        Step::Subscribe(index) => world.subscribe_framework(index),
        Step::DisconnectFramework(index) => world.disconnect_framework(index),
        Step::Accept(index, choice, halves, port) => {
            let offer = choose(world.frameworks[index].offers.keys().cloned(), choice);
            if let Some(offer) = offer {
                let port = port.map(|port| 100 + u64::from(port));
                world.accept(index, &offer, f64::from(halves) / 2.0, port);
            }
        }
        Step::Decline(index, choice, seconds) => {
            let offer = choose(world.frameworks[index].offers.keys().cloned(), choice);
            if let Some(offer) = offer {
                world.frameworks[index].offers.remove(&offer);
                let decline = call::Decline {
                    offer_ids: vec![offer.into()],
                    filters: Some(Filters { refuse_seconds: Some(seconds) }),
                };
                world.call(
                    index,
                    Type::Decline,
                    Call { decline: Some(decline), ..Call::default() },
                );
            }
        }
        Step::Simple(index, of) => {
            let reconcile = Some(call::Reconcile::default());
            world.call(index, of, Call { reconcile, ..Call::default() });
        }
        Step::Kill(index, choice) => {
            if let Some(task) = choose(world.frameworks[index].states.keys().cloned(), choice) {
                let kill = call::Kill { task_id: task.into(), ..call::Kill::default() };
                world.call(index, Type::Kill, Call { kill: Some(kill), ..Call::default() });
            }
        }
        Step::Pass(seconds) => world.pass(Duration::from_secs(seconds)),
        Step::RestartMaster => world.restart_master(),
    }
}

proptest! {
    /// Goal: executors and offers never exceed a worker, no executor is started twice, frameworks are served in their
    /// order, and all resources come back. Method: random histories with lost messages, crashes and restarts of the
    /// master, judged after each call; at the end all frameworks go, and all workers come. (On a failure proptest
    /// prints the history and its seed.)
    #[test]
    fn histories_are_sound(
        steps in prop::collection::vec(steps(), 1..80),
        max_cores in prop::option::of(1..6u64),
        failover in prop::sample::select(vec![0.0, 30.0, 1e9]),
    ) {
        let mut world = TestWorld::new(4, 3, max_cores);
        for framework in &mut world.frameworks {
            framework.failover = failover;
        }
        for step in steps {
            do_step(&mut world, step);
        }
        world.pass(Duration::from_secs(1000));
        for index in 0..3 {
            world.subscribe_framework(index);
            // One that was removed has lost its id by this, and subscribes as a new one.
            if world.frameworks[index].connection.is_none() {
                world.subscribe_framework(index);
            }
            world.call(index, Type::Teardown, Call::default());
        }
        for index in 0..4 {
            world.workers[index].breaks = false;
            world.disconnect_worker(index);
            world.connect_worker(index);
            // One that leaves is back as another process.
            if world.workers[index].leaving {
                world.crash_worker(index);
                world.connect_worker(index);
            }
        }
        world.pass(Duration::from_secs(20));
        let left: Vec<&ExecutorKey> = world.workers.iter().flat_map(|it| it.running.keys()).collect();
        prop_assert!(left.is_empty(), "still there: {left:?}");
        let counts = world.master.counts();
        prop_assert_eq!((counts.workers, counts.frameworks), (4, 0));
        prop_assert_eq!((counts.executors, counts.offers), (0, 0));
        let shares = world.master.offer_shares();
        for worker in &world.workers {
            let free = world.master.free(worker.id.as_ref().unwrap(), &shares).unwrap();
            prop_assert_eq!(free.cpus.thousandths(), 4000);
            prop_assert_eq!(free.ports.count(), 10);
        }
    }
}
