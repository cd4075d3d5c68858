//! Histories of events: the inputs of a kernel, and the reference model's answers. The generators of histories (the
//! state machine at random, the fuzz target from bytes) have a [`Scene`] play each step first, and then a [`Subject`].

mod compare;
pub(crate) mod corners;
mod subject;

use std::collections::{BTreeMap, BTreeSet};

use offermill::{Change, DemandCall, Fate, Scope, TaskState, Timestamp, UpdateReason};

use crate::reference::{Agent, Answer, Bound, Effect, GangPicks, Known, Life, Model, Said};
use crate::world::{OfferData, Setup};
use corners::Corner;
pub(crate) use subject::Subject;

/// The number of handlers that answer offers.
pub(crate) const HANDLERS: usize = 3;

/// The executor of an update.
#[derive(Clone, Debug)]
pub(crate) enum Whom {
    Number(u64),
    /// An id that the kernel never assigned.
    Text(&'static str),
}

impl Whom {
    fn number(&self) -> Option<u64> {
        match self {
            Whom::Number(number) => Some(*number),
            Whom::Text(_) => None,
        }
    }
}

/// An executor of a former run. Without an agent, it isn't bound yet.
#[derive(Clone, Debug)]
pub(crate) struct Relic {
    pub(crate) name: &'static str,
    pub(crate) agent: &'static str,
    /// In thousandths.
    pub(crate) cores: u64,
    pub(crate) gpus: u64,
}

/// The number of changes in a storm of settings.
const STORM: u32 = 300;

/// The executor limits of a storm of settings that ends with `last`.
pub(crate) fn storm(last: Option<u32>) -> impl Iterator<Item = Option<u32>> {
    let others = (1..STORM).map(|number| Some(1_000 + number % 2));
    others.chain(std::iter::once(last))
}

/// The events. Generators of histories need not use all of them.
#[allow(dead_code)]
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Adopt(Vec<Relic>),
    /// The executor limit changes often enough that a small counter of changes wraps around.
    Storm(Option<u32>),
    /// Two threads call `tick` in turn: one with the current time, the other this number of milliseconds behind.
    Drivers {
        behind: u64,
    },
    Offers {
        handler: usize,
        batch: Vec<OfferData>,
    },
    /// Offers are proposed, and tasks picked: gangs, of which those of one are single tasks.
    Tasks {
        handler: usize,
        batch: Vec<OfferData>,
        gangs: Vec<GangPicks>,
    },
    /// A handler's last answers have been sent to the cluster.
    Sent {
        handler: usize,
    },
    /// A handler is replaced by a new one.
    Replaced {
        handler: usize,
    },
    Rescinded,
    Update {
        whom: Whom,
        state: TaskState,
        reason: UpdateReason,
    },
    /// The cluster names the agent on which it has started an executor, and its zone, if that is known.
    Bind {
        whom: Whom,
        agent: &'static str,
        zone: Option<Option<&'static str>>,
    },
    Kill(Vec<u64>),
    AgentLost(&'static str),
    /// An agent's exclusion is ended.
    Readmit(&'static str),
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

/// An event, and the milliseconds since the previous one.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) after: i64,
    pub(crate) event: Event,
}

impl Step {
    /// An event at the time of the previous one.
    #[allow(dead_code)]
    pub(crate) fn now(event: Event) -> Step {
        Step { after: 0, event }
    }
}

/// The kernel's expected answer to the last event.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Nothing,
    Answer(Answer),
    Effect(Effect),
    Numbers(BTreeSet<u64>),
    Flag(bool),
    Bound(Bound),
    Call(Option<DemandCall>),
    Aged(BTreeSet<u64>, BTreeSet<u64>),
    /// The adopted executors. `None` if adoption is no longer possible.
    Adopted(Option<Vec<Option<u64>>>),
    /// For each of two drivers, the expected results of a tick and of a poll.
    Driven([(BTreeSet<u64>, BTreeSet<u64>); 2], [Option<DemandCall>; 2]),
    Drained(bool, BTreeMap<u64, Fate>),
}

/// The reference model, the time, and the expected results of the last event.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) model: Model,
    pub(crate) plain_ids: bool,
    pub(crate) now: Timestamp,
    latest: u64,
    back_ms_max: u64,
    /// The state under which each handler's last answer was given.
    said: [Said; HANDLERS],
    pub(crate) expected: Expected,
    /// The number of storms of settings, in all and until each handler's last answer.
    storms: u64,
    storms_said: [u64; HANDLERS],
    /// The corner cases that the last event reached.
    pub(crate) corners: Vec<Corner>,
}

impl Scene {
    /// Creates the start of a history in which the clock never goes back by more than `back_ms_max`.
    pub(crate) fn new(setup: Setup, plain_ids: bool, back_ms_max: u64) -> Scene {
        Scene {
            model: Model::new(setup),
            plain_ids,
            now: Timestamp::ORIGIN,
            latest: 0,
            back_ms_max,
            said: [Said::default(); HANDLERS],
            expected: Expected::Nothing,
            storms: 0,
            storms_said: [0; HANDLERS],
            corners: Vec::new(),
        }
    }

    /// The times, relative to now, around which an unreachable executor changes by time alone.
    #[allow(dead_code)]
    pub(crate) fn deadlines(&self) -> Vec<i64> {
        let mut moments = Vec::new();
        for number in self.model.living() {
            let Some(deadline) = self.deadline(number) else { continue };
            let ahead = deadline.as_millis() as i64 - self.now.as_millis() as i64;
            if (0..4_000_000).contains(&ahead) {
                moments.extend([-900, -1, 0, 1, 900].map(|off| ahead + off));
            }
        }
        moments
    }

