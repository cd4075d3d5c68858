//! Executor ids: a sequence number with a slot, and the text that clusters see.

use std::fmt;

use crate::error::Error;

/// An executor's id within one kernel: cheap to copy, compare and look up.
///
/// The sequence number is unique during the kernel's lifetime. The slot is the index of the executor's cell, so that a
/// status update finds the executor without hashing. Clusters see the text that [`IdScheme`] produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExecutorId {
    pub(crate) sequence: u64,
    pub(crate) slot: u32,
}

impl ExecutorId {
    /// Returns the executor's sequence number. Numbers start at 0, in the order in which executors were planned. Gaps
    /// are possible: a placement that loses its capacity to another thread has used up its number.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.sequence
    }
}

/// The text form of executor ids.
///
/// ```
/// use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp};
///
/// let started = 1_700_000_000; // seconds since 1970
/// let kernel = Kernel::new(Config::builder().build()?, IdScheme::unique("etl", started)?);
/// let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 4096.0)];
/// let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
/// let mut decisions = Decisions::new();
/// kernel.handler().resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
///
/// let id = decisions.accepts().next().unwrap().executors[0].id;
/// assert_eq!(kernel.executor_name(id).to_string(), "etl-s44we8-0.0");
/// assert_eq!(kernel.executor_id("etl-s44we8-0.0"), Some(id));
/// assert_eq!(kernel.executor_id("0"), None); // as `IdScheme::plain` has it
///
/// assert!(IdScheme::unique("a/b", 0).is_err()); // Mesos allows no `/` in ids
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdScheme(Scheme);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scheme {
    Unique { stem: String },
    Plain,
}

/// The maximum length of a prefix, in bytes. With the longest run, sequence and slot an id stays below the 255 bytes
/// that Mesos allows.
const PREFIX_BYTES_MAX: usize = 190;

impl IdScheme {
    /// Ids such as `etl-t9x3k2-17.4`: prefix, run (in base 36), sequence, slot.
    ///
    /// They are unique across restarts if no two kernels with the same prefix have the same `run`. The start time in
    /// seconds is a suitable number.
    ///
    /// # Errors
    /// Fails if `prefix` is empty, longer than 190 bytes, or contains a `/`, a `\` or a control character, which Mesos
    /// doesn't allow in ids.
    pub fn unique(prefix: &str, run: u64) -> Result<IdScheme, Error> {
        let allowed = |c: char| !c.is_control() && c != '/' && c != '\\';
        if prefix.is_empty() || prefix.len() > PREFIX_BYTES_MAX || !prefix.chars().all(allowed) {
            return Err(Error::setting(
                "id prefix",
                prefix,
                "1 to 190 bytes without '/', '\\' and control characters",
            ));
        }
        Ok(IdScheme(Scheme::Unique { stem: format!("{prefix}-{}-", Base36(run)) }))
    }

    /// Plain increasing numbers, `0`, `1`, `2`, as Spark uses them. They collide with those of another run under the
    /// same framework id. A table leads from a number to its executor, in pages of 256 numbers; it takes about 4 bytes
    /// an executor, and up to 1 KiB for one that outlives its neighbours.
    #[must_use]
    pub fn plain() -> IdScheme {
        IdScheme(Scheme::Plain)
    }

    /// Returns the text of `id`.
    #[must_use]
    pub fn display(&self, id: ExecutorId) -> impl fmt::Display + '_ {
        IdText { scheme: self, id }
    }

    /// Parses the text of an id. `None` if it doesn't belong to this scheme. Always inlined: each update asks, and the
    /// numbers stay in registers.
    #[inline(always)]
    pub(crate) fn parse(&self, text: &str) -> Option<Parsed> {
        match &self.0 {
            Scheme::Plain => parse_plain(text.as_bytes()),
            Scheme::Unique { stem } => parse_unique(stem.as_bytes(), text.as_bytes()),
        }
    }

    /// Returns whether the text of an id lacks the slot, so that a table must find it.
    pub(crate) fn needs_table(&self) -> bool {
        self.0 == Scheme::Plain
    }
}

/// The content of an id's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The whole id, including the slot.
    Id(ExecutorId),
    /// Only the sequence number.
    Sequence(u64),
}

#[inline(always)]
fn parse_unique(stem: &[u8], text: &[u8]) -> Option<Parsed> {
    if !begins_with(text, stem) {
        return None;
    }
    let length = text.len() - stem.len();
    let (sequence, slot) = match short_numbers(text, length) {
        Some((sequence, slot)) => (u64::from(sequence), slot),
        None => two_numbers(&text[stem.len()..])?,
    };
    Some(Parsed::Id(ExecutorId { sequence, slot }))
}

#[inline(never)]
fn parse_plain(text: &[u8]) -> Option<Parsed> {
    match leading_number(text)? {
        (sequence, []) => Some(Parsed::Sequence(sequence)),
        _ => None,
    }
}

