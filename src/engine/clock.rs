//! The engine's clock: the kernel has none.

use super::sync::Instant;
use crate::time::Timestamp;

/// Monotonic time since the engine started.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts now.
    #[must_use]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// The moment that it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::ORIGIN.plus(self.0.elapsed())
    }
}
