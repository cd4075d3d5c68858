//! The numbers of what an agent offered last, in words that are written and read without a lock.
//!
//! | word | bits | field |
//! |---|---|---|
//! | 0 | 18–55 | the generation of the agent |
//! | 0 | 16–17 | whether all was offered to one role, and which kind of amounts: reserved, revocable or neither |
//! | 0 | 0–15 | the number of executors on the agent at that time |
//! | 1 | 16–63 | the next executor's number at that time |
//! | 1 | 0–15 | how many records ago the details changed |
//! | 2 | all | when it was offered, in milliseconds |
//! | 3, 4, 5 | all | cores in thousandths, memory in MiB, GPUs |
//! | 6 | all | the fingerprint of the [details](super::offered_details) that go with them |
//!
//! The words are in a [`Seqlock`], which has the table of orderings. Any handler writes them, one at a time. They lie
//! in the order of the agents' cells, in pieces of [`PIECE`], each of which is allocated with the first record in it:
//! whoever reads all of them reads memory in order.
//!
//! Almost all records differ from the last one in numbers alone. The fingerprint tells that, so that a handler looks at
//! nothing but this line ([`AgentTable::record_numbers`](super::agents::AgentTable::record_numbers)). Different details
//! have the same fingerprint with a probability of about 2⁻⁶⁴.

use super::executor_state::SEQUENCE_MAX;
use super::lazy::Lazy;
use super::offered_amounts::{AmountKind, ResourceSums};
use super::seqlock::{Seqlock, Writing};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::sync::SLAB_CELLS_BITS;
use crate::time::Timestamp;

/// The number of agents' cells whose numbers lie together. Few under model checkers, which make each word.
pub(crate) const PIECE: usize = if cfg!(any(shuttle, all(loom, test))) { 4 } else { 256 };
/// The lists of pieces double in length; together they are enough for the most cells.
const LISTS: usize = ((1usize << SLAB_CELLS_BITS) / PIECE).ilog2() as usize + 1;

const WORDS: usize = 7;
const KIND_SHIFT: u32 = 16;
const KIND_MASK: u64 = 0x3;
const GENERATION_SHIFT: u32 = 18;
const SINCE_SHIFT: u32 = 16;

/// Numbers of what an agent offered in one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OfferedNumbers {
    /// The generation of the agent; the record is no other agent's.
    pub(crate) generation: u64,
    pub(crate) at: Timestamp,
    /// The next executor's sequence number at that time: executors with it and later ones were placed since.
    pub(crate) since: u64,
    /// The number of executors on the agent at that time.
    pub(crate) executors: u16,
    /// All that was offered.
    pub(crate) offered: ResourceSums,
    /// Which amounts these are if all was offered to one role; otherwise several.
    pub(crate) kind: AmountKind,
    /// The fingerprint of the details that go with them, but for the parts of several amounts.
    pub(crate) details: u64,
    /// How many records ago the details changed; the largest number is that or more.
    pub(super) details_age: u16,
}

impl OfferedNumbers {
    /// Whether the details have stayed the same for this number of records.
    pub(crate) fn has_same_details(&self, records: u64) -> bool {
        u64::from(self.details_age) >= records
    }

    fn pack(&self) -> [u64; WORDS] {
        let ResourceSums { cores, memory, gpus } = self.offered;
        [
            self.generation << GENERATION_SHIFT
                | (self.kind as u64) << KIND_SHIFT
                | u64::from(self.executors),
            // No executor has the largest number.
            self.since.min(SEQUENCE_MAX) << SINCE_SHIFT | u64::from(self.details_age),
            self.at.as_millis(),
            cores.millis(),
            memory.get(),
            gpus.get().into(),
            self.details,
        ]
    }

    #[inline]
    fn unpack([whose, since, at, cores, memory, gpus, details]: [u64; WORDS]) -> OfferedNumbers {
        OfferedNumbers {
            generation: whose >> GENERATION_SHIFT,
            at: Timestamp::from_millis(at),
            since: since >> SINCE_SHIFT,
            executors: whose as u16,
            offered: ResourceSums {
                cores: MilliCpus::from_millis(cores),
                memory: Mebibytes::new(memory),
                gpus: Gpus::new(gpus as u32),
            },
            kind: match whose >> KIND_SHIFT & KIND_MASK {
                0 => AmountKind::Unreserved,
                1 => AmountKind::Reserved,
                2 => AmountKind::Revocable,
                _ => AmountKind::Several,
            },
            details,
            details_age: since as u16,
        }
    }

