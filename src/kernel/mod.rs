//! The scheduler kernel's public API: [`Kernel`], which turns resource offers into placements and declines, and status
//! updates into freed capacity.
//!
//! How an offer becomes a running executor:
//!
//! ```text
//! resource_offers ─► candidates ─► placement ─► commit ──────────────► carve ─► Decisions
//!   handler.rs        which          which get      agents, cells,          exact
//!                     agents can     how many       then one word:          pieces
//!                     take one       (pure)         admission               (pure)
//!
//! bind ────────────► agents, executors: one compare-exchange decides whether an executor is on the agent
//! status_update ───► executors: one compare-exchange decides which thread frees ─► agents, admission, drain
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `reason` | why offers are declined |
//! | `offers` | answers offers: candidates, placement, commit, resource carving, locality; in `tasks`, with picks of the framework |
//! | `lifecycle` | applies status updates, losses, timeouts and limits; late binding; adoption; drain |
//! | `reports` | snapshots, explanations, counters, the consistency check |
//! | `state` | every word that threads share |

mod core;
pub(crate) mod lifecycle;
#[cfg(all(counting, test))]
pub(crate) mod lines;
pub(crate) mod offers;
pub(crate) mod reason;
mod reports;
pub(crate) mod state;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::core::Core;
pub use lifecycle::adoption::Recovered;
pub use lifecycle::binding::Bound;
pub use lifecycle::doubt::Scope;
pub use lifecycle::drain::{DrainFuture, DrainReport, Drained};
pub use lifecycle::expiry::{GivenUp, Ticked};
pub use lifecycle::outcome::{Change, Exclusion, LimitRule, Outcome};
pub(crate) use lifecycle::updater::EXPECTED_MAX;
pub use lifecycle::updater::Updater;
pub use offers::decision::{Accepted, Decisions, Placed};
pub use offers::handler::Handler;
pub use offers::piece::{Amount, Piece};
pub use offers::remainder::{Left, LeftResources, Remainder};
pub use offers::tasks::choosers;
pub use offers::tasks::hosts::{Hosts, IdleHost, Joined, TaskHost};
pub use offers::tasks::picks::{Pick, Picks, Task, Unplaced};
pub use offers::tasks::queues_left::QueuesLeft;
pub use offers::tasks::room::Room;
pub use offers::tasks::rooms::Rooms;
pub use reason::{Decline, Reason, ReasonKind};
pub use reports::agent_state::AgentState;
pub use reports::capacity::ClusterCapacity;
pub use reports::capacity_agent::{AgentResources, RoleOffer};
pub use reports::capacity_shard::CapacitySums;
pub use reports::check::Violation;
pub use reports::cluster_lack::{ClusterLack, LargestAgent};
pub use reports::explain::{Declined, ExcludedAgents, Explanation, Miss};
pub use reports::queues::QueueUse;
pub use reports::snapshot::{ExecutorView, Phase, Snapshot};
pub use reports::totals::Totals;
pub use state::counters::{DeclineCounts, OfferCounts};
pub use state::demand::DemandCall;
pub use state::host_state::TaskHostStage;
pub use state::offered_amounts::ResourceSums;
pub use state::target::Target;

use crate::config::{Config, ExecutorCores};
use crate::ids::{ExecutorId, IdScheme};
use crate::resources::MilliCpus;
use crate::status::StatusUpdate;
use crate::sync::Ordering;
use crate::time::Timestamp;

