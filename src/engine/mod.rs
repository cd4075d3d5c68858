//! Threads around a kernel: a bounded intake, handler threads, a control thread with the timers, and an orderly end.
//!
//! ```text
//!  cluster manager                      engine
//!  ┌─────────────┐ Event::Offers  ┌──────────────┐ batches ┌───────────────────┐
//!  │             │ ─────────────► │ intake       │ ──────► │ N handler threads │ ─► Accept, Decline
//!  │             │                └──────────────┘         └───────────────────┘
//!  │             │ other events   ┌──────────────────────────────────────────┐
//!  │             │ ─────────────► │ control thread: updates, demand, timers  │ ─► Revive, Suppress, Kill, …
//!  └─────────────┘                └──────────────────────────────────────────┘ ─► Observer
//! ```
//!
//! Frameworks with threads and transport of their own call the [`Kernel`] themselves and never meet this.

pub(crate) mod answering;
mod clock;
mod control;
mod encoded;
pub(crate) mod intake;
pub mod journal;
pub(crate) mod keeper;
mod killing;
mod notice;
mod owned;
mod reconciliation;
pub mod seam;
mod shared;
pub(crate) mod steward;

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

pub use clock::Clock;
pub use notice::{Notice, Observer, PlacedExecutor, Unobserved};

use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::{DrainReport, Kernel, Target};
use crate::launch::Launcher;
use crate::time::Timestamp;
use control::{Control, ControlThread};
use journal::Journal;
use journal::recording::Recording;
use keeper::Keeper;
use seam::{ClusterManager, EventSink};
use shared::Shared;

/// So many messages may wait for the control thread before those who tell it wait.
const CONTROL_QUEUE: usize = 16 * 1024;

/// How an engine works. `Default` suits most.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Handler threads. Default: as many as this machine has cores, at most 4.
    pub handlers: usize,
    /// Offers that may wait in the intake, at least 1; what comes beyond is declined. Default 10 000.
    pub offers_queued_max: usize,
    /// Offers that a handler takes at a time, at least 1. Default 256.
    pub batch_max: usize,
    /// How long offers are refused for that find no room in the intake. Default 5 s.
    pub overflow_refuse: Duration,
    /// How long an executor that is killed may take to end by itself. Default 5 s.
    pub kill_grace: Duration,
    /// Whether each executor that finishes lowers the executor limit by one, so that it is not replaced: for work that
    /// is done when so many executors have finished. Default: no.
    pub finished_count_down: bool,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        EngineOptions {
            handlers: cores.min(4),
            offers_queued_max: 10_000,
            batch_max: 256,
            overflow_refuse: Duration::from_secs(5),
            kill_grace: Duration::from_secs(5),
            finished_count_down: false,
        }
    }
}

/// A running engine. Dropped without [`Engine::shutdown`], it ends its threads and stops the manager, without waiting
/// for executors.
pub struct Engine {
    shared: Arc<Shared>,
    handlers: Vec<JoinHandle<()>>,
    control: Option<JoinHandle<()>>,
    /// Whether the manager has to be stopped.
    started: bool,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("kernel", self.kernel()).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts threads around `kernel`, then `manager`.
    ///
    /// # Errors
    /// When an option is out of its range, a thread can't be started, or the manager can't start; nothing runs then.
    pub fn start(
        kernel: Kernel,
        manager: Arc<dyn ClusterManager>,
        launcher: Arc<dyn Launcher>,
        options: EngineOptions,
        observer: Box<dyn Observer>,
    ) -> Result<Engine, Error> {
        Engine::set_up(Keeper::from(kernel), manager, launcher, options, observer)
    }

