//! What has to do with Spark's own programs.
//!
//! | module | question |
//! |---|---|
//! | [`shuffle`] | are shuffle services registered with, however they misbehave? |
//! | [`real`] | do Spark's own executors run Spark's own jobs, where Offermill places them? (ignored by a plain `cargo test`; `.ci/spark` runs them) |

#![allow(clippy::unwrap_used, clippy::panic)]

mod asking;
#[path = "../mesos/http.rs"]
#[allow(dead_code)]
mod http;
mod real;
mod shuffle;
#[path = "../cli/support.rs"]
#[allow(dead_code)]
mod support;

use std::time::{Duration, Instant};

/// Waits until `look` finds something, and tells what was waited for if it doesn't in time.
#[track_caller]
fn eventually<T>(within: Duration, what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let give_up = Instant::now() + within;
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) if Instant::now() > give_up => panic!("{what}: not within {within:?}: {why}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
