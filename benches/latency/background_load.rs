//! Somebody else who works with the same scheduler on another thread.

use std::time::{Duration, Instant};

use crate::support::beside::beside;
use crate::support::desk::Desk;
use crate::support::fleet::Fleet;
use crate::support::pictured::Pictured;
use crate::support::stream::Stream;

const BETWEEN_PICTURES: Duration = Duration::from_millis(10);

/// Accepts offers and ends executors, and takes a picture now and then.
pub(crate) struct Companion<D, P> {
    stream: Stream<D>,
    pictured: P,
    last: Instant,
}

impl<D: Desk, P: Pictured> Companion<D, P> {
    pub(crate) fn new(desk: D, pictured: P, fleet: &Fleet) -> Companion<D, P> {
        // At another place of the round than who is measured.
        let stream = Stream::new(desk, fleet).ahead(1, 2);
        Companion { stream, pictured, last: Instant::now() }
    }

    /// Works while `measured` runs.
    pub(crate) fn beside(&mut self, measured: &mut dyn FnMut()) {
        beside(self, Companion::turn, measured);
    }

    fn turn(&mut self) {
        self.stream.start_and_end(1);
        if self.last.elapsed() >= BETWEEN_PICTURES {
            self.pictured.picture();
            self.last = Instant::now();
        }
    }
}
