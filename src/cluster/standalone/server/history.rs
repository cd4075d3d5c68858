//! The figures of a master over the last hour, for plots. Its memory is bounded.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::cluster::standalone::master::{MasterReport, WorkerPresence};

/// The time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// The most samples: those of an hour.
const SAMPLES_MAX: usize = 720;

/// The samples of the last hour, the oldest first.
#[derive(Debug, Default)]
pub(super) struct MasterHistory {
    samples: VecDeque<MasterSample>,
    /// When the last sample was taken, and how many offers had been made.
    last: (Duration, u64),
}

/// Figures at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MasterSample {
    at: Duration,
    running: u64,
    failed: u64,
    offers_per_second: f64,
    cores_used: f64,
    cores_free: f64,
}

/// The samples, a list for each figure, with the names that a run's history has.
#[derive(Debug, Serialize)]
pub(super) struct HistoryReport {
    interval_ms: u64,
    at_ms: Vec<u64>,
    running: Vec<u64>,
    failed: Vec<u64>,
    offers_per_second: Vec<f64>,
    cores_used: Vec<f64>,
    cores_free: Vec<f64>,
}

impl MasterHistory {
    /// Whether a sample is due at `now`.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.samples.back().is_none_or(|last| now.saturating_sub(last.at) >= SAMPLE_INTERVAL)
    }

    /// Adds a sample, and drops the oldest one if there are too many.
    pub(super) fn record(&mut self, now: Duration, report: &MasterReport) {
        let (before, offers) = self.last;
        let seconds = now.saturating_sub(before).as_secs_f64();
        let made = report.totals.offers.saturating_sub(offers) as f64;
        self.last = (now, report.totals.offers);
        let there = report.workers.iter().filter(|it| it.state == WorkerPresence::Active);
        let cores = there.map(|it| (it.used.cpus.as_f64(), it.total.cpus.as_f64()));
        let (used, total) = cores.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(MasterSample {
            at: now,
            running: report.counts.executors as u64,
            failed: report.totals.failed + report.totals.lost,
            offers_per_second: if seconds > 0.0 { thousandths(made / seconds) } else { 0.0 },
            cores_used: thousandths(used),
            cores_free: thousandths((total - used).max(0.0)),
        });
    }

    /// The samples, as they are shown.
    pub(super) fn report(&self) -> HistoryReport {
        let samples = self.samples.iter();
        HistoryReport {
            interval_ms: u64::try_from(SAMPLE_INTERVAL.as_millis()).unwrap_or(u64::MAX),
            at_ms: samples
                .clone()
                .map(|it| u64::try_from(it.at.as_millis()).unwrap_or(u64::MAX))
                .collect(),
            running: samples.clone().map(|it| it.running).collect(),
            failed: samples.clone().map(|it| it.failed).collect(),
            offers_per_second: samples.clone().map(|it| it.offers_per_second).collect(),
            cores_used: samples.clone().map(|it| it.cores_used).collect(),
            cores_free: samples.map(|it| it.cores_free).collect(),
        }
    }
}

fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::cluster::standalone::master::{MasterSettings, StandaloneMaster};

    /// Goal: the plots have the last hour, and no more memory than that takes. Method: two hours of ticks each second
    /// with ten offers a second.
    #[test]
    fn the_last_hour_is_kept() {
        let settings = MasterSettings {
            cluster: "c".to_owned(),
            term: 1,
            launch_key: "0".repeat(64).try_into().unwrap(),
            max_cores: None,
            recovery_timeout: Duration::ZERO,
            worker_timeout: Duration::from_secs(60),
        };
        let mut report = StandaloneMaster::new(settings, Vec::new()).overview();
        let mut history = MasterHistory::default();
        for second in 1..=7200 {
            let now = Duration::from_secs(second);
            if history.is_due(now) {
                report.totals.offers = second * 10;
                history.record(now, &report);
            }
        }
        let shown = history.report();
        assert_eq!(shown.at_ms.len(), SAMPLES_MAX);
        assert_eq!(shown.at_ms[SAMPLES_MAX - 1] - shown.at_ms[0], 719 * 5000);
        assert!(shown.offers_per_second.iter().all(|rate| *rate == 10.0));
    }
}
