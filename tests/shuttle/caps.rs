//! Caps: many handlers and few cores.

use offermill::TaskState;
use offermill::config::{Queue, QueueId};
use offermill::resources::MilliCpus;

use crate::harness::{Harness, join};
use crate::play;
use crate::world::{Setup, at};

const CAP: u64 = 3;

fn harness(limit: u32) -> Harness {
    Harness::new(&Setup { core_cap: Some(CAP * 1000), limit: Some(limit), ..Setup::default() })
}

/// Reads the totals `times` times; none may exceed a cap.
fn watch(harness: &Harness, limit: u32, times: usize) {
    for _ in 0..times {
        let totals = harness.kernel.totals();
        assert!(totals.executors <= limit && totals.cores.whole_cores() <= CAP, "{totals:?}");
    }
}

/// Goal: neither the core cap nor the executor limit is exceeded in any state that a thread can see, and what fits is
/// placed. Method: five handlers, each with room for two executors on two agents, and two threads that only read the
/// totals. The cap stops them in one scene, the limit in the other.
fn handlers_race(limit: u32) {
    let harness = harness(limit);
    let handlers: Vec<_> = (0..5)
        .map(|n| {
            harness.spawn(move |harness| {
                let own = format!("S{n}");
                let mut handler = harness.kernel.handler();
                let placed = harness.offer(&mut handler, &[&own, "S0"], 1.0, at(1)).placed.len();
                watch(harness, limit, 1);
                placed
            })
        })
        .collect();
    let observers = [(); 2].map(|()| harness.spawn(move |harness| watch(harness, limit, 12)));
    let placed: usize = join(handlers).into_iter().sum();
    join(observers);
    assert_eq!(placed, limit.min(CAP as u32) as usize, "what fits is placed");
    harness.flush_releases();
}

#[test]
fn the_core_cap_holds_at_each_step() {
    play("caps/cores", 1500, || handlers_race(9));
}

/// Goal: as above, for the limit.
#[test]
fn the_executor_limit_holds_at_each_step() {
    play("caps/limit", 1500, || handlers_race(2));
}

/// Goal: a queue's maximum isn't exceeded in any state that a thread can see, and what fits is placed. Method: four
/// handlers, each with two agents, and a queue with room for two executors; two threads that only read what it holds.
#[test]
fn a_queues_maximum_holds_at_each_step() {
    play("caps/queue", 1000, || {
        let harness = harness(9);
        let queue = Queue::new("q").max_cores(Some(MilliCpus::from_cores(2)));
        let config = harness.kernel.config().to_builder().queue(queue);
        harness.kernel.reconfigure(config.executor_queue(QueueId::new(1)).build().unwrap());
        let watch = |harness: &Harness| {
            let queue = harness.kernel.queues().remove(1);
            assert!(queue.cores.whole_cores() <= 2, "{queue}");
        };
        let handlers: Vec<_> = (0..4)
            .map(|n| {
                harness.spawn(move |harness| {
                    let own = format!("S{n}");
                    let mut handler = harness.kernel.handler();
                    harness.offer(&mut handler, &[&own, "S9"], 1.0, at(1)).placed.len()
                })
            })
            .collect();
        let observers =
            [(); 2].map(|()| harness.spawn(move |harness| (0..8).for_each(|_| watch(harness))));
        let placed: usize = join(handlers).into_iter().sum();
        join(observers);
        assert_eq!(placed, 2, "what fits is placed");
        harness.flush_releases();
    });
}

/// Goal: the resources of ended executors are free for others, once, and the caps hold all the time. Method: four
/// handlers keep offering; two threads report the same ends.
#[test]
fn caps_hold_while_executors_end() {
    play("caps/ends", 1000, || {
        let harness = harness(2);
        let handlers: Vec<_> = (0..4)
            .map(|n| {
                harness.spawn(move |harness| {
                    let own = format!("S{}", n % 3);
                    let mut handler = harness.kernel.handler();
                    for round in 0..3 {
                        harness.offer(&mut handler, &[&own], 2.0, at(round));
                        watch(harness, 2, 1);
                    }
                })
            })
            .collect();
        let updates = [(); 2].map(|()| {
            harness.spawn(|harness| {
                for _ in 0..4 {
                    for id in harness.placed().into_iter().rev().take(2) {
                        harness.update(id, TaskState::Finished, at(2));
                    }
                    watch(harness, 2, 1);
                }
            })
        });
        let observer = harness.spawn(|harness| watch(harness, 2, 20));
        join(handlers);
        join(updates);
        join([observer]);
        harness.flush_releases();
    });
}
