//! Close and drain.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use offermill::{Change, DrainReport, ExecutorId, Fate, Reason, StatusUpdate, TaskState};

use super::Fixture;
use crate::world::{Setup, at, secs};

fn fates(report: &DrainReport) -> Vec<(ExecutorId, Fate)> {
    let mut fates: Vec<_> =
        report.executors.iter().map(|drained| (drained.executor.id, drained.fate)).collect();
    fates.sort_unstable_by_key(|(id, _)| *id);
    fates
}

/// Goal: a drain reports each executor's fate, returns at its timeout if some executors are left, and can be repeated.
/// Method: one executor of each fate.
#[test]
fn a_drain_tells_each_fate() {
    let mut fixture = Fixture::new(&Setup::default());
    let ids: Vec<ExecutorId> = (0..5).map(|n| fixture.start_on(&format!("S{n}"), 0)).collect();
    let gone = fixture.start_on("S1", 0);
    fixture.update(gone, TaskState::Finished, 1);
    fixture.update(ids[4], TaskState::Unreachable, 1);
    assert_eq!(fixture.kernel.close().len(), 5, "ended executors are not killed");
    assert_eq!(fixture.refused_on("S1", 2), Reason::Stopping);
    assert_eq!(fixture.declines()[0].refuse, secs(120));
    fixture.update(ids[0], TaskState::Killed, 3);
    fixture.update(ids[1], TaskState::Failed, 3);
    fixture.update(ids[2], TaskState::Finished, 3);
    let begun = Instant::now();
    let report = fixture.kernel.drain(Duration::from_millis(50));
    assert!(begun.elapsed() >= Duration::from_millis(50));
    assert!(!report.drained);
    let expected = [Fate::Killed, Fate::Failed, Fate::Finished, Fate::Alive, Fate::Unreachable];
    let expected: Vec<_> = ids.iter().copied().zip(expected).collect();
    assert_eq!(fates(&report), expected);
    assert_eq!(fixture.kernel.close().len(), 2, "those that are left");

    assert_eq!(fixture.update(ids[3], TaskState::Killed, 4).change, Change::Ended(Fate::Killed));
    fixture.update(ids[4], TaskState::Gone, 4);
    let report = fixture.kernel.drain(Duration::from_secs(60));
    assert!(report.drained);
    assert_eq!(fates(&report)[3..], [(ids[3], Fate::Killed), (ids[4], Fate::Lost)]);
}

/// Goal: two concurrent drains wait for the last end, however late, and return the same report. Method: two threads,
/// and an end while they wait.
#[test]
fn two_drains_wait_and_agree() {
    let mut fixture = Fixture::new(&Setup::default());
    let id = fixture.start_on("S1", 0);
    let name = fixture.kernel.executor_name(id).to_string();
    let drain = |kernel: offermill::Kernel| thread::spawn(move || kernel.drain(secs(60)));
    let drains = [drain(fixture.kernel.clone()), drain(fixture.kernel.clone())];
    while !fixture.kernel.totals().closed {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(20));
    let killed = StatusUpdate::new(&name, TaskState::Killed);
    assert_eq!(fixture.kernel.status_update(&killed, at(1)).change, Change::Ended(Fate::Killed));
    for drain in drains {
        let report = drain.join().unwrap();
        assert!(report.drained);
        assert_eq!(fates(&report), [(id, Fate::Killed)]);
    }
}

/// Goal: an empty kernel drains at once, whatever the timeout. Method: the longest possible timeout.
#[test]
fn nothing_drains_at_once() {
    let fixture = Fixture::new(&Setup::default());
    let report = fixture.kernel.drain(Duration::MAX);
    assert!(report.drained && report.executors.is_empty());
    assert_eq!(fixture.kernel.wanted(), 0);
}

/// Goal: an executor that returns after the close is not readmitted. Method: an executor that was given up.
#[test]
fn a_closed_kernel_readmits_no_executor() {
    let mut fixture = Fixture::new(&Setup::default());
    let id = fixture.start_on("S1", 0);
    fixture.update(id, TaskState::Unreachable, 0);
    fixture.kernel.tick(at(300_000));
    let report = fixture.kernel.drain(secs(60));
    assert!(report.drained, "nothing of it is counted");
    assert_eq!(fates(&report), [(id, Fate::Unreachable)]);
    let outcome = fixture.update(id, TaskState::Running, 300_001);
    assert_eq!((outcome.change, outcome.kill), (Change::Refused, true));
}

/// A waker that counts, and unparks a thread.
struct Counter {
    woken: AtomicUsize,
    thread: thread::Thread,
}

impl Wake for Counter {
    fn wake(self: Arc<Counter>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn counter() -> Arc<Counter> {
    Arc::new(Counter { woken: AtomicUsize::new(0), thread: thread::current() })
}

/// Goal: a future of a drain closes the kernel, waits for the last end, wakes its last waker only, and completes with
/// the report of a drain; one that was dropped is not woken. Method: poll with one waker, then with another; another
/// thread ends the executor; a second future is dropped before that, and a third is polled for the first time after it.
#[test]
fn a_drain_can_be_awaited() {
    let mut fixture = Fixture::new(&Setup::default());
    let id = fixture.start_on("S1", 0);
    let name = fixture.kernel.executor_name(id).to_string();
    let (early, last, dropped) = (counter(), counter(), counter());
    let poll = |future: std::pin::Pin<&mut offermill::DrainFuture>, waker: &Arc<Counter>| {
        future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(waker))))
    };
    let mut future = pin!(fixture.kernel.drained());
    assert!(fixture.kernel.totals().closed);
    assert_eq!(poll(future.as_mut(), &early), Poll::Pending);
    assert_eq!(poll(future.as_mut(), &last), Poll::Pending);
    {
        let mut other = pin!(fixture.kernel.drained());
        assert_eq!(poll(other.as_mut(), &dropped), Poll::Pending);
    }
    let kernel = fixture.kernel.clone();
    let ended = thread::spawn(move || {
        kernel.status_update(&StatusUpdate::new(&name, TaskState::Killed), at(2));
    });
    while last.woken.load(Ordering::SeqCst) == 0 {
        thread::park();
    }
    let Poll::Ready(report) = poll(future.as_mut(), &last) else { panic!("woken too early") };
    assert!(report.drained);
    assert_eq!(fates(&report), [(id, Fate::Killed)]);
    assert_eq!(poll(pin!(fixture.kernel.drained()), &dropped), Poll::Ready(report));
    ended.join().unwrap();
    let woken = [&early, &last, &dropped].map(|counter| counter.woken.load(Ordering::SeqCst));
    assert_eq!(woken, [0, 1, 0]);
}
