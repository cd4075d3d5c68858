//! Workers that run at the same time, each on a thread of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// Runs `turns` turns, shared out evenly among `workers`, at the same time; returns the time from the first start to
/// the last end.
pub(crate) fn together<W: Send>(
    workers: &mut [W],
    turns: u64,
    run: impl Fn(&mut W, u64) + Sync,
) -> Duration {
    together_once(workers, turns, |_| {}, run)
}

/// The same, once each worker is prepared, on its own thread, so that it finds there what it left in the caches.
pub(crate) fn together_once<W: Send>(
    workers: &mut [W],
    turns: u64,
    prepare: impl Fn(&mut W) + Sync,
    run: impl Fn(&mut W, u64) + Sync,
) -> Duration {
    let count = workers.len() as u64;
    let ready = AtomicUsize::new(0);
    let spans: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter_mut()
            .zip(0..count)
            .map(|(worker, at)| {
                let share = turns / count + u64::from(at < turns % count);
                let (ready, prepare, run) = (&ready, &prepare, &run);
                scope.spawn(move || {
                    prepare(worker);
                    // Not by a lock: a core that sleeps takes as long to wake as thousands of updates.
                    ready.fetch_add(1, Ordering::AcqRel);
                    while ready.load(Ordering::Acquire) < count as usize {
                        yield_now();
                    }
                    let start = Instant::now();
                    run(worker, share);
                    (start, Instant::now())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let first = spans.iter().map(|span| span.0).min().expect("a worker");
    let last = spans.iter().map(|span| span.1).max().expect("a worker");
    last - first
}
