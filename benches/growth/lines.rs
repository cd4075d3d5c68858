//! What lines cost here: their owner, and a core that takes them from another.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::short;
use crate::support::crew::together;
use crate::support::figures::{Extent, table};

type Line = CachePadded<AtomicU64>;

/// Nanoseconds, medians of several laps. (Not the fastest: in those both threads may have been on one core.)
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
        let look = median(&clock, turns);
        let chain = |step: fn(&Line) -> u64| {
            let lap = |rounds| visits(rounds, step);
            ((median(&lap, turns / 50) - look) / CHAIN as f64).max(0.0)
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
            handover: median(&handovers, turns),
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

/// Waits for a number in a line; lets others run if that takes long. Returns whether it didn't: whether the other thread
/// was running all the while, on another core.
fn wait(line: &Line, number: u64) -> bool {
    let mut looks = 0u32;
    while line.load(Ordering::Acquire) != number {
        looks += 1;
        if looks.is_multiple_of(PATIENCE) { std::thread::yield_now() } else { spin_loop() }
    }
    looks < PATIENCE
}

const PATIENCE: u32 = 2_000;

/// The time of what was done when both threads ran, or if they never did, of all.
#[derive(Clone, Copy, Default)]
struct Clocked {
    both: (Duration, u64),
    all: (Duration, u64),
    /// The fastest of the former.
    fastest: Option<Duration>,
}

impl Clocked {
    fn add(&mut self, spent: Duration, both: bool) {
        for sum in [Some(&mut self.all), both.then_some(&mut self.both)].into_iter().flatten() {
            *sum = (sum.0 + spent, sum.1 + 1);
        }
        if both {
            self.fastest = Some(self.fastest.map_or(spent, |fastest| fastest.min(spent)));
        }
    }

    fn mean(&self) -> f64 {
        let (spent, count) = if self.both.1 > 0 { self.both } else { self.all };
        per(spent, count.max(1))
    }
}

/// So many handovers go by between two looks at the clock.
const TURNS_CLOCKED: u64 = 50;

fn handovers(turns: u64) -> f64 {
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
    let clocked = sides[0].1;
    let spent = clocked.fastest.map_or(clocked.mean(), |fastest| per(fastest, 1));
    spent / (2 * TURNS_CLOCKED) as f64
}

/// So many lines are visited one after the other.
const CHAIN: usize = 64;

/// A thread writes lines, and then another visits each, in an order that only the lines tell. How long the visits of a
/// round take.
fn visits(rounds: u64, step: fn(&Line) -> u64) -> f64 {
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
    sides[1].unwrap_or_default().mean()
}
