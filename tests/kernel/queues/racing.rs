//! Queues while threads race.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use offermill::config::{Queue, QueueId};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{ConfigBuilder, Decisions, IdScheme, Kernel, Picks, StatusUpdate, Task, TaskState};

use crate::threads::{Rng, seed};
use crate::world::{OfferData, Setup, at, lend};

const CAP: u64 = 12;
/// The maximum of the first queue, and the guarantee of the second.
const MOST: u64 = 5;
const LEAST: u64 = 4;

fn config() -> ConfigBuilder {
    let setup = Setup { core_cap: Some(CAP * 1000), executor_cores: Some(1), ..Setup::default() };
    let etl = Queue::new("etl")
        .max_cores(Some(MilliCpus::from_cores(MOST)))
        .max_memory(Some(Mebibytes::new(MOST * 100)));
    let web = Queue::new("web").guaranteed_cores(MilliCpus::from_cores(LEAST));
    setup.config().to_builder().queue(etl).queue(web)
}

/// Places random tasks in queues 0 to `queues` - 1, and ends them.
fn place_and_end(kernel: &Kernel, random: &mut Rng, queues: u64) {
    let (mut handler, mut decisions, mut picks) =
        (kernel.handler(), Decisions::new(), Picks::new());
    let mut live = Vec::new();
    for _ in 0..400 {
        picks.clear();
        for tag in 0..random.below(5) {
            let cores = MilliCpus::from_millis(500 + random.below(1500));
            let queue = QueueId::new(random.below(queues) as u8);
            picks.push(0, Task::new(tag, cores, Mebibytes::new(100)).in_queue(queue));
        }
        lend(&[OfferData::new("S0", 64.0, 65536.0)], |offers| {
            handler.propose(offers, at(1)).commit(&picks, at(1), &mut decisions);
        });
        live.extend(decisions.accepts().flat_map(|it| it.executors).map(|it| it.id));
        while !live.is_empty() && random.below(3) > 0 {
            let id = live.swap_remove(random.below(live.len() as u64) as usize);
            let name = kernel.executor_name(id).to_string();
            kernel.status_update(&StatusUpdate::new(&name, TaskState::Finished), at(1));
        }
    }
    for id in live {
        let name = kernel.executor_name(id).to_string();
        kernel.status_update(&StatusUpdate::new(&name, TaskState::Finished), at(1));
    }
}

/// Goal: with threads that place and end tasks, a queue's maximum isn't exceeded in any state that another can see, its
/// guarantee stays free below the cap, and nothing stays booked. Method: three threads of random tasks, none of which
/// is of the queue with the guarantee; another reads what the queue holds and the totals all the time.
#[test]
fn bounds_hold_while_threads_race() {
    let kernel = Kernel::new(config().build().unwrap(), IdScheme::unique("q", 3).unwrap());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|n| {
                let kernel = &kernel;
                scope.spawn(move || place_and_end(kernel, &mut Rng(seed() + n), 2))
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let etl = &kernel.queues()[1];
                assert!(etl.cores <= MilliCpus::from_cores(MOST), "{etl}");
                assert!(etl.memory <= Mebibytes::new(MOST * 100), "{etl}");
                let most = MilliCpus::from_cores(CAP - LEAST);
                let totals = kernel.totals().cores;
                assert!(totals <= most, "{totals} cores, with what is kept for another queue");
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    kernel.check().unwrap();
    assert!(kernel.queues().iter().all(|queue| queue.cores == MilliCpus::ZERO));
}

/// Goal: nothing that is booked is lost or stays while bounds, guarantees and demand change. Method: as above with all
/// queues, beside a thread that changes all of them.
#[test]
fn books_are_right_after_changes() {
    let kernel = Kernel::new(config().build().unwrap(), IdScheme::unique("q", 4).unwrap());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|n| {
                let kernel = &kernel;
                scope.spawn(move || place_and_end(kernel, &mut Rng(seed() + n), 3))
            })
            .collect();
        scope.spawn(|| {
            let mut random = Rng(seed() + 9);
            while !is_over.load(Ordering::Relaxed) {
                let cores = |random: &mut Rng| MilliCpus::from_cores(random.below(4));
                let web = Queue::new("web").guaranteed_cores(cores(&mut random));
                let etl = Queue::new("etl").max_cores(Some(cores(&mut random)));
                let config = kernel.config().to_builder().queue(web).queue(etl);
                kernel.reconfigure(config.build().unwrap());
                kernel.set_queue_demand(QueueId::new(2), random.below(2) == 0);
                thread::yield_now();
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    kernel.check().unwrap();
    assert_eq!(kernel.totals().executors, 0);
}
