//! Benches of status updates; `benches/README.md` says what each shows.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod kind;
mod live_executors;
mod measure;

use criterion::Criterion;

use kind::Kind;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    Kind::ALL.iter().for_each(|kind| measure::all(&mut criterion, *kind));
    criterion.final_summary();
}
