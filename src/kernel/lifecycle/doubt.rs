//! What is only feared: agents and executors reported lost, kills, and the executors whose state is in question.

use std::time::Duration;

use super::updates::Target;
use crate::ids::ExecutorId;
use crate::kernel::state::executors::{Executor, Stage, State};
use crate::kernel::{Core, Kernel};
use crate::sync::{Ordering, fence};
use crate::time::Timestamp;

/// Nothing is started for so long on an agent that was reported lost: offers of it may still be on their way.
const SUSPECT_FOR: Duration = Duration::from_secs(10);

/// Which executors to ask the cluster about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All but [young](Scope::YOUNG_FOR) ones: after each subscription, and now and then.
    All,
    /// Those that something hints may be lost, that are out of sight, or whose launch is unconfirmed for longer than
    /// the launch timeout.
    Doubtful,
}

impl Scope {
    /// An executor is young for 5 s after it was placed, as long as it was not reported running and is not in doubt:
    /// the call that launches it may still be on its way.
    pub const YOUNG_FOR: Duration = Duration::from_secs(5);
}

impl Kernel {
    /// The executors that the cluster should be asked about. O(executors).
    ///
    /// A question must not overtake the call that launches its executor, or the cluster answers that there is none.
    /// [`Scope::All`] therefore leaves out [young](Scope::YOUNG_FOR) executors; call it again that much later, or
    /// [`Scope::Doubtful`] will find them when the launch timeout is over. Executors that [`Kernel::agent_lost`] and
    /// [`Kernel::executor_lost`] have put in doubt are returned at once, however young they are. So leave out executors
    /// whose launch has not left by yourself if your calls may take longer than that to leave, or if you report
    /// losses. (The engine does, to the call.)
    #[must_use]
    pub fn reconcile(&self, scope: Scope, now: Timestamp) -> Vec<Target> {
        self.0.reconcile(scope, Scope::YOUNG_FOR, now)
    }

    /// The same of all, young ones too: for who knows which launches have left.
    pub(crate) fn reconcile_all(&self, now: Timestamp) -> Vec<Target> {
        self.0.reconcile(Scope::All, Duration::ZERO, now)
    }
}

impl Core {
    /// Every live executor, with its cell and present state.
    pub(crate) fn live(&self) -> impl Iterator<Item = (ExecutorId, &Executor, State)> {
        self.executors.iter().filter_map(|(slot, executor)| {
            let state = executor.state();
            let id = ExecutorId { sequence: state.sequence, slot };
            state.stage.live().then_some((id, executor, state))
        })
    }

    /// An executor and its agent, unless it has ended.
    pub(crate) fn target(&self, id: ExecutorId, executor: &Executor) -> Option<Target> {
        let name = self.agents.name(executor.agent())?;
        // After the look at the name: an executor that is still there held its agent all the while. Acquire pairs with
        // the fence in `Executor::before_reserving`, as for a snapshot.
        fence(Ordering::Acquire);
        let state = executor.state();
        let held = state.sequence == id.sequence && state.stage != Stage::Vacant;
        held.then(|| Target { id, agent_id: (*name.id).into() })
    }

    pub(crate) fn agent_lost(&self, agent_id: &str, now: Timestamp) -> Vec<Target> {
        let until = now.plus(SUSPECT_FOR);
        let Some(key) = self.agents.suspect(agent_id, until) else { return Vec::new() };
        // From now on no place is taken there: this is how many executors there are, or are being placed.
        let held = self.agents.executors(key);
        if held == 0 {
            return Vec::new();
        }
        let here = self.doubt_on_agent(key.index());
        if here.len() as u32 >= held {
            return here;
        }
        // Some are being placed, or have just ended. After this, whatever is admitted there was admitted before, and so
        // is in its cell.
        self.policy.invalidate_plans(&self.admission);
        self.doubt_on_agent(key.index())
    }

    /// Puts the executors on an agent in doubt. Returns them, but for those that a batch is just placing.
    fn doubt_on_agent(&self, agent: u32) -> Vec<Target> {
        let here = self.executors.iter().filter_map(|(slot, executor)| {
            let State { sequence, stage, .. } = executor.state();
            let there = stage != Stage::Vacant && executor.allocation().agent == agent;
            there.then_some((ExecutorId { sequence, slot }, executor))
        });
        here.filter_map(|(id, executor)| self.doubt(id, executor)).collect()
    }

    pub(crate) fn executor_lost(&self, executor: &str) -> Option<Target> {
        let id = self.find_executor(executor)?;
        self.doubt(id, self.executors.get(id.slot)?)
    }

    /// Puts an executor in doubt, and returns it unless the batch that launches it is not answered yet.
    fn doubt(&self, id: ExecutorId, executor: &Executor) -> Option<Target> {
        let doubted = executor.change(id.sequence, |state| {
            (state.stage != Stage::Vacant).then_some(State { doubtful: true, ..state })
        });
        let (before, _) = doubted.ok()?;
        if before.stage == Stage::Reserved { None } else { self.target(id, executor) }
    }

    pub(crate) fn kill(&self, ids: impl IntoIterator<Item = ExecutorId>) -> Vec<Target> {
        let ask = |id: ExecutorId| {
            let executor = self.executors.get(id.slot)?;
            let asked = executor.change(id.sequence, |state| {
                let live = state.stage.live() || state.stage == Stage::Reserved;
                live.then_some(State { asked_to_end: true, ..state })
            });
            asked.ok().and_then(|_| self.target(id, executor))
        };
        ids.into_iter().filter_map(ask).collect()
    }

    fn reconcile(&self, scope: Scope, young_for: Duration, now: Timestamp) -> Vec<Target> {
        let timeout = self.policy.load().config.launch_timeout;
        let questioned = |executor: &Executor, state: State| match (scope, state.stage) {
            (Scope::All, Stage::Launching) => {
                state.doubtful || now.since(executor.launched()) >= young_for
            }
            (Scope::All, _) | (Scope::Doubtful, Stage::Unreachable | Stage::GivenUp) => true,
            (Scope::Doubtful, Stage::Launching) if now.since(executor.launched()) >= timeout => {
                true
            }
            (Scope::Doubtful, _) => state.doubtful,
        };
        self.live()
            .filter(|(_, executor, state)| questioned(executor, *state))
            .filter_map(|(id, executor, _)| self.target(id, executor))
            .collect()
    }
}
