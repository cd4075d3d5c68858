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

use offermill::config::{Conduct, UnreachableRule};
use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{
    Change, Decisions, DrainReport, ExecutorId, Fate, Handler, IdScheme, Kernel, Phase, Reason,
    Recovered, Scope, StatusUpdate, TaskState, Timestamp, UpdateReason,
};

use crate::world::{Entry, Setup, Sheet, at, lend, secs};

const CORES_MAX: u64 = 60;
const LIMIT_MAX: u32 = 40;
const ROUNDS: u64 = 25;
const BATCHES: usize = 150;
/// The number of executors of a former run that are adopted during the first round.
const FORMER: usize = 12;

/// A random number generator: Splitmix64, small and good enough for choices.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize]
    }
}

pub(crate) fn seed() -> u64 {
    let given = std::env::var("OFFERMILL_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or(20_260_101);
    println!("OFFERMILL_SEED={seed}");
    seed
}

/// The state that the threads share.
struct Yard {
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

impl Yard {
    fn new(scheme: IdScheme, base: Setup) -> Yard {
        Yard {
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
fn offer(yard: &Yard, handler: &mut Handler, mut dice: Dice) {
    let mut decisions = Decisions::new();
    for _ in 0..BATCHES {
        let sheets: Vec<Sheet> = (0..1 + dice.roll(6))
            .map(|_| {
                let agent = dice.roll(12);
                let sheet = Sheet::new(&format!("S{agent}"), dice.roll(7) as f64, 1000.0);
                let sheet = sheet.on_host(&format!("h{}", agent / 2));
                sheet.with(Entry::scalar("gpus", dice.roll(3) as f64))
            })
            .collect();
        let closed = yard.closed.load(Ordering::Acquire);
        lend(&sheets, |offers| handler.resource_offers(offers, yard.now(), &mut decisions));
        let answered = decisions.declines().len()
            + decisions.accepts().map(|accept| accept.offers.len()).sum::<usize>();
        assert_eq!(answered, sheets.len());
        if closed {
            assert!(decisions.declines().iter().all(|row| row.reason == Reason::Stopping));
            assert_eq!(decisions.executors(), 0, "an executor after the close");
        }
        for accept in decisions.accepts() {
            for executor in accept.executors {
                let number = executor.id.sequence();
                assert!(yard.placed.lock().unwrap().insert(number), "{number} placed twice");
                yard.known.lock().unwrap().push(executor.id);
            }
        }
    }
}

/// One update thread's part of a round: any update about any executor, including outdated ones.
fn update(yard: &Yard, mut dice: Dice) {
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
    while !yard.done.load(Ordering::Relaxed) {
        let known = yard.known.lock().unwrap().clone();
        if known.is_empty() {
            thread::yield_now();
            continue;
        }
        // Late enough that no executor is young.
        let later = yard.now().plus(Scope::YOUNG_FOR);
        let live = yard.kernel.reconcile(Scope::All, later);
        let mut reports: Vec<Report> = Vec::new();
        for _ in 0..20 {
            let id = match dice.roll(live.len() as u64 + 3) as usize {
                one if one < live.len() => live[one].id,
                _ => dice.pick(&known),
            };
            let reason = dice.pick(&[UpdateReason::Other, UpdateReason::AgentRemoved]);
            reports.push((id, dice.pick(&STATES), reason));
        }
        if dice.roll(2) == 0 {
            tell(yard, &reports);
        } else {
            reports.iter().for_each(|report| tell(yard, &[*report]));
        }
        match dice.roll(8) {
            0 => drop(yard.kernel.agent_lost(&format!("S{}", dice.roll(12)), at(0))),
            1 => drop(yard.kernel.kill_executors(known.last().copied())),
            2 => drop(yard.kernel.poll_demand(yard.now())),
            _ => {}
        }
    }
}

/// One of two threads that call `tick`, whose clock is `behind` milliseconds behind.
fn drive(yard: &Yard, behind: u64) {
    while !yard.done.load(Ordering::Relaxed) {
        let now = at(yard.now().as_millis().saturating_sub(behind));
        yard.tick(now);
        let _call = yard.kernel.poll_demand(now);
        thread::sleep(Duration::from_micros(50));
    }
}

/// Adopts executors of a former run while offers are answered. Executors for which there is no capacity are left out.
fn adopt(yard: &Yard) {
    let names: Vec<String> = (0..FORMER).map(|number| format!("former-{number}")).collect();
    let agents: Vec<String> = (0..FORMER).map(|number| format!("S{}", number % 12)).collect();
    let former = names.iter().zip(&agents).map(|(executor, agent_id)| Recovered {
        executor,
        agent_id,
        hostname: "h0",
        resources: ExecutorResources {
            cores: MilliCpus::from_cores(1),
            memory: Mebibytes::new(100),
            gpus: Gpus::ZERO,
            port: None,
        },
    });
    let former: Vec<Recovered<'_>> = former.collect();
    let adopted = yard.kernel.adopt(&former, yard.now()).unwrap();
    println!("adopted: {} of {FORMER}", adopted.iter().flatten().count());
    for (id, name) in adopted.iter().zip(&names) {
        assert_eq!(yard.kernel.executor_id(name), *id, "{name}");
        yard.known.lock().unwrap().extend(*id);
    }
}

/// An update: executor, state and reason.
type Report = (ExecutorId, TaskState, UpdateReason);

/// Sends a single report by itself, and several as a batch.
fn tell(yard: &Yard, reports: &[Report]) {
    let name = |(id, ..): &Report| yard.kernel.executor_name(*id).to_string();
    let names: Vec<String> = reports.iter().map(name).collect();
    let update =
        |(name, (_, state, reason)): (_, &Report)| StatusUpdate::new(name, *state).because(*reason);
    let updates: Vec<StatusUpdate<'_>> =
        names.iter().map(String::as_str).zip(reports).map(update).collect();
    let mut outcomes = Vec::new();
    match &updates[..] {
        [one] => outcomes.push(yard.kernel.status_update(one, yard.now())),
        all => yard.kernel.status_updates(all, yard.now(), &mut outcomes),
    }
    assert_eq!(outcomes.len(), reports.len());
    for (outcome, ((id, ..), name)) in outcomes.iter().zip(reports.iter().zip(&names)) {
        if let Change::Ended(_) = outcome.change {
            yard.note_end(id.sequence());
        }
        assert_ne!(outcome.change, Change::UnknownExecutor, "{name}");
    }
}

/// Changes the executor limit and the settings, and checks that nothing is placed beyond a limit that is in force.
fn govern(yard: &Yard, mut dice: Dice) {
    while !yard.done.load(Ordering::Relaxed) {
        let limit = dice.roll(u64::from(LIMIT_MAX) + 1) as u32;
        if dice.roll(16) == 0 {
            // Often enough that a batch may meet the same value of a small counter of changes again.
            let changes = dice.pick(&[256, 300]);
            for change in 1..changes {
                yard.kernel.set_executor_limit(Some(LIMIT_MAX - change % 2)).unwrap();
            }
        }
        if dice.roll(3) == 0 {
            yard.kernel.reconfigure(setup(&yard.base, 1 + dice.roll(3), Some(limit)).config());
        } else if yard.base.locality_wait.is_some() {
            let hosts = ["h0", "h2", "h4"];
            yard.kernel.request_executors(Some(limit), hosts, yard.now()).unwrap();
        } else {
            yard.kernel.set_executor_limit(Some(limit)).unwrap();
        }
        let mut before = yard.kernel.totals().executors;
        for _ in 0..200 {
            let executors = yard.kernel.totals().executors;
            assert!(executors <= before.max(limit), "{before} to {executors} beyond {limit}");
            before = executors;
        }
    }
}

/// Reads totals and snapshots all the time. Returns the number of exact snapshots.
fn observe(yard: &Yard) -> u64 {
    let (mut number, mut exact) = (0, 0);
    while !yard.done.load(Ordering::Relaxed) {
        let totals = yard.kernel.totals();
        assert!(totals.cores.whole_cores() <= CORES_MAX && totals.executors <= LIMIT_MAX);
        let snapshot = yard.kernel.snapshot(yard.now());
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
fn run_round(yard: &Yard, handlers: &mut [Handler], adopts: bool, seed: u64) -> u64 {
    yard.done.store(false, Ordering::Relaxed);
    thread::scope(|scope| {
        if adopts {
            scope.spawn(move || adopt(yard));
        }
        let offering: Vec<_> = handlers
            .iter_mut()
            .zip(1..)
            .map(|(handler, n)| scope.spawn(move || offer(yard, handler, Dice(seed + n))))
            .collect();
        let watching = scope.spawn(|| observe(yard));
        for n in 10..12 {
            scope.spawn(move || update(yard, Dice(seed + n)));
        }
        scope.spawn(move || govern(yard, Dice(seed + 20)));
        scope.spawn(move || drive(yard, 0));
        scope.spawn(move || drive(yard, 15));
        let results: Vec<_> = offering.into_iter().map(thread::ScopedJoinHandle::join).collect();
        yard.done.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "a handler failed");
        watching.join().unwrap()
    })
}

fn fates(report: &DrainReport) -> BTreeMap<u64, Fate> {
    report.executors.iter().map(|row| (row.executor.id.sequence(), row.fate)).collect()
}

/// The last round: two threads close and drain while the others continue; updates end the remaining executors.
fn end(yard: &Yard, handlers: &mut [Handler], seed: u64) {
    let kill = || {
        let left = yard.kernel.close();
        yard.closed.store(true, Ordering::Release);
        yard.kernel.kill_executors(left.iter().map(|target| target.id));
        yard.kernel.drain(secs(30))
    };
    let (one, other) = thread::scope(|scope| {
        let round = scope.spawn(move || run_round(yard, handlers, false, seed));
        thread::sleep(Duration::from_millis(5));
        let (one, other) = (scope.spawn(kill), scope.spawn(kill));
        round.join().unwrap();
        for target in yard.kernel.close() {
            tell(yard, &[(target.id, TaskState::Killed, UpdateReason::Other)]);
        }
        (one.join().unwrap(), other.join().unwrap())
    });
    assert!(one.drained && other.drained);
    let last = yard.kernel.drain(Duration::ZERO);
    assert!(last.executors.iter().all(|row| row.fate != Fate::Alive), "{last:?}");
    // Executors that were unreachable in the first report may have ended since.
    for report in [one, other] {
        let (early, late) = (fates(&report), fates(&last));
        assert!(early.keys().eq(late.keys()), "the reports name the same executors");
        let differ = early.iter().filter(|(number, fate)| late[number] != **fate);
        assert!(differ.into_iter().all(|(_, fate)| *fate == Fate::Unreachable));
    }
    assert_eq!((yard.kernel.totals().executors, yard.kernel.totals().cores.millis()), (0, 0));
}

fn stress(scheme: IdScheme, base: Setup, adopts: bool, seed: u64) {
    let yard = Yard::new(scheme, base);
    let mut handlers: Vec<Handler> = (0..4).map(|_| yard.kernel.handler()).collect();
    let mut exact = 0;
    for round in 0..ROUNDS {
        exact += run_round(&yard, &mut handlers, adopts && round == 0, seed + 100 * round);
        yard.kernel.check().unwrap();
        let snapshot = yard.kernel.snapshot(at(0));
        assert!(snapshot.exact, "at a standstill");
        adds_up(&snapshot);
    }
    let counts = yard.kernel.offer_counts();
    let placed = yard.placed.lock().unwrap().len() as u64;
    let aged = yard.aged.load(Ordering::Relaxed);
    println!("{counts:?}\nexact snapshots while all ran: {exact}");
    println!("executors given up or forgotten: {aged}");
    assert_eq!((counts.executors, counts.batches), (placed, ROUNDS * 4 * BATCHES as u64));
    assert!(placed > 100 && exact > 0, "the test has to test something");
    end(&yard, &mut handlers, seed + 100 * ROUNDS);
    yard.kernel.check().unwrap();
    assert_eq!(yard.kernel.unknown_updates(), 0);
}

/// Goal: caps, limits, ids, ends, snapshots and the drain are correct while all threads race. Method: four handlers,
/// two update threads, two threads that call `tick`, one that adopts, one that changes settings, one that observes; the
/// totals are checked at each pause; two threads close and drain in the middle of work.
#[test]
fn promises_hold_while_threads_race() {
    stress(IdScheme::unique("race", 36).unwrap(), Setup::default(), true, seed());
}

/// Goal: the same with plain ids, which go through a map. Method: the same.
#[test]
fn promises_hold_with_plain_ids() {
    stress(IdScheme::plain(), Setup::default(), false, seed() + 7);
}

/// Goal: the same with Spark's conduct, and while hosts are wanted for a while, again and again. Method: the same; the
/// thread that changes settings requests executors on half of the hosts.
#[test]
fn promises_hold_while_hosts_are_wanted() {
    let locality_wait = Some(Duration::from_millis(100));
    let base = Setup { conduct: Conduct::SPARK_3_5, locality_wait, ..Setup::default() };
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
                let sheet = Sheet::new(&format!("S{number}"), 0.5, 100.0);
                lend(&[sheet], |offers| handler.resource_offers(offers, at(0), &mut decisions));
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
