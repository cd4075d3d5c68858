//! Closed intervals and sets of ports, kept as intervals and never expanded into single ports.

use std::fmt;

/// A closed interval of ports or of other numbers, as in Mesos' `RANGES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PortRange {
    /// The first number of the interval.
    pub begin: u64,
    /// The last number of the interval, inclusive. An interval whose `end` is below its `begin` is empty.
    pub end: u64,
}

impl PortRange {
    /// Creates the interval from `begin` to `end`, both inclusive.
    #[must_use]
    pub const fn new(begin: u64, end: u64) -> PortRange {
        PortRange { begin, end }
    }

    /// Parses `1-9`. `None` if the text is not an interval, or its end is below its begin.
    pub(crate) fn parse(text: &str) -> Option<PortRange> {
        let (begin, end) = text.split_once('-')?;
        let number = |text: &str| {
            let digits = text.trim();
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let (begin, end) = (number(begin)?, number(end)?);
        (begin <= end).then_some(PortRange { begin, end })
    }

    /// Returns whether the interval contains `number`.
    #[must_use]
    pub const fn contains(self, number: u64) -> bool {
        self.begin <= number && number <= self.end
    }

    /// Returns whether the interval is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end < self.begin
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.begin, self.end)
    }
}

/// A set of ports, or of other numbers, as intervals.
///
/// The intervals are sorted, non-empty, and neither overlap nor touch, so equal sets have equal intervals. A set can be
/// built from intervals in any order, which may overlap.
///
/// ```
/// use offermill::resources::{PortRange, PortSet};
///
/// let offered = PortSet::of([PortRange::new(31_005, 31_009), PortRange::new(31_000, 31_006)]);
/// let left = offered.without(&PortSet::of([PortRange::new(31_003, 31_003)]));
/// assert_eq!(left.to_string(), "[31000-31002,31004-31009]");
/// assert_eq!(left.count(), 9);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortSet {
    ranges: Vec<PortRange>,
}

impl PortSet {
    /// Creates the union of `ranges`. Takes O(n log n).
    #[must_use]
    pub fn of(ranges: impl IntoIterator<Item = PortRange>) -> PortSet {
        let mut ranges: Vec<PortRange> =
            ranges.into_iter().filter(|range| !range.is_empty()).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let touches = next.begin <= last.end.saturating_add(1);
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        PortSet { ranges }
    }

    /// Returns the intervals, in ascending order.
    #[must_use]
    pub fn ranges(&self) -> &[PortRange] {
        &self.ranges
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns whether the set contains `number`. Takes O(log n) in the number of intervals.
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.end < number);
        self.ranges.get(at).is_some_and(|range| range.contains(number))
    }

    /// Returns how many numbers the set contains, at most [`u64::MAX`].
    #[must_use]
    pub fn count(&self) -> u64 {
        let counts = self.ranges.iter().map(|range| (range.end - range.begin).saturating_add(1));
        counts.fold(0, u64::saturating_add)
    }

    /// Returns the numbers that are in this set and not in `taken`. Takes O(n) in the number of intervals of both.
    #[must_use]
    pub fn without(&self, taken: &PortSet) -> PortSet {
        let mut ranges = Vec::with_capacity(self.ranges.len() + taken.ranges.len());
        let mut taken = taken.ranges.iter().copied().peekable();
        for range in &self.ranges {
            // Where the unprocessed rest of the range begins; `None` once its end has been removed.
            let mut rest = Some(range.begin);
            while let (Some(begin), Some(next)) = (rest, taken.peek().copied()) {
                if next.begin > range.end {
                    break;
                }
                if next.begin > begin {
                    ranges.push(PortRange::new(begin, next.begin - 1));
                }
                rest = next.end.max(begin.saturating_sub(1)).checked_add(1);
                rest = rest.filter(|begin| *begin <= range.end);
                // An interval that ends later may also remove numbers from the next range.
                if next.end > range.end {
                    break;
                }
                taken.next();
            }
            ranges.extend(rest.map(|begin| PortRange::new(begin, range.end)));
        }
        PortSet { ranges }
    }
}

impl fmt::Display for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (range, at) in self.ranges.iter().zip(0..) {
            write!(f, "{}{range}", if at > 0 { "," } else { "" })?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Intervals near the lower or the upper end of all numbers, some reversed.
    fn ranges(top: bool) -> impl Strategy<Value = Vec<PortRange>> {
        let first = if top { u64::MAX - 60 } else { 0 };
        let range = (0u64..60, 0u64..12).prop_map(move |(begin, length)| {
            let begin = first + begin;
            PortRange::new(begin, begin.saturating_add(length).saturating_sub(3))
        });
        prop::collection::vec(range, 0..12)
    }

    fn expand(ranges: &[PortRange]) -> BTreeSet<u64> {
        ranges.iter().flat_map(|range| range.begin..=range.end).collect()
    }

    fn expect(set: &PortSet, numbers: &BTreeSet<u64>) -> Result<(), TestCaseError> {
        prop_assert_eq!(&expand(set.ranges()), numbers);
        prop_assert_eq!(set.count(), numbers.len() as u64);
        prop_assert_eq!(set.is_empty(), numbers.is_empty());
        prop_assert!(set.ranges().iter().all(|range| !range.is_empty()));
        prop_assert!(set.ranges().is_sorted_by(|one, next| one.end + 1 < next.begin), "{}", set);
        for number in (0..70).chain(u64::MAX - 70..=u64::MAX) {
            prop_assert_eq!(set.contains(number), numbers.contains(&number));
        }
        Ok(())
    }

    proptest! {
        /// Goal: intervals of any kind are the set of their numbers, and what is taken is gone from each of them.
        /// Method: random intervals at both ends of the numbers, against sets of single numbers.
        #[test]
        fn intervals_are_sets(
            (offered, taken) in any::<bool>().prop_flat_map(|top| (ranges(top), ranges(top))),
        ) {
            let (all, away) = (PortSet::of(offered.clone()), PortSet::of(taken.clone()));
            expect(&all, &expand(&offered))?;
            let left = &expand(&offered) - &expand(&taken);
            expect(&all.without(&away), &left)?;
        }
    }

    /// Goal: the largest set is no trouble. Method: all numbers, and all without some.
    #[test]
    fn all_numbers_are_a_set() {
        let all = PortSet::of([PortRange::new(1, u64::MAX), PortRange::new(0, 0)]);
        assert_eq!((all.ranges(), all.count()), (&[PortRange::new(0, u64::MAX)][..], u64::MAX));
        assert!(all.without(&all).is_empty());
        let ends = PortSet::of([0, 7, u64::MAX].map(|number| PortRange::new(number, number)));
        let left = all.without(&ends);
        assert_eq!(left.ranges(), [PortRange::new(1, 6), PortRange::new(8, u64::MAX - 1)]);
        assert_eq!(left.count(), u64::MAX - 2);
        assert_eq!(ends.without(&all), PortSet::default());
    }
}
