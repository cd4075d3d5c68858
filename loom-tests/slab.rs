//! The lists of free cells: each cell is claimed by one thread.

use loom::sync::Arc;
use loom::thread;

use super::{explore, race};
use crate::kernel::state::slab::{Slab, SlabCell};

#[derive(Debug, Default)]
struct Plain;

impl SlabCell for Plain {
    type Hint = ();
    type Beside = ();
}

fn claim(slab: &Slab<Plain>) -> u32 {
    let mut indices = Vec::new();
    assert!(slab.claim(1, &mut indices));
    indices[0]
}

/// Goal: no cell is claimed twice, even if one is freed while another thread claims it. Method: one thread claims; the
/// other claims two and frees the first.
#[test]
fn no_cell_has_two_owners() {
    explore("slab/claim-free", None, || {
        let slab = Arc::new(Slab::<Plain>::new());
        let mut cells = Vec::new();
        assert!(slab.claim(2, &mut cells));
        cells.iter().for_each(|cell| slab.free(*cell));
        let other = Arc::clone(&slab);
        let theirs = thread::spawn(move || claim(&other));
        let (first, second) = (claim(&slab), claim(&slab));
        slab.free(first);
        let third = claim(&slab);
        let theirs = theirs.join().unwrap();
        assert!(second != theirs && second != third && third != theirs);
    });
}

/// Goal: a claim of several cells gets each of them alone, even if cells are freed while it goes down the stack.
/// Method: one thread claims two; the other frees one more and claims two, preferring another stack.
#[test]
fn a_claim_of_several_owns_them_all() {
    explore("slab/claim-two-free", None, || {
        let slab = Arc::new(Slab::<Plain>::new());
        let mut cells = Vec::new();
        assert!(slab.claim(3, &mut cells));
        slab.free(cells[0]);
        slab.free(cells[1]);
        let other = Arc::clone(&slab);
        let theirs = thread::spawn(move || {
            let mut theirs = Vec::new();
            assert!(other.claim_from(0, 2, &mut theirs));
            theirs
        });
        slab.free(cells[2]);
        let mut owned = Vec::new();
        assert!(slab.claim_from(1, 2, &mut owned));
        owned.extend(theirs.join().unwrap());
        owned.sort_unstable();
        owned.dedup();
        assert_eq!(owned.len(), 4, "a cell with two owners");
    });
}

/// Goal: a claim of several cells doesn't get a list that has changed, though its topmost cell is on top again. Method:
/// one thread claims two; the other claims both one by one and frees the first.
#[test]
fn a_claim_of_several_takes_no_old_list() {
    explore("slab/claim-two-reuse", Some(3), || {
        let slab = Arc::new(Slab::<Plain>::new());
        let mut cells = Vec::new();
        assert!(slab.claim(3, &mut cells));
        slab.free(cells[0]);
        slab.free(cells[1]);
        let (here, there) = (Arc::clone(&slab), slab);
        let (mut owned, kept) = race(
            move || {
                let mut owned = Vec::new();
                assert!(here.claim(2, &mut owned));
                owned
            },
            move || {
                let (first, second) = (claim(&there), claim(&there));
                there.free(first);
                second
            },
        );
        owned.push(kept);
        owned.sort_unstable();
        owned.dedup();
        assert_eq!(owned.len(), 3, "a cell with two owners");
    });
}

/// Goal: a thread that sees the topmost of the cells that were freed together sees all of them, even if others free
/// concurrently. Method: two are freed together, one by another thread, which then claims two.
#[test]
fn cells_freed_together_are_found_together() {
    explore("slab/free-two-claim", None, || {
        let slab = Arc::new(Slab::<Plain>::new());
        let mut cells = Vec::new();
        assert!(slab.claim(3, &mut cells));
        let third = cells.pop().unwrap();
        let (here, there) = (Arc::clone(&slab), Arc::clone(&slab));
        let ((), theirs) = race(
            move || here.free_all(&cells),
            move || {
                there.free(third);
                let mut theirs = Vec::new();
                // With a preference for the other stack, what is stored in a claimed cell isn't a cell's index by
                // chance.
                assert!(there.claim_from(1, 2, &mut theirs));
                theirs
            },
        );
        let mut owned = theirs;
        while owned.len() < 4 {
            owned.push(claim(&slab));
        }
        owned.sort_unstable();
        owned.dedup();
        assert_eq!(owned.len(), 4, "a cell with two owners");
        assert!(owned.iter().filter(|cell| **cell < 3).count() == 3, "a cell is lost: {owned:?}");
    });
}

/// Goal: threads that need the same segment share it, and none of its cells has two owners. Method: in an empty table,
/// one thread claims three cells, more than the first segment has; the other calls `grow_ahead` and claims two.
#[test]
fn threads_that_need_a_segment_share_it() {
    explore("slab/grow-claim", Some(3), || {
        let slab = Arc::new(Slab::<Plain>::new());
        let (here, there) = (Arc::clone(&slab), Arc::clone(&slab));
        let (mut owned, theirs) = race(
            move || {
                let mut owned = Vec::new();
                assert!(here.claim(3, &mut owned));
                owned
            },
            move || {
                let mut owned = Vec::new();
                there.grow_ahead();
                assert!(there.claim(2, &mut owned));
                owned
            },
        );
        owned.extend(theirs);
        owned.sort_unstable();
        assert_eq!(owned, [0, 1, 2, 3, 4]);
        owned.iter().for_each(|cell| slab.free(*cell));
        let mut again = Vec::new();
        assert!(slab.claim(5, &mut again));
        again.sort_unstable();
        assert_eq!(again, owned, "a cell is lost");
    });
}
