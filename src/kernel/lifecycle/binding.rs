//! Late binding: the cluster's own scheduler chooses the agents of executors, and the kernel learns them afterwards.
//!
//! 1. An [offer without an agent](Offer::late) is a permit for one executor. It is planned and committed like any other
//!    offer, but counts on no agent, and no rule about agents applies to it. The executor is unbound.
//! 2. The first update that names an agent binds the executor: the caller passes the agent to [`Kernel::bind`], which
//!    applies the rules that the placement could not. If the agent is excluded, full, or doesn't meet the constraint,
//!    the executor is unwelcome there: it stays unbound, and the caller kills it. Otherwise it is counted on the agent
//!    first, and then bound to it.
//! 3. From then on the executor counts on its agent as every other does: for failures, exclusion, loss, reports.
//!
//! The executor may end, be given up, killed or drained at any time, and several threads may try to bind it, to one
//! agent or to several. What comes first, a binding, a refusal, or the end, is decided by one compare-exchange (see
//! [`agent_binding`](crate::kernel::state::agent_binding)); a thread that comes too late gives back what it has
//! counted.
//!
//! If the agent is reported lost at the same time, the report finds the executor there, or the thread that binds it
//! finds the report. In both cases the executor is in doubt, and one of the two returns it.

use std::sync::Arc;

use crate::constraint::Unmet;
use crate::ids::ExecutorId;
use crate::kernel::reason::Reason;
use crate::kernel::state::agent_binding::BindingState;
use crate::kernel::state::agents::{AgentKey, AgentRefusal};
use crate::kernel::state::executor_state::CellState;
use crate::kernel::state::executors::ExecutorCell;
use crate::kernel::{Core, Kernel};
use crate::offer::{BoundAgent, Offer};
use crate::time::Timestamp;

/// What [`Kernel::bind`] did.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bound {
    /// The executor is on the agent from now on.
    Settled {
        /// The executor.
        executor: ExecutorId,
        /// Whether the agent was reported lost in the last 10 s: then the executor is in doubt and should be
        /// reconciled. An update that is applied afterwards and shows it alive ends the doubt; if that is the one that
        /// named the agent, report the [loss of the executor](Kernel::executor_lost) after it.
        in_doubt: bool,
    },
    /// It was on this agent already. Nothing changed.
    Already,
    /// It is on another agent. Nothing changed. An executor never moves, so what this agent reports of it is wrong and
    /// must not be applied.
    Elsewhere {
        /// The agent that it is on.
        agent_id: Arc<str>,
    },
    /// The agent doesn't take it, and it must be killed. It counts on no agent, its end is no agent's failure, and it
    /// is not bound any more, whatever becomes of the agent.
    Unwelcome {
        /// The executor.
        executor: ExecutorId,
        /// Why the agent doesn't take it; `None` if an earlier call found it unwelcome.
        why: Option<Reason>,
    },
    /// Nothing: no such executor is alive, or the agent's id is empty.
    Nothing,
}

