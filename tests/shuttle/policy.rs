//! Limits and settings that change during batches, and the demand that follows.

use std::time::Duration;

use offermill::config::UnreachableRule;
use offermill::{DemandCall, TaskState};
use shuttle::thread::JoinHandle;

use crate::harness::{Harness, join};
use crate::play;
use crate::world::{Setup, at};

fn setup(cores: u64, limit: u32) -> Setup {
    Setup {
        core_cap: Some(8000),
        executor_cores: Some(cores * 1000),
        limit: Some(limit),
        revive_interval: Duration::ZERO,
        ..Setup::default()
    }
}

/// Goal: once a setter has returned, nothing is placed beyond its limit or with an older size. Method: four handlers
/// offer while one thread lowers and raises the limit, and another changes the size as well. After each change the
/// setter checks the totals, which may only fall to the limit, or stay below it.
#[test]
fn settings_hold_once_they_are_set() {
    play("policy/limit-reconfigure", 1000, || {
        let harness = Harness::new(&setup(1, 6));
        let handlers: Vec<_> = (0..4)
            .map(|n| {
                harness.spawn(move |harness| {
                    let own = format!("S{n}");
                    let mut handler = harness.kernel.handler();
                    for _ in 0..3 {
                        harness.offer(&mut handler, &[&own], 2.0, at(1));
                    }
                })
            })
            .collect();
        let setter = harness.spawn(|harness| {
            for (cores, limit) in [(1, 2), (2, 0), (1, 1), (2, 4)] {
                if cores == 1 {
                    harness.kernel.set_executor_limit(Some(limit)).unwrap();
                } else {
                    harness.kernel.reconfigure(setup(cores, limit).config());
                }
                let mut before = harness.kernel.totals().executors;
                for _ in 0..3 {
                    let executors = harness.kernel.totals().executors;
                    assert!(
                        executors <= before.max(limit),
                        "{before} to {executors} beyond {limit}"
                    );
                    before = executors;
                }
            }
        });
        let ends = harness.spawn(|harness| {
            for _ in 0..3 {
                let last = harness.placed().last().copied();
                last.into_iter()
                    .for_each(|id| drop(harness.update(id, TaskState::Finished, at(2))));
                let totals = harness.kernel.totals();
                assert!(totals.executors <= 6 && totals.cores.whole_cores() <= 8, "{totals:?}");
            }
        });
        join(handlers);
        join([setter, ends]);
        harness.flush_releases();
    });
}

/// Goal: of two concurrent setters, neither's change is lost. Method: one sets the limit, the other the size, with a
/// handler that reads both; in the end both are in force.
#[test]
fn settings_of_two_threads_add_up() {
    play("policy/two-setters", 1000, || {
        let harness = Harness::new(&setup(1, 6));
        let limit = harness.spawn(|harness| harness.kernel.set_executor_limit(Some(3)).unwrap());
        let size = harness.spawn(|harness| harness.kernel.reconfigure(setup(2, 6).config()));
        let other = harness.spawn(|harness| harness.kernel.set_executor_limit(Some(3)).unwrap());
        let handlers = [(); 2].map(|()| {
            harness.spawn(|harness| {
                let mut handler = harness.kernel.handler();
                harness.offer(&mut handler, &["S0"], 2.0, at(1));
            })
        });
        join([limit, size, other]);
        join(handlers);
        let limit = harness.kernel.executor_limit().unwrap();
        assert!(limit == 3 || limit == 6, "{limit}");
        assert_eq!(harness.kernel.config(), setup(2, limit).config());
        harness.flush_releases();
    });
}

/// A kernel at its cap, of which the cluster was told, and the threads that end all executors.
fn suppressed() -> (Harness, Vec<JoinHandle<()>>) {
    let harness = Harness::new(&setup(1, 3));
    let mut handler = harness.kernel.handler();
    let placed = harness.offer(&mut handler, &["S0"], 4.0, at(1)).placed;
    assert_eq!(harness.kernel.poll_demand(at(2)), Some(DemandCall::Suppress));
    let ends = placed.into_iter().map(|id| {
        harness.spawn(move |harness| drop(harness.update(id, TaskState::Finished, at(3))))
    });
    let ends = ends.collect();
    (harness, ends)
}

fn poll(harness: &Harness) -> Vec<DemandCall> {
    (0..4).filter_map(|n| harness.kernel.poll_demand(at(4 + n))).collect()
}

fn revives(calls: &[DemandCall]) -> usize {
    calls.iter().filter(|call| **call == DemandCall::Revive).count()
}

/// Goal: however many executors end at once while the kernel suppresses, there is one revive. Method: at the cap, three
/// threads end all executors while two poll; the last poll comes when no other thread runs.
#[test]
fn many_ends_give_one_revive() {
    play("policy/one-revive", 1500, || {
        let (harness, ends) = suppressed();
        let polls = [(); 2].map(|()| harness.spawn(poll));
        join(ends);
        let mut calls = join(polls).concat();
        calls.extend(harness.kernel.poll_demand(at(2000)));
        assert_eq!(calls, [DemandCall::Revive]);
        harness.flush_releases();
    });
}

