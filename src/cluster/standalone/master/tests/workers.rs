//! Workers that claim what isn't theirs, that leave, and that are away.

use super::cases::{launch, offer_of, seconds, small_task, with_worker};
use super::world::TestWorld;
use crate::cluster::standalone::master::workers_away::OWN_WORKERS_AWAY_MAX;
use crate::cluster::standalone::master::{MasterAction, WorkerPresence};
use crate::cluster::standalone::protocol::{
    ReportedState, WorkerCall, WorkerEvent, WorkerSubscribe,
};
use crate::mesos_v1::messages::call::{self, Type};
use crate::mesos_v1::messages::{Call, Reason, TaskState};

/// Goal: a worker with credentials of its own can't take over or end what runs on another one. Method: the master
/// starts again, and first a worker is back, or registers for the first time, that claims to run the other one's
/// executors.
#[test]
fn claims_of_others_executors_change_nothing() {
    for is_known in [true, false] {
        let mut world = TestWorld::new(2, 2, None);
        world.frameworks[1].failover = 1e6;
        world.subscribe_framework(1);
        world.connect_worker(0);
        launch(&mut world, 1);
        if is_known {
            world.connect_worker(1);
            launch(&mut world, 1);
        }
        let runs = |world: &TestWorld| {
            let states = |worker: usize| {
                let held = world.workers[worker].running.values();
                held.map(|it| (it.key.clone(), it.state)).collect::<Vec<_>>()
            };
            [states(0), states(1)]
        };
        let before = runs(&world);
        world.restart_master();
        world.subscribe_framework(1);
        world.claim_executors(1, 0);
        world.connect_worker(0);
        world.pass(seconds(20));
        assert_eq!(runs(&world), before);
        assert_eq!(world.master.counts().executors, 1 + usize::from(is_known));
    }
}

/// Goal: of two launches of one executor the later one counts, whichever is told first. Method: an executor that has
/// ended is launched again under the same id on another worker; after a restart the first worker claims that its own
/// still runs.
#[test]
fn a_later_launch_counts() {
    for thief_first in [true, false] {
        let mut world = TestWorld::new(2, 2, None);
        world.frameworks[1].failover = 1e6;
        world.subscribe_framework(1);
        world.connect_worker(0);
        let launch_one = |world: &mut TestWorld| {
            let (offer, task) = (offer_of(world, 1).unwrap(), small_task(world, 1, "one"));
            world.accept_tasks(1, &offer, vec![task]);
        };
        launch_one(&mut world);
        let (key, held) = world.workers[0].running.pop_first().unwrap();
        world.workers[0].running.insert(key.clone(), held.clone());
        world.report(0, &key, ReportedState::Finished);
        world.deliver();
        world.crash_worker(0);
        world.forget_launches();
        world.connect_worker(1);
        launch_one(&mut world);
        world.restart_master();
        world.subscribe_framework(1);
        world.workers[0].running.insert(key.clone(), held);
        for worker in if thief_first { [0, 1] } else { [1, 0] } {
            world.connect_worker(worker);
        }
        world.pass(seconds(20));
        assert!(world.workers[0].running.values().all(|it| it.state.is_end()));
        assert_eq!(world.workers[1].running[&key].state, ReportedState::Starting);
        assert_eq!(world.master.counts().executors, 1);
    }
}

/// Goal: what leaves isn't offered, also by a master that starts meanwhile. Method: a worker that is drained, and one
/// that leaves by itself, with an open offer each, while it is connected or not; then a restart of the master.
#[test]
fn a_leaving_worker_stays_one() {
    for (is_drained, is_connected) in [(true, true), (false, true), (false, false)] {
        let mut world = with_worker(1);
        world.frameworks[1].failover = 1e6;
        launch(&mut world, 1);
        world.pass(seconds(10));
        assert!(offer_of(&world, 1).is_some());
        if !is_connected {
            world.disconnect_worker(0);
        }
        match is_drained {
            true => world.drain_worker(0),
            false => world.begin_to_leave(0),
        }
        for has_restarted in [false, true] {
            if has_restarted {
                world.restart_master();
                world.subscribe_framework(1);
            }
            if has_restarted || !is_connected {
                world.disconnect_worker(0);
                world.connect_worker(0);
            }
            world.pass(seconds(30));
            assert_eq!(offer_of(&world, 1), None, "after a restart: {has_restarted}");
            assert_eq!(world.master.overview().workers[0].state, WorkerPresence::Draining);
            assert_eq!(world.master.counts().executors, 1);
        }
    }
}

