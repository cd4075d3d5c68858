//! Adoption: counts executors of a former run that a framework finds when it subscribes again under its old framework
//! id.
//!
//! This kernel didn't make their names, so a table maps them to cells. It is made once and never changes. If an
//! executor has ended, its name leads to a cell that has another sequence number.
//!
//! Each executor is admitted by itself, with the same compare-exchange that admits placed executors, so that the caps
//! hold.

use std::fmt;

use crate::config::QueueId;
use crate::error::Error;
use crate::ids::ExecutorId;
use crate::kernel::state::adopted::AdoptedNames;
use crate::kernel::state::agent_binding::NO_AGENT;
use crate::kernel::state::agents::{AgentKey, AgentRefusal};
use crate::kernel::state::executor_state::CellState;
use crate::kernel::state::executors::{Allocation, ExecutorCell};
use crate::kernel::state::tags::ExecutorMark;
use crate::kernel::{Core, Kernel};
use crate::limits::{EXECUTOR_CORES_MAX, EXECUTOR_ID_BYTES_MAX, EXECUTOR_MEMORY_MAX};
use crate::offer::Binding;
use crate::resources::ExecutorResources;
use crate::sync::Ordering;
use crate::time::Timestamp;

/// An executor that a former run left on the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered<'a> {
    /// Its id at the cluster.
    pub executor: &'a str,
    /// The agent that it is on; empty if that isn't known yet.
    pub agent_id: &'a str,
    /// The agent's host name.
    pub hostname: &'a str,
    /// The resources that it takes.
    pub resources: ExecutorResources,
    /// When it is bound to an agent. [`Binding::Late`] has an effect only if there is no `agent_id`.
    pub binding: Binding,
    /// Its [tag](crate::Task::tag), if it is a task.
    pub tag: Option<u64>,
    /// The [queue](crate::ConfigBuilder::queue) that it is in, if there are queues. `None` is
    /// [that of executors](crate::ConfigBuilder::executor_queue).
    pub queue: Option<QueueId>,
}

impl<'a> Recovered<'a> {
    /// Creates the record of an executor of a former run.
    #[must_use]
    pub const fn new(
        executor: &'a str,
        agent_id: &'a str,
        hostname: &'a str,
        resources: ExecutorResources,
    ) -> Recovered<'a> {
        let binding = Binding::Immediate;
        let (tag, queue) = (None, None);
        Recovered { executor, agent_id, hostname, resources, binding, tag, queue }
    }

    /// Creates the record of an executor that was not bound to an agent yet, as far as is known.
    #[must_use]
    pub const fn late(executor: &'a str, resources: ExecutorResources) -> Recovered<'a> {
        Recovered { binding: Binding::Late, ..Recovered::new(executor, "", "", resources) }
    }

    /// The same executor as a [task](crate::Task) with this tag.
    #[must_use]
    pub const fn with_tag(mut self, tag: u64) -> Recovered<'a> {
        self.tag = Some(tag);
        self
    }

    /// The same executor in this queue.
    #[must_use]
    pub const fn in_queue(mut self, queue: QueueId) -> Recovered<'a> {
        self.queue = Some(queue);
        self
    }

    /// Whether its agent isn't known yet.
    fn is_late(&self) -> bool {
        self.binding == Binding::Late && self.agent_id.is_empty()
    }

    /// Whether a cluster can run such an executor. GPUs are checked against the cap.
    fn is_possible(&self) -> bool {
        (1..=EXECUTOR_ID_BYTES_MAX).contains(&self.executor.len())
            && (!self.agent_id.is_empty() || self.is_late())
            && self.resources.cores <= EXECUTOR_CORES_MAX
            && self.resources.memory <= EXECUTOR_MEMORY_MAX
    }
}

/// Displays an id of this or a former run.
struct ExecutorName<'a, D> {
    adopted: Option<&'a str>,
    own: D,
}

impl<D: fmt::Display> fmt::Display for ExecutorName<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.adopted {
            Some(name) => f.write_str(name),
            None => self.own.fmt(f),
        }
    }
}

