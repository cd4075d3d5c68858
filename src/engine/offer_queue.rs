//! The offer queue: a bounded queue between cluster managers and handler threads, with an index of offer ids for
//! rescissions.
//!
//! It has one lock, held for a few moves: queued offers have come over a network or a channel anyway, and frameworks
//! that can't afford the lock call the kernel directly. Offers that find no room are returned, to be declined.
//! Rescinded offers are removed.
//!
//! A rescission finds its offer in a hash table from ids to places in the queue, and leaves an empty place. Neither
//! pushing nor popping touches the table: a rescission first indexes the offers that were pushed since the last one. An
//! offer is indexed once, and once more when empty places are removed, which happens when they are the majority. So a
//! rescission takes constant time, amortised over the pushed offers, and the memory of queue and table is proportional
//! to the most offers that were queued at once.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::cluster_manager::OwnedOffer;
use super::encoded::EncodedOffer;
use super::sync::{Condvar, Mutex, MutexGuard, let_others_run, lock, wait};

/// The number of empty places, or of stale entries in the index, up to which none are removed.
const LEFTOVERS_MIN: usize = 64;

/// How often a handler lets others run and looks again before it waits for offers: if nobody else runs, for some tens
/// of microseconds, about what it takes to wake it on an idle core.
const TURNS_MAX: u32 = if cfg!(shuttle) { 1 } else { 100 };

/// An offer that can be queued.
pub(crate) trait Queued {
    /// The bytes of the offer's id; empty if it can't be found.
    fn id_bytes(&self) -> Cow<'_, [u8]>;
}

/// An offer in an engine's offer queue.
#[derive(Debug)]
pub(crate) enum QueuedOffer {
    /// Boxed, so that an encoded offer, which is far smaller, is moved in and out of the queue as cheaply as it can be.
    Owned(Box<OwnedOffer>),
    Encoded(EncodedOffer),
}

impl QueuedOffer {
    /// The offer's id; empty if it can't be found.
    pub(super) fn into_id(self) -> String {
        match self {
            QueuedOffer::Owned(offer) => offer.id,
            QueuedOffer::Encoded(offer) => offer.id().to_owned(),
        }
    }
}

impl Queued for QueuedOffer {
    fn id_bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(match self {
            QueuedOffer::Owned(offer) => offer.id.as_bytes(),
            QueuedOffer::Encoded(offer) => offer.id_bytes(),
        })
    }
}

#[derive(Debug)]
pub(crate) struct OfferQueue<O = QueuedOffer> {
    queue: Mutex<QueueState<O>>,
    filled: Condvar,
    offers_max: usize,
}

#[derive(Debug)]
struct QueueState<O> {
    /// A place is empty after its offer was rescinded.
    offers: VecDeque<Option<O>>,
    /// The number of places that are not empty.
    waiting: usize,
    /// The number of the first place; places are numbered consecutively.
    first: u64,
    index: Index,
    /// The subscription of all queued offers.
    epoch: u64,
    closed: bool,
    /// Handlers that found nothing and look again before they wait.
    looking: usize,
    /// Handlers that wait and weren't notified since; after a spurious wakeup it may be one more, never one less.
    idle: usize,
}

/// The places of offers by the hashes of their ids.
#[derive(Debug, Default)]
struct Index {
    table: HashTable<Indexed>,
    hasher: RandomState,
    /// The number of the first place that is not indexed yet.
    end: u64,
}

#[derive(Clone, Copy, Debug)]
struct Indexed {
    hash: u64,
    place: u64,
}

impl Index {
    fn hash(&self, id: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(id);
        hasher.finish()
    }
}

impl<O: Queued> QueueState<O> {
    fn new() -> QueueState<O> {
        let offers = VecDeque::new();
        let index = Index::default();
        QueueState {
            offers,
            waiting: 0,
            first: 0,
            index,
            epoch: 0,
            closed: false,
            looking: 0,
            idle: 0,
        }
    }

    fn push(&mut self, offers: Vec<O>) {
        self.waiting += offers.len();
        self.offers.extend(offers.into_iter().map(Some));
    }

    fn pop(&mut self, most: usize, batch: &mut Vec<O>) {
        let count = self.waiting.min(most);
        self.waiting -= count;
        batch.reserve(count);
        if self.waiting + count == self.offers.len() {
            self.first += count as u64;
            batch.extend(self.offers.drain(..count).flatten());
            return;
        }
        let full = batch.len() + count;
        while batch.len() < full {
            let Some(place) = self.offers.pop_front() else { break };
            self.first += 1;
            batch.extend(place);
        }
    }

