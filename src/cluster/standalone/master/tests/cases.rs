//! The cases that have a name.

use std::time::Duration;

use super::restarts::settings;
use super::task_infos::task_info;
use super::world::TestWorld;
use crate::cluster::standalone::master::{
    MasterAction, MasterNotice, MasterSettings, StandaloneMaster,
};
use crate::cluster::standalone::protocol::{
    EXECUTORS_MAX, ExecutorKey, ExecutorUpdate, HeldExecutor, ReportedState, WorkerCall,
    WorkerEvent, WorkerResources, WorkerSubscribe,
};
use crate::mesos_v1::messages::call::{self, Type};
use crate::mesos_v1::messages::{
    Call, Environment, Filters, FrameworkId, FrameworkInfo, TaskInfo, TaskState, Variable,
};

pub(super) fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

pub(super) fn offer_of(world: &TestWorld, framework: usize) -> Option<String> {
    world.frameworks[framework].offers.keys().next().cloned()
}

/// A worker, and this one of two frameworks.
pub(super) fn with_worker(framework: usize) -> TestWorld {
    let mut world = TestWorld::new(1, 2, None);
    world.subscribe_framework(framework);
    world.connect_worker(0);
    world
}

/// Accepts the framework's offer with one task of one core. Returns the task's id.
pub(super) fn launch(world: &mut TestWorld, framework: usize) -> String {
    let offer = offer_of(world, framework).unwrap();
    world.accept(framework, &offer, 1.0, None)
}

pub(super) fn decline(world: &mut TestWorld, framework: usize, refuse: f64) {
    let offer = offer_of(world, framework).unwrap();
    world.frameworks[framework].offers.remove(&offer);
    let filters = Some(Filters { refuse_seconds: Some(refuse) });
    let decline = Some(call::Decline { offer_ids: vec![offer.into()], filters });
    assert!(world.call(framework, Type::Decline, Call { decline, ..Call::default() }));
}