impl Kernel {
    /// Adopts executors that a former run left on the cluster. They are counted as launching and in doubt: reconcile
    /// [`Scope::All`](crate::Scope::All) afterwards. Returns their ids in this kernel, in order.
    ///
    /// An executor is left out (`None`) if:
    ///
    /// * the caps or its queue leave no room for it at that moment, also because of what a batch of another thread has
    ///   booked and gives back, or its agent is excluded, suspect or full,
    /// * another executor has the same name,
    /// * this kernel could have made its name itself; with [plain ids](crate::IdScheme::plain): its name is a number,
    /// * its name is empty or longer than [`limits::EXECUTOR_ID_BYTES_MAX`](crate::limits::EXECUTOR_ID_BYTES_MAX), its
    ///   agent's id is empty though it isn't [bound late](Binding::Late), its cores exceed
    ///   [`limits::EXECUTOR_CORES_MAX`](crate::limits::EXECUTOR_CORES_MAX), or its memory
    ///   [`limits::EXECUTOR_MEMORY_MAX`](crate::limits::EXECUTOR_MEMORY_MAX).
    ///
    /// When an update of such an executor arrives, its outcome asks for a kill.
    ///
    /// Call it once, before [`Kernel::registered`] and before the first update of such an executor is applied.
    ///
    /// # Errors
    /// Fails if executors were adopted before or are being adopted by another thread
    /// ([`ErrorKind::Repeated`](crate::ErrorKind::Repeated)). Then nothing changes.
    ///
    /// # Consistency
    /// Each executor is admitted by itself: the caps hold at every instant, also while other threads place executors.
    ///
    /// # Blocking
    /// Blocks as [`Kernel::set_executor_limit`] does, for each executor.
    ///
    /// ```
    /// # use offermill::resources::{ExecutorResources, Mebibytes, MilliCpus};
    /// # use offermill::{Config, IdScheme, Kernel, Phase, Recovered, Scope, StatusUpdate, TaskState, Timestamp};
    /// let config = Config::builder().core_cap(Some(MilliCpus::from_cores(4))).build()?;
    /// let kernel = Kernel::new(config, IdScheme::unique("etl", 2)?);
    /// let resources = ExecutorResources {
    ///     cores: MilliCpus::from_cores(3),
    ///     memory: Mebibytes::new(1408),
    ///     ..ExecutorResources::NONE
    /// };
    /// // What the former run, whose number was 1, had written down:
    /// let former = ["etl-1-0.0", "etl-1-1.1"]
    ///     .map(|executor| Recovered::new(executor, "S1", "host-1", resources));
    /// let now = Timestamp::ORIGIN;
    /// let adopted = kernel.adopt(&former, now)?;
    /// assert!(adopted[0].is_some());
    /// assert!(adopted[1].is_none(), "the core cap has no room for it");
    ///
    /// // The framework asks the cluster about the first, and applies the answers.
    /// assert_eq!(kernel.reconcile(Scope::All, now).len(), 1);
    /// kernel.status_update(&StatusUpdate::new("etl-1-0.0", TaskState::Running), now);
    /// assert_eq!(kernel.snapshot(now).executors[0].phase, Phase::Running);
    /// let outcome = kernel.status_update(&StatusUpdate::new("etl-1-1.1", TaskState::Running), now);
    /// assert!(outcome.kill, "the other must end");
    /// # Ok::<(), offermill::Error>(())
    /// ```
    pub fn adopt(
        &self,
        former: &[Recovered<'_>],
        now: Timestamp,
    ) -> Result<Vec<Option<ExecutorId>>, Error> {
        self.0.adopt(former, now)
    }
}

impl Core {
    pub(crate) fn name_of(&self, id: ExecutorId) -> impl fmt::Display + '_ {
        ExecutorName { adopted: self.adopted.name(id), own: self.ids.display(id) }
    }

