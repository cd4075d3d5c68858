//! The figures of a run over the last hour, for plots. Its memory is bounded.

use std::collections::VecDeque;
use std::time::Duration;

use offermill::Timestamp;
use offermill::resources::MilliCpus;

use crate::model::executor::ExecutorState;
use crate::model::figures::RunFigures;

/// The time between two samples.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// The most samples: those of an hour.
const SAMPLES_MAX: usize = 720;

/// The samples of the last hour, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct RunHistory {
    samples: VecDeque<HistorySample>,
    /// The number of offers at the last sample.
    offers: u64,
}

/// Figures at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HistorySample {
    pub(crate) at: Timestamp,
    /// Executors that run.
    pub(crate) running: u64,
    /// Executors that haven't ended.
    pub(crate) alive: u64,
    /// Executors that have failed or were lost since the start.
    pub(crate) failed: u64,
    /// Offers a second since the sample before.
    pub(crate) offers_per_second: f64,
    pub(crate) cores_used: MilliCpus,
    pub(crate) cores_free: MilliCpus,
}

impl RunHistory {
    /// Whether a sample is due at `now`.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.samples.back().is_none_or(|last| now.since(last.at) >= SAMPLE_INTERVAL)
    }

    /// Adds a sample, and drops the oldest one if there are too many.
    pub(crate) fn record(&mut self, now: Timestamp, figures: &RunFigures) {
        let before = self.samples.back().map_or(Timestamp::ORIGIN, |last| last.at);
        let seconds = now.since(before).as_secs_f64();
        let offers = figures.offers.offers.saturating_sub(self.offers) as f64;
        self.offers = figures.offers.offers;
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(HistorySample {
            at: now,
            running: figures.count(ExecutorState::Running),
            alive: figures.alive(),
            failed: figures.count(ExecutorState::Failed) + figures.count(ExecutorState::Lost),
            offers_per_second: if seconds > 0.0 { offers / seconds } else { 0.0 },
            cores_used: figures.cluster.used.cores,
            cores_free: figures.cluster.free.cores,
        });
    }

    /// The samples, the oldest first.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &HistorySample> {
        self.samples.iter()
    }
}

#[cfg(test)]
mod tests {
    use offermill::{CapacitySums, OfferCounts};

    use super::*;

    fn figures(offers: u64) -> RunFigures {
        let mut counts = OfferCounts::default();
        counts.offers = offers;
        let number = |state| (state, u64::from(state == ExecutorState::Running) * 3);
        RunFigures {
            ran: Duration::ZERO,
            executors: ExecutorState::ALL.map(number),
            replaced: 0,
            limit: None,
            wanted: 0,
            offers: counts,
            cluster: CapacitySums::default(),
            excluded: 0,
            is_registered: true,
            is_stopping: false,
        }
    }

    /// Goal: the plots have the last hour, and no more memory than that takes. Method: two hours of polls each second
    /// with ten offers a second.
    #[test]
    fn the_last_hour_is_kept() {
        let mut history = RunHistory::default();
        for second in 0..7_200 {
            let now = Timestamp::from_millis(second * 1_000);
            if history.is_due(now) {
                history.record(now, &figures(second * 10));
            }
        }
        let samples: Vec<&HistorySample> = history.samples().collect();
        assert_eq!(samples.len(), SAMPLES_MAX);
        let (first, last) = (samples[0], samples[SAMPLES_MAX - 1]);
        assert_eq!(last.at.since(first.at), SAMPLE_INTERVAL * (SAMPLES_MAX as u32 - 1));
        assert_eq!(last.at, Timestamp::from_millis(7_195_000));
        assert!(samples.iter().all(|it| it.offers_per_second == 10.0 && it.running == 3));
        assert_eq!((last.alive, last.failed), (3, 0));
    }
}
