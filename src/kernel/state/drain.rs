//! What a drain keeps: the executors that lived when the kernel was closed, and where its callers wait.
//!
//! The steps and their orderings are in [`lifecycle::drain`](crate::kernel::lifecycle::drain).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::status::Fate;
use crate::sync::{Condvar, Mutex, OnceLock, lock};

use super::target::Target;

/// The list of executors, and the lock under which callers wait, as threads or as futures.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) listed: OnceLock<Vec<ListedExecutor>>,
    pub(crate) waiters: Mutex<WaitingFutures>,
    pub(crate) emptied: Condvar,
}

/// The futures that wait, by the numbers that they were given.
#[derive(Debug, Default)]
pub(crate) struct WaitingFutures {
    next: u64,
    wakers: Vec<(u64, Waker)>,
}

/// An executor that was listed when the kernel was closed.
#[derive(Debug)]
pub(crate) struct ListedExecutor {
    pub(crate) target: Target,
    /// How it ended, if it had ended when it was listed. Its cell may not say so any more.
    pub(crate) ended: Option<Fate>,
}

impl Drain {
    pub(crate) fn new() -> Drain {
        Drain {
            listed: OnceLock::new(),
            waiters: Mutex::new(WaitingFutures::default()),
            emptied: Condvar::new(),
        }
    }

    /// Wakes the waiters, under the lock (step 5 of a drain). Wakers, which are foreign code, are called after it; the
    /// panic of one affects neither the others nor the caller, whose release is not complete yet.
    pub(crate) fn wake(&self) {
        let mut waiters = lock(&self.waiters);
        self.emptied.notify_all();
        let wakers = std::mem::take(&mut waiters.wakers);
        drop(waiters);
        wakers.into_iter().for_each(|(_, waker)| wake(waker));
    }

    /// Returns `true` if `done` does. Otherwise the next [`Drain::wake`] calls the waker; the future with the number in
    /// `number` gets one if it has none, and its last waker is replaced.
    pub(crate) fn poll(
        &self,
        number: &mut Option<u64>,
        waker: &Waker,
        done: impl Fn() -> bool,
    ) -> bool {
        // Wakers are cloned and dropped outside of the lock, because that runs foreign code.
        let waker = waker.clone();
        let mut waiters = lock(&self.waiters);
        if done() {
            return true;
        }
        let number = *number.get_or_insert_with(|| {
            waiters.next += 1;
            waiters.next
        });
        let found = waiters.wakers.iter_mut().find(|(of, _)| *of == number);
        let _former = match found {
            Some((_, former)) => Some(std::mem::replace(former, waker)),
            None => {
                waiters.wakers.push((number, waker));
                None
            }
        };
        drop(waiters);
        false
    }

    /// Drops the waker of the future with this number.
    pub(crate) fn stop_waiting(&self, number: u64) {
        let mut waiters = lock(&self.waiters);
        let at = waiters.wakers.iter().position(|(of, _)| *of == number);
        let _waker = at.map(|at| waiters.wakers.swap_remove(at));
        drop(waiters);
    }
}

fn wake(waker: Waker) {
    if cfg!(loom) {
        // Loom reports a deadlock by a panic, which must not be caught.
        return waker.wake();
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // The panic hook has reported it. To drop what was thrown could panic again.
        std::mem::forget(panic);
    }
}
