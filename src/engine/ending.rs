//! The engine's end.
//!
//! 1. The kernel is closed: no executor is committed any more. The offer queue takes nothing more in; handlers decline what
//!    waits in it.
//! 2. Handlers end. Those that don't in time hang in a call, in the launcher or in a full inbox: from now on no launch
//!    passes a handler's gate, and calls under way are waited for.
//! 3. The kills of all executors on the kernel's roll go into the inbox's urgent lane.
//! 4. The kernel's drain waits for the executors' ends, which come with updates in the inbox's ordinary lane.
//! 5. Nobody waits for room in the inbox for longer than an eighth of the slack any more. All gates are closed;
//!    calls under way are waited for.
//! 6. The manager is stopped, on a thread of its own, so that a stop that hangs holds up nobody else.
//! 7. The inbox takes nothing more in. The control thread reads what waits, which is told to the observer, ends the
//!    journal, and is waited for.
//!
//! *A kill never precedes its launch.* An executor on the roll was committed before 1. Its handler has made the call
//! that launches it before 3, or began it and hangs there, or will find its gate closed and take the executor back.
//!
//! *Updates don't hold up kills, nor kills updates.* The urgent lane is read first, so that 3 waits for the message
//! that is being handled, and for no other. It holds one message for 3; those in the other lane, the updates of 4 among
//! them, lose no place by that.
//!
//! *An offer that comes during 2 to 7* finds no room in the offer queue. It is declined until 5, and then dropped: the
//! manager, which is about to stop, gives all of them back.
//!
//! *Memory stays bounded*, whatever hangs, and however much a manager sends that doesn't end. In 2 to 4 its threads
//! wait for room in the inbox; from 5 on, events are dropped that find none in time. The observer misses these; they
//! are counted. After 7 all are dropped.
//!
//! *No call follows the stop.* Each passes a gate (see `gate`). One that is refused had no effect and is no failure; an
//! executor whose launch is refused is taken back by an update, unless 7 is over: then nobody is left to see it.
//!
//! *Nobody waits in a circle.* The manager's threads may be in the middle of telling an event to a full inbox while 6
//! waits for them, and the control thread in an observer that hangs: hence 5, after which they go on in time for 6. An
//! observer that ends the engine is on the thread that 7 waits for: then all steps are taken on a thread of their own,
//! and the observer doesn't wait.
//!
//! *All waiting ends.* Steps 1 and 2, 5, 6 and 7 end within a quarter of the slack each, or at least not later than if
//! each step before had taken its quarter; step 4 ends with the timeout. Whatever needs the journal waits for room in
//! it for an eighth of the slack at most, those that wait already included; then it is given up. Its end is written
//! before 7 is over, or given up in time for the observer to be told. Kills of executors whose own launch hangs, or
//! stands behind one that hangs, are not made (see `launches`): the manager's stop ends these executors.

use std::sync::Arc;
use std::time::Duration;

use super::control_message::ControlMessage;
use super::gate::Open;
use super::shared::Shared;
use super::sync::Deadline;
use super::threads::Thread;
use crate::kernel::{DrainReport, Drained};

/// How an engine ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shutdown {
    /// Whether every executor whose resources were counted has ended.
    pub drained: bool,
    /// How each executor that lived when the kernel was closed stood at the timeout.
    pub executors: Vec<Drained>,
    /// The threads that had not ended when the slack was over, by their names: `offermill-handler-N` hangs in a call or
    /// in the launcher, `offermill-stop` in [`ClusterManager::stop`](super::cluster_manager::ClusterManager::stop),
    /// `offermill-control` in a call or in the observer. `offermill-end` goes on with an end that an observer asked
    /// for, `offermill-journal` hangs in the journal. They are left alone, and end with what they hang in.
    pub unfinished: Vec<String>,
    /// Events that nobody took in, so that the observer wasn't told of them and the journal, if there is one, doesn't
    /// have them: those that found no room in the engine's queue while the manager was stopped, or came after its stop
    /// was given up; and all since the engine [broke](super::Engine::broken). Offers are not counted.
    pub events_dropped: u64,
    /// Why the engine was broken before, if it was: [`Engine::broken`](super::Engine::broken).
    pub broken: Option<String>,
}

impl Shutdown {
    fn new(drain: DrainReport, unfinished: Vec<String>, shared: &Shared) -> Shutdown {
        let DrainReport { drained, executors } = drain;
        let (events_dropped, broken) = (shared.inbox.dropped(), shared.broken());
        Shutdown { drained, executors, unfinished, events_dropped, broken }
    }
}

/// What is left to end.
pub(super) struct Ending {
    pub(super) shared: Arc<Shared>,
    pub(super) handlers: Vec<Thread>,
    pub(super) control: Option<Thread>,
    pub(super) journal: Option<Thread>,
    /// Whether the manager has to be stopped.
    pub(super) started: bool,
}

