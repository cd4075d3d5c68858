//! Exponential backoff with jitter, for reconnecting.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The maximum of the first wait.
const FIRST: Duration = Duration::from_millis(200);
/// The maximum of any wait; Mesos' documentation asks for 15 s.
const LONGEST: Duration = Duration::from_secs(15);

/// The waits between attempts.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// Starts again with the first wait, after a success.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    /// Returns the next wait: a random part of the current maximum, at least half of it, so that a thousand frameworks
    /// that lost one master don't all reconnect at once.
    pub(crate) fn next(&mut self) -> Duration {
        let due = FIRST.saturating_mul(1 << self.tries.min(16)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        // The hasher's random keys are sufficient as jitter.
        let chance = RandomState::new().hash_one(self.tries) as u32;
        due / 2 + due.mul_f64(f64::from(chance) / f64::from(u32::MAX) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: waits grow to the longest, vary, and begin anew. Method: a long row of them, twice.
    #[test]
    fn waits_grow_and_vary() {
        let mut backoff = Backoff::default();
        let waits: Vec<Duration> = (0..40).map(|_| backoff.next()).collect();
        for (at, wait) in waits.iter().enumerate() {
            let due = FIRST.saturating_mul(1 << at.min(16)).min(LONGEST);
            assert!(*wait >= due / 2 && *wait <= due, "{at}: {wait:?}");
        }
        let late = &waits[10..];
        assert!(late.iter().any(|wait| wait != &late[0]), "all alike");
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
