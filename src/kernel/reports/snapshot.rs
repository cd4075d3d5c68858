//! Snapshots: all executors, agents and sums of the kernel at one instant.
//!
//! The totals are one load of the admission word; see [`collection`](super::collection) for when the executors are of
//! the same instant, and why each is named with its own agent.

use std::sync::Arc;

use super::agent_rows::AgentRows;
use super::agent_state::AgentState;
use super::collection::Collection;
use super::executor_row::Row;
use super::queues::QueueUse;
use super::totals::Totals;
use crate::config::QueueId;
use crate::ids::ExecutorId;
use crate::kernel::state::executor_state::CellStage;
use crate::kernel::state::tags::ExecutorMark;
use crate::kernel::{Core, Kernel};
use crate::resources::{ExecutorResources, MilliCpus};
use crate::sync::Ordering;
use crate::time::Timestamp;

/// How often the collection is repeated while executors come and go.
const TRIES: usize = if cfg!(all(loom, test)) { 1 } else { 8 };

/// The executors of the kernel at one instant, if [exact](Snapshot::exact), and its agents. Later snapshots have higher
/// numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// Grows with each snapshot of one kernel.
    pub number: u64,
    /// The sums, at one instant.
    pub totals: Totals,
    /// All executors, in no particular order.
    pub executors: Vec<ExecutorView>,
    /// All agents that the kernel knows, in no particular order. Each is as it was at some moment of the call, even if
    /// the snapshot is exact: while executors come and go, [`AgentState::executors`] may differ from the number of
    /// `executors` on the agent. An agent that is forgotten and met again during the call may be there twice.
    pub agents: Vec<AgentState>,
    /// Whether `executors` are of the same instant as `totals`, so that they add up to them. `false` if executors came
    /// and went too fast; then each is as it was at some moment of the collection, and those that ended during it are
    /// missing. In both cases each is named with its own agent.
    pub exact: bool,
    /// The queues, as in [`Kernel::queues`]: each amount as it was at some moment of the call.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queues: Vec<QueueUse>,
}

/// One executor in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExecutorView {
    /// Its id.
    pub id: ExecutorId,
    /// The id of its agent; empty if the executor is [bound late](crate::Binding::Late) and isn't bound yet.
    pub agent_id: Arc<str>,
    /// The phase of its life.
    pub phase: Phase,
    /// The resources that it takes.
    pub resources: ExecutorResources,
    /// When it was placed.
    pub placed_at: Timestamp,
    /// Its [tag](crate::Task::tag), if it is a task.
    pub tag: Option<u64>,
    /// The queue that it is booked in, if it was placed while there were queues.
    #[cfg_attr(feature = "serde", serde(default))]
    pub queue: Option<QueueId>,
}

/// The phase of an executor's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Phase {
    /// Placed, not yet reported running.
    Launching,
    /// Running.
    Running,
    /// Unreachable; its resources are counted.
    Unreachable,
    /// Unreachable for so long that its resources are not counted any more.
    GivenUp,
}

impl Kernel {
    /// Returns the sums at one instant, with one load.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.0.totals()
    }

    /// Returns all executors and agents. O(executors and agents) on the caller's thread.
    ///
    /// # Consistency
    /// The totals are of one instant. If [`Snapshot::exact`] is set, which it is unless executors come and go very
    /// fast, the executors are of the same instant. Agents are each as they were at some moment of the call.
    ///
    /// # Blocking
    /// Handlers never wait for it, nor it for them, except when an agent is first seen: its name has a lock.
    ///
    /// ```
    /// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Phase, Resource, Timestamp};
    /// # let kernel = Kernel::new(Config::builder().build()?, IdScheme::plain());
    /// # let resources = [Resource::scalar("cpus", 2.0), Resource::scalar("mem", 4096.0)];
    /// # let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
    /// # let now = Timestamp::ORIGIN;
    /// # kernel.handler().resource_offers(&offers, now, &mut Decisions::new());
    /// let snapshot = kernel.snapshot(now);
    /// for executor in &snapshot.executors {
    ///     // 0 on S1: 2 cores, Launching
    ///     let name = kernel.executor_name(executor.id);
    ///     println!("{name} on {}: {} cores, {:?}", executor.agent_id, executor.resources.cores, executor.phase);
    /// }
    /// assert!(snapshot.exact);
    /// assert_eq!(snapshot.executors.len() as u32, snapshot.totals.executors);
    /// assert_eq!(snapshot.executors[0].phase, Phase::Launching);
    /// assert_eq!((&*snapshot.agents[0].hostname, snapshot.agents[0].executors), ("host-1", 1));
    /// # Ok::<(), offermill::Error>(())
    /// ```
    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> Snapshot {
        self.0.snapshot(now)
    }
}

