//! Gates for calls to the cluster manager: each call passes one, and all are closed before the manager is stopped, so
//! that no call follows the stop.
//!
//! Each thread that makes calls has its own gate, so that no handler waits for another. A thread enters under the
//! gate's lock and makes its call without holding it. The thread that closes a gate sees under the same lock whether a
//! call is under way: a call either began before the gate was closed, and then its end can be waited for, or it is not
//! made.

use super::cluster_manager::{Call, ClusterManager};
use super::sync::{Condvar, Deadline, Mutex, lock, wait_while};
use crate::error::Error;

/// What a gate lets through, least first. A gate never opens again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Open {
    Nothing,
    /// All calls except those that launch executors.
    NoLaunches,
    Everything,
}

/// The gate of one thread.
pub(super) struct Gate {
    state: Mutex<GateState>,
    /// Notified when a call ends, if the gate is not fully open.
    idle: Condvar,
}

struct GateState {
    open: Open,
    is_calling: bool,
}

/// A call under way; dropped when it has returned or panicked.
struct CallGuard<'a>(&'a Gate);

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.is_calling = false;
        if state.open != Open::Everything {
            self.0.idle.notify_all();
        }
    }
}

impl Gate {
    pub(super) fn new() -> Gate {
        let state = GateState { open: Open::Everything, is_calling: false };
        Gate { state: Mutex::new(state), idle: Condvar::new() }
    }

    /// Makes a call; `None` if the gate is closed for it. Only the gate's own thread may call this.
    pub(super) fn call(
        &self,
        manager: &dyn ClusterManager,
        call: Call<'_>,
    ) -> Option<Result<(), Error>> {
        let _guard = self.enter(&call)?;
        Some(manager.call(call))
    }

    /// Begins a call, which lasts until the guard is dropped.
    fn enter(&self, call: &Call<'_>) -> Option<CallGuard<'_>> {
        let launches = matches!(call, Call::Accept(_));
        let needed = if launches { Open::Everything } else { Open::NoLaunches };
        let mut state = lock(&self.state);
        if state.open < needed {
            return None;
        }
        state.is_calling = true;
        Some(CallGuard(self))
    }

    /// Lets only `open` pass from now on.
    pub(super) fn close(&self, open: Open) {
        let mut state = lock(&self.state);
        state.open = state.open.min(open);
    }

    /// Waits until no call is under way; `false` if one still is at the deadline.
    pub(super) fn wait_until_idle(&self, deadline: Deadline) -> bool {
        !wait_while(&self.state, &self.idle, deadline, |state| state.is_calling).is_calling
    }
}
