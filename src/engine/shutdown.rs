//! The engine's shutdown: its steps, their deadlines, and the report about them.
//!
//! | step | what happens | deadline |
//! |---|---|---|
//! | *close* | The kernel is closed: no executor is committed any more. The offer queue takes no more offers; handlers decline those that wait in it. | none: it doesn't wait |
//! | *join handlers* | Handlers end. A handler that is late hangs in a call, in the launcher or in a full inbox: then launches no longer pass any gate, and calls under way are waited for. | [`Deadlines::handlers`], then as long again |
//! | *kill* | The kills of all executors on the kernel's roll go into the inbox's urgent lane. | none: it doesn't wait |
//! | *drain* | The kernel's drain waits for the executors' ends, which come as updates in the inbox's ordinary lane. | [`Deadlines::drain`] |
//! | *close gates* | No thread waits for room in the inbox for more than an eighth of the slack any more. All gates are closed; calls under way are waited for. | [`Deadlines::calls`] |
//! | *stop manager* | The manager is stopped, on a thread of its own, so that a stop that hangs doesn't block the other steps. | [`Deadlines::stop`] |
//! | *join control* | The inbox takes no more messages. The control thread handles those that wait, reports them to the observer, ends the journal, and is joined. | [`Deadlines::end`]; the journal's end, [`Deadlines::journal`] |
//!
//! **A kill never precedes its launch.** An executor on the roll was committed before *close*. By *kill*, its handler
//! has made the call that launches it, or has begun that call and hangs in it, or will find its gate closed and take
//! the executor back.
//!
//! **Kills that are lost are made again**, with each subscription that begins, when an executor's agent is back, and
//! else after at most a sixth of the timeout: see [`kill_retry`](super::kill_retry).
//!
//! **Updates don't delay kills, nor kills updates.** The urgent lane is read first, so *kill* waits for the message
//! that is being handled and for no other. It is one message; those in the ordinary lane, the updates of *drain* among
//! them, lose no room by it.
//!
//! **Offers that arrive during the shutdown** find no room in the offer queue. Until *close gates* they are declined,
//! then they are dropped: the manager, which is about to stop, returns all of them.
//!
//! **Memory stays bounded**, whatever hangs and however much a manager sends. Up to *drain*, the manager's threads wait
//! for room in the inbox; from *close gates* on, events that find no room in time are dropped and counted, and the
//! observer misses them. After *join control* all are dropped.
//!
//! **No call follows the stop.** Each call passes a [gate](super::gate). A call that is refused there had no effect and
//! is no failure. An executor whose launch is refused is taken back by an update, unless *join control* is over and no
//! thread is left that would apply it.
//!
//! **There is no circular wait.** The manager's threads may be sending an event to a full inbox while *stop manager*
//! waits for them, and the control thread may be in an observer that hangs. Therefore *close gates* comes first: those
//! threads stop waiting in time for the stop. An observer that ends the engine runs on the thread that *join control*
//! waits for: then all steps are taken on a thread of their own, and the observer doesn't wait.
//!
//! **All waiting ends.** *Close* and *join handlers* together, *close gates*, *stop manager* and *join control* take a
//! quarter of the slack each, and what one doesn't use is left to the next. *Drain* ends with the timeout. Operations
//! that need the journal wait for room in it for at most an eighth of the slack, those that wait already included; then
//! the journal is given up. Its end is written before *join control* is over, or it is given up early enough for the
//! observer to be told. Executors whose own launch hangs, or waits behind one that hangs, get no kill (see
//! [`launches`](super::launches)): the manager's stop ends them.

use std::sync::Arc;
use std::time::Duration;

use super::control_message::ControlMessage;
use super::gate::Open;
use super::kill_retry::KillTerms;
use super::state::EngineState;
use super::sync::Deadline;
use super::threads::Thread;
use super::trace;
use crate::kernel::{DrainReport, Drained};
use crate::status::Fate;

