//! Parsers for settings written as text: durations, memory, cores, counts, ratios, booleans.
//!
//! Every parser takes the setting's name and its text. The error for an invalid text contains the name, the text and
//! what is allowed. White space around a text is ignored.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::Error;
use crate::resources::{Mebibytes, MilliCpus, Scalar};

/// The maximum duration, 100 years. Adding it to any clock's time can't overflow.
pub const DURATION_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The maximum memory, in MiB: what an offer's fixed-point scalar can hold.
const MEBIBYTES_MAX: u64 = Scalar::MAX.thousandths() / 1000;

/// The maximum length of an invalid text in an error, in characters. The rest is cut off.
const SHOWN_MAX: usize = 80;

/// A unit of time. [`parse_duration`] takes one for numbers without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// `us`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`
    Seconds,
    /// `m` or `min`
    Minutes,
    /// `h`
    Hours,
    /// `d`
    Days,
}

impl TimeUnit {
    fn of(suffix: &str) -> Option<TimeUnit> {
        Some(match suffix {
            "us" => TimeUnit::Microseconds,
            "ms" => TimeUnit::Milliseconds,
            "s" => TimeUnit::Seconds,
            "m" | "min" => TimeUnit::Minutes,
            "h" => TimeUnit::Hours,
            "d" => TimeUnit::Days,
            _ => return None,
        })
    }

    const fn micros(self) -> u64 {
        match self {
            TimeUnit::Microseconds => 1,
            TimeUnit::Milliseconds => 1_000,
            TimeUnit::Seconds => 1_000_000,
            TimeUnit::Minutes => 60_000_000,
            TimeUnit::Hours => 3_600_000_000,
            TimeUnit::Days => 86_400_000_000,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            TimeUnit::Microseconds => "microseconds",
            TimeUnit::Milliseconds => "milliseconds",
            TimeUnit::Seconds => "seconds",
            TimeUnit::Minutes => "minutes",
            TimeUnit::Hours => "hours",
            TimeUnit::Days => "days",
        }
    }
}

/// Parses a duration: a whole number followed by `us`, `ms`, `s`, `m`, `min`, `h` or `d`, in upper or lower case. A
/// number without a unit is in `bare_unit`.
///
/// # Errors
/// Fails if the text is anything else, or longer than [`DURATION_MAX`].
pub fn parse_duration(setting: &str, text: &str, bare_unit: TimeUnit) -> Result<Duration, Error> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, suffix) = split_number(&lower);
    if digits.is_empty() || is_fraction(suffix) {
        return Err(bad_duration(setting, text, bare_unit, is_fraction(suffix)));
    }
    let unit = if suffix.is_empty() { Some(bare_unit) } else { TimeUnit::of(suffix) };
    let Some(unit) = unit else {
        return Err(bad_duration(setting, text, bare_unit, false));
    };
    let micros = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit.micros()));
    match micros.map(Duration::from_micros) {
        Some(duration) if duration <= DURATION_MAX => Ok(duration),
        _ => Err(bad(setting, text, "at most 36500d (100 years)")),
    }
}

/// A fraction in the largest unit in which it is a whole number, as in `2500ms, not 2.5s`.
fn smaller_duration(text: &str, bare_unit: TimeUnit) -> Option<String> {
    const UNITS: [(TimeUnit, &str); 6] = [
        (TimeUnit::Days, "d"),
        (TimeUnit::Hours, "h"),
        (TimeUnit::Minutes, "min"),
        (TimeUnit::Seconds, "s"),
        (TimeUnit::Milliseconds, "ms"),
        (TimeUnit::Microseconds, "us"),
    ];
    let text = text.trim().to_ascii_lowercase();
    let (thousandths, suffix) = thousandths(&text)?;
    let unit = if suffix.is_empty() { bare_unit } else { TimeUnit::of(suffix)? };
    let micros = thousandths.checked_mul(unit.micros())?;
    let whole = |unit: TimeUnit| micros % (unit.micros() * 1000) == 0;
    let (smaller, name) = UNITS.into_iter().find(|(unit, _)| whole(*unit))?;
    Some(format!("{}{name}, not {text}", micros / (smaller.micros() * 1000)))
}