    /// Whether these have the details of `last`, of which they know nothing but the fingerprint.
    #[inline]
    fn goes_with_details_of(&self, last: &OfferedNumbers) -> bool {
        // The parts of several amounts are details that the fingerprint leaves out.
        let is_sum = [self.kind, last.kind].iter().all(|kind| *kind != AmountKind::Several);
        is_sum && last.generation == self.generation && last.details == self.details
    }
}

/// The numbers of the last record of an agent's cell: a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct NumberLine(Seqlock<WORDS>);

impl NumberLine {
    /// Begins a record. None if another thread is writing one.
    #[inline]
    pub(super) fn try_begin(&self) -> Option<NumberWriting<'_>> {
        self.0.try_begin().map(NumberWriting)
    }

    /// Returns the numbers, and the number of their record: how many there were up to that one. None if there was none,
    /// or if they were being written at each try.
    #[inline]
    pub(super) fn read(&self) -> Option<(u64, OfferedNumbers)> {
        let (written, words) = self.0.read_counted()?;
        Some((written, OfferedNumbers::unpack(words)))
    }

    /// The number of the last record whose writing has begun; 0 if there is none.
    #[inline]
    pub(super) fn begun(&self) -> u64 {
        self.0.begun()
    }

    /// Asks memory for the line.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.0.prefetch();
    }
}

/// A record that has begun. It is none if it is dropped before [`NumberWriting::finish`].
pub(super) struct NumberWriting<'a>(Writing<'a, WORDS>);

impl NumberWriting<'_> {
    /// Whether the details that are recorded go with `numbers`, too.
    #[inline]
    pub(super) fn has_details_of(&self, numbers: &OfferedNumbers) -> bool {
        let last = self.0.words().map(OfferedNumbers::unpack);
        last.is_some_and(|last| numbers.goes_with_details_of(&last))
    }

    /// Replaces the numbers; `is_changed` says whether the details have changed, too.
    #[inline]
    pub(super) fn finish(self, numbers: OfferedNumbers, is_changed: bool) {
        let details_age = match self.0.words() {
            Some([_, since, ..]) if !is_changed => (since as u16).saturating_add(1),
            _ => 0,
        };
        self.0.finish(&OfferedNumbers { details_age, ..numbers }.pack());
    }
}

type Pieces = Lazy<Box<[Lazy<Box<[NumberLine]>>]>>;

/// The numbers of all agents' cells.
#[derive(Debug)]
pub(crate) struct NumberLines([Pieces; LISTS]);

impl NumberLines {
    pub(super) fn new() -> NumberLines {
        NumberLines(std::array::from_fn(|_| Lazy::default()))
    }

    /// The lines of the [`PIECE`] cells of this number, if something was recorded in one of them.
    pub(crate) fn piece(&self, number: usize) -> Option<&[NumberLine]> {
        let (list, at) = place(number);
        self.0.get(list)?.get()?.get(at)?.get().map(|lines| &**lines)
    }

    /// The line of the cell with this index, if something was recorded in its piece.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&NumberLine> {
        let index = index as usize;
        self.piece(index / PIECE)?.get(index % PIECE)
    }

    /// The line of the cell with this index. None if another thread is allocating its piece.
    pub(super) fn get_or_make(&self, index: u32) -> Option<&NumberLine> {
        fn boxed<T: Default>(length: usize) -> Box<[T]> {
            std::iter::repeat_with(T::default).take(length).collect()
        }
        let index = index as usize;
        let (list, at) = place(index / PIECE);
        let pieces = self.0.get(list)?.get_or_make(|| boxed(1 << list))?;
        pieces.get(at)?.get_or_make(|| boxed(PIECE))?.get(index % PIECE)
    }

    /// All words, for the tests that count writes.
    #[cfg(all(counting, test))]
    pub(crate) fn words(&self) -> (&impl Sized, impl Iterator<Item = &NumberLine>) {
        let pieces = (0..1 << (LISTS - 1)).map_while(|number| self.piece(number));
        (&self.0, pieces.flatten())
    }
}