/// How an engine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Shutdown {
    /// Whether every executor whose resources were counted has ended.
    pub drained: bool,
    /// The state at the timeout of each executor that lived when the kernel was closed.
    pub executors: Vec<Drained>,
    /// The names of the threads that had not ended when the slack was over. They are left running, and end when the
    /// foreign code that they hang in returns:
    /// * `offermill-handler-N` hangs in a call or in the launcher,
    /// * `offermill-stop` in [`ClusterManager::stop`](super::cluster_manager::ClusterManager::stop),
    /// * `offermill-control` in a call or in the observer,
    /// * `offermill-journal` in the journal;
    /// * `offermill-end` completes a shutdown that an observer asked for.
    pub unfinished: Vec<String>,
    /// Events that were dropped, so that neither the observer nor the journal has them: those that found no room in
    /// the engine's queue while the manager was stopped, those that came after its stop was given up, and all since the
    /// engine [broke](super::Engine::broken). Offers are not counted.
    pub events_dropped: u64,
    /// Why the engine had broken, if it had: [`Engine::broken`](super::Engine::broken).
    pub broken: Option<String>,
}

impl Shutdown {
    fn new(drain: DrainReport, unfinished: &[Thread], shared: &EngineState) -> Shutdown {
        Shutdown {
            drained: drain.drained,
            executors: drain.executors,
            unfinished: unfinished.iter().map(|thread| thread.name().to_owned()).collect(),
            events_dropped: shared.inbox.dropped(),
            broken: shared.broken(),
        }
    }
}

/// An engine that is to be shut down.
pub(super) struct ShutdownSequence {
    pub(super) shared: Arc<EngineState>,
    pub(super) handlers: Vec<Thread>,
    pub(super) control: Option<Thread>,
    pub(super) journal: Option<Thread>,
    /// Whether the manager was started and must be stopped.
    pub(super) started: bool,
}

/// When each step is over at the latest.
#[derive(Clone, Copy)]
struct Deadlines {
    /// A quarter of the slack.
    quarter: Duration,
    /// Of *join handlers*.
    handlers: Deadline,
    /// Of *drain*.
    drain: Deadline,
    /// Of *close gates*.
    calls: Deadline,
    /// Of *stop manager*.
    stop: Deadline,
    /// Of the journal's end in *join control*.
    journal: Deadline,
    /// Of *join control*.
    end: Deadline,
}

impl Deadlines {
    fn new(wait: Duration, slack: Duration) -> Deadlines {
        let quarter = slack / 4;
        let after =
            |quarters: u32| Deadline::after(wait.saturating_add(quarter.saturating_mul(quarters)));
        let before_end = wait.saturating_add(quarter.saturating_mul(4) - quarter / 8);
        Deadlines {
            quarter,
            handlers: Deadline::after(quarter),
            drain: after(0),
            calls: after(2),
            stop: after(3),
            journal: Deadline::after(before_end),
            end: after(4),
        }
    }
}

impl ShutdownSequence {
    /// Takes all steps. Without a timeout, *kill* and *drain* are left out.
    pub(super) fn run(self, timeout: Option<Duration>) -> Shutdown {
        let slack = self.shared.options.shutdown_slack;
        let deadlines = Deadlines::new(timeout.unwrap_or_default(), slack);
        self.shared.recorded_kernel.limit_waiting(deadlines.quarter / 2, deadlines.journal);
        self.close();
        if self.shared.inbox.is_reader() {
            self.continue_on_own_thread(timeout, deadlines)
        } else {
            self.continue_here(timeout, deadlines)
        }
    }

    /// Step *close*.
    fn close(&self) {
        self.shared.close();
        self.shared.offer_queue.close();
    }

    /// Takes the further steps on a thread of their own, because the control thread can't wait for itself.
    fn continue_on_own_thread(self, timeout: Option<Duration>, deadlines: Deadlines) -> Shutdown {
        const NAME: &str = "offermill-end";
        let shared = Arc::clone(&self.shared);
        let started = self.started;
        let ending = Thread::start(NAME, move || drop(self.continue_here(timeout, deadlines)));
        if ending.is_err() {
            shared.inbox.closing(Deadline::after(Duration::ZERO));
            shared.close_gates(Open::Nothing);
            if started {
                shared.manager.stop();
            }
            shared.inbox.end();
        }
        let unfinished: Vec<Thread> = ending.into_iter().collect();
        let drain = shared.recorded_kernel.kernel().drain(Duration::ZERO);
        Shutdown::new(drain, &unfinished, &shared)
    }

