//! The hosts of a simulated framework's tasks: as in `offermill run --tasks --task-hosts`, the first task on an agent
//! brings its host, others join it once it runs, and a host without tasks is ended after a while. The framework has the
//! ledger for them that frameworks have.

use std::time::Duration;

use crate::engine::{HostLedger, HostTerms, Notice};
use crate::kernel::Change;

/// The tags of hosts begin here.
pub(in super::super) const HOST_TAGS: u64 = 1 << 40;
/// How long a host without tasks is kept.
pub(in super::super) const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// The hosts' program, and what each takes.
pub(super) fn host_terms() -> HostTerms {
    HostTerms { idle_timeout: IDLE_TIMEOUT, ..HostTerms::new(vec!["host".to_owned()]) }
}

/// What has become of a host, or of a task in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum HostFate {
    LostWithTasks,
    GivenUp,
    Returned,
}

impl HostFate {
    /// What a notice says that the ledger doesn't know yet.
    pub(super) fn of(notice: &Notice, hosts: &HostLedger) -> Option<HostFate> {
        match notice {
            Notice::Updated { executor, change: Change::Ended(_), .. } => {
                let (tag, _) = hosts.host(executor)?;
                let host = hosts.view().hosts.into_iter().find(|host| host.tag == tag)?;
                (host.tasks > 0).then_some(HostFate::LostWithTasks)
            }
            Notice::Updated { tag: Some(_), change: Change::Readmitted, .. } => {
                Some(HostFate::Returned)
            }
            Notice::GivenUp { executor } => hosts.host(executor).map(|_| HostFate::GivenUp),
            _ => None,
        }
    }
}
