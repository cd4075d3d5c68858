//! A loop that needs nothing but a core: what takes it long is the machine, not the program.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::table::Times;

/// Times loops that usually take about `length`.
pub(crate) fn run(length: Duration, span: Duration) -> Times {
    let laps = laps_in(length);
    let mut times = Times::default();
    let start = Instant::now();
    while start.elapsed() < span {
        times.time(|| spin(laps));
    }
    times
}

fn spin(laps: u64) {
    for lap in 0..laps {
        black_box(lap);
    }
}

/// By the fastest of some tries.
fn laps_in(length: Duration) -> u64 {
    const LAPS: u64 = 100_000;
    let tries = (0..20).map(|_| {
        let start = Instant::now();
        spin(LAPS);
        start.elapsed()
    });
    let fastest = tries.min().expect("some tries").as_nanos().max(1);
    (u128::from(LAPS) * length.as_nanos() / fastest) as u64
}