/// Goal: a drain that didn't arrive is said again, with its grace period. Method: a connection that breaks with it.
#[test]
fn a_drain_is_said_again() {
    let mut world = with_worker(1);
    world.workers[0].breaks = true;
    world.drain_worker(0);
    assert!(!world.workers[0].leaving);
    let session = "s0".to_owned();
    let (id, address) = (world.workers[0].id.clone(), "h0".to_owned());
    let said = WorkerSubscribe { id, session, address, ..WorkerSubscribe::default() };
    world.master.worker_subscribes(1000, said, Some("o0".to_owned()), world.now);
    let drain = WorkerEvent::Drain { term: 1, grace: 60_000 };
    let actions = world.master.take_actions();
    assert!(actions.contains(&MasterAction::TellWorker { to: 1000, event: drain }), "{actions:?}");
}

/// Goal: a drain that didn't arrive is said again by the next master, and not to a worker that was started again.
/// Method: a connection that breaks with it, a restart of the master, and both.
#[test]
fn a_drain_survives_a_restart() {
    for (session, is_said) in [("s0", true), ("another", false)] {
        let mut world = with_worker(1);
        world.workers[0].breaks = true;
        world.drain_worker(0);
        assert!(!world.workers[0].leaving);
        world.restart_master();
        let term = world.term;
        let (id, address) = (world.workers[0].id.clone(), "h0".to_owned());
        let session = session.to_owned();
        let said = WorkerSubscribe { id, session, address, ..WorkerSubscribe::default() };
        world.master.worker_subscribes(1000, said, Some("o0".to_owned()), world.now);
        let drain = WorkerEvent::Drain { term, grace: 60_000 };
        let drain = MasterAction::TellWorker { to: 1000, event: drain };
        assert_eq!(world.master.take_actions().contains(&drain), is_said);
        let state = world.master.overview().workers[0].state;
        assert_eq!(state == WorkerPresence::Draining, is_said);
    }
}

/// Goal: a worker that is decommissioned gets no offers, keeps its executors, also over a restart of the master, and
/// leaves after their end. Method: a worker with an executor and one without, and a restart.
#[test]
fn a_decommissioned_worker_lets_executors_end() {
    for has_restarted in [false, true] {
        let mut world = with_worker(1);
        launch(&mut world, 1);
        let id = world.workers[0].id.clone().unwrap();
        assert!(world.master.decommission_worker(&id, world.now));
        world.deliver();
        if has_restarted {
            world.restart_master();
            world.subscribe_framework(1);
            world.disconnect_worker(0);
            world.connect_worker(0);
        }
        world.pass(seconds(30));
        assert_eq!(offer_of(&world, 1), None, "after a restart: {has_restarted}");
        assert_eq!(world.master.overview().workers[0].state, WorkerPresence::Draining);
        assert!(!world.workers[0].leaving);
        let key = world.workers[0].running.keys().next().cloned().unwrap();
        world.report(0, &key, ReportedState::Finished);
        world.deliver();
        assert!(world.workers[0].leaving, "after a restart: {has_restarted}");
    }
    let mut world = with_worker(1);
    let id = world.workers[0].id.clone().unwrap();
    assert!(world.master.decommission_worker(&id, world.now));
    assert!(!world.master.decommission_worker("nobody", world.now));
    world.deliver();
    assert!(world.workers[0].leaving);
}

/// Goal: who decommissions a worker that is drained doesn't give its executors more time. Method: a drain that doesn't
/// arrive and a decommission after it; the worker comes again.
#[test]
fn a_decommission_ends_no_drain() {
    let mut world = with_worker(1);
    launch(&mut world, 1);
    world.workers[0].breaks = true;
    world.drain_worker(0);
    let session = "s0".to_owned();
    let (id, address) = (world.workers[0].id.clone(), "h0".to_owned());
    let said = WorkerSubscribe { id: id.clone(), session, address, ..WorkerSubscribe::default() };
    world.master.worker_subscribes(1000, said.clone(), Some("o0".to_owned()), world.now);
    world.master.take_actions();
    assert!(world.master.decommission_worker(&id.unwrap(), world.now));
    assert!(world.master.take_actions().is_empty());
    world.master.connection_closed(1000, world.now);
    world.master.worker_subscribes(1001, said, Some("o0".to_owned()), world.now);
    let event = WorkerEvent::Drain { term: 1, grace: 60_000 };
    let actions = world.master.take_actions();
    assert!(actions.contains(&MasterAction::TellWorker { to: 1001, event }), "{actions:?}");
}

/// Goal: the end of an executor isn't lost with a worker that is decommissioned, and its framework needn't wait for a
/// repetition. Method: it runs and ends while its framework is away, which its worker says twice; the framework is back
/// later.
#[test]
fn a_decommissioned_worker_stays_until_ends_are_acknowledged() {
    let mut world = TestWorld::new(1, 2, None);
    world.frameworks[1].failover = 1e6;
    world.subscribe_framework(1);
    world.connect_worker(0);
    launch(&mut world, 1);
    let id = world.workers[0].id.clone().unwrap();
    assert!(world.master.decommission_worker(&id, world.now));
    world.deliver();
    let key = world.workers[0].running.keys().next().cloned().unwrap();
    world.disconnect_framework(1);
    world.report(0, &key, ReportedState::Running);
    world.report(0, &key, ReportedState::Finished);
    world.deliver();
    let connection = world.workers[0].connection.unwrap();
    for update in world.workers[0].unacknowledged.clone() {
        world.master.worker_calls(connection, WorkerCall::Update(update), world.now).unwrap();
    }
    world.pass(seconds(30));
    assert!(!world.workers[0].leaving);
    world.subscribe_framework(1);
    assert!(world.workers[0].unacknowledged.is_empty());
    assert_eq!(world.frameworks[1].states[&key.executor], TaskState::Finished);
    assert!(world.workers[0].leaving);
}

