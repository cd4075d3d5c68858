//! [`SimulatedWork`]: what a simulated framework places, if it isn't equal executors.

use std::collections::BTreeSet;

use super::hosts::host_terms;
use super::work_fate::WorkFate;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::engine::views::work_view::WorkView;
use crate::engine::{HostLedger, Notice, TaskChooser, TaskEnd};
use crate::kernel::{ResourceSums, Task, TaskHostStage};
use crate::launch::Launcher;
use crate::time::Timestamp;

/// What a simulated framework places: a chooser and launcher of tasks, and what the framework's threads have of it.
pub(in super::super) trait SimulatedWork: TaskChooser + Launcher {
    /// The settings were changed.
    fn set(&self, settings: FrameworkSettings);

    /// Takes what the last batch picked; the members of a gang are together.
    fn take_picked(&self) -> Vec<Vec<Task>>;

    /// Takes the agents whose hosts tasks of the last batch were to join, or may have been.
    fn take_joined(&self) -> BTreeSet<String>;

    /// Follows a notice. Returns what it means.
    fn noticed(&self, at: Timestamp, notice: &Notice) -> Vec<WorkFate>;

    /// Takes the executors that are to end: those that came back after they had been given up, and hosts that were idle
    /// for long enough.
    fn take_to_end(&self, now: Timestamp) -> (Vec<String>, Vec<String>);

    /// Has `look` see the hosts, if tasks run in hosts.
    fn with_hosts(&self, look: &mut dyn FnMut(&HostLedger));

    /// The framework has ended.
    fn close(&self) {}

    /// The tasks of a work queue, and the ends that it has told since the last call; `None` if it is none.
    fn take_told(&self) -> Option<(WorkView, Vec<TaskEnd>)>;

    /// What must be placed on this agent with the smallest task: nothing, or a host. `None` if its host takes no tasks
    /// now.
    fn beside_a_task(&self, agent_id: &str) -> Option<Option<ResourceSums>> {
        let mut stage = TaskHostStage::Up;
        self.with_hosts(&mut |hosts| stage = hosts.stage(agent_id));
        match stage {
            TaskHostStage::Up => Some(None),
            TaskHostStage::None => Some(Some(host_terms().sums())),
            TaskHostStage::Starting | TaskHostStage::Ending => None,
        }
    }
}
