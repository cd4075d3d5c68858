//! Known mistakes, one or more for each mechanism that the scenes are about. Shuttle must find each at the effort that
//! the scenes have; a tool that doesn't proves nothing.

use std::collections::HashMap;

use shuttle::sync::atomic::{AtomicU64, Ordering::SeqCst};
use shuttle::sync::{Arc, Condvar, Mutex, RwLock};
use shuttle::thread;

use crate::{play, play_to_depth};

const EFFORT: usize = 1000;

/// Runs `work` in `threads` threads over one `shared`, and gives what they returned.
fn race<S: Send + Sync + 'static, R: Send + 'static>(
    threads: u64,
    shared: &Arc<S>,
    work: fn(&S, u64) -> R,
) -> Vec<R> {
    let spawn = |n| {
        let shared = Arc::clone(shared);
        thread::spawn(move || work(&shared, n))
    };
    let threads: Vec<_> = (0..threads).map(spawn).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Mutant: look whether there is room, then add.
#[test]
#[ignore = "mutant"]
fn mutant_cap_check_then_add() {
    play("mutant caps/check-then-add", EFFORT, || {
        let executors = Arc::new(AtomicU64::new(0));
        race(5, &executors, |executors, _| {
            if executors.load(SeqCst) < 3 {
                executors.fetch_add(1, SeqCst);
            }
        });
        assert!(executors.load(SeqCst) <= 3);
    });
}

/// Mutant: add, and undo if that was too much. Over the cap for an instant only, and only if the observer looks while
/// all others are held up: hence the depth.
#[test]
#[ignore = "mutant"]
fn mutant_cap_add_then_undo() {
    play_to_depth("mutant caps/add-then-undo", EFFORT, 6, || {
        let executors = Arc::new(AtomicU64::new(0));
        race(6, &executors, |executors, n| {
            if n == 5 {
                assert!(executors.load(SeqCst) <= 4, "over the cap");
            } else if executors.fetch_add(1, SeqCst) >= 4 {
                executors.fetch_sub(1, SeqCst);
            }
        });
    });
}

/// Mutant: the map is looked at and then written, under two locks.
#[test]
#[ignore = "mutant"]
fn mutant_map_get_then_insert() {
    play("mutant maps/get-then-insert", EFFORT, || {
        let agents = Arc::new(RwLock::new(HashMap::new()));
        let keys = race(4, &agents, |agents, n| {
            let known = agents.read().unwrap().get("S0").copied();
            known.unwrap_or_else(|| {
                agents.write().unwrap().insert("S0", n);
                n
            })
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "an agent with two cells: {keys:?}");
    });
}

/// Mutant: the executor's number gets into the map after the answer is out.
#[test]
#[ignore = "mutant"]
fn mutant_map_entered_late() {
    play("mutant maps/entered-late", EFFORT, || {
        let words = Arc::new((AtomicU64::new(0), RwLock::new(HashMap::new())));
        race(2, &words, |(placed, map), n| {
            if n == 0 {
                placed.store(1, SeqCst);
                map.write().unwrap().insert(7, 0);
            } else if placed.load(SeqCst) == 1 {
                assert!(map.read().unwrap().contains_key(&7), "unknown");
            }
        });
    });
}

/// Mutant: the limit is looked up once; nobody looks whether it changed.
#[test]
#[ignore = "mutant"]
fn mutant_limit_read_once() {
    play("mutant policy/limit", EFFORT, || {
        let words = Arc::new((AtomicU64::new(9), AtomicU64::new(0)));
        race(4, &words, |(limit, executors), n| {
            if n == 0 {
                limit.store(0, SeqCst);
                let before = executors.load(SeqCst);
                assert!(executors.load(SeqCst) <= before, "beyond the limit in force");
            } else {
                let allowed = limit.load(SeqCst);
                let place = |executors| (executors < allowed).then_some(executors + 1);
                let _ = executors.fetch_update(SeqCst, SeqCst, place);
            }
        });
    });
}

/// Mutant: two polls both see that a revive is due, and both say it.
#[test]
#[ignore = "mutant"]
fn mutant_revive_in_two_steps() {
    play("mutant policy/one-revive", EFFORT, || {
        let suppressed = Arc::new(AtomicU64::new(1));
        let revives = race(2, &suppressed, |suppressed, _| {
            let due = suppressed.load(SeqCst) == 1;
            suppressed.store(0, SeqCst);
            due
        });
        assert_eq!(revives.into_iter().filter(|revive| *revive).count(), 1);
    });
}

/// Mutant: a poll that suppresses doesn't look again.
#[test]
#[ignore = "mutant"]
fn mutant_no_second_look() {
    play("mutant policy/demand", EFFORT, || {
        fn poll((executors, suppressed): &(AtomicU64, AtomicU64)) -> bool {
            if executors.load(SeqCst) == 0 {
                return suppressed.swap(0, SeqCst) == 1;
            }
            suppressed.store(1, SeqCst);
            false
        }
        let words = Arc::new((AtomicU64::new(1), AtomicU64::new(0)));
        race(2, &words, |words, n| {
            words.0.fetch_sub(n, SeqCst);
            poll(words)
        });
        assert!(!poll(&words), "room, and nobody said so");
    });
}

/// Mutant: who ends an executor looks at its state and then writes it.
#[test]
#[ignore = "mutant"]
fn mutant_end_in_two_steps() {
    play("mutant caps/ends", EFFORT, || {
        let state = Arc::new(AtomicU64::new(1));
        let freed = race(2, &state, |state, _| {
            let live = state.load(SeqCst) == 1;
            state.store(0, SeqCst);
            live
        });
        assert!(!freed.into_iter().all(|freed| freed), "freed twice");
    });
}

/// Mutant: who comes back looks whether the kernel is open, and is counted then.
#[test]
#[ignore = "mutant"]
fn mutant_return_looks_first() {
    play("mutant limbo/return-close", EFFORT, || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        race(3, &words, |(closed, executors), n| {
            if n == 0 {
                closed.store(1, SeqCst);
                let before = executors.load(SeqCst);
                assert!(executors.load(SeqCst) <= before, "counted after the close");
            } else if closed.load(SeqCst) == 0 {
                executors.fetch_add(1, SeqCst);
            }
        });
    });
}

/// Mutant: a picture without a second look.
#[test]
#[ignore = "mutant"]
fn mutant_torn_snapshot() {
    play("mutant snapshots/all", EFFORT, || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        race(3, &words, |(executors, cores), n| {
            if n == 0 {
                assert_eq!(executors.load(SeqCst) * 2, cores.load(SeqCst), "torn");
            } else {
                cores.fetch_add(2, SeqCst);
                executors.fetch_add(1, SeqCst);
            }
        });
    });
}

