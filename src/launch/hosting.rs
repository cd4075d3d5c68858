//! [`Hosting`]: executors that are hosts of tasks, and tasks in them.

use std::sync::Arc;

#[cfg(feature = "kubernetes")]
use crate::error::Error;

/// Whether an executor is a host of tasks, or a task in a host.
///
/// A host is a process that a cluster starts once an agent, and to which it sends tasks: see
/// [`Hosts`](crate::Hosts). Its program is `offermill task-host`, or any other one that does nothing but call
/// `offermill::cluster::run_task_host`.
///
/// The embedded cluster, Mesos and the standalone cluster have hosts; others refuse such launches, with an error. On
/// Mesos a host is an executor with a task of the same id, which begins and ends with it, and so a framework describes
/// it to a standalone master as well. Its [setup](crate::launch::Setup) holds for its
/// tasks, of whose own setups only labels and the grace period of kills do. A task can only be put into the host that
/// was started on its agent last, by the same cluster manager.
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
    #[cfg(feature = "kubernetes")]
    pub(crate) fn refuse(&self, cluster: &str) -> Result<(), Error> {
        match self {
            Hosting::Alone => Ok(()),
            Hosting::Host | Hosting::In(_) => {
                Err(Error::cluster(cluster, "it has no hosts for tasks"))
            }
        }
    }
}

#[cfg(test)]
#[cfg(feature = "kubernetes")]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    /// Goal: a cluster without hosts refuses both a host and a task in one, with a sentence, and takes all else.
    /// Method: each kind of hosting.
    #[test]
    fn hosts_are_refused_with_a_sentence() {
        assert!(Hosting::Alone.refuse("Kubernetes").is_ok());
        for hosting in [Hosting::Host, Hosting::In("h".into())] {
            let why = hosting.refuse("Kubernetes").unwrap_err().to_string();
            assert_eq!(why, "Kubernetes: it has no hosts for tasks");
        }
    }
}
