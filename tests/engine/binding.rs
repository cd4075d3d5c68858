//! Executors whose agents the cluster chooses.

use std::sync::Arc;
use std::time::Duration;

use offermill::attributes::{OwnedAttribute, parse};
use offermill::config::{ExclusionRule, ExecutorCores};
use offermill::engine::cluster_manager::{AgentFacts, Event, OwnedOffer, Update};
use offermill::engine::journal::Operation;
use offermill::engine::{Engine, EngineOptions, Notice};
use offermill::launch::CommandTemplate;
use offermill::limits::{HOSTNAME_BYTES_MAX, MESSAGE_BYTES_MAX};
use offermill::resources::MilliCpus;
use offermill::{Config, Constraint, IdScheme, Kernel, TaskState, Timestamp};

use crate::journal::{Tape, play_on};
use crate::recorder::{Call, Notices, Recorder, offer};

fn kernel() -> Kernel {
    let exclusion = ExclusionRule { failures: 1, expiry: None, ..ExclusionRule::default() };
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(1)))
        .memory_overhead(Some(offermill::resources::Mebibytes::new(0)))
        .executor_memory(offermill::resources::Mebibytes::new(128))
        .executor_limit(Some(4))
        .constraint(Constraint::parse("disk:ssd").unwrap())
        .exclusion(Some(exclusion));
    Kernel::new(config.build().unwrap(), IdScheme::unique("test", 1).unwrap())
}

/// An engine with a journal, and `executors` that were launched on permits.
struct Fixture {
    engine: Engine,
    cluster: Arc<Recorder>,
    notices: Notices,
    tape: Tape,
    executors: Vec<String>,
}

fn permit(id: &str) -> OwnedOffer {
    OwnedOffer::late(id, offer(id, "S0", 1).resources)
}

fn attributes(text: &str) -> Vec<OwnedAttribute> {
    parse(text).unwrap()
}

impl Fixture {
    fn new(executors: usize) -> Fixture {
        let cluster = Arc::new(Recorder::that_binds_late());
        let notices = Notices::default();
        let tape = Tape::default();
        let engine = Engine::start_with_journal(
            kernel(),
            Arc::clone(&cluster) as _,
            Arc::new(CommandTemplate::new(vec!["run".to_owned()])),
            EngineOptions::default(),
            Box::new(notices.clone()),
            Box::new(tape.clone()),
        );
        let engine = engine.unwrap();
        cluster.send(Event::Registered { framework_id: "F".to_owned(), again: false });
        let ids: Vec<String> = (0..executors).map(|number| format!("p{number}")).collect();
        cluster.send(Event::Offers(ids.iter().map(|id| permit(id)).collect()));
        let executors = notices.wait_for_many(executors, |notice| match notice {
            Notice::Placed(placed) => Some((placed.executor.clone(), placed.agent_id.clone())),
            _ => None,
        });
        assert!(executors.iter().all(|(_, agent_id)| agent_id.is_empty()));
        let executors: Vec<String> = executors.into_iter().map(|(name, _)| name).collect();
        let launched = |call: &Call| match call {
            Call::Accept { executors: launched, .. } => {
                (launched.last() == executors.last()).then_some(())
            }
            _ => None,
        };
        cluster.wait_for(launched);
        Fixture { engine, cluster, notices, tape, executors }
    }

    fn send(&self, executor: usize, state: TaskState, agent_id: &str, attributes_: &str) {
        let facts = AgentFacts::new("host").with_attributes(attributes(attributes_));
        let update = Update::new(&self.executors[executor], state).with_agent(agent_id);
        self.cluster.send(Event::Update(update.with_facts(facts)));
    }

    /// Waits until the manager was told to avoid these agents.
    fn wait_until_avoided(&self, agents: &[&str]) {
        self.cluster.wait_for_last(|call| match call {
            Call::Avoid(avoided) => Some(avoided == agents),
            _ => None,
        });
    }

    /// Shuts down, and plays the journal on another kernel.
    fn end(self) {
        let Fixture { engine, tape, .. } = self;
        engine.kernel().check().unwrap();
        engine.shutdown(Duration::from_millis(10));
        let entries = tape.entries();
        assert!(entries.iter().any(|it| matches!(it.operation, Operation::Bind { .. })));
        play_on(kernel(), &entries).unwrap();
    }
}

/// Goal: the first update that names an agent binds its executor, and is applied; then updates of other agents are
/// ignored. Method: updates with and without an agent; the kernel's snapshot.
#[test]
fn the_first_agent_that_is_named_gets_the_executor() {
    let fixture = Fixture::new(1);
    let name = &fixture.executors[0];
    fixture.cluster.send(Event::Update(Update::new(name, TaskState::Staging)));
    fixture.send(0, TaskState::Starting, "S1", "disk:ssd");
    fixture.send(0, TaskState::Failed, "S2", "disk:ssd");
    fixture.send(0, TaskState::Running, "S1", "");
    let bound = fixture.notices.wait_for(|notice| match notice {
        Notice::Bound { executor, agent_id, hostname } => {
            Some((executor.clone(), agent_id.clone(), hostname.clone()))
        }
        _ => None,
    });
    assert_eq!(bound, (name.clone(), "S1".to_owned(), "host".to_owned()));
    let state = fixture.notices.wait_for_many(3, |notice| match notice {
        Notice::Updated { state, .. } => Some(*state),
        _ => None,
    });
    assert_eq!(state, [TaskState::Staging, TaskState::Starting, TaskState::Running]);
    let snapshot = fixture.engine.kernel().snapshot(Timestamp::ORIGIN);
    assert_eq!(*snapshot.executors[0].agent_id, *"S1");
    fixture.end();
}

