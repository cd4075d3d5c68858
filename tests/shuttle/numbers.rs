//! The table of numbers: executors with plain ids, whose pages are given back while others are placed.

use offermill::{Change, IdScheme, TaskState};

use crate::harness::{Harness, join};
use crate::play;
use crate::world::{Setup, at};

/// Goal: with plain ids an executor is found from the moment at which the cluster can know it until its end, which
/// counts once. Method: three handlers place; each reports its own executors at once, and two threads report all of
/// them again, with duplicates.
#[test]
fn plain_ids_find_their_executors() {
    play("numbers/plain-ids", 1000, || {
        let harness = Harness::with_ids(&Setup::default(), IdScheme::plain());
        let handlers: Vec<_> = (0..3)
            .map(|n| {
                harness.spawn(move |harness| {
                    let own = format!("S{n}");
                    let mut handler = harness.kernel.handler();
                    for _ in 0..2 {
                        for id in harness.offer(&mut handler, &["S0", &own], 1.0, at(0)).placed {
                            let change = harness.update(id, TaskState::Running, at(1)).change;
                            assert!(change == Change::Running || change == Change::Nothing);
                            if id.sequence() % 2 == 0 {
                                harness.update(id, TaskState::Finished, at(2));
                                // Whichever update ended it: an end is final, and its name is known.
                                let again = harness.update(id, TaskState::Running, at(2));
                                assert_eq!((again.change, again.freed), (Change::Nothing, None));
                            }
                        }
                    }
                })
            })
            .collect();
        let updates: Vec<_> = [TaskState::Running, TaskState::Failed]
            .into_iter()
            .map(|state| {
                harness.spawn(move |harness| {
                    for _ in 0..4 {
                        for id in harness.placed().into_iter().filter(|id| id.sequence() % 3 == 0) {
                            harness.update(id, state, at(3));
                        }
                        let _ = harness.kernel.totals();
                    }
                })
            })
            .collect();
        join(handlers);
        join(updates);
        harness.flush_releases();
        for id in harness.placed() {
            harness.update(id, TaskState::Killed, at(4));
        }
        assert_eq!(harness.ended(), harness.placed().len(), "each has ended");
        harness.flush_releases();
    });
}

/// Goal: numbers of executors that are planned, but not admitted, hold no page. Method: three handlers place at once
/// under a limit of two, and end what they placed; the totals agree, and so does what the table holds.
#[test]
fn numbers_that_are_withdrawn_hold_no_page() {
    play("numbers/withdrawn", 1000, || {
        let setup = Setup { limit: Some(2), ..Setup::default() };
        let harness = Harness::with_ids(&setup, IdScheme::plain());
        let handlers: Vec<_> = (0..3)
            .map(|n| {
                harness.spawn(move |harness| {
                    let own = format!("S{n}");
                    let mut handler = harness.kernel.handler();
                    for _ in 0..3 {
                        for id in harness.offer(&mut handler, &["S0", &own], 1.0, at(0)).placed {
                            let change = harness.update(id, TaskState::Finished, at(1)).change;
                            assert!(matches!(change, Change::Ended(_)));
                        }
                    }
                })
            })
            .collect();
        join(handlers);
        harness.flush_releases();
    });
}
