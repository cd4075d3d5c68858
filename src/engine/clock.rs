//! The engine's clock, which gives the kernel its timestamps; the kernel has no clock.

use super::sync::Instant;
use crate::time::Timestamp;

/// A monotonic clock that counts from the engine's start.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::ORIGIN.plus(self.0.elapsed())
    }
}
