//! The sequence lock: words that one thread at a time writes and others read consistently.

use loom::sync::Arc;

use super::{explore, race};
use crate::kernel::state::seqlock::Seqlock;
use crate::sync::{Ordering, fence};

type Pair = Seqlock<2>;
type Read = fn(&Pair) -> Option<[u64; 2]>;

/// Two further writes, each of equal words, while another thread reads.
fn write_and_read(write: fn(&Pair, u64), read: Read) {
    let pair = Arc::new(Pair::default());
    write(&pair, 1);
    let (here, there) = (Arc::clone(&pair), Arc::clone(&pair));
    race(
        move || [2, 3].into_iter().for_each(|number| write(&here, number)),
        move || {
            if let Some([one, other]) = read(&there) {
                assert_eq!(one, other, "torn");
            }
        },
    );
    assert_eq!(pair.read(), Some([3, 3]), "nobody writes any more");
}

/// Goal: where any thread may write, each write is whole and is seen by the next one, and one that is dropped is none.
/// Method: two threads add one to both words, if they may; one of them drops a write before. A third reads.
#[test]
fn one_thread_at_a_time_writes() {
    explore("seqlock/write-write", Some(2), || {
        let pair = Arc::new(Pair::default());
        write(&pair, 1);
        let add = |pair: &Pair| {
            let Some(writing) = pair.try_begin() else { return 0 };
            let words = writing.words().unwrap();
            writing.finish(&words.map(|word| word + 1));
            1
        };
        let (here, there, reader) = (Arc::clone(&pair), Arc::clone(&pair), Arc::clone(&pair));
        let reader = loom::thread::spawn(move || reader.read());
        let drop_and_add = move || {
            drop(there.try_begin());
            add(&there)
        };
        let (one, other) = race(move || add(&here), drop_and_add);
        assert_eq!(pair.read_counted(), Some((1 + one + other, [1 + one + other; 2])));
        if let Some([one, other]) = reader.join().unwrap() {
            assert_eq!(one, other, "torn");
        }
    });
}

fn write(pair: &Pair, number: u64) {
    pair.write(&[number; 2]);
}

fn words(pair: &Pair) -> [u64; 2] {
    [0, 1].map(|at| pair.words[at].load(Ordering::Relaxed))
}

/// Goal: words that are read were written together. Method: two writes and a read at once, of a lock that was written
/// before.
#[test]
fn words_are_read_whole() {
    explore("seqlock/write-read", None, || write_and_read(write, Pair::read));
}

/// Mutant: the reader doesn't check the sequence again.
#[test]
#[ignore = "mutant"]
fn mutant_no_second_look_at_the_sequence() {
    explore("mutant seqlock/write-read (one look)", None, || {
        write_and_read(write, |pair| {
            let before = pair.sequence.load(Ordering::Acquire);
            let words = words(pair);
            before.is_multiple_of(2).then_some(words)
        });
    });
}

/// Mutant: the second load of the sequence may be older than the words.
#[test]
#[ignore = "mutant"]
fn mutant_second_look_without_a_fence() {
    explore("mutant seqlock/write-read (reader's fence)", None, || {
        write_and_read(write, |pair| {
            let before = pair.sequence.load(Ordering::Acquire);
            let words = words(pair);
            let after = pair.sequence.load(Ordering::Relaxed);
            (before.is_multiple_of(2) && before == after).then_some(words)
        });
    });
}

/// Mutant: the words may be older than the first load of the sequence.
#[test]
#[ignore = "mutant"]
fn mutant_relaxed_first_look() {
    explore("mutant seqlock/write-read (first look)", None, || {
        write_and_read(write, |pair| {
            let before = pair.sequence.load(Ordering::Relaxed);
            let words = words(pair);
            fence(Ordering::Acquire);
            let after = pair.sequence.load(Ordering::Relaxed);
            (before.is_multiple_of(2) && before == after).then_some(words)
        });
    });
}

/// A write whose steps have these orderings; `fenced` after the odd number.
fn write_with(pair: &Pair, number: u64, fenced: bool, end: Ordering) {
    let sequence = pair.sequence.load(Ordering::Relaxed);
    pair.sequence.store(sequence + 1, Ordering::Relaxed);
    if fenced {
        fence(Ordering::Release);
    }
    pair.words.iter().for_each(|word| word.store(number, Ordering::Relaxed));
    pair.sequence.store(sequence + 2, end);
}

/// Mutant: the words may be seen before the odd number.
#[test]
#[ignore = "mutant"]
fn mutant_write_without_a_fence() {
    explore("mutant seqlock/write-read (writer's fence)", None, || {
        write_and_read(
            |pair, number| write_with(pair, number, false, Ordering::Release),
            Pair::read,
        );
    });
}

/// Mutant: the even number may be seen before the words.
#[test]
#[ignore = "mutant"]
fn mutant_relaxed_end_of_a_write() {
    explore("mutant seqlock/write-read (end)", None, || {
        write_and_read(
            |pair, number| write_with(pair, number, true, Ordering::Relaxed),
            Pair::read,
        );
    });
}