/// A scheduler kernel: it answers resource offers with placements and declines, and applies status updates, which free
/// capacity.
///
/// It starts no threads, reads no clock and does no I/O. All methods may be called from any number of threads at once;
/// a clone is another handle to the same kernel. Each method documents what other threads observe of it; the crate's
/// documentation says how that is checked.
///
/// ```
/// use offermill::{Config, Decisions, DemandCall, IdScheme, Kernel, Offer, Resource};
/// use offermill::{StatusUpdate, TaskState, Timestamp};
///
/// let config = Config::builder().executor_limit(Some(1)).build()?;
/// let kernel = Kernel::new(config, IdScheme::unique("etl", 1)?);
///
/// // An offer of 4 cores arrives. The executor takes all of them.
/// let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 8192.0)];
/// let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
/// let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
/// handler.resource_offers(&offers, Timestamp::from_millis(0), &mut decisions);
/// let accepted = decisions.accepts().next().unwrap();
/// assert_eq!(kernel.executor_name(accepted.executors[0].id).to_string(), "etl-1-0.0");
///
/// // The limit is reached: the cluster should stop its offers.
/// assert_eq!(kernel.poll_demand(Timestamp::from_millis(10)), Some(DemandCall::Suppress));
///
/// // The executor ends. Its cores are free, and offers are wanted again.
/// let update = StatusUpdate::new("etl-1-0.0", TaskState::Finished);
/// let outcome = kernel.status_update(&update, Timestamp::from_millis(60_000));
/// assert_eq!(outcome.freed.unwrap().cores.millis(), 4000);
/// assert_eq!(kernel.poll_demand(Timestamp::from_millis(60_010)), Some(DemandCall::Revive));
/// # Ok::<(), offermill::Error>(())
/// ```
///
/// # Consistency
/// A call that begins after another has returned sees all that the other changed, on whichever threads they are made.
/// Each method says what calls observe that overlap it.
///
/// # Panics
/// No call panics, whatever its input.
///
/// # Blocking
/// [The crate's documentation](crate#which-call-waits-for-which) lists which call waits for which.
#[derive(Clone)]
pub struct Kernel(pub(crate) Arc<Core>);

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("totals", &self.0.totals()).finish_non_exhaustive()
    }
}

impl Kernel {
    /// Creates a kernel without executors, open and connected.
    #[must_use]
    pub fn new(config: Config, ids: IdScheme) -> Kernel {
        Kernel(Core::new(config, ids))
    }

    /// Creates a handler, with which one thread answers offers.
    ///
    /// # Blocking
    /// Waits for other threads that create or drop a handler, change limit, settings or wanted hosts, or read the
    /// counters. It allocates: keep the handler.
    #[must_use]
    pub fn handler(&self) -> Handler {
        Handler::new(Arc::clone(&self.0))
    }

    /// Applies a status update of an executor.
    ///
    /// A duplicate changes nothing. Resources are freed exactly once, by the first of several concurrent updates.
    /// Updates of unknown executors are tolerated and counted. Only failures that are the agent's fault count towards
    /// its exclusion, each once; kills, losses by partition, drains, invalid offers and descriptions that the cluster
    /// rejects (`TASK_ERROR`, unless
    /// [`Compatibility::rejections_count`](crate::config::Compatibility::rejections_count)) don't. Apply an update
    /// before you acknowledge it.
    ///
    /// Once an update that excludes an agent has returned, no executor is placed there until the exclusion ends.
    ///
    /// Lock-free, with these exceptions:
    ///
    /// * A failure takes the lock of its agent's failure times. If it excludes the agent, it blocks as
    ///   [`Kernel::set_executor_limit`] does.
    /// * If an executor returns after it was given up, the update takes the lock that keeps the policy from changing.
    /// * The end of the last executor after a close takes the lock on which [`Kernel::drain`] waits, and then calls the
    ///   wakers of
    ///   [`Kernel::drained`].
    pub fn status_update(&self, update: &StatusUpdate<'_>, now: Timestamp) -> Outcome {
        self.0.status_update(update, LimitRule::Keep, now)
    }

    /// Applies status updates in order and appends what each of them did to `outcomes`, in the same order. The outcomes
    /// are those of [`Kernel::status_update`] called for each of them.
    ///
    /// Up to 64 executors that end are released together, with one change of the shared sums. Until then other threads
    /// still see them counted: an offer may be declined for a cap a little longer, an executor that returns may find no
    /// room and be killed, and a [snapshot](Snapshot) is less often exact. Acknowledge the updates after this has
    /// returned.
    ///
    /// It allocates only when `outcomes` grows or an executor fails. Lock-free, with the same exceptions.
    pub fn status_updates(
        &self,
        updates: &[StatusUpdate<'_>],
        now: Timestamp,
        outcomes: &mut Vec<Outcome>,
    ) {
        self.0.status_updates(updates, LimitRule::Keep, now, outcomes);
    }

    /// Returns the text of an executor's id.
    #[must_use]
    pub fn executor_name(&self, id: ExecutorId) -> impl fmt::Display + '_ {
        self.0.name_of(id)
    }

