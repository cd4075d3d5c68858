//! Waiting for what other threads and programs do.

use std::time::{Duration, Instant};

/// Waits until `look` finds something, and tells what was waited for if it doesn't in time.
#[track_caller]
pub(crate) fn eventually<T>(
    within: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<T, String>,
) -> T {
    let give_up = Instant::now() + within;
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) if Instant::now() > give_up => panic!("{what}: not within {within:?}: {why}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
