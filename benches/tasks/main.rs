//! Tasks of unequal sizes, which a framework picks for rooms: proposal, choice and commit, and the choice from many
//! that wait; `benches/README.md` says what each shows.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod ours;
mod plain;
mod stream;
mod waiting;

use std::cell::RefCell;
use std::time::Duration;

use criterion::{Criterion, Throughput};

use ours::Ours;
use plain::{Books, Locked};
use stream::{TASKS_AN_OFFER, TaskScheduler, TaskStream};
use support::in_turn::{Compared, in_turn};
use support::threads::together;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Agents and offers in a batch, where they don't vary.
const AGENTS: usize = 10_000;
const BATCH: usize = 100;
/// Kinds of tasks, where they don't vary.
const KINDS: usize = 16;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let batches = [1, 10, 100, 1000];
    one_thread(&mut criterion, "tasks/by batch", true, batches, |batch| (batch, KINDS));
    one_thread(&mut criterion, "tasks/not recorded", false, batches, |batch| (batch, KINDS));
    one_thread(&mut criterion, "tasks/by kinds", true, [1, 16, 256, 4096], |kinds| (BATCH, kinds));
    waiting(&mut criterion);
    threads(&mut criterion);
    criterion.final_summary();
}

/// Kernel and plain loop on one thread. `point` says how many offers and kinds of tasks a value stands for.
fn one_thread(
    criterion: &mut Criterion,
    name: &str,
    is_recorded: bool,
    values: [usize; 4],
    point: fn(usize) -> (usize, usize),
) {
    let mut group = support::group(criterion, name);
    for value in values {
        let (batch, kinds) = point(value);
        group.throughput(Throughput::Elements((batch * TASKS_AN_OFFER) as u64));
        let pair = RefCell::new(None);
        let made = || {
            let mut ours = TaskStream::new(Ours::new(is_recorded), AGENTS, batch, kinds);
            let mut plain = TaskStream::new(Books::new(is_recorded), AGENTS, batch, kinds);
            stream::agree(&mut ours, &mut plain);
            (ours.filled(), plain.filled())
        };
        let mut ours = |turns| pair.borrow_mut().get_or_insert_with(made).0.run(turns);
        let mut plain = |turns| pair.borrow_mut().get_or_insert_with(made).1.run(turns);
        let compared = &mut [("offermill", &mut ours as _), ("plain", &mut plain as _)];
        in_turn(&mut group, (name, value), compared);
    }
    group.finish();
}

/// Batches that pick from tasks that wait, of one kind or more: the library's order of them, and a sorted list.
fn waiting(criterion: &mut Criterion) {
    let name = "tasks/waiting by kinds";
    let mut group = support::group(criterion, name);
    group.throughput(Throughput::Elements(waiting::AGENTS.into()));
    for kinds in [1, 16, 256, 4096] {
        let pair = RefCell::new(None);
        let made = || waiting::streams(kinds);
        let mut ours = |turns| pair.borrow_mut().get_or_insert_with(made).0.run(turns);
        let mut plain = |turns| pair.borrow_mut().get_or_insert_with(made).1.run(turns);
        let compared = &mut [("offermill", &mut ours as _), ("plain", &mut plain as _)];
        in_turn(&mut group, (name, kinds), compared);
    }
    group.finish();
}

/// The same work on one thread, two and four: on one kernel, on one plain loop behind a lock, and on plain loops apart.
fn threads(criterion: &mut Criterion) {
    let name = "tasks/threads";
    let mut group = support::group(criterion, name);
    group.throughput(Throughput::Elements((BATCH * TASKS_AN_OFFER) as u64));
    for threads in [1, 2, 4] {
        let (kernel, locked) = (Ours::new(true), Locked::new());
        let mut ours = on_threads(|| (0..threads).map(|_| kernel.beside()).collect());
        let mut mutex = on_threads(|| (0..threads).map(|_| locked.clone()).collect());
        let mut apart = on_threads(|| (0..threads).map(|_| Books::new(true)).collect());
        let compared: &mut [Compared<'_>] =
            &mut [("offermill", &mut ours), ("mutex", &mut mutex), ("plain apart", &mut apart)];
        in_turn(&mut group, (name, threads), compared);
    }
    group.finish();
}

/// Times turns on the wall, without the ends of tasks.
fn on_threads<S: TaskScheduler>(schedulers: impl Fn() -> Vec<S>) -> impl FnMut(u64) -> Duration {
    let mut streams: Option<Vec<TaskStream<S>>> = None;
    move |turns| {
        let streams = streams.get_or_insert_with(|| {
            let all = schedulers().into_iter();
            all.map(|scheduler| TaskStream::new(scheduler, AGENTS, BATCH, KINDS)).collect()
        });
        // As many turns at a time as keep the tasks of all threads alive.
        let (mut left, mut spent) = (turns, Duration::ZERO);
        while left > 0 {
            let share = left.min(20 * streams.len() as u64);
            spent += together(streams, share, |stream, turns| stream.place(turns));
            streams.iter_mut().for_each(TaskStream::end_all);
            left -= share;
        }
        spent
    }
}
