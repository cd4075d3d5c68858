//! The engine: threads around a kernel, with a bounded offer queue, handler threads, a control thread that runs the
//! timers, and an orderly shutdown.
//!
//! ```text
//!  cluster manager                      engine
//!  ┌─────────────┐ Event::Offers  ┌──────────────┐ batches ┌───────────────────┐
//!  │             │ ─────────────► │ offer queue  │ ──────► │ N handler threads │ ─► Accept, Decline
//!  │             │                └──────────────┘         └───────────────────┘
//!  │             │ other events   ┌──────────────────────────────────────────┐
//!  │             │ ─────────────► │ control thread: updates, demand, timers  │ ─► Revive, Suppress, Kill, …
//!  └─────────────┘                └──────────────────────────────────────────┘ ─► Observer
//! ```
//!
//! A framework with its own threads and transport doesn't need the engine: it calls the [`Kernel`] itself.
//!
//! | file | contents |
//! |---|---|
//! | `cluster_manager` | the interface to cluster managers: events, calls, offers |
//! | `state` | the state that the engine's threads share; receives events |
//! | `offer_queue`, `handler_thread`, `offer_handler`, `handler_calls` | the way of an offer, in this order |
//! | `task_chooser` | the interface to frameworks that choose tasks themselves |
//! | `host_ledger`, `host_idleness` | for such frameworks: their hosts, from picks to ends; since when one is idle |
//! | `agent_pauses`, `undecided_ends` | for them, too: agents that start nothing; whether what is gone with its host had begun |
//! | `work_queue` | a queue of tasks with their commands, which is chooser, launcher and observer |
//! | `placed_batch` | the executors of a batch, as the handler reports them to the control thread |
//! | `inbox`, `control`, `controller` | the control thread's queue, its loop, and what it does |
//! | `reconciliation`, `kill_retry`, `launches` | parts of the controller: questions, kills, and what they wait for |
//! | `late_binding`, `agent_facts`, `avoided_agents` | executors whose agents the cluster chooses, and agents that it must avoid |
//! | `misattributed`, `unknown_executors` | updates of agents that don't have the executor, and of executors that nobody has |
//! | `gate`, `shutdown` | no call after the manager's stop; the steps of the end |
//! | `recorded_kernel`, `journal` | the kernel, and the record of what is done with it |
//! | `trace`, `views` | with features: events for the crate `tracing`; what simulations check |

mod agent_facts;
mod agent_pauses;
mod agent_survey;
mod avoided_agents;
mod clock;
pub mod cluster_manager;
mod control;
mod control_message;
pub(crate) mod controller;
mod encoded;
mod gate;
mod handler_calls;
mod handler_thread;
mod host_idleness;
mod host_ledger;
mod host_terms;
mod inbox;
pub mod journal;
pub(crate) mod kill_retry;
mod late_binding;
pub(crate) mod launches;
mod misattributed;
mod notice;
pub(crate) mod offer_handler;
pub(crate) mod offer_queue;
mod owned;
pub(crate) mod placed_batch;
mod reconciliation;
pub(crate) mod recorded_kernel;
mod recovered;
mod resource_profile;
mod shutdown;
pub(crate) mod sinks;
mod state;
mod sync;
mod task_chooser;
mod threads;
pub(crate) mod trace;
mod undecided_ends;
mod unknown_executors;
mod unreadable_offers;
mod update;
#[cfg(feature = "simulated")]
pub(crate) mod views;
mod work_bounds;
mod work_engine;
mod work_queue;
mod work_starts;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use agent_pauses::{AgentPauses, EndedHost, REJECTIONS_MAX, UnstartedEnd};
pub use agent_survey::{AgentSurvey, FitsNowhere, TooLarge};
pub use clock::Clock;
pub use host_ledger::{HostLedger, HostTerms};
pub use notice::{Notice, Observer, PlacedExecutor, Unobserved};
pub use shutdown::Shutdown;
pub use task_chooser::TaskChooser;
pub use undecided_ends::{DecidedTask, TaskStart};
pub use work_queue::{TaskEnd, WorkCounts, WorkQueue};