/// Goal: only executors that a leaving worker ends are said to have ended because of that. Method: one that fails on a
/// worker that is decommissioned, one that its framework kills on a worker that leaves, and one that such a worker
/// ends.
#[test]
fn only_what_a_leaving_worker_ends_is_drained() {
    let ended = |leaves: bool, is_killed: bool, state: ReportedState| {
        let mut world = with_worker(1);
        launch(&mut world, 1);
        let id = world.workers[0].id.clone().unwrap();
        let key = world.workers[0].running.keys().next().cloned().unwrap();
        match leaves {
            true => world.begin_to_leave(0),
            false => assert!(world.master.decommission_worker(&id, world.now)),
        }
        world.deliver();
        if is_killed {
            let kill =
                call::Kill { task_id: key.executor.as_str().into(), ..call::Kill::default() };
            let call = Call { kill: Some(kill), ..Call::default() };
            assert!(world.call(1, Type::Kill, call));
        } else {
            world.report(0, &key, state);
            world.deliver();
        }
        world.frameworks[1].reasons.get(&key.executor).copied()
    };
    assert_eq!(ended(false, false, ReportedState::Failed), None);
    assert_eq!(ended(true, true, ReportedState::Killed), None);
    assert_eq!(ended(true, false, ReportedState::Killed), Some(Reason::AgentDraining));
    assert_eq!(ended(true, false, ReportedState::Finished), None);
}

/// Goal: an end that is repeated, as workers do until it is acknowledged, costs no look at what is free. Method: the
/// time of the last look, before and after a repetition for a framework that is away.
#[test]
fn a_repeated_end_frees_nothing() {
    let mut world = TestWorld::new(1, 2, None);
    world.frameworks[1].failover = 1e6;
    world.subscribe_framework(1);
    world.connect_worker(0);
    launch(&mut world, 1);
    let key = world.workers[0].running.keys().next().cloned().unwrap();
    world.disconnect_framework(1);
    world.now += seconds(1);
    world.report(0, &key, ReportedState::Finished);
    world.deliver();
    assert_eq!(world.master.allocated_at, world.now);
    let first = world.now;
    world.now += seconds(1);
    let update = world.workers[0].unacknowledged[0].clone();
    let connection = world.workers[0].connection.unwrap();
    world.master.worker_calls(connection, WorkerCall::Update(update), world.now).unwrap();
    assert_eq!(world.master.allocated_at, first);
}

/// Goal: an executor that was lost is counted once, whatever its framework knows of losses. Method: one of a framework
/// that only knows `TASK_LOST` and one of another; the worker is silent for too long, and back without them.
#[test]
fn lost_executors_are_counted() {
    for framework in [0, 1] {
        let mut world = with_worker(framework);
        launch(&mut world, framework);
        world.workers[0].connection = None;
        world.pass(seconds(61));
        world.workers[0].running.clear();
        world.connect_worker(0);
        world.deliver();
        assert_eq!(world.master.overview().totals.lost, 1, "framework {framework}");
    }
}

/// Goal: a token can't fill the master with workers that come and go, and drives out neither others nor executors.
/// Method: a worker with an executor and a worker of another owner go; then many others of the first one's owner come
/// and go, each with an address and a session of its own.
#[test]
fn workers_that_are_away_are_bounded() {
    let mut world = TestWorld::new(2, 2, None);
    world.frameworks[1].failover = 1e6;
    world.subscribe_framework(1);
    world.connect_worker(0);
    launch(&mut world, 1);
    world.connect_worker(1);
    world.disconnect_worker(0);
    world.disconnect_worker(1);
    for number in 0..300 {
        let session = format!("one{number}");
        let said =
            WorkerSubscribe { address: session.clone(), session, ..WorkerSubscribe::default() };
        let connection = 1000 + number;
        world.master.worker_subscribes(connection, said, Some("o0".to_owned()), world.now);
        world.deliver();
        world.master.connection_closed(connection, world.now);
        world.deliver();
    }
    let away = world.master.workers_away();
    assert_eq!((away[&Some("o0")], away[&Some("o1")]), (OWN_WORKERS_AWAY_MAX, 1));
    // With the framework, and the worker that has an executor.
    assert_eq!(world.master.journal_entries().len(), OWN_WORKERS_AWAY_MAX + 3);
    world.connect_worker(0);
    assert_eq!(world.master.counts().executors, 1);
}
