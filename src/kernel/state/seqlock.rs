//! A sequence lock: a few words that one thread at a time writes and any thread reads consistently; none waits for
//! another.
//!
//! The sequence is odd while the words change. If a reader finds it even and unchanged by its reading, the words belong
//! together; otherwise it retries a few times and then gives up. A lock is written in one of two ways. With
//! [`Seqlock::write`], the caller sees to it that one thread at a time writes. With [`Seqlock::try_begin`], any thread
//! may: it exchanges the sequence, and gives up at once if another is writing.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | the writer, one thread at a time | [`Seqlock::write`]: sequence odd, fence, words, sequence even | Release fence; Release store at the end | the reader's fence; the reader's first load |
//! | any that may write | [`Seqlock::try_begin`]: sequence; compare-exchange of it from even to odd; fence | Relaxed load; Acquire; Release fence | the end of the write before, or its undoing; the reader's fence |
//! | the one that has begun | [`Writing::words`]: load | Relaxed: the exchange acquired them | nothing |
//! | the same | [`Writing::finish`]: words, sequence even | Release store at the end | the reader's first load; the next exchange |
//! | the same, if it writes nothing | sequence as before | Release store | the reader's first load; the next exchange |
//! | any | [`Seqlock::read`]: sequence, words, fence, sequence | Acquire load; Acquire fence | the store at the end; the writer's fence |
//! | any | [`Seqlock::begun`]: sequence | Acquire load | nothing: no word is read for its sake |
//! | the writer | [`Seqlock::own`]: load | Relaxed: it wrote them itself | nothing |
//!
//! Why a reader never returns words of two writes: if a word is newer than the first load of the sequence, it was
//! written after the writer's fence and read before the reader's fence. So the second load of the sequence finds the
//! odd number stored before the writer's fence, or a later one, which differs from the first. A word older than the
//! first load can't be read, because the first load acquired the store that ended the newer write, or a later one,
//! whose thread had acquired that. A write that is undone stores no word, so a number that comes again stands for the
//! same words.

use crate::sync::{AtomicU64, Ordering, fence, prefetch};

/// How often a reader tries while the writer writes.
const TRIES: usize = if cfg!(all(loom, test)) { 1 } else { 16 };

#[derive(Debug)]
pub(crate) struct Seqlock<const WORDS: usize> {
    /// Odd while the words change; 0 if nothing was written yet.
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
    /// Replaces the words. Only one thread at a time may call this, and each call must happen after the one before.
    pub(crate) fn write(&self, words: &[u64; WORDS]) {
        let sequence = self.sequence.load(Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        // Pairs with the reader's fence: a thread that reads a word stored below finds the odd number or a later one.
        fence(Ordering::Release);
        Writing { lock: self, sequence, end: sequence }.finish(words);
    }

    /// Begins to replace the words, where any thread may. None if another is at it.
    #[inline]
    pub(crate) fn try_begin(&self) -> Option<Writing<'_, WORDS>> {
        let sequence = self.sequence.load(Ordering::Relaxed);
        let odd = sequence.wrapping_add(1);
        // Acquire: this thread sees what the one before has written here.
        let begin = |from| {
            self.sequence.compare_exchange(from, odd, Ordering::Acquire, Ordering::Relaxed).ok()
        };
        Some(sequence).filter(|even| even.is_multiple_of(2)).and_then(begin)?;
        // As in `write`.
        fence(Ordering::Release);
        Some(Writing { lock: self, sequence, end: sequence })
    }

    /// Returns the number of writes so far, one that is going on included; if that is undone, the number goes back. A
    /// thread that finds the number of the words that it has read need not read them again: if more writes had ended
    /// before, it would find more.
    #[inline]
    pub(crate) fn begun(&self) -> u64 {
        self.sequence.load(Ordering::Acquire).div_ceil(2)
    }

    /// Asks memory for the words.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(self);
    }

    /// Returns the words of one write. `None` if there was none, or if words were being written at each try.
    pub(crate) fn read(&self) -> Option<[u64; WORDS]> {
        self.read_counted().map(|(_, words)| words)
    }

    /// Returns the words of one write, as [`Seqlock::read`] does, and how many writes there were up to that one.
    #[inline]
    pub(crate) fn read_counted(&self) -> Option<(u64, [u64; WORDS])> {
        for _ in 0..TRIES {
            let before = self.sequence.load(Ordering::Acquire);
            if before == 0 {
                return None;
            }
            // The words are being written. What would be read now is of no use, and models would explore each value.
            if !before.is_multiple_of(2) {
                std::hint::spin_loop();
                continue;
            }
            let words = std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed));
            // Pairs with the writer's fence.
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == before {
                return Some((before / 2, words));
            }
        }
        None
    }

    /// Returns the first words, to the writer. `None` if nothing was written yet.
    pub(crate) fn own<const FIRST: usize>(&self) -> Option<[u64; FIRST]> {
        const { assert!(FIRST <= WORDS) };
        (self.sequence.load(Ordering::Relaxed) != 0)
            .then(|| std::array::from_fn(|at| self.words[at].load(Ordering::Relaxed)))
    }
}

/// A write that has begun. If it is dropped before [`Writing::finish`], nothing was written.
#[derive(Debug)]
pub(crate) struct Writing<'a, const WORDS: usize> {
    lock: &'a Seqlock<WORDS>,
    /// The sequence before, and the one that it ends with.
    sequence: u64,
    end: u64,
}

impl<const WORDS: usize> Writing<'_, WORDS> {
    /// The words as they are. None if nothing was written yet.
    #[inline]
    pub(crate) fn words(&self) -> Option<[u64; WORDS]> {
        let load = |at: usize| self.lock.words[at].load(Ordering::Relaxed);
        (self.sequence != 0).then(|| std::array::from_fn(load))
    }

    /// Replaces the words.
    #[inline]
    pub(crate) fn finish(mut self, words: &[u64; WORDS]) {
        for (to, word) in self.lock.words.iter().zip(words) {
            to.store(*word, Ordering::Relaxed);
        }
        self.end = self.sequence.wrapping_add(2);
    }
}

impl<const WORDS: usize> Drop for Writing<'_, WORDS> {
    #[inline]
    fn drop(&mut self) {
        // Release: a thread that finds this number finds the words of the write that ended with it, or later ones.
        self.lock.sequence.store(self.end, Ordering::Release);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::thread;

    /// Goal: no reader sees words of two writes, and each reader sees later writes over time. Method: one thread writes
    /// four equal words as fast as it can, and two threads read.
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

    /// Goal: a write that is dropped is none. Method: one before the first write, and one after it.
    #[test]
    fn a_write_that_is_dropped_is_none() {
        let lock: Seqlock<2> = Seqlock::default();
        let drop_one = || drop(lock.try_begin().unwrap());
        drop_one();
        assert_eq!((lock.read(), lock.begun()), (None, 0));
        lock.try_begin().unwrap().finish(&[3, 4]);
        drop_one();
        assert_eq!(lock.read_counted(), Some((1, [3, 4])));
        let writing = lock.try_begin().unwrap();
        assert!(lock.try_begin().is_none(), "another is writing");
        assert_eq!((writing.words(), lock.begun()), (Some([3, 4]), 2));
        drop(writing);
        assert_eq!(lock.begun(), 1);
    }
}
