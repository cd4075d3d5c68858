//! Port intervals. They are never expanded into single ports.

use std::fmt;

/// A closed interval of ports or of other numbers, as in Mesos' `RANGES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortRange {
    /// The first number of the interval.
    pub begin: u64,
    /// The last number of the interval, included. An interval whose `end` is below its `begin` holds nothing.
    pub end: u64,
}

impl PortRange {
    /// The interval from `begin` to `end`, both included.
    #[must_use]
    pub const fn new(begin: u64, end: u64) -> PortRange {
        PortRange { begin, end }
    }

    /// Reads `1-9`; `None` if it isn't one, or ends before it begins.
    pub(crate) fn parse(text: &str) -> Option<PortRange> {
        let (begin, end) = text.split_once('-')?;
        let number = |text: &str| {
            let digits = text.trim();
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let (begin, end) = (number(begin)?, number(end)?);
        (begin <= end).then_some(PortRange { begin, end })
    }

    /// Whether `number` lies inside.
    #[must_use]
    pub const fn contains(self, number: u64) -> bool {
        self.begin <= number && number <= self.end
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.begin, self.end)
    }
}