/// When each of the steps is over at the latest.
#[derive(Clone, Copy)]
struct Deadlines {
    /// A quarter of the slack.
    quarter: Duration,
    /// 2.
    handled: Deadline,
    /// 4.
    drained: Deadline,
    /// 5.
    called: Deadline,
    /// 6.
    stopped: Deadline,
    /// 7; of that, the journal's end.
    written: Deadline,
    ended: Deadline,
}

impl Deadlines {
    fn new(wait: Duration, slack: Duration) -> Deadlines {
        let quarter = slack / 4;
        let after =
            |quarters: u32| Deadline::after(wait.saturating_add(quarter.saturating_mul(quarters)));
        let before_end = wait.saturating_add(quarter.saturating_mul(4) - quarter / 8);
        Deadlines {
            quarter,
            handled: Deadline::after(quarter),
            drained: after(0),
            called: after(2),
            stopped: after(3),
            written: Deadline::after(before_end),
            ended: after(4),
        }
    }
}

impl Ending {
    /// Takes all steps. Without a timeout nobody is killed or waited for: 3 and 4 are left out.
    pub(super) fn end(self, timeout: Option<Duration>) -> Shutdown {
        let slack = self.shared.options.shutdown_slack;
        let deadlines = Deadlines::new(timeout.unwrap_or_default(), slack);
        self.shared.recorded_kernel.hurry(deadlines.quarter / 2, deadlines.written);
        self.shared.close();
        self.shared.offer_queue.close();
        if self.shared.inbox.is_reader() {
            self.end_aside(timeout, deadlines)
        } else {
            self.end_here(timeout, deadlines)
        }
    }

    /// On a thread of its own, for the control thread can't wait for itself.
    fn end_aside(self, timeout: Option<Duration>, deadlines: Deadlines) -> Shutdown {
        const NAME: &str = "offermill-end";
        let (shared, started) = (Arc::clone(&self.shared), self.started);
        let ending = Thread::start(NAME, move || drop(self.end_here(timeout, deadlines)));
        if ending.is_err() {
            shared.inbox.closing(Deadline::after(Duration::ZERO));
            shared.close_gates(Open::Nothing);
            if started {
                shared.manager.stop();
            }
            shared.inbox.end();
        }
        let unfinished = ending.iter().map(|thread| thread.name().to_owned()).collect();
        let drain = shared.recorded_kernel.kernel().drain(Duration::ZERO);
        Shutdown::new(drain, unfinished, &shared)
    }

    fn end_here(self, timeout: Option<Duration>, deadlines: Deadlines) -> Shutdown {
        let Ending { shared, handlers, control, journal, started } = self;
        let Deadlines { quarter, handled, drained, called, stopped, ended, .. } = deadlines;
        let wait = timeout.unwrap_or_default();

        let unfinished = join_all(handlers, handled);
        if !unfinished.is_empty() {
            shared.close_gates(Open::NoLaunches);
            shared.wait_for_calls(Deadline::after(quarter));
        }
        if timeout.is_some() {
            let (left, grace) = (shared.close(), shared.options.kill_grace.min(wait));
            let executors = left.into_iter().map(|target| target.id).collect();
            shared.inbox.send_urgent(ControlMessage::Kill { executors, grace });
        }
        // Nobody applies updates any more if the engine is broken.
        let patience = if shared.broken().is_some() { Duration::ZERO } else { drained.left() };
        let drain = shared.recorded_kernel.kernel().drain(patience);

        shared.inbox.closing(Deadline::after(quarter / 2));
        shared.close_gates(Open::Nothing);
        shared.wait_for_calls(called);
        let mut late = Vec::new();
        if started {
            late.extend(stop(&shared, stopped));
        }
        shared.inbox.end();
        let unended = join_all(control.into_iter().collect(), ended);
        if unended.is_empty() {
            // The control thread has ended the journal, or given it up.
            late.extend(join_all(journal.into_iter().collect(), ended));
        }
        late.extend(unended);
        late.extend(join_all(unfinished, ended));
        let unfinished = late.iter().map(|thread| thread.name().to_owned()).collect();
        Shutdown::new(drain, unfinished, &shared)
    }
}

/// Joins those that end by the deadline, and returns the others.
fn join_all(threads: Vec<Thread>, deadline: Deadline) -> Vec<Thread> {
    threads.into_iter().filter_map(|thread| thread.join(deadline).err()).collect()
}

/// Stops the manager. If it hangs, returns the thread that waits for it.
fn stop(shared: &Arc<Shared>, deadline: Deadline) -> Option<Thread> {
    let stopping = Arc::clone(shared);
    match Thread::start("offermill-stop", move || stopping.manager.stop()) {
        Ok(thread) => thread.join(deadline).err(),
        Err(_) => {
            shared.manager.stop();
            None
        }
    }
}
