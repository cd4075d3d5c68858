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

/// Waits for a number in a line; lets others run if that takes long.
fn wait(line: &Line, number: u64) {
    let mut looks = 0u32;
    while line.load(Ordering::Acquire) != number {
        looks += 1;
        if looks.is_multiple_of(10_000) { std::thread::yield_now() } else { spin_loop() }
    }
}

fn handovers(turns: u64) -> f64 {
    let line = Line::default();
    let rounds = turns / 2;
    let run = |side: &mut u64, _| {
        for round in 0..rounds {
            let mine = 2 * round + *side;
            wait(&line, mine);
            let swapped =
                line.compare_exchange(mine, mine + 1, Ordering::AcqRel, Ordering::Relaxed);
            debug_assert!(swapped.is_ok());
        }
    };
    per(together(&mut [0, 1], 2, run), rounds * 2)
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
    let run = |spent: &mut Option<Duration>, _| {
        for round in 0..rounds {
            if let Some(spent) = spent {
                wait(&turn, 2 * round + 1);
                let start = Instant::now();
                let mut at = 0;
                for _ in 0..CHAIN {
                    at = step(&lines[at]) as usize % CHAIN;
                }
                black_box(at);
                *spent += start.elapsed();
            } else {
                wait(&turn, 2 * round);
                lines.iter().enumerate().for_each(|(at, line)| {
                    line.store(next(at) as u64, Ordering::Release);
                });
            }
            turn.fetch_add(1, Ordering::AcqRel);
        }
    };
    let mut sides = [None, Some(Duration::ZERO)];
    together(&mut sides, 2, run);
    per(sides[1].unwrap_or_default(), rounds)
}
