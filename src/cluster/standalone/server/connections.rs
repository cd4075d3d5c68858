//! [`MasterConnections`]: how many connections there are, and which of them give way to others.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::task::AbortHandle;

/// The most connections that are open at a time.
const CONNECTIONS_MAX: usize = 2048;

/// The connections that are open, the oldest first, and some that have just ended.
#[derive(Default)]
pub(super) struct MasterConnections(VecDeque<MasterConnection>);

struct MasterConnection {
    /// Whether a request of a framework or of a worker was allowed on it.
    is_allowed: Rc<Cell<bool>>,
    task: AbortHandle,
}

impl MasterConnections {
    /// Forgets connections that have ended. If there are too many others, closes the oldest one on which no request was
    /// allowed, so that clients without credentials can't keep others out. Returns whether another one may be added:
    /// not if too many are in use.
    pub(super) fn make_room(&mut self) -> bool {
        if self.0.len() < CONNECTIONS_MAX {
            return true;
        }
        self.0.retain(|connection| !connection.task.is_finished());
        if self.0.len() < CONNECTIONS_MAX {
            return true;
        }
        let unused = self.0.iter().position(|connection| !connection.is_allowed.get());
        let Some(connection) = unused.and_then(|unused| self.0.remove(unused)) else {
            return false;
        };
        connection.task.abort();
        true
    }

    /// Adds a connection, and the task that answers it.
    pub(super) fn add(&mut self, is_allowed: Rc<Cell<bool>>, task: AbortHandle) {
        self.0.push_back(MasterConnection { is_allowed, task });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::pending;

    use tokio::runtime;
    use tokio::task::{JoinHandle, LocalSet, spawn_local};

    use super::*;

    fn connect(open: &mut MasterConnections, is_allowed: bool) -> JoinHandle<()> {
        assert!(open.make_room());
        let task = spawn_local(pending());
        open.add(Rc::new(Cell::new(is_allowed)), task.abort_handle());
        task
    }

    /// Goal: silent clients don't keep others out, and don't end those that are in use. Method: as many connections as
    /// there may be, two of them unused; the oldest unused one gives way to each further one, until none is left. One
    /// that ends makes room.
    #[test]
    fn the_oldest_unused_connection_gives_way() {
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let mut open = MasterConnections::default();
            let first = connect(&mut open, true);
            let silent = connect(&mut open, false);
            let later = connect(&mut open, false);
            while open.0.len() < CONNECTIONS_MAX {
                connect(&mut open, true);
            }
            connect(&mut open, true);
            assert!(silent.await.unwrap_err().is_cancelled());
            assert!(!later.is_finished());
            connect(&mut open, true);
            assert!(later.await.unwrap_err().is_cancelled());
            assert!(!open.make_room());
            first.abort();
            assert!(first.await.unwrap_err().is_cancelled());
            assert!(open.make_room());
            assert_eq!(open.0.len(), CONNECTIONS_MAX - 1);
        });
    }
}
