//! The hosts of a simulated framework's tasks: as in `offermill run --tasks --task-hosts`, the first task on an agent
//! brings its host, others join it once it runs, and a host without tasks is ended after a while. The framework has the
//! ledger for them that frameworks have.

use std::time::Duration;

use super::work_fate::WorkFate;
use crate::engine::{HostLedger, HostTerms, Notice};
use crate::kernel::Change;
use crate::time::Timestamp;

/// How long a host without tasks is kept.
pub(in super::super) const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// Tasks in hosts come for a while, and then there are none for a while, in milliseconds: so hosts are idle, and tasks
/// come just when hosts are ended.
const BUSY_MS: u64 = 25_000;
const PAUSE_MS: u64 = 15_000;

/// Whether there are no tasks for hosts at this time.
pub(super) fn is_pause(now: Timestamp) -> bool {
    now.as_millis() % (BUSY_MS + PAUSE_MS) >= BUSY_MS
}

/// The hosts' program, and what each takes.
pub(super) fn host_terms() -> HostTerms {
    HostTerms { idle_timeout: IDLE_TIMEOUT, ..HostTerms::new(vec!["host".to_owned()]) }
}

/// What a notice, which the ledger doesn't know yet, says of a host or of a task in one.
pub(super) fn fate_of(notice: &Notice, hosts: &HostLedger) -> Option<WorkFate> {
    match notice {
        Notice::Updated { executor, change: Change::Ended(_), .. } => {
            let (tag, _) = hosts.host(executor)?;
            let host = hosts.view().hosts.into_iter().find(|host| host.tag == tag)?;
            (host.tasks > 0).then_some(WorkFate::HostLost)
        }
        Notice::Updated { tag: Some(_), change: Change::Readmitted, .. } => {
            Some(WorkFate::HostedBack)
        }
        Notice::GivenUp { executor } => hosts.host(executor).map(|_| WorkFate::HostGivenUp),
        _ => None,
    }
}
