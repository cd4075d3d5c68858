//! Counters of offers and declines. Each handler has its own counters, which only it writes; a reader sums them up.
//! Each handler also keeps its [near misses](super::near_miss).
//!
//! | thread | operation | ordering |
//! |---|---|---|
//! | the handler that owns the counters | load and store, once per batch for each counter that changed | Relaxed |
//! | readers | load | Relaxed |
//!
//! Relaxed, because counters guard no other memory. A reader sees each counter grow; it sees different counters at
//! slightly different times.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

use super::near_miss::{BatchContext, NearMiss, NearMisses, nearest};
use crate::kernel::reason::{Decline, ReasonKind};
use crate::time::Timestamp;

const KINDS: usize = ReasonKind::ALL.len();

/// One handler's counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    offers: AtomicU64,
    accepted: AtomicU64,
    executors: AtomicU64,
    declined: [AtomicU64; KINDS],
    /// When offers came last, in milliseconds, plus one; 0 is never.
    offered: AtomicU64,
    near_misses: NearMisses,
}

/// What happened to offers since the kernel was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct OfferCounts {
    /// The number of batches answered.
    pub batches: u64,
    /// The number of offers answered.
    pub offers: u64,
    /// The number of offers accepted.
    pub accepted: u64,
    /// The number of executors placed.
    pub executors: u64,
    #[cfg_attr(feature = "serde", serde(with = "declined_map"))]
    declined: [u64; KINDS],
}

/// The numbers of declined offers, by the kind of the reason: see [`OfferCounts::declines`].
#[derive(Clone, Debug)]
pub struct DeclineCounts<'a> {
    counts: &'a OfferCounts,
    kinds: std::array::IntoIter<ReasonKind, KINDS>,
}

/// The declines as a map from reasons to numbers, without those that have none.
#[cfg(feature = "serde")]
mod declined_map {
    use std::collections::HashMap;

    use serde::de::IntoDeserializer;
    use serde::de::value::{self, StringDeserializer};
    use serde::ser::SerializeMap;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::KINDS;
    use crate::kernel::reason::ReasonKind;

    pub(super) fn serialize<S: Serializer>(
        declined: &[u64; KINDS],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // Formats such as postcard need the length first.
        let kinds = declined.iter().filter(|offers| **offers > 0).count();
        let mut map = serializer.serialize_map(Some(kinds))?;
        for (kind, offers) in ReasonKind::ALL.into_iter().zip(declined) {
            if *offers > 0 {
                map.serialize_entry(&kind, offers)?;
            }
        }
        map.end()
    }

    /// Kinds that are unknown, because a later version wrote them, are skipped in formats with names.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u64; KINDS], D::Error> {
        let counts: HashMap<ReasonKind, u64> = if deserializer.is_human_readable() {
            let named = HashMap::<String, u64>::deserialize(deserializer)?;
            let known = named.into_iter().filter_map(|(name, offers)| {
                let name: StringDeserializer<value::Error> = name.into_deserializer();
                Some((ReasonKind::deserialize(name).ok()?, offers))
            });
            known.collect()
        } else {
            HashMap::deserialize(deserializer)?
        };
        Ok(ReasonKind::ALL.map(|kind| counts.get(&kind).copied().unwrap_or(0)))
    }
}

impl Iterator for DeclineCounts<'_> {
    type Item = (ReasonKind, u64);

    fn next(&mut self) -> Option<(ReasonKind, u64)> {
        let kind = self.kinds.next()?;
        Some((kind, self.counts.declined(kind)))
    }
}

impl OfferCounts {
    /// Returns the number of offers declined for reasons of this kind.
    #[must_use]
    pub fn declined(&self, kind: ReasonKind) -> u64 {
        self.declined[kind as usize]
    }

    /// Returns all kinds of reasons with the number of offers declined for each.
    pub fn declines(&self) -> DeclineCounts<'_> {
        DeclineCounts { counts: self, kinds: ReasonKind::ALL.into_iter() }
    }

    fn add(&mut self, counters: &Counters) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.batches += read(&counters.batches);
        self.offers += read(&counters.offers);
        self.accepted += read(&counters.accepted);
        self.executors += read(&counters.executors);
        for (sum, counter) in self.declined.iter_mut().zip(&counters.declined) {
            *sum += read(counter);
        }
    }
}

impl Counters {
    /// The cells of its near misses, which are allocated separately.
    #[cfg(all(counting, test))]
    pub(crate) fn near_misses(&self) -> impl Iterator<Item = &super::near_miss::MissCell> {
        self.near_misses.cells()
    }

