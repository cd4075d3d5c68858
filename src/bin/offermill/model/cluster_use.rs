//! What the cluster offered during a run.

use std::time::Duration;

use offermill::{Kernel, ResourceSums, Timestamp};

/// How often the picture of the cluster's capacity is read.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// How often while agents get their first executors. The kernel's pictures aren't made more often.
const READ_INTERVAL_MIN: Duration = Duration::from_millis(100);

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
    /// Reads the capacity, at most once per [`READ_INTERVAL`]. Not before there were offers: a picture without agents
    /// would be read again when there are some.
    pub(crate) fn poll(&mut self, kernel: &Kernel, now: Timestamp) {
        if self.read_at.is_some() || kernel.offer_counts().offers > 0 {
            self.read_after(READ_INTERVAL, kernel, now);
        }
    }

    /// Reads the capacity when an agent gets its first executor, since all later offers of it are of what is left
    /// there; at most once per [`READ_INTERVAL_MIN`].
    pub(crate) fn poll_new_agent(&mut self, kernel: &Kernel, now: Timestamp) {
        self.read_after(READ_INTERVAL_MIN, kernel, now);
    }

    /// Reads the capacity a last time. What executors had at a time, and the agents that they were on, were offered,
    /// whether or not a picture shows that.
    pub(crate) fn at_end(
        mut self,
        kernel: &Kernel,
        now: Timestamp,
        (agents_used, used_most): (usize, ResourceSums),
    ) -> ClusterUse {
        self.read(kernel, now);
        self.agents = self.agents.max(agents_used);
        self.offered = self.offered.max_of_each(used_most);
        self
    }

    fn read_after(&mut self, interval: Duration, kernel: &Kernel, now: Timestamp) {
        if self.read_at.is_none_or(|last| now.since(last) >= interval) {
            self.read(kernel, now);
        }
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
    use offermill::resources::MilliCpus;
    use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource};

    use super::*;

    fn offer(kernel: &Kernel, agent: &str, cores: f64, now: u64) {
        let resources = [Resource::scalar("cpus", cores)];
        let offers = [Offer::new("O", agent, "h", &resources, &[])];
        let at = Timestamp::from_millis(now);
        kernel.handler().resource_offers(&offers, at, &mut Decisions::new());
    }

    /// The agents, and whole cores.
    fn seen(cluster_use: &ClusterUse) -> (usize, u64) {
        (cluster_use.agents, cluster_use.offered.cores.whole_cores())
    }

    /// Goal: the most that was offered at a time is kept, and the cluster is read once per second. Method: two agents,
    /// of which one offers less later; times within the second and after it.
    #[test]
    fn the_most_that_was_offered_is_kept() {
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let mut cluster_use = ClusterUse::default();
        let mut polled = |now: u64| {
            cluster_use.poll(&kernel, Timestamp::from_millis(now));
            seen(&cluster_use)
        };
        offer(&kernel, "S1", 4.0, 0);
        assert_eq!(polled(0), (1, 4));
        offer(&kernel, "S2", 2.0, 500);
        assert_eq!(polled(999), (1, 4), "it isn't due");
        assert_eq!(polled(1_000), (2, 6));
        offer(&kernel, "S1", 1.0, 1_500);
        assert_eq!(polled(3_000), (2, 6), "the most stays");
    }

    /// Goal: in a run of less than a second nothing is used that wasn't offered. Method: a poll before there are
    /// offers; an agent that offers four cores, of which later offers lack what is used, read when it gets its first
    /// executor and not; a last reading that shows no agent at all.
    #[test]
    fn what_is_used_was_offered() {
        let used =
            |cores| ResourceSums { cores: MilliCpus::from_cores(cores), ..ResourceSums::NONE };
        for (is_read, expected) in [(true, (1, 4)), (false, (1, 3))] {
            let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
            let at = Timestamp::from_millis;
            let mut cluster_use = ClusterUse::default();
            cluster_use.poll(&kernel, at(0));
            offer(&kernel, "S1", 4.0, 5);
            if is_read {
                cluster_use.poll_new_agent(&kernel, at(6));
            }
            offer(&kernel, "S1", 1.0, 15);
            let end = cluster_use.at_end(&kernel, at(300), (1, used(3)));
            assert_eq!(seen(&end), expected);
        }
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let end = ClusterUse::default().at_end(&kernel, Timestamp::ORIGIN, (2, used(3)));
        assert_eq!(seen(&end), (2, 3));
    }
}
