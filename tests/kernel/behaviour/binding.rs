//! Executors that are bound late.

use offermill::config::ExclusionRule;
use offermill::resources::ExecutorResources;
use offermill::{
    Bound, BoundAgent, ExecutorId, Fate, IdScheme, Reason, ReasonKind, Recovered, Scope, TaskState,
};

use super::Fixture;
use crate::world::{OfferData, Setup, at, secs};

impl Fixture {
    /// Places an executor that is bound late.
    fn start_late(&mut self, now: u64) -> ExecutorId {
        let placed = self.offer(&[OfferData::late(1.0, 100.0)], now);
        assert_eq!(placed.len(), 1, "{:?}", self.decisions.declines());
        placed[0]
    }

    fn bind(&self, executor: ExecutorId, agent: &str, now: u64) -> Bound {
        let name = self.kernel.executor_name(executor).to_string();
        self.kernel.bind(&name, &BoundAgent::new(agent, "host"), at(now))
    }

    fn agent_of(&self, executor: ExecutorId) -> String {
        let executors = self.kernel.snapshot(at(0)).executors;
        executors.iter().find(|it| it.id == executor).unwrap().agent_id.to_string()
    }
}

fn settled(executor: ExecutorId) -> Bound {
    Bound::Settled { executor, in_doubt: false }
}

/// Goal: a permit is for one executor, and each permit is answered by itself. Method: two large permits beside an offer
/// of an agent; then a cap that leaves room for one.
#[test]
fn a_permit_is_for_one_executor() {
    for consolidate in [false, true] {
        let mut fixture = Fixture::new(&Setup { consolidate, ..Setup::default() });
        let permit = OfferData::late(8.0, 800.0);
        let batch = [permit.clone(), OfferData::new("S1", 2.0, 200.0), permit.clone()];
        assert_eq!(fixture.offer(&batch, 0).len(), 4);
        let answers: Vec<_> = fixture
            .decisions
            .accepts()
            .map(|it| (it.offers.to_vec(), it.executors.len()))
            .collect();
        assert_eq!(answers, [(vec![0], 1), (vec![1], 2), (vec![2], 1)]);
        fixture.kernel.set_executor_limit(Some(5)).unwrap();
        assert_eq!(fixture.offer(&[permit.clone(), permit], 1).len(), 1);
        assert_eq!(fixture.declines()[0].reason, Reason::ExecutorLimit { limit: 5 });
        fixture.kernel.check().unwrap();
    }
}

/// Goal: an executor is bound to the first agent that has a name, and stays there. Method: a binding without an agent's
/// id, one with it, the same again, and another agent; then after the executor's end.
#[test]
fn the_first_named_agent_has_the_executor() {
    let mut fixture = Fixture::new(&Setup::default());
    let executor = fixture.offer(&[OfferData::late(8.0, 800.0)], 0)[0];
    assert_eq!(fixture.bind(executor, "", 1), Bound::Nothing);
    assert_eq!(fixture.bind(executor, "S1", 2), settled(executor));
    assert_eq!(fixture.bind(executor, "S1", 3), Bound::Already);
    let elsewhere = Bound::Elsewhere { agent_id: "S1".into() };
    assert_eq!(fixture.bind(executor, "S2", 4), elsewhere);
    fixture.update(executor, TaskState::Finished, 5);
    assert_eq!(fixture.bind(executor, "S1", 6), Bound::Nothing);
    fixture.kernel.check().unwrap();
}

/// Goal: an offer that names no agent is malformed unless it says that it is a permit. Method: both, and a permit
/// without an id.
#[test]
fn only_permits_have_no_agent() {
    let mut fixture = Fixture::new(&Setup::default());
    let nameless = OfferData { id: String::new(), ..OfferData::late(1.0, 100.0) };
    let batch = [OfferData::new("", 1.0, 100.0), nameless, OfferData::late(1.0, 100.0)];
    assert_eq!(fixture.offer(&batch, 0).len(), 1);
    let declined: Vec<_> = fixture.declines().iter().map(|it| (it.offer, it.reason)).collect();
    assert_eq!(declined, [(0, Reason::Malformed), (1, Reason::Malformed)]);
}

