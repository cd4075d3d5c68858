//! The tasks of the manager's thread, under watch: none ends without a word, until the manager is stopped.
//!
//! A task that panics takes its part of the manager with it: without the link no event comes, without a lane no call
//! leaves. Nothing puts that right, so the engine is told that the cluster can't be had any more
//! ([`Event::Refused`]), and with it the program, which ends or starts anew.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{Id, JoinError, JoinSet};

use super::active_subscription::StandingSender;
use super::tear_down::{Parting, TearDown};
use crate::engine::cluster_manager::{Event, EventSink};

/// How the manager is to be stopped.
#[derive(Debug)]
pub(super) struct Stop {
    /// The framework is torn down first, if that is done within this time.
    pub(super) tear_down: Option<Duration>,
}

/// Which part of the manager a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Subscribes and reads events. It may end when the cluster refuses the framework or the manager is stopped.
    Subscriber,
    /// Sends calls, until the manager is stopped.
    CallSender,
}

pub(super) struct Supervisor {
    events: EventSink,
    standing: StandingSender,
    tasks: JoinSet<()>,
    parts: HashMap<Id, Part>,
    /// How the link has ended, if it has: whether by a panic.
    link_panicked: Option<bool>,
}

impl Supervisor {
    pub(super) fn new(events: EventSink, standing: StandingSender) -> Supervisor {
        let (tasks, parts) = (JoinSet::new(), HashMap::new());
        Supervisor { events, standing, tasks, parts, link_panicked: None }
    }

    /// Starts a task. To be called on the manager's thread.
    pub(super) fn start(&mut self, part: Part, work: impl Future<Output = ()> + Send + 'static) {
        let task = self.tasks.spawn(work);
        self.parts.insert(task.id(), part);
    }

    /// Watches the tasks until the manager is to be stopped, or nobody can stop it any more; then ends the framework,
    /// if that is wanted. The tasks end when this is dropped.
    pub(super) async fn run(
        mut self,
        mut stopped: oneshot::Receiver<Stop>,
        tear_down: TearDown,
    ) -> Parting {
        let stop = loop {
            tokio::select! {
                stop = &mut stopped => break stop,
                Some(ended) = self.tasks.join_next_with_id() => self.note_end(ended),
            }
        };
        let Ok(Stop { tear_down: Some(within) }) = stop else { return Parting::Nothing };
        let parting = tear_down.run(within);
        tokio::pin!(parting);
        loop {
            match self.link_panicked {
                Some(true) => return Parting::Left("the subscription broke down".to_owned()),
                // The cluster has refused the framework, or never had it.
                Some(false) => return Parting::Nothing,
                None => {}
            }
            tokio::select! {
                parting = &mut parting => return parting,
                Some(ended) = self.tasks.join_next_with_id() => self.note_end(ended),
            }
        }
    }

    fn note_end(&mut self, ended: Result<(Id, ()), JoinError>) {
        let (id, panicked) = match ended {
            Ok((id, ())) => (id, None),
            Err(error) => (error.id(), Some(text_of(error))),
        };
        let part = self.parts.remove(&id).unwrap_or(Part::CallSender);
        let what = match part {
            Part::Subscriber => "the task that subscribes and reads events",
            Part::CallSender => "a task that sends calls",
        };
        if part == Part::Subscriber {
            self.link_panicked = Some(panicked.is_some());
        }
        let why = match panicked {
            None if part == Part::Subscriber => return,
            None => format!("{what} ended before its time"),
            Some(text) => format!("{what} panicked: {text}"),
        };
        if part == Part::Subscriber && self.standing.send_replace(None).is_some() {
            self.events.send(Event::Disconnected);
        }
        self.events.send(Event::Refused { why });
    }
}

fn text_of(error: JoinError) -> String {
    error.try_into_panic().map_or_else(|error| error.to_string(), |panic| panic_text(&*panic))
}

/// What a panic said, if that was text.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no text".to_owned())
}
