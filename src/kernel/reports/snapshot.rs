//! The picture of the kernel at one instant.
//!
//! The totals are one load of the admission word. What goes into detail is collected twice with a look at the word in
//! between: if both collections are equal and add up to the word, then the word and all cells stood like that
//! together at the moment of the look. No handler waits for it, and it waits for no handler.
//!
//! Agents' ids are looked up between the collections, too: an executor that is in both held its agent then, so that the
//! agent wasn't forgotten and its cell wasn't another's. If no two collections are equal, those executors are left out
//! that are gone at the second look, and the same holds for the rest.

use std::sync::Arc;

use super::agent_names::AgentNames;
use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::state::admission::AdmissionState;
use crate::kernel::state::executors::{Allocation, Stage, State};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::sync::{Ordering, fence};
use crate::time::Timestamp;

/// So often a collection is tried again while executors come and go.
const TRIES: usize = if cfg!(all(loom, test)) { 1 } else { 8 };

/// A picture of the kernel. It never changes; a later one has a higher number.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// Grows with each snapshot of one kernel.
    pub number: u64,
    /// The sums, at one instant.
    pub totals: Totals,
    /// Each executor, in no particular order. Empty unless asked for.
    pub executors: Vec<ExecutorView>,
    /// Each agent that the kernel knows, in no particular order. Empty unless asked for.
    pub agents: Vec<AgentState>,
    /// Whether `executors` are the state at the same instant as `totals`, so that they add up to them. `false` when
    /// executors came and went so fast that no such picture could be had; then each is as it was at some moment of
    /// the collection, and those that ended during it are missing. Each is named with its own agent either way.
    pub exact: bool,
}

/// Sums over all executors that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Executors that count against the limit.
    pub executors: u32,
    /// Cores that count against the cap.
    pub cores: MilliCpus,
    /// Whether the kernel is closed.
    pub closed: bool,
}

/// One executor in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutorView {
    /// Its id.
    pub id: ExecutorId,
    /// The id of its agent.
    pub agent_id: Arc<str>,
    /// Where in its life it is.
    pub phase: Phase,
    /// The cores that it takes.
    pub cores: MilliCpus,
    /// The memory that it takes, overhead included.
    pub memory: Mebibytes,
    /// The GPUs that it takes.
    pub gpus: Gpus,
    /// When it was placed.
    pub placed_at: Timestamp,
}

/// Where in its life an executor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Placed, not yet seen running.
    Launching,
    /// Running.
    Running,
    /// Out of sight; its resources are counted.
    Unreachable,
    /// Out of sight for so long that its resources are counted no more.
    GivenUp,
}

/// One agent in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentState {
    /// Its id.
    pub agent_id: Arc<str>,
    /// Its host name.
    pub hostname: Box<str>,
    /// Executors on it, those that were given up included.
    pub executors: u32,
    /// Until when it is excluded, if it is; [`Timestamp::MAX`] is for ever.
    pub excluded_until: Option<Timestamp>,
}

type Row = (ExecutorId, State, Allocation, Timestamp);

impl Core {
    pub(crate) fn totals(&self) -> Totals {
        self.admission.load().into()
    }

    pub(crate) fn snapshot(&self, now: Timestamp) -> Snapshot {
        // Relaxed: a number that nobody else gets.
        let number = self.snapshots.fetch_add(1, Ordering::Relaxed);
        let mut exact = false;
        let mut admission = self.admission.load();
        let mut rows = Vec::with_capacity(admission.executors() as usize);
        let mut agent_names = AgentNames::new(&self.agents);
        for _ in 0..TRIES {
            self.collect(&mut rows);
            agent_names.look_up(rows.iter().map(|(_, _, allocation, _)| allocation.agent));
            // Acquire: pairs with the fence in `Executor::reserve`. Was a hold read that belongs to a cell's next
            // executor, the states below tell that the one before has ended.
            fence(Ordering::Acquire);
            admission = self.admission.load();
            exact = adds_up(&rows, admission) && self.unchanged(&rows);
            if exact {
                break;
            }
        }
        if !exact {
            rows.retain(|(id, ..)| self.is_live(*id));
        }
        let agents = self.agents.views(now).map(|(cell, agent)| AgentState {
            agent_id: agent_names.share(cell, &agent.name.id),
            hostname: agent.name.hostname.clone(),
            executors: agent.executors,
            excluded_until: agent.excluded_until,
        });
        let agents = agents.collect();
        let mut executors = Vec::with_capacity(rows.len());
        executors.extend(rows.iter().filter_map(|row| view(row, &agent_names)));
        debug_assert_eq!(executors.len(), rows.len(), "an executor without an agent");
        Snapshot { number, totals: admission.into(), executors, agents, exact }
    }

    fn collect(&self, rows: &mut Vec<Row>) {
        rows.clear();
        let live = self.live();
        rows.extend(
            live.map(|(id, executor, state)| {
                (id, state, executor.allocation(), executor.launched())
            }),
        );
    }

    /// Whether the cells still are what `rows` say, and no other executor is live.
    fn unchanged(&self, rows: &[Row]) -> bool {
        self.live().map(|(id, _, state)| (id, state)).eq(rows.iter().map(|row| (row.0, row.1)))
    }

    fn is_live(&self, id: ExecutorId) -> bool {
        self.executors.get(id.slot).is_some_and(|executor| {
            let state = executor.state();
            state.sequence == id.sequence && state.stage.live()
        })
    }

    /// The cores of executors that were seen running and still are.
    pub(crate) fn running_cores(&self) -> MilliCpus {
        let running = self.live().filter(|(_, _, state)| state.stage == Stage::Running);
        MilliCpus::from_millis(
            running.map(|(_, executor, _)| executor.allocation().cores.millis()).sum(),
        )
    }
}

impl From<AdmissionState> for Totals {
    fn from(admission: AdmissionState) -> Totals {
        Totals {
            executors: admission.executors(),
            cores: admission.cores(),
            closed: admission.closed(),
        }
    }
}

fn view(
    (id, state, allocation, placed_at): &Row,
    agent_names: &AgentNames<'_>,
) -> Option<ExecutorView> {
    let phase = match state.stage {
        Stage::Launching => Phase::Launching,
        Stage::Running => Phase::Running,
        Stage::Unreachable => Phase::Unreachable,
        Stage::GivenUp => Phase::GivenUp,
        Stage::Vacant | Stage::Reserved => return None,
    };
    Some(ExecutorView {
        id: *id,
        agent_id: agent_names.id(allocation.agent)?,
        phase,
        cores: allocation.cores,
        memory: allocation.memory,
        gpus: allocation.gpus,
        placed_at: *placed_at,
    })
}

fn adds_up(rows: &[Row], admission: AdmissionState) -> bool {
    let counted = rows.iter().filter(|row| row.1.stage.counted());
    let (executors, cores) = counted.fold((0u32, 0u64), |(executors, cores), row| {
        (executors + 1, cores + row.2.cores.millis())
    });
    executors == admission.executors() && cores == admission.cores().millis()
}
