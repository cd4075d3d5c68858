//! What is allocated for agents, executors and batches; `benches/README.md` says how to read it.
//!
//! Bytes are those asked of the allocator, on this thread alone; there is no other.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod batches;
mod kept;

use support::figures::{self, Extent};

fn main() {
    figures::run("memory", |extent| {
        let (counts, batches) = match extent {
            Extent::Test => (&[1_000][..], &[10][..]),
            Extent::Full => (&[1_000, 10_000, 100_000][..], &[10, 100, 1_000][..]),
        };
        let kept = figures::table(&kept::rows(counts));
        format!("{kept}\n{}", figures::table(&batches::rows(batches)))
    });
}
