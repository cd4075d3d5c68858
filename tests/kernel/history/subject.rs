//! [`Subject`]: the real kernel, which follows a history and is compared with the scene.

use std::collections::{BTreeMap, BTreeSet};

use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{
    Attribute, Bound, BoundAgent, Decisions, DemandCall, Fate, Handler, IdScheme, Kernel, Outcome,
    Picks, Recovered, StatusUpdate, Target, Ticked, Timestamp, Updater,
};

use super::compare::{
    Ids, expect_answer, expect_bound, expect_outcome, expect_same_state, expect_same_sums,
};
use super::{Answer, Event, Expected, GangPicks, HANDLERS, Relic, Scene, Whom, storm};
use crate::world::{OfferData, lend};

/// The kernel and its handlers.
#[derive(Debug)]
pub(crate) struct Subject {
    kernel: Kernel,
    updater: Updater,
    /// The handlers, each with its last decisions.
    handlers: Vec<(Handler, Decisions)>,
    ids: Ids,
    last_snapshot: u64,
}

impl Subject {
    pub(crate) fn new(scene: &Scene) -> Subject {
        let scheme =
            if scene.plain_ids { IdScheme::plain() } else { IdScheme::unique("test", 36).unwrap() };
        let kernel = Kernel::new(scene.model.setup.config(), scheme);
        let handlers = (0..HANDLERS).map(|_| (kernel.handler(), Decisions::new())).collect();
        let updater = kernel.updater();
        Subject { kernel, updater, handlers, ids: Ids::default(), last_snapshot: 0 }
    }

    fn name(&self, whom: &Whom) -> String {
        match whom {
            Whom::Number(number) => self.kernel.executor_name(self.ids.of(*number)).to_string(),
            Whom::Text(text) => (*text).to_owned(),
        }
    }

    /// Applies an update by itself, by an updater, or as a batch of one, in turn: all must have the same effect.
    fn tell(&mut self, update: &StatusUpdate<'_>, now: Timestamp) -> Outcome {
        match now.as_millis() % 3 {
            0 => self.kernel.status_update(update, now),
            1 => self.updater.status_update(update, now),
            _ => {
                let mut outcomes = Vec::new();
                self.kernel.status_updates(std::slice::from_ref(update), now, &mut outcomes);
                outcomes.remove(0)
            }
        }
    }

    fn bind(&self, whom: &Whom, agent: &str, zone: Option<Option<&str>>, now: Timestamp) -> Bound {
        let attributes = zone.map(|zone| zone.map(|zone| Attribute::text("zone", zone)));
        let mut agent = BoundAgent::new(agent, "host");
        agent.attributes = attributes.as_ref().map(Option::as_slice);
        self.kernel.bind(&self.name(whom), &agent, now)
    }

    fn expect_aged(&self, ticked: &Ticked, given_up: &BTreeSet<u64>, forgotten: &BTreeSet<u64>) {
        let targets: Vec<Target> = ticked.given_up.iter().map(|it| it.target.clone()).collect();
        assert_eq!(self.ids.numbers(&targets), *given_up, "given up");
        assert_eq!(self.ids.numbers(&ticked.forgotten), *forgotten, "forgotten");
    }

    fn adopt(&mut self, relics: &[Relic], expected: Option<&[Option<u64>]>, now: Timestamp) {
        let former = |relic: &Relic| {
            let resources = ExecutorResources {
                cores: MilliCpus::from_millis(relic.cores),
                memory: Mebibytes::new(100),
                gpus: Gpus::new(relic.gpus as u32),
                port: None,
            };
            match relic.agent {
                "" => Recovered::late(relic.name, resources),
                agent => Recovered::new(relic.name, agent, "host", resources),
            }
        };
        let former: Vec<Recovered<'_>> = relics.iter().map(former).collect();
        let (adopted, expected) = match (self.kernel.adopt(&former, now), expected) {
            (Ok(adopted), Some(expected)) => (adopted, expected),
            (Err(_), None) => return,
            (adopted, expected) => panic!("{adopted:?}, expected {expected:?}"),
        };
        assert_eq!(adopted.len(), expected.len());
        for ((id, number), relic) in adopted.iter().zip(expected).zip(relics) {
            assert_eq!(id.is_some(), number.is_some(), "adopted: {relic:?}");
            match id.zip(*number) {
                Some((id, number)) => self.ids.push(number, id),
                None => self.ids.refused += 1,
            }
        }
    }

    fn place_tasks(
        &mut self,
        handler: usize,
        batch: &[OfferData],
        gangs: &[GangPicks],
        expected: &Answer,
        scene: &Scene,
    ) {
        let mut picks = Picks::new();
        for gang in gangs {
            match &gang[..] {
                [(room, task)] => picks.push(*room, *task),
                gang => picks.push_gang(gang),
            }
        }
        let (handler, decisions) = &mut self.handlers[handler];
        lend(batch, |offers| {
            handler.propose(offers, scene.now).commit(&picks, scene.now, decisions);
        });
        expect_answer(decisions, expected, batch, &scene.model, &mut self.ids);
    }