    /// Returns the id of the executor with this name, or none if this kernel neither made nor adopted the name.
    ///
    /// The executor may have ended, but a kernel with [plain ids](IdScheme::plain) returns none then, unless it was
    /// adopted. A kernel keeps no list of ended executors: a name that it never gave out, but could have given to an
    /// earlier executor of the same cell, has an id, too. [`Kernel::status_update`] takes it for one that has ended.
    #[must_use]
    pub fn executor_id(&self, name: &str) -> Option<ExecutorId> {
        self.0.executor_id(name)
    }

    /// Records that these executors are asked to end, so that their end doesn't count as a failure, and returns those
    /// that the cluster must be told to kill. Executors that have ended are left out. Doesn't change the executor
    /// limit.
    pub fn kill_executors(&self, ids: impl IntoIterator<Item = ExecutorId>) -> Vec<Target> {
        self.0.kill(ids)
    }

    /// Returns whether running executors hold at least `ratio` (0 to 1) of the [expected
    /// cores](Kernel::cores_expected).
    ///
    /// As in Spark (`spark.scheduler.minRegisteredResourcesRatio`), that is a share of what was asked for, whatever the
    /// cluster has: [`Kernel::capacity`] isn't considered. If less is there than was asked for, the framework waits for
    /// as long as it wants (`spark.scheduler.maxRegisteredResourcesWaitingTime`), because agents may come; a share of
    /// what is there would let it begin at once on a cluster whose first agent has just been offered. A host that wants
    /// such a share compares `used` with the sums of the picture.
    ///
    /// Counts executors at each call: O(executors).
    #[must_use]
    pub fn sufficient_resources_registered(&self, ratio: f64) -> bool {
        self.0.running_cores().millis() as f64 >= self.cores_expected().millis() as f64 * ratio
    }

    /// Returns the core cap, rounded down to whole executors; then the executor limit isn't considered, as in Spark.
    /// Without a core cap, returns the cores of as many executors as the limit allows if executors have a fixed size,
    /// else zero: then any number of cores is sufficient.
    #[must_use]
    pub fn cores_expected(&self) -> MilliCpus {
        let policy = self.0.policy.load();
        match (policy.config.core_cap, policy.limit, policy.config.executor_cores) {
            // A fraction of an executor is never placed.
            (Some(cap), _, ExecutorCores::Fixed(cores)) => {
                MilliCpus::from_millis(cap.millis() / cores.millis() * cores.millis())
            }
            (Some(cap), _, ExecutorCores::WholeOffer) => cap,
            (None, Some(limit), ExecutorCores::Fixed(cores)) => {
                MilliCpus::from_millis(cores.millis() * u64::from(limit))
            }
            _ => MilliCpus::ZERO,
        }
    }

    /// Records that the cluster reported an agent as lost. This is a hint: nothing is freed. Once it has returned, no
    /// executor is placed on the agent for 10 s, and the executors there are in doubt until an update arrives. Returns
    /// them, to be reconciled. Executors of a batch that is not answered yet may be missing, since their launch has not
    /// left; [`Scope::InDoubt`] returns them later.
    ///
    /// An agent that the kernel doesn't know yet is remembered, too, for 15 min, without a host name until it is
    /// offered. A report without an agent id changes nothing. O(executors) if there are any on the agent.
    ///
    /// # Blocking
    /// If executors are on the agent, it blocks as [`Kernel::set_executor_limit`] does. If the agent is unknown, it
    /// waits for first sights and removals of agents in the same shard of a map.
    pub fn agent_lost(&self, agent_id: &str, now: Timestamp) -> Vec<Target> {
        self.0.agent_lost(agent_id, now)
    }