    /// Removes an offer, if it is queued.
    fn rescind(&mut self, offer_id: &[u8]) -> bool {
        if self.waiting == 0 {
            return false;
        }
        self.index_the_rest();
        let QueueState { offers, index, first, .. } = self;
        let at = |place: u64| usize::try_from(place.checked_sub(*first)?).ok();
        let hash = index.hash(offer_id);
        let is_it = |entry: &Indexed| {
            let offer = at(entry.place).and_then(|at| offers.get(at)?.as_ref());
            entry.hash == hash && offer.is_some_and(|offer| *offer.id_bytes() == *offer_id)
        };
        let Ok(found) = index.table.find_entry(hash, is_it) else { return false };
        let (entry, _) = found.remove();
        if let Some(place) = at(entry.place).and_then(|at| offers.get_mut(at)) {
            *place = None;
        }
        self.waiting -= 1;
        self.remove_empty_places();
        true
    }

    /// Indexes the offers that were pushed since the last call. Removes stale entries, if they are the majority.
    fn index_the_rest(&mut self) {
        let QueueState { offers, index, first, .. } = self;
        if index.table.len() > 2 * offers.len() + LEFTOVERS_MIN {
            index.table.retain(|entry| entry.place >= *first);
            index.table.shrink_to(2 * index.table.len(), |entry| entry.hash);
        }
        let start = index.end.max(*first);
        let indexed = usize::try_from(start - *first).unwrap_or(usize::MAX).min(offers.len());
        for (offer, place) in offers.range(indexed..).zip(start..) {
            if let Some(offer) = offer {
                let hash = index.hash(&offer.id_bytes());
                index.table.insert_unique(hash, Indexed { hash, place }, |entry| entry.hash);
            }
        }
        index.end = *first + offers.len() as u64;
    }

    fn remove_empty_places(&mut self) {
        if self.offers.len() > 2 * self.waiting + LEFTOVERS_MIN {
            self.offers.retain(Option::is_some);
            // All places get new numbers, which are not in the index.
            self.first = self.index.end;
            self.index.table.clear();
        }
    }

    fn clear(&mut self) {
        self.first += self.offers.len() as u64;
        self.offers.clear();
        self.waiting = 0;
    }
}

impl<O: Queued> OfferQueue<O> {
    pub(crate) fn new(offers_max: usize) -> OfferQueue<O> {
        OfferQueue { queue: Mutex::new(QueueState::new()), filled: Condvar::new(), offers_max }
    }