    /// Applies the event that the scene has just played. The answer must be the one that the scene expects.
    pub(crate) fn apply(&mut self, scene: &Scene, event: &Event) {
        let now = scene.now;
        match (event, &scene.expected) {
            (Event::Offers { handler, batch }, Expected::Answer(answer)) => {
                let (handler, decisions) = &mut self.handlers[*handler];
                lend(batch, |offers| handler.resource_offers(offers, now, decisions));
                expect_answer(decisions, answer, batch, &scene.model, &mut self.ids);
            }
            (Event::Tasks { handler, batch, gangs }, Expected::Answer(answer)) => {
                self.place_tasks(*handler, batch, gangs, answer, scene);
            }
            (Event::Update { whom, state, reason }, Expected::Effect(effect)) => {
                let name = self.name(whom);
                let update = StatusUpdate::new(&name, *state).because(*reason);
                let outcome = self.tell(&update, now);
                expect_outcome(&outcome, effect, whom, &self.ids);
            }
            (Event::Bind { whom, agent, zone }, Expected::Bound(expected)) => {
                let bound = self.bind(whom, agent, *zone, now);
                expect_bound(bound, expected, whom, &self.ids);
            }
            (Event::Kill(numbers), Expected::Numbers(expected)) => {
                let asked = numbers.iter().map(|number| self.ids.of(*number));
                let killed = self.ids.numbers(&self.kernel.kill_executors(asked));
                assert_eq!(killed, *expected, "killed");
            }
            (Event::AgentLost(agent), Expected::Numbers(expected)) => {
                let doubted = self.ids.numbers(&self.kernel.agent_lost(agent, now));
                assert_eq!(doubted, *expected, "in doubt");
            }
            (Event::Readmit(agent), Expected::Flag(expected)) => {
                assert_eq!(self.kernel.readmit_agent(agent, now), *expected, "readmitted");
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
                self.expect_aged(&ticked, given_up, forgotten);
                assert_eq!(agents - self.kernel.agents_known(), ticked.agents_forgotten);
            }
            (Event::Drivers { behind }, Expected::Driven(aged, calls)) => {
                self.let_drivers_drive([now, scene.behind(*behind)], aged, calls);
            }
            (Event::Adopt(relics), Expected::Adopted(adopted)) => {
                self.adopt(relics, adopted.as_deref(), now);
            }
            (Event::Reconcile(scope), Expected::Numbers(expected)) => {
                let asked = self.ids.numbers(&self.kernel.reconcile(*scope, now));
                assert_eq!(asked, *expected, "{scope:?}");
            }
            (Event::Close, Expected::Numbers(expected)) => {
                assert_eq!(self.ids.numbers(&self.kernel.close()), *expected, "left at the close");
            }
            (Event::Drain, Expected::Drained(drained, fates)) => self.drain(*drained, fates),
            (event, Expected::Nothing) => self.tell_of(event, scene.model.epoch),
            (event, expected) => unreachable!("{event:?} expects no {expected:?}"),
        }
    }

    fn drain(&self, drained: bool, fates: &BTreeMap<u64, Fate>) {
        let report = self.kernel.drain(std::time::Duration::ZERO);
        assert_eq!(report.drained, drained);
        let rows = report.executors.iter();
        let reported: BTreeMap<_, _> =
            rows.map(|row| (self.ids.number(row.executor.id), row.fate)).collect();
        assert_eq!(reported, *fates);
    }

    /// Applies an event that has no answer.
    fn tell_of(&mut self, event: &Event, epoch: u64) {
        let kernel = &self.kernel;
        match event {
            Event::Limit(limit) => kernel.set_executor_limit(*limit).unwrap(),
            Event::Storm(limit) => {
                storm(*limit).for_each(|limit| kernel.set_executor_limit(limit).unwrap());
            }
            Event::Reconfigure(setup) => kernel.reconfigure(setup.config()),
            Event::Registered => assert_eq!(kernel.registered(), epoch),
            Event::Sent { handler } => kernel.answers_sent(&self.handlers[*handler].1),
            Event::Replaced { handler } => self.handlers[*handler].0 = kernel.handler(),
            // The kernel keeps no offers.
            Event::Rescinded => {}
            Event::Disconnected => kernel.disconnected(),
            event => unreachable!("{event:?} expects an answer"),
        }
    }

    /// Two drivers call `tick` and `poll_demand` in turn.
    fn let_drivers_drive(
        &self,
        moments: [Timestamp; 2],
        aged: &[(BTreeSet<u64>, BTreeSet<u64>); 2],
        calls: &[Option<DemandCall>; 2],
    ) {
        for ((now, (given_up, forgotten)), call) in moments.into_iter().zip(aged).zip(calls) {
            self.expect_aged(&self.kernel.tick(now), given_up, forgotten);
            assert_eq!(self.kernel.poll_demand(now), *call, "demand");
        }
    }

    /// Compares the kernel's totals with each other and with the model's.
    pub(crate) fn expect_sums_like(&self, scene: &Scene) {
        self.kernel.check().unwrap();
        expect_same_sums(&self.kernel, &scene.model);
    }

    /// Compares everything that is visible.
    pub(crate) fn expect_like(&mut self, scene: &Scene) {
        let (now, model) = (scene.now, &scene.model);
        self.expect_sums_like(scene);
        let snapshot = self.kernel.snapshot(now);
        assert!(snapshot.number > self.last_snapshot);
        self.last_snapshot = snapshot.number;
        expect_same_state(&self.kernel, &snapshot, model, now, &self.ids);
    }
}
