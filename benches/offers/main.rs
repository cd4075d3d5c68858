//! Benches of the offer path; `benches/README.md` says what each shows.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod accepted;
mod declined;
mod measure;
mod mixed;
mod scene;
mod threads;

use criterion::Criterion;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    declined::all(&mut criterion);
    mixed::all(&mut criterion);
    accepted::all(&mut criterion);
    threads::all(&mut criterion);
    criterion.final_summary();
}
