//! The ticks of axes: positions and labels.

/// A tick: its position in the unit of the axis, and its label.
pub(super) type Tick = (f64, String);

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The possible steps between ticks of time axes, in milliseconds.
const TIME_STEPS: [u64; 26] = [
    1,
    10,
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
    10 * DAY,
];

/// The ticks of a time axis from 0 to `millis`, at most seven.
pub(super) fn time_ticks(millis: u64) -> Vec<Tick> {
    let step = TIME_STEPS.into_iter().find(|step| millis / step <= 6).unwrap_or(100 * DAY);
    (0..=millis / step)
        .map(|number| (number * step) as f64)
        .map(|at| (at, time(at, step)))
        .collect()
}

fn time(at: f64, step: u64) -> String {
    let (unit, name) = match step {
        DAY.. => (DAY, "d"),
        HOUR.. => (HOUR, "h"),
        MINUTE.. => (MINUTE, "min"),
        SECOND.. => (SECOND, "s"),
        _ => (1, "ms"),
    };
    if at == 0.0 { "0".to_owned() } else { format!("{} {name}", at / unit as f64) }
}

/// About five ticks from 0 to at least `most`. The last one is the end of the axis.
pub(super) fn number_ticks(most: f64) -> Vec<Tick> {
    let rough = (most / 4.0).max(1.0);
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power).into_iter();
    // Counts are integers, so the steps must be too.
    let mut steps = steps.filter(|step| step.fract() == 0.0);
    let step = steps.find(|step| *step >= rough).unwrap_or(rough);
    let steps = (most / step).ceil().max(1.0) as u32;
    (0..=steps).map(|number| f64::from(number) * step).map(|at| (at, compact(at))).collect()
}

/// A number in few characters: `2.5k`.
pub(super) fn compact(number: f64) -> String {
    for (unit, letter) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if number >= unit {
            return format!("{}{letter}", (number / unit * 100.0).round() / 100.0);
        }
    }
    format!("{}", (number * 100.0).round() / 100.0)
}

/// The ticks of a logarithmic axis of milliseconds.
pub(super) fn log_ticks(from: f64, to: f64) -> Vec<Tick> {
    let all = [
        (1, "1 ms"),
        (10, "10 ms"),
        (100, "100 ms"),
        (SECOND, "1 s"),
        (10 * SECOND, "10 s"),
        (MINUTE, "1 min"),
        (10 * MINUTE, "10 min"),
        (HOUR, "1 h"),
        (10 * HOUR, "10 h"),
        (10 * DAY, "10 d"),
    ];
    let ticks = all.into_iter().map(|(at, label)| (at as f64, label.to_owned()));
    ticks.filter(|(at, _)| (from..=to).contains(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: axes have few round steps and cover all values. Method: compute axes of many sizes.
    #[test]
    fn axes_are_round_and_long_enough() {
        for most in [0.0, 0.3, 1.0, 3.0, 7.0, 99.0, 1000.0, 100_001.0, 4.1e6] {
            let ticks = number_ticks(most);
            assert!((2..=6).contains(&ticks.len()), "{most}: {ticks:?}");
            assert!(ticks.last().unwrap().0 >= most, "{most}: {ticks:?}");
        }
        for millis in [1, 999, 59_000, 600_000, 86_400_000, 30 * DAY] {
            let ticks = time_ticks(millis);
            assert!((2..=7).contains(&ticks.len()), "{millis}: {ticks:?}");
        }
        assert_eq!([compact(0.0), compact(2500.0), compact(1e6)], ["0", "2.5k", "1M"]);
        assert_eq!(time_ticks(650_000)[1].1, "2 min");
    }
}