/// Goal: no rule about agents keeps an executor from a permit. Method: a constraint and a wait for hosts.
#[test]
fn no_rule_about_agents_applies_to_a_permit() {
    let setup = Setup { zones: vec!["a"], locality_wait: Some(secs(60)), ..Setup::default() };
    let mut fixture = Fixture::new(&setup);
    fixture.kernel.set_locality(["elsewhere"]);
    fixture.start_late(0);
}

/// Goal: the failures of executors that were bound late exclude their agent, and those that are found there then are
/// unwelcome for good; their own end is no failure. Method: an agent with two failures, which is readmitted.
#[test]
fn failures_count_once_bound() {
    let rule = ExclusionRule { failures: 2, expiry: None, ..ExclusionRule::default() };
    let setup = Setup { exclusion: Some(rule), ..Setup::default() };
    let mut fixture = Fixture::with_ids(&setup, IdScheme::plain());
    let all: Vec<ExecutorId> = (0..5).map(|_| fixture.start_late(0)).collect();
    let unbound = fixture.update(all[4], TaskState::Failed, 1);
    assert_eq!((unbound.excluded, fixture.kernel.agents_known()), (None, 0));
    for executor in &all[..2] {
        assert_eq!(fixture.bind(*executor, "S1", 1), settled(*executor));
        assert_eq!(fixture.agent_of(*executor), "S1");
    }
    assert_eq!(fixture.update(all[0], TaskState::Failed, 2).excluded, None);
    assert!(fixture.update(all[1], TaskState::Failed, 2).excluded.is_some());
    let Bound::Unwelcome { executor, why: Some(why) } = fixture.bind(all[2], "S1", 3) else {
        panic!("it is bound to an excluded agent")
    };
    assert_eq!((executor, why.kind()), (all[2], ReasonKind::AgentExcluded));
    assert!(fixture.kernel.readmit_agent("S1", at(4)));
    let again = Bound::Unwelcome { executor, why: None };
    assert_eq!(fixture.bind(all[2], "S1", 5), again);
    assert_eq!(fixture.bind(all[2], "S2", 5), again);
    assert_eq!(fixture.update(all[2], TaskState::Failed, 6).excluded, None);
    assert_eq!(fixture.bind(all[3], "S1", 7), settled(all[3]));
    let elsewhere = Bound::Elsewhere { agent_id: "S1".into() };
    assert_eq!(fixture.bind(all[3], "S2", 7), elsewhere);
    fixture.kernel.check().unwrap();
}

/// Goal: reconciliation, kills and the drain name the agent once it is known. Method: each of them before and after
/// the binding, the last after the close.
#[test]
fn calls_name_the_agent_once_it_is_known() {
    let mut fixture = Fixture::new(&Setup::default());
    let executor = fixture.start_late(0);
    let agents = |fixture: &Fixture| {
        let asked = fixture.kernel.reconcile(Scope::All, at(10_000));
        let killed = fixture.kernel.kill_executors([executor]);
        [asked, killed].map(|targets| targets[0].agent_id.to_string())
    };
    assert_eq!(agents(&fixture), ["", ""]);
    assert_eq!(*fixture.kernel.close()[0].agent_id, *"");
    assert_eq!(fixture.bind(executor, "S1", 1), settled(executor));
    assert_eq!(agents(&fixture), ["S1", "S1"]);
    fixture.update(executor, TaskState::Killed, 2);
    let report = fixture.kernel.drain(secs(0));
    let rows: Vec<_> =
        report.executors.iter().map(|row| (&*row.executor.agent_id, row.fate)).collect();
    assert_eq!(rows, [("S1", Fate::Killed)]);
}

