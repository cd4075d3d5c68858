//! Executors that go out of sight, are given up, come back, or are forgotten.

use std::time::Duration;

use offermill::config::UnreachableRule;
use offermill::{Change, ExecutorId, TaskState};

use crate::play;
use crate::world::{Setup, at};
use crate::yard::{Yard, join};

const LIMIT: u32 = 3;

fn yard() -> Yard {
    Yard::new(&Setup {
        core_cap: Some(u64::from(LIMIT) * 1000),
        limit: Some(LIMIT),
        unreachable: UnreachableRule {
            release_after: Some(Duration::from_millis(40)),
            forget_after: Duration::from_millis(400),
        },
        ..Setup::default()
    })
}

fn fill(yard: &Yard) -> Vec<ExecutorId> {
    let mut handler = yard.kernel.handler();
    yard.offer(&mut handler, &["S0", "S1"], 2.0, at(1)).placed
}

fn watch(yard: &Yard, times: usize) {
    for _ in 0..times {
        let totals = yard.kernel.totals();
        assert!(totals.executors <= LIMIT && totals.cores.whole_cores() <= 3, "{totals:?}");
    }
}

fn tick(yard: &Yard, millis: u64) {
    for target in yard.kernel.tick(at(millis)).forgotten {
        yard.note_end(target.id);
    }
}

/// Goal: an executor is counted, given up or ended, never two of these at once, and the caps hold when some come back
/// to find their place taken. Method: three executors are out of sight; ticks give them up and forget them while two
/// threads report them back, one reports ends, and a handler places others.
#[test]
fn who_comes_back_is_counted_once() {
    play("limbo/return", 1500, || {
        let yard = yard();
        for id in fill(&yard) {
            yard.tell(id, TaskState::Unreachable, at(2));
        }
        let ticks = yard.spawn(|yard| {
            tick(yard, 50);
            watch(yard, 1);
            tick(yard, 500);
        });
        let returns: Vec<_> = [TaskState::Running, TaskState::Staging]
            .into_iter()
            .map(|state| {
                yard.spawn(move |yard| {
                    for id in yard.placed() {
                        yard.tell(id, state, at(60));
                        watch(yard, 1);
                    }
                })
            })
            .collect();
        let ends = yard.spawn(|yard| {
            for id in yard.placed().into_iter().skip(1) {
                yard.tell(id, TaskState::Failed, at(70));
            }
        });
        let handler = yard.spawn(|yard| {
            let mut handler = yard.kernel.handler();
            for n in 0..2 {
                yard.offer(&mut handler, &["S2"], 1.0, at(60 + n));
            }
        });
        let observer = yard.spawn(|yard| watch(yard, 15));
        join([ticks, ends, handler, observer]);
        join(returns);
        yard.settle();
    });
}

/// Goal: however many report one return, it counts once, and who is not let in is to be killed: none is left running
/// that nobody counts. Method: one executor is given up, with room for one; four threads report it back at once. (One
/// may be refused because another has taken the room for it; with more than two, it may be let in all the same later.)
#[test]
fn a_return_counts_once() {
    play("limbo/one-return", 1500, || {
        let yard = yard();
        let placed = fill(&yard);
        yard.tell(placed[0], TaskState::Unreachable, at(2));
        tick(&yard, 50);
        let returns = [(); 4].map(|()| {
            let id = placed[0];
            yard.spawn(move |yard| yard.tell(id, TaskState::Running, at(60)))
        });
        let outcomes = join(returns);
        let returned = outcomes.iter().filter(|outcome| outcome.change == Change::Returned).count();
        let killed = outcomes.iter().any(|outcome| outcome.kill);
        assert!(returned <= 1 && (returned == 1 || killed), "{outcomes:?}");
        assert_eq!(yard.kernel.totals().executors as usize, placed.len() - 1 + returned);
        yard.settle();
    });
}

/// Goal: a lost agent's executors are doubted and nothing more; whatever races with it, each is freed once. Method:
/// the agent is lost while its executors run, vanish, return and end, and a handler offers it again.
#[test]
fn a_lost_agent_frees_nothing_by_itself() {
    play("limbo/agent-lost", 1000, || {
        let yard = yard();
        let placed = fill(&yard);
        let lost = [(); 2].map(|()| {
            yard.spawn(|yard| {
                drop(yard.kernel.agent_lost("S0", at(10)));
                watch(yard, 2);
            })
        });
        let updates: Vec<_> = placed
            .into_iter()
            .map(|id| {
                yard.spawn(move |yard| {
                    yard.tell(id, TaskState::Unreachable, at(11));
                    yard.tell(id, TaskState::Running, at(12));
                    yard.tell(id, TaskState::Lost, at(13));
                    yard.tell(id, TaskState::Running, at(14));
                })
            })
            .collect();
        let handler = yard.spawn(|yard| {
            let mut handler = yard.kernel.handler();
            for n in 0..3 {
                yard.offer(&mut handler, &["S0", "S3"], 1.0, at(15 + n));
            }
        });
        join(lost);
        join(updates);
        join([handler]);
        yard.settle();
    });
}

/// Goal: once a close has returned nobody is counted any more than was, also not one who comes back. Method: given-up
/// executors return while the kernel is closed and drained; the closer looks at the count all the while.
#[test]
fn nobody_comes_back_after_the_close() {
    play("limbo/return-close", 1500, || {
        let yard = yard();
        for id in fill(&yard).into_iter().skip(1) {
            yard.tell(id, TaskState::Unreachable, at(2));
        }
        tick(&yard, 50);
        let closer = yard.spawn(|yard| {
            yard.kernel.close();
            let mut before = yard.kernel.totals().executors;
            for _ in 0..8 {
                let executors = yard.kernel.totals().executors;
                assert!(executors <= before, "{before} to {executors} after the close");
                before = executors;
            }
        });
        let returns = [(); 2].map(|()| {
            yard.spawn(|yard| {
                for id in yard.placed().into_iter().skip(1) {
                    yard.tell(id, TaskState::Running, at(60));
                }
            })
        });
        let drain = yard.spawn(|yard| yard.kernel.drain(Duration::MAX));
        let vanish = yard.spawn(|yard| {
            for id in yard.placed() {
                yard.tell(id, TaskState::Unreachable, at(70));
            }
            tick(yard, 120);
        });
        join(returns);
        join([closer, vanish]);
        for id in yard.placed() {
            yard.tell(id, TaskState::Killed, at(130));
        }
        assert!(join([drain]).iter().all(|report| report.drained));
        yard.settle();
    });
}