    /// Returns the id of each executor, or none if it was not adopted.
    pub(crate) fn adopt(
        &self,
        recovered: &[Recovered<'_>],
        now: Timestamp,
    ) -> Result<Vec<Option<ExecutorId>>, Error> {
        if !self.adopted.claim() {
            return Err(Error::repeated("executors were adopted before, or are being adopted now"));
        }
        let mut names = AdoptedNames::default();
        let numbered: Vec<Option<ExecutorId>> = recovered
            .iter()
            .map(|one| {
                let is_foreign = self.ids.parse(one.executor).is_none();
                let is_new = is_foreign && one.is_possible() && !names.contains(one.executor);
                let id = if is_new { self.next_id() } else { None }?;
                names.insert(one.executor, id);
                Some(id)
            })
            .collect();
        // The names are set before any executor is in its cell, so that a thread that finds it there, such as a close,
        // finds its name.
        self.adopted.set_names(names);
        let adopted: Vec<Option<ExecutorId>> = recovered
            .iter()
            .zip(&numbered)
            .map(|(one, id)| {
                let is_admitted = self.adopt_one((*id)?, one, now);
                if !is_admitted {
                    self.retire_number((*id)?.sequence);
                }
                id.filter(|_| is_admitted)
            })
            .collect();
        let left_out = numbered.iter().zip(&adopted).filter(|(_, adopted)| adopted.is_none());
        let sequences = left_out.filter_map(|(id, _)| id.map(|id| id.sequence));
        self.adopted.set_left_out(sequences.collect());
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
        let slot = *cells.first()?;
        // It is found by its name.
        if self.numbers.as_ref().is_some_and(|numbers| !numbers.insert_unfound(sequence)) {
            self.executors.free(slot);
            return None;
        }
        Some(ExecutorId { sequence, slot })
    }

    /// Counts one executor on its agent, if the agent takes one. Returns no key for an executor that isn't bound.
    fn reserve_agent(&self, recovered: &Recovered<'_>, now: Timestamp) -> Option<AgentKey> {
        if recovered.is_late() {
            return Some(AgentKey::NONE);
        }
        loop {
            let agent = self.agents.find_or_insert(recovered.agent_id, recovered.hostname, now)?;
            match self.agents.reserve(agent, 1, now) {
                Ok(_) => return Some(agent),
                // The agent was forgotten in between; insert it again.
                Err(AgentRefusal::Retired) => {}
                // The refusal may be that of the cell's next agent: this one was forgotten.
                Err(_) if !self.agents.is_current(agent) => {}
                Err(_) => return None,
            }
        }
    }

    /// The queue that an executor is booked in, if there are queues.
    fn queue_of(&self, recovered: &Recovered<'_>) -> Option<QueueId> {
        let policy = self.policy.load();
        let queues = &policy.config.queues;
        (!queues.is_empty()).then(|| recovered.queue.unwrap_or(queues.executors))
    }

    /// Puts one executor into its cell and admits it. If there is no room, frees the cell and changes nothing.
    fn adopt_one(&self, id: ExecutorId, recovered: &Recovered<'_>, now: Timestamp) -> bool {
        let ExecutorId { sequence, slot } = id;
        let Some((executor, hint)) = self.executors.get_with_hint(slot) else { return false };
        let Some(agent) = self.reserve_agent(recovered, now) else {
            self.executors.free(slot);
            return false;
        };
        let mut allocation = Allocation { agent: NO_AGENT, resources: recovered.resources };
        if agent != AgentKey::NONE {
            self.policy.load().locality.record(recovered.hostname, agent, &self.agents);
            allocation.agent = agent.index();
        }
        ExecutorCell::before_reserving();
        let queue = self.queue_of(recovered);
        if recovered.tag.is_some() || queue.is_some() {
            self.marks().set(id, ExecutorMark { tag: recovered.tag, queue });
        }
        hint.set(allocation.agent);
        executor.reserve(sequence, &allocation, now);
        // Its state is unknown: it must be reconciled.
        let _ = executor.change(sequence, |state| Some(CellState { doubtful: true, ..state }));
        let claims = queue.and_then(|_| self.open_claims());
        if self.readmit_allocation(&allocation, queue, claims.as_ref()).is_err() {
            executor.withdraw(sequence);
            self.executors.free(slot);
            self.agents.release(allocation.agent, 1);
            return false;
        }
        self.agents.clear_failure_mark(allocation.agent);
        executor.publish(sequence);
        true
    }
}
