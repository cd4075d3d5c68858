//! The whole kernel under load, for ThreadSanitizer (`.ci/sanitizer`): does any memory go from thread to thread without
//! an order between the accesses, in this crate or in what it is built of?
//!
//! Std is not instrumented: what it orders within itself the sanitizer can't see. So this has no test harness, no
//! scoped threads and no locks of its own; threads are spawned and joined, and talk through channels of
//! `crossbeam-channel`, which is instrumented. What is left of false alarms is in `suppressions.txt`, each with its
//! reason.
//!
//! Without the sanitizer, as in `cargo test`, it is a short stress test. `OFFERMILL_ROUNDS` makes it longer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "../kernel/world.rs"]
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use offermill::config::{ExclusionRule, UnreachableRule};
use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{
    Decisions, ExecutorId, IdScheme, Kernel, Recovered, Scope, StatusUpdate, TaskState, Timestamp,
    UpdateReason,
};
use world::{Entry, OfferData, Setup, at, lend, secs};

const HANDLERS: u64 = 3;
const UPDATERS: u64 = 2;
/// Handlers, updaters, one that governs, one that observes, two for time, one that adopts; two that drain come at the
/// end.
const THREADS: u64 = HANDLERS + UPDATERS + 5 + 2;
const BATCHES: u64 = 120;
const CORES_MAX: u64 = 60;
const LIMIT_MAX: u64 = 40;

/// Splitmix64: small, and good enough to choose by.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// What threads share beside the kernel: words of their own, and channels.
#[derive(Clone)]
struct Harness {
    kernel: Kernel,
    shared: Arc<Shared>,
    placed: Sender<ExecutorId>,
    to_end: Receiver<ExecutorId>,
}

#[derive(Default)]
struct Shared {
    clock: AtomicU64,
    operations: AtomicU64,
    done: AtomicBool,
}

impl Harness {
    fn new(ids: IdScheme) -> Harness {
        let (placed, to_end) = unbounded();
        let kernel = Kernel::new(setup(2, Some(LIMIT_MAX as u32)).config(), ids);
        Harness { kernel, shared: Arc::default(), placed, to_end }
    }

    fn spawn(&self, work: impl FnOnce(&Harness) + Send + 'static) -> JoinHandle<()> {
        let harness = self.clone();
        thread::spawn(move || work(&harness))
    }

    /// Counts an operation, and says when it is.
    fn now(&self) -> Timestamp {
        self.shared.operations.fetch_add(1, Ordering::Relaxed);
        at(self.shared.clock.fetch_add(1, Ordering::Relaxed))
    }

    fn going_on(&self) -> bool {
        !self.shared.done.load(Ordering::Relaxed)
    }

    fn report(&self, id: ExecutorId, state: TaskState, reason: UpdateReason) {
        let name = self.kernel.executor_name(id).to_string();
        self.kernel.status_update(&StatusUpdate::new(&name, state).because(reason), self.now());
    }
}

fn setup(cores: u64, limit: Option<u32>) -> Setup {
    Setup {
        core_cap: Some(CORES_MAX * 1000),
        executor_cores: Some(cores * 1000),
        gpu_cap: 10,
        limit,
        unreachable: UnreachableRule {
            release_after: Some(Duration::from_millis(40)),
            forget_after: Duration::from_millis(400),
        },
        exclusion: Some(ExclusionRule {
            failures: 3,
            window: secs(1),
            expiry: Some(Duration::from_millis(50)),
        }),
        ..Setup::default()
    }
}

/// Answers offers of agents that others meet too, and now and then of a new one.
fn offer(harness: &Harness, mut rng: Rng) {
    let (mut handler, mut decisions) = (harness.kernel.handler(), Decisions::new());
    for _ in 0..BATCHES {
        let batch: Vec<OfferData> = (0..1 + rng.below(6))
            .map(|_| {
                let agents = if rng.below(8) == 0 { 2_000 } else { 12 };
                let offer_data =
                    OfferData::new(&format!("S{}", rng.below(agents)), rng.below(7) as f64, 1e3);
                offer_data.with(Entry::scalar("gpus", rng.below(3) as f64))
            })
            .collect();
        lend(&batch, |offers| handler.resource_offers(offers, harness.now(), &mut decisions));
        harness.kernel.answers_sent(&decisions);
        for executor in decisions.accepts().flat_map(|accept| accept.executors) {
            harness.placed.send(executor.id).unwrap();
        }
    }
}

/// Tells anything of anybody, until all have ended.
fn update(harness: &Harness, mut rng: Rng) {
    const STATES: [TaskState; 7] = [
        TaskState::Running,
        TaskState::Staging,
        TaskState::Unreachable,
        TaskState::Running,
        TaskState::Failed,
        TaskState::Finished,
        TaskState::Failed,
    ];
    while harness.going_on() {
        // Not a blocking receive: that waits in one of std's locks.
        let Ok(id) = harness.to_end.try_recv() else {
            thread::yield_now();
            continue;
        };
        for _ in 0..rng.below(4) {
            let state = STATES[rng.below(STATES.len() as u64) as usize];
            harness.report(id, state, UpdateReason::Other);
        }
        if rng.below(3) > 0 {
            harness.placed.send(id).unwrap();
        } else {
            harness.report(id, TaskState::Lost, UpdateReason::AgentRemoved);
            harness.report(id, TaskState::Failed, UpdateReason::Other);
        }
    }
}