/// Mutant: the last to end notifies without taking the lock.
#[test]
#[ignore = "mutant"]
fn mutant_notify_without_the_lock() {
    play("mutant drain/two-callers", EFFORT, || {
        let gate = Arc::new((AtomicU64::new(2), Mutex::new(()), Condvar::new()));
        race(4, &gate, |(executors, waiters, emptied), n| {
            if n < 2 {
                if executors.fetch_sub(1, SeqCst) == 1 {
                    emptied.notify_all();
                }
                return;
            }
            let mut guard = waiters.lock().unwrap();
            while executors.load(SeqCst) != 0 {
                guard = emptied.wait(guard).unwrap();
            }
        });
    });
}

/// Mutant: the roll is called over those who are published, not over those who are reserved.
#[test]
#[ignore = "mutant"]
fn mutant_roll_without_the_reserved() {
    play("mutant drain/roll", EFFORT, || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let counts = race(2, &words, |(admission, published), n| {
            if n == 0 {
                admission.fetch_or(1 << 32, SeqCst);
                return published.load(SeqCst);
            }
            let admitted = admission.compare_exchange(0, 1, SeqCst, SeqCst).is_ok();
            if admitted {
                published.store(1, SeqCst);
            }
            u64::from(admitted)
        });
        assert_eq!(counts[0], counts[1], "missing on the roll");
    });
}
