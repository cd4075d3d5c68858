//! [`Hosting`]: executors that are hosts of tasks, and tasks in them.

use std::sync::Arc;

#[cfg(any(feature = "kubernetes", feature = "mesos"))]
use crate::error::Error;

/// Whether an executor is a host of tasks, or a task in a host.
///
/// A host is a process that a cluster starts once an agent, and to which it sends tasks: see
/// [`Hosts`](crate::Hosts). Its program is `offermill task-host`, or any other one that does nothing but call
/// `offermill::cluster::run_task_host`.
///
/// The embedded cluster has hosts; others refuse such launches, with an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hosting {
    /// Neither: a process, task or pod of its own.
    #[default]
    Alone,
    /// A host.
    Host,
    /// A task that runs in the host with this executor id, on the same agent. The host was accepted before, or is
    /// before it in the same accept.
    In(Arc<str>),
}

impl Hosting {
    /// Fails if it needs hosts, which `cluster` doesn't have.
    #[cfg(any(feature = "kubernetes", feature = "mesos"))]
    pub(crate) fn refuse(&self, cluster: &str) -> Result<(), Error> {
        match self {
            Hosting::Alone => Ok(()),
            Hosting::Host | Hosting::In(_) => {
                Err(Error::cluster(cluster, "it has no hosts for tasks"))
            }
        }
    }
}
