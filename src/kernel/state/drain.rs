//! What a drain keeps: the executors that lived when the kernel was closed, and where its callers wait.
//!
//! The steps and their orderings are in [`lifecycle::drain`](crate::kernel::lifecycle::drain).

use crate::status::Fate;
use crate::sync::{Condvar, Mutex, OnceLock, lock};

use super::target::Target;

/// The list of executors, and the lock under which callers wait.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) listed: OnceLock<Vec<ListedExecutor>>,
    pub(crate) waiters: Mutex<()>,
    pub(crate) emptied: Condvar,
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
        Drain { listed: OnceLock::new(), waiters: Mutex::new(()), emptied: Condvar::new() }
    }

    /// Wakes the waiters, under the lock (step 5 of a drain).
    pub(crate) fn wake(&self) {
        let _waiters = lock(&self.waiters);
        self.emptied.notify_all();
    }
}