/// Goal: an executor on an agent that it must not be on is killed once for that, and its failure counts against no
/// agent; both agents that don't take executors are avoided, which is said again with a further subscription. Method: a
/// constraint that is unmet, and an exclusion by a failure.
#[test]
fn unwelcome_executors_are_killed() {
    let fixture = Fixture::new(4);
    fixture.send(0, TaskState::Starting, "S0", "disk:hdd");
    fixture.send(0, TaskState::Running, "S0", "disk:ssd");
    fixture.send(0, TaskState::Failed, "S0", "disk:hdd");
    fixture.send(1, TaskState::Running, "S1", "disk:ssd");
    fixture.send(1, TaskState::Failed, "S1", "disk:ssd");
    fixture.wait_until_avoided(&["S1", "S0"]);
    fixture.cluster.send(Event::Registered { framework_id: "F".to_owned(), again: true });
    fixture.send(2, TaskState::Running, "S1", "disk:ssd");
    let unwelcome = fixture.notices.wait_for_many(2, |notice| match notice {
        Notice::Unwelcome { executor, why, .. } => Some((executor.clone(), why.clone())),
        _ => None,
    });
    assert_eq!(unwelcome[0].0, fixture.executors[0]);
    assert_eq!(unwelcome[1].0, fixture.executors[2]);
    assert!(unwelcome[1].1.contains("excluded"), "{unwelcome:?}");
    for executor in [0, 2] {
        let kill = Call::Kill(fixture.executors[executor].clone());
        fixture.cluster.wait_for(|call| (*call == kill).then_some(()));
        assert_eq!(fixture.cluster.calls().iter().filter(|call| **call == kill).count(), 1);
    }
    let is_repeated = |calls: &[Call]| {
        let told = calls.iter().filter(|call| matches!(call, Call::Avoid(it) if it.len() == 2));
        told.count() == 2
    };
    fixture.cluster.wait_until(is_repeated);
    fixture.send(3, TaskState::Running, "S2", "disk:ssd");
    fixture.notices.wait_for_many(2, |notice| matches!(notice, Notice::Bound { .. }).then_some(()));
    fixture.end();
}

/// Goal: a readmitted agent isn't avoided any more, and a manager that doesn't bind late is told nothing of that.
/// Method: an exclusion that is lifted; then another manager.
#[test]
fn readmitted_agents_are_not_avoided() {
    let fixture = Fixture::new(1);
    fixture.send(0, TaskState::Failed, "S1", "disk:ssd");
    fixture.wait_until_avoided(&["S1"]);
    assert!(fixture.engine.readmit_agent("S1"));
    fixture.wait_until_avoided(&[]);
    fixture.end();

    let other = crate::Fixture::new(None, |_| {});
    for executor in other.launch("o1", 3) {
        other.cluster.send(crate::update(&executor, TaskState::Failed));
    }
    other.notices.wait_for(|notice| matches!(notice, Notice::AgentExcluded { .. }).then_some(()));
    let is_told = |call: &Call| matches!(call, Call::Avoid(_));
    assert!(!other.cluster.calls().iter().any(is_told));
}

/// Goal: text of the cluster about executors that wait, and about agents, is bounded. Method: a long reason, a long id,
/// and facts that are too long.
#[test]
fn text_about_executors_that_wait_is_bounded() {
    let fixture = Fixture::new(1);
    let why = "0/3 nodes are available. ".repeat(MESSAGE_BYTES_MAX);
    let executor = fixture.executors[0].clone();
    fixture.cluster.send(Event::Waiting { executor: executor.clone(), why: why.clone() });
    fixture.cluster.send(Event::Waiting { executor: why.clone(), why: String::new() });
    let facts = AgentFacts::new("h".repeat(HOSTNAME_BYTES_MAX + 1));
    let update = Update::new(&executor, TaskState::Running).with_agent("S1").with_facts(facts);
    fixture.cluster.send(Event::Update(update));
    let waits = fixture.notices.wait_for(|notice| match notice {
        Notice::Waiting { executor, why } => Some((executor.clone(), why.len())),
        _ => None,
    });
    assert!(waits.0 == executor && waits.1 <= MESSAGE_BYTES_MAX + 16, "{waits:?}");
    let ignored = fixture.notices.wait_for_many(2, |notice| match notice {
        Notice::CallFailed { why } => Some(why.clone()),
        _ => None,
    });
    assert!(ignored.iter().all(|why| why.contains("ignored") && why.len() < 500), "{ignored:?}");
    fixture.send(0, TaskState::Running, "S1", "disk:ssd");
    fixture.notices.wait_for(|notice| matches!(notice, Notice::Bound { .. }).then_some(()));
    fixture.end();
}
