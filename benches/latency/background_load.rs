//! Load on the same scheduler from another thread.

use std::time::{Duration, Instant};

use crate::support::beside::beside;
use crate::support::fleet::Fleet;
use crate::support::pictured::Pictured;
use crate::support::scheduler::Scheduler;
use crate::support::stream::Stream;

const BETWEEN_PICTURES: Duration = Duration::from_millis(10);

/// Accepts offers and ends executors, and takes a picture now and then.
pub(crate) struct BackgroundLoad<D, P> {
    stream: Stream<D>,
    pictured: P,
    last: Instant,
}

impl<D: Scheduler, P: Pictured> BackgroundLoad<D, P> {
    pub(crate) fn new(scheduler: D, pictured: P, fleet: &Fleet) -> BackgroundLoad<D, P> {
        // Starts at another position of the stream than the measured thread.
        let stream = Stream::new(scheduler, fleet).ahead(1, 2);
        BackgroundLoad { stream, pictured, last: Instant::now() }
    }

    /// Works while `measured` runs.
    pub(crate) fn beside(&mut self, measured: &mut dyn FnMut()) {
        beside(self, BackgroundLoad::turn, measured);
    }

    fn turn(&mut self) {
        self.stream.start_and_end(1);
        if self.last.elapsed() >= BETWEEN_PICTURES {
            self.pictured.picture();
            self.last = Instant::now();
        }
    }
}
