//! The thread that writes the framework id file, and [`SharedStateFile`], by which other threads queue writes.
//!
//! A disk can be slow, and a network file system can hang. The manager's thread must not wait for either: it reads
//! events and sends calls, kills among them. So it only queues writes; one thread owns the file.
//!
//! | entry | is in the file before |
//! |---|---|
//! | the framework's id | any launch of its executors |
//! | an executor's launch | its ACCEPT is queued: a handler thread waits for that |
//! | an executor's end | its update is acknowledged: the call sender waits for that |
//!
//! No wait takes longer than [`WRITE_TIMEOUT`]. After that the launch fails, and the acknowledgement is left out, so
//! that the cluster sends the update again. The queue is bounded: an executor's end is queued once, and while no write
//! completes no executor is launched.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::config::MesosConfig;
use super::state_file::{FrameworkState, StateFile};
use crate::engine::cluster_manager::{RecoveredExecutor, Update};
use crate::error::Error;
use crate::status::{Fate, Meaning};

/// The maximum time that a call waits for a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A write.
enum WriteJob {
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
    Complete {
        done: SyncSender<io::Result<()>>,
    },
    /// Writes nothing: completes when all earlier writes have.
    Flush {
        done: SyncSender<io::Result<()>>,
    },
}

/// The framework id file for several threads. `None` inside if there is no file.
#[derive(Clone, Debug)]
pub(super) struct SharedStateFile(Option<Arc<WriterQueue>>);

/// What the writer and the other threads share. Its lock is never held during a write.
#[derive(Debug)]
struct WriterQueue {
    /// The content of the file when it was opened.
    former: FrameworkState,
    state: Mutex<PendingWrites>,
    /// The number of completed writes.
    done: watch::Sender<u64>,
}

/// The queue of writes.
#[derive(Debug)]
struct PendingWrites {
    jobs: Sender<WriteJob>,
    /// Executors that are in the file, or in a queued write, and their agents.
    launched: HashMap<String, String>,
    /// Executors whose end is in a queued write.
    ending: HashSet<String>,
    /// When the present write began. `None` while the writer is idle.
    busy_since: Option<Instant>,
}

impl SharedStateFile {
    /// Opens the framework id file, if one is configured, and starts its thread. The thread ends when all clones are
    /// dropped and all writes have completed.
    pub(super) fn open(config: &MesosConfig) -> Result<SharedStateFile, Error> {
        let Some(path) = &config.framework_id_file else { return Ok(SharedStateFile(None)) };
        let mut state_file = StateFile::open(path)?;
        state_file.before_rewrite = config.before_rewrite;
        let (jobs, inbox) = channel();
        let former = state_file.state().clone();
        let launched = former.executors.values();
        let launched = launched.map(|it| (it.executor.clone(), it.agent_id.clone())).collect();
        let state = PendingWrites { jobs, launched, ending: HashSet::new(), busy_since: None };
        let queue =
            Arc::new(WriterQueue { former, state: Mutex::new(state), done: watch::channel(0).0 });
        // A strong reference would keep the sender of jobs alive, and with it the writer.
        let shared = Arc::downgrade(&queue);
        let write = move || {
            let mut state_file = state_file;
            let record_progress = |executor: Option<&str>, busy: Option<Instant>| {
                let Some(queue) = shared.upgrade() else { return };
                let mut state = queue.lock();
                state.busy_since = busy;
                let _ended = executor.map(|executor| state.ending.remove(executor));
                drop(state);
                queue.done.send_modify(|done| *done += u64::from(busy.is_none()));
            };
            run_writer(&mut state_file, &inbox, record_progress);
        };
        let started = Builder::new().name("offermill-state-file".into()).spawn(write);
        started.map_err(|error| Error::cluster_from("framework id file: no thread", error))?;
        Ok(SharedStateFile(Some(queue)))
    }

    /// The content of the file when it was opened.
    pub(super) fn former_state(&self) -> FrameworkState {
        self.0.as_ref().map(|queue| queue.former.clone()).unwrap_or_default()
    }

    /// See [`StateFile::identify`]. Doesn't wait; the returned channel receives the result of the write.
    pub(super) fn identify(&self, framework_id: &str) -> oneshot::Receiver<io::Result<()>> {
        let (done, answer) = oneshot::channel();
        if let Some(queue) = &self.0 {
            let mut state = queue.lock();
            if queue.former.framework_id.as_deref() != Some(framework_id) {
                state.launched.retain(|executor, _| !queue.former.executors.contains_key(executor));
            }
            state.push(WriteJob::Identify { framework_id: framework_id.to_owned(), done });
        }
        answer
    }

