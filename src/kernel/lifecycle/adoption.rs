//! Adoption: counts executors of a former run that a framework finds when it subscribes again under its old framework
//! id.
//!
//! This kernel didn't make their names, so a table maps them to cells. It is made once and never changes. If an
//! executor has ended, its name leads to a cell that has another sequence number.
//!
//! | thread | operation | ordering | pairs with |
//! |---|---|---|---|
//! | [`Kernel::adopt`](crate::kernel::Kernel::adopt) | `claimed`: swap | Relaxed | nothing: one thread finds it unclaimed and continues |
//! | the thread that claimed it | numbers the executors, sets the table of names, then fills their cells | std's `OnceLock` | a thread that finds an executor in its cell finds its name |
//! | the thread that claimed it | sets `left_out`, after the others are in their cells | std's `OnceLock` | a lookup of a name |
//!
//! Each executor is admitted by itself, with the same compare-exchange that admits placed executors, so that the caps
//! hold.

use std::collections::HashMap;
use std::fmt;

use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::Core;
use crate::kernel::state::agents::{AgentKey, Refusal};
use crate::kernel::state::executors::{Allocation, Executor, State};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::sync::{AtomicU32, OnceLock, Ordering};
use crate::time::Timestamp;

/// An executor that a former run left on the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Recovered<'a> {
    /// Its id at the cluster.
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

/// Names that this kernel didn't make.
#[derive(Debug)]
pub(crate) struct Adopted {
    /// Whether an adoption was made or is in progress.
    claimed: AtomicU32,
    roster: OnceLock<FormerNames>,
    /// The sequence numbers of executors in the table that were not adopted, sorted.
    left_out: OnceLock<Vec<u64>>,
}

#[derive(Debug, Default)]
struct FormerNames {
    by_name: HashMap<Box<str>, ExecutorId>,
    /// Sorted by sequence number.
    names: Vec<(u64, Box<str>)>,
}

impl Adopted {
    pub(crate) fn new() -> Adopted {
        Adopted { claimed: AtomicU32::new(0), roster: OnceLock::new(), left_out: OnceLock::new() }
    }

    /// Returns whether the caller is the first.
    fn claim(&self) -> bool {
        self.claimed.swap(1, Ordering::Relaxed) == 0
    }

    pub(crate) fn find(&self, name: &str) -> Option<ExecutorId> {
        let id = self.roster.get()?.by_name.get(name).copied()?;
        let left_out = |left_out: &Vec<u64>| left_out.binary_search(&id.sequence).is_ok();
        if self.left_out.get().is_some_and(left_out) { None } else { Some(id) }
    }

    pub(crate) fn name(&self, id: ExecutorId) -> Option<&str> {
        let names = &self.roster.get()?.names;
        let at = names.binary_search_by_key(&id.sequence, |(sequence, _)| *sequence).ok()?;
        names.get(at).map(|(_, name)| &**name)
    }
}

/// Displays an id of this or a former run.
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
    pub(crate) fn name_of(&self, id: ExecutorId) -> impl fmt::Display + '_ {
        Name { former: self.adopted.name(id), own: self.ids.display(id) }
    }

    /// Returns the id of each executor, or none if it was not adopted.
    pub(crate) fn adopt(
        &self,
        former: &[Recovered<'_>],
        now: Timestamp,
    ) -> Result<Vec<Option<ExecutorId>>, Error> {
        if !self.adopted.claim() {
            return Err(Error::setting("adoption", "a second one", "made once"));
        }
        let mut roster = FormerNames::default();
        let numbered: Vec<Option<ExecutorId>> = former
            .iter()
            .map(|one| {
                let is_foreign = self.ids.parse(one.executor).is_none();
                let is_new = !roster.by_name.contains_key(one.executor);
                let id = if is_foreign && is_new { self.next_id() } else { None }?;
                roster.by_name.insert(one.executor.into(), id);
                roster.names.push((id.sequence, one.executor.into()));
                Some(id)
            })
            .collect();
        roster.names.sort_unstable();
        // The names are set before any executor is in its cell, so that a thread that finds it there, such as a close,
        // finds its name.
        self.adopted.roster.get_or_init(|| roster);
        let adopted = former.iter().zip(&numbered).map(|(one, id)| {
            let admitted = self.take_in((*id)?, one, now);
            admitted.then_some(*id).flatten()
        });
        let adopted: Vec<Option<ExecutorId>> = adopted.collect();
        let left_out = numbered.iter().zip(&adopted).filter(|(_, adopted)| adopted.is_none());
        let left_out = left_out.filter_map(|(id, _)| id.map(|id| id.sequence)).collect();
        self.adopted.left_out.get_or_init(|| left_out);
        Ok(adopted)
    }

    /// Claims a cell and a sequence number for one executor.
    fn next_id(&self) -> Option<ExecutorId> {
        let mut cells = Vec::with_capacity(1);
        if !self.executors.claim(1, &mut cells) {
            return None;
        }
        // Relaxed: the number is unique; the state of the cell publishes it.
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        Some(ExecutorId { sequence, slot: *cells.first()? })
    }

    /// Counts one executor on its agent, if the agent takes one.
    fn reserve_agent(&self, former: &Recovered<'_>, now: Timestamp) -> Option<AgentKey> {
        loop {
            let agent = self.agents.find_or_insert(former.agent_id, former.hostname, now)?;
            match self.agents.reserve(agent, 1, now) {
                Ok(_) => return Some(agent),
                // The agent was forgotten in between; insert it again.
                Err(Refusal::Retired) => {}
                Err(_) => return None,
            }
        }
    }

    /// Puts one executor into its cell and admits it. If there is no room, frees the cell and changes nothing.
    fn take_in(&self, id: ExecutorId, former: &Recovered<'_>, now: Timestamp) -> bool {
        let ExecutorId { sequence, slot } = id;
        let Some(executor) = self.executors.get(slot) else { return false };
        let Some(agent) = self.reserve_agent(former, now) else {
            self.executors.free(slot);
            return false;
        };
        self.policy.load().locality.record(former.hostname, agent, &self.agents);
        let Recovered { cores, memory, gpus, port, .. } = *former;
        let allocation = Allocation { agent: agent.index(), cores, memory, gpus, port };
        Executor::before_reserving();
        executor.reserve(sequence, &allocation, now);
        // Its state is unknown: it must be reconciled.
        let _ = executor.change(sequence, |state| Some(State { doubtful: true, ..state }));
        if !self.readmit_allocation(&allocation) {
            executor.withdraw(sequence);
            self.executors.free(slot);
            self.agents.release(agent.index(), 1);
            return false;
        }
        self.agents.clear_failure_mark(agent.index());
        executor.publish(sequence);
        true
    }
}
