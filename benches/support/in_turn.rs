//! Schedulers that are compared: each has its bench, and then they are timed in turn for the ratio.
//!
//! Criterion measures one bench after the other, seconds apart. On a machine that does other things, too, it may run
//! twice as fast by then, and the ratio of two medians says little. So short samples are taken of two in turn, the one,
//! the other twice, the one: what the one before leaves in the caches is the same for both. The ratio of their sums is
//! one of many, of which the median counts.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId};

use super::figures::{self, Extent};

/// How many ratios are taken of two.
const ROUNDS: usize = 101;
/// How long a sample takes at least, its preparation included, of what leaves nothing under way between its turns.
const SAMPLE_MIN: Duration = Duration::from_millis(4);

/// One of those that are compared: its name, and what times a number of its turns.
pub(crate) type Compared<'a> = (&'a str, &'a mut dyn FnMut(u64) -> Duration);

/// Benches each in this group, and then takes the ratios of each to those after it, unless some of them weren't asked
/// for. `group_name` and `value` are those of the benches.
pub(crate) fn in_turn(
    group: &mut BenchmarkGroup<'_, WallTime>,
    bench: (&str, usize),
    compared: &mut [Compared<'_>],
) {
    in_turn_by(group, bench, compared, SAMPLE_MIN);
}

/// [`in_turn`], with samples that take this long at least.
pub(crate) fn in_turn_by(
    group: &mut BenchmarkGroup<'_, WallTime>,
    (group_name, value): (&str, usize),
    compared: &mut [Compared<'_>],
    sample_min: Duration,
) {
    let mut are_all_asked = true;
    for (name, time) in &mut *compared {
        let mut is_asked = false;
        group.bench_function(BenchmarkId::new(*name, value), |bencher| {
            is_asked = true;
            bencher.iter_custom(&mut *time);
        });
        are_all_asked &= is_asked;
    }
    if are_all_asked && figures::extent() == Extent::Full {
        compare(group_name, value, compared, sample_min);
    }
}

/// Prints the ratios, and keeps them for `benches/figures`.
fn compare(group: &str, value: usize, compared: &mut [Compared<'_>], sample_min: Duration) {
    let turns = compared.iter_mut().map(|(_, time)| turns_of_a_sample(time, sample_min));
    let turns: Vec<u64> = turns.collect();
    let mut lines = String::new();
    for one in 0..compared.len() {
        for other in one + 1..compared.len() {
            let mut sample = |at: usize| compared[at].1(turns[at]).as_secs_f64() / turns[at] as f64;
            let mut ratio = |_| {
                let [first, second, third, fourth] = [one, other, other, one].map(&mut sample);
                (first + fourth) / (second + third)
            };
            let mut ratios: Vec<f64> = (0..ROUNDS).map(&mut ratio).collect();
            ratios.sort_unstable_by(f64::total_cmp);
            let [low, median, high] = [1, 2, 3].map(|quarter| ratios[(ROUNDS - 1) * quarter / 4]);
            let (name, baseline) = (compared[one].0, compared[other].0);
            println!(
                "{group}/{value}: {name} takes {median:.2} times as long as {baseline} (half: {low:.2} to {high:.2})"
            );
            lines.push_str(&format!("{name}\t{baseline}\t{median:.4}\n"));
        }
    }
    let folder = folder();
    fs::create_dir_all(&folder).expect("a folder for ratios");
    let file = format!("{}, {value}", group.replace('/', "_"));
    fs::write(folder.join(file), lines).expect("a file of ratios");
}

/// The least number of turns that takes long enough, also a second time: the first may have been interrupted.
fn turns_of_a_sample(time: &mut dyn FnMut(u64) -> Duration, sample_min: Duration) -> u64 {
    let mut turns = 1;
    let mut is_long = |turns| {
        let start = Instant::now();
        time(turns);
        start.elapsed() >= sample_min
    };
    while !(is_long(turns) && is_long(turns)) {
        turns *= 2;
    }
    turns
}

fn folder() -> PathBuf {
    figures::folder().join("ratios")
}