use crate::config::Config;
use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::{Kernel, Target};
use crate::launch::Launcher;
use crate::time::Timestamp;
use cluster_manager::{ClusterManager, EventSink};
use control::ControlThread;
use control_message::ControlMessage;
use handler_thread::HandlerThread;
use journal::Journal;
use journal::recording::Recording;
use recorded_kernel::RecordedKernel;
use shutdown::ShutdownSequence;
use state::EngineState;
use threads::Thread;

/// The most handler threads that an engine starts.
const HANDLERS_MAX: usize = 1024;

/// The settings of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The number of handler threads, 1 to 1024. Default: one per core of this machine, at most 4.
    pub handlers: usize,
    /// The most offers that wait in the offer queue, at least 1; further offers are declined. Default 10 000.
    pub offers_queued_max: usize,
    /// The most offers in a handler's batch, at least 1. Default 256.
    pub batch_max: usize,
    /// How long offers are refused if the offer queue has no room for them. Default 5 s.
    pub overflow_refuse: Duration,
    /// How long a killed executor may take to end by itself. Default 5 s. If it isn't shorter than the timeout of a
    /// [shutdown](Engine::shutdown), executors have until the timeout, and then the manager's stop ends them.
    pub kill_grace: Duration,
    /// How much longer than its timeout a [shutdown](Engine::shutdown) may take, for calls under way, the manager's
    /// stop and the observer. Threads that hang for longer are left running. Default 20 s.
    pub shutdown_slack: Duration,
    /// Whether each executor that finishes lowers the executor limit by one, so that it is not replaced: for work that
    /// is done when a given number of executors have finished. Default: no.
    pub finished_count_down: bool,
}

impl EngineOptions {
    /// Sets [`handlers`](Self::handlers): the number of handler threads.
    #[must_use]
    pub const fn with_handlers(self, handlers: usize) -> EngineOptions {
        EngineOptions { handlers, ..self }
    }

    /// Sets [`offers_queued_max`](Self::offers_queued_max): the most offers that wait.
    #[must_use]
    pub const fn with_offers_queued_max(self, offers_queued_max: usize) -> EngineOptions {
        EngineOptions { offers_queued_max, ..self }
    }

    /// Sets [`batch_max`](Self::batch_max): the most offers in a batch.
    #[must_use]
    pub const fn with_batch_max(self, batch_max: usize) -> EngineOptions {
        EngineOptions { batch_max, ..self }
    }

    /// Sets [`overflow_refuse`](Self::overflow_refuse): how long offers without room are refused.
    #[must_use]
    pub const fn with_overflow_refuse(self, overflow_refuse: Duration) -> EngineOptions {
        EngineOptions { overflow_refuse, ..self }
    }

    /// Sets [`kill_grace`](Self::kill_grace): how long a killed executor may take to end by itself.
    #[must_use]
    pub const fn with_kill_grace(self, kill_grace: Duration) -> EngineOptions {
        EngineOptions { kill_grace, ..self }
    }

    /// Sets [`shutdown_slack`](Self::shutdown_slack): how much longer than its timeout a shutdown may take.
    #[must_use]
    pub const fn with_shutdown_slack(self, shutdown_slack: Duration) -> EngineOptions {
        EngineOptions { shutdown_slack, ..self }
    }

