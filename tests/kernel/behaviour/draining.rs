//! The end.

use std::thread;
use std::time::{Duration, Instant};

use offermill::{Change, DrainReport, ExecutorId, Fate, Reason, StatusUpdate, TaskState};

use super::House;
use crate::world::{Setup, at, secs};

fn fates(report: &DrainReport) -> Vec<(ExecutorId, Fate)> {
    let mut fates: Vec<_> =
        report.executors.iter().map(|drained| (drained.executor.id, drained.fate)).collect();
    fates.sort_unstable_by_key(|(id, _)| *id);
    fates
}

/// Goal: a drain names each executor's fate, returns at its deadline if some are left, and may be repeated. Method:
/// one executor of each fate.
#[test]
fn a_drain_tells_each_fate() {
    let mut house = House::new(&Setup::default());
    let ids: Vec<ExecutorId> = (0..5).map(|n| house.start_on(&format!("S{n}"), 0)).collect();
    let gone = house.start_on("S1", 0);
    house.tell(gone, TaskState::Finished, 1);
    house.tell(ids[4], TaskState::Unreachable, 1);
    assert_eq!(house.kernel.close().len(), 5, "who ended before is not asked to");
    assert_eq!(house.refused_on("S1", 2), Reason::Stopping);
    assert_eq!(house.declines()[0].refuse, secs(120));
    house.tell(ids[0], TaskState::Killed, 3);
    house.tell(ids[1], TaskState::Failed, 3);
    house.tell(ids[2], TaskState::Finished, 3);
    let begun = Instant::now();
    let report = house.kernel.drain(Duration::from_millis(50));
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert!(!report.drained);
    let expected = [Fate::Killed, Fate::Failed, Fate::Finished, Fate::Alive, Fate::Unreachable];
    let expected: Vec<_> = ids.iter().copied().zip(expected).collect();
    assert_eq!(fates(&report), expected);
    assert_eq!(house.kernel.close().len(), 2, "those that are left");

    assert_eq!(house.tell(ids[3], TaskState::Killed, 4).change, Change::Ended(Fate::Killed));
    house.tell(ids[4], TaskState::Gone, 4);
    let report = house.kernel.drain(Duration::from_secs(60));
    assert!(report.drained);
    assert_eq!(fates(&report)[3..], [(ids[3], Fate::Killed), (ids[4], Fate::Lost)]);
}

/// Goal: two drains at a time wait for the last end, however late, and agree. Method: two threads, and an end while
/// they wait.
#[test]
fn two_drains_wait_and_agree() {
    let mut house = House::new(&Setup::default());
    let id = house.start_on("S1", 0);
    let name = house.kernel.executor_name(id).to_string();
    let drain = |kernel: offermill::Kernel| thread::spawn(move || kernel.drain(secs(60)));
    let drains = [drain(house.kernel.clone()), drain(house.kernel.clone())];
    while !house.kernel.totals().closed {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(20));
    let killed = StatusUpdate::new(&name, TaskState::Killed);
    assert_eq!(house.kernel.status_update(&killed, at(1)).change, Change::Ended(Fate::Killed));
    for drain in drains {
        let report = drain.join().unwrap();
        assert!(report.drained);
        assert_eq!(fates(&report), [(id, Fate::Killed)]);
    }
}

/// Goal: an empty kernel drains at once, whatever the timeout. Method: the longest timeout that there is.
#[test]
fn nothing_drains_at_once() {
    let house = House::new(&Setup::default());
    let report = house.kernel.drain(Duration::MAX);
    assert!(report.drained && report.executors.is_empty());
    assert_eq!(house.kernel.wanted(), 0);
}

/// Goal: whoever comes back after the close is not readmitted. Method: an executor that was given up.
#[test]
fn nobody_returns_to_a_closed_kernel() {
    let mut house = House::new(&Setup::default());
    let id = house.start_on("S1", 0);
    house.tell(id, TaskState::Unreachable, 0);
    house.kernel.tick(at(300_000));
    let report = house.kernel.drain(secs(60));
    assert!(report.drained, "nothing of it is counted");
    assert_eq!(fates(&report), [(id, Fate::Unreachable)]);
    let outcome = house.tell(id, TaskState::Running, 300_001);
    assert_eq!((outcome.change, outcome.kill), (Change::Refused, true));
}