    /// Ends an agent's exclusion, whatever its end was to be, and the 10 s after [`Kernel::agent_lost`]. Failures
    /// before it count no more. Returns whether the agent was excluded or suspect at `now`; then the next revive, which
    /// becomes due, asks for its offers again.
    ///
    /// Use it when an operator has repaired an agent, and after a timestamp far ahead, which can exclude an agent for
    /// years; see [`Timestamp`]. Unlike it, [`Kernel::reconfigure`] leaves exclusions as they are.
    ///
    /// An update that excludes the agent and is applied at the same time comes before it, or after it.
    ///
    /// ```
    /// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, StatusUpdate};
    /// # use offermill::{TaskState, Timestamp, config::ExclusionRule};
    /// let rule = ExclusionRule { failures: 1, expiry: None, ..ExclusionRule::default() };
    /// let config = Config::builder().executor_limit(Some(1)).exclusion(Some(rule)).build()?;
    /// let kernel = Kernel::new(config, IdScheme::plain());
    /// let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    /// let resources = [Resource::scalar("cpus", 1.0), Resource::scalar("mem", 4096.0)];
    /// let offers = [Offer::new("O1", "S1", "host-1", &resources, &[])];
    /// let now = Timestamp::from_millis(1_000);
    /// handler.resource_offers(&offers, now, &mut decisions);
    ///
    /// let outcome = kernel.status_update(&StatusUpdate::new("0", TaskState::Failed), now);
    /// assert_eq!(outcome.excluded.unwrap().until, Timestamp::MAX);
    /// handler.resource_offers(&offers, now, &mut decisions);
    /// assert_eq!(decisions.executors(), 0);
    ///
    /// assert!(kernel.readmit_agent("S1", now));
    /// handler.resource_offers(&offers, now, &mut decisions);
    /// assert_eq!(decisions.executors(), 1);
    /// # Ok::<(), offermill::Error>(())
    /// ```
    ///
    /// # Blocking
    /// Waits for the lock of the agent's failure times, as an update about a failure does. If the agent was refused, it
    /// blocks as [`Kernel::set_executor_limit`] does.
    pub fn readmit_agent(&self, agent_id: &str, now: Timestamp) -> bool {
        let was_refused = self.0.agents.readmit(agent_id, now);
        if was_refused {
            // A batch that saw the exclusion may send its refusal after the revive, which that undoes: with another
            // number in force it requests a second one.
            self.0.policy.renumber(&self.0.admission);
            self.0.demand.request_revive();
        }
        was_refused
    }

    /// Records that the cluster reported an executor as lost. This is a hint, like [`Kernel::agent_lost`]. Returns the
    /// executor, to be reconciled, unless it has ended.
    pub fn executor_lost(&self, executor: &str) -> Option<Target> {
        self.0.executor_lost(executor)
    }

    /// Begins a subscription, the first or a later one, and returns its number. Offers and calls of earlier
    /// subscriptions are dead. Suppression is forgotten, because the cluster forgets it too. Reconcile [`Scope::All`]
    /// afterwards.
    ///
    /// # Blocking
    /// Waits for [`Kernel::poll_demand`] and for other registrations.
    pub fn registered(&self) -> u64 {
        self.0.registered()
    }

    /// Ends the subscription: until the next one begins, offers are declined as dead. Executors keep running.
    pub fn disconnected(&self) {
        self.0.subscription.end();
    }