/// The list that a piece is in, and its position there.
fn place(number: usize) -> (usize, usize) {
    let list = (number + 1).ilog2();
    (list as usize, number + 1 - (1 << list))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::kernel::state::agent_binding::AGENT_INDEX_MAX;

    /// Goal: no field reaches into another. Method: the largest of each, alone.
    #[test]
    fn numbers_are_read_as_they_were_written() {
        let none = OfferedNumbers::default();
        let offered = ResourceSums {
            cores: MilliCpus::from_millis(u64::MAX),
            memory: Mebibytes::new(u64::MAX),
            gpus: Gpus::new(u32::MAX),
        };
        for numbers in [
            none,
            OfferedNumbers { generation: (1 << 38) - 1, ..none },
            OfferedNumbers { at: Timestamp::MAX, ..none },
            OfferedNumbers { since: SEQUENCE_MAX, ..none },
            OfferedNumbers { executors: u16::MAX, ..none },
            OfferedNumbers { offered, ..none },
            OfferedNumbers { kind: AmountKind::Reserved, ..none },
            OfferedNumbers { kind: AmountKind::Revocable, ..none },
            OfferedNumbers { kind: AmountKind::Several, ..none },
            OfferedNumbers { details: u64::MAX, ..none },
            OfferedNumbers { details_age: u16::MAX, ..none },
        ] {
            assert_eq!(OfferedNumbers::unpack(numbers.pack()), numbers);
        }
    }

    /// Goal: it is known for how many records the details have stayed the same, and a number that is too large for its
    /// bits isn't taken for a small one. Method: a change, then more records than the bits can count.
    #[test]
    fn the_age_of_details_grows_and_stays() {
        let line = NumberLine::default();
        assert!(line.read().is_none());
        let write = |is_changed| {
            line.try_begin().unwrap().finish(OfferedNumbers::default(), is_changed);
        };
        write(true);
        let kept = |records| line.read().unwrap().1.has_same_details(records);
        assert!(kept(0) && !kept(1));
        for written in 2..70_000 {
            write(false);
            assert_eq!((line.read().unwrap().0, line.begun()), (written, written));
            let known = (written - 1).min(u16::MAX.into());
            assert!(kept(known) && !kept(known + 1), "after {written}");
        }
        write(true);
        assert!(kept(0) && !kept(1));
    }

    /// Goal: numbers are taken for ones with the recorded details only if the generation and the fingerprint are the
    /// same and neither has amounts of several kinds. Method: one difference at a time.
    #[test]
    fn numbers_know_their_details() {
        let last = OfferedNumbers { generation: 7, details: 9, ..OfferedNumbers::default() };
        let line = NumberLine::default();
        assert!(!line.try_begin().unwrap().has_details_of(&last), "nothing is recorded");
        let several = OfferedNumbers { kind: AmountKind::Several, ..last };
        let others = [
            OfferedNumbers { generation: 8, ..last },
            OfferedNumbers { details: 8, ..last },
            several,
        ];
        line.try_begin().unwrap().finish(last, true);
        let reserved = OfferedNumbers { kind: AmountKind::Reserved, executors: 5, ..last };
        assert!(line.try_begin().unwrap().has_details_of(&reserved));
        for other in others {
            assert!(!line.try_begin().unwrap().has_details_of(&other), "{other:?}");
        }
        line.try_begin().unwrap().finish(several, true);
        assert!(
            !line.try_begin().unwrap().has_details_of(&last),
            "the parts aren't in the fingerprint"
        );
    }

    /// Goal: each cell has a line of its own. Method: the borders of pieces and of lists, and the last cell.
    #[test]
    fn each_cell_has_its_line() {
        assert_eq!(size_of::<NumberLine>(), 64);
        let lines = NumberLines::new();
        let line = |index: u32| lines.piece(index as usize / PIECE)?.get(index as usize % PIECE);
        let indices = [0, 1, 255, 256, 511, 767, 768, 1791, 1792, AGENT_INDEX_MAX];
        for (index, generation) in indices.into_iter().zip(1..) {
            assert!(line(index).is_none_or(|line| line.begun() == 0), "{index}");
            let numbers = OfferedNumbers { generation, ..OfferedNumbers::default() };
            lines.get_or_make(index).unwrap().try_begin().unwrap().finish(numbers, true);
        }
        for (index, generation) in indices.into_iter().zip(1..) {
            assert_eq!(line(index).unwrap().read().unwrap().1.generation, generation);
        }
        let is_there: Vec<_> = (0..8).map(|number| lines.piece(number).is_some()).collect();
        assert_eq!(is_there, [true, true, true, true, false, false, true, true]);
    }
}
