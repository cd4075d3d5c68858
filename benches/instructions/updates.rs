//! Status updates, and the picture of many executors.

use std::hint::black_box;

use offermill::{Change, IdScheme, Kernel, StatusUpdate, TaskState};

use crate::support::fleet::Fleet;
use crate::support::scheduler::{Ours, Scheduler as _};
use crate::support::{self, MET, NOW};
use crate::{Scene, Size, counted};

pub(crate) const SCENES: [(&str, Scene); 11] = [
    ("updates/running", |size| updates(size, TaskState::Running, |_, _| (), Told::OneByOne)),
    ("updates/running again", |size| {
        updates(size, TaskState::Running, tell_running, Told::OneByOne)
    }),
    ("updates/end", |size| updates(size, TaskState::Finished, tell_running, Told::OneByOne)),
    ("updates/end, by an updater", |size| {
        updates(size, TaskState::Finished, tell_running, Told::ByUpdater)
    }),
    ("updates/end, 100 at a time", |size| {
        updates(size, TaskState::Finished, tell_running, Told::Together(100))
    }),
    ("updates/end again", |size| updates(size, TaskState::Finished, tell_finished, Told::OneByOne)),
    ("updates/running, plain ids", |size| {
        plain(size, TaskState::Running, |_, _| (), Told::OneByOne)
    }),
    ("updates/end, plain ids", |size| {
        plain(size, TaskState::Finished, tell_running, Told::OneByOne)
    }),
    ("updates/end, 100 at a time, plain ids", |size| {
        plain(size, TaskState::Finished, tell_running, Told::Together(100))
    }),
    ("updates/end again, plain ids", |size| {
        plain(size, TaskState::Finished, tell_finished, Told::OneByOne)
    }),
    ("snapshot/executors", snapshot),
];

/// How updates are told.
#[derive(Clone, Copy)]
enum Told {
    OneByOne,
    ByUpdater,
    /// This many at a time.
    Together(usize),
}

fn report(kernel: &Kernel, name: &str, state: TaskState) -> Change {
    kernel.status_update(&StatusUpdate::new(name, state), NOW).change
}

fn tell_running(kernel: &Kernel, name: &str) {
    assert_eq!(report(kernel, name, TaskState::Running), Change::Running);
}

fn tell_finished(kernel: &Kernel, name: &str) {
    assert!(matches!(report(kernel, name, TaskState::Finished), Change::Ended(_)));
}

/// One executor on each agent, and their ids' texts in another order than that in which they were placed.
fn alive(ours: &mut Ours, fleet: &Fleet, lap: usize, names: &mut Vec<String>) {
    for batch in if lap == 0 { &fleet.met } else { &fleet.stream } {
        ours.answer(batch);
        ours.note();
    }
    ours.noted(names);
    let half = names.split_off(names.len() / 2);
    let pairs = half.into_iter().zip(std::mem::take(names));
    names.extend(pairs.flat_map(|(one, other)| [one, other]));
}

/// One update per executor, after `first`.
fn updates(size: Size, state: TaskState, first: fn(&Kernel, &str), told: Told) -> u64 {
    updates_of(&support::kernel(&support::config(MET, None)), size, state, first, told)
}

/// The same; the ids are mere numbers.
fn plain(size: Size, state: TaskState, first: fn(&Kernel, &str), told: Told) -> u64 {
    let kernel = Kernel::new(support::config(MET, None), IdScheme::plain());
    updates_of(&kernel, size, state, first, told)
}

fn updates_of(
    kernel: &Kernel,
    size: Size,
    state: TaskState,
    first: fn(&Kernel, &str),
    told: Told,
) -> u64 {
    let fleet = Fleet::new(size.agents, 100);
    let mut ours = Ours::new(kernel);
    let mut updater = kernel.updater();
    let (mut names, mut outcomes, mut elements) = (Vec::new(), Vec::new(), 0);
    for lap in 0..=size.laps {
        alive(&mut ours, &fleet, lap, &mut names);
        names.iter().for_each(|name| first(kernel, name));
        let updates: Vec<_> = names.iter().map(|name| StatusUpdate::new(name, state)).collect();
        let mut work = || match told {
            Told::OneByOne => {
                updates.iter().for_each(|update| _ = black_box(kernel.status_update(update, NOW)));
            }
            Told::ByUpdater => {
                updates.iter().for_each(|update| _ = black_box(updater.status_update(update, NOW)));
            }
            Told::Together(batch) => updates.chunks(batch).for_each(|updates| {
                outcomes.clear();
                kernel.status_updates(updates, NOW, &mut outcomes);
                black_box(&outcomes);
            }),
        };
        if lap == 0 {
            work();
        } else {
            counted(work);
            elements += names.len() as u64;
        }
        ours.end_all(&names);
        assert_eq!(kernel.totals().executors, 0);
    }
    elements
}

fn snapshot(size: Size) -> u64 {
    let fleet = Fleet::new(size.agents, 100);
    let kernel = support::kernel(&support::config(MET, None));
    let mut ours = Ours::new(&kernel);
    alive(&mut ours, &fleet, 0, &mut Vec::new());
    black_box(kernel.snapshot(NOW));
    let pictures = (0..size.laps).map(|_| counted(|| kernel.snapshot(NOW)));
    pictures.map(|picture| picture.executors.len() as u64).sum()
}