/// Goal: the workers with the most free cores are offered first. Method: three workers of one size, on which executors
/// take one, three and two cores; the rest is offered in one event.
#[test]
fn the_most_free_cores_are_offered_first() {
    let mut world = TestWorld::new(3, 1, None);
    world.subscribe_framework(0);
    for (index, cores) in [1.0, 3.0, 2.0].into_iter().enumerate() {
        world.connect_worker(index);
        let offer = offer_of(&world, 0).unwrap();
        world.accept(0, &offer, cores, None);
    }
    world.master.tick(seconds(10));
    let offered = |action: &MasterAction| match action {
        MasterAction::TellFramework { event, .. } => event.offers.clone(),
        _ => None,
    };
    let offers = world.master.take_actions().iter().find_map(offered).unwrap().offers;
    let hosts: Vec<&str> = offers.iter().map(|offer| offer.hostname.as_str()).collect();
    assert_eq!(hosts, ["h0", "h2", "h1"]);
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

/// Goal: a launch that didn't arrive is dropped, not guessed at: another process of the worker doesn't know what the
/// one before got. Method: a connection that breaks with the launch; the worker comes back without the executor, as the
/// same process and as another.
#[test]
fn a_launch_that_is_not_listed_is_dropped() {
    for (crashes, expected) in [(false, TaskState::Dropped), (true, TaskState::Gone)] {
        let mut world = with_worker(1);
        world.workers[0].breaks = true;
        let task = launch(&mut world, 1);
        assert_eq!(world.frameworks[1].states.get(&task), None);
        if crashes {
            world.crash_worker(0);
        }
        world.connect_worker(0);
        assert_eq!(world.frameworks[1].states[&task], expected);
        assert_eq!(world.master.counts().executors, 0);
    }
}

/// Goal: a silent worker's executors are unreachable after a minute, and run again when it is back; for a framework
/// that doesn't know the word they are lost, and end. Method: one executor of each framework, silence, and the return.
#[test]
fn silent_workers_are_unreachable() {
    for (framework, away, back) in
        [(1, TaskState::Unreachable, TaskState::Starting), (0, TaskState::Lost, TaskState::Killed)]
    {
        let mut world = with_worker(framework);
        let task = launch(&mut world, framework);
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
        launch(&mut world, 1);
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
        world.master.worker_subscribes(connection, said, Some("o0".to_owned()), world.now);
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
    let task = launch(&mut world, 1);
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
    let mut world = with_worker(1);
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
    launch(&mut world, 0);
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

/// Goal: a framework can't make a worker hang up by what it acknowledges. Method: acknowledgements of tasks that the
/// worker doesn't have; the world judges what the worker is sent.
#[test]
fn acknowledgements_of_other_tasks_go_nowhere() {
    let mut world = with_worker(1);
    let agent = world.workers[0].id.clone().unwrap();
    let framework_id = world.frameworks[1].id.clone().map(|value| FrameworkId { value });
    for task in ["", " ", "a b", "other", &"x".repeat(2000)] {
        let acknowledge = Some(call::Acknowledge {
            agent_id: agent.as_str().into(),
            task_id: task.into(),
            uuid: vec![7; 16],
        });
        let call = Call {
            r#type: Some(Type::Acknowledge.into()),
            framework_id: framework_id.clone(),
            acknowledge,
            ..Call::default()
        };
        let connection = world.frameworks[1].connection.unwrap();
        world.master.framework_calls(connection, call, world.now).unwrap();
        assert_eq!(world.master.take_actions(), [], "{task:?}");
    }
}

/// A task with few resources, so that many fit in an offer of the world.
pub(super) fn small_task(world: &TestWorld, framework: usize, id: &str) -> TaskInfo {
    let offer = world.frameworks[framework].offers.values().next().unwrap();
    let mut task = task_info(id, offer, 0.001, None);
    task.resources[1].scalar.as_mut().unwrap().value = 0.1;
    task
}

/// Goal: what a worker wouldn't take isn't sent, and is the task's error. Method: ids that can't be folders, and a
/// variable that is longer as JSON than a message may be; tasks beside them, one of which has a blank in its id, are
/// launched.
#[test]
fn launches_that_a_worker_refuses_are_errors() {
    let mut world = with_worker(1);
    let bad = ["x".repeat(256), "a/b".to_owned(), "..".to_owned(), "a\nb".to_owned()];
    let mut tasks: Vec<TaskInfo> = bad.iter().map(|id| small_task(&world, 1, id)).collect();
    let mut long = small_task(&world, 1, "long");
    let value = Some("\u{1}".repeat(1_900_000));
    let variable = Variable { name: "V".to_owned(), value, ..Variable::default() };
    let variables = vec![variable];
    long.command.as_mut().unwrap().environment = Some(Environment { variables });
    tasks.extend([long, small_task(&world, 1, "good"), small_task(&world, 1, "good too")]);
    let offer = offer_of(&world, 1).unwrap();
    world.accept_tasks(1, &offer, tasks);
    for id in bad.iter().map(String::as_str).chain(["long"]) {
        assert_eq!(world.frameworks[1].states.get(id), Some(&TaskState::Error), "{id:?}");
    }
    assert_eq!(world.workers[0].running.len(), 2);
}

/// Goal: a worker never has more executors than it can register with, ends included that aren't acknowledged, and one
/// framework leaves room for others. Method: many small tasks of one framework, all of which end while it is away; its
/// return with another task; and another framework.
#[test]
fn executors_of_a_worker_are_bounded() {
    let mut world = TestWorld::new(1, 2, None);
    world.frameworks[1].failover = 1e6;
    world.subscribe_framework(1);
    world.connect_worker(0);
    let half = EXECUTORS_MAX / 2;
    let ids = (0..half + 5).map(|number| number.to_string());
    let tasks = ids.map(|id| small_task(&world, 1, &id)).collect();
    let offer = offer_of(&world, 1).unwrap();
    world.accept_tasks(1, &offer, tasks);
    let dropped = |world: &TestWorld, framework: usize, as_what| {
        let states = world.frameworks[framework].states.values();
        states.filter(|state| **state == as_what).count()
    };
    assert_eq!(world.workers[0].running.len(), half);
    assert_eq!(dropped(&world, 1, TaskState::Dropped), 5);
    world.disconnect_framework(1);
    for key in world.workers[0].running.keys().cloned().collect::<Vec<_>>() {
        world.report(0, &key, ReportedState::Failed);
    }
    // It acknowledges the ends once they are repeated.
    world.master.frameworks.values_mut().for_each(|framework| drop(framework.missed.take()));
    world.subscribe_framework(1);
    let late = small_task(&world, 1, "late");
    let offer = offer_of(&world, 1).unwrap();
    world.accept_tasks(1, &offer, vec![late]);
    assert_eq!(world.frameworks[1].states.get("late"), Some(&TaskState::Dropped));
    world.subscribe_framework(0);
    assert!(offer_of(&world, 0).is_some());
    let tasks = (0..half + 1).map(|it| small_task(&world, 0, &format!("o{it}"))).collect();
    let offer = offer_of(&world, 0).unwrap();
    world.accept_tasks(0, &offer, tasks);
    assert_eq!(world.workers[0].running.len(), EXECUTORS_MAX);
    assert_eq!(dropped(&world, 0, TaskState::Lost), 1);
}

/// Goal: while a master waits for a worker, nobody takes its place by its address. Method: a stranger with the address
/// during recovery; then the worker, with its executor.
#[test]
fn an_awaited_worker_keeps_its_address() {
    let mut world = TestWorld::new(2, 2, None);
    world.frameworks[1].failover = 1e6;
    world.subscribe_framework(1);
    world.connect_worker(0);
    launch(&mut world, 1);
    world.restart_master();
    let said = WorkerSubscribe {
        session: "stranger".to_owned(),
        hostname: "x".to_owned(),
        address: "h0".to_owned(),
        ..WorkerSubscribe::default()
    };
    world.master.worker_subscribes(1000, said, Some("o0".to_owned()), world.now);
    let actions = world.master.take_actions();
    let is_refused = |action: &MasterAction| {
        matches!(
            action,
            MasterAction::TellWorker {
                to: 1000,
                event: WorkerEvent::Refused { may_retry: true, .. }
            }
        )
    };
    assert!(actions.iter().any(is_refused), "{actions:?}");
    world.connect_worker(0);
    world.subscribe_framework(1);
    assert!(!world.master.is_recovering());
    assert_eq!(world.master.counts().executors, 1);
}

/// Goal: a worker makes nothing up: frameworks hear of executors that the master launched there. Method: an update of
/// another executor, which is acknowledged at once; and a registration that lists one, which is to end and isn't
/// counted.
#[test]
fn executors_that_were_not_launched_are_ended() {
    let mut world = with_worker(1);
    let framework = world.frameworks[1].id.clone().unwrap();
    let key = ExecutorKey::new(framework, "strange");
    let uuid = "0".repeat(32);
    let update = ExecutorUpdate::new(key.clone(), uuid.clone(), ReportedState::Running, 1.0);
    let connection = world.workers[0].connection.unwrap();
    world.master.worker_calls(connection, WorkerCall::Update(update), world.now).unwrap();
    let ack = WorkerEvent::Ack { key: key.clone(), uuid };
    let actions = world.master.take_actions();
    assert_eq!(actions, [MasterAction::TellWorker { to: connection, event: ack }]);
    let (state, resources) = (ReportedState::Running, WorkerResources::default());
    let held =
        HeldExecutor { key: key.clone(), state, resources, tag: String::new(), is_lost: false };
    world.workers[0].running.insert(key, held);
    world.disconnect_worker(0);
    world.connect_worker(0);
    assert!(world.workers[0].running.is_empty(), "it was killed");
    assert_eq!(world.master.counts().executors, 0);
    assert!(world.frameworks[1].states.is_empty(), "the framework heard of it");
}

/// Goal: a master whose process was stopped doesn't take its own absence for the workers' silence. Method: a long time
/// without a tick, and after it a real silence.
#[test]
fn a_standstill_is_no_silence() {
    let mut world = TestWorld::new(1, 1, None);
    world.connect_worker(0);
    world.now += seconds(300);
    world.master.tick(world.now);
    world.deliver();
    assert_eq!(world.master.counts().workers, 1);
    for _ in 0..6 {
        world.now += seconds(10);
        world.master.tick(world.now);
    }
    assert_eq!(world.master.counts().workers, 0);
}

/// Goal: ticks at their usual interval are no standstill, however short the silence is after which workers are
/// unreachable. Method: the shortest, with ticks as the server makes them.
#[test]
fn ticks_are_no_standstill() {
    let settings = MasterSettings { worker_timeout: seconds(1), ..settings(1, None) };
    let mut master = StandaloneMaster::new(settings, Vec::new());
    for tick in 1..40 {
        master.tick(Duration::from_millis(tick * 251));
    }
    let stood_still = |notice: &MasterNotice| matches!(notice, MasterNotice::StoodStill { .. });
    assert!(!master.take_notices().iter().any(stood_still));
}

/// Goal: an end is acknowledged although its framework is torn down before it could do that. Method: an end while the
/// framework is away, whose time then is over.
#[test]
fn ends_of_a_gone_framework_are_acknowledged() {
    let mut world = TestWorld::new(1, 2, None);
    world.frameworks[1].failover = 30.0;
    world.subscribe_framework(1);
    world.connect_worker(0);
    launch(&mut world, 1);
    world.disconnect_framework(1);
    let key = world.workers[0].running.keys().next().unwrap().clone();
    world.report(0, &key, ReportedState::Failed);
    world.deliver();
    assert_eq!(world.workers[0].running.len(), 1);
    world.pass(seconds(31));
    assert!(world.workers[0].running.is_empty(), "its end was acknowledged");
}
