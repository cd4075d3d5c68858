//! Random worlds: whatever happens, the checker finds nothing, and at the end all resources are back.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::world::{TestWorld, WORKER_CPUS};
use crate::cluster::standalone::protocol::{ExecutorKey, ReportedState};
use crate::mesos_v1::messages::call::{self, Type};
use crate::mesos_v1::messages::{Call, Filters};

const WORKERS: usize = 4;
const FRAMEWORKS: usize = 3;

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
    Silence(usize),
    Wake(usize),
    AcceptRescinded(usize, usize),
    Pass(u64),
    RestartMaster,
    LoseJournal(usize),
}

/// What happens without faults.
fn usual_steps() -> impl Strategy<Value = Step> {
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
    prop_oneof![
        3 => worker().prop_map(Step::ConnectWorker),
        1 => worker().prop_map(Step::Wake),
        4 => (worker(), any::<usize>(), states).prop_map(|(w, e, s)| Step::Report(w, e, s)),
        3 => framework().prop_map(Step::Subscribe),
        6 => (framework(), any::<usize>(), 1..9u8, prop::option::of(0..10u8))
            .prop_map(|(f, o, c, p)| Step::Accept(f, o, c, p)),
        1 => (framework(), any::<usize>()).prop_map(|(f, o)| Step::AcceptRescinded(f, o)),
        3 => (framework(), any::<usize>(), 0.0..30.0f64).prop_map(|(f, o, r)| Step::Decline(f, o, r)),
        2 => (framework(), simple).prop_map(|(f, of)| Step::Simple(f, of)),
        2 => (framework(), any::<usize>()).prop_map(|(f, e)| Step::Kill(f, e)),
        3 => prop::sample::select(vec![0, 1, 5, 20, 70, 1000]).prop_map(Step::Pass),
    ]
}

/// What goes wrong.
fn faults() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => worker().prop_map(Step::DisconnectWorker),
        2 => worker().prop_map(Step::BreakWorker),
        2 => worker().prop_map(Step::CrashWorker),
        3 => worker().prop_map(Step::Silence),
        2 => (worker(), any::<bool>()).prop_map(|(w, by_id)| Step::ImpersonateWorker(w, by_id)),
        2 => (worker(), worker()).prop_map(|(thief, victim)| Step::ClaimExecutors(thief, victim)),
        2 => worker().prop_map(Step::DrainWorker),
        2 => worker().prop_map(Step::LeaveWorker),
        2 => framework().prop_map(Step::DisconnectFramework),
        2 => Just(Step::RestartMaster),
        1 => (1..8usize).prop_map(Step::LoseJournal),
    ]
}

/// Steps of which this many of a hundred are faults.
fn steps(percent: u32) -> impl Strategy<Value = Step> {
    prop_oneof![100 - percent => usual_steps(), percent => faults()]
}

fn worker() -> std::ops::Range<usize> {
    0..WORKERS
}

fn framework() -> std::ops::Range<usize> {
    0..FRAMEWORKS
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
        // A process that is stopped does nothing.
        Step::LeaveWorker(index) | Step::Report(index, ..) if world.workers[index].silent => {}
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
        Step::Silence(index) => world.workers[index].silent = true,
        Step::Wake(index) => world.wake_worker(index),
        Step::AcceptRescinded(index, choice) => world.accept_rescinded(index, choice),
        Step::RestartMaster => world.restart_master(),
        Step::LoseJournal(last) => world.restart_master_without(last),
    }
}

/// A history, after which all frameworks go, and all workers come. All resources are back then.
#[derive(Clone, Debug)]
struct History {
    steps: Vec<Step>,
    max_cores: Option<u64>,
    /// The time for which each framework may be away, in seconds.
    failover: f64,
}

fn histories(faults_percent: u32, longest: usize) -> impl Strategy<Value = History> {
    let steps = prop::collection::vec(steps(faults_percent), 1..longest);
    let max_cores = prop::option::of(1..6u64);
    let failover = prop::sample::select(vec![0.0, 30.0, 1e9]);
    (steps, max_cores, failover).prop_map(|(steps, max_cores, failover)| History {
        steps,
        max_cores,
        failover,
    })
}

fn play(history: History) {
    let mut world = TestWorld::new(WORKERS, FRAMEWORKS, history.max_cores);
    for framework in &mut world.frameworks {
        framework.failover = history.failover;
    }
    let loses_journal = history.steps.iter().any(|step| matches!(step, Step::LoseJournal(_)));
    for step in history.steps {
        do_step(&mut world, step);
    }
    world.pass(Duration::from_secs(1000));
    for index in 0..FRAMEWORKS {
        world.subscribe_framework(index);
        // One that was removed has lost its id by this, and subscribes as a new one.
        if world.frameworks[index].connection.is_none() {
            world.subscribe_framework(index);
        }
        world.call(index, Type::Teardown, Call::default());
    }
    if loses_journal {
        world.tear_down_all();
    }
    for index in 0..WORKERS {
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
    assert!(left.is_empty(), "still there: {left:?}");
    let counts = world.master.counts();
    assert_eq!((counts.workers, counts.frameworks), (WORKERS, 0));
    assert_eq!((counts.executors, counts.offers), (0, 0));
    let shares = world.master.offer_shares();
    for worker in &world.workers {
        let free = world.master.free(worker.id.as_ref().unwrap(), &shares).unwrap();
        assert_eq!(free.cpus.thousandths(), WORKER_CPUS * 1000);
        assert_eq!(free.ports.count(), 10);
    }
}

proptest! {
    /// Goal: executors and offers never exceed a worker, no executor is started twice, frameworks are served in their
    /// order, and all resources come back. Method: random histories with lost messages, crashes, silence and restarts
    /// of the master, also with a journal that lacks its end, judged after each call by the master's own accounts and
    /// by others. (On a failure proptest prints the history and its seed.)
    #[test]
    fn histories_are_sound(history in histories(25, 80)) {
        play(history);
    }
}

/// Goal: as above, in worlds with few faults, some and many. Method: histories of up to 300 steps, as many of each
/// severity as `OFFERMILL_MASTER_SEEDS` says (20), beginning with `OFFERMILL_SEED` (1). The last line that a failure
/// prints names its seed.
#[test]
fn worlds_of_each_severity_are_sound() {
    let number = |variable: &str| std::env::var(variable).ok().map(|it| it.parse::<u64>().unwrap());
    let first = number("OFFERMILL_SEED").unwrap_or(1);
    let count = number("OFFERMILL_MASTER_SEEDS").unwrap_or(20);
    for faults_percent in [5, 25, 60] {
        for seed in (0..count).map(|more| first.wrapping_add(more)) {
            println!("{faults_percent} % faults, OFFERMILL_SEED={seed} OFFERMILL_MASTER_SEEDS=1");
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&seed.to_le_bytes());
            let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
            let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
            play(histories(faults_percent, 300).new_tree(&mut runner).unwrap().current());
        }
    }
}
