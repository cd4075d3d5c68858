//! Executors that return and become unreachable again around each deadline.

use std::time::Duration;

use offermill::config::UnreachableRule;
use offermill::{ExecutorId, Phase, TaskState, Ticked};

use crate::harness::{Harness, join};
use crate::play;
use crate::world::{Setup, at};

const RELEASE_MS: u64 = 40;
const FORGET_MS: u64 = 400;

fn harness() -> Harness {
    Harness::new(&Setup {
        core_cap: Some(6000),
        limit: Some(6),
        unreachable: UnreachableRule {
            release_after: Some(Duration::from_millis(RELEASE_MS)),
            forget_after: Duration::from_millis(FORGET_MS),
        },
        ..Setup::default()
    })
}

fn tick(harness: &Harness, now: u64) -> Ticked {
    let ticked = harness.kernel.tick(at(now));
    ticked.forgotten.iter().for_each(|target| harness.record_end(target.id));
    ticked
}

/// The executors that are unreachable and not given up.
fn unreachable(harness: &Harness) -> Vec<ExecutorId> {
    let shot = harness.kernel.snapshot(at(0));
    let unseen = shot.executors.iter().filter(|row| row.phase == Phase::Unreachable);
    let mut unseen: Vec<ExecutorId> = unseen.map(|row| row.id).collect();
    unseen.sort_unstable();
    unseen
}

/// Reports some executors running and unreachable again, one after the other.
fn flap(harness: &Harness, executors: &[ExecutorId], now: u64) {
    for id in executors {
        harness.update(*id, TaskState::Running, at(now));
        harness.update(*id, TaskState::Unreachable, at(now));
    }
}

/// Three ticks run at `deadline` while all executors but the first return and leave one millisecond before; one of them
/// is reported by two threads, and another replaces the first. None may be given up or forgotten for its new absence;
/// each must be when that has lasted long enough.
fn around(harness: &Harness, deadline: u64, executors: &[ExecutorId]) {
    let now = deadline - 1;
    let ticks = [(); 3].map(|()| harness.spawn(move |harness| tick(harness, deadline)));
    let flaps: Vec<_> = [&executors[1..], &executors[2..]]
        .map(<[ExecutorId]>::to_vec)
        .into_iter()
        .map(|some| harness.spawn(move |harness| flap(harness, &some, now)))
        .collect();
    let first = executors[0];
    let replacement = harness.spawn(move |harness| {
        if !harness.has_ended(first) {
            harness.update(first, TaskState::Failed, at(now));
        }
        let mut handler = harness.kernel.handler();
        for id in harness.offer(&mut handler, &["S2"], 1.0, at(now)).placed {
            harness.update(id, TaskState::Unreachable, at(now));
        }
    });
    join(ticks);
    join(flaps);
    join([replacement]);
    let mut living: Vec<ExecutorId> =
        harness.placed().into_iter().filter(|id| !harness.has_ended(*id)).collect();
    living.sort_unstable();
    assert_eq!(unreachable(harness), living, "given up 1 ms after it was seen");
    let early = tick(harness, now + RELEASE_MS - 1);
    assert!(early.given_up.is_empty() && early.forgotten.is_empty(), "by another's clock");
    harness.flush_releases();
}

fn lost(harness: &Harness) -> Vec<ExecutorId> {
    let mut handler = harness.kernel.handler();
    let executors = harness.offer(&mut handler, &["S0"], 3.0, at(0)).placed;
    assert_eq!(executors.len(), 3);
    executors.iter().for_each(|id| drop(harness.update(*id, TaskState::Unreachable, at(10))));
    executors
}

/// Goal: executors that return and leave when they are due are given up for their current absence alone, and then on
/// time. Method: see [`around`].
#[test]
fn flapping_executors_are_given_up_on_time() {
    play("flapping/give-up", 1500, || {
        let harness = harness();
        let executors = lost(&harness);
        around(&harness, 10 + RELEASE_MS, &executors);
        let due = unreachable(&harness).len();
        assert_eq!(tick(&harness, 9 + 2 * RELEASE_MS).given_up.len(), due, "a clock is lost");
        harness.flush_releases();
    });
}

/// Goal: the same for executors that were given up, when they are due to be forgotten. Method: the same, one deadline
/// later.
#[test]
fn flapping_executors_are_forgotten_on_time() {
    play("flapping/forget", 1500, || {
        let harness = harness();
        let executors = lost(&harness);
        assert_eq!(tick(&harness, 10 + RELEASE_MS).given_up.len(), 3);
        let deadline = 10 + RELEASE_MS + FORGET_MS;
        around(&harness, deadline, &executors);
        let due = unreachable(&harness).len();
        let given_up = deadline - 1 + RELEASE_MS;
        assert_eq!(tick(&harness, given_up).given_up.len(), due, "a clock is lost");
        assert_eq!(tick(&harness, given_up + FORGET_MS - 1).forgotten.len(), 0);
        assert_eq!(tick(&harness, given_up + FORGET_MS).forgotten.len(), due, "a clock is lost");
        harness.flush_releases();
    });
}
