//! How the embedded cluster is set up.

use std::path::PathBuf;
use std::time::Duration;

use super::attributes::AgentAttributes;
use super::master::LocalMaster;
use super::process::Environment;
use crate::error::Error;
use crate::resources::PortRange;

const INTERVAL_MIN: Duration = Duration::from_millis(10);
const INTERVAL_MAX: Duration = Duration::from_secs(60);
const GRACE_MAX: Duration = Duration::from_secs(3600);
/// An executor that hasn't been started within this time has failed.
const START_WITHIN: Duration = Duration::from_secs(30);

/// The settings of a [`LocalCluster`](super::LocalCluster), with defaults for all but the master.
///
/// They are checked when the cluster is made of them.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    pub(super) master: LocalMaster,
    pub(super) attributes: AgentAttributes,
    pub(super) work_dir: PathBuf,
    pub(super) grace: Duration,
    pub(super) interval: Duration,
    pub(super) ports: PortRange,
    pub(super) environment: Environment,
    /// What wardens run in, and how long a start may take: tests have others.
    pub(super) shell: PathBuf,
    pub(super) start_within: Duration,
}

impl LocalConfig {
    /// The agents of `master`, without attributes.
    #[must_use]
    pub fn new(master: LocalMaster) -> LocalConfig {
        LocalConfig {
            master,
            attributes: AgentAttributes::default(),
            work_dir: std::env::temp_dir().join("offermill"),
            grace: Duration::from_secs(5),
            interval: Duration::from_millis(200),
            ports: PortRange::new(31_000, 32_000),
            environment: Environment::Inherited,
            shell: "/bin/sh".into(),
            start_within: START_WITHIN,
        }
    }

    /// The agents' attributes.
    #[must_use]
    pub fn attributes(mut self, attributes: AgentAttributes) -> LocalConfig {
        self.attributes = attributes;
        self
    }

    /// Where sandboxes are made: `sandboxes/<framework>/<agent>/<executor>/` below it. By default
    /// `offermill` in the system's folder for temporary files.
    #[must_use]
    pub fn work_dir(mut self, work_dir: impl Into<PathBuf>) -> LocalConfig {
        self.work_dir = work_dir.into();
        self
    }

    /// How long executors may take to end by themselves when the cluster is stopped: 5 s unless
    /// said otherwise, at most an hour. Calls that kill bring a grace period of their own.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> LocalConfig {
        self.grace = grace;
        self
    }

    /// How long an agent waits at least from one offer to its next: 200 ms unless said otherwise,
    /// from 10 ms to 60 s.
    #[must_use]
    pub fn allocation_interval(mut self, interval: Duration) -> LocalConfig {
        self.interval = interval;
        self
    }

    /// The ports that agents offer, 31000 to 32000 unless said otherwise. As all agents are on one
    /// machine, each offers an equal share of its own.
    #[must_use]
    pub fn ports(mut self, ports: PortRange) -> LocalConfig {
        self.ports = ports;
        self
    }

    /// Executors get the variables of their command and nothing else. By default these are added to
    /// the program's own.
    #[must_use]
    pub fn clean_environment(mut self) -> LocalConfig {
        self.environment = Environment::Empty;
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&self.interval) {
            let value = format!("{} ms", self.interval.as_millis());
            return Err(Error::setting("allocation interval", value, "from 10 ms to 60 s"));
        }
        if self.grace > GRACE_MAX {
            let value = format!("{} s", self.grace.as_secs());
            return Err(Error::setting("grace period", value, "at most 1 h"));
        }
        let PortRange { begin, end } = self.ports;
        if begin == 0 || end > u64::from(u16::MAX) || begin > end {
            let allowed = "an interval between 1 and 65535, such as 31000-32000";
            return Err(Error::setting("agent ports", self.ports, allowed));
        }
        Ok(())
    }

    /// The share of the ports that belongs to the agent with this number; none when there are fewer
    /// ports than agents.
    pub(super) fn ports_of(&self, agent: usize) -> Option<PortRange> {
        let (begin, count) = (self.ports.begin, self.ports.end - self.ports.begin + 1);
        let share = count / self.master.agents() as u64;
        let first = begin + share * agent as u64;
        (share > 0).then(|| PortRange::new(first, first + share - 1))
    }
}
