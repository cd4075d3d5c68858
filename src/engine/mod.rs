//! Threads around a kernel: a bounded offer queue, handler threads, a control thread with the timers, and an orderly end.
//!
//! ```text
//!  cluster manager                      engine
//!  ┌─────────────┐ Event::Offers  ┌──────────────┐ batches ┌───────────────────┐
//!  │             │ ─────────────► │ offer queue       │ ──────► │ N handler threads │ ─► Accept, Decline
//!  │             │                └──────────────┘         └───────────────────┘
//!  │             │ other events   ┌──────────────────────────────────────────┐
//!  │             │ ─────────────► │ control thread: updates, demand, timers  │ ─► Revive, Suppress, Kill, …
//!  └─────────────┘                └──────────────────────────────────────────┘ ─► Observer
//! ```
//!
//! Frameworks with threads and transport of their own call the [`Kernel`] themselves and never meet this.

mod clock;
pub mod cluster_manager;
mod control;
mod control_message;
pub(crate) mod controller;
mod encoded;
mod gate;
mod handler_calls;
mod handler_thread;
mod inbox;
pub mod journal;
mod kill_retry;
pub(crate) mod launches;
mod notice;
pub(crate) mod offer_handler;
pub(crate) mod offer_queue;
mod owned;
mod reconciliation;
pub(crate) mod recorded_kernel;
mod shared;
mod shutdown;
pub(crate) mod sinks;
mod sync;
mod threads;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use clock::Clock;
pub use notice::{Notice, Observer, PlacedExecutor, Unobserved};
pub use shutdown::Shutdown;

use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::Kernel;
use crate::launch::Launcher;
use crate::time::Timestamp;
use cluster_manager::{ClusterManager, EventSink};
use control::ControlThread;
use control_message::ControlMessage;
use handler_thread::HandlerThread;
use journal::Journal;
use journal::recording::Recording;
use recorded_kernel::RecordedKernel;
use shared::Shared;
use shutdown::ShutdownSequence;
use threads::Thread;

/// More handler threads than this are surely a mistake.
const HANDLERS_MAX: usize = 1024;

/// How an engine works. `Default` suits most.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Handler threads. Default: as many as this machine has cores, at most 4.
    pub handlers: usize,
    /// Offers that may wait in the offer queue, at least 1; what comes beyond is declined. Default 10 000.
    pub offers_queued_max: usize,
    /// Offers that a handler takes at a time, at least 1. Default 256.
    pub batch_max: usize,
    /// How long offers are refused for that find no room in the offer queue. Default 5 s.
    pub overflow_refuse: Duration,
    /// How long an executor that is killed may take to end by itself. Default 5 s.
    pub kill_grace: Duration,
    /// How much longer than its timeout a [shutdown](Engine::shutdown) may take, for calls under way, the manager's
    /// stop and the observer. What hangs for longer is left alone. Default 20 s.
    pub shutdown_slack: Duration,
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
            shutdown_slack: Duration::from_secs(20),
            finished_count_down: false,
        }
    }
}

