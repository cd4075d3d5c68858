//! [`LocalConfig`], the settings of the embedded cluster.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::attributes::AgentAttributes;
use super::master::LocalMaster;
use crate::cluster::process::EnvironmentBase;
use crate::cluster::task_host::HostPatience;
use crate::error::Error;
use crate::private_files::effective_uid;
use crate::resources::PortRange;

const INTERVAL_MIN: Duration = Duration::from_millis(10);
const INTERVAL_MAX: Duration = Duration::from_secs(60);
const GRACE_MAX: Duration = Duration::from_secs(3600);
/// The maximum duration of an executor's start. A start that takes longer counts as failed.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of a [`LocalCluster`](super::LocalCluster). All but the master have defaults.
///
/// [`LocalCluster::new`](super::LocalCluster::new) checks them.
#[derive(Clone, Debug)]
pub struct LocalConfig {
    pub(super) master: LocalMaster,
    pub(super) attributes: AgentAttributes,
    pub(super) work_dir: PathBuf,
    pub(super) grace: Duration,
    pub(super) interval: Duration,
    pub(super) ports: PortRange,
    pub(super) environment: EnvironmentBase,
    pub(super) withheld: Vec<OsString>,
    /// The shell that runs watchdogs, and the maximum duration of a start. Only tests change them.
    pub(super) shell: PathBuf,
    pub(super) start_timeout: Duration,
    /// How long hosts of tasks are waited for. Only tests change it.
    pub(super) host_patience: HostPatience,
}

impl LocalConfig {
    /// The default settings for the agents of `master`.
    #[must_use]
    pub fn new(master: LocalMaster) -> LocalConfig {
        LocalConfig {
            master,
            attributes: AgentAttributes::default(),
            work_dir: std::env::temp_dir().join(format!("offermill-{}", effective_uid())),
            grace: Duration::from_secs(5),
            interval: Duration::from_millis(200),
            ports: PortRange::new(31_000, 32_000),
            environment: EnvironmentBase::Inherited,
            withheld: Vec::new(),
            shell: "/bin/sh".into(),
            start_timeout: START_TIMEOUT,
            host_patience: HostPatience::default(),
        }
    }

    /// Sets the agents' attributes. Default: none.
    #[must_use]
    pub fn attributes(mut self, attributes: AgentAttributes) -> LocalConfig {
        self.attributes = attributes;
        self
    }

    /// Sets the folder below which sandboxes are made, as `sandboxes/<framework>/<agent>/<executor>/`. Default:
    /// `offermill-` and the effective user's id, in the system's folder for temporary files.
    ///
    /// The folder is made with mode 0700 unless it exists. A folder that belongs to another user than this one or root
    /// is refused when the cluster starts, and so is one that others may write.
    #[must_use]
    pub fn work_dir(mut self, work_dir: impl Into<PathBuf>) -> LocalConfig {
        self.work_dir = work_dir.into();
        self
    }

    /// Sets how long executors may take to end by themselves when the cluster is stopped: at most an hour, by default 5
    /// s. [`Call::Kill`](crate::engine::cluster_manager::Call::Kill) has a grace period of its own.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> LocalConfig {
        self.grace = grace;
        self
    }

    /// Sets the minimum time between two offers of an agent: from 10 ms to 60 s, by default 200 ms.
    #[must_use]
    pub fn allocation_interval(mut self, interval: Duration) -> LocalConfig {
        self.interval = interval;
        self
    }

    /// Sets the ports that agents offer, by default 31000 to 32000. Because all agents are on one machine, each offers
    /// an equal share.
    #[must_use]
    pub fn ports(mut self, ports: PortRange) -> LocalConfig {
        self.ports = ports;
        self
    }

    /// Gives executors only the variables of their command. By default they also get this program's variables, except
    /// [`SECRET_VARIABLES`](crate::launch::SECRET_VARIABLES) and those that are [withheld](Self::withhold_variables).
    #[must_use]
    pub fn clean_environment(mut self) -> LocalConfig {
        self.environment = EnvironmentBase::Empty;
        self
    }

    /// Withholds variables of this program from executors, such as those with secrets of the program's own. A variable
    /// of that name in a command is still set.
    #[must_use]
    pub fn withhold_variables(
        mut self,
        names: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> LocalConfig {
        self.withheld.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets how long hosts of tasks are waited for.
    #[cfg(test)]
    pub(super) fn host_patience(mut self, host_patience: HostPatience) -> LocalConfig {
        self.host_patience = host_patience;
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

    /// The ports that the agent with this number offers. `None` if there are fewer ports than agents.
    pub(super) fn ports_of(&self, agent: usize) -> Option<PortRange> {
        let count = self.ports.end - self.ports.begin + 1;
        let share = count / self.master.agents() as u64;
        let first = self.ports.begin + share * agent as u64;
        (share > 0).then(|| PortRange::new(first, first + share - 1))
    }
}
