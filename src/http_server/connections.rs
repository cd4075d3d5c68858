//! [`OpenConnections`]: how many connections there are, and which of them give way to others.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::task::AbortHandle;

/// What a server knows of a connection.
#[derive(Debug, Default)]
pub struct ClientConnection {
    /// Whether it is in use, as the server sees it: others give way to new ones before it does.
    pub is_used: Cell<bool>,
    /// Whether the client has shown a certificate of an authority that the server trusts.
    pub has_certificate: Cell<bool>,
}

/// What happens to a new connection if all that may be open are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest one is closed for it.
    CloseOldest,
    /// It is closed.
    RefuseNew,
}

/// The connections that are open, the oldest first, and some that have just ended.
pub(super) struct OpenConnections {
    all: VecDeque<OpenConnection>,
    most: usize,
    when_full: WhenFull,
}

struct OpenConnection {
    client: Rc<ClientConnection>,
    task: AbortHandle,
}

impl OpenConnections {
    /// None yet, and at most so many.
    pub(super) fn new(most: usize, when_full: WhenFull) -> OpenConnections {
        OpenConnections { all: VecDeque::new(), most, when_full }
    }

    /// Forgets connections that have ended. If there are too many others, closes the oldest one that isn't in use, so
    /// that silent clients can't keep others out. Returns whether another one may be added.
    pub(super) fn make_room(&mut self) -> bool {
        if self.all.len() < self.most {
            return true;
        }
        self.all.retain(|connection| !connection.task.is_finished());
        if self.all.len() < self.most {
            return true;
        }
        let unused = self.all.iter().position(|connection| !connection.client.is_used.get());
        let closed = match (unused, self.when_full) {
            (Some(unused), _) => unused,
            (None, WhenFull::CloseOldest) => 0,
            (None, WhenFull::RefuseNew) => return false,
        };
        if let Some(connection) = self.all.remove(closed) {
            connection.task.abort();
        }
        true
    }

    /// Adds a connection, and the task that answers it.
    pub(super) fn add(&mut self, client: Rc<ClientConnection>, task: AbortHandle) {
        self.all.push_back(OpenConnection { client, task });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::pending;

    use tokio::runtime;
    use tokio::task::{JoinHandle, LocalSet, spawn_local};

    use super::*;

    fn connect(open: &mut OpenConnections, is_used: bool) -> JoinHandle<()> {
        assert!(open.make_room());
        let task = spawn_local(pending());
        let client = ClientConnection { is_used: Cell::new(is_used), ..Default::default() };
        open.add(Rc::new(client), task.abort_handle());
        task
    }

    /// Goal: silent clients don't keep others out, and don't end those that are in use. Method: as many connections as
    /// there may be, two of them unused; the oldest unused one gives way to each further one, until none is left. Then
    /// a new one is refused, or takes the place of the oldest. One that ends makes room.
    #[test]
    fn the_oldest_unused_connection_gives_way() {
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            for when_full in [WhenFull::RefuseNew, WhenFull::CloseOldest] {
                let mut open = OpenConnections::new(16, when_full);
                let first = connect(&mut open, true);
                let silent = connect(&mut open, false);
                let later = connect(&mut open, false);
                while open.all.len() < 16 {
                    connect(&mut open, true);
                }
                connect(&mut open, true);
                assert!(silent.await.unwrap_err().is_cancelled());
                assert!(!later.is_finished());
                connect(&mut open, true);
                assert!(later.await.unwrap_err().is_cancelled());
                match when_full {
                    WhenFull::RefuseNew => {
                        assert!(!open.make_room() && !first.is_finished());
                        first.abort();
                    }
                    WhenFull::CloseOldest => assert!(open.make_room()),
                }
                assert!(first.await.unwrap_err().is_cancelled());
                assert!(open.make_room());
                assert_eq!(open.all.len(), 15);
            }
        });
    }
}
