//! Plays a scene to the kernel, as `TimeSpark.scala` plays it to Spark's backend.

use std::time::{Duration, Instant};

use offermill::TaskState;

use crate::scene::Scene;
use crate::support;
use crate::support::fleet::Batch;
use crate::support::scheduler::{Ours, Scheduler};

/// What a scene took.
pub(crate) struct Played {
    /// Nanoseconds an offer: the median lap.
    pub(crate) offer: f64,
    /// Nanoseconds the end of an executor, told one by one: the median lap. None if none was launched.
    pub(crate) end: Option<f64>,
    /// How many executors a lap launched.
    pub(crate) launched: usize,
}

/// Plays laps for `each`, of which the first tenth is left out; at least three.
pub(crate) fn to_kernel(scene: &Scene, each: Duration) -> Played {
    let fleet = scene.fleet();
    let kernel = support::kernel(&scene.config());
    let mut play = Play { ours: Ours::new(&kernel), names: Vec::new() };
    play.before(scene, &fleet.met);
    let mut stream = fleet.stream.iter().copied().cycle();
    let (mut offers, mut ends, mut launched) = (Vec::new(), Vec::new(), 0);
    let start = Instant::now();
    while start.elapsed() < each || offers.len() < 3 {
        let lap: Vec<Batch> = stream.by_ref().take(scene.lap()).collect();
        let took = play.offer(&lap);
        let ended = play.end_all(TaskState::Finished);
        launched = ended.count;
        if start.elapsed() >= each / 10 {
            let count: usize = lap.iter().map(|batch| batch.len()).sum();
            offers.push(took.as_nanos() as f64 / count as f64);
            ends.extend(
                (ended.count > 0).then(|| ended.took.as_nanos() as f64 / ended.count as f64),
            );
        }
    }
    Played { offer: median(offers).unwrap_or_default(), end: median(ends), launched }
}

struct Ended {
    count: usize,
    took: Duration,
}

struct Play {
    ours: Ours,
    /// The executors that were launched since the last end.
    names: Vec<String>,
}

impl Play {
    fn before(&mut self, scene: &Scene, met: &[Batch]) {
        let (rounds, fail) = scene.rounds_before();
        for _ in 0..rounds {
            self.offer(met);
            if fail {
                self.end_all(TaskState::Failed);
            }
        }
        if scene.config().core_cap().is_none() {
            self.end_all(TaskState::Finished);
        } else {
            // Those under a cap live on.
            self.ours.noted(&mut self.names);
            self.names.clear();
        }
    }

    /// How long the answers took.
    fn offer(&mut self, batches: &[Batch]) -> Duration {
        let start = Instant::now();
        for batch in batches {
            self.ours.answer(batch);
            self.ours.note();
        }
        start.elapsed()
    }

    /// Ends the executors that were launched, one by one.
    fn end_all(&mut self, state: TaskState) -> Ended {
        self.ours.noted(&mut self.names);
        let start = Instant::now();
        self.names.iter().for_each(|name| self.ours.update(name, state));
        Ended { count: self.names.len(), took: start.elapsed() }
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
