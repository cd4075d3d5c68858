//! [`OpenConnections`]: how many connections there are, and which of them give way to others.

use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::task::{AbortHandle, yield_now};

use super::peer::PeerUser;

/// What a server knows of a connection.
#[derive(Debug, Default)]
pub struct ClientConnection {
    /// The answers in progress that keep it in use.
    answers: Cell<usize>,
    /// What the requests on it were so far.
    rank: Cell<ConnectionRank>,
    /// Where it comes from.
    pub address: Option<SocketAddr>,
    /// Whether the client has shown a certificate of an authority that the server trusts.
    pub has_certificate: Cell<bool>,
    /// Which user's program it belongs to, if the server looks that up.
    pub user: Cell<PeerUser>,
}

/// What the requests on a connection were so far. Of the connections that aren't in use, those of the lowest rank give
/// way first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionRank {
    /// None of them needed a right and had it.
    #[default]
    Unknown,
    /// One was allowed.
    Allowed,
    /// One belonged to a stream of another connection, whose client may take the end of this one for that of both.
    OfStream,
}

/// Keeps a connection in use until it is dropped.
#[derive(Debug)]
pub struct ConnectionUse(Rc<ClientConnection>);

impl ClientConnection {
    /// A connection from an address, without any request so far.
    pub(super) fn from(address: SocketAddr) -> ClientConnection {
        ClientConnection { address: Some(address), ..ClientConnection::default() }
    }

    /// Keeps the connection in use while a request on it is answered.
    #[must_use]
    pub fn hold(self: &Rc<Self>) -> ConnectionUse {
        self.answers.set(self.answers.get() + 1);
        ConnectionUse(Rc::clone(self))
    }

    /// Whether a request on it that keeps it in use is being answered: others give way to new ones before it does.
    pub(super) fn is_used(&self) -> bool {
        self.answers.get() > 0
    }

    /// Notes what a request was.
    pub fn raise(&self, rank: ConnectionRank) {
        self.rank.set(self.rank.get().max(rank));
    }

    /// What the requests on it were so far.
    pub(super) fn rank(&self) -> ConnectionRank {
        self.rank.get()
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.0.answers.set(self.0.answers.get().saturating_sub(1));
    }
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
    /// None yet, and never more than `most`.
    pub(super) fn new(most: usize, when_full: WhenFull) -> OpenConnections {
        OpenConnections { all: VecDeque::new(), most, when_full }
    }

    /// Forgets connections that have ended. If there are too many others, closes one, so that silent clients can't keep
    /// others out. Returns whether another one may be added.
    pub(super) fn make_room(&mut self) -> bool {
        if self.all.len() < self.most {
            return true;
        }
        self.all.retain(|connection| !connection.task.is_finished());
        self.all.len() < self.most || self.close_one().is_some()
    }

    /// Closes a connection as if there were too many, because the system has no file for another one. Returns whether
    /// there was one, after its file was closed.
    pub(super) async fn free_file(&mut self) -> bool {
        self.all.retain(|connection| !connection.task.is_finished());
        let Some(task) = self.close_one() else { return false };
        while !task.is_finished() {
            yield_now().await;
        }
        true
    }

    /// Closes the oldest connection of the lowest rank that isn't in use. If all are, closes the oldest one or none.
    fn close_one(&mut self) -> Option<AbortHandle> {
        let all = self.all.iter().enumerate();
        let unused = all
            .filter(|(_, connection)| !connection.client.is_used())
            .min_by_key(|(at, connection)| (connection.client.rank(), *at))
            .map(|(at, _)| at);
        let closed = match (unused, self.when_full) {
            (Some(unused), _) => unused,
            (None, WhenFull::CloseOldest) => 0,
            (None, WhenFull::RefuseNew) => return None,
        };
        let connection = self.all.remove(closed)?;
        connection.task.abort();
        Some(connection.task)
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
        let client = Rc::new(ClientConnection::default());
        let held = is_used.then(|| client.hold());
        connect_as(open, client, held)
    }

    fn connect_as(
        open: &mut OpenConnections,
        client: Rc<ClientConnection>,
        held: Option<ConnectionUse>,
    ) -> JoinHandle<()> {
        assert!(open.make_room());
        let task = spawn_local(async move {
            let _held = held;
            pending().await
        });
        open.add(client, task.abort_handle());
        task
    }

    /// Goal: those without a right can't close idle connections of those who have one, nor the connections for calls
    /// while there are others. Method: one connection of each rank, the highest rank first, and no more may be open.
    /// They give way from the lowest to the highest, also if the system has no file for another one.
    #[test]
    fn the_lowest_rank_gives_way_first() {
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            for has_files in [true, false] {
                let mut open = OpenConnections::new(3, WhenFull::RefuseNew);
                let ranks =
                    [ConnectionRank::OfStream, ConnectionRank::Allowed, ConnectionRank::Unknown];
                let mut tasks = Vec::new();
                for rank in ranks {
                    let client = Rc::new(ClientConnection::default());
                    client.raise(rank);
                    client.raise(ConnectionRank::Unknown);
                    drop(client.hold());
                    tasks.push(connect_as(&mut open, client, None));
                }
                while let Some(next) = tasks.pop() {
                    match has_files {
                        true => drop(connect(&mut open, true)),
                        false => assert!(open.free_file().await && next.is_finished()),
                    }
                    assert!(next.await.unwrap_err().is_cancelled());
                    assert!(tasks.iter().all(|task| !task.is_finished()));
                }
                assert!(!open.free_file().await);
            }
        });
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
