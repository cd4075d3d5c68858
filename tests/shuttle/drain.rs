//! Close and drain, with handlers in progress.

use std::collections::BTreeSet;
use std::time::Duration;

use offermill::{DrainReport, Fate, Reason, TaskState};

use crate::harness::{Harness, join};
use crate::play;
use crate::world::{Setup, at, secs};

fn named(report: &DrainReport) -> BTreeSet<u64> {
    report.executors.iter().map(|row| row.executor.id.sequence()).collect()
}

fn spawn_handlers(harness: &Harness, handlers: u64) -> Vec<shuttle::thread::JoinHandle<()>> {
    let spawn = |n| {
        harness.spawn(move |harness: &Harness| {
            let own = format!("S{n}");
            let mut handler = harness.kernel.handler();
            for _ in 0..2 {
                let closed = harness.kernel.totals().closed;
                let answer = harness.offer(&mut handler, &["S0", &own], 1.0, at(1));
                let stopping = answer.declines.iter().all(|reason| *reason == Reason::Stopping);
                assert!(!closed || answer.placed.is_empty() && stopping, "placed after the close");
            }
        })
    };
    (0..handlers).map(spawn).collect()
}

/// Goal: every executor placed is listed and gets its fate, both callers return when the last has ended, and they
/// report the same executors. Method: two threads close and drain without a deadline, so that a lost wake-up is a
/// deadlock, while three handlers are in the middle of batches and one thread ends the executors it knows. The rest are
/// ended after the handlers have finished.
#[test]
fn two_callers_drain_while_handlers_run() {
    play("drain/two-callers", 1500, || {
        let harness = Harness::new(&Setup { core_cap: Some(4000), ..Setup::default() });
        let handlers = spawn_handlers(&harness, 3);
        let ends = harness.spawn(|harness| {
            for id in harness.placed() {
                harness.update(id, TaskState::Finished, at(2));
            }
        });
        let drains = [(); 2].map(|()| {
            harness.spawn(|harness| {
                let left = harness.kernel.close();
                harness.kernel.kill_executors(left.iter().map(|target| target.id));
                harness.kernel.drain(Duration::MAX)
            })
        });
        join(handlers);
        join([ends]);
        for target in harness.kernel.close() {
            harness.update(target.id, TaskState::Killed, at(3));
        }
        let reports = join(drains);
        let last = harness.kernel.drain(Duration::ZERO);
        for report in &reports {
            assert!(report.drained && last.drained);
            let alive = report.executors.iter().any(|row| row.fate == Fate::Alive);
            assert!(!alive, "drained, and alive: {report:?}");
            assert_eq!(named(report), named(&last), "the reports name the same executors");
        }
        let ended: BTreeSet<u64> = named(&last);
        assert!(harness.placed().iter().all(|id| harness.has_ended(*id)));
        assert!(ended.len() <= harness.placed().len(), "somebody on the roll who never was");
        harness.flush_releases();
    });
}

/// Goal: a drain whose timeout has passed names all executors that are left, and says drained only if none is. Method:
/// deadlines chosen by the schedule, while two threads end some executors and one is never ended.
#[test]
fn a_drain_that_times_out_names_those_left() {
    play("drain/deadline", 1500, || {
        let harness = Harness::new(&Setup::default());
        let mut handler = harness.kernel.handler();
        let placed = harness.offer(&mut handler, &["S0"], 4.0, at(1)).placed;
        let left = placed[3];
        let ends = [(); 2].map(|()| {
            let ids = [placed[0], placed[1], placed[2]];
            harness.spawn(move |harness| {
                ids.into_iter().for_each(|id| drop(harness.update(id, TaskState::Finished, at(2))));
            })
        });
        let drains = [secs(1), secs(1), Duration::ZERO].map(|timeout| {
            harness.spawn(move |harness| {
                let report = harness.kernel.drain(timeout);
                assert!(!report.drained, "one was never ended");
                let all = report.executors.iter();
                all.filter(|row| row.fate == Fate::Alive).map(|row| row.executor.id).collect()
            })
        });
        join(ends);
        let alive: Vec<Vec<_>> = join(drains);
        assert!(alive.iter().all(|alive| alive.contains(&left)), "{alive:?}");
        harness.update(left, TaskState::Killed, at(3));
        assert!(harness.kernel.drain(Duration::ZERO).drained);
        harness.flush_releases();
    });
}

/// Goal: a close while executors end and others are placed misses none. Method: two threads close at once; three
/// handlers place executors and end them themselves; both closers' lists contain only executors that were placed.
#[test]
fn no_executor_is_missing_on_the_list() {
    play("drain/list", 1500, || {
        let harness = Harness::new(&Setup::default());
        let handlers: Vec<_> = (0..3)
            .map(|n| {
                harness.spawn(move |harness| {
                    let own = format!("S{n}");
                    let mut handler = harness.kernel.handler();
                    for _ in 0..2 {
                        for id in harness.offer(&mut handler, &[&own], 2.0, at(1)).placed {
                            if id.sequence() % 2 == 0 {
                                harness.update(id, TaskState::Failed, at(2));
                            }
                        }
                    }
                })
            })
            .collect();
        let closers = [(); 2].map(|()| harness.spawn(|harness| harness.kernel.close()));
        join(handlers);
        join(closers);
        let left: BTreeSet<u64> =
            harness.kernel.close().iter().map(|target| target.id.sequence()).collect();
        let alive = harness.placed().into_iter().filter(|id| !harness.has_ended(*id));
        assert_eq!(left, alive.map(|id| id.sequence()).collect(), "the roll and those who live");
        harness.flush_releases();
    });
}
