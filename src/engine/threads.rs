//! The engine's threads, which can be joined up to a deadline.

use std::sync::Arc;

use super::sync::{Condvar, Deadline, JoinHandle, Mutex, catch, lock, spawn, wait_while};
use crate::error::Error;

/// A running thread.
pub(super) struct Thread {
    name: String,
    handle: JoinHandle<()>,
    ended: Arc<EndFlag>,
}

struct EndFlag {
    is_over: Mutex<bool>,
    changed: Condvar,
}

/// Signals on drop that the thread's work is over, whether it returned or panicked.
struct EndSignal(Arc<EndFlag>);

impl Drop for EndSignal {
    fn drop(&mut self) {
        *lock(&self.0.is_over) = true;
        self.0.changed.notify_all();
    }
}

impl Thread {
    pub(super) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<Thread, Error> {
        let ended = Arc::new(EndFlag { is_over: Mutex::new(false), changed: Condvar::new() });
        let end_signal = EndSignal(Arc::clone(&ended));
        let handle = spawn(name, move || {
            let _at_end = end_signal;
            // A panic's payload is dropped here: if its destructor panics, threads that join or detach this one don't.
            let _panicked = catch(work);
        });
        let name = name.to_owned();
        match handle {
            Ok(handle) => Ok(Thread { name, handle, ended }),
            Err(error) => Err(Error::cluster_from(format!("starting thread {name}"), error)),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the thread's end; returns whether it came by the deadline.
    pub(super) fn wait(&self, deadline: Deadline) -> bool {
        *wait_while(&self.ended.is_over, &self.ended.changed, deadline, |is_over| !is_over)
    }

    /// Joins the thread if it ends by the deadline; otherwise returns it.
    pub(super) fn join(self, deadline: Deadline) -> Result<(), Thread> {
        if !self.wait(deadline) {
            return Err(self);
        }
        // A panic was caught and reported in the thread itself.
        let _ended = self.handle.join();
        Ok(())
    }
}
