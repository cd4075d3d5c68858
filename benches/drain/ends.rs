//! Schedulers that end with a hundred thousand executors.

use std::hint::black_box;
use std::time::{Duration, Instant};

use offermill::{Config, Kernel, StatusUpdate, TaskState};

use crate::support::fleet::Fleet;
use crate::support::locked::Locked;
use crate::support::scheduler::{Baseline, Ours, Scheduler};
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

    fn fill<D: Scheduler>(&mut self, scheduler: &mut D) {
        for _ in 0..EXECUTORS / AGENTS {
            for batch in &self.fleet.stream {
                scheduler.answer(batch);
                scheduler.note();
            }
        }
        scheduler.noted(&mut self.names);
        assert_eq!(self.names.len(), EXECUTORS);
    }

    /// The time from closing to the report, with updates from `threads` threads.
    pub(crate) fn ours(&mut self, threads: usize) -> Duration {
        self.kernel(threads, |kernel, names| {
            for name in names {
                let update = StatusUpdate::new(name, TaskState::Finished);
                black_box(kernel.status_update(&update, NOW));
            }
        })
    }

    /// The same, with updates in batches.
    pub(crate) fn ours_in_batches(&mut self, threads: usize) -> Duration {
        self.kernel(threads, |kernel, names| {
            let (mut updates, mut outcomes) = (Vec::new(), Vec::new());
            for names in names.chunks(BATCH) {
                let all = names.iter().map(|name| StatusUpdate::new(name, TaskState::Finished));
                updates.clear();
                updates.extend(all);
                outcomes.clear();
                kernel.status_updates(&updates, NOW, &mut outcomes);
                black_box(&outcomes);
            }
        })
    }

    fn kernel(&mut self, threads: usize, end: impl Fn(&Kernel, &[String]) + Sync) -> Duration {
        let kernel = support::kernel(&self.config);
        self.fill(&mut Ours::new(&kernel));
        let start = Instant::now();
        let targets = kernel.close();
        let end = |names: &[String]| end(&kernel, names);
        let report = on_threads(threads, &self.names, end, || kernel.drain(TIMEOUT));
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
        let list = locked.plain().drain_list();
        let targets = list.targets();
        let end = |names: &[String]| {
            for name in names {
                let update = StatusUpdate::new(name, TaskState::Finished);
                black_box(locked.plain().update(&update, NOW));
            }
        };
        on_threads(threads, &self.names, end, || ());
        let report = locked.plain().report(&list);
        let spent = start.elapsed();
        assert_eq!(targets.len(), EXECUTORS);
        assert!(report.iter().all(|drained| drained.ended));
        spent
    }

    /// The same of the baseline.
    pub(crate) fn plain(&mut self) -> Duration {
        let mut scheduler = Baseline::new(&self.config, MET, ENOUGH);
        self.fill(&mut scheduler);
        let start = Instant::now();
        let list = scheduler.plain.drain_list();
        let targets = list.targets();
        self.names.iter().for_each(|name| scheduler.end(name));
        let report = scheduler.plain.report(&list);
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
    end: impl Fn(&[String]) + Sync,
    wait: impl FnOnce() -> R,
) -> R {
    if threads == 1 {
        end(names);
        return wait();
    }
    std::thread::scope(|scope| {
        for share in names.chunks(names.len().div_ceil(threads)) {
            let end = &end;
            scope.spawn(move || end(share));
        }
        wait()
    })
}
