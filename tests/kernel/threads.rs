//! Stress tests of the whole kernel with threads: its guarantees must hold at all times, and its totals must be exact
//! when all threads pause.
//!
//! A seed determines what each thread does; a failure prints it (`OFFERMILL_SEED` sets another). How the threads
//! interleave is not determined.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use offermill::config::{Compatibility, UnreachableRule};
use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{
    Change, Decisions, DrainReport, ExecutorId, Fate, Handler, IdScheme, Kernel, Phase, Reason,
    Recovered, Scope, StatusUpdate, TaskState, Timestamp, UpdateReason, Updater,
};

use crate::world::{Entry, OfferData, Setup, at, lend, secs};

const CORES_MAX: u64 = 60;
const LIMIT_MAX: u32 = 40;
const ROUNDS: u64 = 25;
const BATCHES: usize = 150;
/// The number of executors of a former run that are adopted during the first round.
const FORMER: usize = 12;

/// A random number generator: Splitmix64, small and good enough for choices.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

pub(crate) fn seed() -> u64 {
    let given = std::env::var("OFFERMILL_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(20_260_101);
    println!("OFFERMILL_SEED={seed}");
    seed
}

/// The state that the threads share.
struct Harness {
    kernel: Kernel,
    /// The settings that all threads of the round have in common.
    base: Setup,
    /// Virtual time, in milliseconds.
    clock: AtomicU64,
    /// Executors that updates may be about, including ended ones.
    known: Mutex<Vec<ExecutorId>>,
    /// All placed executors. Each may be placed once.
    placed: Mutex<HashSet<u64>>,
    /// All executors that an update or a tick ended. Each may end once.
    ended: Mutex<HashSet<u64>>,
    /// The number of executors that were given up or forgotten by time.
    aged: AtomicU64,
    /// Set once a close has returned.
    closed: AtomicBool,
    /// Set when the workers of a round have finished.
    done: AtomicBool,
}

impl Harness {
    fn new(scheme: IdScheme, base: Setup) -> Harness {
        Harness {
            kernel: Kernel::new(setup(&base, 2, Some(LIMIT_MAX)).config(), scheme),
            base,
            clock: AtomicU64::new(0),
            known: Mutex::default(),
            placed: Mutex::default(),
            ended: Mutex::default(),
            aged: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            done: AtomicBool::new(false),
        }
    }

    fn now(&self) -> Timestamp {
        at(self.clock.fetch_add(1, Ordering::Relaxed))
    }

    fn tick(&self, now: Timestamp) {
        let ticked = self.kernel.tick(now);
        ticked.forgotten.iter().for_each(|target| self.note_end(target.id.sequence()));
        let aged = ticked.given_up.len() + ticked.forgotten.len();
        self.aged.fetch_add(aged as u64, Ordering::Relaxed);
    }

    fn note_end(&self, number: u64) {
        assert!(self.ended.lock().unwrap().insert(number), "executor {number} ended twice");
    }
}

fn setup(base: &Setup, cores: u64, limit: Option<u32>) -> Setup {
    Setup {
        core_cap: Some(CORES_MAX * 1000),
        executor_cores: Some(cores * 1000),
        gpu_cap: 10,
        limit,
        unreachable: UnreachableRule {
            release_after: Some(Duration::from_millis(40)),
            forget_after: Duration::from_millis(400),
        },
        exclusion: Some(offermill::config::ExclusionRule {
            failures: 3,
            window: secs(1),
            expiry: Some(Duration::from_millis(50)),
        }),
        ..base.clone()
    }
}

/// One handler's part of a round.
fn offer(harness: &Harness, handler: &mut Handler, mut rng: Rng) {
    let mut decisions = Decisions::new();
    for _ in 0..BATCHES {
        let batch: Vec<OfferData> = (0..1 + rng.below(6))
            .map(|_| {
                let agent = rng.below(12);
                let offer_data = OfferData::new(&format!("S{agent}"), rng.below(7) as f64, 1000.0);
                let offer_data = offer_data.on_host(&format!("h{}", agent / 2));
                offer_data.with(Entry::scalar("gpus", rng.below(3) as f64))
            })
            .collect();
        let closed = harness.closed.load(Ordering::Acquire);
        lend(&batch, |offers| handler.resource_offers(offers, harness.now(), &mut decisions));
        let answered = decisions.declines().len()
            + decisions.accepts().map(|accept| accept.offers.len()).sum::<usize>();
        assert_eq!(answered, batch.len());
        if closed {
            assert!(decisions.declines().iter().all(|row| row.reason == Reason::Stopping));
            assert_eq!(decisions.executors(), 0, "an executor after the close");
        }
        for accept in decisions.accepts() {
            for executor in accept.executors {
                let number = executor.id.sequence();
                assert!(harness.placed.lock().unwrap().insert(number), "{number} placed twice");
                harness.known.lock().unwrap().push(executor.id);
            }
        }
    }
}

/// One update thread's part of a round: any update about any executor, including outdated ones.
fn update(harness: &Harness, mut rng: Rng) {
    const STATES: [TaskState; 8] = [
        TaskState::Running,
        TaskState::Running,
        TaskState::Staging,
        TaskState::Unreachable,
        TaskState::Lost,
        TaskState::Failed,
        TaskState::Finished,
        TaskState::Killed,
    ];
    let mut updater = harness.kernel.updater();
    while !harness.done.load(Ordering::Relaxed) {
        let known = harness.known.lock().unwrap().clone();
        if known.is_empty() {
            thread::yield_now();
            continue;
        }
        // Late enough that no executor is young.
        let later = harness.now().plus(Scope::YOUNG_FOR);
        let live = harness.kernel.reconcile(Scope::All, later);
        let mut reports: Vec<Report> = Vec::new();
        for _ in 0..20 {
            let id = match rng.below(live.len() as u64 + 3) as usize {
                one if one < live.len() => live[one].id,
                _ => rng.pick(&known),
            };
            let reason = rng.pick(&[UpdateReason::Other, UpdateReason::AgentRemoved]);
            reports.push((id, rng.pick(&STATES), reason));
        }
        if rng.below(2) == 0 {
            tell(harness, &mut updater, &reports);
        } else {
            reports.iter().for_each(|report| tell(harness, &mut updater, &[*report]));
        }
        match rng.below(8) {
            0 => drop(harness.kernel.agent_lost(&format!("S{}", rng.below(12)), at(0))),
            1 => drop(harness.kernel.kill_executors(known.last().copied())),
            2 => drop(harness.kernel.poll_demand(harness.now())),
            _ => {}
        }
    }
}

/// One of two threads that call `tick`, whose clock is `behind` milliseconds behind.
fn drive(harness: &Harness, behind: u64) {
    while !harness.done.load(Ordering::Relaxed) {
        let now = at(harness.now().as_millis().saturating_sub(behind));
        harness.tick(now);
        let _call = harness.kernel.poll_demand(now);
        thread::sleep(Duration::from_micros(50));
    }
}

/// Adopts executors of a former run while offers are answered. Executors for which there is no capacity are left out.
fn adopt(harness: &Harness) {
    let names: Vec<String> = (0..FORMER).map(|number| format!("former-{number}")).collect();
    let agents: Vec<String> = (0..FORMER).map(|number| format!("S{}", number % 12)).collect();
    let former = names.iter().zip(&agents).map(|(executor, agent_id)| {
        Recovered::new(
            executor,
            agent_id,
            "h0",
            ExecutorResources {
                cores: MilliCpus::from_cores(1),
                memory: Mebibytes::new(100),
                gpus: Gpus::ZERO,
                port: None,
            },
        )
    });
    let former: Vec<Recovered<'_>> = former.collect();
    let adopted = harness.kernel.adopt(&former, harness.now()).unwrap();
    println!("adopted: {} of {FORMER}", adopted.iter().flatten().count());
    for (id, name) in adopted.iter().zip(&names) {
        assert_eq!(harness.kernel.executor_id(name), *id, "{name}");
        harness.known.lock().unwrap().extend(*id);
    }
}

/// An update: executor, state and reason.
type Report = (ExecutorId, TaskState, UpdateReason);

/// Sends a single report by the updater, and several as a batch.
fn tell(harness: &Harness, updater: &mut Updater, reports: &[Report]) {
    let name = |(id, ..): &Report| harness.kernel.executor_name(*id).to_string();
    let names: Vec<String> = reports.iter().map(name).collect();
    let update =
        |(name, (_, state, reason)): (_, &Report)| StatusUpdate::new(name, *state).because(*reason);
    let updates: Vec<StatusUpdate<'_>> =
        names.iter().map(String::as_str).zip(reports).map(update).collect();
    let mut outcomes = Vec::new();
    match &updates[..] {
        [one] => outcomes.push(updater.status_update(one, harness.now())),
        all => harness.kernel.status_updates(all, harness.now(), &mut outcomes),
    }
    assert_eq!(outcomes.len(), reports.len());
    for (outcome, ((id, ..), name)) in outcomes.iter().zip(reports.iter().zip(&names)) {
        if let Change::Ended(_) = outcome.change {
            harness.note_end(id.sequence());
        }
        assert_ne!(outcome.change, Change::UnknownExecutor, "{name}");
    }
}

/// Changes the executor limit and the settings, and checks that nothing is placed beyond a limit that is in force.
fn govern(harness: &Harness, mut rng: Rng) {
    while !harness.done.load(Ordering::Relaxed) {
        let limit = rng.below(u64::from(LIMIT_MAX) + 1) as u32;
        if rng.below(16) == 0 {
            // Often enough that a batch may meet the same value of a small counter of changes again.
            let changes = rng.pick(&[256, 300]);
            for change in 1..changes {
                harness.kernel.set_executor_limit(Some(LIMIT_MAX - change % 2)).unwrap();
            }
        }
        if rng.below(3) == 0 {
            harness
                .kernel
                .reconfigure(setup(&harness.base, 1 + rng.below(3), Some(limit)).config());
        } else if harness.base.locality_wait.is_some() {
            let hosts = ["h0", "h2", "h4"];
            harness.kernel.request_executors(Some(limit), hosts, harness.now()).unwrap();
        } else {
            harness.kernel.set_executor_limit(Some(limit)).unwrap();
        }
        let mut before = harness.kernel.totals().executors;
        for _ in 0..200 {
            let executors = harness.kernel.totals().executors;
            assert!(executors <= before.max(limit), "{before} to {executors} beyond {limit}");
            before = executors;
        }
    }
}

/// Reads totals and snapshots all the time. Returns the number of exact snapshots.
fn observe(harness: &Harness) -> u64 {
    let (mut number, mut exact) = (0, 0);
    while !harness.done.load(Ordering::Relaxed) {
        let totals = harness.kernel.totals();
        assert!(totals.cores.whole_cores() <= CORES_MAX && totals.executors <= LIMIT_MAX);
        let snapshot = harness.kernel.snapshot(harness.now());
        assert!(snapshot.number > number);
        number = snapshot.number;
        assert!(snapshot.totals.cores.whole_cores() <= CORES_MAX);
        if snapshot.exact {
            exact += 1;
            adds_up(&snapshot);
        }
    }
    exact
}

fn adds_up(snapshot: &offermill::Snapshot) {
    let counted = snapshot.executors.iter().filter(|view| view.phase != Phase::GivenUp);
    let (mut executors, mut cores) = (0, 0);
    for view in counted {
        executors += 1;
        cores += view.resources.cores.millis();
    }
    assert_eq!(executors, snapshot.totals.executors);
    assert_eq!(cores, snapshot.totals.cores.millis());
}

/// Runs all threads until the handlers have answered all their batches. Returns the number of exact snapshots.
fn run_round(harness: &Harness, handlers: &mut [Handler], adopts: bool, seed: u64) -> u64 {
    harness.done.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        if adopts {
            scope.spawn(move || adopt(harness));
        }
        let offering: Vec<_> = handlers
            .iter_mut()
            .zip(1..)
            .map(|(handler, n)| scope.spawn(move || offer(harness, handler, Rng(seed + n))))
            .collect();
        let watching = scope.spawn(|| observe(harness));
        for n in 10..12 {
            scope.spawn(move || update(harness, Rng(seed + n)));
        }
        scope.spawn(move || govern(harness, Rng(seed + 20)));
        scope.spawn(move || drive(harness, 0));
        scope.spawn(move || drive(harness, 15));
        let results: Vec<_> = offering.into_iter().map(thread::ScopedJoinHandle::join).collect();
        harness.done.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "a handler failed");
        watching.join().unwrap()
    })
}