    fn queue(&self) -> MutexGuard<'_, QueueState<O>> {
        lock(&self.queue)
    }

    /// Queues `offers`; returns those that find no room.
    pub(crate) fn push(&self, mut offers: Vec<O>) -> Vec<O> {
        let mut queue = self.queue();
        let room = if queue.closed { 0 } else { self.offers_max.saturating_sub(queue.waiting) };
        let overflow = offers.split_off(room.min(offers.len()));
        if !offers.is_empty() {
            queue.push(offers);
            self.notify_idle(&mut queue);
        }
        overflow
    }

    /// Has one more handler see what is queued, unless one is awake that will. Notifying is a system call.
    fn notify_idle(&self, queue: &mut QueueState<O>) {
        if queue.waiting > 0 && queue.looking == 0 && queue.idle > 0 {
            queue.idle -= 1;
            self.filled.notify_one();
        }
    }

    /// Moves up to `most` offers into `batch`; waits for the first. Returns their subscription; `None` if the queue is
    /// closed and empty.
    pub(crate) fn pop(&self, most: usize, batch: &mut Vec<O>) -> Option<u64> {
        let mut queue = self.queue();
        let mut turns = 0;
        while queue.waiting == 0 {
            if queue.closed {
                return None;
            }
            if turns < TURNS_MAX {
                // What sends offers may be about to send more. To be woken takes far longer than to look again.
                turns += 1;
                queue.looking += 1;
                drop(queue);
                let_others_run();
                queue = self.queue();
                queue.looking -= 1;
            } else {
                queue.idle += 1;
                queue = wait(&self.filled, queue);
            }
        }
        queue.pop(most, batch);
        self.notify_idle(&mut queue);
        Some(queue.epoch)
    }

    /// Removes an offer, if it is still queued. Takes constant time, amortised over the offers that were pushed.
    pub(crate) fn rescind(&self, offer_id: &str) -> bool {
        self.queue().rescind(offer_id.as_bytes())
    }

    /// Drops all offers, whose subscription has ended. Offers that are pushed from now on belong to `epoch`.
    pub(crate) fn reset(&self, epoch: u64) {
        let mut queue = self.queue();
        queue.clear();
        queue.epoch = epoch;
    }

    /// Returns all further offers from [`OfferQueue::push`]. Queued offers can still be popped.
    pub(crate) fn close(&self) {
        self.queue().closed = true;
        self.filled.notify_all();
    }

    /// Returns the number of queued offers.
    #[cfg(any(feature = "simulated", test))]
    pub(crate) fn len(&self) -> usize {
        self.queue().waiting
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::engine::encoded::{EncodedOffers, OfferPlace};
    use crate::offer::Binding;

    fn owned(id: &str) -> QueuedOffer {
        QueuedOffer::Owned(Box::new(OwnedOffer {
            id: id.to_owned(),
            agent_id: "a".to_owned(),
            hostname: "h".to_owned(),
            role: "*".to_owned(),
            resources: Vec::new(),
            attributes: Vec::new(),
            region: None,
            zone: None,
            maintenance_in: None,
            profile: None,
            binding: Binding::Immediate,
        }))
    }

    /// The record is the id.
    fn encoded(id: &str) -> QueuedOffer {
        let place = OfferPlace { offer: 0..id.len(), id: 0..id.len() };
        let offers = EncodedOffers { record: id.as_bytes().into(), places: vec![place] };
        QueuedOffer::Encoded(offers.into_each().next().unwrap())
    }

    /// Owned and encoded offers by turns.
    fn offer(id: u8) -> QueuedOffer {
        let name = id.to_string();
        if id.is_multiple_of(2) { owned(&name) } else { encoded(&name) }
    }

    fn ids(offers: Vec<QueuedOffer>) -> Vec<String> {
        offers.into_iter().map(QueuedOffer::into_id).collect()
    }

    /// Goal: nothing beyond the bound is kept, rescinded offers are not handed out, and a closed offer queue empties.
    /// Method: a history through each state, with either kind of offer in each place.
    #[test]
    fn offers_overflow_rescind_and_end() {
        for first in [1, 2] {
            let offers = |places: &[u8]| places.iter().map(|at| offer(first + at)).collect();
            let name = |at: u8| (first + at).to_string();
            let offer_queue = OfferQueue::new(3);
            offer_queue.reset(1);
            assert_eq!(ids(offer_queue.push(offers(&[0, 1]))), [""; 0]);
            assert_eq!(ids(offer_queue.push(offers(&[2, 3]))), [name(3)]);
            assert!(offer_queue.rescind(&name(1)) && !offer_queue.rescind(&name(1)));
            assert!(!offer_queue.rescind(""));
            let mut batch = Vec::new();
            assert_eq!(offer_queue.pop(1, &mut batch), Some(1));
            offer_queue.close();
            assert_eq!(ids(offer_queue.push(offers(&[4]))), [name(4)]);
            assert_eq!(offer_queue.pop(9, &mut batch), Some(1));
            assert_eq!(ids(std::mem::take(&mut batch)), [name(0), name(2)]);
            assert_eq!(offer_queue.pop(9, &mut batch), None);
        }
    }

    /// Goal: offers of an ended subscription are never handed out. Method: reset with offers waiting.
    #[test]
    fn a_new_subscription_starts_empty() {
        let offer_queue = OfferQueue::new(10);
        offer_queue.push(vec![owned("old"), encoded("older")]);
        offer_queue.reset(2);
        offer_queue.push(vec![encoded("new"), owned("newer")]);
        let mut batch = Vec::new();
        assert_eq!(offer_queue.pop(9, &mut batch), Some(2));
        assert_eq!(ids(batch), ["new", "newer"]);
    }

    /// An offer that counts how often its id is looked at.
    struct Counted(String, Rc<Cell<usize>>);

    impl Queued for Counted {
        fn id_bytes(&self) -> Cow<'_, [u8]> {
            self.1.set(self.1.get() + 1);
            Cow::Borrowed(self.0.as_bytes())
        }
    }

    /// Goal: rescissions take time proportional to their number, whatever is queued. Method: each id is read a few
    /// times at most, if all offers are rescinded in either order, before or while others are pushed and popped, and if
    /// rescinded offers are not queued.
    #[test]
    fn rescissions_take_linear_time() {
        const OFFERS: usize = 10_000;
        let looks = Rc::new(Cell::new(0));
        let offer = |id: usize| Counted(id.to_string(), Rc::clone(&looks));
        let offers = |ids: std::ops::Range<usize>| ids.map(offer).collect::<Vec<_>>();
        let check = |what: &str| {
            let looks = looks.replace(0);
            assert!(looks <= 6 * OFFERS, "{what}: {looks} looks at ids");
        };
        for backwards in [false, true] {
            let offer_queue = OfferQueue::new(OFFERS);
            offer_queue.push(offers(0..OFFERS));
            for id in 0..OFFERS {
                let id = if backwards { OFFERS - 1 - id } else { id };
                assert!(offer_queue.rescind(&id.to_string()) && !offer_queue.rescind("unknown"));
            }
            assert_eq!(offer_queue.len(), 0);
            check("all");
        }
        let offer_queue = OfferQueue::new(OFFERS);
        let mut batch = Vec::new();
        offer_queue.push(offers(0..OFFERS / 2));
        for id in OFFERS / 2..OFFERS {
            assert!(offer_queue.push(vec![offer(id)]).is_empty());
            assert!(offer_queue.rescind(&id.to_string()));
            offer_queue.pop(1, &mut batch);
            assert!(!offer_queue.rescind(&(id - OFFERS / 2).to_string()), "it was popped");
        }
        check("among others");
    }

    /// Goal: rescinded offers leave no memory behind although no offer is popped. Method: many are pushed and rescinded
    /// behind one that stays queued.
    #[test]
    fn rescinded_offers_leave_nothing_behind() {
        let offer_queue = OfferQueue::new(10);
        offer_queue.push(vec![owned("first")]);
        for id in 0..10_000 {
            let id = id.to_string();
            assert!(offer_queue.push(vec![owned(&id)]).is_empty() && offer_queue.rescind(&id));
        }
        let queue = offer_queue.queue();
        assert!(queue.offers.capacity() <= 256 && queue.index.table.capacity() <= 512);
        drop(queue);
        assert!(offer_queue.rescind("first") && offer_queue.len() == 0);
    }

    /// Goal: the queue and its index keep the order of offers and hand out each that was not rescinded, once, and their
    /// memory doesn't grow with those that have gone. Method: random pushes, pops, rescissions and resets beside a
    /// plain list.
    #[test]
    fn queue_and_index_agree_with_a_plain_list() {
        let mut seed = 1u64;
        let mut roll = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let offer_queue = OfferQueue::new(300);
        let mut plain = VecDeque::new();
        let mut next = 0u64;
        let mut batch = Vec::new();
        for _ in 0..20_000 {
            match roll(100) {
                0..30 => {
                    let ids: Vec<String> =
                        (0..roll(20)).map(|more| (next + more).to_string()).collect();
                    next += ids.len() as u64;
                    let waiting =
                        |id: &String| if id.ends_with('7') { owned(id) } else { encoded(id) };
                    let over = offer_queue.push(ids.iter().map(waiting).collect()).len();
                    plain.extend(ids[..ids.len() - over].iter().cloned());
                }
                30..40 if !plain.is_empty() => {
                    let most = 1 + roll(40) as usize;
                    offer_queue.pop(most, &mut batch);
                    let expected: Vec<String> = plain.drain(..plain.len().min(most)).collect();
                    assert_eq!(ids(std::mem::take(&mut batch)), expected);
                }
                99 if roll(50) == 0 => {
                    plain.clear();
                    offer_queue.reset(1);
                }
                _ => {
                    let id = next.saturating_sub(roll(400)).to_string();
                    let at = plain.iter().position(|other| *other == id);
                    assert_eq!(
                        offer_queue.rescind(&id),
                        at.and_then(|at| plain.remove(at)).is_some()
                    );
                }
            }
            let queue = offer_queue.queue();
            assert_eq!(queue.waiting, plain.len());
            assert!(queue.offers.len() <= 3 * 300 && queue.index.table.capacity() <= 8 * 300);
        }
        assert!(next > 10_000);
    }
}