    /// See [`StateFile::launch`]. Waits for the write.
    pub(super) fn launch(&self, executors: &[RecoveredExecutor]) -> io::Result<()> {
        let Some(queue) = &self.0 else { return Ok(()) };
        let (done, answer) = sync_channel(1);
        let mut state = queue.lock();
        if state.busy_since.is_some_and(|since| since.elapsed() >= WRITE_TIMEOUT) {
            return Err(too_slow());
        }
        let launched = executors.iter().map(|it| (it.executor.clone(), it.agent_id.clone()));
        state.launched.extend(launched);
        state.push(WriteJob::Launch { executors: executors.to_vec(), done });
        drop(state);
        match answer.recv_timeout(WRITE_TIMEOUT) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let mut state = queue.lock();
                for it in executors {
                    state.launched.remove(&it.executor);
                }
                Err(error)
            }
            // The write may still complete, and is undone then.
            Err(_) => {
                executors.iter().for_each(|it| self.forget(&it.executor));
                Err(too_slow())
            }
        }
    }

    /// Queues an executor's end, if the update reports one and doesn't come from an agent that doesn't have the
    /// executor. Doesn't wait.
    pub(super) fn record(&self, update: &Update) {
        if let Meaning::Ended(fate) = update.state.meaning(update.reason) {
            self.end(&update.executor, update.agent_id.as_deref(), fate == Fate::Finished);
        }
    }

    /// Removes an executor that was never launched. Doesn't wait.
    pub(super) fn forget(&self, executor: &str) {
        self.end(executor, None, false);
    }

    /// `agent_id` is the agent that reports the end, if one does.
    fn end(&self, executor: &str, agent_id: Option<&str>, finished: bool) {
        let Some(queue) = &self.0 else { return };
        let mut state = queue.lock();
        let is_there = |agent: &String| agent_id.is_none_or(|id| *agent == id);
        if state.launched.get(executor).is_some_and(is_there) {
            state.launched.remove(executor);
            state.ending.insert(executor.to_owned());
            state.push(WriteJob::End { executor: executor.to_owned(), finished });
        }
    }

    /// Waits until the executor's end is written, if it was queued. Returns `false` if that takes too long.
    pub(super) async fn until_written(&self, executor: &str) -> bool {
        let Some(queue) = &self.0 else { return true };
        let mut done = queue.done.subscribe();
        let written = done.wait_for(|_| !queue.lock().ending.contains(executor));
        tokio::time::timeout(WRITE_TIMEOUT, written).await.is_ok()
    }

    /// See [`StateFile::remove`]. Waits for it and all earlier writes.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.wait_for(|done| WriteJob::Remove { done })
    }

    /// See [`StateFile::complete`]. Waits for it and all earlier writes.
    pub(super) fn complete(&self) -> io::Result<()> {
        self.wait_for(|done| WriteJob::Complete { done })
    }

    /// Waits for all queued writes.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.wait_for(|done| WriteJob::Flush { done })
    }

    fn wait_for(&self, job: impl FnOnce(SyncSender<io::Result<()>>) -> WriteJob) -> io::Result<()> {
        let Some(queue) = &self.0 else { return Ok(()) };
        let (done, answer) = sync_channel(1);
        queue.lock().push(job(done));
        answer.recv_timeout(WRITE_TIMEOUT).unwrap_or_else(|_| Err(too_slow()))
    }
}

impl WriterQueue {
    fn lock(&self) -> MutexGuard<'_, PendingWrites> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingWrites {
    fn push(&mut self, job: WriteJob) {
        // If the writer has ended, the job's reply channel is dropped and the wait for it fails.
        let _ended = self.jobs.send(job);
    }
}

/// Runs the writer. Calls `record_progress` when a write begins and when it completes, with the executor whose end was
/// written.
fn run_writer(
    state_file: &mut StateFile,
    inbox: &Receiver<WriteJob>,
    record_progress: impl Fn(Option<&str>, Option<Instant>),
) {
    while let Ok(job) = inbox.recv() {
        record_progress(None, Some(Instant::now()));
        let mut ended = None;
        // The receiver may have stopped waiting.
        let _gone = match job {
            WriteJob::Identify { framework_id, done } => {
                done.send(state_file.identify(&framework_id)).map_err(drop)
            }
            WriteJob::Launch { executors, done } => {
                done.send(state_file.launch(&executors)).map_err(drop)
            }
            WriteJob::End { executor, finished } => {
                // If the write fails, the cluster reports the end again when the executor is reconciled after a
                // restart.
                let _full = state_file.end(&executor, finished);
                ended = Some(executor);
                Ok(())
            }
            WriteJob::Remove { done } => done.send(state_file.remove()).map_err(drop),
            WriteJob::Complete { done } => done.send(state_file.complete()).map_err(drop),
            WriteJob::Flush { done } => done.send(Ok(())).map_err(drop),
        };
        record_progress(ended.as_deref(), None);
    }
}

fn too_slow() -> io::Error {
    let why = format!("nothing was written for {} s", WRITE_TIMEOUT.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, why)
}
