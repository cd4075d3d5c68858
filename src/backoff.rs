//! How long to wait before trying again: twice as long each time, and never as long as others do.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first wait, at most.
const FIRST: Duration = Duration::from_millis(200);
/// No wait is longer: the documents of Mesos ask for 15 s.
const LONGEST: Duration = Duration::from_secs(15);

/// The waits between tries.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// It went well: the next wait is the first again.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    /// The next wait: between half of the longest that is due and all of it, so that a thousand frameworks that lost
    /// one master don't all come back at once.
    pub(crate) fn next(&mut self) -> Duration {
        let due = FIRST.saturating_mul(1 << self.tries.min(16)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        // A hasher's keys are random, and that is all the chance needed here.
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
