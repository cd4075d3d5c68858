//! The cases that have a name.

use std::time::Duration;

use super::world::TestWorld;
use crate::cluster::standalone::master::MasterAction;
use crate::cluster::standalone::protocol::{
    ReportedState, WorkerCall, WorkerEvent, WorkerSubscribe,
};
use crate::mesos_v1::messages::call::{self, Type};
use crate::mesos_v1::messages::{Call, Filters, FrameworkId, FrameworkInfo, TaskState};

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn offer_of(world: &TestWorld, framework: usize) -> Option<String> {
    world.frameworks[framework].offers.keys().next().cloned()
}

fn decline(world: &mut TestWorld, framework: usize, refuse: f64) {
    let offer = offer_of(world, framework).unwrap();
    world.frameworks[framework].offers.remove(&offer);
    let filters = Some(Filters { refuse_seconds: Some(refuse) });
    let decline = Some(call::Decline { offer_ids: vec![offer.into()], filters });
    assert!(world.call(framework, Type::Decline, Call { decline, ..Call::default() }));
}

/// Goal: first in, first out; what the first declines is the second's at once, and the first's again after its time.
/// Method: two frameworks, one worker, declines and time.
#[test]
fn declined_resources_go_to_the_next() {
    let mut world = TestWorld::new(1, 2, None);
    world.subscribe_framework(0);
    world.subscribe_framework(1);
    world.connect_worker(0);
    assert!(offer_of(&world, 0).is_some() && offer_of(&world, 1).is_none());
    decline(&mut world, 0, 10.0);
    assert!(offer_of(&world, 0).is_none() && offer_of(&world, 1).is_some());
    decline(&mut world, 1, 100.0);
    world.pass(seconds(9));
    assert!(offer_of(&world, 0).is_none() && offer_of(&world, 1).is_none());
    world.pass(seconds(2));
    assert!(offer_of(&world, 0).is_some());
}

/// Goal: a framework that never answers holds nothing for ever. Method: an offer that is left alone for a minute.
#[test]
fn offers_that_are_not_answered_are_rescinded() {
    let mut world = TestWorld::new(1, 2, None);
    world.subscribe_framework(0);
    world.subscribe_framework(1);
    world.connect_worker(0);
    world.pass(seconds(59));
    assert!(offer_of(&world, 1).is_none());
    world.pass(seconds(1));
    assert!(offer_of(&world, 0).is_none() && offer_of(&world, 1).is_some());
}

/// Goal: a launch that didn't arrive is dropped, not guessed at. Method: a connection that breaks with the launch; the
/// worker comes back without the executor.
#[test]
fn a_launch_that_is_not_listed_is_dropped() {
    let mut world = TestWorld::new(1, 2, None);
    world.subscribe_framework(1);
    world.connect_worker(0);
    world.workers[0].breaks = true;
    let offer = offer_of(&world, 1).unwrap();
    let task = world.accept(1, &offer, 1.0, None);
    assert_eq!(world.frameworks[1].states.get(&task), None);
    world.connect_worker(0);
    assert_eq!(world.frameworks[1].states[&task], TaskState::Dropped);
    assert_eq!(world.master.counts().executors, 0);
}

/// Goal: a silent worker's executors are unreachable after a minute, and run again when it is back; for a framework
/// that doesn't know the word they are lost, and end. Method: one executor of each framework, silence, and the return.
#[test]
fn silent_workers_are_unreachable() {
    for (framework, away, back) in
        [(1, TaskState::Unreachable, TaskState::Starting), (0, TaskState::Lost, TaskState::Killed)]
    {
        let mut world = TestWorld::new(1, 2, None);
        world.subscribe_framework(framework);
        world.connect_worker(0);
        let offer = offer_of(&world, framework).unwrap();
        let task = world.accept(framework, &offer, 1.0, None);
        world.disconnect_worker(0);
        world.pass(seconds(59));
        assert_eq!(world.frameworks[framework].states.get(&task), None);
        world.pass(seconds(2));
        assert_eq!(world.frameworks[framework].states[&task], away);
        world.connect_worker(0);
        assert_eq!(world.frameworks[framework].states[&task], back);
    }
}

/// Goal: a framework may come back within its time, and its executors end after it. Method: a disconnection, and each
/// side of the time-out.
#[test]
fn frameworks_may_fail_over() {
    for (away, kept) in [(29, true), (31, false)] {
        let mut world = TestWorld::new(1, 2, None);
        world.frameworks[1].failover = 30.0;
        world.subscribe_framework(1);
        world.connect_worker(0);
        let offer = offer_of(&world, 1).unwrap();
        world.accept(1, &offer, 1.0, None);
        world.disconnect_framework(1);
        world.pass(seconds(away));
        world.subscribe_framework(1);
        assert_eq!(world.master.counts().executors, usize::from(kept));
        assert_eq!(world.frameworks[1].connection.is_some(), kept, "it was removed");
    }
}