    /// Sets [`finished_count_down`](Self::finished_count_down): whether finished executors are not replaced.
    #[must_use]
    pub const fn with_finished_count_down(self, finished_count_down: bool) -> EngineOptions {
        EngineOptions { finished_count_down, ..self }
    }
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

/// A running engine; a kernel has one. If it is dropped without [`Engine::shutdown`], it closes the kernel, ends its
/// threads and stops the manager, but makes no kills and doesn't wait for executors. What becomes of them is up to the
/// manager's [stop](ClusterManager::stop): `LocalCluster` ends them, and so does `MesosCluster` by tearing the
/// framework down, unless it is told to leave it (`AtEnd::Leave`). To upgrade a program without ending its executors on
/// Mesos, configure that, a failover timeout and a framework id file, drop the engine, and start the new program.
///
/// ```
/// # use offermill::engine::cluster_manager::{Call, ClusterManager, Event, EventSink};
/// # /// A cluster without agents.
/// # struct MyCluster;
/// # impl ClusterManager for MyCluster {
/// #     fn start(&self, events: EventSink) -> Result<(), offermill::Error> {
/// #         events.send(Event::Registered { framework_id: "fw".into(), again: false });
/// #         Ok(())
/// #     }
/// #     fn call(&self, _: Call<'_>) -> Result<(), offermill::Error> {
/// #         Ok(())
/// #     }
/// #     fn stop(&self) {}
/// # }
/// use std::sync::Arc;
/// use std::time::Duration;
/// use offermill::engine::{Engine, EngineOptions, Notice, Observer};
/// use offermill::launch::CommandTemplate;
/// use offermill::{Config, IdScheme, Kernel, Timestamp};
///
/// /// Prints what goes wrong.
/// struct Log;
///
/// impl Observer for Log {
///     fn notice(&mut self, at: Timestamp, notice: Notice) {
///         if let Notice::CallFailed { why } | Notice::Refused { why } = notice {
///             eprintln!("{at}: {why}");
///         }
///     }
/// }
///
/// let kernel = Kernel::new(Config::builder().executor_limit(Some(3)).build()?, IdScheme::unique("etl", 1)?);
/// let worker = CommandTemplate::new(vec!["worker".into(), "--id={{EXECUTOR_ID}}".into()]);
/// let engine = Engine::start(kernel, Arc::new(MyCluster), Arc::new(worker), EngineOptions::default(), Box::new(Log))?;
///
/// engine.set_executor_limit(Some(5))?; // while it runs
/// assert_eq!(engine.kernel().wanted(), 5);
/// println!("{}", engine.kernel().explain(engine.clock().now())); // waiting for 5 more executors …
/// let capacity = engine.kernel().capacity(engine.clock().now()); // what the cluster has, and what is free
/// println!("{} agents, {} cores are free", capacity.sums().agents, capacity.sums().free.cores);
///
/// let shutdown = engine.shutdown(Duration::from_secs(10)); // kills executors and waits for their ends
/// assert!(shutdown.drained && shutdown.unfinished.is_empty());
/// # Ok::<(), offermill::Error>(())
/// ```
///
/// # Reports
/// Reports of the kernel, such as [`Kernel::snapshot`](crate::Kernel::snapshot) and
/// [`Kernel::capacity`](crate::Kernel::capacity), are asked for, by any thread and with the time of [`Engine::clock`]:
/// there is no notice of a new picture of the capacity, because it is rebuilt only for a caller. A host that wants one
/// each second asks each second; the picture's [version](crate::ClusterCapacity::version) says whether it is another
/// one. An [`Observer`] can ask, too, on the control thread, which applies no updates meanwhile.
///
/// # Blocking
/// * [`Engine::shutdown`] returns within its timeout plus [`EngineOptions::shutdown_slack`], whatever hangs; dropping
///   returns within the slack. Threads that then still hang in foreign code (a call, the manager's stop, the launcher,
///   the observer, the journal) are left running, and [named](Shutdown::unfinished).
/// * On the control thread, that is, in an [`Observer`], neither waits: the shutdown continues on its own thread, and
///   is complete when the observer and then the manager's stop have returned.
/// * [`Engine::kill`] never waits but for a chooser, and may be called in an observer.
/// * All other methods wait for short locks; with a journal, for up to ten seconds while it is written too slowly.
///
/// # Panics in foreign code
/// If a launcher, reader or call panics on a handler thread, that batch is lost ([`Notice::HandlerPanicked`]). If an
/// observer or a call panics on the control thread, the engine is [broken](Engine::broken). A journal that panics is
/// given up ([`Notice::JournalEnded`]).
pub struct Engine {
    shared: Arc<EngineState>,
    handlers: Vec<Thread>,
    control: Option<Thread>,
    journal: Option<Thread>,
    /// Whether the manager was started and must be stopped.
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
    /// If an option is out of its range, a thread can't be started, or the manager can't start; then nothing runs.
    /// Unless an option was at fault, the kernel has been closed: another try needs a new one.
    pub fn start(
        kernel: Kernel,
        manager: Arc<dyn ClusterManager>,
        launcher: Arc<dyn Launcher>,
        options: EngineOptions,
        observer: Box<dyn Observer>,
    ) -> Result<Engine, Error> {
        let recorded_kernel = RecordedKernel::from(kernel);
        Engine::set_up(recorded_kernel, manager, launcher, None, options, observer)
    }

