//! Gates that calls to the cluster manager pass: closed before the manager is stopped, so that no call follows.
//!
//! Each thread that makes calls has a gate of its own, so that no handler waits for another. A thread enters under the
//! gate's lock and makes its call with nothing held. Who closes a gate sees under the same lock whether a call is under
//! way: a call either began before the gate was closed, and then its end can be waited for, or it is not made.

use super::sync::{Condvar, Deadline, Mutex, lock, wait_while};

/// What a gate lets through. It only ever closes further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Open {
    Nothing,
    /// All calls but those that launch executors.
    NoLaunches,
    Everything,
}

pub(super) struct Gate {
    state: Mutex<GateState>,
    idle: Condvar,
}

struct GateState {
    open: Open,
    is_calling: bool,
}

/// A call under way. Dropped when it has returned or panicked.
struct Passage<'a>(&'a Gate);

impl Drop for Passage<'_> {
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

    /// Makes a call; `None` if the gate is closed. `launches` says whether it launches executors. All calls come from
    /// one thread.
    pub(super) fn pass<R>(&self, launches: bool, call: impl FnOnce() -> R) -> Option<R> {
        let needed = if launches { Open::Everything } else { Open::NoLaunches };
        let mut state = lock(&self.state);
        if state.open < needed {
            return None;
        }
        state.is_calling = true;
        drop(state);
        let _passage = Passage(self);
        Some(call())
    }

    /// From now on only what is `open` passes.
    pub(super) fn close(&self, open: Open) {
        let mut state = lock(&self.state);
        state.open = state.open.min(open);
    }

    /// Waits until no call is under way; `false` if one still is at the deadline.
    pub(super) fn wait_until_idle(&self, deadline: Deadline) -> bool {
        !wait_while(&self.state, &self.idle, deadline, |state| state.is_calling).is_calling
    }
}
