//! Exponential backoff with jitter, for reconnecting.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// The maximum of the first wait.
const FIRST: Duration = Duration::from_millis(200);
/// The maximum of any wait; Mesos' documentation asks for 15 s.
const LONGEST: Duration = Duration::from_secs(15);
/// The maximum of a wait while the peer was connected recently. A thousand workers whose master is being replaced then
/// dial it 700 times a second, and all have within 2 s of its start.
const LONGEST_RECENT: Duration = Duration::from_secs(2);
/// The time after the end of a connection in which it is recent.
const RECENT: Duration = Duration::from_secs(60);
/// A shorter connection is recent for this many times as long as it lasted, so that a peer that ends each at once is
/// dialled ever more rarely.
const RECENT_FACTOR: u32 = 30;

/// The waits between attempts.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
    recent_until: Option<Instant>,
}

impl Backoff {
    /// Starts again with the first wait, after a success.
    pub(crate) fn reset(&mut self) {
        self.tries = 0;
    }

    /// Records that a connection which lasted for this time has ended now: waits are short for a while.
    #[cfg(feature = "mesos")]
    pub(crate) fn connection_ended(&mut self, lasted: Duration) {
        self.connection_ended_at(Instant::now(), lasted);
    }

    #[cfg(any(test, feature = "mesos"))]
    fn connection_ended_at(&mut self, now: Instant, lasted: Duration) {
        let recent = lasted.saturating_mul(RECENT_FACTOR).min(RECENT);
        self.recent_until = self.recent_until.max(Some(now + recent));
    }

    /// Returns the next wait: a random part of the current maximum, at least half of it, so that a thousand frameworks
    /// that lost one master don't all reconnect at once.
    pub(crate) fn next(&mut self) -> Duration {
        self.next_at(Instant::now())
    }

    fn next_at(&mut self, now: Instant) -> Duration {
        // Such a wait ends before the connection isn't recent any more.
        let is_recent = self.recent_until.is_some_and(|until| now + LONGEST_RECENT <= until);
        let longest = if is_recent { LONGEST_RECENT } else { LONGEST };
        let due = FIRST.saturating_mul(1 << self.tries.min(16));
        if due < longest {
            self.tries += 1;
        }
        let due = due.min(longest);
        due / 2 + random_part(due) / 2
    }
}

/// Returns a random part of a time, from nothing to all of it.
pub(crate) fn random_part(all: Duration) -> Duration {
    // The hasher's random keys are sufficient as jitter.
    let chance = RandomState::new().hash_one(all) as u32;
    all.mul_f64(f64::from(chance) / f64::from(u32::MAX))
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

    /// Goal: waits stay short after a connection, then grow from there; a peer that ends each connection at once gains
    /// nothing. Method: attempts in virtual time after a long connection, and after many short ones.
    #[test]
    fn waits_are_short_after_a_connection() {
        let mut now = Instant::now();
        let began = now;
        let mut backoff = Backoff::default();
        backoff.connection_ended_at(now, Duration::from_secs(3600));
        let mut longest = Duration::ZERO;
        while now + LONGEST_RECENT <= began + RECENT {
            let wait = backoff.next_at(now);
            longest = longest.max(wait);
            now += wait;
        }
        assert!(longest > LONGEST_RECENT / 2 && longest <= LONGEST_RECENT, "{longest:?}");
        assert!(backoff.next_at(now) < 2 * LONGEST_RECENT);
        let later: Vec<Duration> = (0..9).map(|_| backoff.next_at(now)).collect();
        assert!(later[8] >= LONGEST / 2, "{later:?}");

        let mut backoff = Backoff::default();
        let waits = (0..20).map(|_| {
            let wait = backoff.next_at(now);
            now += wait;
            backoff.connection_ended_at(now, Duration::from_millis(3));
            wait
        });
        assert!(waits.last().unwrap() >= LONGEST / 2);
    }
}
