//! Work that goes on beside what is measured, on a thread of its own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Does `turn` again and again on another thread while `measured` runs; returns what that gives.
pub(crate) fn beside<W: Send, T, R>(
    worker: &mut W,
    turn: impl Fn(&mut W) -> T + Sync,
    measured: impl FnOnce() -> R,
) -> R {
    // Relaxed: it says when to stop, and nothing else is read for its sake.
    let (stop, warm) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            turn(worker);
            warm.wait();
            while !stop.load(Ordering::Relaxed) {
                turn(worker);
            }
        });
        warm.wait();
        let _stop = Stop(&stop);
        measured()
    })
}

/// Stops the other thread, after a panic, too: the scope would wait for it for ever.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
