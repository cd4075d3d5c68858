//! Gangs that wait: over several commits, on several handlers, and until their time is over.

use std::time::Duration;

use offermill::choosers::{Chooser, Gang, GangState};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Decisions, Handler, IdScheme, Kernel, Picks, StatusUpdate, Task, TaskState};

use crate::world::{OfferData, Setup, at, lend, secs};

fn gang(tags: std::ops::Range<u64>, millis: u64, since: u64, timeout: Duration) -> Gang {
    let task = |tag| Task::new(tag, MilliCpus::from_millis(millis), Mebibytes::new(1));
    Gang::new(tags.map(task).collect::<Vec<_>>(), at(since), timeout)
}

fn kernel(core_cap: u64) -> Kernel {
    let setup = Setup {
        executor_cores: Some(100),
        memory: 1,
        core_cap: Some(core_cap),
        ..Setup::default()
    };
    Kernel::new(setup.config(), IdScheme::unique("t", 1).unwrap())
}

/// What a framework does with a batch of offers of agents with 4 cores. Returns the tags that were placed.
fn answer(handler: &mut Handler, agents: &[&str], gangs: &mut [Gang], now: u64) -> Vec<u64> {
    let batch: Vec<_> = agents.iter().map(|agent| OfferData::new(agent, 4.0, 1000.0)).collect();
    let (mut chooser, mut picks, mut decisions) = (Chooser::new(), Picks::new(), Decisions::new());
    lend(&batch, |offers| {
        let rooms = handler.propose(offers, at(now));
        let picked = chooser.gangs(rooms.list(), gangs, at(now), &mut picks);
        let states = gangs.iter().map(Gang::state);
        assert_eq!(states.filter(|state| *state == GangState::Picked).count(), picked);
        rooms.commit(&picks, at(now), &mut decisions);
    });
    gangs.iter_mut().for_each(|gang| gang.settle(&decisions));
    decisions.accepts().flat_map(|it| it.tasks().map(|(tag, _)| tag)).collect()
}

fn states(gangs: &[Gang]) -> Vec<GangState> {
    gangs.iter().map(Gang::state).collect()
}

/// Goal: a gang waits over commits until a batch takes all of it, whatever smaller ones do meanwhile; what the rooms
/// have is shared by the gangs of a batch; one whose time is over is given up, and never placed. Method: a gang of six
/// that two agents take, one of three, one of nine; batches of one agent and of two.
#[test]
fn gangs_wait_until_a_batch_takes_them_whole() {
    use GangState::{GivenUp, Placed, Waiting};
    let mut handler = kernel(100_000).handler();
    let mut gangs = [
        gang(10..16, 1000, 0, secs(60)),
        gang(20..23, 1000, 0, secs(60)),
        gang(30..39, 1000, 0, secs(60)),
    ];
    assert_eq!(answer(&mut handler, &["S1"], &mut gangs, 1000), [20, 21, 22]);
    assert_eq!(states(&gangs), [Waiting, Placed, Waiting]);
    let placed = answer(&mut handler, &["S2", "S3"], &mut gangs, 2000);
    assert_eq!(placed, [10, 12, 14, 11, 13, 15], "in turn");
    assert_eq!(states(&gangs), [Placed, Placed, Waiting]);
    assert!(!gangs[2].give_up(at(59_999)));
    assert!(answer(&mut handler, &["S2", "S3", "S4"], &mut gangs, 60_000).is_empty());
    assert_eq!(states(&gangs), [Placed, Placed, GivenUp]);
    assert!(!gangs[2].give_up(at(99_999)), "only once");
    assert!(!gangs[0].give_up(at(99_999)), "it was placed");
}

/// Goal: a gang that the caps don't admit waits on, with its picks told as not placed, and is placed when they do.
/// Method: two gangs, of which a cap admits one; then the tasks of the first end.
#[test]
fn gangs_wait_for_caps() {
    use GangState::{Placed, Waiting};
    let kernel = kernel(3000);
    let mut handler = kernel.handler();
    let forever = Duration::MAX;
    let mut gangs = [gang(1..3, 1000, 0, forever), gang(3..5, 1000, 0, forever)];
    assert_eq!(answer(&mut handler, &["S1", "S2"], &mut gangs, 0), [1, 2]);
    assert_eq!(states(&gangs), [Placed, Waiting]);
    assert!(answer(&mut handler, &["S1", "S2"], &mut gangs, u64::MAX).is_empty());
    assert_eq!(states(&gangs), [Placed, Waiting], "for ever");
    for executor in kernel.snapshot(at(1)).executors {
        let name = kernel.executor_name(executor.id).to_string();
        kernel.status_update(&StatusUpdate::new(&name, TaskState::Finished), at(1));
    }
    assert_eq!(answer(&mut handler, &["S1", "S2"], &mut gangs, 0), [3, 4]);
    assert_eq!(states(&gangs), [Placed, Placed]);
}

/// Goal: gangs without tasks, without time, and picked without a commit are harmless. Method: one of each.
#[test]
fn odd_gangs_do_no_harm() {
    let mut handler = kernel(4000).handler();
    let mut gangs = [gang(0..0, 1000, 0, secs(1)), gang(1..2, 1000, 0, secs(0))];
    assert!(answer(&mut handler, &["S1"], &mut gangs, 0).is_empty());
    assert_eq!(states(&gangs), [GangState::Placed, GangState::GivenUp]);
    let mut gangs = [gang(1..2, 0, 0, secs(1)), gang(2..3, u64::MAX, 0, secs(1))];
    assert!(answer(&mut handler, &["S1"], &mut gangs, 0).is_empty());
    assert_eq!(states(&gangs), [GangState::Waiting; 2]);
    gangs[0].settle(&Decisions::new());
    assert_eq!(gangs[0].state(), GangState::Waiting);
}

/// Goal: two frameworks' threads with gangs that don't fit together under a cap never block each other: all are placed,
/// one after the other. Method: four threads place 50 gangs each, of more than half of the cap, and end them.
#[test]
fn threads_with_gangs_never_wait_for_each_other() {
    let kernel = kernel(5000);
    std::thread::scope(|scope| {
        for worker in 0..4u64 {
            let kernel = &kernel;
            scope.spawn(move || {
                let mut handler = kernel.handler();
                for round in 0..50 {
                    let first = worker * 1000 + round * 3;
                    let mut gangs = [gang(first..first + 3, 1000, 0, Duration::MAX)];
                    let mut placed = Vec::new();
                    while placed.is_empty() {
                        placed = answer(&mut handler, &["S1", "S2"], &mut gangs, 0);
                        std::thread::yield_now();
                    }
                    assert_eq!((placed.len(), gangs[0].state()), (3, GangState::Placed));
                    assert!(kernel.totals().cores.millis() <= 5000);
                    let snapshot = kernel.snapshot(at(0));
                    let own = snapshot.executors.iter().filter(|executor| {
                        executor.tag.is_some_and(|tag| (first..first + 3).contains(&tag))
                    });
                    for executor in own {
                        let name = kernel.executor_name(executor.id).to_string();
                        let end = StatusUpdate::new(&name, TaskState::Finished);
                        assert_eq!(kernel.status_update(&end, at(0)).tag, executor.tag);
                    }
                }
            });
        }
    });
    assert_eq!(kernel.totals().executors, 0);
    kernel.check().unwrap();
}