impl Core {
    pub(crate) fn totals(&self) -> Totals {
        self.admission.load().into()
    }

    pub(crate) fn snapshot(&self, now: Timestamp) -> Snapshot {
        // Relaxed: the number is unique, and nothing depends on it.
        let number = self.snapshots.fetch_add(1, Ordering::Relaxed);
        let mut agents = AgentRows::default();
        let mut marks = Vec::new();
        let memory = Vec::new();
        let Collection { rows, admission, exact } = self.collect_exactly(memory, TRIES, |rows| {
            self.collect_marks(rows, &mut marks);
            agents.read(&self.agents, now);
        });
        let mut executors = Vec::with_capacity(rows.len());
        let has_marks = !marks.is_empty();
        let mut marks = marks.into_iter().peekable();
        executors.extend(rows.iter().filter_map(|row| {
            let id = row.0;
            if !has_marks {
                return view(row, None, &mut agents);
            }
            // Rows may have been left out since the marks were collected. Both are in the order of the cells.
            while marks.next_if(|(of, _)| of.slot < id.slot).is_some() {}
            let mark = marks.next_if(|(of, _)| *of == id).map(|(_, mark)| mark);
            view(row, mark, &mut agents)
        }));
        debug_assert_eq!(executors.len(), rows.len(), "an executor without an agent");
        let queues = self.queue_uses(&self.policy.load());
        let agents = agents.states;
        Snapshot { number, totals: admission.into(), executors, agents, exact, queues }
    }

    /// Collects the marks of those that have one, in the same order. A mark may be that of a cell's next executor; then
    /// the collection finds that its own one has ended.
    fn collect_marks(&self, rows: &[Row], marks: &mut Vec<(ExecutorId, ExecutorMark)>) {
        marks.clear();
        if self.tags.get().is_some() {
            marks.extend(rows.iter().filter_map(|(id, ..)| Some((*id, self.read_mark(*id)?))));
        }
    }

    /// The cores of executors that are running.
    pub(crate) fn running_cores(&self) -> MilliCpus {
        let running = self.live().filter(|(_, _, state)| state.stage == CellStage::Running);
        MilliCpus::from_millis(
            running.map(|(_, executor, _)| executor.allocation().resources.cores.millis()).sum(),
        )
    }
}

fn view(
    (id, state, allocation, placed_at): &Row,
    mark: Option<ExecutorMark>,
    agents: &mut AgentRows,
) -> Option<ExecutorView> {
    let phase = match state.stage {
        CellStage::Launching => Phase::Launching,
        CellStage::Running => Phase::Running,
        CellStage::Unreachable => Phase::Unreachable,
        CellStage::GivenUp => Phase::GivenUp,
        CellStage::Vacant | CellStage::Reserved => return None,
    };
    Some(ExecutorView {
        id: *id,
        agent_id: agents.id(allocation.agent)?,
        phase,
        resources: allocation.resources,
        placed_at: *placed_at,
        tag: mark.and_then(|mark| mark.tag),
        queue: mark.and_then(|mark| mark.queue),
    })
}
