//! [`LedgerView`]: what a host ledger holds, for checks.

use std::collections::HashMap;

use crate::kernel::TaskHostStage;

/// All that a [`HostLedger`](crate::engine::HostLedger) holds at the moment.
pub(crate) struct LedgerView<'l> {
    pub(crate) hosts: Vec<HostView<'l>>,
    pub(crate) members: Vec<MemberView<'l>>,
    /// The tags of hosts by agent.
    pub(crate) of_agent: &'l HashMap<String, u64>,
    /// The tags of hosts and tasks that were launched, by executor.
    pub(crate) launched: &'l HashMap<String, u64>,
}

/// A host that hasn't ended.
pub(crate) struct HostView<'l> {
    pub(crate) tag: u64,
    pub(crate) agent_id: &'l str,
    /// Empty before it is launched.
    pub(crate) executor: &'l str,
    pub(crate) stage: TaskHostStage,
    pub(crate) tasks: u32,
}

/// A task that hasn't left its host.
pub(crate) struct MemberView<'l> {
    pub(crate) tag: u64,
    pub(crate) host_tag: u64,
    /// Empty before it is launched.
    pub(crate) executor: &'l str,
}
