//! The maps: first sights of agents, and executors by plain ids.

use offermill::{Change, IdScheme, TaskState, Timestamp};

use crate::play;
use crate::world::{Setup, at};
use crate::yard::{Yard, join};

/// Goal: agents that several handlers meet at once, while a tick forgets them, are entered once, and none is left
/// without an entry. Method: four handlers whose clock stands offer too little for an executor from the same three
/// agents; the tick's clock is far ahead.
#[test]
fn agents_are_met_once_while_they_are_forgotten() {
    play("maps/meet-forget", 1000, || {
        let yard = Yard::new(&Setup::default());
        let handlers = [(); 4].map(|()| {
            yard.spawn(|yard| {
                let mut handler = yard.kernel.handler();
                for agent in ["S0", "S1", "S0", "S2"] {
                    yard.offer(&mut handler, &[agent], 0.5, at(0));
                }
            })
        });
        let ticks = yard.spawn(|yard| {
            for n in 0..4 {
                yard.kernel.tick(at(1_000_000 + n * 60_000));
            }
        });
        join(handlers);
        join([ticks]);
        yard.settle();
        yard.kernel.tick(Timestamp::MAX);
        assert_eq!((yard.kernel.agents_known(), yard.kernel.snapshot(at(0)).agents.len()), (0, 0));
        yard.settle();
    });
}

/// Goal: an agent with an executor is not forgotten, whoever meets it when. Method: two handlers place on the agents
/// that two others merely see, and executors end, while ticks forget.
#[test]
fn agents_with_executors_stay() {
    play("maps/place-forget", 1000, || {
        let yard = Yard::new(&Setup::default());
        let handlers: Vec<_> = [1.0, 0.5, 1.0, 0.5]
            .into_iter()
            .map(|cpus| {
                yard.spawn(move |yard| {
                    let mut handler = yard.kernel.handler();
                    for agents in [["S0", "S1"], ["S1", "S0"]] {
                        yard.offer(&mut handler, &agents, cpus, at(0));
                    }
                })
            })
            .collect();
        let ends = yard.spawn(|yard| {
            for _ in 0..6 {
                let last = yard.placed().last().copied();
                last.into_iter().for_each(|id| drop(yard.tell(id, TaskState::Killed, at(0))));
                let _ = yard.kernel.agents_known();
            }
        });
        let ticks = yard.spawn(|yard| {
            for n in 0..3 {
                yard.kernel.tick(at(1_000_000 + n * 60_000));
            }
        });
        join(handlers);
        join([ends, ticks]);
        yard.settle();
    });
}

/// Goal: with plain ids an executor is found from the moment on at which the cluster can know it until its end, which
/// counts once. Method: three handlers place; each tells of its own executors at once, and two threads tell of all
/// again, duplicates included.
#[test]
fn plain_ids_find_their_executors() {
    play("maps/plain-ids", 1000, || {
        let yard = Yard::with_ids(&Setup::default(), IdScheme::plain());
        let handlers: Vec<_> = (0..3)
            .map(|n| {
                yard.spawn(move |yard| {
                    let own = format!("S{n}");
                    let mut handler = yard.kernel.handler();
                    for _ in 0..2 {
                        for id in yard.offer(&mut handler, &["S0", &own], 1.0, at(0)).placed {
                            let change = yard.tell(id, TaskState::Running, at(1)).change;
                            assert!(change == Change::Running || change == Change::Nothing);
                            if id.sequence() % 2 == 0 {
                                yard.tell(id, TaskState::Finished, at(2));
                                assert!(yard.has_ended(id) || yard.placed().len() > 1);
                            }
                        }
                    }
                })
            })
            .collect();
        let updates: Vec<_> = [TaskState::Running, TaskState::Failed]
            .into_iter()
            .map(|state| {
                yard.spawn(move |yard| {
                    for _ in 0..4 {
                        for id in yard.placed().into_iter().filter(|id| id.sequence() % 3 == 0) {
                            yard.tell(id, state, at(3));
                        }
                        let _ = yard.kernel.totals();
                    }
                })
            })
            .collect();
        join(handlers);
        join(updates);
        yard.settle();
        for id in yard.placed() {
            yard.tell(id, TaskState::Killed, at(4));
        }
        assert_eq!(yard.ended(), yard.placed().len(), "each has ended");
        yard.settle();
    });
}

/// Goal: tables that grow hand out each cell once, and who grows them finds all of them there. Method: four handlers
/// place on agents of their own, all at once in a kernel that has no cell yet, while ticks look ahead and snapshots
/// are taken.
#[test]
fn tables_that_grow_hand_out_each_cell_once() {
    play("maps/growth", 1000, || {
        let yard = Yard::new(&Setup::default());
        let handlers: Vec<_> = (0..4)
            .map(|n| {
                yard.spawn(move |yard| {
                    let own = [format!("S{n}"), format!("T{n}")];
                    let agents = [own[0].as_str(), own[1].as_str()];
                    let mut handler = yard.kernel.handler();
                    let placed = yard.offer(&mut handler, &agents, 2.0, at(0)).placed;
                    placed.iter().for_each(|id| drop(yard.tell(*id, TaskState::Running, at(1))));
                    placed.len()
                })
            })
            .collect();
        let ticks = yard.spawn(|yard| (1..4).for_each(|n| drop(yard.kernel.tick(at(n)))));
        let looks = yard.spawn(|yard| {
            let snapshot = yard.kernel.snapshot(at(1));
            assert!(
                !snapshot.exact || snapshot.executors.len() == snapshot.totals.executors as usize
            );
        });
        assert_eq!(join(handlers), [4; 4]);
        join([ticks, looks]);
        yard.settle();
        assert_eq!(yard.kernel.snapshot(at(2)).agents.len(), 8);
    });
}