    /// When an unreachable executor is given up, or one that is given up is forgotten.
    pub(crate) fn deadline(&self, number: u64) -> Option<Timestamp> {
        let executor = &self.model.executors[number as usize];
        let rule = self.model.setup.unreachable;
        match executor.life {
            Life::Unreachable => rule.release_after.map(|after| executor.since.plus(after)),
            Life::GivenUp => Some(executor.since.plus(rule.forget_after)),
            _ => None,
        }
    }

    /// The time of a driver that is behind.
    pub(crate) fn behind(&self, behind: u64) -> Timestamp {
        let earliest = self.latest.saturating_sub(self.back_ms_max);
        Timestamp::from_millis(self.now.as_millis().saturating_sub(behind).max(earliest))
    }

    /// The time of the second of two drivers.
    fn moment_of_second(&self, event: &Event) -> Timestamp {
        match event {
            Event::Drivers { behind } => self.behind(*behind),
            _ => self.now,
        }
    }

    /// Whether a step is possible now and its result is documented.
    pub(crate) fn admits(&self, step: &Step) -> bool {
        let placed = self.model.executors.len() as u64;
        let known = |number: &u64| *number < placed;
        match &step.event {
            Event::Update { whom: Whom::Number(number), .. }
            | Event::ExecutorLost(Whom::Number(number)) => known(number),
            Event::Bind { whom, agent, .. } => {
                let is_known = |agent: &Agent| agent.known == Known::Yes;
                let is_placed = match whom {
                    Whom::Number(number) => known(number),
                    Whom::Text(_) => true,
                };
                is_placed && self.model.agents.get(*agent).is_none_or(is_known)
            }
            Event::Kill(numbers) => numbers.iter().all(known),
            Event::AgentLost(agent) | Event::Readmit(agent) => {
                let agent = self.model.agents.get(*agent);
                agent.is_none_or(|agent| agent.known == Known::Yes)
            }
            Event::Limit(limit) | Event::Storm(limit) => {
                limit.is_some() || self.model.setup.core_cap.is_some()
            }
            // The reference must know for certain whether an agent has been forgotten.
            Event::Adopt(relics) => relics.iter().all(|relic| {
                let agent = self.model.agents.get(relic.agent);
                agent.is_none_or(|agent| agent.known == Known::Yes)
            }),
            _ => true,
        }
    }

    /// The time of the next step.
    pub(crate) fn now_after(&self, step: &Step) -> Timestamp {
        let now = self.now.as_millis().saturating_add_signed(step.after);
        Timestamp::from_millis(now.max(self.latest.saturating_sub(self.back_ms_max)))
    }

    /// Plays a step on the reference model, and records the kernel's expected answer.
    pub(crate) fn play(&mut self, step: &Step) {
        let now = self.now_after(step);
        self.latest = self.latest.max(now.as_millis());
        let jump = now.since(self.now);
        self.now = now;
        self.corners.clear();
        if jump >= corners::LONG {
            self.corners.push(Corner::JumpOver15Minutes);
        }
        let before = self.before(&step.event);
        self.decide(step, now);
        self.note_corners(&step.event, before);
    }

    fn decide(&mut self, step: &Step, now: Timestamp) {
        let behind = self.moment_of_second(&step.event);
        let model = &mut self.model;
        self.expected = match &step.event {
            Event::Offers { handler, batch } => {
                let answer = model.offers(batch, now);
                self.answered(*handler, answer)
            }
            Event::Tasks { handler, batch, gangs } => {
                let answer = model.tasks(batch, gangs, now);
                self.answered(*handler, answer)
            }
            Event::Sent { handler } => {
                model.answers_sent(self.said[*handler]);
                Expected::Nothing
            }
            Event::Replaced { .. } | Event::Rescinded => Expected::Nothing,
            Event::Update { whom, state, reason } => {
                Expected::Effect(model.update(whom.number(), *state, *reason, now))
            }
            Event::Bind { whom, agent, zone } => {
                Expected::Bound(model.bind(whom.number(), agent, *zone, now))
            }
            Event::Kill(numbers) => Expected::Numbers(model.kill(numbers)),
            Event::AgentLost(agent) => Expected::Numbers(model.agent_lost(agent, now)),
            Event::Readmit(agent) => Expected::Flag(model.readmit(agent, now)),
            Event::ExecutorLost(Whom::Number(number)) => {
                Expected::Flag(model.executor_lost(*number))
            }
            Event::ExecutorLost(Whom::Text(_)) => Expected::Flag(false),
            Event::Poll => Expected::Call(model.poll_demand(now)),
            Event::Tick => {
                let (given_up, forgotten) = model.tick(now);
                Expected::Aged(given_up, forgotten)
            }
            Event::Drivers { .. } => {
                let first = (model.tick(now), model.poll_demand(now));
                let second = (model.tick(behind), model.poll_demand(behind));
                Expected::Driven([first.0, second.0], [first.1, second.1])
            }
            Event::Adopt(relics) => Expected::Adopted(model.adopt(relics, now)),
            Event::Storm(limit) => {
                storm(*limit).for_each(|limit| model.set_limit(limit));
                self.storms += 1;
                Expected::Nothing
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

    fn answered(&mut self, handler: usize, answer: Answer) -> Expected {
        self.said[handler] = answer.said;
        self.storms_said[handler] = self.storms;
        Expected::Answer(answer)
    }
}
