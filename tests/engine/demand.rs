//! What the engine asks of the cluster manager as the executor limit, the resource profile and subscriptions change.

use std::sync::Arc;
use std::time::Duration;

use offermill::engine::cluster_manager::Event;
use offermill::engine::{Engine, EngineOptions, Notice};
use offermill::launch::CommandTemplate;
use offermill::resources::Mebibytes;
use offermill::{DemandCall, TaskState};

use crate::recorder::{Call, Notices, Recorder, offer, update};
use crate::{Fixture, kernel};

/// Goal: suppress at the limit, revive when it rises, in this order. Method: fill up, raise the limit.
#[test]
fn demand_is_followed() {
    let fixture = Fixture::new(Some(1), |_| {});
    fixture.launch("o1", 1);
    fixture.cluster.wait_for(|call| (*call == Call::Suppress).then_some(()));
    fixture.engine.kernel().set_executor_limit(Some(2)).unwrap();
    fixture.cluster.wait_for(|call| (*call == Call::Revive).then_some(()));
    let calls = fixture.notices.wait_for_many(2, |notice| match notice {
        Notice::Demand(call) => Some(*call),
        _ => None,
    });
    assert_eq!(calls, [DemandCall::Suppress, DemandCall::Revive]);
}

/// Goal: a manager that is asked for executors learns each change of their number and of their resources, and all of
/// it again with each subscription. Method: subscribe, change the memory alone, then subscribe again.
#[test]
fn requests_follow_sizes_and_subscriptions() {
    let cluster = Arc::new(Recorder::default());
    let engine = Engine::start(
        kernel(Some(3)),
        Arc::clone(&cluster) as _,
        Arc::new(CommandTemplate::new(vec!["run".to_owned()])),
        EngineOptions::default(),
        Box::new(Notices::default()),
    );
    let engine = engine.unwrap();
    let mut expected = vec![vec![(3, 128)]];
    assert_eq!(cluster.requests_when(1), expected);
    let larger = engine.kernel().config().to_builder().memory_overhead(Some(Mebibytes::new(100)));
    engine.kernel().reconfigure(larger.build().unwrap());
    expected.push(vec![(3, 200)]);
    assert_eq!(cluster.requests_when(2), expected);
    for again in [false, true] {
        cluster.send(Event::Registered { framework_id: "F".to_owned(), again });
        expected.push(vec![(3, 200)]);
        assert_eq!(cluster.requests_when(expected.len()), expected);
    }
    engine.shutdown(Duration::ZERO);
}

/// Goal: with `finished_count_down`, executors that finished are not replaced. Method: three of three finish, one after
/// the other and one of them reported twice, with offers in between.
#[test]
fn finished_executors_are_not_replaced_when_counting_down() {
    let fixture = Fixture::new(Some(3), |options| options.finished_count_down = true);
    let executors = fixture.launch("o1", 5);
    assert_eq!(executors.len(), 3);
    for (round, executor) in executors.iter().enumerate() {
        fixture.cluster.send(update(executor, TaskState::Finished));
        fixture.cluster.send(update(executor, TaskState::Finished));
        let finished = |notice: &Notice| matches!(notice, Notice::Updated { .. }).then_some(());
        fixture.notices.wait_for_many(2 * (round + 1), finished);
        let left = u32::try_from(2 - round).unwrap();
        assert_eq!(fixture.engine.kernel().executor_limit(), Some(left), "duplicates don't count");
        fixture.cluster.send(Event::Offers(vec![offer(&format!("late-{round}"), "S1", 5)]));
    }
    fixture.cluster.declined_when(3);
    assert_eq!(fixture.engine.kernel().executor_limit(), Some(0));
    assert_eq!(fixture.engine.kernel().offer_counts().executors, 3);
}

/// Goal: a limit that is set while executors finish is in force from then on, lowered by those that finish after it.
/// Method: many finish, one after the other, while limits far apart are set.
#[test]
fn finished_executors_undo_no_limit() {
    const EXECUTORS: u32 = 2000;
    const STEP: u32 = 10_000;
    let fixture = Fixture::new(Some(EXECUTORS), |options| options.finished_count_down = true);
    let executors = fixture.launch("o1", EXECUTORS);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            executors.iter().for_each(|it| fixture.cluster.send(update(it, TaskState::Finished)));
        });
        for limit in (1..=300).map(|step| step * STEP) {
            fixture.engine.set_executor_limit(Some(limit)).unwrap();
            std::thread::sleep(Duration::from_micros(100));
            let in_force = fixture.engine.kernel().executor_limit().unwrap();
            assert!(in_force <= limit && limit - in_force <= EXECUTORS, "{in_force}, not {limit}");
        }
    });
    let applied = |notice: &Notice| matches!(notice, Notice::Updated { .. }).then_some(());
    fixture.notices.wait_for_many(EXECUTORS as usize, applied);
}
