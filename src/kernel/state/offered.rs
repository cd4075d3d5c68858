//! What an agent offered last, and the fingerprint that tells handlers whether it is recorded.
//!
//! | word | thread | operation | ordering | pairs with |
//! |---|---|---|---|---|
//! | the fingerprint, in the agent's cell | handler, per candidate | load | Relaxed | nothing: a hint; a stale one causes a needless record, or delays one to the next offer |
//! | the same | the handler that records an offer, while it writes the numbers | load; store if it differs | Relaxed | the numbers: one thread at a time writes both |
//! | the same | the thread that places or binds executors which [differ in size](super::policy::Policy::sizes_differ) | store of [`NOT_RECORDED`] | Relaxed | nothing: a hint; if it comes before the store of a record made at the same time, a later end may stay unseen for a minute |
//! | the same | the thread that inserts the agent | store of [`NOT_RECORDED`] | Relaxed | [`AgentCell::activate`](super::agent::AgentCell::activate) publishes it |
//! | the details of the record | handler, with [`try_lock`]; a report, likewise | under the lock | the lock's | |
//! | the numbers of the record | handlers, one at a time; a report | those of the [`seqlock`](super::seqlock) | its | its |
//! | `unnamed` | the thread that inserts the agent; the one that learns its host name, under the name's lock | store | Relaxed | nothing: a hint; a stale one causes a needless look at the name, or delays it to the next report |
//! | the same | any that looks an agent up by its id; a report | load | Relaxed | the same |
//!
//! The numbers say which details go with them. So a handler that records other numbers with the same details neither
//! takes the lock nor reads the details ([`AgentTable::record_numbers`](super::agents::AgentTable::record_numbers));
//! almost all records are of this kind. Any other takes the lock, begins to write the numbers, and only then touches
//! the details. So whenever nobody is writing the numbers, they belong to the details. A report takes the lock only if
//! the numbers say that the details have changed since it read them, or if it can't read the numbers. While it holds
//! the lock, numbers may change, details may not.
//!
//! No thread waits for the lock, for the numbers, nor for their memory, which the first handler allocates. A handler
//! that finds one of them taken, or the memory being allocated, leaves the fingerprint as it is, marks the agent in its
//! own cache and so tries again with the agent's next offer, whatever fingerprint is there then; a report keeps what it
//! read before.
//!
//! The fingerprint includes the agent's key. So a handler that is late and stores the fingerprint of a forgotten agent
//! into the cell, which has become another agent's, makes no offer of the new agent look recorded; and a record names
//! the generation that it belongs to, so it is never shown for another agent.
//!
//! The fingerprint is a sum of products: of the amounts offered, and of the number of executors on the agent and their
//! size. So it stays the same while executors of one size come and go and the agent offers the rest. If executors take
//! what there is, one may end and another one, of any size, take its place unseen: then the thread that places one has
//! the agent's next offer recorded. The fingerprint tells nothing of reservations and of attributes' values, and one
//! change of amounts in two thousand million looks like none: therefore a handler also records an agent when it writes,
//! once a minute, that it has seen it.

use super::offered_details::OfferedDetails;
use super::offered_numbers::{NumberLine, OfferedNumbers};
use crate::sync::{AtomicU32, Mutex, Ordering, try_lock};

/// The fingerprint of an agent of which nothing is recorded.
pub(crate) const NOT_RECORDED: u32 = 0;

/// What is recorded of the offers of the agent in a cell, but for the [numbers](NumberLine).
#[derive(Debug, Default)]
pub(crate) struct OfferedCell {
    /// 1 if the agent was never offered with a host name. A hint without ordering; the lock of the name decides.
    pub(crate) unnamed: AtomicU32,
    details: Mutex<Option<Box<OfferedDetails>>>,
}

/// The record of the agent in a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfferedRecord<'a> {
    cell: &'a OfferedCell,
    /// None if nothing was recorded of an agent in one of the cells nearby.
    numbers: Option<&'a NumberLine>,
}

impl OfferedCell {
    /// Lets `write` replace the record with these numbers. `write` gets empty numbers and the last details, and returns
    /// whether it has filled them in; if so, `done` is called before the new record can be read. Returns `false`, and
    /// has done nothing, if another thread has the lock or writes the numbers.
    pub(crate) fn rewrite(
        &self,
        line: &NumberLine,
        write: impl FnOnce(&mut OfferedNumbers, &mut OfferedDetails) -> bool,
        done: impl FnOnce(),
    ) -> bool {
        let Some(mut locked) = try_lock(&self.details) else { return false };
        // Before the details are changed: another thread may be writing numbers that go with them.
        let Some(writing) = line.try_begin() else { return false };
        let details = locked.get_or_insert_default();
        let mut numbers = OfferedNumbers::default();
        if write(&mut numbers, details) {
            done();
            writing.finish(numbers, details.take_change());
        }
        true
    }
}

impl<'a> OfferedRecord<'a> {
    pub(crate) fn new(cell: &'a OfferedCell, numbers: Option<&'a NumberLine>) -> OfferedRecord<'a> {
        OfferedRecord { cell, numbers }
    }

    /// [`OfferedCell::rewrite`]. Returns `false` if nothing was ever recorded.
    #[cfg(all(loom, test))]
    pub(crate) fn rewrite(
        &self,
        write: impl FnOnce(&mut OfferedNumbers, &mut OfferedDetails) -> bool,
    ) -> bool {
        self.numbers.is_some_and(|line| self.cell.rewrite(line, write, || ()))
    }

    /// Whether the agent was never offered with a host name, as a hint.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.cell.unnamed.load(Ordering::Relaxed) != 0
    }

    /// The number of the last record whose writing has begun; 0 if there is none.
    #[inline]
    pub(crate) fn begun(&self) -> u64 {
        self.numbers.map_or(0, NumberLine::begun)
    }

    /// The numbers of the last record, of whichever generation, and its number. None if there is none or if it is being
    /// written. Takes no lock.
    #[inline]
    pub(crate) fn numbers(&self) -> Option<(u64, OfferedNumbers)> {
        self.numbers?.read()
    }

    /// Calls `read` with the last record, or with None if it isn't of this generation, and with its number. Returns
    /// `false`, and has done nothing, if the lock is taken or the numbers are being written at each try.
    pub(crate) fn read(
        &self,
        generation: u64,
        read: impl FnOnce(Option<(&OfferedNumbers, &OfferedDetails)>, u64),
    ) -> bool {
        if self.begun() == 0 {
            read(None, 0);
            return true;
        }
        let Some(details) = try_lock(&self.cell.details) else { return false };
        // Others may write numbers meanwhile, but none with other details.
        let Some((number, numbers)) = self.numbers() else { return false };
        let own = details.as_deref().filter(|_| numbers.generation == generation);
        read(own.map(|details| (&numbers, details)), number);
        true
    }
}
