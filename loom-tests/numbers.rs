//! The table of numbers: live executors are found, and pages have one owner, though they are given back.
//!
//! Under loom a page has two entries. So the numbers 4 to 7 are in two pages of cells below one page, which hangs on
//! the root of numbers of three bits; and 8 needs three pages, which may be those of the others.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};

use super::{explore, race};
use crate::kernel::state::numbers::NumberTable;

/// A table in which the numbers below `next` were handed out, and those below 4 retired. Each leads to a cell ten times
/// as large.
fn table(next: u64) -> Arc<NumberTable> {
    let numbers = Arc::new(NumberTable::new());
    (0..next).for_each(|number| insert(&numbers, number));
    (0..4).for_each(|number| numbers.retire(number, 1));
    numbers
}

fn insert(numbers: &NumberTable, number: u64) {
    assert!(numbers.insert(number, &[number as u32 * 10], &mut Vec::new()));
}

fn expect(numbers: &NumberTable, number: u64) {
    assert_eq!(numbers.find(number), Some(number as u32 * 10), "{number} is lost");
}

/// Goal: two threads that enter numbers of a page which is missing enter them in the same. Method: numbers 4 and 6,
/// which share a page above, then one more by each.
#[test]
fn a_page_is_linked_once() {
    explore("numbers/link-link", None, || {
        let numbers = table(4);
        let (here, there) = (Arc::clone(&numbers), Arc::clone(&numbers));
        race(
            move || [4, 5].iter().for_each(|number| insert(&here, *number)),
            move || [6, 7].iter().for_each(|number| insert(&there, *number)),
        );
        (4..8).for_each(|number| expect(&numbers, number));
        assert_eq!(numbers.live(8), 4);
        assert_eq!(numbers.linked(), 3, "a page is in the table twice, or wasn't given back");
    });
}

/// Goal: pages are given back once, each after it was removed from the one above, and are empty when they are reused.
/// Method: two threads retire the numbers of two pages below the same one; one of them then enters a number that needs
/// three pages, and retires it after it was found.
#[test]
fn pages_are_given_back_once() {
    explore("numbers/retire-reuse", Some(3), || {
        let numbers = table(8);
        let (here, there) = (Arc::clone(&numbers), Arc::clone(&numbers));
        race(
            move || [4, 5].iter().for_each(|number| here.retire(*number, 1)),
            move || {
                there.retire(6, 2);
                insert(&there, 8);
            },
        );
        expect(&numbers, 8);
        assert_eq!((numbers.live(9), numbers.linked()), (1, 3));
        insert(&numbers, 9);
        numbers.retire(8, 2);
        assert_eq!((numbers.live(10), numbers.linked()), (0, 2), "those above have room for 10");
    });
}

/// One thread retires the neighbours of 6, and enters 8 as `launch` does; the other looks for 6, and for 8 if it knows
/// of it.
fn find_and_retire(launch: fn(&NumberTable, &AtomicU32)) {
    let (numbers, launched) = (table(8), Arc::new(AtomicU32::new(0)));
    let (here, launched_here) = (Arc::clone(&numbers), Arc::clone(&launched));
    let there = Arc::clone(&numbers);
    race(
        move || {
            [4, 5, 7].iter().for_each(|number| here.retire(*number, 1));
            launch(&here, &launched_here);
        },
        move || {
            if launched.load(Ordering::Acquire) == 1 {
                expect(&there, 8);
            }
            expect(&there, 6);
        },
    );
    assert_eq!(numbers.live(9), 2);
}

/// Goal: an executor whose launch a thread knows of is found at once, and as long as it lives, while pages beside its
/// own are given back. Method: 8 is launched in pages that were given back; its state is a word here.
#[test]
fn what_lives_is_found() {
    explore("numbers/find-retire", Some(3), || {
        find_and_retire(|numbers, launched| {
            insert(numbers, 8);
            launched.store(1, Ordering::Release);
        });
    });
}

/// Mutant: the executor is published before its number is entered.
#[test]
#[ignore = "mutant"]
fn mutant_launched_before_it_is_entered() {
    explore("mutant numbers/find-retire", Some(3), || {
        find_and_retire(|numbers, launched| {
            launched.store(1, Ordering::Release);
            insert(numbers, 8);
        });
    });
}
