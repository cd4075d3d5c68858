//! The thread that sends: batches of offers, and the ends of what was launched on them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use offermill::engine::cluster_manager::EncodedOffers;

use crate::BATCH;
use crate::cluster::{self, Cluster, Launched};
use crate::schedulers::{Shared, System};
use crate::support::fleet::{Batch, Fleet};
use crate::support::stream::EXECUTORS_LIVE;

/// The maximum number of offers that wait for an answer: less than the capacity of the engine's offer queue.
pub(crate) const WINDOW: u64 = 4_000;

/// What all offers must come to.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Ends {
    AllDeclined,
    AllAccepted,
}

/// A scheduler under test and its traffic.
pub(crate) struct Traffic<H> {
    system: H,
    cluster: Shared,
    batches: Vec<(EncodedOffers, Batch)>,
    next: usize,
    ends: Ends,
    window: u64,
    sent: u64,
    ended: u64,
    launched: u64,
    live: VecDeque<Launched>,
}

impl<H: System> Traffic<H> {
    /// When this returns, the system has seen each agent twice.
    pub(crate) fn new(
        fleet: &Fleet,
        ends: Ends,
        window: u64,
        system: impl FnOnce(Shared) -> H,
    ) -> Traffic<H> {
        let both = || fleet.met.iter().chain(&fleet.stream);
        let offers: Vec<_> = both().flat_map(|batch| batch.iter().copied()).collect();
        let event = |(batch, at)| (cluster::event(at * BATCH, batch), batch);
        let mut batches: Vec<_> = both().copied().zip(0..).map(event).collect();
        let cluster = Arc::new(Cluster::new(offers.leak()));
        let mut traffic = Traffic {
            system: system(Arc::clone(&cluster)),
            cluster,
            batches: batches.clone(),
            next: 0,
            ends,
            window,
            sent: 0,
            ended: 0,
            launched: 0,
            live: VecDeque::new(),
        };
        traffic.run(batches.len() as u64);
        traffic.batches = batches.split_off(fleet.met.len());
        traffic.next = 0;
        traffic
    }

    /// Sends so many batches and, where they launch, as many executors' ends, of those launched longest ago; returns
    /// how long it took until all was answered.
    pub(crate) fn run(&mut self, turns: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..turns {
            if self.sent - self.cluster.answered.count() > self.window {
                // Not at once after the first answer: waking up costs something, too.
                self.cluster.answered.wait(self.sent - self.window / 2);
            }
            let (encoded, batch) = &self.batches[self.next];
            self.system.offers(encoded, batch);
            self.sent += batch.len() as u64;
            self.next = (self.next + 1) % self.batches.len();
            self.end_the_oldest();
        }
        self.cluster.answered.wait(self.sent);
        self.cluster.acknowledged.wait(self.ended);
        let spent = start.elapsed();
        self.check();
        spent
    }

    fn end_the_oldest(&mut self) {
        let before = self.live.len();
        self.cluster.take_launched(&mut self.live);
        self.launched += (self.live.len() - before) as u64;
        while self.live.len() > EXECUTORS_LIVE {
            let Some(oldest) = self.live.pop_front() else { return };
            self.system.ended(oldest);
            self.ended += 1;
        }
    }

    fn check(&mut self) {
        let before = self.live.len();
        self.cluster.take_launched(&mut self.live);
        self.launched += (self.live.len() - before) as u64;
        let expected = if self.ends == Ends::AllAccepted { self.sent } else { 0 };
        assert_eq!(self.launched, expected, "not what must become of the offers");
    }
}
