//! The control thread: reads the inbox, and runs the [`Controller`] and the observer.
//!
//! This one thread makes all calls that must keep their order.
//!
//! If it panics, in the observer or in a call, no thread is left that applies updates or kills executors: the engine is
//! broken. The kernel is closed, so that handlers decline all further offers and launch no executors; the inbox's
//! messages are dropped and no sender waits for room any more; the observer is notified, if it still can be.

use std::collections::VecDeque;
use std::sync::Arc;

use super::cluster_manager::Call;
use super::control_message::ControlMessage;
use super::controller::{Controller, POLL_EVERY};
use super::handler_calls::PLACED_ROWS_MAX;
use super::inbox::Received;
use super::notice::{Notice, Observer};
use super::sinks::CallSink;
use super::state::EngineState;
use super::sync::catch;
use super::trace;
use crate::kernel::EXPECTED_MAX;
use crate::time::Timestamp;

/// The control thread's state.
pub(super) struct ControlThread {
    controller: Controller,
    calls: ControlCalls,
    /// Whether the manager has started. Before that, no timer runs, because the manager can carry out no calls.
    is_started: bool,
    /// Messages that were taken from the inbox and are not handled yet.
    taken: VecDeque<ControlMessage>,
}

/// The most items that are taken from the inbox at once, as many as placed executors may come in one message: until
/// they are handled, no timer runs.
const ITEMS_TAKEN_MAX: usize = if cfg!(shuttle) { 2 } else { PLACED_ROWS_MAX };

/// The controller's sink: makes its calls through the control thread's gate, and notifies the observer.
struct ControlCalls {
    shared: Arc<EngineState>,
    observer: Box<dyn Observer>,
    /// Whether anybody makes use of notices.
    is_observed: bool,
    now: Timestamp,
    /// Whether a subscriber of `tracing` has panicked, which is reported once.
    has_subscriber_panicked: bool,
}

impl CallSink for ControlCalls {
    fn call(&mut self, call: Call<'_>) {
        self.try_call(call);
    }

    /// Reports a failure at once: this thread must not wait for its own inbox.
    fn try_call(&mut self, call: Call<'_>) -> bool {
        // A call that a closed gate refuses is no failure.
        let made = self.shared.control_gate().call(&*self.shared.manager, call);
        let Some(Err(error)) = made else { return true };
        self.notice(Notice::CallFailed { why: error.to_string() });
        false
    }

    fn notice(&mut self, notice: Notice) {
        if let Err(why) = trace::notice(&notice, self.now)
            && !self.has_subscriber_panicked
        {
            self.has_subscriber_panicked = true;
            let why = format!("a subscriber of `tracing` panicked: {why}");
            self.observer.notice(self.now, Notice::CallFailed { why });
        }
        self.observer.notice(self.now, notice);
    }
}

impl ControlCalls {
    fn report_journal_end(&mut self, failure: Option<String>) {
        if let Some(why) = failure {
            self.notice(Notice::JournalEnded { why });
        }
    }
}

impl ControlThread {
    pub(super) fn new(shared: Arc<EngineState>, observer: Box<dyn Observer>) -> ControlThread {
        let controller = Controller::new(shared.recorded_kernel.clone(), shared.options.clone())
            .with_late_binding(shared.manager.binds_late());
        let calls = ControlCalls {
            shared,
            is_observed: observer.is_observing() || cfg!(feature = "tracing"),
            observer,
            now: Timestamp::ORIGIN,
            has_subscriber_panicked: false,
        };
        ControlThread { controller, calls, is_started: false, taken: VecDeque::new() }
    }

    /// Runs until the inbox's end.
    pub(super) fn run(mut self) {
        let Err(why) = catch(|| self.handle_messages()) else { return };
        let ControlThread { calls, taken, .. } = &mut self;
        // Each step is taken even if the one before panics.
        let _panicked = catch(|| calls.shared.break_down(&why, std::mem::take(taken)));
        let _panicked = catch(|| calls.notice(Notice::Broken { why }));
        let _panicked = catch(|| calls.shared.recorded_kernel.finish(calls.now));
    }

    fn handle_messages(&mut self) {
        loop {
            let shared = &self.calls.shared;
            let received = shared.inbox.receive(ITEMS_TAKEN_MAX, POLL_EVERY, &mut self.taken);
            self.calls.now = shared.clock.now();
            if received == Received::End {
                let failure = shared.recorded_kernel.finish(self.calls.now);
                return self.calls.report_journal_end(failure);
            }
            self.handle_taken();
            if self.is_started {
                self.controller.run_timers(self.calls.now, &mut self.calls);
            }
            let failure = self.calls.shared.recorded_kernel.journal_failure();
            self.calls.report_journal_end(failure);
        }
    }

    /// Handles the messages that were taken. What the next ones look at is asked for some messages ahead: it was
    /// written last by other threads, and would be waited for.
    fn handle_taken(&mut self) {
        let mut ahead = 0;
        while let Some(message) = self.next_message() {
            if ahead == 0 {
                ahead = EXPECTED_MAX;
                let events =
                    self.taken.iter().take(EXPECTED_MAX).filter_map(|message| match message {
                        ControlMessage::Event(event) => Some(event),
                        _ => None,
                    });
                self.controller.expect(events);
            }
            ahead -= 1;
            self.handle(message);
        }
    }

    /// The next of the messages that were taken from the inbox, or an urgent one that has come meanwhile.
    fn next_message(&mut self) -> Option<ControlMessage> {
        self.calls.shared.inbox.next_urgent().or_else(|| self.taken.pop_front())
    }

    fn handle(&mut self, message: ControlMessage) {
        let ControlThread { controller, calls, .. } = self;
        let now = calls.now;
        match message {
            ControlMessage::Started => self.is_started = true,
            ControlMessage::Event(event) => controller.handle(event, now, calls),
            // Each notice has three texts of its own.
            ControlMessage::Placed(_, _) if !calls.is_observed => {}
            ControlMessage::Placed(placed, rows) => {
                placed.executors(rows).for_each(|placed| calls.notice(Notice::Placed(placed)));
            }
            ControlMessage::Resumed { adopted, surplus, finished } => {
                calls.notice(Notice::Resumed { finished });
                adopted.into_iter().for_each(|adopted| calls.notice(Notice::Adopted(adopted)));
                controller.end_surplus(&surplus, now, calls);
            }
            ControlMessage::NeverLaunched(executors) => {
                controller.never_launched(executors, now, calls)
            }
            ControlMessage::Overflow { epoch, offers } => {
                controller.overflow(epoch, &offers, calls)
            }
            ControlMessage::Unreadable { epoch, offers } => {
                controller.unreadable(epoch, offers, calls)
            }
            ControlMessage::CallFailed { why } => calls.notice(Notice::CallFailed { why }),
            ControlMessage::HandlerPanicked { why } => {
                calls.notice(Notice::HandlerPanicked { why })
            }
            ControlMessage::Kill { executors, terms } => {
                controller.kill(executors, terms, now, calls)
            }
        }
    }
}
