//! Formats numbers, durations and rates for people.

use std::time::Duration;

use offermill::Timestamp;

use crate::text::format::{grouped, passed};

/// A duration with two or three significant digits: `84 ms`, `1.25 s`, `12.3 s`, `3 min 20 s`.
pub(super) fn span(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        millis @ 1000..10_000 => format!("{}.{:02} s", millis / 1000, millis / 10 % 100),
        _ => passed(duration),
    }
}

/// A moment of virtual time, as the time since the start.
pub(super) fn moment(at: Timestamp) -> String {
    passed(at.since(Timestamp::ORIGIN))
}

/// A number with two significant digits and a unit prefix: `4.2 M`.
pub(super) fn rough(number: u64) -> String {
    for (unit, letter) in [(1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")] {
        if number >= unit {
            let tenths = number / (unit / 10);
            return match tenths {
                0..100 => format!("{}.{} {letter}", tenths / 10, tenths % 10),
                _ => format!("{} {letter}", grouped(tenths / 10)),
            };
        }
    }
    number.to_string()
}

/// The number per second. Durations below a millisecond count as one.
pub(super) fn per_second(number: u64, took: Duration) -> u64 {
    (number as f64 / took.as_secs_f64().max(0.001)) as u64
}

/// The number per second as text, with a decimal below ten.
pub(super) fn speed(number: u64, took: Duration) -> String {
    match number as f64 / took.as_secs_f64().max(0.001) {
        few if few < 10.0 => format!("{few:.1}"),
        many => grouped(many as u64),
    }
}

/// A part of a whole in percent. Only zero is `0 %`, and only the whole is `100 %`.
pub(super) fn percent(part: u64, whole: u64) -> String {
    match 100.0 * part as f64 / whole.max(1) as f64 {
        0.0 => "0 %".to_owned(),
        small if small < 1.0 => "< 1 %".to_owned(),
        large if large > 99.0 && part < whole => "> 99 %".to_owned(),
        other => format!("{other:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers are formatted for people. Method: format one value of each kind.
    #[test]
    fn numbers_read_well() {
        let spans =
            [7, 999, 1256, 12_345, 200_000].map(|millis| span(Duration::from_millis(millis)));
        assert_eq!(spans, ["7 ms", "999 ms", "1.25 s", "12.3 s", "3 min 20 s"]);
        let rounded = [7, 999, 1000, 4_260_000, 12_345_678, 1 << 40].map(rough);
        assert_eq!(rounded, ["7", "999", "1.0 k", "4.2 M", "12 M", "1 099 G"]);
        let parts = [(0, 5), (1, 1000), (1, 2), (999, 1000), (5, 5)];
        let percents = parts.map(|(part, whole)| percent(part, whole));
        assert_eq!(percents, ["0 %", "< 1 %", "50 %", "> 99 %", "100 %"]);
    }
}