    /// Counts a batch with these declines, and this many accepted offers and placed executors. With `alike`, all its
    /// declines have one reason. Only the handler that owns the counters calls this.
    #[inline(always)]
    pub(crate) fn count(
        &self,
        declines: &[Decline],
        accepted: usize,
        executors: usize,
        alike: bool,
        batch: &BatchContext<'_>,
    ) {
        // In runs of one kind; usually there is one run.
        let mut rest = declines;
        while let Some((first, others)) = rest.split_first() {
            let kind = first.reason.kind();
            let differs = |decline: &Decline| decline.reason.kind() != kind;
            let more = if alike { None } else { others.iter().position(differs) };
            let run = 1 + more.unwrap_or(others.len());
            add(&self.declined[kind as usize], run as u64);
            self.near_misses.record(kind, &rest[..run], alike, batch);
            rest = &rest[run..];
        }
        self.count_offers(accepted + declines.len(), batch);
        add(&self.accepted, accepted as u64);
        add(&self.executors, executors as u64);
    }

    /// Counts a batch with these declines, all for the reason, of this kind, for which the last batch was declined.
    #[inline(always)]
    pub(crate) fn count_again(
        &self,
        kind: ReasonKind,
        declines: &[Decline],
        batch: &BatchContext<'_>,
    ) {
        add(&self.declined[kind as usize], declines.len() as u64);
        // What was recorded then stays for a second.
        if !self.near_misses.is_fresh(kind, batch.now) {
            self.near_misses.record(kind, declines, true, batch);
        }
        self.count_offers(declines.len(), batch);
    }

    #[inline(always)]
    fn count_offers(&self, offers: usize, batch: &BatchContext<'_>) {
        if !batch.offers.is_empty() {
            self.offered.store(batch.now.as_millis().saturating_add(1), Ordering::Relaxed);
        }
        add(&self.batches, 1);
        add(&self.offers, offers as u64);
    }
}

#[inline(always)]
fn add(counter: &AtomicU64, more: u64) {
    if more > 0 {
        counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }
}

/// The counters of all handlers.
#[derive(Debug, Default)]
pub(crate) struct AllCounters(Mutex<HandlerList>);

#[derive(Debug, Default)]
struct HandlerList {
    active: Vec<Arc<CachePadded<Counters>>>,
    dropped: OfferCounts,
    /// Of handlers that were dropped: see [`Counters`].
    offered: u64,
    near_misses: [Option<NearMiss>; KINDS],
}

impl AllCounters {
    pub(crate) fn register(&self) -> Arc<CachePadded<Counters>> {
        let counters = Arc::new(CachePadded::new(Counters::default()));
        lock(&self.0).active.push(Arc::clone(&counters));
        counters
    }

    pub(crate) fn unregister(&self, counters: &Arc<CachePadded<Counters>>) {
        let mut handlers = lock(&self.0);
        handlers.active.retain(|active| !Arc::ptr_eq(active, counters));
        handlers.dropped.add(counters);
        handlers.offered = handlers.offered.max(counters.offered.load(Ordering::Relaxed));
        for (kept, kind) in handlers.near_misses.iter_mut().zip(ReasonKind::ALL) {
            *kept = nearest(kept.take().into_iter().chain(counters.near_misses.read(kind)));
        }
    }

    pub(crate) fn sum(&self) -> OfferCounts {
        let handlers = lock(&self.0);
        let mut sum = handlers.dropped;
        handlers.active.iter().for_each(|counters| sum.add(counters));
        sum
    }

    /// Returns when offers came last.
    pub(crate) fn offered_at(&self) -> Option<Timestamp> {
        let handlers = lock(&self.0);
        let active =
            handlers.active.iter().map(|counters| counters.offered.load(Ordering::Relaxed));
        let stamp = active.chain([handlers.offered]).max()?;
        stamp.checked_sub(1).map(Timestamp::from_millis)
    }

    /// Returns the nearest miss of a kind for which `counts` returns `true`.
    pub(crate) fn nearest(
        &self,
        kind: ReasonKind,
        counts: impl Fn(&NearMiss) -> bool,
    ) -> Option<NearMiss> {
        let handlers = lock(&self.0);
        let active = handlers.active.iter().filter_map(|counters| counters.near_misses.read(kind));
        nearest(active.chain(handlers.near_misses[kind as usize].clone()).filter(counts))
    }
}