/// Whether a text begins with a stem. Those of 8 to 16 bytes, as most are, are compared as two words that overlap.
#[inline(always)]
fn begins_with(text: &[u8], stem: &[u8]) -> bool {
    let Some(start) = text.get(..stem.len()) else { return false };
    let word = |bytes: Option<&[u8; 8]>| bytes.map(|bytes| u64::from_le_bytes(*bytes));
    match (word(stem.first_chunk()), word(stem.last_chunk())) {
        (Some(first), Some(last)) if stem.len() <= 16 => {
            word(start.first_chunk()) == Some(first) && word(start.last_chunk()) == Some(last)
        }
        _ => start == stem,
    }
}

/// The number of decimal digits that always fit into a `u64`.
const SAFE_DIGITS: usize = 19;

/// Parses the decimal number at the start of a text; returns it and the rest. Signs and leading zeros are rejected, so
/// that each executor has exactly one text.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut number, mut length) = (0u64, 0);
    for byte in text.iter().take(SAFE_DIGITS) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number * 10 + u64::from(digit);
        length += 1;
    }
    if length == SAFE_DIGITS
        && let Some(last @ b'0'..=b'9') = text.get(length)
    {
        number = number.checked_mul(10)?.checked_add(u64::from(last - b'0'))?;
        length += 1;
    }
    let canonical = length == 1 || length > 1 && text[0] != b'0';
    canonical.then(|| (number, &text[length..]))
}

/// Parses two decimal numbers with a point in between. Not inlined: [`short_numbers`] does nearly all.
#[inline(never)]
fn two_numbers(text: &[u8]) -> Option<(u64, u32)> {
    let (first, rest) = leading_number(text)?;
    let (second, []) = leading_number(rest.strip_prefix(b".")?)? else { return None };
    Some((first, u32::try_from(second).ok()?))
}

/// The two numbers of [`two_numbers`] in the last `length` bytes of a text, if the first has at most eight digits and
/// the second at most seven. Reads eight bytes at a time, also some before the numbers; `None` if there aren't as many,
/// and for all that isn't two such numbers.
#[inline(always)]
fn short_numbers(text: &[u8], length: usize) -> Option<(u32, u32)> {
    const POINTS: u64 = u64::from_le_bytes([b'.'; 8]);
    const LOW_BITS: u64 = u64::from_le_bytes([0x7f; 8]);
    // The last byte of the text is the highest one.
    let last = u64::from_le_bytes(*text.last_chunk()?);
    let others = last ^ POINTS;
    // The highest bit of each byte that is a point.
    let points = !((others & LOW_BITS).wrapping_add(LOW_BITS) | others | LOW_BITS);
    if points == 0 {
        return None;
    }
    let second_digits = points.leading_zeros() as usize / 8;
    let first_digits = length.checked_sub(second_digits + 1)?;
    let before_point = text.get(..text.len().checked_sub(second_digits + 1)?)?;
    let first = u64::from_le_bytes(*before_point.last_chunk()?);
    Some((short_number(first, first_digits)?, short_number(last, second_digits)?))
}

/// The decimal number in the highest `digits` bytes of a word, of which the highest is the last digit.
#[inline(always)]
fn short_number(word: u64, digits: usize) -> Option<u32> {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
    const HIGH_HALVES: u64 = u64::from_le_bytes([0xf0; 8]);
    const SIXES: u64 = u64::from_le_bytes([6; 8]);
    if !(1..=8).contains(&digits) {
        return None;
    }
    let unused = 64 - 8 * digits as u32;
    // Zeros come before the number. A byte of a decimal digit is 0x30 to 0x39.
    let text = word >> unused << unused | ZEROS & !(u64::MAX << unused);
    let values = text ^ ZEROS;
    let all_digits = (values | values.wrapping_add(SIXES)) & HIGH_HALVES == 0;
    let begins_with_zero = values >> unused & 0xff == 0;
    if !all_digits || begins_with_zero && digits > 1 {
        return None;
    }
    // Each step adds up neighbours: pairs of digits, of pairs, and of fours.
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    // Eight digits fit into 32 bits.
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) as u32)
}

struct IdText<'a> {
    scheme: &'a IdScheme,
    id: ExecutorId,
}

impl fmt::Display for IdText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scheme.0 {
            Scheme::Plain => self.id.sequence.fmt(f),
            Scheme::Unique { stem } => {
                // Each name is written once for each executor that is placed: in two pieces, not in four.
                let mut text = [b'.'; 31];
                let slot = write_decimal(self.id.slot.into(), &mut text);
                let point = slot.saturating_sub(1);
                let start =
                    write_decimal(self.id.sequence, text.get_mut(..point).unwrap_or_default());
                f.write_str(stem)?;
                f.write_str(str::from_utf8(&text[start..]).unwrap_or_default())
            }
        }
    }
}

/// Writes a number at the end of `text`; returns where it starts. `text` must have room for it.
fn write_decimal(number: u64, text: &mut [u8]) -> usize {
    let mut rest = number;
    let mut start = text.len();
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        start -= 1;
        if rest == 0 {
            break;
        }
    }
    start
}

struct Base36(u64);

