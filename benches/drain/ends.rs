//! Schedulers that end with a hundred thousand executors.

use std::hint::black_box;
use std::time::{Duration, Instant};

use offermill::{Config, StatusUpdate, TaskState};

use crate::support::desk::{Baseline, Desk, Ours};
use crate::support::fleet::Fleet;
use crate::support::locked::Locked;
use crate::support::{self, ENOUGH, MET, NOW};

const AGENTS: usize = 10_000;
pub(crate) const EXECUTORS: usize = AGENTS * 10;
const BATCH: usize = 100;
/// More than it ever takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What each scheduler begins with, and its executors' ids.
pub(crate) struct Ends {
    fleet: Fleet,
    config: Config,
    names: Vec<String>,
}

impl Ends {
    pub(crate) fn new() -> Ends {
        let (fleet, config) = (Fleet::new(AGENTS, BATCH), support::config(MET, None));
        Ends { fleet, config, names: Vec::new() }
    }

    fn fill<D: Desk>(&mut self, desk: &mut D) {
        for _ in 0..EXECUTORS / AGENTS {
            for batch in &self.fleet.stream {
                desk.answer(batch);
                desk.note();
            }
        }
        desk.noted(&mut self.names);
        assert_eq!(self.names.len(), EXECUTORS);
    }

    /// The time from closing to the report, with updates from so many threads.
    pub(crate) fn ours(&mut self, threads: usize) -> Duration {
        let kernel = support::kernel(&self.config);
        self.fill(&mut Ours::new(&kernel));
        let start = Instant::now();
        let targets = kernel.close();
        let report = on_threads(
            threads,
            &self.names,
            |name| drop(kernel.status_update(&StatusUpdate::new(name, TaskState::Finished), NOW)),
            || kernel.drain(TIMEOUT),
        );
        let spent = start.elapsed();
        assert!(report.drained);
        assert_eq!((targets.len(), report.executors.len()), (EXECUTORS, EXECUTORS));
        spent
    }

    /// The same of the baseline behind a lock.
    pub(crate) fn mutex(&mut self, threads: usize) -> Duration {
        let mut locked = Locked::new(&self.config, MET, ENOUGH);
        self.fill(&mut locked);
        let start = Instant::now();
        let roll = locked.plain().call_the_roll();
        let targets = roll.targets();
        let update = |name: &str| {
            black_box(locked.plain().update(&StatusUpdate::new(name, TaskState::Finished), NOW));
        };
        on_threads(threads, &self.names, update, || ());
        let report = locked.plain().report(&roll);
        let spent = start.elapsed();
        assert_eq!(targets.len(), EXECUTORS);
        assert!(report.iter().all(|drained| drained.ended));
        spent
    }

    /// The same of the baseline.
    pub(crate) fn plain(&mut self) -> Duration {
        let mut desk = Baseline::new(&self.config, MET, ENOUGH);
        self.fill(&mut desk);
        let start = Instant::now();
        let roll = desk.plain.call_the_roll();
        let targets = roll.targets();
        self.names.iter().for_each(|name| desk.end(name));
        let report = desk.plain.report(&roll);
        let spent = start.elapsed();
        assert_eq!(targets.len(), EXECUTORS);
        assert!(report.iter().all(|drained| drained.ended));
        spent
    }
}

/// Ends all and waits for it: one thread does both; of several, each has its share, and the caller waits.
fn on_threads<R>(
    threads: usize,
    names: &[String],
    end: impl Fn(&str) + Sync,
    wait: impl FnOnce() -> R,
) -> R {
    if threads == 1 {
        names.iter().for_each(|name| end(name));
        return wait();
    }
    std::thread::scope(|scope| {
        for share in names.chunks(names.len().div_ceil(threads)) {
            let end = &end;
            scope.spawn(move || share.iter().for_each(|name| end(name)));
        }
        wait()
    })
}