/// An amount of memory with a fraction in the largest unit in which it is a whole number, as in `2560m, not 2.5g`.
fn smaller_memory(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (thousandths, suffix) = thousandths(&text)?;
    let unit = if suffix.is_empty() { Some('m') } else { suffix.chars().next() };
    let bits = |unit: char| "bkmgtp".find(unit).map(|at| 10 * at);
    let thousandths = u128::from(thousandths) << bits(unit?)?;
    let whole = |unit: &char| bits(*unit).is_some_and(|bits| thousandths % (1000 << bits) == 0);
    let smaller = "ptgmkb".chars().find(whole)?;
    Some(format!("{}{smaller}, not {text}", thousandths / (1000 << bits(smaller)?)))
}

/// A number with at most three decimals in thousandths, and what follows it.
fn thousandths(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = split_number(text);
    let (decimals, suffix) = split_number(rest.strip_prefix(['.', ','])?);
    if decimals.len() > 3 {
        return None;
    }
    Some((format!("{whole}{decimals:0<3}").parse().ok()?, suffix))
}

#[cold]
fn bad_duration(setting: &str, text: &str, bare_unit: TimeUnit, fraction: bool) -> Error {
    let mut allowed = format!(
        "a whole number and one of us, ms, s, m, min, h, d, such as 90s (a bare number is in {})",
        bare_unit.name()
    );
    if fraction {
        let smaller = smaller_duration(text, bare_unit);
        let example = smaller.unwrap_or_else(|| "500ms, not 0.5s".to_owned());
        allowed.push_str(&format!("; for a fraction take a smaller unit: {example}"));
    }
    bad(setting, text, allowed)
}

/// Parses an amount of memory: a whole number followed by `b`, `k`, `m`, `g`, `t` or `p`, each except `b` optionally
/// followed by another `b`, in upper or lower case. The units are powers of 1024. A number without a unit is in MiB.
/// The result is rounded down to whole MiB.
///
/// # Errors
/// Fails if the text is anything else, more than an offer can hold, or an amount other than 0 that would be rounded
/// down to 0.
pub fn parse_memory(setting: &str, text: &str) -> Result<Mebibytes, Error> {
    const ALLOWED: &str =
        "a whole number and one of b, k, m, g, t, p, such as 512m (a bare number is in MiB)";
    let lower = text.trim().to_ascii_lowercase();
    let (digits, suffix) = split_number(&lower);
    if is_fraction(suffix) {
        let example = smaller_memory(text).unwrap_or_else(|| "1536m, not 1.5g".to_owned());
        let hint = format!("{ALLOWED}; for a fraction take a smaller unit: {example}");
        return Err(bad(setting, text, hint));
    }
    let shift = match suffix {
        "b" => Some(0),
        "k" | "kb" => Some(10),
        "" | "m" | "mb" => Some(20),
        "g" | "gb" => Some(30),
        "t" | "tb" => Some(40),
        "p" | "pb" => Some(50),
        _ => None,
    };
    let (Some(shift), false) = (shift, digits.is_empty()) else {
        return Err(bad(setting, text, ALLOWED));
    };
    // A 64-bit number shifted left by 50 fits into 128 bits.
    let number = digits.parse::<u64>().ok().map(u128::from);
    let mebibytes = number.map(|number| (number << shift) >> 20);
    match mebibytes.and_then(|mebibytes| u64::try_from(mebibytes).ok()) {
        Some(0) if number != Some(0) => Err(bad(setting, text, "at least 1 MiB, or 0")),
        Some(mebibytes) if mebibytes <= MEBIBYTES_MAX => Ok(Mebibytes::new(mebibytes)),
        _ => Err(bad(setting, text, format!("at most {MEBIBYTES_MAX} MiB (8 EiB)"))),
    }
}

