//! The maps and tables: first offers of agents, and growth.

use offermill::{TaskState, Timestamp};

use crate::harness::{Harness, join};
use crate::play;
use crate::world::{Setup, at};

/// Goal: agents that several handlers insert at once, while a tick forgets them, are inserted once, and none is left
/// without an entry. Method: four handlers whose clock stands still offer too little for an executor from the same
/// three agents; the tick's clock is far ahead.
#[test]
fn agents_are_inserted_once_while_they_are_forgotten() {
    play("maps/insert-forget", 1000, || {
        let harness = Harness::new(&Setup::default());
        let handlers = [(); 4].map(|()| {
            harness.spawn(|harness| {
                let mut handler = harness.kernel.handler();
                for agent in ["S0", "S1", "S0", "S2"] {
                    harness.offer(&mut handler, &[agent], 0.5, at(0));
                }
            })
        });
        let ticks = harness.spawn(|harness| {
            for n in 0..4 {
                harness.kernel.tick(at(1_000_000 + n * 60_000));
            }
        });
        join(handlers);
        join([ticks]);
        harness.flush_releases();
        harness.kernel.tick(Timestamp::MAX);
        assert_eq!(
            (harness.kernel.agents_known(), harness.kernel.snapshot(at(0)).agents.len()),
            (0, 0)
        );
        harness.flush_releases();
    });
}

/// Goal: an agent with an executor is not forgotten, whichever thread inserts it. Method: two handlers place executors
/// on two agents and end them, so that the agents are idle again and again, two others merely see the agents, and a
/// tick forgets what is idle.
#[test]
fn agents_with_executors_stay() {
    play("maps/place-forget", 1000, || {
        let harness = Harness::new(&Setup::default());
        let handlers: Vec<_> = [1.0, 0.5, 1.0, 0.5]
            .into_iter()
            .map(|cpus| {
                harness.spawn(move |harness| {
                    let mut handler = harness.kernel.handler();
                    for agents in [["S0", "S1"], ["S1", "S0"], ["S0", "S1"]] {
                        let placed = harness.offer(&mut handler, &agents, cpus, at(0)).placed;
                        for id in placed {
                            harness.update(id, TaskState::Killed, at(0));
                            let _ = harness.kernel.agents_known();
                        }
                    }
                })
            })
            .collect();
        let ticks = harness.spawn(|harness| {
            for n in 0..8 {
                harness.kernel.tick(at(1_000_000 + n * 60_000));
            }
        });
        join(handlers);
        join([ticks]);
        harness.flush_releases();
    });
}

/// Goal: tables that grow hand out each cell once, with its memory allocated. Method: four handlers place on agents of
/// their own, all at once in a kernel without any cell, while ticks grow the tables and snapshots are taken.
#[test]
fn tables_that_grow_hand_out_each_cell_once() {
    play("maps/growth", 1000, || {
        let harness = Harness::new(&Setup::default());
        let handlers: Vec<_> = (0..4)
            .map(|n| {
                harness.spawn(move |harness| {
                    let own = [format!("S{n}"), format!("T{n}")];
                    let agents = [own[0].as_str(), own[1].as_str()];
                    let mut handler = harness.kernel.handler();
                    let placed = harness.offer(&mut handler, &agents, 2.0, at(0)).placed;
                    placed
                        .iter()
                        .for_each(|id| drop(harness.update(*id, TaskState::Running, at(1))));
                    placed.len()
                })
            })
            .collect();
        let ticks = harness.spawn(|harness| (1..4).for_each(|n| drop(harness.kernel.tick(at(n)))));
        let looks = harness.spawn(|harness| {
            let snapshot = harness.kernel.snapshot(at(1));
            assert!(
                !snapshot.exact || snapshot.executors.len() == snapshot.totals.executors as usize
            );
        });
        assert_eq!(join(handlers), [4; 4]);
        join([ticks, looks]);
        harness.flush_releases();
        assert_eq!(harness.kernel.snapshot(at(2)).agents.len(), 8);
    });
}