fn fates(report: &DrainReport) -> BTreeMap<u64, Fate> {
    report.executors.iter().map(|row| (row.executor.id.sequence(), row.fate)).collect()
}

/// The last round: two threads close and drain while the others continue; updates end the remaining executors.
fn end(harness: &Harness, handlers: &mut [Handler], seed: u64) {
    let kill = || {
        let left = harness.kernel.close();
        harness.closed.store(true, Ordering::Release);
        harness.kernel.kill_executors(left.iter().map(|target| target.id));
        harness.kernel.drain(secs(30))
    };
    let (one, other) = thread::scope(|scope| {
        let round = scope.spawn(move || run_round(harness, handlers, false, seed));
        thread::sleep(Duration::from_millis(5));
        let (one, other) = (scope.spawn(kill), scope.spawn(kill));
        round.join().unwrap();
        let mut updater = harness.kernel.updater();
        for target in harness.kernel.close() {
            tell(harness, &mut updater, &[(target.id, TaskState::Killed, UpdateReason::Other)]);
        }
        (one.join().unwrap(), other.join().unwrap())
    });
    assert!(one.drained && other.drained);
    let last = harness.kernel.drain(Duration::ZERO);
    assert!(last.executors.iter().all(|row| row.fate != Fate::Alive), "{last:?}");
    // Executors that were unreachable in the first report may have ended since.
    for report in [one, other] {
        let (early, late) = (fates(&report), fates(&last));
        assert!(early.keys().eq(late.keys()), "the reports name the same executors");
        let differ = early.iter().filter(|(number, fate)| late[number] != **fate);
        assert!(differ.into_iter().all(|(_, fate)| *fate == Fate::Unreachable));
    }
    assert_eq!((harness.kernel.totals().executors, harness.kernel.totals().cores.millis()), (0, 0));
}

