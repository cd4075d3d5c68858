//! Snapshots of the kernel, taken during all other calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use offermill::config::UnreachableRule;
use offermill::{Phase, Snapshot, TaskState};

use crate::harness::{Harness, join};
use crate::world::{Setup, at};
use crate::{is_wanted, play};

/// The number of exact snapshots taken while others worked. In std's atomic, which is not part of the scene.
static EXACT: AtomicUsize = AtomicUsize::new(0);

fn adds_up(snapshot: &Snapshot) {
    let counted = snapshot.executors.iter().filter(|view| view.phase != Phase::GivenUp);
    let (executors, cores) = counted.fold((0, 0), |(executors, cores), view| {
        (executors + 1, cores + view.resources.cores.millis())
    });
    let totals = snapshot.totals;
    assert_eq!((executors, cores), (totals.executors, totals.cores.millis()), "{snapshot:?}");
}

/// Goal: an exact snapshot adds up to its totals and is within the caps, each has a higher number than the one before,
/// and the totals are those of some instant. Method: two threads take snapshots while two handlers place executors of
/// different sizes and three threads end them, report them unreachable and give them up.
#[test]
fn exact_snapshots_add_up() {
    play("snapshots/all", 1500, || {
        let release_after = Some(Duration::from_millis(1));
        let forget_after = Duration::from_secs(1);
        let harness = Harness::new(&Setup {
            core_cap: Some(6000),
            executor_cores: None,
            unreachable: UnreachableRule { release_after, forget_after },
            ..Setup::default()
        });
        let handlers: Vec<_> = [("S0", 1.0), ("S1", 2.0)]
            .into_iter()
            .map(|(agent, cpus)| {
                harness.spawn(move |harness| {
                    let mut handler = harness.kernel.handler();
                    for n in 0..2 {
                        harness.offer(&mut handler, &[agent], cpus, at(n));
                    }
                })
            })
            .collect();
        let updates: Vec<_> = [TaskState::Finished, TaskState::Unreachable]
            .into_iter()
            .map(|state| {
                harness.spawn(move |harness| {
                    for _ in 0..3 {
                        let last = harness.placed().last().copied();
                        last.into_iter().for_each(|id| drop(harness.update(id, state, at(3))));
                        let _ = harness.kernel.totals();
                    }
                })
            })
            .collect();
        let ticks = harness.spawn(|harness| {
            for n in 1..3 {
                harness.kernel.tick(at(10 * n));
            }
        });
        let observers = [(); 2].map(|()| {
            harness.spawn(|harness| {
                let mut number = 0;
                for _ in 0..3 {
                    let snapshot = harness.kernel.snapshot(at(4));
                    assert!(snapshot.number > number);
                    assert!(snapshot.totals.cores.whole_cores() <= 6, "{snapshot:?}");
                    number = snapshot.number;
                    if snapshot.exact {
                        adds_up(&snapshot);
                        EXACT.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        });
        join(handlers);
        join(updates);
        join([ticks]);
        join(observers);
        harness.flush_releases();
        adds_up(&harness.kernel.snapshot(at(9)));
    });
    let exact = EXACT.load(Ordering::Relaxed);
    println!("exact snapshots while all ran: {exact}");
    assert!(exact > 0 || !is_wanted("snapshots/all"), "the scene has to test something");
}
