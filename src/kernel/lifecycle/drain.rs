//! The end.
//!
//! 1. `close` sets the closed bit in the admission word. From then on no commit succeeds: a handler that has loaded
//!    the word before finds it changed, gives back what it reserved and declines its batch as stopping.
//! 2. Whoever closes first calls the roll: every executor in any state but `Vacant`. An executor whose commit came
//!    before the bit is on it even if its handler has not published it yet, because it was `Reserved` before the
//!    commit; one that is `Reserved` and then not admitted was never there, and is struck off at the end. Those that
//!    have ended since the bit are on it, too: their cells are not freed, and so still say how they ended. A cell may
//!    say so for a moment longer that is about to be freed, of an executor that ended just before the bit: so how an
//!    executor ended is kept on the roll, and all reports agree.
//! 3. The caller asks the executors on the roll to end. Status updates stay legal and do what they always do.
//! 4. `wait` parks until the word shows no executor, or until its time is up.
//! 5. Whoever ends the last executor takes the lock, and then wakes the waiters. The waiter looks at the word under
//!    the same lock before it parks. So either it sees zero, or it is parked when the call comes: without the lock
//!    the call could come between look and park, and be lost.
//! 6. The report gives each executor on the roll its fate. A cell that falls vacant after the bit is not freed, so it
//!    still says how its executor ended. The cell of an agent that is forgotten after the bit keeps its name and is not
//!    used again: so each executor on the roll can be named with its own agent.
//!
//! An offer that arrives during 2 to 6 is declined. Closing again, or waiting again or from several threads, changes
//! nothing and reports the same roll.

use std::time::Duration;

use crate::sync::{Condvar, Mutex, OnceLock, Ordering, fence, lock, wait_for};

use super::updates::Target;
use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::reports::agent_names::AgentNames;
use crate::kernel::state::executors::Stage;
use crate::status::Fate;

#[derive(Debug)]
pub(crate) struct Drain {
    listed: OnceLock<Vec<ListedExecutor>>,
    pub(crate) waiters: Mutex<()>,
    pub(crate) emptied: Condvar,
}

/// An executor on the roll.
#[derive(Debug)]
struct ListedExecutor {
    target: Target,
    /// How it ended, if it had when the roll was called. Its cell may not say so any more.
    ended: Option<Fate>,
}

/// How a drain went.
#[derive(Clone, Debug)]
pub struct DrainReport {
    /// Whether every executor whose resources were counted has ended.
    pub drained: bool,
    /// Each executor that lived when the kernel was closed. One whose end was just being applied may be among them.
    pub executors: Vec<Drained>,
}

/// One executor's part in a drain.
#[derive(Clone, Debug)]
pub struct Drained {
    /// Which executor, and where.
    pub executor: Target,
    /// How it ended, or that it has not.
    pub fate: Fate,
}

impl Drain {
    pub(crate) fn new() -> Drain {
        Drain { listed: OnceLock::new(), waiters: Mutex::new(()), emptied: Condvar::new() }
    }

    /// Step 5.
    pub(crate) fn wake(&self) {
        let _waiters = lock(&self.waiters);
        self.emptied.notify_all();
    }
}

impl Core {
    /// Steps 1 and 2. The executors to be asked to end.
    pub(crate) fn close(&self) -> Vec<Target> {
        self.admission.close();
        let listed = self.drain.listed.get_or_init(|| self.list_executors());
        let live = |target: &&Target| {
            self.executors.get(target.id.slot).is_some_and(|executor| {
                let state = executor.state();
                state.sequence == target.id.sequence && state.stage != Stage::Vacant
            })
        };
        let mut targets = Vec::with_capacity(listed.len());
        targets.extend(listed.iter().map(|listed| &listed.target).filter(live).cloned());
        targets
    }

    fn list_executors(&self) -> Vec<ListedExecutor> {
        let mut agent_names = AgentNames::new(&self.agents);
        let present = self.executors.iter().filter_map(|(slot, executor)| {
            let state = executor.state();
            if state.is_freed() {
                return None;
            }
            let id = ExecutorId { sequence: state.sequence, slot };
            let agent = executor.agent();
            // Acquire: pairs with the fence in `Executor::before_reserving`. If the agent is that of the cell's next
            // executor, the cell says now that it was freed, or is the next one's: the former ended before the bit.
            fence(Ordering::Acquire);
            let now = executor.state();
            if now.is_freed() || now.sequence != state.sequence {
                return None;
            }
            // Its agent was forgotten: then it ended before the bit, or is not admitted.
            let agent_id = agent_names.id_now(agent)?;
            let ended = (state.stage == Stage::Vacant).then_some(state.fate);
            Some(ListedExecutor { target: Target { id, agent_id }, ended })
        });
        present.collect()
    }

    /// Steps 4 and 6.
    pub(crate) fn drain(&self, timeout: Duration) -> DrainReport {
        self.close();
        let emptied = || self.admission.load().executors() == 0;
        let drained = wait_for(&self.drain.waiters, &self.drain.emptied, timeout, emptied);
        let listed = self.drain.listed.get().map_or(&[][..], |listed| listed);
        let fates = listed.iter().filter_map(|ListedExecutor { target, ended }| {
            if let Some(fate) = *ended {
                return Some(Drained { executor: target.clone(), fate });
            }
            let Target { id, .. } = target;
            let state = self.executors.get(id.slot)?.state();
            if state.sequence != id.sequence {
                return None;
            }
            let fate = match state.stage {
                Stage::Vacant if state.is_freed() => return None,
                // Nobody is counted and nobody will be: it was not admitted.
                Stage::Reserved if drained => return None,
                Stage::Vacant => state.fate,
                Stage::Unreachable | Stage::GivenUp => Fate::Unreachable,
                Stage::Reserved | Stage::Launching | Stage::Running => Fate::Alive,
            };
            Some(Drained { executor: target.clone(), fate })
        });
        let mut executors = Vec::with_capacity(listed.len());
        executors.extend(fates);
        DrainReport { drained, executors }
    }
}