    /// Takes the steps after *close*.
    fn continue_here(self, timeout: Option<Duration>, deadlines: Deadlines) -> Shutdown {
        let ShutdownSequence { shared, handlers, control, journal, started } = self;
        let late_handlers = join_handlers(&shared, handlers, deadlines);
        if let Some(timeout) = timeout {
            trace::drain_began(timeout);
            kill(&shared, timeout);
        }
        let drain = drain(&shared, deadlines);
        if timeout.is_some() {
            let is_left = |fate| matches!(fate, Fate::Alive | Fate::Unreachable);
            let left = drain.executors.iter().filter(|executor| is_left(executor.fate)).count();
            trace::drain_ended(drain.drained, left);
        }
        close_gates(&shared, deadlines);
        let mut unfinished = Vec::new();
        if started {
            unfinished.extend(stop_manager(&shared, deadlines.stop));
        }
        unfinished.extend(join_control(&shared, control, journal, deadlines));
        unfinished.extend(join_all(late_handlers, deadlines.end));
        Shutdown::new(drain, &unfinished, &shared)
    }
}

/// Step *join handlers*. Returns the handlers that hang.
fn join_handlers(shared: &EngineState, handlers: Vec<Thread>, deadlines: Deadlines) -> Vec<Thread> {
    let late = join_all(handlers, deadlines.handlers);
    if !late.is_empty() {
        shared.close_gates(Open::NoLaunches);
        shared.wait_for_calls(Deadline::after(deadlines.quarter));
    }
    late
}

/// Step *kill*.
fn kill(shared: &EngineState, timeout: Duration) {
    let terms = KillTerms::of_shutdown(&shared.options, timeout);
    let executors = shared.close().into_iter().map(|target| target.id).collect();
    shared.inbox.send_urgent(ControlMessage::Kill { executors, terms });
}

/// Step *drain*. A broken engine applies no updates, so nothing is waited for.
fn drain(shared: &EngineState, deadlines: Deadlines) -> DrainReport {
    let is_broken = shared.broken().is_some();
    let timeout = if is_broken { Duration::ZERO } else { deadlines.drain.left() };
    shared.recorded_kernel.kernel().drain(timeout)
}

/// Step *close gates*.
fn close_gates(shared: &EngineState, deadlines: Deadlines) {
    shared.inbox.closing(Deadline::after(deadlines.quarter / 2));
    shared.close_gates(Open::Nothing);
    shared.wait_for_calls(deadlines.calls);
}

/// Step *stop manager*. If the stop hangs, returns the thread that waits for it.
fn stop_manager(shared: &Arc<EngineState>, deadline: Deadline) -> Option<Thread> {
    let stopping = Arc::clone(shared);
    match Thread::start("offermill-stop", move || stopping.manager.stop()) {
        Ok(thread) => thread.join(deadline).err(),
        Err(_) => {
            shared.manager.stop();
            None
        }
    }
}

/// Step *join control*. Returns the threads that hang.
fn join_control(
    shared: &EngineState,
    control: Option<Thread>,
    journal: Option<Thread>,
    deadlines: Deadlines,
) -> Vec<Thread> {
    shared.inbox.end();
    let late = join_all(control, deadlines.end);
    if late.is_empty() {
        // The control thread has ended the journal, or given it up.
        join_all(journal, deadlines.end)
    } else {
        late
    }
}

/// Joins the threads that end by the deadline, and returns the others.
fn join_all(threads: impl IntoIterator<Item = Thread>, deadline: Deadline) -> Vec<Thread> {
    threads.into_iter().filter_map(|thread| thread.join(deadline).err()).collect()
}
