//! What lines cost here: their owner, and a core that takes them from another.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::short;
use crate::support::figures::{Extent, table};
use crate::support::threads::together;

type Line = CachePadded<AtomicU64>;

/// Nanoseconds, medians. (Not the fastest: in those both threads may have been on one core.)
/// Transfers are timed only while both threads run, on a core each.
#[derive(Clone, Copy)]
pub(crate) struct Costs {
    /// A store to a line that this core has.
    store: f64,
    /// A read-modify-write of a line that this core has.
    pub(crate) own: f64,
    /// One of two cores' read-modify-writes of one line, as fast as they can, by time on the wall.
    contended: f64,
    /// A load of a line that the other core has just written.
    pub(crate) load: f64,
    /// A read-modify-write of such a line.
    pub(crate) take: f64,
    /// Half a round trip: a load that waits for the other core's write, and a compare-exchange.
    handover: f64,
}

impl Costs {
    pub(crate) fn measure(extent: Extent) -> Costs {
        let (laps, turns) = if extent == Extent::Test { (1, 100) } else { (30, 20_000) };
        let median = |lap: &dyn Fn(u64) -> f64, turns: u64| {
            let mut spent: Vec<f64> = (0..laps).map(|_| lap(turns)).collect();
            spent.sort_by(f64::total_cmp);
            spent[laps / 2]
        };
        // Threads of their own each time, which the system may put elsewhere.
        let both = |lap: &dyn Fn() -> Clocked| {
            (0..laps).map(|_| lap()).fold(Clocked::default(), Clocked::merge).median()
        };
        let look = median(&clock, turns);
        let chain = |step: fn(&Line) -> u64| {
            ((both(&|| visits(turns / 100, step)) - look) / CHAIN as f64).max(0.0)
        };
        Costs {
            store: median(
                &|turns| alone(turns, |line| line.store(1, Ordering::Release)),
                turns * 50,
            ),
            own: median(&|turns| alone(turns, add), turns * 50),
            contended: median(&contended, turns * 10),
            load: chain(|line| line.load(Ordering::Acquire)),
            take: chain(|line| line.fetch_or(0, Ordering::AcqRel)),
            handover: both(&|| handovers((turns / 4).max(100))) / (2 * TURNS_CLOCKED) as f64,
        }
    }

    /// The same where transfers cost more.
    pub(crate) fn farther(self, times: f64) -> Costs {
        Costs { load: self.load * times, take: self.take * times, ..self }
    }

    pub(crate) fn table(&self) -> String {
        let rows = [
            ("this machine's lines", "ns"),
            ("a store to an own line", &short(self.store)),
            ("a read-modify-write of an own line", &short(self.own)),
            ("one of two threads' on one line, as fast as they can", &short(self.contended)),
            ("a load of a line that the other core has just written", &short(self.load)),
            ("a read-modify-write of such a line", &short(self.take)),
            ("half a round trip of a word from core to core", &short(self.handover)),
        ];
        table(&rows.map(|(what, cost)| vec![what.to_owned(), cost.to_owned()]))
    }
}

fn add(line: &Line) {
    black_box(line.fetch_add(1, Ordering::AcqRel));
}

fn per(elapsed: Duration, turns: u64) -> f64 {
    elapsed.as_secs_f64() * 1e9 / turns as f64
}

fn alone(turns: u64, write: impl Fn(&Line)) -> f64 {
    let line = black_box(Line::default());
    let start = Instant::now();
    (0..turns).for_each(|_| write(&line));
    per(start.elapsed(), turns)
}

fn contended(turns: u64) -> f64 {
    let line = Line::default();
    let run = |_: &mut (), turns| (0..turns).for_each(|_| add(&line));
    per(together(&mut [(), ()], turns, run), turns)
}

/// What a look at the clock takes.
fn clock(turns: u64) -> f64 {
    let start = Instant::now();
    for _ in 0..turns {
        black_box(Instant::now());
    }
    per(start.elapsed(), turns)
}

/// Waits for a number in a line; lets others run if that takes long. Returns whether it was a wait, and short: so the
/// other thread was running all the while, on another core.
fn wait(line: &Line, number: u64) -> bool {
    let (start, mut looks) = (Instant::now(), 0u32);
    while line.load(Ordering::Acquire) != number {
        looks += 1;
        if looks.is_multiple_of(2_000) { std::thread::yield_now() } else { spin_loop() }
    }
    looks > 0 && start.elapsed() < PATIENCE
}

/// Shorter than the system lets another thread run for.
const PATIENCE: Duration = Duration::from_micros(20);

/// How long things took that were done when both threads ran, and if they never did, all.
#[derive(Default)]
struct Clocked {
    both: Vec<Duration>,
    all: Vec<Duration>,
}

impl Clocked {
    fn merge(mut self, other: Clocked) -> Clocked {
        self.both.extend(other.both);
        self.all.extend(other.all);
        self
    }

    fn add(&mut self, spent: Duration, both: bool) {
        self.all.push(spent);
        self.both.extend(both.then_some(spent));
    }

    /// Nanoseconds.
    fn median(self) -> f64 {
        let mut spent = if self.both.is_empty() { self.all } else { self.both };
        spent.sort_unstable();
        per(spent.get(spent.len() / 2).copied().unwrap_or_default(), 1)
    }
}

/// Handovers between two reads of the clock.
const TURNS_CLOCKED: u64 = 50;

fn handovers(turns: u64) -> Clocked {
    let line = Line::default();
    let rounds = turns / 2 / TURNS_CLOCKED * TURNS_CLOCKED;
    let run = |(side, clocked): &mut (u64, Clocked), _| {
        let (mut start, mut both) = (Instant::now(), true);
        for round in 0..rounds {
            let mine = 2 * round + *side;
            both &= wait(&line, mine);
            let swapped =
                line.compare_exchange(mine, mine + 1, Ordering::AcqRel, Ordering::Relaxed);
            debug_assert!(swapped.is_ok());
            if (round + 1).is_multiple_of(TURNS_CLOCKED) {
                clocked.add(start.elapsed(), both);
                (start, both) = (Instant::now(), true);
            }
        }
    };
    let mut sides = [(0, Clocked::default()), (1, Clocked::default())];
    together(&mut sides, 2, run);
    let [(_, clocked), _] = sides;
    clocked
}

/// Cache lines visited in sequence.
const CHAIN: usize = 64;

/// A thread writes lines, and then another visits each, in an order that only the lines tell. How long the visits of a
/// round take.
fn visits(rounds: u64, step: fn(&Line) -> u64) -> Clocked {
    let turn = Line::default();
    let lines: Vec<Line> = std::iter::repeat_with(Line::default).take(CHAIN).collect();
    // An odd step of a power of two comes by all.
    let next = |at: usize| (at + 29) % CHAIN;
    let run = |visitor: &mut Option<Clocked>, _| {
        for round in 0..rounds {
            if let Some(clocked) = visitor {
                let both = wait(&turn, 2 * round + 1);
                let start = Instant::now();
                let mut at = 0;
                for _ in 0..CHAIN {
                    at = step(&lines[at]) as usize % CHAIN;
                }
                black_box(at);
                clocked.add(start.elapsed(), both);
            } else {
                wait(&turn, 2 * round);
                lines.iter().enumerate().for_each(|(at, line)| {
                    line.store(next(at) as u64, Ordering::Release);
                });
            }
            turn.fetch_add(1, Ordering::AcqRel);
        }
    };
    let mut sides = [None, Some(Clocked::default())];
    together(&mut sides, 2, run);
    let [_, clocked] = sides;
    clocked.unwrap_or_default()
}
