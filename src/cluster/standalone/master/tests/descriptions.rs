//! What frameworks say of themselves: their users, their principals and their failover times.

use super::cases::{decline, offer_of, seconds, small_task, with_worker};
use super::world::TestWorld;
use crate::cluster::standalone::master::frameworks::FRAMEWORKS_AWAY_MAX;
use crate::mesos_v1::messages::call::{self, Subscribe, Type, UpdateFramework};
use crate::mesos_v1::messages::{Call, FrameworkId, FrameworkInfo};

/// Goal: a task without a user is its framework's user's. Method: one without, and one with a user.
#[test]
fn executors_run_as_the_user_of_their_framework() {
    let mut world = with_worker(1);
    let mut other = small_task(&world, 1, "other");
    other.command.as_mut().unwrap().user = Some("root".to_owned());
    let tasks = vec![small_task(&world, 1, "own"), other];
    let offer = offer_of(&world, 1).unwrap();
    world.accept_tasks(1, &offer, tasks);
    let users = |id: &str| world.launches.get(id).and_then(|it| it.command.user.clone());
    assert_eq!((users("own").as_deref(), users("other").as_deref()), (Some("u1"), Some("root")));
}

/// Goal: frameworks that come and go don't fill the memory, and those of one principal don't drive others out. Method:
/// more frameworks of one principal than may be away, after one of another principal and one with an executor, which
/// are away for longest.
#[test]
fn frameworks_that_are_away_are_bounded() {
    let mut world = TestWorld::new(1, 2, None);
    world.connect_worker(0);
    for index in [0, 1] {
        world.frameworks[index].failover = 1e6;
        world.subscribe_framework(index);
    }
    let offer = offer_of(&world, 0).unwrap();
    world.accept(0, &offer, 1.0, None);
    world.disconnect_framework(0);
    world.disconnect_framework(1);
    for number in 0..FRAMEWORKS_AWAY_MAX as u64 + 10 {
        let framework_info = FrameworkInfo {
            principal: Some("crowd".to_owned()),
            failover_timeout: Some(1e6),
            ..FrameworkInfo::default()
        };
        let subscribe = Subscribe { framework_info, ..Subscribe::default() };
        world.master.framework_subscribes(10_000 + number, subscribe, world.now);
        world.master.connection_closed(10_000 + number, world.now);
        world.deliver();
    }
    assert_eq!(world.master.counts().frameworks, FRAMEWORKS_AWAY_MAX);
    assert_eq!(world.master.counts().executors, 1);
    for index in [0, 1] {
        world.subscribe_framework(index);
        assert!(world.frameworks[index].connection.is_some(), "{index} was torn down");
    }
}

/// Goal: a framework changes its description without a new connection, and nothing that must stay. Method: another
/// failover time, which holds when it is away and after a restart of the master; a suppressed role; another id,
/// principal and user, and a name that is too long; a request, which changes nothing.
#[test]
fn frameworks_change_their_description() {
    let mut world = with_worker(1);
    let id = world.frameworks[1].id.clone();
    let info = FrameworkInfo {
        id: id.map(|value| FrameworkId { value }),
        name: "another".to_owned(),
        user: "u1".to_owned(),
        failover_timeout: Some(1e6),
        ..FrameworkInfo::default()
    };
    let update = |world: &mut TestWorld, framework_info: FrameworkInfo, suppressed: &[&str]| {
        let suppressed_roles = suppressed.iter().map(|role| (*role).to_owned()).collect();
        let update = UpdateFramework { framework_info, suppressed_roles, ..Default::default() };
        let call = Call { update_framework: Some(update), ..Call::default() };
        world.call(1, Type::UpdateFramework, call)
    };
    for refused in [
        FrameworkInfo { id: Some("f".into()), ..info.clone() },
        FrameworkInfo { user: "root".to_owned(), ..info.clone() },
        FrameworkInfo { principal: Some("p".to_owned()), ..info.clone() },
        FrameworkInfo { checkpoint: Some(true), ..info.clone() },
        FrameworkInfo { name: "n".repeat(1 << 16), ..info.clone() },
    ] {
        assert!(!update(&mut world, refused, &[]));
    }
    assert!(update(&mut world, info.clone(), &["*"]));
    let offer = offer_of(&world, 1).unwrap();
    decline(&mut world, 1, 0.0);
    assert!(!world.frameworks[1].offers.contains_key(&offer));
    world.pass(seconds(20));
    assert_eq!(offer_of(&world, 1), None, "it is suppressed");
    assert!(update(&mut world, info, &[]));
    assert!(offer_of(&world, 1).is_some());
    let request = Call { request: Some(call::Request::default()), ..Call::default() };
    assert!(world.call(1, Type::Request, request));
    world.restart_master();
    world.pass(seconds(1000));
    assert_eq!(world.master.counts().frameworks, 1, "it may be away for longer");
}