impl Kernel {
    /// Binds an executor that was placed on an [offer without an agent](Offer::late) to the agent on which the cluster
    /// has started it. Call it with each update that names an agent, before the update is applied.
    ///
    /// The executor is [unwelcome](Bound::Unwelcome) on an agent that is excluded, has
    /// [`EXECUTORS_PER_AGENT_MAX`](crate::limits::EXECUTORS_PER_AGENT_MAX) executors, or doesn't meet the constraint,
    /// if the agent's attributes are known. An agent that was [reported lost](Kernel::agent_lost) takes the executor,
    /// because it is there already, but the executor is in doubt.
    ///
    /// An executor that was placed on an agent's offer is bound from the beginning.
    ///
    /// ```
    /// # use offermill::{Bound, BoundAgent, Config, Decisions, IdScheme, Kernel, Offer, Resource};
    /// # use offermill::{Attribute, Constraint, StatusUpdate, TaskState, Timestamp};
    /// let constraint = Constraint::parse("disk:ssd")?;
    /// let config = Config::builder().constraint(constraint).executor_limit(Some(2)).build()?;
    /// let kernel = Kernel::new(config, IdScheme::plain());
    /// let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    /// let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 4096.0)];
    /// // Two permits: the cluster creates an executor for each of them, and chooses its agent.
    /// let permits = ["P1", "P2"].map(|id| Offer::late(id, &resources));
    /// let now = Timestamp::ORIGIN;
    /// handler.resource_offers(&permits, now, &mut decisions);
    /// assert_eq!(decisions.executors(), 2);
    /// assert_eq!(&*kernel.snapshot(now).executors[0].agent_id, "");
    ///
    /// // The first reports from agents.
    /// let ssd = [Attribute::text("disk", "ssd")];
    /// let agent = BoundAgent::new("node-1", "host-1").with_attributes(&ssd);
    /// assert!(matches!(kernel.bind("0", &agent, now), Bound::Settled { in_doubt: false, .. }));
    /// assert_eq!(kernel.bind("0", &agent, now), Bound::Already);
    /// let agent = BoundAgent::new("node-2", "host-2").with_attributes(&[]);
    /// let Bound::Unwelcome { executor, why } = kernel.bind("1", &agent, now) else { panic!() };
    /// println!("kill {}: {}", kernel.executor_name(executor), why.unwrap());
    ///
    /// let snapshot = kernel.snapshot(now);
    /// assert_eq!((&*snapshot.agents[0].agent_id, snapshot.agents[0].executors), ("node-1", 1));
    /// # Ok::<(), offermill::Error>(())
    /// ```
    ///
    /// # Consistency
    /// If an executor ends while it is being bound, it counts on no agent afterwards. If two calls name different
    /// agents at once, one of them settles. An exclusion during the call comes before the call, or after it; then the
    /// executor stays, as others that were there. Once a call that reports the agent as lost has returned, and this
    /// one, the executor is in doubt, and one of the two has returned it.
    ///
    /// # Blocking
    /// It looks up the agent in a sharded map, and adds an agent that is unknown. It takes the lock of the agent's name
    /// if the agent is new, if its host name is learnt, or if the executor is bound already.
    pub fn bind(&self, executor: &str, agent: &BoundAgent<'_>, now: Timestamp) -> Bound {
        self.0.bind(executor, agent, now)
    }

    /// The agents that are excluded at `now`, and until when. Each is as it was at some moment of the call. O(agents).
    pub(crate) fn excluded_agents(&self, now: Timestamp) -> Vec<(Arc<str>, Timestamp)> {
        self.0.agents.excluded(now).collect()
    }

    /// Whether an executor is alive and not bound yet, so that an update that names an agent is to
    /// [bind](Kernel::bind) it.
    pub(crate) fn is_unbound(&self, executor: &str) -> bool {
        self.0.is_unbound(executor)
    }
}

impl Core {
    fn is_unbound(&self, executor: &str) -> bool {
        let is_unbound = |id: ExecutorId| {
            let cell = self.executors.get(id.slot)?;
            let state = cell.state();
            let is_there = state.sequence == id.sequence && state.stage.live();
            let binding = cell.binding.state(id.sequence);
            Some(is_there && binding == BindingState::Unbound)
        };
        self.find_executor(executor).and_then(is_unbound).unwrap_or(false)
    }

    fn bind(&self, executor: &str, agent: &BoundAgent<'_>, now: Timestamp) -> Bound {
        let Some(id) = self.find_executor(executor) else { return Bound::Nothing };
        let Some(cell) = self.executors.get(id.slot) else { return Bound::Nothing };
        let state = cell.state();
        if state.sequence != id.sequence || !state.stage.live() || agent.agent_id.is_empty() {
            return Bound::Nothing;
        }
        // At most two turns: nothing leads back to unbound.
        loop {
            if let Some(decided) = self.bound_before(id, cell, agent.agent_id) {
                return decided;
            }
            match self.count_bound(agent, now) {
                Ok(key) => {
                    // As long as the agent counts this executor, its cell isn't reused. Once the executor is bound, its
                    // end may uncount it.
                    self.record_bound(key, agent, now);
                    if cell.binding.bind(id.sequence, key.index()).is_ok() {
                        return self.settled(id, cell, key, now);
                    }
                    self.agents.release(key.index(), 1);
                }
                Err(why) if cell.binding.refuse(id.sequence).is_ok() => {
                    return Bound::Unwelcome { executor: id, why: Some(why) };
                }
                Err(_) => {}
            }
        }
    }