/// Goal: no revive is lost when offers are refused at a cap that vanishes, and none is returned without a reason.
/// Method: as above, with three handlers whose offers are too small for an executor, one that fills the kernel again
/// and empties it, and one thread that polls. Every thread that made room or refused polls afterwards; so at the end,
/// when there is room, nothing is due.
#[test]
fn no_revive_is_lost() {
    play("policy/demand", 1500, || {
        let (harness, ends) = suppressed();
        let poll = |harness: &Harness, millis| harness.kernel.poll_demand(at(millis)).into_iter();
        let ends = ends.into_iter().map(|end| {
            harness.spawn(move |harness| {
                end.join().unwrap();
                poll(harness, 4).collect::<Vec<_>>()
            })
        });
        let ends: Vec<_> = ends.collect();
        let refused = [(); 3].map(|()| {
            harness.spawn(move |harness| {
                let mut handler = harness.kernel.handler();
                harness.offer(&mut handler, &["S1"], 0.5, at(3));
                poll(harness, 5).collect::<Vec<_>>()
            })
        });
        let filled = harness.spawn(move |harness| {
            let mut handler = harness.kernel.handler();
            let mut calls = Vec::new();
            for _ in 0..2 {
                for id in harness.offer(&mut handler, &["S2"], 3.0, at(3)).placed {
                    harness.update(id, TaskState::Finished, at(6));
                    calls.extend(poll(harness, 6));
                }
                calls.extend(poll(harness, 6));
            }
            calls
        });
        let polls = harness
            .spawn(move |harness| poll(harness, 7).chain(poll(harness, 8)).collect::<Vec<_>>());
        let mut calls = join(ends).concat();
        calls.extend(join(refused).concat());
        calls.extend(join([filled, polls]).concat());
        assert_eq!(
            harness.kernel.poll_demand(at(9)),
            None,
            "something is left to be said: {calls:?}"
        );
        // A suppression requires one, as the first did, and each batch with a refusal at most one.
        let suppressed = calls.len() - revives(&calls);
        assert!((1..=1 + 5).contains(&(revives(&calls) - suppressed)), "{calls:?}");
        harness.flush_releases();
    });
}

/// Goal: no version that a batch follows is reused. Method: two handlers offer while the limit is changed 256 times, so
/// that the version would be the same again; the last limit leaves no room, not even for a later offer.
#[test]
fn a_batch_is_not_deceived_by_many_changes() {
    play("policy/many-changes", 300, || {
        let harness = Harness::new(&setup(1, 6));
        let handlers = [(); 2].map(|()| {
            harness.spawn(|harness| {
                let mut handler = harness.kernel.handler();
                harness.offer(&mut handler, &["S0"], 1.0, at(1));
            })
        });
        let setter = harness.spawn(|harness| {
            for change in 1..=256 {
                harness.kernel.set_executor_limit(Some(256 - change)).unwrap();
            }
            let executors = harness.kernel.totals().executors;
            harness.offer(&mut harness.kernel.handler(), &["S0"], 1.0, at(1));
            executors
        });
        let after_setting = join([setter])[0];
        join(handlers);
        assert_eq!(harness.kernel.totals().executors, after_setting, "placed under an old limit");
        harness.flush_releases();
    });
}

/// Goal: two threads that drive a kernel together return what one would, and give up each executor once. Method: both
/// poll and tick at the limit, while one executor is unreachable and the other ends. Room only grows, and the batch
/// that reached the limit had offers refused: so there is one revive, and at most one suppression before it.
#[test]
fn two_drivers_do_the_work_of_one() {
    play("policy/two-drivers", 1000, || {
        let harness = Harness::new(&Setup {
            unreachable: UnreachableRule {
                release_after: Some(Duration::from_millis(40)),
                forget_after: Duration::from_secs(400),
            },
            ..setup(1, 2)
        });
        let placed = harness.offer(&mut harness.kernel.handler(), &["S0"], 2.0, at(1)).placed;
        let (lost, ends) = (placed[0], placed[1]);
        harness.update(lost, TaskState::Unreachable, at(2));
        let drivers = [(); 2].map(|()| {
            harness.spawn(|harness| {
                let mut calls = Vec::new();
                let mut given_up = 0;
                for now in [10, 60, 61] {
                    calls.extend(harness.kernel.poll_demand(at(now)));
                    given_up += harness.kernel.tick(at(now)).given_up.len();
                    calls.extend(harness.kernel.poll_demand(at(now)));
                }
                (calls, given_up)
            })
        });
        let updates =
            harness.spawn(move |harness| drop(harness.update(ends, TaskState::Finished, at(3))));
        let (calls, given_up): (Vec<_>, Vec<_>) = join(drivers).into_iter().unzip();
        join([updates]);
        assert_eq!(given_up.iter().sum::<usize>(), 1, "given up once");
        let mut calls = calls.concat();
        calls.extend(harness.kernel.poll_demand(at(2000)));
        assert!(harness.kernel.poll_demand(at(2001)).is_none(), "all is said: {calls:?}");
        assert!(revives(&calls) == 1 && calls.len() <= 2, "{calls:?}");
    });
}