/// A running engine. Dropped without [`Engine::shutdown`], it ends its threads and stops the manager, without asking
/// executors to end or waiting for them.
///
/// # Blocking
/// * [`Engine::shutdown`] returns within its timeout and [`EngineOptions::shutdown_slack`], whatever hangs; dropping
///   returns within the slack. What hangs in others' code (a call, the manager's stop, the launcher, the observer, the
///   journal) is left alone then, and [named](Shutdown::unfinished).
/// * On the control thread, which is to say in an [`Observer`], neither waits: the end goes on on a thread of its own,
///   and is complete when the observer and then the manager's stop have returned.
/// * [`Engine::kill`] never waits, and may be called in an observer.
/// * The rest waits for short locks; with a journal, for up to ten seconds while it is written too slowly.
///
/// # Panics of others' code
/// A launcher, reader or call that panics on a handler's thread costs that batch ([`Notice::HandlerPanicked`]). An
/// observer or a call that panics on the control thread breaks the engine: see [`Engine::broken`]. A journal that
/// panics is given up ([`Notice::JournalEnded`]).
pub struct Engine {
    shared: Arc<Shared>,
    handlers: Vec<Thread>,
    control: Option<Thread>,
    journal: Option<Thread>,
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
        Engine::set_up(RecordedKernel::from(kernel), manager, launcher, options, observer)
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
        let recorded_kernel = RecordedKernel::with(kernel, Some(Arc::clone(&recording)));
        let options = EngineOptions { handlers: options.handlers.min(1), ..options };
        let (mut journal, written) = (journal, Arc::clone(&recording));
        let writer = Thread::start("offermill-journal", move || written.write(&mut *journal))?;
        let engine = Engine::set_up(recorded_kernel.clone(), manager, launcher, options, observer);
        let mut engine = engine.inspect_err(|_| drop(recorded_kernel.finish(Timestamp::ORIGIN)))?;
        engine.journal = Some(writer);
        Ok(engine)
    }

    fn set_up(
        recorded_kernel: RecordedKernel,
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
        if options.handlers > HANDLERS_MAX {
            let allowed = format!("at most {HANDLERS_MAX}");
            return Err(Error::setting("handler threads", options.handlers, allowed));
        }
        let handlers = options.handlers;
        let shared = Arc::new(Shared::new(recorded_kernel, manager, launcher, options));
        let mut engine =
            Engine { shared, handlers: Vec::new(), control: None, journal: None, started: false };
        let control = ControlThread::new(Arc::clone(&engine.shared), observer);
        engine.control = Some(Thread::start("offermill-control", move || control.run())?);
        for number in 0..handlers {
            let shared = Arc::clone(&engine.shared);
            let work = move || HandlerThread::new(&shared, shared.handler_gate(number)).run();
            engine.handlers.push(Thread::start(&format!("offermill-handler-{number}"), work)?);
        }
        let events: EventSink = Arc::clone(&engine.shared) as EventSink;
        engine.shared.manager.start(events)?;
        engine.started = true;
        Ok(engine)
    }

    /// The kernel inside: for its settings, its counters.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        self.shared.recorded_kernel.kernel()
    }

    /// [`Kernel::set_executor_limit`], on record if there is a journal.
    ///
    /// # Errors
    /// When the limit is over [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX).
    pub fn set_executor_limit(&self, limit: Option<u32>) -> Result<(), Error> {
        self.shared.recorded_kernel.set_executor_limit(limit, self.shared.clock.now())
    }

    /// [`Kernel::request_executors`], on record if there is a journal.
    ///
    /// # Errors
    /// When the limit is over [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX).
    pub fn request_executors(&self, limit: Option<u32>, hosts: &[&str]) -> Result<(), Error> {
        self.shared.recorded_kernel.request_executors(limit, hosts, self.shared.clock.now())
    }

    /// The clock that the kernel's moments are told by.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// How many offers wait in the offer queue.
    #[must_use]
    pub fn offers_queued(&self) -> usize {
        self.shared.offer_queue.len()
    }

    /// Asks executors to end; they have the kill grace for it. Asked again until their end is reported. Comes before
    /// updates that wait to be applied; doesn't wait, and may be called in an [`Observer`].
    pub fn kill(&self, executors: Vec<ExecutorId>) {
        let grace = self.shared.options.kill_grace;
        self.shared.inbox.send_urgent(ControlMessage::Kill { executors, grace });
    }

    /// What the control thread said when it panicked, in the observer or in a call of the cluster manager's; `None`
    /// while it works. A broken engine declines the offers that it has room for and drops the others; it launches,
    /// applies and kills nothing: shut it down. The manager's stop ends what runs.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        self.shared.broken()
    }

    /// Ends: declines what comes, asks all executors to end, waits for that up to `timeout`, then stops the manager,
    /// which ends by force what is left. Returns how each executor stood at the timeout; what the manager ended after
    /// it, the observer was still told.
    ///
    /// Kills come before all updates that wait to be applied, and no call is made after the manager's stop began, but
    /// for one that hung then. Returns within `timeout` and [`EngineOptions::shutdown_slack`]: a quarter of the slack
    /// for handlers to end, one for calls under way, one for the manager's stop, one for the observer.
    ///
    /// In an [`Observer`] it doesn't wait, and reports how the executors stand: the end goes on on a thread of its own.
    pub fn shutdown(mut self, timeout: Duration) -> Shutdown {
        self.shutdown_sequence().run(Some(timeout))
    }

    fn shutdown_sequence(&mut self) -> ShutdownSequence {
        ShutdownSequence {
            shared: Arc::clone(&self.shared),
            handlers: std::mem::take(&mut self.handlers),
            control: self.control.take(),
            journal: self.journal.take(),
            started: std::mem::take(&mut self.started),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.control.is_some() {
            self.shutdown_sequence().run(None);
        }
    }
}