/// Goal: a former executor that was not bound is adopted, counts against the caps, and is bound later; a name without
/// an agent is refused otherwise. Method: one of each.
#[test]
fn unbound_executors_are_adopted() {
    let fixture = Fixture::new(&Setup { limit: Some(2), ..Setup::default() });
    let resources = ExecutorResources::NONE;
    let former = [
        Recovered::late("pod-1", resources),
        Recovered::new("pod-2", "", "", resources),
        Recovered::late("pod-3", resources),
        Recovered::late("pod-4", resources),
    ];
    let adopted = fixture.kernel.adopt(&former, at(0)).unwrap();
    let is_adopted: Vec<bool> = adopted.iter().map(Option::is_some).collect();
    assert_eq!(is_adopted, [true, false, true, false]);
    assert_eq!(fixture.bind(adopted[0].unwrap(), "S1", 1), settled(adopted[0].unwrap()));
    assert_eq!(fixture.kernel.snapshot(at(1)).agents[0].executors, 1);
    fixture.kernel.check().unwrap();
}

/// Goal: an executor that waits for an agent isn't in doubt, however long; it is reconciled with all others. Method:
/// one that is bound after the launch timeout, and one that isn't.
#[test]
fn executors_that_wait_for_an_agent_are_not_in_doubt() {
    let mut fixture = Fixture::new(&Setup { launch_timeout: secs(100), ..Setup::default() });
    let executors = [fixture.start_late(0), fixture.start_late(0)];
    assert_eq!(fixture.kernel.reconcile(Scope::InDoubt, at(100_000)), []);
    assert_eq!(fixture.kernel.reconcile(Scope::All, at(100_000)).len(), 2);
    assert_eq!(fixture.bind(executors[0], "S1", 100_000), settled(executors[0]));
    let doubtful = fixture.kernel.reconcile(Scope::InDoubt, at(100_001));
    assert_eq!(doubtful.iter().map(|it| it.id).collect::<Vec<_>>(), executors[..1]);
    let name = fixture.kernel.executor_name(executors[1]).to_string();
    assert!(fixture.kernel.executor_lost(&name).is_some());
    assert_eq!(fixture.kernel.reconcile(Scope::InDoubt, at(100_001)).len(), 2);
}

/// Goal: an agent that was reported lost takes an executor, which is in doubt. Method: a loss, then a binding.
#[test]
fn a_lost_agent_takes_executors_in_doubt() {
    let mut fixture = Fixture::new(&Setup::default());
    let executor = fixture.start_late(0);
    fixture.update(executor, TaskState::Running, 1);
    assert!(fixture.kernel.agent_lost("S1", at(2)).is_empty());
    assert_eq!(fixture.bind(executor, "S1", 3), Bound::Settled { executor, in_doubt: true });
    let doubtful = fixture.kernel.reconcile(Scope::InDoubt, at(4));
    assert_eq!(doubtful[0].id, executor);
    let lost = fixture.kernel.agent_lost("S1", at(5));
    assert_eq!(lost[0].id, executor, "it is found there");
}

/// Goal: an agent on which an executor was bound is known for 15 min from then on, has its failure forgiven, and its
/// host has an executor. Method: an agent that was offered long before, with a failure.
#[test]
fn a_bound_executor_was_started_there() {
    let mut setup = Setup { locality_wait: Some(secs(60)), ..Setup::default() };
    setup.compatibility.replace_elsewhere = true;
    let mut fixture = Fixture::new(&setup);
    let failing = fixture.start_on("S1", 0);
    fixture.update(failing, TaskState::Failed, 0);
    let executor = fixture.start_late(0);
    assert_eq!(fixture.bind(executor, "S1", 3_600_000), settled(executor));
    fixture.kernel.set_executor_limit(Some(2)).unwrap();
    let both = ["S1", "S2"].map(|agent| OfferData::new(agent, 1.0, 100.0));
    let second = fixture.offer(&both, 3_600_000)[0];
    assert_eq!(fixture.agent_of(second), "S1", "the failure is forgiven");
    for id in [executor, second] {
        fixture.update(id, TaskState::Finished, 3_600_001);
    }
    let known = |fixture: &Fixture, now| {
        fixture.kernel.tick(at(now));
        fixture.kernel.agents_known()
    };
    assert_eq!((known(&fixture, 4_400_000), known(&fixture, 4_600_000)), (2, 0));

    fixture.kernel.set_locality(["host"]);
    let late = fixture.start_late(5_000_000);
    assert_eq!(fixture.bind(late, "S3", 5_000_000), settled(late));
    assert_eq!(fixture.refused_on("S4", 5_000_000).kind(), ReasonKind::Locality);
}