    /// Returns the number of the current subscription; 0 if none was ever registered.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.0.subscription.epoch()
    }

    /// Returns the call that makes the cluster's offers follow the kernel's demand, if one is due. The caller must send
    /// it. Poll after batches, after updates and at intervals (every 100 ms, say), from one thread: calls that overtake
    /// each other on their way would undo their effect.
    ///
    /// * Suppress is due when the caps leave no room for an executor, and again, at most once per second, while offers
    ///   still arrive.
    /// * Revive is due when there is room again, at most once per
    ///   [`revive_interval`](crate::ConfigBuilder::revive_interval). It is repeated if there is room and nothing was
    ///   offered for 10 s longer than the longest refusal, because it may have been lost.
    /// * Nothing is due while no subscription is active.
    ///
    /// Each call that the kernel records as sent is returned by exactly one poll, whichever thread polls.
    ///
    /// # Blocking
    /// Waits for other polls and for [`Kernel::registered`]. If there is room and no call is due, it also waits for a
    /// thread that creates or drops a [`Handler`] or reads the counters ([`Kernel::offer_counts`],
    /// [`Kernel::explain`]). Handlers that answer offers never wait for it.
    pub fn poll_demand(&self, now: Timestamp) -> Option<DemandCall> {
        self.0.poll_demand(None, now)
    }

    /// Like [`Kernel::poll_demand`], for a host that drops the calls of earlier subscriptions. If `subscription` (an
    /// [epoch](Kernel::epoch)) is not the current one, it returns none and records nothing as sent. A call that it
    /// returns is forgotten by the [`Kernel::registered`] that follows.
    ///
    /// Blocks as [`Kernel::poll_demand`] does.
    pub fn poll_demand_in(&self, subscription: u64, now: Timestamp) -> Option<DemandCall> {
        self.0.poll_demand(Some(subscription), now)
    }

    /// Tells the kernel that the answers in `decisions` were sent to the cluster. Call it after sending them if the
    /// calls of several threads may overtake each other. If a revive was sent while refusals were on their way, and
    /// they were made at a cap, for a full queue, or before settings changed or an agent was readmitted, they undid the
    /// revive; then another revive becomes due.
    pub fn answers_sent(&self, decisions: &Decisions) {
        let demand = &self.0.demand;
        if demand.revives() == decisions.revives {
            return;
        }
        if decisions.at_cap {
            demand.record_refused();
        }
        if decisions.at_queue || self.0.policy.load().number != decisions.policy {
            demand.request_revive();
        }
    }

    /// Returns a lower bound of the sequence numbers of executors that batches place which have not begun.
    pub(crate) fn next_sequence(&self) -> u64 {
        // Relaxed: the calling thread's own batch takes its numbers later, from the same word.
        self.0.sequence.load(Ordering::Relaxed)
    }

    /// Returns how many more executors the caps have room for at this moment.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        let admission = self.0.admission.load();
        let policy = self.0.policy.load();
        self.0.wanted(&policy, admission)
    }

    /// Applies timeouts. Unreachable executors are given up and later forgotten, as the config says. Agents that were
    /// not offered for 15 min are forgotten, unless they hold executors, are excluded or suspect, or have failures that
    /// may still count towards an exclusion. Offers that are declined alike, because a cap is reached or the kernel is
    /// closed, don't count: agents aren't looked at. Call it about once per second.
    ///
    /// An executor is given up, and then forgotten, only if its current absence has lasted long enough, however often
    /// it returns while ticks and updates run concurrently. Times later than 2⁴⁸ ms (8900 years) after the origin count
    /// as that time.
    pub fn tick(&self, now: Timestamp) -> Ticked {
        self.0.tick(now)
    }

    /// Returns what happened to offers since the kernel was created. Each counter only grows; together they are not of
    /// one instant.
    #[must_use]
    pub fn offer_counts(&self) -> OfferCounts {
        self.0.counters.sum()
    }

    /// Returns how many updates were about executors that this kernel never placed.
    #[must_use]
    pub fn unknown_updates(&self) -> u64 {
        // Relaxed: a counter.
        self.0.unknown_updates.load(Ordering::Relaxed)
    }

    /// Returns how many agents the kernel remembers: agents that were candidates for placement or reported lost, and
    /// are not forgotten.
    #[must_use]
    pub fn agents_known(&self) -> usize {
        self.0.agents.len()
    }

    /// Compares the shared sums with the executors' cells. For tests and simulators, while no other call is in
    /// progress. O(executors and agents).
    ///
    /// # Errors
    /// Returns the first inconsistency, which is a bug in this crate.
    pub fn check(&self) -> Result<(), Violation> {
        self.0.check()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use crate::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp};

    /// Goal: no batch that begins later has a number below the bound, and the bound is no lower than it has to be.
    /// Method: the bound before each of a few batches.
    #[test]
    fn the_next_number_is_the_next_batchs_first() {
        let kernel = Kernel::new(Config::builder().build().unwrap(), IdScheme::plain());
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        let resources = [Resource::scalar("cpus", 3.0), Resource::scalar("mem", 9000.0)];
        let offers = [Offer::new("o", "S1", "host", &resources, &[])];
        for _ in 0..3 {
            let next = kernel.next_sequence();
            handler.resource_offers(&offers, Timestamp::ORIGIN, &mut decisions);
            let first = decisions.accepts().next().unwrap().executors[0].id;
            assert_eq!(first.sequence(), next);
        }
    }
}
