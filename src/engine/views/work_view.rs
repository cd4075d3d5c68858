//! What a [`WorkQueue`] holds, for a simulation that is its engine.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::host_ledger::HostLedger;
use crate::engine::work_queue::WorkQueue;
use crate::kernel::{Kernel, Task};

/// The tasks of a [`WorkQueue`] at the moment.
pub(crate) struct WorkView {
    /// All that haven't ended.
    pub(crate) tasks: Vec<Task>,
    /// Those that wait.
    pub(crate) waiting: Vec<Task>,
    /// The GPUs of the others.
    pub(crate) gpus_picked: u32,
    /// The tags of those that were launched, by executor.
    pub(crate) launched: BTreeMap<String, u64>,
    /// The tags of those whose ends are not told yet.
    pub(crate) kept: BTreeSet<u64>,
    /// Those of tasks that have ended, and of which it isn't known whether they had begun.
    pub(crate) undecided: BTreeSet<u64>,
}

impl WorkQueue {
    /// Has the queue follow this kernel, without an engine.
    pub(crate) fn follow(&self, kernel: &Kernel) {
        self.state().kernel = Some(kernel.clone());
    }

    /// The engine has ended.
    pub(crate) fn end(&self) {
        self.close(0);
    }

    /// What it holds.
    pub(crate) fn view(&self) -> WorkView {
        let state = self.state();
        let launched = state.launched.iter().map(|(name, it)| (name.clone(), it.tag));
        WorkView {
            tasks: state.tasks.values().map(|queued| queued.task).collect(),
            waiting: state.waiting.all(),
            gpus_picked: state.gpus_picked,
            launched: launched.collect(),
            kept: state.kept.keys().copied().collect(),
            undecided: state.pauses.undecided().collect(),
        }
    }

    /// Has `look` see its hosts, if there are any.
    pub(crate) fn with_hosts<R>(&self, look: impl FnOnce(&HostLedger) -> R) -> Option<R> {
        self.state().hosts.as_ref().map(look)
    }
}
