//! Snapshots: all executors, agents and sums of the kernel at one instant.
//!
//! The totals are one load of [admission](crate::kernel::state::admission); see [`collection`](super::collection) for
//! when the executors are of the same instant, and why each is named with its own agent.

use std::sync::Arc;

use super::agent_rows::AgentRows;
use super::agent_state::AgentState;
use super::collection::{Collected, Collector};
use super::executor_row::{Row, SeenExecutor};
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
    /// Returns the sums at one instant. Reads them again while others end executors.
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
    /// Handlers never wait for it, nor it for them, except when an agent is first seen: its name has a lock. Names are
    /// kept for the next snapshot, under a lock of snapshots alone, which is held while they are taken out or put back.
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
        let mut views = Views::new(self, now);
        let Collected { admission, exact } =
            self.collect_exactly(&mut Vec::new(), TRIES, &mut views);
        let Views { executors, agents, .. } = views;
        let queues = self.queue_uses(&self.policy.load());
        let agents = agents.finish(&self.agent_names);
        Snapshot { number, totals: admission.into(), executors, agents, exact, queues }
    }

    /// The cores of executors that are running.
    pub(crate) fn running_cores(&self) -> MilliCpus {
        let running = self.live().filter(|(_, _, state)| state.stage == CellStage::Running);
        MilliCpus::from_millis(
            running.map(|(_, executor, _)| executor.allocation().resources.cores.millis()).sum(),
        )
    }
}

/// Collects the executors and agents of a snapshot.
struct Views<'a> {
    core: &'a Core,
    now: Timestamp,
    executors: Vec<ExecutorView>,
    agents: AgentRows,
    /// Those of the executors that have one, in the order of the cells, up to the executor that was added last.
    marks: std::iter::Peekable<std::vec::IntoIter<(ExecutorId, ExecutorMark)>>,
}

impl<'a> Views<'a> {
    fn new(core: &'a Core, now: Timestamp) -> Views<'a> {
        let agents = AgentRows::new(&core.agent_names);
        Views { core, now, executors: Vec::new(), agents, marks: Vec::new().into_iter().peekable() }
    }

    /// The mark of an executor. Some of those that were seen may have been left out since.
    #[cold]
    fn mark(&mut self, id: ExecutorId) -> Option<ExecutorMark> {
        while self.marks.next_if(|(of, _)| of.slot < id.slot).is_some() {}
        self.marks.next_if(|(of, _)| *of == id).map(|(_, mark)| mark)
    }
}

impl Collector for Views<'_> {
    fn begin(&mut self, seen: &[SeenExecutor]) {
        self.executors.clear();
        self.executors.reserve(seen.len());
        // A mark may be that of a cell's next executor; then the second look finds that its own one has ended.
        let mark = |id: ExecutorId| Some((id, self.core.read_mark(id)?));
        let has_marks = self.core.tags.get().is_some();
        let marks: Vec<_> = seen
            .iter()
            .take_while(|_| has_marks)
            .filter_map(|executor| mark(executor.id()))
            .collect();
        self.marks = marks.into_iter().peekable();
        self.agents.read(&self.core.agents, self.now);
    }

    #[inline]
    fn prefetch(&self, executor: &SeenExecutor) {
        self.agents.prefetch(executor.agent);
    }

    #[inline]
    fn add(&mut self, row: Row) {
        let phase = match row.stage {
            CellStage::Launching => Phase::Launching,
            CellStage::Running => Phase::Running,
            CellStage::Unreachable => Phase::Unreachable,
            CellStage::GivenUp => Phase::GivenUp,
            CellStage::Vacant | CellStage::Reserved => return,
        };
        let Some(agent_id) = self.agents.id(row.allocation.agent) else {
            debug_assert!(false, "an executor without an agent");
            return;
        };
        let mark = if self.marks.len() > 0 { self.mark(row.id) } else { None };
        self.executors.push(ExecutorView {
            id: row.id,
            agent_id,
            phase,
            resources: row.allocation.resources,
            placed_at: row.launched,
            tag: mark.and_then(|mark| mark.tag),
            queue: mark.and_then(|mark| mark.queue),
        });
    }
}
