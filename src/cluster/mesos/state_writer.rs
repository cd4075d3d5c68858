//! The thread that writes the framework id file, and what the others have it write.
//!
//! A disk can take its time, and a file system on the network can hang for good. The manager's thread must not: it
//! reads events and sends calls, kills among them. So it only orders what is to be written; the file is one thread's
//! alone.
//!
//! | what | is in the file before |
//! |---|---|
//! | the framework's id | any launch of its executors |
//! | an executor's launch | its ACCEPT is ordered: a handler thread waits for that |
//! | an executor's end | its update is acknowledged: the lane waits for that |
//!
//! Nobody waits for longer than [`WRITTEN_WITHIN`]. Then the launch is called off, and the acknowledgement is left out,
//! so that the cluster sends the update again. What waits to be written is bounded: an executor's end is ordered once,
//! and while nothing is written no executor is launched.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::state_file::{FrameworkState, StateFile};
use crate::engine::cluster_manager::{RecoveredExecutor, Update};
use crate::error::Error;
use crate::status::{Fate, Meaning};

/// Whoever waits for something to be written waits no longer.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);

/// What is to be written.
enum Job {
    Identify {
        framework_id: String,
        done: oneshot::Sender<io::Result<()>>,
    },
    Launch {
        executors: Vec<RecoveredExecutor>,
        done: SyncSender<io::Result<()>>,
    },
    End {
        executor: String,
        finished: bool,
    },
    Remove {
        done: SyncSender<io::Result<()>>,
    },
    /// Nothing: but all that was ordered before is done.
    Nothing {
        done: SyncSender<io::Result<()>>,
    },
}

/// A ledger that several threads have written to, or none.
#[derive(Clone, Debug)]
pub(super) struct SharedLedger(Option<Arc<WriterQueue>>);

/// What the writer and those who order share. Its lock is never held while something is written.
#[derive(Debug)]
struct WriterQueue {
    /// What the file said when it was opened.
    former: FrameworkState,
    orders: Mutex<Orders>,
    /// How many jobs are done.
    done: watch::Sender<u64>,
}

#[derive(Debug)]
struct Orders {
    jobs: Sender<Job>,
    /// Executors that are in the file, or will be.
    launched: HashSet<String>,
    /// Executors whose end is not written yet.
    ending: HashSet<String>,
    /// Since when the writer is at one job, if it is at any.
    busy_since: Option<Instant>,
}

impl SharedLedger {
    /// Opens the file, if there is to be one, and starts its thread. That ends when all clones are dropped and all is
    /// written.
    pub(super) fn open(path: Option<&Path>) -> Result<SharedLedger, Error> {
        let Some(path) = path else { return Ok(SharedLedger(None)) };
        let ledger = StateFile::open(path)?;
        let (jobs, inbox) = channel();
        let former = ledger.book().clone();
        let launched = former.executors.keys().cloned().collect();
        let orders = Orders { jobs, launched, ending: HashSet::new(), busy_since: None };
        let desk = WriterQueue { former, orders: Mutex::new(orders), done: watch::channel(0).0 };
        let desk = Arc::new(desk);
        // The writer must not keep the orders' own sender alive.
        let shared = Arc::downgrade(&desk);
        let write = move || {
            let mut ledger = ledger;
            let note = |executor: Option<&str>, busy: Option<Instant>| {
                let Some(desk) = shared.upgrade() else { return };
                let mut orders = desk.orders();
                orders.busy_since = busy;
                let _ended = executor.map(|executor| orders.ending.remove(executor));
                drop(orders);
                desk.done.send_modify(|done| *done += u64::from(busy.is_none()));
            };
            work(&mut ledger, &inbox, note);
        };
        let started = Builder::new().name("offermill-ledger".into()).spawn(write);
        started.map_err(|error| Error::cluster("framework id file: no thread", error))?;
        Ok(SharedLedger(Some(desk)))
    }

    /// What the file said when it was opened.
    pub(super) fn former(&self) -> FrameworkState {
        self.0.as_ref().map(|desk| desk.former.clone()).unwrap_or_default()
    }

    /// See [`StateFile::identify`]. Doesn't wait; whether it was written is told by what this returns.
    pub(super) fn identify(&self, framework_id: &str) -> oneshot::Receiver<io::Result<()>> {
        let (done, answer) = oneshot::channel();
        if let Some(desk) = &self.0 {
            let mut orders = desk.orders();
            if desk.former.framework_id.as_deref() != Some(framework_id) {
                orders.launched.retain(|executor| !desk.former.executors.contains_key(executor));
            }
            orders.order(Job::Identify { framework_id: framework_id.to_owned(), done });
        }
        answer
    }

