//! A few words that one thread writes and any thread reads whole, without either waiting for the other.
//!
//! The sequence is odd while the words change. Who finds it even and the same before and after reading has words that
//! belong together; who doesn't tries again, some times, and then does without.
//!
//! | who | does | ordering | pairs with |
//! |---|---|---|---|
//! | the writer, one thread at a time | [`Seqlock::write`]: sequence odd, fence, words, sequence even | Release fence; Release store at the end | the reader's fence; the reader's first load |
//! | any thread | [`Seqlock::read`]: sequence, words, fence, sequence | Acquire load; Acquire fence | the store at the end; the writer's fence |
//! | the writer | [`Seqlock::own`]: load | Relaxed: they are its own | nothing |
//!
//! Why no torn words come out: a word that is newer than the first look at the sequence was written after the writer's
//! fence, and read before the reader's. So the reader's second look finds the odd number that stands before the
//! writer's fence, or a later one, and it differs from the first. A word that is older than the first look can't be
//! read, because the first look has acquired the store that ended the write of the newer one.

use crate::sync::{AtomicU64, Ordering, fence};

/// So often a reader tries while the writer writes.
const TRIES: usize = if cfg!(all(loom, test)) { 1 } else { 16 };

#[derive(Debug)]
pub(crate) struct Seqlock<const WORDS: usize> {
    /// Odd while the words change; 0 as long as nothing was written.
    pub(crate) sequence: AtomicU64,
    pub(crate) words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Default for Seqlock<WORDS> {
    fn default() -> Seqlock<WORDS> {
        let words = std::array::from_fn(|_| AtomicU64::new(0));
        Seqlock { sequence: AtomicU64::new(0), words }
    }
}

impl<const WORDS: usize> Seqlock<WORDS> {
    /// Replaces the words. Only one thread at a time may do so, each after the one before it.
    pub(crate) fn write(&self, words: &[u64; WORDS]) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        // Pairs with the reader's: who reads a word from below finds the odd number, or a later one.
        fence(Ordering::Release);
        for (to, word) in self.words.iter().zip(words) {
            to.store(*word, Ordering::Relaxed);
        }
        // Release: who finds this number finds the words above, or later ones.
        self.sequence.store(sequence.wrapping_add(2), Ordering::Release);
    }

    /// The words as one write left them. `None` if there was none, or whenever this looked another was going on.
    pub(crate) fn read(&self) -> Option<[u64; WORDS]> {
        for _ in 0..TRIES {
            let before = self.sequence.load(Ordering::Acquire);
            if before == 0 {
                return None;
            }
            let words = std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed));
            // Pairs with the writer's.
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.sequence.load(Ordering::Relaxed) == before {
                return Some(words);
            }
        }
        None
    }

    /// The first words, for the writer. `None` if nothing was written yet.
    pub(crate) fn own<const FIRST: usize>(&self) -> Option<[u64; FIRST]> {
        const { assert!(FIRST <= WORDS) };
        (self.sequence.load(Ordering::Relaxed) != 0)
            .then(|| std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::thread;

    /// Goal: no reader sees words of two writes, and each reader sees time go on. Method: a thread that writes as fast
    /// as it can, four equal words at a time, and two that read.
    #[test]
    fn words_that_are_written_together_are_read_together() {
        let lock: Seqlock<4> = Seqlock::default();
        assert_eq!(lock.read(), None);
        const LAST: u64 = 200_000;
        let read_on = || {
            let (mut last, mut reads) = (0, 0u64);
            while last < LAST {
                let Some(words) = lock.read() else { continue };
                assert_eq!(words, [words[0]; 4]);
                assert!(words[0] >= last);
                (last, reads) = (words[0], reads + 1);
            }
            reads
        };
        thread::scope(|scope| {
            let readers = [scope.spawn(read_on), scope.spawn(read_on)];
            (1..=LAST).for_each(|number| lock.write(&[number; 4]));
            readers.into_iter().for_each(|reader| assert!(reader.join().unwrap() > 0));
        });
        assert_eq!(lock.own(), Some([LAST; 3]));
    }
}