impl fmt::Display for Base36 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        let mut text = [0u8; 13];
        let (mut rest, mut start) = (self.0, text.len());
        loop {
            start -= 1;
            text[start] = DIGITS[(rest % 36) as usize];
            rest /= 36;
            if rest == 0 {
                break;
            }
        }
        f.write_str(str::from_utf8(&text[start..]).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: one executor, one text, and other texts find nothing. Method: round trip, then near misses.
    #[test]
    fn ids_read_back_and_reject_other_spellings() {
        let scheme = IdScheme::unique("etl", 1_700_000_000).unwrap();
        let id = ExecutorId { sequence: 17, slot: 4 };
        let text = scheme.display(id).to_string();
        assert_eq!(text, "etl-s44we8-17.4");
        assert_eq!(scheme.parse(&text), Some(Parsed::Id(id)));
        for (sequence, slot) in [(0, 0), (9, 10), (u64::MAX, u32::MAX)] {
            let text = scheme.display(ExecutorId { sequence, slot }).to_string();
            assert_eq!(text, format!("etl-s44we8-{sequence}.{slot}"));
        }
        for other in [
            "",
            "etl",
            "etl-s44we8-17",
            "etl-s44we8-017.4",
            "etl-s44we8-+17.4",
            "etl-s44we8-17.99999999999",
            "etl-s44we8-17.4.",
            "etl-s44we8-17.04",
            "etl-s44we8-.4",
            "etl-s44we8-00.4",
            "etl-s44we8-18446744073709551616.4",
            "x-s44we8-17.4",
        ] {
            assert_eq!(scheme.parse(other), None, "{other}");
        }
        assert_eq!(IdScheme::plain().parse("17"), Some(Parsed::Sequence(17)));
        assert_eq!(IdScheme::plain().parse("0"), Some(Parsed::Sequence(0)));
        let last = u64::MAX.to_string();
        assert_eq!(IdScheme::plain().parse(&last), Some(Parsed::Sequence(u64::MAX)));
        assert_eq!(IdScheme::plain().parse("1-7"), None);
    }

    /// Goal: a stem of any length is compared whole. Method: stems of up to 39 bytes against texts that begin with
    /// them, lack their end, or differ in one byte, of which a few are tried at each place.
    #[test]
    fn texts_begin_with_the_whole_stem() {
        for length in 0..40 {
            let stem: Vec<u8> = (0..length).map(|at| b'a' + at % 26).collect();
            assert!(begins_with(&stem, &stem));
            assert!(begins_with(&[&stem[..], b"7.1"].concat(), &stem));
            for at in 0..stem.len() {
                assert!(!begins_with(&stem[..at], &stem));
                for other in [0, stem[at] ^ 1, stem[at] ^ 0x80, b'-'] {
                    let mut text = [&stem[..], b"7.1"].concat();
                    text[at] = other;
                    assert!(!begins_with(&text, &stem), "{text:?} and {stem:?}");
                }
            }
        }
    }

    /// Goal: numbers that are read eight bytes at a time are those that are read digit by digit, and what isn't two
    /// numbers is refused alike. Method: numbers beside each power of ten, behind stems of all lengths up to ten; then
    /// each byte of some texts replaced by each other byte.
    #[test]
    fn short_numbers_are_read_as_long_ones() {
        let both = |stem: usize, numbers: &[u8]| {
            let text = [&b"etl-s44we8"[..stem], numbers].concat();
            let expected = two_numbers(numbers);
            if let Some((first, second)) = short_numbers(&text, numbers.len()) {
                assert_eq!(Some((first.into(), second)), expected, "{text:?}");
                return true;
            }
            let is_short =
                expected.is_some_and(|(first, second)| first < 100_000_000 && second < 10_000_000);
            assert!(!is_short || text.len() < 17, "{text:?}");
            false
        };
        let mut read = 0;
        let near = (0..20).flat_map(|power| {
            let power = 10_u64.pow(power);
            [power - 1, power, power + 1, power / 3, power / 9 * 8]
        });
        let near: Vec<u64> = near.collect();
        for (first, second) in near.iter().flat_map(|first| near.iter().map(move |it| (first, it)))
        {
            for stem in 0..=10 {
                read += usize::from(both(stem, format!("{first}.{second}").as_bytes()));
            }
        }
        assert!(read > 10_000, "{read}");
        for text in ["17.4", "1234567.7654321", "99999999.1000000", "0.0", "10.01", "123456789.1"] {
            for at in 0..text.len() {
                for byte in 0..=u8::MAX {
                    let mut numbers = text.as_bytes().to_vec();
                    numbers[at] = byte;
                    both(10, &numbers);
                }
            }
        }
    }

    /// Goal: no id can be made that Mesos refuses. Method: each forbidden kind of prefix.
    #[test]
    fn prefixes_that_mesos_refuses_are_errors() {
        for prefix in ["", "a/b", "a\\b", "a\nb", &"x".repeat(191)] {
            assert!(IdScheme::unique(prefix, 1).is_err(), "{prefix:?}");
        }
        let longest = IdScheme::unique(&"x".repeat(190), u64::MAX).unwrap();
        let id = ExecutorId { sequence: u64::MAX, slot: u32::MAX };
        assert!(longest.display(id).to_string().len() <= 255);
    }
}