    /// See [`StateFile::launch`]. Waits until it is written.
    pub(super) fn launch(&self, executors: &[RecoveredExecutor]) -> io::Result<()> {
        let Some(desk) = &self.0 else { return Ok(()) };
        let (done, answer) = sync_channel(1);
        let mut orders = desk.orders();
        if orders.busy_since.is_some_and(|since| since.elapsed() >= WRITTEN_WITHIN) {
            return Err(too_slow());
        }
        orders.launched.extend(executors.iter().map(|it| it.executor.clone()));
        orders.order(Job::Launch { executors: executors.to_vec(), done });
        drop(orders);
        match answer.recv_timeout(WRITTEN_WITHIN) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let mut orders = desk.orders();
                for it in executors {
                    orders.launched.remove(&it.executor);
                }
                Err(error)
            }
            // It may be written yet, and is then taken back.
            Err(_) => {
                executors.iter().for_each(|it| self.forget(&it.executor));
                Err(too_slow())
            }
        }
    }

    /// Has an executor's end noted, if that is what the update tells. Doesn't wait.
    pub(super) fn note(&self, update: &Update) {
        if let Meaning::Ended(fate) = update.state.meaning(update.reason) {
            self.end(&update.executor, fate == Fate::Finished);
        }
    }

    /// This executor was never launched. Doesn't wait.
    pub(super) fn forget(&self, executor: &str) {
        self.end(executor, false);
    }

    fn end(&self, executor: &str, finished: bool) {
        let Some(desk) = &self.0 else { return };
        let mut orders = desk.orders();
        if orders.launched.remove(executor) {
            orders.ending.insert(executor.to_owned());
            orders.order(Job::End { executor: executor.to_owned(), finished });
        }
    }

    /// Waits until the executor's end is written, if it was noted; `false` if that takes too long.
    pub(super) async fn until_written(&self, executor: &str) -> bool {
        let Some(desk) = &self.0 else { return true };
        let mut done = desk.done.subscribe();
        let written = done.wait_for(|_| !desk.orders().ending.contains(executor));
        tokio::time::timeout(WRITTEN_WITHIN, written).await.is_ok()
    }

    /// See [`StateFile::remove`]. Waits for it, and for all that was ordered before.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.wait_for(|done| Job::Remove { done })
    }

    /// Waits until all that was ordered is written.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.wait_for(|done| Job::Nothing { done })
    }

    fn wait_for(&self, job: impl FnOnce(SyncSender<io::Result<()>>) -> Job) -> io::Result<()> {
        let Some(desk) = &self.0 else { return Ok(()) };
        let (done, answer) = sync_channel(1);
        desk.orders().order(job(done));
        answer.recv_timeout(WRITTEN_WITHIN).unwrap_or_else(|_| Err(too_slow()))
    }
}

impl WriterQueue {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orders {
    fn order(&mut self, job: Job) {
        // Without the writer, whoever waits for it is told so.
        let _ended = self.jobs.send(job);
    }
}

/// The writer's work. `note` is told when it begins a job, and when it has done one; with an executor whose end that
/// was.
fn work(
    ledger: &mut StateFile,
    inbox: &Receiver<Job>,
    note: impl Fn(Option<&str>, Option<Instant>),
) {
    while let Ok(job) = inbox.recv() {
        note(None, Some(Instant::now()));
        let mut ended = None;
        // Whoever asked may have stopped waiting.
        let _gone = match job {
            Job::Identify { framework_id, done } => {
                done.send(ledger.identify(&framework_id)).map_err(drop)
            }
            Job::Launch { executors, done } => done.send(ledger.launch(&executors)).map_err(drop),
            Job::End { executor, finished } => {
                // What can't be written now, the cluster says again when it is asked after a restart.
                let _full = ledger.end(&executor, finished);
                ended = Some(executor);
                Ok(())
            }
            Job::Remove { done } => done.send(ledger.remove()).map_err(drop),
            Job::Nothing { done } => done.send(Ok(())).map_err(drop),
        };
        note(ended.as_deref(), None);
    }
}

fn too_slow() -> io::Error {
    let why = format!("nothing was written for {} s", WRITTEN_WITHIN.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, why)
}
