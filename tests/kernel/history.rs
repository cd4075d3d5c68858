//! Histories of events: what can befall a kernel, and what the reference makes of it. Whoever makes them up (the state
//! machine at random, the fuzz target from bytes) lets a [`Scene`] play each step first and then a [`Subject`].

mod compare;
mod subject;

use std::collections::{BTreeMap, BTreeSet};

use offermill::{DemandCall, Fate, Scope, TaskState, Timestamp, UpdateReason};

use crate::reference::{Answer, Effect, Knowing, Model, Said};
use crate::world::{Setup, Sheet};
pub(crate) use subject::Subject;

/// Offers come through so many handlers.
pub(crate) const HANDLERS: usize = 3;

/// Whom an update is about.
#[derive(Clone, Debug)]
pub(crate) enum Whom {
    Number(u64),
    /// An id that the kernel never gave.
    Text(&'static str),
}

/// Whoever makes up histories need not use all.
#[allow(dead_code)]
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Offers {
        handler: usize,
        sheets: Vec<Sheet>,
    },
    /// A handler's last answers have left for the cluster.
    Sent {
        handler: usize,
    },
    /// A handler makes room for a new one.
    Replaced {
        handler: usize,
    },
    Rescinded,
    Update {
        whom: Whom,
        state: TaskState,
        reason: UpdateReason,
    },
    Kill(Vec<u64>),
    AgentLost(&'static str),
    ExecutorLost(Whom),
    Limit(Option<u32>),
    Reconfigure(Box<Setup>),
    Registered,
    Disconnected,
    Poll,
    Tick,
    Reconcile(Scope),
    Close,
    Drain,
}

/// An event, so many milliseconds after the one before.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) after: i64,
    pub(crate) event: Event,
}

impl Step {
    /// An event at the moment of the one before.
    #[allow(dead_code)]
    pub(crate) fn now(event: Event) -> Step {
        Step { after: 0, event }
    }
}

/// What the kernel must answer to the last event.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Nothing,
    Answer(Answer),
    Effect(Effect),
    Numbers(BTreeSet<u64>),
    Flag(bool),
    Call(Option<DemandCall>),
    Aged(BTreeSet<u64>, BTreeSet<u64>),
    Drained(bool, BTreeMap<u64, Fate>),
}

/// The reference, the time, and what the last event led to.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) model: Model,
    pub(crate) plain_ids: bool,
    pub(crate) now: Timestamp,
    latest: u64,
    back_ms_max: u64,
    /// What the last answer of each handler was given on.
    said: [Said; HANDLERS],
    pub(crate) expected: Expected,
}

impl Scene {
    /// The start of a history in which the clock never goes back further than `back_ms_max`.
    pub(crate) fn new(setup: Setup, plain_ids: bool, back_ms_max: u64) -> Scene {
        Scene {
            model: Model::new(setup),
            plain_ids,
            now: Timestamp::ORIGIN,
            latest: 0,
            back_ms_max,
            said: [Said::default(); HANDLERS],
            expected: Expected::Nothing,
        }
    }

    /// Whether a step means anything here, and the documentation says what.
    pub(crate) fn admits(&self, step: &Step) -> bool {
        let placed = self.model.executors.len() as u64;
        let known = |number: &u64| *number < placed;
        match &step.event {
            Event::Update { whom: Whom::Number(number), .. }
            | Event::ExecutorLost(Whom::Number(number)) => known(number),
            Event::Kill(numbers) => numbers.iter().all(known),
            Event::AgentLost(agent) => {
                let agent = self.model.agents.get(*agent);
                agent.is_none_or(|agent| agent.knowing == Knowing::Yes)
            }
            Event::Limit(limit) => limit.is_some() || self.model.setup.core_cap.is_some(),
            _ => true,
        }
    }

    /// The moment of the next step.
    pub(crate) fn now_after(&self, step: &Step) -> Timestamp {
        let now = self.now.as_millis().saturating_add_signed(step.after);
        Timestamp::from_millis(now.max(self.latest.saturating_sub(self.back_ms_max)))
    }

    /// Notes what the kernel must answer.
    pub(crate) fn play(&mut self, step: &Step) {
        let now = self.now_after(step);
        self.latest = self.latest.max(now.as_millis());
        self.now = now;
        let model = &mut self.model;
        self.expected = match &step.event {
            Event::Offers { handler, sheets } => {
                let answer = model.offers(sheets, now);
                self.said[*handler] = answer.said;
                Expected::Answer(answer)
            }
            Event::Sent { handler } => {
                model.answers_sent(self.said[*handler]);
                Expected::Nothing
            }
            Event::Replaced { .. } | Event::Rescinded => Expected::Nothing,
            Event::Update { whom, state, reason } => {
                let number = match whom {
                    Whom::Number(number) => Some(*number),
                    Whom::Text(_) => None,
                };
                Expected::Effect(model.update(number, *state, *reason, now))
            }
            Event::Kill(numbers) => Expected::Numbers(model.kill(numbers)),
            Event::AgentLost(agent) => Expected::Numbers(model.agent_lost(agent, now)),
            Event::ExecutorLost(Whom::Number(number)) => {
                Expected::Flag(model.executor_lost(*number))
            }
            Event::ExecutorLost(Whom::Text(_)) => Expected::Flag(false),
            Event::Poll => Expected::Call(model.poll_demand(now)),
            Event::Tick => {
                let (given_up, forgotten) = model.tick(now);
                Expected::Aged(given_up, forgotten)
            }
            Event::Reconcile(scope) => Expected::Numbers(model.reconcile(*scope, now)),
            Event::Close => Expected::Numbers(model.close()),
            Event::Drain => {
                let (drained, fates) = model.drain();
                Expected::Drained(drained, fates)
            }
            Event::Limit(limit) => {
                model.set_limit(*limit);
                Expected::Nothing
            }
            Event::Reconfigure(setup) => {
                model.reconfigure(Setup::clone(setup));
                Expected::Nothing
            }
            Event::Registered => {
                model.registered();
                Expected::Nothing
            }
            Event::Disconnected => {
                model.disconnected();
                Expected::Nothing
            }
        };
    }
}
