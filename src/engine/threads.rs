//! The engine's threads, which can be waited for up to a deadline.

use std::sync::Arc;

use super::sync::{Condvar, Deadline, JoinHandle, Mutex, catch, lock, spawn, wait_while};
use crate::error::Error;

/// A thread that was started.
pub(super) struct Thread {
    name: String,
    handle: JoinHandle<()>,
    ended: Arc<Ended>,
}

struct Ended {
    is_over: Mutex<bool>,
    told: Condvar,
}

/// Tells that the thread's work is over, whether it returned or panicked.
struct AtEnd(Arc<Ended>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        *lock(&self.0.is_over) = true;
        self.0.told.notify_all();
    }
}

impl Thread {
    pub(super) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<Thread, Error> {
        let ended = Arc::new(Ended { is_over: Mutex::new(false), told: Condvar::new() });
        let at_end = AtEnd(Arc::clone(&ended));
        let handle = spawn(name, move || {
            let _at_end = at_end;
            // What a panic throws is dropped here: should that panic again, nobody who joins or leaves the thread alone
            // panics with it.
            let _panicked = catch(work);
        });
        let name = name.to_owned();
        match handle {
            Ok(handle) => Ok(Thread { name, handle, ended }),
            Err(error) => Err(Error::cluster(format!("starting thread {name}"), error)),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the thread's end; whether it came by the deadline.
    pub(super) fn wait(&self, deadline: Deadline) -> bool {
        *wait_while(&self.ended.is_over, &self.ended.told, deadline, |is_over| !is_over)
    }

    /// Joins the thread if it ends by the deadline. If not, it is left alone, and returned.
    pub(super) fn join(self, deadline: Deadline) -> Result<(), Thread> {
        if !self.wait(deadline) {
            return Err(self);
        }
        // A panic was told, and has ended where the thread's work did.
        let _ended = self.handle.join();
        Ok(())
    }
}
