//! Random histories: after each event the kernel and its reference must have answered the same and stand the same.
//!
//! `PROPTEST_CASES` sets the number of histories (default 256). A failure prints the shrunk history and writes its
//! seed to `regressions/state_machine.txt` beside this file; commit it.

mod compare;
mod steps;

use proptest::test_runner::{Config as ProptestConfig, FileFailurePersistence};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use offermill::{
    Decisions, DemandCall, ExecutorId, Handler, IdScheme, Kernel, StatusUpdate, Target, Timestamp,
};

use crate::reference::Model;
use crate::world::lend;
use compare::{expect_answer, expect_outcome, expect_same_state, names};
use steps::{Event, Expected, Scene, Whom};

/// The kernel and what its users hold in their hands.
#[derive(Debug)]
struct Subject {
    kernel: Kernel,
    handlers: Vec<Handler>,
    decisions: Decisions,
    /// The id of each executor, by its number.
    ids: Vec<ExecutorId>,
    last_snapshot: u64,
}

impl Subject {
    fn new(scene: &Scene) -> Subject {
        let scheme =
            if scene.plain_ids { IdScheme::plain() } else { IdScheme::unique("test", 36).unwrap() };
        let kernel = Kernel::new(scene.model.setup.config(), scheme);
        let handlers = vec![kernel.handler(), kernel.handler()];
        Subject { kernel, handlers, decisions: Decisions::new(), ids: Vec::new(), last_snapshot: 0 }
    }

    fn name(&self, whom: &Whom) -> String {
        match whom {
            Whom::Number(number) => {
                self.kernel.executor_name(self.ids[*number as usize]).to_string()
            }
            Whom::Text(text) => (*text).to_owned(),
        }
    }

    fn apply(&mut self, scene: &Scene, event: &Event) {
        let now = scene.now;
        match (event, &scene.expected) {
            (Event::Offers { handler, sheets }, Expected::Answer(answer)) => {
                let (handlers, decisions) = (&mut self.handlers, &mut self.decisions);
                lend(sheets, |offers| handlers[*handler].resource_offers(offers, now, decisions));
                expect_answer(decisions, answer, sheets, &scene.model, &mut self.ids);
            }
            (Event::Update { whom, state, reason }, Expected::Effect(effect)) => {
                let name = self.name(whom);
                let update = StatusUpdate::new(&name, *state).because(*reason);
                let outcome = self.kernel.status_update(&update, now);
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
                let reported: std::collections::BTreeMap<_, _> =
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
            (Event::Disconnected, Expected::Nothing) => self.kernel.disconnected(),
            (event, expected) => unreachable!("{event:?} expects no {expected:?}"),
        }
    }

    fn snapshot_grows(&mut self, now: Timestamp, model: &Model) {
        let snapshot = self.kernel.snapshot(now);
        assert!(snapshot.number > self.last_snapshot);
        self.last_snapshot = snapshot.number;
        expect_same_state(&self.kernel, &snapshot, model, now, &self.ids);
    }
}

struct KernelFollowsReference;

impl StateMachineTest for KernelFollowsReference {
    type SystemUnderTest = Subject;
    type Reference = Scene;

    fn init_test(scene: &Scene) -> Subject {
        Subject::new(scene)
    }

    fn apply(
        mut subject: Subject,
        scene: &Scene,
        step: <Scene as ReferenceStateMachine>::Transition,
    ) -> Subject {
        subject.apply(scene, &step.event);
        subject.snapshot_grows(scene.now, &scene.model);
        subject
    }

    fn check_invariants(subject: &Subject, scene: &Scene) {
        subject.kernel.check().unwrap();
        assert_eq!(subject.kernel.totals().closed, scene.model.closed);
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(
            FileFailurePersistence::Direct("tests/kernel/regressions/state_machine.txt")
        )),
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    /// Goal: no history of events leads the kernel away from its documentation. Method: random settings and
    /// histories, bad input and a clock that sometimes goes back included; the reference answers each event first.
    #[test]
    fn any_history_agrees_with_the_reference(sequential 1..60 => KernelFollowsReference);
}
