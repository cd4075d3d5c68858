//! The real kernel, made to follow a history.

use std::collections::BTreeMap;

use offermill::{
    Decisions, DemandCall, ExecutorId, Handler, IdScheme, Kernel, Outcome, StatusUpdate, Target,
    Timestamp,
};

use super::compare::{expect_answer, expect_outcome, expect_same_state, expect_same_sums, names};
use super::{Event, Expected, HANDLERS, Scene, Whom};
use crate::world::lend;

/// The kernel and what its users hold in their hands.
#[derive(Debug)]
pub(crate) struct Subject {
    kernel: Kernel,
    /// Each with its last answers.
    handlers: Vec<(Handler, Decisions)>,
    /// The id of each executor, by its number.
    ids: Vec<ExecutorId>,
    last_snapshot: u64,
}

impl Subject {
    pub(crate) fn new(scene: &Scene) -> Subject {
        let scheme =
            if scene.plain_ids { IdScheme::plain() } else { IdScheme::unique("test", 36).unwrap() };
        let kernel = Kernel::new(scene.model.setup.config(), scheme);
        let handlers = (0..HANDLERS).map(|_| (kernel.handler(), Decisions::new())).collect();
        Subject { kernel, handlers, ids: Vec::new(), last_snapshot: 0 }
    }

    fn name(&self, whom: &Whom) -> String {
        match whom {
            Whom::Number(number) => {
                self.kernel.executor_name(self.ids[*number as usize]).to_string()
            }
            Whom::Text(text) => (*text).to_owned(),
        }
    }

    /// By the one door or by the other: it must make no difference.
    fn tell(&self, update: &StatusUpdate<'_>, now: Timestamp) -> Outcome {
        if now.as_millis().is_multiple_of(2) {
            return self.kernel.status_update(update, now);
        }
        let mut outcomes = Vec::new();
        self.kernel.status_updates(std::slice::from_ref(update), now, &mut outcomes);
        outcomes.remove(0)
    }

    /// Plays the event that the scene has just played; the answer must be what the scene expects.
    pub(crate) fn apply(&mut self, scene: &Scene, event: &Event) {
        let now = scene.now;
        match (event, &scene.expected) {
            (Event::Offers { handler, sheets }, Expected::Answer(answer)) => {
                let (handler, decisions) = &mut self.handlers[*handler];
                lend(sheets, |offers| handler.resource_offers(offers, now, decisions));
                expect_answer(decisions, answer, sheets, &scene.model, &mut self.ids);
            }
            (Event::Update { whom, state, reason }, Expected::Effect(effect)) => {
                let name = self.name(whom);
                let update = StatusUpdate::new(&name, *state).because(*reason);
                let outcome = self.tell(&update, now);
                expect_outcome(&outcome, effect, whom, &self.ids);
            }
            (Event::Kill(numbers), Expected::Numbers(expected)) => {
                let asked = numbers.iter().map(|number| self.ids[*number as usize]);
                assert_eq!(names(&self.kernel.kill_executors(asked)), *expected, "killed");
            }
            (Event::AgentLost(agent), Expected::Numbers(expected)) => {
                assert_eq!(names(&self.kernel.agent_lost(agent, now)), *expected, "in doubt");
            }
            (Event::ExecutorLost(whom), Expected::Flag(expected)) => {
                let target = self.kernel.executor_lost(&self.name(whom));
                assert_eq!(target.is_some(), *expected, "in doubt: {target:?}");
            }
            (Event::Poll, Expected::Call(expected)) => {
                let call: Option<DemandCall> = self.kernel.poll_demand(now);
                assert_eq!(call, *expected, "demand");
            }
            (Event::Tick, Expected::Aged(given_up, forgotten)) => {
                let agents = self.kernel.agents_known();
                let ticked = self.kernel.tick(now);
                assert_eq!(names(&ticked.given_up), *given_up, "given up");
                assert_eq!(names(&ticked.forgotten), *forgotten, "forgotten");
                assert_eq!(agents - self.kernel.agents_known(), ticked.agents_forgotten);
            }
            (Event::Reconcile(scope), Expected::Numbers(expected)) => {
                assert_eq!(names(&self.kernel.reconcile(*scope, now)), *expected, "{scope:?}");
            }
            (Event::Close, Expected::Numbers(expected)) => {
                assert_eq!(names(&self.kernel.close()), *expected, "left at the close");
            }
            (Event::Drain, Expected::Drained(drained, fates)) => {
                let report = self.kernel.drain(std::time::Duration::ZERO);
                assert_eq!(report.drained, *drained);
                let number = |target: &Target| target.id.sequence();
                let reported: BTreeMap<_, _> =
                    report.executors.iter().map(|row| (number(&row.executor), row.fate)).collect();
                assert_eq!(reported, *fates);
            }
            (Event::Limit(limit), Expected::Nothing) => {
                self.kernel.set_executor_limit(*limit).unwrap();
            }
            (Event::Reconfigure(setup), Expected::Nothing) => {
                self.kernel.reconfigure(setup.config());
            }
            (Event::Registered, Expected::Nothing) => {
                assert_eq!(self.kernel.registered(), scene.model.epoch);
            }
            (Event::Sent { handler }, Expected::Nothing) => {
                self.kernel.answers_sent(&self.handlers[*handler].1);
            }
            (Event::Replaced { handler }, Expected::Nothing) => {
                self.handlers[*handler].0 = self.kernel.handler();
            }
            (Event::Rescinded, Expected::Nothing) => self.kernel.offer_rescinded("offer"),
            (Event::Disconnected, Expected::Nothing) => self.kernel.disconnected(),
            (event, expected) => unreachable!("{event:?} expects no {expected:?}"),
        }
    }

    /// The books add up, and to what the model adds up to.
    pub(crate) fn expect_sums_like(&self, scene: &Scene) {
        self.kernel.check().unwrap();
        expect_same_sums(&self.kernel, &scene.model);
    }

    /// Compares everything that can be seen.
    pub(crate) fn expect_like(&mut self, scene: &Scene) {
        let (now, model) = (scene.now, &scene.model);
        self.expect_sums_like(scene);
        let snapshot = self.kernel.snapshot(now);
        assert!(snapshot.number > self.last_snapshot);
        self.last_snapshot = snapshot.number;
        expect_same_state(&self.kernel, &snapshot, model, now, &self.ids);
    }
}
