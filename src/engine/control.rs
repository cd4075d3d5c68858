//! The control thread: one inbox, one [`Steward`], and the observer.
//!
//! One thread makes all calls that must keep their order, so that nothing overtakes.
//!
//! If it panics, in the observer or in a call, nobody is left who could apply updates or kill: the engine is broken.
//! The kernel is closed, so that handlers decline all offers from then on and launch nothing; what waits in the inbox
//! is dropped and nobody waits for it any more; the observer is told, if it still can be.

use std::sync::Arc;
use std::time::Duration;

use super::inbox::{Message, Received};
use super::notice::{Notice, Observer, PlacedExecutor};
use super::seam::{Call, Event};
use super::shared::Shared;
use super::steward::{Outlet, POLL_EVERY, Steward};
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
    steward: Steward,
    desk: Desk,
}

/// Where the steward's calls and notices go.
struct Desk {
    shared: Arc<Shared>,
    observer: Box<dyn Observer>,
    now: Timestamp,
}

impl Outlet for Desk {
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

impl Desk {
    fn tell_journal_ended(&mut self, failure: Option<String>) {
        if let Some(why) = failure {
            self.notice(Notice::JournalEnded { why });
        }
    }
}

impl ControlThread {
    pub(super) fn new(shared: Arc<Shared>, observer: Box<dyn Observer>) -> ControlThread {
        let steward = Steward::new(shared.keeper.clone(), shared.options.clone());
        let desk = Desk { shared, observer, now: Timestamp::ORIGIN };
        ControlThread { steward, desk }
    }

    /// Works until told to end.
    pub(super) fn run(mut self) {
        let Err(why) = catch(|| self.work()) else { return };
        let desk = &mut self.desk;
        let _again = catch(|| desk.shared.break_down(&why));
        let _again = catch(|| desk.notice(Notice::Broken { why }));
        let _untold = catch(|| desk.shared.keeper.finish(desk.now));
    }

    fn work(&mut self) {
        loop {
            let received = self.desk.shared.inbox.receive(POLL_EVERY);
            self.desk.now = self.desk.shared.clock.now();
            match received {
                Received::Message(message) => self.handle(message),
                Received::Nothing => {}
                Received::End => {
                    let failure = self.desk.shared.keeper.finish(self.desk.now);
                    return self.desk.tell_journal_ended(failure);
                }
            }
            self.steward.let_time_pass(self.desk.now, &mut self.desk);
            let failure = self.desk.shared.keeper.journal_failure();
            self.desk.tell_journal_ended(failure);
        }
    }

    fn handle(&mut self, message: Control) {
        let ControlThread { steward, desk, .. } = self;
        let now = desk.now;
        match message {
            Control::Event(event) => steward.event(event, now, desk),
            Control::Placed(placed) => {
                placed.into_iter().for_each(|placed| desk.notice(Notice::Placed(placed)));
            }
            Control::Resumed { adopted, surplus, finished } => {
                desk.notice(Notice::Resumed { finished });
                adopted.into_iter().for_each(|adopted| desk.notice(Notice::Adopted(adopted)));
                steward.end_surplus(&surplus, now, desk);
            }
            Control::NeverLaunched(executors) => steward.never_launched(executors, now, desk),
            Control::Overflow { epoch, offers } => steward.overflow(epoch, &offers, desk),
            Control::Unreadable { epoch, offers } => steward.unreadable(epoch, &offers, desk),
            Control::CallFailed(why) => desk.notice(Notice::CallFailed { why }),
            Control::HandlerPanicked { why } => desk.notice(Notice::HandlerPanicked { why }),
            Control::Kill { executors, grace } => steward.kill(executors, grace, now, desk),
        }
    }
}
