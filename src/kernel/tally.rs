//! Counters. Each handler has cells of its own that it alone writes; a reader adds them up.
//!
//! | who | does | ordering |
//! |---|---|---|
//! | the cell's own handler | load and store, once a batch for each counter that moved | Relaxed |
//! | readers | load | Relaxed |
//!
//! Relaxed throughout: counters guard nothing. A reader sees each counter grow, and different counters at slightly
//! different moments.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

use super::decision::{Decisions, Decline, ReasonKind};

const KINDS: usize = ReasonKind::ALL.len();

/// One handler's counters.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    batches: AtomicU64,
    offers: AtomicU64,
    accepted: AtomicU64,
    executors: AtomicU64,
    declined: [AtomicU64; KINDS],
}

/// What happened to offers since the kernel was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferCounts {
    /// Batches answered.
    pub batches: u64,
    /// Offers answered.
    pub offers: u64,
    /// Offers accepted.
    pub accepted: u64,
    /// Executors placed.
    pub executors: u64,
    declined: [u64; KINDS],
}

impl OfferCounts {
    /// How many offers were declined for a reason of this kind.
    #[must_use]
    pub fn declined(&self, kind: ReasonKind) -> u64 {
        self.declined[kind as usize]
    }

    /// Every kind of reason with how many offers were declined for it.
    pub fn declines(&self) -> impl Iterator<Item = (ReasonKind, u64)> + '_ {
        ReasonKind::ALL.into_iter().map(|kind| (kind, self.declined(kind)))
    }

    fn add(&mut self, tally: &Tally) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.batches += read(&tally.batches);
        self.offers += read(&tally.offers);
        self.accepted += read(&tally.accepted);
        self.executors += read(&tally.executors);
        for (sum, counter) in self.declined.iter_mut().zip(&tally.declined) {
            *sum += read(counter);
        }
    }
}

impl Tally {
    /// Counts a batch, whose declines are all for one reason if `alike`. Only the tally's own handler calls this.
    pub(crate) fn count(&self, decisions: &Decisions, alike: bool) {
        let add = |counter: &AtomicU64, more: u64| {
            if more > 0 {
                counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
            }
        };
        // By runs: mostly there is one.
        let mut rest = &decisions.declines[..];
        while let Some(first) = rest.first() {
            let kind = first.reason.kind();
            let differs = |decline: &Decline| decline.reason.kind() != kind;
            let run = if alike { None } else { rest.iter().position(differs) };
            let run = run.unwrap_or(rest.len());
            add(&self.declined[kind as usize], run as u64);
            rest = &rest[run..];
        }
        add(&self.batches, 1);
        add(&self.offers, (decisions.accepted.len() + decisions.declines.len()) as u64);
        add(&self.accepted, decisions.accepted.len() as u64);
        add(&self.executors, decisions.placed.len() as u64);
    }
}

/// All handlers' tallies.
#[derive(Debug, Default)]
pub(crate) struct Tallies(Mutex<Roster>);

#[derive(Debug, Default)]
struct Roster {
    present: Vec<Arc<CachePadded<Tally>>>,
    departed: OfferCounts,
}

impl Tallies {
    pub(crate) fn join(&self) -> Arc<CachePadded<Tally>> {
        let tally = Arc::new(CachePadded::new(Tally::default()));
        lock(&self.0).present.push(Arc::clone(&tally));
        tally
    }

    pub(crate) fn leave(&self, tally: &Arc<CachePadded<Tally>>) {
        let mut roster = lock(&self.0);
        roster.present.retain(|present| !Arc::ptr_eq(present, tally));
        roster.departed.add(tally);
    }

    pub(crate) fn sum(&self) -> OfferCounts {
        let roster = lock(&self.0);
        let mut sum = roster.departed;
        roster.present.iter().for_each(|tally| sum.add(tally));
        sum
    }
}
