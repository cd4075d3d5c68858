//! A race, for `.ci/sanitizer` to see that the sanitizer reports one under the very flags and suppressions that the
//! kernel is checked with. Compiled by hand, no part of any package: it takes unsafe code to write a race.
//!
//! A value is published by a relaxed store, which orders nothing; on x86 that never shows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

static mut VALUE: u64 = 0;
static PUBLISHED: AtomicBool = AtomicBool::new(false);

fn main() {
    let reader = thread::spawn(|| {
        while !PUBLISHED.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        // SAFETY: none; this is the race.
        unsafe { VALUE }
    });
    // SAFETY: none; this is the race.
    unsafe { VALUE = 7 };
    PUBLISHED.store(true, Ordering::Relaxed);
    println!("read {}", reader.join().unwrap_or_default());
}
