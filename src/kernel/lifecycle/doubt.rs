//! Reported losses of agents and executors, kills, and reconciliation: which executors to ask the cluster about.

use std::time::Duration;

use crate::ids::ExecutorId;
use crate::kernel::state::agent_binding::NO_AGENT;
use crate::kernel::state::agents::AgentRefusal;
use crate::kernel::state::executor_state::{CellStage, CellState};
use crate::kernel::state::executors::ExecutorCell;
use crate::kernel::state::target::Target;
use crate::kernel::{Core, Kernel};
use crate::sync::{Ordering, fence};
use crate::time::Timestamp;

/// How long no executor is placed on an agent that was reported lost: offers of it may still arrive.
const SUSPECT_FOR: Duration = Duration::from_secs(10);

/// Which executors to reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// All but [young](Scope::YOUNG_FOR) ones. For use after each subscription and at intervals.
    All,
    /// Executors in doubt, unreachable ones, and those whose launch is unconfirmed for longer than the launch timeout.
    /// An executor without an agent is none of the latter, however long it waits: a cluster that
    /// [chooses the agents](Kernel::bind) may find one hours later. [`Scope::All`] includes it. Once it is bound, the
    /// timeout counts from its placement.
    InDoubt,
}

impl Scope {
    /// How long an executor is young after it was placed: 5 s, unless it was reported running or is in doubt. The call
    /// that launches it may still be on its way.
    pub const YOUNG_FOR: Duration = Duration::from_secs(5);
}

impl Kernel {
    /// Returns the executors that the cluster should be asked about. O(executors).
    ///
    /// A question must not overtake the call that launches its executor, or the cluster answers that it doesn't exist.
    /// Therefore [`Scope::All`] leaves out [young](Scope::YOUNG_FOR) executors. Call it again after that time, or use
    /// [`Scope::InDoubt`], which includes them when the launch timeout is over.
    ///
    /// Executors that [`Kernel::agent_lost`] or [`Kernel::executor_lost`] put in doubt are returned at once, even if
    /// they are young. If you report losses, or if your calls may take longer than that time to leave, leave out the
    /// executors whose launch has not left yourself. (The engine does so, exactly.)
    #[must_use]
    pub fn reconcile(&self, scope: Scope, now: Timestamp) -> Vec<Target> {
        self.0.reconcile(scope, Scope::YOUNG_FOR, now)
    }

    /// [`Kernel::reconcile`] of all executors, including young ones, for callers that know which launches have left.
    pub(crate) fn reconcile_all(&self, now: Timestamp) -> Vec<Target> {
        self.0.reconcile(Scope::All, Duration::ZERO, now)
    }
}

impl Core {
    /// All live executors, with their cells and current states.
    pub(crate) fn live(&self) -> impl Iterator<Item = (ExecutorId, &ExecutorCell, CellState)> {
        self.executors.iter().filter_map(|(slot, executor)| {
            let state = executor.state();
            let id = ExecutorId { sequence: state.sequence, slot };
            state.stage.live().then_some((id, executor, state))
        })
    }

    /// Returns an executor with its agent, unless it has ended. The agent's id is empty while it isn't bound.
    pub(crate) fn target(&self, id: ExecutorId, executor: &ExecutorCell) -> Option<Target> {
        let agent_id = match executor.agent() {
            NO_AGENT => "".into(),
            agent => self.agents.id(agent)?,
        };
        let tag = self.read_tag(id);
        // The state is read after the name and the tag: if the executor is still there, it held its agent all the time,
        // and the tag is its own. Acquire pairs with the fence in `ExecutorCell::before_reserving`, as for a snapshot.
        fence(Ordering::Acquire);
        let state = executor.state();
        let held = state.sequence == id.sequence && state.stage != CellStage::Vacant;
        held.then_some(Target { id, agent_id, tag })
    }

    pub(crate) fn agent_lost(&self, agent_id: &str, now: Timestamp) -> Vec<Target> {
        let until = now.plus(SUSPECT_FOR);
        if agent_id.is_empty() {
            return Vec::new();
        }
        let Some(key) = self.agents.suspect(agent_id, until, now) else { return Vec::new() };
        // From now on no executor is reserved there, so this counts all that are there or are being placed.
        let held = self.agents.executors(key);
        if held == 0 {
            return Vec::new();
        }
        let here = self.doubt_on_agent(key.index());
        let refusal = self.agents.capacity(key, now).err();
        let is_refused =
            matches!(refusal, Some(AgentRefusal::Suspect(_) | AgentRefusal::Excluded(_)));
        // If it was readmitted meanwhile, newer executors may be among those found.
        if here.len() as u32 >= held && is_refused {
            return here;
        }
        // Some are being placed or have just ended. After this, every executor that is admitted there was admitted
        // before, and thus is in its cell.
        self.policy.invalidate_plans(&self.admission);
        self.doubt_on_agent(key.index())
    }

    /// Puts the executors on an agent in doubt. Returns them, except those of batches that are not answered yet.
    fn doubt_on_agent(&self, agent: u32) -> Vec<Target> {
        let candidates = self.executors.search(|hint| hint.may_be(agent));
        let here = candidates.filter_map(|(slot, executor)| {
            let CellState { sequence, stage, .. } = executor.state();
            let there = stage != CellStage::Vacant && executor.allocation().agent == agent;
            there.then_some((ExecutorId { sequence, slot }, executor))
        });
        here.filter_map(|(id, executor)| self.doubt(id, executor)).collect()
    }

    pub(crate) fn executor_lost(&self, executor: &str) -> Option<Target> {
        let id = self.find_executor(executor)?;
        self.doubt(id, self.executors.get(id.slot)?)
    }

    /// Puts an executor in doubt. Returns it unless its batch is not answered yet.
    fn doubt(&self, id: ExecutorId, executor: &ExecutorCell) -> Option<Target> {
        let doubted = executor.change(id.sequence, |state| {
            (state.stage != CellStage::Vacant).then_some(CellState { doubtful: true, ..state })
        });
        let (before, _) = doubted.ok()?;
        if before.stage == CellStage::Reserved { None } else { self.target(id, executor) }
    }

    pub(crate) fn kill(&self, ids: impl IntoIterator<Item = ExecutorId>) -> Vec<Target> {
        let kill_one = |id: ExecutorId| {
            let executor = self.executors.get(id.slot)?;
            let asked = executor.change(id.sequence, |state| {
                let live = state.stage.live() || state.stage == CellStage::Reserved;
                live.then_some(CellState { asked_to_end: true, ..state })
            });
            asked.ok().and_then(|_| self.target(id, executor))
        };
        ids.into_iter().filter_map(kill_one).collect()
    }

    fn reconcile(&self, scope: Scope, young_for: Duration, now: Timestamp) -> Vec<Target> {
        let timeout = self.policy.load().config.launch_timeout;
        let is_included = |executor: &ExecutorCell, state: CellState| match (scope, state.stage) {
            (Scope::All, CellStage::Launching) => {
                state.doubtful || now.since(executor.launched()) >= young_for
            }
            (Scope::All, _) | (Scope::InDoubt, CellStage::Unreachable | CellStage::GivenUp) => true,
            (Scope::InDoubt, CellStage::Launching) => {
                let is_late = || now.since(executor.launched()) >= timeout;
                state.doubtful || executor.agent() != NO_AGENT && is_late()
            }
            (Scope::InDoubt, _) => state.doubtful,
        };
        self.live()
            .filter(|(_, executor, state)| is_included(executor, *state))
            .filter_map(|(id, executor, _)| self.target(id, executor))
            .collect()
    }
}