    /// What an earlier call or the executor's end has decided, if anything.
    fn bound_before(&self, id: ExecutorId, cell: &ExecutorCell, agent_id: &str) -> Option<Bound> {
        match cell.binding.state(id.sequence) {
            BindingState::Unbound => None,
            BindingState::Unwelcome => Some(Bound::Unwelcome { executor: id, why: None }),
            BindingState::Ended => Some(Bound::Nothing),
            BindingState::Bound(_) => Some(match self.target(id, cell) {
                None => Bound::Nothing,
                Some(target) if *target.agent_id == *agent_id => Bound::Already,
                Some(target) => Bound::Elsewhere { agent_id: target.agent_id },
            }),
        }
    }

    /// Counts an executor on the agent, or returns why the agent doesn't take it.
    fn count_bound(&self, agent: &BoundAgent<'_>, now: Timestamp) -> Result<AgentKey, Reason> {
        self.check_constraint(agent).map_err(Reason::ConstraintUnmet)?;
        loop {
            let key = self.agents.find_or_insert(agent.agent_id, agent.hostname, now);
            let key = key.ok_or(Reason::AgentFull)?;
            match self.agents.reserve_bound(key, now) {
                Ok(()) => return Ok(key),
                // As for an adopted executor.
                Err(AgentRefusal::Retired) => {}
                Err(_) if !self.agents.is_current(key) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
    }

    fn check_constraint(&self, agent: &BoundAgent<'_>) -> Result<(), Unmet> {
        let BoundAgent { agent_id, hostname, attributes, region, zone } = *agent;
        let Some(attributes) = attributes else { return Ok(()) };
        let mut facts = Offer::new("", agent_id, hostname, &[], attributes);
        (facts.region, facts.zone) = (region, zone);
        self.policy.load().config.constraint.check(&facts)
    }

    /// Records that the agent, which counts the executor that is being bound, has started one.
    fn record_bound(&self, key: AgentKey, agent: &BoundAgent<'_>, now: Timestamp) {
        self.agents.record_seen(key, now);
        self.agents.clear_failure_mark(key.index());
        let policy = self.policy.load();
        policy.locality.record(agent.hostname, key, &self.agents);
        if policy.sizes_differ() {
            self.agents.set_unrecorded(key.index());
        }
    }

    /// The executor was bound. It may have ended since, and the agent's cell may be another agent's by now: then
    /// whatever is read of the cell changes nothing, because the executor's state has left its sequence or is `Vacant`.
    fn settled(&self, id: ExecutorId, cell: &ExecutorCell, key: AgentKey, now: Timestamp) -> Bound {
        let in_doubt = self.agents.is_suspect(key, now) && {
            let doubtful = |state: CellState| {
                state.stage.live().then_some(CellState { doubtful: true, ..state })
            };
            cell.change(id.sequence, doubtful).is_ok()
        };
        Bound::Settled { executor: id, in_doubt }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{Config, Decisions, IdScheme, Resource, StatusUpdate, TaskState};

    /// Goal: only live executors that wait for an agent are unbound. Method: one that is bound, one that is refused,
    /// one that has ended, one in the same cell, and one that was placed on an agent.
    #[test]
    fn those_that_wait_for_an_agent_are_unbound() {
        let ids = IdScheme::unique("job", 36).unwrap();
        let kernel = Kernel::new(Config::builder().build().unwrap(), ids);
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 2000.0)];
        let now = Timestamp::ORIGIN;
        let mut place = |offer| {
            handler.resource_offers(&[offer], now, &mut decisions);
            let placed = decisions.accepts().next().unwrap().executors[0].id;
            kernel.executor_name(placed).to_string()
        };
        let late = || Offer::late("permit", &resources);
        let names = [place(late()), place(late()), place(late())];
        let placed = place(Offer::new("o", "S1", "host", &resources, &[]));
        assert_eq!(names.each_ref().map(|name| kernel.is_unbound(name)), [true; 3]);
        kernel.bind(&names[0], &BoundAgent::new("S1", "host"), now);
        kernel.0.agents.suspect("S2", now.plus(std::time::Duration::from_secs(9)), now);
        kernel.status_update(&StatusUpdate::new(&names[1], TaskState::Finished), now);
        assert_eq!(names.each_ref().map(|name| kernel.is_unbound(name)), [false, false, true]);
        let next = place(late());
        assert_eq!((kernel.is_unbound(&next), kernel.is_unbound(&names[1])), (true, false));
        assert!(!kernel.is_unbound(&placed) && !kernel.is_unbound("job-36-99.99"));
    }
}