fn govern(harness: &Harness, mut rng: Rng) {
    while harness.going_on() {
        let limit = rng.below(LIMIT_MAX + 1) as u32;
        if rng.below(8) == 0 {
            (0..300).for_each(|n| harness.kernel.set_executor_limit(Some(30 + n % 2)).unwrap());
        }
        match rng.below(4) {
            0 => harness.kernel.reconfigure(setup(1 + rng.below(3), Some(limit)).config()),
            1 => drop((harness.kernel.registered(), harness.kernel.epoch())),
            _ => harness.kernel.set_executor_limit(Some(limit)).unwrap(),
        }
        let _ = (harness.kernel.config(), harness.kernel.executor_limit(), harness.kernel.wanted());
        let doubted = harness.kernel.reconcile(Scope::InDoubt, harness.now());
        if rng.below(4) == 0 {
            harness.kernel.kill_executors(doubted.iter().map(|target| target.id));
        }
        thread::sleep(Duration::from_micros(200));
    }
}

fn observe(harness: &Harness) {
    let mut number = 0;
    while harness.going_on() {
        let totals = harness.kernel.totals();
        assert!(totals.cores.whole_cores() <= CORES_MAX && totals.executors <= LIMIT_MAX as u32);
        let snapshot = harness.kernel.snapshot(harness.now());
        assert!(snapshot.number > number);
        number = snapshot.number;
        let _ = (harness.kernel.offer_counts(), harness.kernel.agents_known());
        let _ = harness.kernel.sufficient_resources_registered(0.5);
    }
}

/// Time passes: ticks, sweeps of agents far ahead of the others' clock, losses, demand.
fn pass_time(harness: &Harness, mut rng: Rng) {
    let mut ahead = 1_000_000;
    while harness.going_on() {
        let _ = harness.kernel.tick(harness.now());
        let _ = harness.kernel.poll_demand(harness.now());
        if rng.below(4) == 0 {
            ahead += 60_000;
            let _ = harness.kernel.tick(at(ahead));
        }
        let _ = harness.kernel.agent_lost(&format!("S{}", rng.below(12)), at(0));
        thread::sleep(Duration::from_micros(200));
    }
}

/// Adopts executors of a former run.
fn adopt(harness: &Harness) {
    let former = |executor, agent_id| {
        Recovered::new(
            executor,
            agent_id,
            "host",
            ExecutorResources {
                cores: MilliCpus::from_cores(1),
                memory: Mebibytes::new(100),
                gpus: Gpus::ZERO,
                port: None,
            },
        )
    };
    let former = [former("former-1", "S1"), former("former-2", "S2"), former("former-3", "S3")];
    let adopted = harness.kernel.adopt(&former, harness.now()).unwrap();
    for id in adopted.into_iter().flatten() {
        harness.placed.send(id).unwrap();
    }
}

/// Two threads close and drain in the middle of work; remaining executors end when the handlers have finished.
fn end(harness: &Harness, handlers: Vec<JoinHandle<()>>) {
    let drain = |harness: &Harness| {
        let left = harness.kernel.close();
        harness.kernel.kill_executors(left.iter().map(|target| target.id));
        assert!(harness.kernel.drain(secs(60)).drained);
    };
    let drains = [harness.spawn(drain), harness.spawn(drain)];
    handlers.into_iter().for_each(|handler| handler.join().unwrap());
    for target in harness.kernel.close() {
        harness.report(target.id, TaskState::Killed, UpdateReason::Other);
    }
    drains.into_iter().for_each(|drain| drain.join().unwrap());
}

fn round(ids: IdScheme, seed: u64) -> u64 {
    let harness = Harness::new(ids);
    let mut rest: Vec<JoinHandle<()>> = (0..UPDATERS)
        .map(|n| harness.spawn(move |harness| update(harness, Rng(seed + 10 + n))))
        .collect();
    rest.push(harness.spawn(move |harness| govern(harness, Rng(seed + 20))));
    rest.push(harness.spawn(observe));
    rest.push(harness.spawn(move |harness| pass_time(harness, Rng(seed + 30))));
    rest.push(harness.spawn(move |harness| pass_time(harness, Rng(seed + 31))));
    rest.push(harness.spawn(adopt));
    let spawn = |n| harness.spawn(move |harness| offer(harness, Rng(seed + n)));
    let handlers = (0..HANDLERS).map(spawn).collect();
    thread::sleep(Duration::from_millis(10 + seed % 40));
    end(&harness, handlers);
    harness.shared.done.store(true, Ordering::Relaxed);
    rest.into_iter().for_each(|thread| thread.join().unwrap());
    harness.kernel.check().unwrap();
    assert_eq!(harness.kernel.totals().executors, 0);
    harness.shared.operations.load(Ordering::Relaxed)
}

fn main() {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let (rounds, seed) = (number("OFFERMILL_ROUNDS").unwrap_or(2), number("OFFERMILL_SEED"));
    let seed = seed.unwrap_or(20_260_101);
    let mut operations = 0;
    for n in 0..rounds {
        let unique = || IdScheme::unique("race", 36).unwrap();
        let ids = if n % 2 == 0 { unique() } else { IdScheme::plain() };
        operations += round(ids, seed + 1000 * n);
    }
    assert!(operations > rounds * 100, "the test has to test something");
    println!(
        "stress: {THREADS} threads, {rounds} rounds from seed {seed}, {operations} operations"
    );
}