fn stress(scheme: IdScheme, base: Setup, adopts: bool, seed: u64) {
    let harness = Harness::new(scheme, base);
    let mut handlers: Vec<Handler> = (0..4).map(|_| harness.kernel.handler()).collect();
    let mut exact = 0;
    for round in 0..ROUNDS {
        exact += run_round(&harness, &mut handlers, adopts && round == 0, seed + 100 * round);
        harness.kernel.check().unwrap();
        let snapshot = harness.kernel.snapshot(at(0));
        assert!(snapshot.exact, "at a standstill");
        adds_up(&snapshot);
    }
    let counts = harness.kernel.offer_counts();
    let placed = harness.placed.lock().unwrap().len() as u64;
    let aged = harness.aged.load(Ordering::Relaxed);
    println!("{counts:?}\nexact snapshots while all ran: {exact}");
    println!("executors given up or forgotten: {aged}");
    assert_eq!((counts.executors, counts.batches), (placed, ROUNDS * 4 * BATCHES as u64));
    assert!(placed > 100 && exact > 0, "the test has to test something");
    end(&harness, &mut handlers, seed + 100 * ROUNDS);
    harness.kernel.check().unwrap();
    assert_eq!(harness.kernel.unknown_updates(), 0);
}

/// Goal: caps, limits, ids, ends, snapshots and the drain are correct while all threads race. Method: four handlers,
/// two update threads, two threads that call `tick`, one that adopts, one that changes settings, one that observes; the
/// totals are checked at each pause; two threads close and drain in the middle of work.
#[test]
fn promises_hold_while_threads_race() {
    stress(IdScheme::unique("race", 36).unwrap(), Setup::default(), true, seed());
}

