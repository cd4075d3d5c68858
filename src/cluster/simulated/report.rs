//! What a simulation measured: for summaries and plots.

use std::time::Duration;

use super::scenario::Scenario;
use crate::kernel::ReasonKind;
use crate::resources::MilliCpus;
use crate::time::Timestamp;

/// What happened in a simulation, as far as it came.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// What was simulated.
    pub scenario: Scenario,
    /// Virtual time at the end.
    pub ended_at: Timestamp,
    /// Events that were played, in all.
    pub steps: u64,
    /// The state of things at regular moments of virtual time, in order.
    pub samples: Vec<Sample>,
    /// What happened to the cluster, in order: faults, and what was healed.
    pub marks: Vec<Mark>,
    /// How long executors were missing: from the moment that there was room for one under the caps until it was
    /// placed.
    pub placement_latency: Latencies,
    /// How long executors took from being placed to being seen running.
    pub launch_latency: Latencies,
    /// How many agents held how many executors when there were most executors: pairs of a number of executors and how
    /// many agents had so many, in ascending order, 0 included.
    pub spread: Vec<(u32, u32)>,
    /// When that was.
    pub spread_at: Timestamp,
    /// Offers answered in all.
    pub offers: u64,
    /// Offers accepted.
    pub accepted: u64,
    /// Declined offers by reason, reasons that never came left out.
    pub declines: Vec<(ReasonKind, u64)>,
    /// Executors placed.
    pub placed: u64,
    /// Executors that ended, by how: finished, failed, killed, lost, in this order.
    pub ended: [u64; 4],
    /// How the end went.
    pub drained: Option<DrainSummary>,
    /// A number that two runs share if they made the same calls in the same order at the same moments.
    pub fingerprint: u64,
    /// Rare situations, in words, and how often the run came to each.
    pub corners: Vec<(&'static str, u64)>,
}

/// The state at one moment.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Sample {
    /// Virtual time.
    pub at: Timestamp,
    /// Executors that the kernel counts.
    pub executors: u32,
    /// Executors that run, by the cluster's own account.
    pub running: u32,
    /// The executor limit in force.
    pub limit: u32,
    /// Cores that the kernel counts.
    pub cores: MilliCpus,
    /// Offers answered since the start.
    pub offers: u64,
    /// Executors placed since the start.
    pub placed: u64,
    /// Executors ended since the start.
    pub ended: u64,
    /// Agents that are up and in reach.
    pub agents_up: u32,
}

/// Something that happened to the cluster.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Mark {
    /// When.
    pub at: Timestamp,
    /// What, in a few words.
    pub what: String,
}

/// How the drain at the end went.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DrainSummary {
    /// When the kernel was closed.
    pub closed_at: Timestamp,
    /// When no executor was counted any more, or the timeout was over.
    pub over_at: Timestamp,
    /// How many executors had not ended by then.
    pub left: u32,
}

/// Durations, counted in buckets that are an eighth of a power of two wide, from 1 ms to about 12 days.
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

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The duration that a part of all (0 to 1) stay below, to within an eighth; zero if there are none.
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

    /// The buckets that hold any: where each ends, and how many it holds.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let filled = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| (end_of(bucket), *count))
    }
}

/// The first `STEPS` buckets are a millisecond wide, the others an eighth of the power of two that they begin in.
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

    /// Goal: every duration is in the bucket that ends after it, and quantiles are right to an eighth. Method: a walk
    /// over durations; then a thousand durations of known rank.
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