/// Goal: the same id or address twice is refused while the first is there, and a reconnection isn't. Method: three
/// registrations beside a connected worker, and what the master answers.
#[test]
fn a_worker_registers_once() {
    let mut world = TestWorld::new(1, 1, None);
    world.connect_worker(0);
    let id = world.workers[0].id.clone();
    let mut answer = |id: Option<String>, session: &str, address: &str, term: u64| {
        let said = WorkerSubscribe {
            id,
            session: session.to_owned(),
            hostname: "x".to_owned(),
            address: address.to_owned(),
            term,
            ..WorkerSubscribe::default()
        };
        let connection = 1000 + term * 10 + session.len() as u64 + address.len() as u64;
        let call = WorkerCall::Subscribe(Box::new(said));
        world.master.worker_calls(connection, call, world.now).unwrap();
        let actions = world.master.take_actions();
        let told = actions.into_iter().find_map(|action| match action {
            MasterAction::TellWorker { to, event } if to == connection => Some(event),
            _ => None,
        });
        match told {
            Some(WorkerEvent::Refused { why, .. }) => why,
            Some(WorkerEvent::Subscribed { .. }) => "welcome".to_owned(),
            other => format!("{other:?}"),
        }
    };
    assert!(answer(id.clone(), "another", "h0", 1).contains("is connected"));
    assert!(answer(None, "another1", "h0", 1).contains("has the address h0"));
    assert!(answer(None, "another12", "hh1", 2).contains("knows of term 2"));
    assert_eq!(answer(id, "s0", "h0", 0), "welcome");
    assert_eq!(answer(None, "other", "h100", 1), "welcome");
}

/// Goal: a master that starts again waits for those that it knows, but not for ever, and for nobody else; executors
/// that come back are counted once. Method: restarts in which all, or not all, come back.
#[test]
fn recovery_ends() {
    let mut world = TestWorld::new(2, 2, None);
    world.frameworks[1].failover = 1e6;
    world.subscribe_framework(1);
    world.connect_worker(0);
    let offer = offer_of(&world, 1).unwrap();
    let task = world.accept(1, &offer, 1.0, None);
    world.restart_master();
    assert!(world.master.is_recovering());
    world.connect_worker(1);
    world.subscribe_framework(0);
    assert!(world.master.is_recovering(), "strangers change nothing");
    assert!(offer_of(&world, 0).is_none());
    world.connect_worker(0);
    world.subscribe_framework(1);
    assert!(!world.master.is_recovering());
    assert_eq!(world.master.counts().executors, 1);
    assert!(offer_of(&world, 1).is_some(), "it registered first");
    world.restart_master();
    world.subscribe_framework(1);
    world.pass(seconds(14));
    assert!(world.master.is_recovering());
    world.pass(seconds(1));
    assert!(!world.master.is_recovering());
    world.connect_worker(0);
    assert_eq!(world.master.counts().executors, 1);
    assert_ne!(world.frameworks[1].states.get(&task), Some(&TaskState::Dropped));
}

/// Goal: an end frees its resources at once, also before it is acknowledged. Method: an executor that uses all, and
/// ends.
#[test]
fn ends_free_resources_at_once() {
    let mut world = TestWorld::new(1, 2, None);
    world.subscribe_framework(1);
    world.connect_worker(0);
    let offer = offer_of(&world, 1).unwrap();
    world.accept(1, &offer, 4.0, None);
    assert_eq!(offer_of(&world, 1), None);
    let key = world.workers[0].running.keys().next().unwrap().clone();
    world.report(0, &key, ReportedState::Failed);
    world.deliver();
    assert!(offer_of(&world, 1).is_some());
    assert!(world.workers[0].running.is_empty(), "its end was acknowledged");
}

/// Goal: a framework is taken over by nobody else. Method: its id, subscribed with another principal.
#[test]
fn another_principal_takes_over_nothing() {
    let mut world = TestWorld::new(1, 1, None);
    world.subscribe_framework(0);
    world.connect_worker(0);
    let offer = offer_of(&world, 0).unwrap();
    world.accept(0, &offer, 1.0, None);
    let framework_info = FrameworkInfo {
        id: world.frameworks[0].id.clone().map(|value| FrameworkId { value }),
        principal: Some("mallory".to_owned()),
        ..FrameworkInfo::default()
    };
    let subscribe = call::Subscribe { framework_info, ..call::Subscribe::default() };
    world.master.framework_subscribes(1000, subscribe, world.now);
    let actions = world.master.take_actions();
    let told = actions.iter().find_map(|action| match action {
        MasterAction::TellFramework { to: 1000, event } => event.error.clone(),
        _ => None,
    });
    assert_eq!(told.unwrap().message, "Framework has another principal");
    assert!(actions.contains(&MasterAction::Close(1000)));
    assert_eq!(world.master.counts().executors, 1);
    assert!(world.frameworks[0].connection.is_some());
}