/// Goal: the same with plain ids, which go through a table of pages. Method: the same.
#[test]
fn promises_hold_with_plain_ids() {
    stress(IdScheme::plain(), Setup::default(), false, seed() + 7);
}

/// Goal: the same with Spark's behaviour, and while hosts are wanted for a while, again and again. Method: the same;
/// the thread that changes settings requests executors on half of the hosts.
#[test]
fn promises_hold_while_hosts_are_wanted() {
    let locality_wait = Some(Duration::from_millis(100));
    let base = Setup { compatibility: Compatibility::SPARK_3_5, locality_wait, ..Setup::default() };
    stress(IdScheme::plain(), base, false, seed() + 14);
}

/// Goal: agents that several handlers meet at the same time, while others are forgotten, are registered once. Method:
/// handlers whose clock stands still meet new agents; another thread's clock is far ahead and forgets agents.
#[test]
fn agents_may_be_forgotten_while_they_are_met() {
    const AGENTS: u64 = 30_000;
    let kernel = Kernel::new(Setup::default().config(), IdScheme::plain());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let meet = || {
            let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
            for number in 0..AGENTS {
                let offer_data = OfferData::new(&format!("S{number}"), 0.5, 100.0);
                lend(&[offer_data], |offers| {
                    handler.resource_offers(offers, at(0), &mut decisions)
                });
            }
        };
        let meeting = [scope.spawn(meet), scope.spawn(meet)];
        scope.spawn(|| {
            let mut now = 1_000_000;
            while !done.load(Ordering::Relaxed) {
                kernel.tick(at(now));
                now += 60_000;
            }
        });
        let results = meeting.map(thread::ScopedJoinHandle::join);
        done.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
    kernel.check().unwrap();
    kernel.tick(Timestamp::MAX);
    assert_eq!((kernel.agents_known(), kernel.snapshot(at(0)).agents.len()), (0, 0));
    kernel.check().unwrap();
}
