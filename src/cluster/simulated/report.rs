//! [`Report`]: the measurements of a simulation, for summaries and plots.

use std::iter::Enumerate;
use std::slice;
use std::time::Duration;

use super::scenario::Scenario;
use crate::kernel::{CapacitySums, ReasonKind};
use crate::resources::MilliCpus;
use crate::time::Timestamp;

/// The measurements of a simulation, complete up to its present step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The simulated scenario.
    pub scenario: Scenario,
    /// Virtual time at the end of the simulation, or now if it has not ended.
    pub ended_at: Timestamp,
    /// The number of processed events.
    pub steps: u64,
    /// Samples of the state, at regular intervals of virtual time.
    pub samples: Vec<Sample>,
    /// Faults and their repair, in order of virtual time. At most 10,000 are kept.
    pub marks: Vec<Mark>,
    /// How long executors were missing: the time from when the caps allowed another executor until it was placed.
    pub placement_latency: Latencies,
    /// The time from an executor's placement until it was reported running.
    pub launch_latency: Latencies,
    /// The distribution of executors over agents when there were most executors: pairs of a number of executors and the
    /// number of agents that held that number, in ascending order, 0 included.
    pub spread: Vec<(u32, u32)>,
    /// Virtual time of [`spread`](Report::spread).
    pub spread_at: Timestamp,
    /// The number of answered offers.
    pub offers: u64,
    /// The number of accepted offers.
    pub accepted: u64,
    /// Declined offers by reason. Reasons that never occurred are left out.
    pub declines: Vec<(ReasonKind, u64)>,
    /// The number of placed executors.
    pub placed: u64,
    /// The number of executors that ended, by fate: finished, failed, killed, lost, in this order.
    pub ended: [u64; 4],
    /// The result of the final drain. `None` if there was none.
    pub drained: Option<DrainSummary>,
    /// A hash of all calls and their times: equal for two simulations that made the same calls in the same order at the
    /// same times.
    pub fingerprint: u64,
    /// Descriptions of corner cases, and how often the simulation reached each.
    pub corners: Vec<(&'static str, u64)>,
}

/// The state at one point in virtual time.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Sample {
    /// Virtual time.
    pub at: Timestamp,
    /// The number of executors that the kernel counts.
    pub executors: u32,
    /// The number of executors that run on the simulated cluster.
    pub running: u32,
    /// The executor limit in force.
    pub limit: u32,
    /// Cores that the kernel counts.
    pub cores: MilliCpus,
    /// The number of offers answered since the start.
    pub offers: u64,
    /// The number of executors placed since the start.
    pub placed: u64,
    /// The number of executors ended since the start.
    pub ended: u64,
    /// The number of agents that are up and reachable.
    pub agents_up: u32,
    /// The sums of [`Kernel::capacity`](crate::Kernel::capacity): what the agents that the kernel knows offered last,
    /// what executors use there, what is free, and what is free on agents that are excluded or suspect.
    pub capacity: CapacitySums,
}

/// An event of the simulated cluster, such as a fault.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Mark {
    /// Virtual time of the event.
    pub at: Timestamp,
    /// A short description.
    pub what: String,
}

/// The result of the drain at the end.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DrainSummary {
    /// When the kernel was closed, in virtual time.
    pub closed_at: Timestamp,
    /// When no executor was counted any more or the timeout had passed, in virtual time.
    pub over_at: Timestamp,
    /// The number of executors that had not ended by then.
    pub left: u32,
}

/// A histogram of durations, with buckets that are an eighth of a power of two wide, from 1 ms to about 12 days.
#[derive(Clone, Debug)]
pub struct Latencies {
    buckets: Vec<u64>,
    count: u64,
    longest: Duration,
}

const STEPS: u64 = 8;

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { buckets: vec![0; 28 * STEPS as usize], count: 0, longest: Duration::ZERO }
    }
}

impl Latencies {
    pub(super) fn add(&mut self, latency: Duration, times: u64) {
        let bucket = bucket_of(latency).min(self.buckets.len() - 1);
        self.buckets[bucket] += times;
        self.count += times;
        self.longest = self.longest.max(latency);
    }

    /// The number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest duration. Zero if there are none.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The duration that is not exceeded by the fraction `part` (0 to 1) of all durations, rounded up to the end of its
    /// bucket (by at most an eighth). Zero if there are none.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Duration {
        let rank = (self.count as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return end_of(bucket).min(self.longest);
            }
        }
        self.longest
    }

    /// The buckets that aren't empty, in ascending order: the end of each, and the number of durations in it.
    pub fn buckets(&self) -> Buckets<'_> {
        Buckets { counts: self.buckets.iter().enumerate() }
    }
}

/// The buckets of [`Latencies`] that aren't empty: see [`Latencies::buckets`].
#[derive(Clone, Debug)]
pub struct Buckets<'a> {
    counts: Enumerate<slice::Iter<'a, u64>>,
}

impl Iterator for Buckets<'_> {
    type Item = (Duration, u64);

    fn next(&mut self) -> Option<(Duration, u64)> {
        let (bucket, count) = self.counts.find(|(_, count)| **count > 0)?;
        Some((end_of(bucket), *count))
    }
}

/// Returns the bucket of a duration. The first `STEPS` buckets are a millisecond wide, each later one an eighth of the
/// power of two at which its octave begins.
fn bucket_of(latency: Duration) -> usize {
    let millis = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
    if millis < STEPS {
        return millis as usize;
    }
    let power = u64::from(millis.ilog2());
    let step = (millis >> (power - 3)) - STEPS;
    ((power - 2) * STEPS + step) as usize
}

fn end_of(bucket: usize) -> Duration {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return Duration::from_millis(bucket + 1);
    }
    let (power, step) = (bucket / STEPS + 2, bucket % STEPS);
    Duration::from_millis((STEPS + step + 1) << (power - 3))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    /// Goal: each duration is in the bucket that ends after it, and quantiles are exact to an eighth. Method: durations
    /// of many magnitudes; then a thousand durations of known rank.
    #[test]
    fn buckets_hold_what_they_say() {
        for millis in (0..5000).chain((0..20).map(|power| 1 << power)) {
            let latency = Duration::from_millis(millis);
            let bucket = bucket_of(latency);
            assert!(latency < end_of(bucket), "{millis}");
            assert!(bucket == 0 || latency >= end_of(bucket - 1), "{millis}");
        }
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|millis| latencies.add(Duration::from_millis(millis), 1));
        let median = latencies.quantile(0.5).as_millis();
        assert!((500..=563).contains(&median), "{median}");
        assert_eq!(latencies.quantile(1.0), Duration::from_millis(1000));
        assert_eq!(latencies.buckets().map(|(_, count)| count).sum::<u64>(), 1000);
    }
}
