//! Batches of offers, by what becomes of them.

use std::time::Duration;

use offermill::resources::MilliCpus;
use offermill::{Config, IdScheme, Kernel, ReasonKind, TaskState};

use crate::support::fleet::Fleet;
use crate::support::scheduler::{Ours, Scheduler as _};
use crate::support::{self, EXECUTOR_CORES, HALF, MET, UNMET};
use crate::{Scene, Size, capacity, counted};

pub(crate) const SCENES: [(&str, Scene); 16] = [
    ("offers/met first", met_first),
    ("offers/constraint unmet, 100", |size| declined(size, 100, Cause::Constraint)),
    ("offers/constraint unmet, 1", |size| declined(size, 1, Cause::Constraint)),
    ("offers/cap reached, 100", |size| declined(size, 100, Cause::Cap)),
    ("offers/cap reached, 1", |size| declined(size, 1, Cause::Cap)),
    ("offers/too small, 100", |size| declined(size, 100, Cause::Size)),
    ("offers/too small, 1", |size| declined(size, 1, Cause::Size)),
    ("offers/too small, not recorded, 100", |size| declined(size, 100, Cause::SizeUnrecorded)),
    ("offers/excluded, 100", |size| declined(size, 100, Cause::Exclusion)),
    ("offers/excluded, 1", |size| declined(size, 1, Cause::Exclusion)),
    ("offers/half accepted, 100", |size| accepted(size, 100, &unique(HALF))),
    ("offers/half accepted, 1", |size| accepted(size, 1, &unique(HALF))),
    ("offers/accepted, 100", |size| accepted(size, 100, &unique(MET))),
    ("offers/accepted, 1", |size| accepted(size, 1, &unique(MET))),
    ("offers/accepted, 100, plain ids", |size| accepted(size, 100, &plain(MET))),
    ("offers/accepted, 1, plain ids", |size| accepted(size, 1, &plain(MET))),
];

/// Why offers are declined.
#[derive(Clone, Copy)]
enum Cause {
    Constraint,
    Cap,
    Size,
    /// The same, and what agents offer isn't recorded for pictures of the capacity.
    SizeUnrecorded,
    Exclusion,
}

impl Cause {
    fn config(self) -> Config {
        match self {
            Cause::Constraint => support::config(UNMET, None),
            Cause::Cap => support::config(MET, Some(EXECUTOR_CORES)),
            Cause::Size => support::config_of(MilliCpus::from_cores(64), MET, None),
            Cause::SizeUnrecorded => capacity::config(Duration::MAX),
            Cause::Exclusion => support::config(MET, None),
        }
    }

    fn reason(self) -> ReasonKind {
        match self {
            Cause::Constraint => ReasonKind::ConstraintUnmet,
            Cause::Cap => ReasonKind::CoreCap,
            Cause::Size | Cause::SizeUnrecorded => ReasonKind::Cpus,
            Cause::Exclusion => ReasonKind::AgentExcluded,
        }
    }
}

/// Agents that no handler ever saw: what is looked up and kept for the first time.
fn met_first(size: Size) -> u64 {
    let fleet = Fleet::new(size.agents, 100);
    let kernel = support::kernel(&support::config(UNMET, None));
    let mut ours = Ours::new(&kernel);
    for batch in &fleet.met {
        counted(|| ours.answer(batch));
    }
    kernel.offer_counts().offers
}

fn declined(size: Size, batch: usize, cause: Cause) -> u64 {
    let fleet = Fleet::new(size.agents, batch);
    let kernel = support::kernel(&cause.config());
    let mut ours = Ours::new(&kernel);
    let mut names = Vec::new();
    for batch in fleet.met.iter().chain(&fleet.stream) {
        ours.answer(batch);
        if let Cause::Exclusion = cause {
            ours.names(&mut names);
            ours.update_all(&names, TaskState::Failed);
        }
    }
    let declined = || kernel.offer_counts().declined(cause.reason());
    let before = declined();
    let mut elements = 0;
    for batch in (0..size.laps).flat_map(|_| &fleet.stream) {
        counted(|| ours.answer(batch));
        elements += batch.len() as u64;
    }
    assert_eq!(declined() - before, elements, "declined for another reason");
    elements
}

fn unique(constraint: &str) -> Kernel {
    support::kernel(&support::config(constraint, None))
}

/// A kernel whose ids are mere numbers.
fn plain(constraint: &str) -> Kernel {
    Kernel::new(support::config(constraint, None), IdScheme::plain())
}

/// At most one executor an offer, all of which end, uncounted, at the end of a lap.
fn accepted(size: Size, batch: usize, kernel: &Kernel) -> u64 {
    let fleet = Fleet::new(size.agents, batch);
    let mut ours = Ours::new(kernel);
    let (mut names, mut elements) = (Vec::new(), 0);
    for lap in 0..=size.laps {
        for batch in if lap == 0 { &fleet.met } else { &fleet.stream } {
            if lap == 0 {
                ours.answer(batch);
            } else {
                counted(|| ours.answer(batch));
                elements += batch.len() as u64;
            }
            ours.note();
        }
        ours.noted(&mut names);
        assert!(names.len() >= size.agents / 2, "too few executors");
        ours.end_all(&names);
    }
    elements
}
