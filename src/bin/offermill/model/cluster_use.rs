//! What the cluster offered during a run.

use std::time::Duration;

use offermill::{Kernel, ResourceSums, Timestamp};

/// How often the picture of the cluster's capacity is read.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum that the cluster offered, of the pictures of its capacity that were read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClusterUse {
    /// The maximum number of agents that had offered something.
    pub(crate) agents: usize,
    /// The maximum of each kind that they had offered. Not what was free: that can include, for a moment, what an
    /// executor has left whose end isn't reported yet.
    pub(crate) offered: ResourceSums,
    read_at: Option<Timestamp>,
}

impl ClusterUse {
    /// Reads the capacity, at most once per [`READ_INTERVAL`].
    pub(crate) fn poll(&mut self, kernel: &Kernel, now: Timestamp) {
        if self.read_at.is_none_or(|last| now.since(last) >= READ_INTERVAL) {
            self.read(kernel, now);
        }
    }

    /// Reads the capacity a last time.
    pub(crate) fn at_end(mut self, kernel: &Kernel, now: Timestamp) -> ClusterUse {
        self.read(kernel, now);
        self
    }

    fn read(&mut self, kernel: &Kernel, now: Timestamp) {
        self.read_at = Some(now);
        let capacity = kernel.capacity(now);
        let offered = capacity.agents().filter(|agent| agent.offered_at().is_some());
        self.agents = self.agents.max(offered.count());
        self.offered = self.offered.max_of_each(capacity.sums().offered);
    }
}

#[cfg(test)]
mod tests {
    use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource};

    use super::*;

    /// Goal: the most that was offered at a time is kept, and the cluster is read once per second. Method: two agents,
    /// of which one offers less later; times within the second and after it.
    #[test]
    fn the_most_that_was_offered_is_kept() {
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let mut handler = kernel.handler();
        let mut offer = |agent: &str, cores: f64, now: u64| {
            let resources = [Resource::scalar("cpus", cores)];
            let offers = [Offer::new("O", agent, "h", &resources, &[])];
            handler.resource_offers(&offers, Timestamp::from_millis(now), &mut Decisions::new());
        };
        let mut cluster_use = ClusterUse::default();
        let mut seen = |now: u64| {
            cluster_use.poll(&kernel, Timestamp::from_millis(now));
            (cluster_use.agents, cluster_use.offered.cores.whole_cores())
        };
        offer("S1", 4.0, 0);
        assert_eq!(seen(0), (1, 4));
        offer("S2", 2.0, 500);
        assert_eq!(seen(999), (1, 4), "it isn't due");
        assert_eq!(seen(1_000), (2, 6));
        offer("S1", 1.0, 1_500);
        assert_eq!(seen(3_000), (2, 6), "the most stays");
    }
}