/// Parses a whole number within `allowed`.
///
/// # Errors
/// Fails if the text is anything else.
pub fn parse_count(setting: &str, text: &str, allowed: RangeInclusive<u64>) -> Result<u64, Error> {
    match text.trim().parse() {
        Ok(number) if allowed.contains(&number) => Ok(number),
        _ if *allowed.end() == u64::MAX => {
            Err(bad(setting, text, format!("a whole number of at least {}", allowed.start())))
        }
        _ => {
            let (least, most) = (allowed.start(), allowed.end());
            Err(bad(setting, text, format!("a whole number from {least} to {most}")))
        }
    }
}

/// Parses a number from 0 to 1.
///
/// # Errors
/// Fails if the text is anything else.
pub fn parse_ratio(setting: &str, text: &str) -> Result<f64, Error> {
    match text.trim().parse() {
        // Adding zero turns -0 into 0.
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio + 0.0),
        _ => Err(bad(setting, text, "a number from 0 to 1, such as 0.8")),
    }
}

/// Parses `true` or `false`, in upper or lower case.
///
/// # Errors
/// Fails if the text is anything else.
pub fn parse_bool(setting: &str, text: &str) -> Result<bool, Error> {
    let word = text.trim();
    if word.eq_ignore_ascii_case("true") {
        Ok(true)
    } else if word.eq_ignore_ascii_case("false") {
        Ok(false)
    } else {
        Err(bad(setting, text, "true or false"))
    }
}

/// Parses a number of cores above zero with up to three decimals: `2`, `0.5`.
///
/// # Errors
/// Fails if the text is anything else, or more than an offer can hold.
pub fn parse_cores(setting: &str, text: &str) -> Result<MilliCpus, Error> {
    let number = text.trim();
    let (whole, decimals) = match number.split_once('.') {
        Some((whole, decimals)) if !decimals.is_empty() => (whole, decimals),
        None if !number.is_empty() => (number, ""),
        _ => return Err(bad_cores(setting, text)),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if decimals.len() > 3 || !all_digits(whole) || !all_digits(decimals) {
        return Err(bad_cores(setting, text));
    }
    let millis = format!("{whole}{decimals:0<3}").parse().ok();
    match millis.filter(|millis| (1..=Scalar::MAX.thousandths()).contains(millis)) {
        Some(millis) => Ok(MilliCpus::from_millis(millis)),
        None => Err(bad_cores(setting, text)),
    }
}

#[cold]
fn bad_cores(setting: &str, text: &str) -> Error {
    bad(setting, text, "a number of cores above 0 with at most 3 decimals, such as 2 or 0.5")
}

/// Formats a duration in its one or two largest units: `5 s`, `1.5 s`, `11 min 20 s`, `1 h`. Smaller units are dropped.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    match seconds {
        0 if nanos == 0 => "0 s".into(),
        0 if nanos < 1_000 => format!("{nanos} ns"),
        0 if nanos < 1_000_000 => format!("{} us", nanos / 1_000),
        0 => format!("{} ms", nanos / 1_000_000),
        1..60 => {
            let decimals = format!("{seconds}.{:03}", nanos / 1_000_000);
            format!("{} s", decimals.trim_end_matches('0').trim_end_matches('.'))
        }
        60..3_600 => two_units(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two_units(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => two_units(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

fn two_units(larger: u64, larger_unit: &str, smaller: u64, smaller_unit: &str) -> String {
    match smaller {
        0 => format!("{larger} {larger_unit}"),
        _ => format!("{larger} {larger_unit} {smaller} {smaller_unit}"),
    }
}

/// Splits a text into the digits at its start and the rest, without the white space between.
fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    (digits, suffix.trim_start())
}

fn is_fraction(suffix: &str) -> bool {
    suffix
        .strip_prefix(['.', ','])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cold]
fn bad(setting: &str, text: impl Display, allowed: impl Into<String>) -> Error {
    let text = text.to_string();
    let mut shown: String = text.chars().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Error::setting(setting, shown, allowed)
}

#[cfg(test)]
mod tests;
