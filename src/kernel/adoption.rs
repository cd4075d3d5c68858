//! Executors of a former run, taken into the books again: those that a framework finds when it comes back under its
//! old framework id.
//!
//! Their names are not of this kernel's making, so a roster maps them to cells. It is made once and never changes: a
//! name whose executor has ended leads to a cell that has another sequence number by then.
//!
//! | who | does | ordering | pairs with |
//! |---|---|---|---|
//! | [`Kernel::adopt`](super::Kernel::adopt) | `claimed`: swap | Relaxed | nothing: one finds it unclaimed, and goes on |
//! | who claimed it | fills cells, sets the roster, then publishes them | std's `OnceLock` | whoever looks a name up |
//!
//! Each executor is admitted alone, by the same compare-exchange that admits what is placed: the caps hold.

use std::collections::HashMap;
use std::fmt;

use super::Core;
use super::agents::{AgentKey, Barred};
use super::executors::{Executor, Hold, Stage, State};
use crate::error::Error;
use crate::ids::ExecutorId;
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::sync::{AtomicU32, OnceLock, Ordering};
use crate::time::Timestamp;

/// An executor that a former run has left on the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Former<'a> {
    /// Its id as the cluster knows it.
    pub executor: &'a str,
    /// The agent that it is on.
    pub agent_id: &'a str,
    /// The agent's host name.
    pub hostname: &'a str,
    /// The cores that it takes.
    pub cores: MilliCpus,
    /// The memory that it takes, overhead included.
    pub memory: Mebibytes,
    /// The GPUs that it takes.
    pub gpus: Gpus,
    /// The fixed port that it takes.
    pub port: Option<u16>,
}

/// Names that are not of this kernel's making.
#[derive(Debug)]
pub(super) struct Adopted {
    /// Whether an adoption was made or is under way.
    claimed: AtomicU32,
    roster: OnceLock<Roster>,
}

#[derive(Debug, Default)]
struct Roster {
    by_name: HashMap<Box<str>, ExecutorId>,
    /// In the order of sequence numbers.
    names: Vec<(u64, Box<str>)>,
}

impl Adopted {
    pub(super) fn new() -> Adopted {
        Adopted { claimed: AtomicU32::new(0), roster: OnceLock::new() }
    }

    /// Whether the caller is the first.
    fn claim(&self) -> bool {
        self.claimed.swap(1, Ordering::Relaxed) == 0
    }

    pub(super) fn find(&self, name: &str) -> Option<ExecutorId> {
        self.roster.get()?.by_name.get(name).copied()
    }

    pub(super) fn name(&self, id: ExecutorId) -> Option<&str> {
        let names = &self.roster.get()?.names;
        let at = names.binary_search_by_key(&id.sequence, |(sequence, _)| *sequence).ok()?;
        names.get(at).map(|(_, name)| &**name)
    }
}

/// The text of an id, of whichever run.
struct Name<'a, D> {
    former: Option<&'a str>,
    own: D,
}

impl<D: fmt::Display> fmt::Display for Name<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.former {
            Some(name) => f.write_str(name),
            None => self.own.fmt(f),
        }
    }
}

impl Core {
    pub(super) fn name_of(&self, id: ExecutorId) -> impl fmt::Display + '_ {
        Name { former: self.adopted.name(id), own: self.ids.display(id) }
    }

    /// Returns for each whether it was adopted, and as whom.
    pub(super) fn adopt(
        &self,
        former: &[Former<'_>],
        now: Timestamp,
    ) -> Result<Vec<Option<ExecutorId>>, Error> {
        if !self.adopted.claim() {
            return Err(Error::setting("adoption", "a second one", "made once"));
        }
        let mut roster = Roster::default();
        let adopted: Vec<Option<ExecutorId>> = former
            .iter()
            .map(|one| {
                if self.ids.parse(one.executor).is_some()
                    || roster.by_name.contains_key(one.executor)
                {
                    return None;
                }
                let id = self.take_in(one, now)?;
                roster.by_name.insert(one.executor.into(), id);
                roster.names.push((id.sequence, one.executor.into()));
                Some(id)
            })
            .collect();
        roster.names.sort_unstable();
        // Before the cells are published: reports and updates name all that they find. Only a close sees cells that are
        // still reserved, and names these executors wrongly (see `Kernel::adopt`).
        self.adopted.roster.get_or_init(|| roster);
        for id in adopted.iter().flatten() {
            if let Some(executor) = self.executors.get(id.slot) {
                executor.publish(id.sequence);
                // Nobody knows how it fared: it is to be asked about.
                let _ended = executor.change(id.sequence, |state| {
                    let launching = state.stage == Stage::Launching;
                    launching.then_some(State { doubtful: true, ..state })
                });
            }
        }
        Ok(adopted)
    }

    /// Counts one executor on its agent, if that takes one.
    fn reserve_agent(&self, former: &Former<'_>, now: Timestamp) -> Option<AgentKey> {
        loop {
            let agent = self.agents.meet(former.agent_id, former.hostname, now)?;
            match self.agents.reserve(agent, 1, now) {
                Ok(()) => return Some(agent),
                // Forgotten in between: it is met anew.
                Err(Barred::Retired) => {}
                Err(_) => return None,
            }
        }
    }

    /// Reserves everything for one executor, or nothing.
    fn take_in(&self, former: &Former<'_>, now: Timestamp) -> Option<ExecutorId> {
        let agent = self.reserve_agent(former, now)?;
        self.policy.load().locality.note(former.hostname, agent, &self.agents);
        let give_back = || self.agents.release(agent.index(), 1);
        let mut cells = Vec::with_capacity(1);
        if !self.executors.claim(1, &mut cells) {
            give_back();
            return None;
        }
        let slot = *cells.first()?;
        let Former { cores, memory, gpus, port, .. } = *former;
        let hold = Hold { agent: agent.index(), cores, memory, gpus, port };
        // Relaxed: a number that nobody else gets; the cell's state publishes it.
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let executor = self.executors.get(slot)?;
        Executor::before_reserving();
        executor.reserve(sequence, &hold, now);
        if !self.count_again(&hold) {
            executor.withdraw(sequence);
            self.executors.free(slot);
            give_back();
            return None;
        }
        Some(ExecutorId { sequence, slot })
    }
}