    /// As [`Engine::start`], but what is placed are the tasks that `chooser` picks, each as an executor with its own
    /// amounts and tag. `launcher` is told the tag ([`LaunchContext::tag`](crate::launch::LaunchContext::tag)).
    ///
    /// The [configured executor](crate::ConfigBuilder::executor_cores) is the least that an offer must have: make it as
    /// small as the smallest task. A
    /// [`WorkQueue`] is such a framework.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_with_tasks(
        kernel: Kernel,
        manager: Arc<dyn ClusterManager>,
        launcher: Arc<dyn Launcher>,
        chooser: Arc<dyn TaskChooser>,
        options: EngineOptions,
        observer: Box<dyn Observer>,
    ) -> Result<Engine, Error> {
        let recorded_kernel = RecordedKernel::from(kernel);
        Engine::set_up(recorded_kernel, manager, launcher, Some(chooser), options, observer)
    }

    /// As [`Engine::start`], with a [`Journal`] that records all operations on `kernel`, which must be unused. There is
    /// one handler thread then. While the engine runs, use [`Engine::set_executor_limit`],
    /// [`Engine::request_executors`], [`Engine::set_locality`], [`Engine::reconfigure`], [`Engine::readmit_agent`] and
    /// [`Engine::close`]: operations on the kernel itself are not recorded, and a player can't repeat the decisions
    /// that follow them. (A close by [`Kernel::close`], [`Kernel::drain`] or [`Kernel::drained`] is recorded with the
    /// next operation. An operation that runs at that moment, such as the answer to a batch or an update, may have seen
    /// it already; then a player's decision differs.)
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
        let mut journal = journal;
        let written = Arc::clone(&recording);
        let writer = Thread::start("offermill-journal", move || written.write(&mut *journal))?;
        let kernel = recorded_kernel.clone();
        let engine = Engine::set_up(kernel, manager, launcher, None, options, observer);
        let mut engine = engine.inspect_err(|_| drop(recorded_kernel.finish(Timestamp::ORIGIN)))?;
        engine.journal = Some(writer);
        Ok(engine)
    }

    fn set_up(
        recorded_kernel: RecordedKernel,
        manager: Arc<dyn ClusterManager>,
        launcher: Arc<dyn Launcher>,
        chooser: Option<Arc<dyn TaskChooser>>,
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
        let state = EngineState::new(recorded_kernel, manager, launcher, chooser, options);
        let shared = Arc::new(state);
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
        engine.shared.inbox.send_urgent(ControlMessage::Started);
        Ok(engine)
    }

    /// The kernel, for its settings and reports.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        self.shared.recorded_kernel.kernel()
    }

    /// Calls [`Kernel::set_executor_limit`], and records it if there is a journal.
    ///
    /// # Errors
    /// If the limit is over [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX).
    pub fn set_executor_limit(&self, limit: Option<u32>) -> Result<(), Error> {
        self.shared.recorded_kernel.set_executor_limit(limit, self.shared.clock.now())
    }

    /// Calls [`Kernel::request_executors`], and records it if there is a journal.
    ///
    /// # Errors
    /// If the limit is over [`limits::EXECUTORS_MAX`](crate::limits::EXECUTORS_MAX).
    pub fn request_executors(&self, limit: Option<u32>, hosts: &[&str]) -> Result<(), Error> {
        self.shared.recorded_kernel.request_executors(limit, hosts, self.shared.clock.now())
    }

    /// Calls [`Kernel::set_locality`], and records it if there is a journal.
    pub fn set_locality(&self, hosts: &[&str]) {
        self.shared.recorded_kernel.set_locality(hosts, self.shared.clock.now());
    }

    /// Calls [`Kernel::reconfigure`], and records it if there is a journal. A cluster manager that has derived
    /// settings of its own from the kernel's is reconfigured separately, as with `MesosCluster::reconfigure`.
    pub fn reconfigure(&self, config: Config) {
        self.shared.recorded_kernel.reconfigure(config, self.shared.clock.now());
    }

    /// Calls [`Kernel::readmit_agent`], and records it if there is a journal: ends an agent's exclusion, and the 10 s
    /// after it was reported lost. Returns whether the agent was excluded or suspect. The revive that is due then is
    /// made by the control thread, within 50 ms unless the kernel limits revives
    /// ([`revive_interval`](crate::ConfigBuilder::revive_interval)).
    pub fn readmit_agent(&self, agent_id: &str) -> bool {
        self.shared.recorded_kernel.readmit_agent(agent_id, self.shared.clock.now())
    }

    /// Calls [`Kernel::close`], and records it if there is a journal: nothing is placed any more, and all further
    /// offers are declined. Returns the executors to be [killed](Engine::kill). Afterwards [`Kernel::drain`] and
    /// [`Kernel::drained`] can wait for their ends; [`Engine::shutdown`] does all of it.
    pub fn close(&self) -> Vec<Target> {
        self.shared.close()
    }

    /// The clock that gives the kernel its timestamps.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Kills executors, with the [grace](EngineOptions::kill_grace) of the options. The kills are repeated until the
    /// executors' ends are reported, or they are forgotten. They precede updates that wait to be applied. If there is a
    /// chooser, it is told first ([`TaskChooser::killing`]), so no lock may be held that it takes; without one this
    /// never waits. May be called in an [`Observer`].
    pub fn kill(&self, executors: Vec<ExecutorId>) {
        self.shared.kill(executors);
    }

    /// The message of the control thread's panic, in the observer or in a call to the cluster manager; `None` if it
    /// hasn't panicked. A broken engine declines the offers that its queue has room for and drops the others. It
    /// launches and kills no executors and applies no updates: shut it down. The manager's stop ends the executors.
    #[must_use]
    pub fn broken(&self) -> Option<String> {
        self.shared.broken()
    }

    /// Shuts the engine down: declines further offers, kills all executors, waits up to `timeout` for their ends, then
    /// stops the manager, which ends the remaining executors by force. (With Mesos' `AtEnd::Leave` those that have not
    /// ended by then may run on.) Returns the state of each executor at the timeout; ends that the manager reports
    /// later still reach the observer.
    ///
    /// Kills precede all updates that wait to be applied. They are made again with each subscription, when an
    /// executor's agent is reachable again, and else after at most a sixth of `timeout` (1 s at least, 5 min at most),
    /// until the executors' ends are reported. No call is made after the manager's stop has begun, except one that was
    /// already under way and hung. Returns within `timeout` plus [`EngineOptions::shutdown_slack`]: a quarter of the
    /// slack each for the handlers, the calls under way, the manager's stop, and the observer.
    ///
    /// In an [`Observer`] it doesn't wait, and reports the executors' present states: the shutdown continues on its own
    /// thread.
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