    /// The same, with a [`Journal`] of all that is done with `kernel`, with which nothing was done before. There is one
    /// handler thread then. While the engine runs, use [`Engine::set_executor_limit`] and
    /// [`Engine::request_executors`]: what is done with the kernel itself is not recorded, and what follows is not done
    /// again by whoever plays the journal.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_with_journal(
        kernel: Kernel,
        manager: Arc<dyn ClusterManager>,
        launcher: Arc<dyn Launcher>,
        options: EngineOptions,
        observer: Box<dyn Observer>,
        journal: Box<dyn Journal>,
    ) -> Result<Engine, Error> {
        let recording = Arc::new(Recording::new());
        let keeper = Keeper::with(kernel, Some(Arc::clone(&recording)));
        let options = EngineOptions { handlers: options.handlers.min(1), ..options };
        let (mut journal, written) = (journal, Arc::clone(&recording));
        // Nobody waits for this thread for long: what it writes to may hang.
        spawn("offermill-journal", move || written.write(&mut *journal))?;
        let engine = Engine::set_up(keeper.clone(), manager, launcher, options, observer);
        if engine.is_err() {
            let _untold = keeper.finish(Timestamp::ORIGIN);
        }
        engine
    }

    fn set_up(
        keeper: Keeper,
        manager: Arc<dyn ClusterManager>,
        launcher: Arc<dyn Launcher>,
        options: EngineOptions,
        observer: Box<dyn Observer>,
    ) -> Result<Engine, Error> {
        for (name, value) in [
            ("handler threads", options.handlers),
            ("queued offers", options.offers_queued_max),
            ("offers in a batch", options.batch_max),
        ] {
            if value == 0 {
                return Err(Error::setting(name, value, "at least 1"));
            }
        }
        let (sender, inbox) = crossbeam_channel::bounded(CONTROL_QUEUE);
        let handlers = options.handlers;
        let shared = Arc::new(Shared::new(keeper, manager, launcher, options, sender));
        let mut engine = Engine { shared, handlers: Vec::new(), control: None, started: false };
        let control = ControlThread::new(Arc::clone(&engine.shared), inbox, observer);
        engine.control = Some(spawn("offermill-control", move || control.run())?);
        for number in 0..handlers {
            let shared = Arc::clone(&engine.shared);
            let work = move || answering::answer_offers(&shared);
            engine.handlers.push(spawn(&format!("offermill-handler-{number}"), work)?);
        }
        let events: EventSink = Arc::clone(&engine.shared) as EventSink;
        engine.shared.manager.start(events)?;
        engine.started = true;
        Ok(engine)
    }

    /// The kernel inside: for its settings, its counters.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        self.shared.keeper.kernel()
    }

    /// [`Kernel::set_executor_limit`], on record if there is a journal.
    ///
    /// # Errors
    /// When the limit is over [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX).
    pub fn set_executor_limit(&self, limit: Option<u32>) -> Result<(), Error> {
        self.shared.keeper.set_executor_limit(limit, self.shared.clock.now())
    }

    /// [`Kernel::request_executors`], on record if there is a journal.
    ///
    /// # Errors
    /// When the limit is over [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX).
    pub fn request_executors(&self, limit: Option<u32>, hosts: &[&str]) -> Result<(), Error> {
        self.shared.keeper.request_executors(limit, hosts, self.shared.clock.now())
    }

    /// The clock that the kernel's moments are told by.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// How many offers wait in the intake.
    #[must_use]
    pub fn offers_queued(&self) -> usize {
        self.shared.intake.len()
    }

    /// Asks executors to end; they have the kill grace for it. Asked again until their end is reported.
    pub fn kill(&self, executors: Vec<ExecutorId>) {
        let grace = self.shared.options.kill_grace;
        self.shared.tell(Control::Kill { executors, grace });
    }

    /// Ends: declines what comes, asks all executors to end, waits for that up to `timeout`, then stops the manager,
    /// which ends by force what is left. Returns how each executor stood at the timeout; what the manager ended after
    /// it, the observer was still told.
    pub fn shutdown(mut self, timeout: Duration) -> DrainReport {
        let started = std::time::Instant::now();
        self.close();
        self.end_handlers();
        let left = self.close();
        let grace = self.shared.options.kill_grace.min(timeout);
        let executors = left.into_iter().map(|target| target.id).collect();
        self.shared.tell(Control::Kill { executors, grace });
        let report = self.kernel().drain(timeout.saturating_sub(started.elapsed()));
        self.end();
        report
    }

    fn close(&self) -> Vec<Target> {
        self.shared.keeper.close(self.shared.clock.now())
    }

    fn end_handlers(&mut self) {
        self.shared.intake.close();
        for handler in self.handlers.drain(..) {
            // A handler that panicked has told so on standard error; the rest must still end.
            let _panicked = handler.join();
        }
    }

    fn end(&mut self) {
        self.close();
        self.end_handlers();
        if std::mem::take(&mut self.started) {
            self.shared.manager.stop();
        }
        if let Some(control) = self.control.take() {
            self.shared.tell(Control::End);
            let _panicked = control.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map_err(|error| Error::cluster(format!("starting thread {name}"), error))
}
