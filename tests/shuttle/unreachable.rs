//! Executors that become unreachable, are given up, come back, or are forgotten.

use std::time::Duration;

use offermill::config::UnreachableRule;
use offermill::{Change, ExecutorId, Outcome, TaskState};

use crate::harness::{Harness, join};
use crate::play;
use crate::world::{Setup, at};

const LIMIT: u32 = 3;

fn harness() -> Harness {
    Harness::new(&Setup {
        core_cap: Some(u64::from(LIMIT) * 1000),
        limit: Some(LIMIT),
        unreachable: UnreachableRule {
            release_after: Some(Duration::from_millis(40)),
            forget_after: Duration::from_millis(400),
        },
        ..Setup::default()
    })
}

fn fill(harness: &Harness) -> Vec<ExecutorId> {
    let mut handler = harness.kernel.handler();
    harness.offer(&mut handler, &["S0", "S1"], 2.0, at(1)).placed
}

fn watch(harness: &Harness, times: usize) {
    for _ in 0..times {
        let totals = harness.kernel.totals();
        assert!(totals.executors <= LIMIT && totals.cores.whole_cores() <= 3, "{totals:?}");
    }
}

fn tick(harness: &Harness, millis: u64) {
    for target in harness.kernel.tick(at(millis)).forgotten {
        harness.record_end(target.id);
    }
}

/// Goal: an executor is counted, given up or ended, never two of these at once, and the caps hold when some come back
/// and find their room used. Method: three executors are unreachable; ticks give them up and forget them while two
/// threads report them back, one reports ends, and a handler places others.
#[test]
fn a_return_is_counted_once() {
    play("unreachable/return", 1500, || {
        let harness = harness();
        for id in fill(&harness) {
            harness.update(id, TaskState::Unreachable, at(2));
        }
        let ticks = harness.spawn(|harness| {
            tick(harness, 50);
            watch(harness, 1);
            tick(harness, 500);
        });
        let returns: Vec<_> = [TaskState::Running, TaskState::Staging]
            .into_iter()
            .map(|state| {
                harness.spawn(move |harness| {
                    for id in harness.placed() {
                        harness.update(id, state, at(60));
                        watch(harness, 1);
                    }
                })
            })
            .collect();
        let ends = harness.spawn(|harness| {
            for id in harness.placed().into_iter().skip(1) {
                harness.update(id, TaskState::Failed, at(70));
            }
        });
        let handler = harness.spawn(|harness| {
            let mut handler = harness.kernel.handler();
            for n in 0..2 {
                harness.offer(&mut handler, &["S2"], 1.0, at(60 + n));
            }
        });
        let observer = harness.spawn(|harness| watch(harness, 15));
        join([ticks, ends, handler, observer]);
        join(returns);
        harness.flush_releases();
    });
}

/// Goal: however many threads report one return, it counts once, and an executor that is refused is to be killed: none
/// is left running uncounted. Method: one executor is given up, with room for one; four threads report it back at once.
/// (One may be refused because another has used the room for it; with more than two, it may be readmitted later all the
/// same.)
#[test]
fn a_return_counts_once() {
    play("unreachable/one-return", 1500, || {
        let harness = harness();
        let placed = fill(&harness);
        harness.update(placed[0], TaskState::Unreachable, at(2));
        tick(&harness, 50);
        let returns = [(); 4].map(|()| {
            let id = placed[0];
            harness.spawn(move |harness| harness.update(id, TaskState::Running, at(60)))
        });
        let outcomes = join(returns);
        let is_back = |outcome: &&Outcome| outcome.change == Change::Readmitted;
        let returned = outcomes.iter().filter(is_back).count();
        let killed = outcomes.iter().any(|outcome| outcome.kill);
        assert!(returned <= 1 && (returned == 1 || killed), "{outcomes:?}");
        assert_eq!(harness.kernel.totals().executors as usize, placed.len() - 1 + returned);
        harness.flush_releases();
    });
}

/// Goal: a lost agent's executors are put in doubt and nothing more; whatever races with it, each is freed once.
/// Method: the agent is lost while its executors run, become unreachable, return and end, and a handler offers it
/// again.
#[test]
fn a_lost_agent_frees_nothing_by_itself() {
    play("unreachable/agent-lost", 1000, || {
        let harness = harness();
        let placed = fill(&harness);
        let lost = [(); 2].map(|()| {
            harness.spawn(|harness| {
                drop(harness.kernel.agent_lost("S0", at(10)));
                watch(harness, 2);
            })
        });
        let updates: Vec<_> = placed
            .into_iter()
            .map(|id| {
                harness.spawn(move |harness| {
                    harness.update(id, TaskState::Unreachable, at(11));
                    harness.update(id, TaskState::Running, at(12));
                    harness.update(id, TaskState::Lost, at(13));
                    harness.update(id, TaskState::Running, at(14));
                })
            })
            .collect();
        let handler = harness.spawn(|harness| {
            let mut handler = harness.kernel.handler();
            for n in 0..3 {
                harness.offer(&mut handler, &["S0", "S3"], 1.0, at(15 + n));
            }
        });
        join(lost);
        join(updates);
        join([handler]);
        harness.flush_releases();
    });
}

/// Goal: once a close has returned, no further executor is counted, not even one that returns. Method: given-up
/// executors return while the kernel is closed and drained; the closer reads the count all the time.
#[test]
fn no_executor_comes_back_after_the_close() {
    play("unreachable/return-close", 1500, || {
        let harness = harness();
        for id in fill(&harness).into_iter().skip(1) {
            harness.update(id, TaskState::Unreachable, at(2));
        }
        tick(&harness, 50);
        let closer = harness.spawn(|harness| {
            harness.kernel.close();
            let mut before = harness.kernel.totals().executors;
            for _ in 0..8 {
                let executors = harness.kernel.totals().executors;
                assert!(executors <= before, "{before} to {executors} after the close");
                before = executors;
            }
        });
        let returns = [(); 2].map(|()| {
            harness.spawn(|harness| {
                for id in harness.placed().into_iter().skip(1) {
                    harness.update(id, TaskState::Running, at(60));
                }
            })
        });
        let drain = harness.spawn(|harness| harness.kernel.drain(Duration::MAX));
        let vanish = harness.spawn(|harness| {
            for id in harness.placed() {
                harness.update(id, TaskState::Unreachable, at(70));
            }
            tick(harness, 120);
        });
        join(returns);
        join([closer, vanish]);
        for id in harness.placed() {
            harness.update(id, TaskState::Killed, at(130));
        }
        assert!(join([drain]).iter().all(|report| report.drained));
        harness.flush_releases();
    });
}
