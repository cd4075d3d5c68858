//! The control thread: one inbox, one [`Controller`], and the observer.
//!
//! One thread makes all calls that must keep their order, so that nothing overtakes.
//!
//! If it panics, in the observer or in a call, nobody is left who could apply updates or kill: the engine is broken.
//! The kernel is closed, so that handlers decline all offers from then on and launch nothing; what waits in the inbox
//! is dropped and nobody waits for it any more; the observer is told, if it still can be.

use std::sync::Arc;
use std::time::Duration;

use super::cluster_manager::{Call, Event};
use super::controller::{CallSink, Controller, POLL_EVERY};
use super::inbox::{Message, Received};
use super::notice::{Notice, Observer, PlacedExecutor};
use super::shared::Shared;
use super::sync::catch;
use crate::ids::ExecutorId;
use crate::time::Timestamp;

/// What the control thread is told.
pub(super) enum Control {
    Event(Event),
    Placed(Vec<PlacedExecutor>),
    Resumed {
        adopted: Vec<PlacedExecutor>,
        /// Executors that there is no room for, and their agents.
        surplus: Vec<(String, String)>,
        finished: u64,
    },
    /// The call that was to launch them surely had no effect.
    NeverLaunched(Vec<String>),
    Overflow {
        epoch: u64,
        offers: Vec<String>,
    },
    /// Offers that couldn't be read; an id that couldn't be read either is empty.
    Unreadable {
        epoch: u64,
        offers: Vec<String>,
    },
    CallFailed(String),
    HandlerPanicked {
        why: String,
    },
    Kill {
        executors: Vec<ExecutorId>,
        grace: Duration,
    },
}

impl Message for Control {
    fn weight(&self) -> usize {
        let things = match self {
            Control::Placed(placed) => placed.len(),
            Control::Resumed { adopted, surplus, .. } => adopted.len() + surplus.len(),
            Control::NeverLaunched(executors) => executors.len(),
            Control::Overflow { offers, .. } | Control::Unreadable { offers, .. } => offers.len(),
            _ => 1,
        };
        things.max(1)
    }

    fn is_about_offers(&self) -> bool {
        matches!(self, Control::Overflow { .. } | Control::Unreadable { .. })
    }
}

pub(super) struct ControlThread {
    controller: Controller,
    desk: ControlCalls,
}

/// Where the controller's calls and notices go.
struct ControlCalls {
    shared: Arc<Shared>,
    observer: Box<dyn Observer>,
    now: Timestamp,
}

impl CallSink for ControlCalls {
    /// A failure is noticed here and now: this thread must not wait for its own inbox.
    fn call(&mut self, call: Call<'_>) {
        // A call that the engine's end refuses is no failure.
        if let Some(Err(error)) = self.shared.pass(self.shared.control_gate(), call) {
            self.notice(Notice::CallFailed { why: error.to_string() });
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.observer.notice(self.now, notice);
    }
}

impl ControlCalls {
    fn tell_journal_ended(&mut self, failure: Option<String>) {
        if let Some(why) = failure {
            self.notice(Notice::JournalEnded { why });
        }
    }
}

impl ControlThread {
    pub(super) fn new(shared: Arc<Shared>, observer: Box<dyn Observer>) -> ControlThread {
        let controller = Controller::new(shared.recorded_kernel.clone(), shared.options.clone());
        let desk = ControlCalls { shared, observer, now: Timestamp::ORIGIN };
        ControlThread { controller, desk }
    }

    /// Works until told to end.
    pub(super) fn run(mut self) {
        let Err(why) = catch(|| self.work()) else { return };
        let desk = &mut self.desk;
        let _again = catch(|| desk.shared.break_down(&why));
        let _again = catch(|| desk.notice(Notice::Broken { why }));
        let _untold = catch(|| desk.shared.recorded_kernel.finish(desk.now));
    }

    fn work(&mut self) {
        loop {
            let received = self.desk.shared.inbox.receive(POLL_EVERY);
            self.desk.now = self.desk.shared.clock.now();
            match received {
                Received::Message(message) => self.handle(message),
                Received::Nothing => {}
                Received::End => {
                    let failure = self.desk.shared.recorded_kernel.finish(self.desk.now);
                    return self.desk.tell_journal_ended(failure);
                }
            }
            self.controller.let_time_pass(self.desk.now, &mut self.desk);
            let failure = self.desk.shared.recorded_kernel.journal_failure();
            self.desk.tell_journal_ended(failure);
        }
    }

    fn handle(&mut self, message: Control) {
        let ControlThread { controller, desk, .. } = self;
        let now = desk.now;
        match message {
            Control::Event(event) => controller.event(event, now, desk),
            Control::Placed(placed) => {
                placed.into_iter().for_each(|placed| desk.notice(Notice::Placed(placed)));
            }
            Control::Resumed { adopted, surplus, finished } => {
                desk.notice(Notice::Resumed { finished });
                adopted.into_iter().for_each(|adopted| desk.notice(Notice::Adopted(adopted)));
                controller.end_surplus(&surplus, now, desk);
            }
            Control::NeverLaunched(executors) => controller.never_launched(executors, now, desk),
            Control::Overflow { epoch, offers } => controller.overflow(epoch, &offers, desk),
            Control::Unreadable { epoch, offers } => controller.unreadable(epoch, &offers, desk),
            Control::CallFailed(why) => desk.notice(Notice::CallFailed { why }),
            Control::HandlerPanicked { why } => desk.notice(Notice::HandlerPanicked { why }),
            Control::Kill { executors, grace } => controller.kill(executors, grace, now, desk),
        }
    }
}
