//! Benches of what the kernel tells of itself; `benches/README.md` says what each shows.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod capacity;
mod pictures;
mod scene;
mod timers;
mod work;

use criterion::Criterion;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    pictures::all(&mut criterion);
    work::all(&mut criterion);
    timers::all(&mut criterion);
    capacity::all(&mut criterion);
    criterion.final_summary();
}
