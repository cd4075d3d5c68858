//! Many handlers, few cores.

use offermill::TaskState;

use crate::play;
use crate::world::{Setup, at};
use crate::yard::{Yard, join};

const CAP: u64 = 3;

fn yard(limit: u32) -> Yard {
    Yard::new(&Setup { core_cap: Some(CAP * 1000), limit: Some(limit), ..Setup::default() })
}

/// Looks at the totals `times` times; none may be over a cap.
fn watch(yard: &Yard, limit: u32, times: usize) {
    for _ in 0..times {
        let totals = yard.kernel.totals();
        assert!(totals.executors <= limit && totals.cores.whole_cores() <= CAP, "{totals:?}");
    }
}

/// Goal: neither the core cap nor the executor limit is exceeded in any state that anybody can see, and what fits is
/// placed. Method: five handlers, each with room for two on two agents, and two observers that do nothing but look;
/// the cap stops the ones, the limit the others.
fn handlers_race(limit: u32) {
    let yard = yard(limit);
    let handlers: Vec<_> = (0..5)
        .map(|n| {
            yard.spawn(move |yard| {
                let own = format!("S{n}");
                let mut handler = yard.kernel.handler();
                let placed = yard.offer(&mut handler, &[&own, "S0"], 1.0, at(1)).placed.len();
                watch(yard, limit, 1);
                placed
            })
        })
        .collect();
    let observers = [(); 2].map(|()| yard.spawn(move |yard| watch(yard, limit, 12)));
    let placed: usize = join(handlers).into_iter().sum();
    join(observers);
    assert_eq!(placed, limit.min(CAP as u32) as usize, "what fits is placed");
    yard.settle();
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

/// Goal: what ends is free for others, once, and the caps hold all the while. Method: four handlers go on offering;
/// two threads report the same ends.
#[test]
fn caps_hold_while_executors_end() {
    play("caps/ends", 1000, || {
        let yard = yard(2);
        let handlers: Vec<_> = (0..4)
            .map(|n| {
                yard.spawn(move |yard| {
                    let own = format!("S{}", n % 3);
                    let mut handler = yard.kernel.handler();
                    for round in 0..3 {
                        yard.offer(&mut handler, &[&own], 2.0, at(round));
                        watch(yard, 2, 1);
                    }
                })
            })
            .collect();
        let updates = [(); 2].map(|()| {
            yard.spawn(|yard| {
                for _ in 0..4 {
                    for id in yard.placed().into_iter().rev().take(2) {
                        yard.tell(id, TaskState::Finished, at(2));
                    }
                    watch(yard, 2, 1);
                }
            })
        });
        let observer = yard.spawn(|yard| watch(yard, 2, 20));
        join(handlers);
        join(updates);
        join([observer]);
        yard.settle();
    });
}
