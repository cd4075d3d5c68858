//! The kernel: events in, decisions out. This file has its public calls; what threads share is in `state/`.
//!
//! How an offer becomes a running executor:
//!
//! ```text
//! resource_offers ─► candidates ─► placement ─► commit ──────────────► carve ─► Decisions
//!   handler.rs        which          which get      agents, cells,          exact
//!                     agents can     how many       then one word:          pieces
//!                     take one       (pure)         admission               (pure)
//!
//! status_update ───► executors: one compare-exchange decides which thread frees ─► agents, admission, drain
//! ```
//!
//! | folder | what is in it |
//! |---|---|
//! | `offers` | from offers to decisions |
//! | `lifecycle` | from status updates, losses and time to freed capacity; adoption and drain |
//! | `reports` | snapshots, explanations, counters |
//! | `state` | every word that threads share |

mod core;
pub(crate) mod lifecycle;
#[cfg(all(counting, test))]
pub(crate) mod lines;
pub(crate) mod offers;
mod reports;
pub(crate) mod state;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::core::Core;
pub use lifecycle::adoption::Recovered;
pub use lifecycle::doubt::Scope;
pub use lifecycle::drain::{DrainReport, Drained};
pub use lifecycle::expiry::Ticked;
pub use lifecycle::limit::LimitRule;
pub use lifecycle::updates::{Change, Exclusion, Freed, Outcome, Target};
pub use offers::decision::{
    Accepted, Amount, Decisions, Decline, Piece, Placed, Reason, ReasonKind,
};
pub use offers::handler::Handler;
pub use offers::remainder::{Left, Remainder};
pub use reports::check::Violation;
pub use reports::counters::OfferCounts;
pub use reports::explain::{Declined, ExcludedAgents, Explanation, Miss};
pub use reports::snapshot::{AgentState, ExecutorView, Phase, Snapshot, Totals};
pub use state::demand::DemandCall;

use crate::config::{Config, ExecutorCores};
use crate::error::Error;
use crate::ids::{ExecutorId, IdScheme};
use crate::resources::MilliCpus;
use crate::status::StatusUpdate;
use crate::sync::Ordering;
use crate::time::Timestamp;

/// A scheduler kernel: resource offers in, placements and declines out; status updates in, freed capacity out.
///
/// It has no threads, no clock and does no I/O. All methods may be called from any number of threads at once; a clone
/// is another handle on the same kernel. Each says what it does to others' view in its own docs; the crate's docs say
/// how that is checked.
#[derive(Clone)]
pub struct Kernel(pub(crate) Arc<Core>);

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("totals", &self.0.totals()).finish_non_exhaustive()
    }
}

impl Kernel {
    /// A kernel without executors, open and connected.
    #[must_use]
    pub fn new(config: Config, ids: IdScheme) -> Kernel {
        Kernel(Arc::new(Core::new(config, ids)))
    }

    /// A door for one thread, through which it answers offers.
    #[must_use]
    pub fn handler(&self) -> Handler {
        Handler::new(Arc::clone(&self.0))
    }

    /// Applies a report about an executor.
    ///
    /// A duplicate changes nothing; resources are freed exactly once, by whichever of concurrent updates comes first;
    /// unknown executors are tolerated and counted. Only failures that are the agent's count towards its exclusion
    /// (not kills, losses by partition, drains or invalid offers), each once. Apply first, acknowledge then.
    ///
    /// Lock-free, except that a failure takes the lock of its agent's failure times and, if it excludes the agent,
    /// waits as [`Kernel::set_executor_limit`] does; that an executor which returns after it was given up keeps the
    /// policy from changing, for which it takes a lock; and that ids without their slot ([`IdScheme::plain`]) go
    /// through a sharded map. Once an update that excludes an agent has returned, no executor is placed there until
    /// the exclusion ends.
    pub fn status_update(&self, update: &StatusUpdate<'_>, now: Timestamp) -> Outcome {
        self.0.status_update(update, LimitRule::Keep, now)
    }

    /// Applies reports, in their order, and appends what each did to `outcomes`, in the same order: the outcomes are
    /// those of [`Kernel::status_update`] one by one. It looks at many executors at once, and takes those that end out
    /// of the books together, up to 64 with one change. Until then other threads see these counted still: an offer
    /// meets the cap a little longer, an executor that returns there may find no room and be killed, and a
    /// [snapshot](Snapshot) is less often exact. Apply first, acknowledge when this has returned.
    ///
    /// Failures aside, it allocates nothing but what `outcomes` needs to grow. Lock-free with the same exceptions.
    pub fn status_updates(
        &self,
        updates: &[StatusUpdate<'_>],
        now: Timestamp,
        outcomes: &mut Vec<Outcome>,
    ) {
        self.0.status_updates(updates, LimitRule::Keep, now, outcomes);
    }

    /// The text of an executor's id.
    #[must_use]
    pub fn executor_name(&self, id: ExecutorId) -> impl fmt::Display + '_ {
        self.0.name_of(id)
    }

    /// The id that a text stands for, if it is of this kernel's making. The executor may have ended.
    #[must_use]
    pub fn executor_id(&self, name: &str) -> Option<ExecutorId> {
        self.0.find_executor(name)
    }

    /// Takes executors that a former run has left on the cluster into the books, as launching and in doubt: reconcile
    /// [`Scope::All`] after it. Those that the caps have no room for, whose name this kernel could have made itself or
    /// was given before, and, with [plain ids](IdScheme::plain), those whose names are numbers, are left out; the
    /// kernel will want them killed when they are heard of. Returns for each, in order, its id here.
    ///
    /// Call it once, before the first update of such an executor is let in.
    ///
    /// # Errors
    /// When executors were adopted before, or are being adopted by another thread; then nothing is done.
    pub fn adopt(
        &self,
        former: &[Recovered<'_>],
        now: Timestamp,
    ) -> Result<Vec<Option<ExecutorId>>, Error> {
        self.0.adopt(former, now)
    }

    /// Puts new settings in force, executor limit included. Once this has returned, no executor is placed under the
    /// old ones; executors that run keep what they have. Refused offers are asked for again with the next revive.
    /// Blocks as [`Kernel::set_executor_limit`] does.
    pub fn reconfigure(&self, config: Config) {
        if self.0.policy.set_config(config, &self.0.admission) {
            self.0.demand.request_revive();
        }
    }

    /// The settings in force. The executor limit in it is the one that it was made with; see
    /// [`Kernel::executor_limit`].
    #[must_use]
    pub fn config(&self) -> Config {
        self.0.policy.load().config.clone()
    }

    /// Notes that these executors are asked to end, so that their end is nobody's failure, and says whom to tell.
    /// Executors that have ended are left out. Doesn't change the executor limit.
    pub fn kill_executors(&self, ids: impl IntoIterator<Item = ExecutorId>) -> Vec<Target> {
        self.0.kill(ids)
    }

    /// Whether executors that are running hold at least `ratio` (0 to 1) of the [cores that may be
    /// had](Kernel::cores_expected).
    ///
    /// Counts executors at each call: O(executors).
    #[must_use]
    pub fn sufficient_resources_registered(&self, ratio: f64) -> bool {
        self.0.running_cores().millis() as f64 >= self.cores_expected().millis() as f64 * ratio
    }

    /// The cores that may be had: the core cap (rounded down to whole executors), else those of as many executors as
    /// the limit allows, where they have a fixed size, else none.
    #[must_use]
    pub fn cores_expected(&self) -> MilliCpus {
        let policy = self.0.policy.load();
        match (policy.config.core_cap, policy.limit, policy.config.executor_cores) {
            // A part of an executor can never be had.
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

    /// An agent is lost, as far as the cluster knows. A hint: nothing is freed, but once this has returned no executor
    /// is placed there for 10 s, and those that are there are in doubt until an update tells. Returns them, to be
    /// reconciled; missing may be those that a batch is just placing, whose launch has not left: [`Scope::Doubtful`]
    /// finds them later. Of an agent that the kernel doesn't know nothing is noted. O(executors) if there are any on
    /// the agent.
    ///
    /// # Blocking
    /// If executors are on the agent, as [`Kernel::set_executor_limit`] does.
    pub fn agent_lost(&self, agent_id: &str, now: Timestamp) -> Vec<Target> {
        self.0.agent_lost(agent_id, now)
    }

    /// An executor is lost, as far as the cluster knows. A hint, like [`Kernel::agent_lost`]; returns it, to be
    /// reconciled, unless it has ended.
    pub fn executor_lost(&self, executor: &str) -> Option<Target> {
        self.0.executor_lost(executor)
    }

    /// A subscription begins, the first or a further one; returns its number. Offers and calls of earlier ones are
    /// dead; suppression is forgotten, for the cluster forgot it too. Reconcile [`Scope::All`] after it.
    ///
    /// # Blocking
    /// Waits for [`Kernel::poll_demand`] and for another registration.
    pub fn registered(&self) -> u64 {
        self.0.registered()
    }

    /// The subscription ended: offers are declined as dead until the next. Executors run on.
    pub fn disconnected(&self) {
        self.0.subscription.end();
    }

    /// The number of the subscription in force, from 0 for a kernel that was never registered.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.0.subscription.epoch()
    }

    /// The call that would make the cluster's offers follow the kernel's demand, if one is due. The caller must make
    /// it. Poll after batches, after updates and now and then (each 100 ms, say), from one thread: calls that
    /// overtake each other on their way would undo the effect.
    ///
    /// Suppress comes when the caps leave no room for an executor, and again, at most each second, when offers arrive
    /// all the same; revive comes once when there is room again, at most once each
    /// [`revive_interval`](crate::ConfigBuilder::revive_interval). It comes again when there is room and nothing was
    /// offered for 10 s longer than the longest refusal: it may have been lost on its way.
    /// While the subscription is interrupted there is nobody to tell, and no call is due.
    ///
    /// Each call that the kernel takes for said is returned by one poll, whichever thread polls.
    ///
    /// # Blocking
    /// Waits for other polls and for [`Kernel::registered`], and, if there is room and no call is due, for a thread
    /// that makes or drops a [`Handler`] or reads the counters ([`Kernel::offer_counts`], [`Kernel::explain`]). No
    /// handler that answers offers waits for it.
    pub fn poll_demand(&self, now: Timestamp) -> Option<DemandCall> {
        self.0.poll_demand(None, now)
    }

    /// As [`Kernel::poll_demand`], for a host that drops the calls of earlier subscriptions: if `subscription` (an
    /// [epoch](Kernel::epoch)) isn't in force any more, it returns none and the kernel takes nothing for said. A call
    /// that it returns is forgotten by the [`Kernel::registered`] that follows it.
    ///
    /// Blocks as [`Kernel::poll_demand`] does.
    pub fn poll_demand_in(&self, subscription: u64, now: Timestamp) -> Option<DemandCall> {
        self.0.poll_demand(Some(subscription), now)
    }

    /// Says that the answers in `decisions` have left for the cluster. Call it after sending them, where calls of
    /// several threads may overtake each other: was a revive sent while refusals for a cap's sake, or under a policy
    /// that was replaced meanwhile, were still on their way, they undid it, and another will be due.
    pub fn answers_sent(&self, decisions: &Decisions) {
        let demand = &self.0.demand;
        if demand.revives() == decisions.revives {
            return;
        }
        if decisions.at_cap {
            demand.record_refused();
        }
        if self.0.policy.load().number != decisions.policy {
            demand.request_revive();
        }
    }

    /// No executor that is placed by a batch that has not begun has a lower number.
    pub(crate) fn next_sequence(&self) -> u64 {
        // Relaxed: the calling thread's own batch takes its numbers later, from the same word.
        self.0.sequence.load(Ordering::Relaxed)
    }

    /// How many more executors the caps leave room for now. A moment's view.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        let admission = self.0.admission.load();
        let policy = self.0.policy.load();
        self.0.wanted(&policy, admission)
    }

    /// Lets time pass: executors out of sight are given up and then forgotten as the config says, and agents that
    /// were not offered for 15 min go, unless they hold executors, are excluded or suspect, or have failures that may
    /// still count towards an exclusion. Call it each second or so.
    ///
    /// An executor is given up, and then forgotten, only if its present absence has lasted for that long, however
    /// often it returns while ticks and updates run at once. The clocks of absences end 2⁴⁸ ms (8900 years) after the
    /// origin: later moments count as that one.
    pub fn tick(&self, now: Timestamp) -> Ticked {
        self.0.tick(now)
    }

    /// The sums at one instant: one load.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.0.totals()
    }

    /// A picture of all executors and agents; see [`Snapshot`] for what it promises. O(executors and agents), on the
    /// caller's thread; no handler waits for it.
    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> Snapshot {
        self.0.snapshot(now)
    }

    /// What happened to offers since the kernel was made. Each counter only grows; together they are not one instant.
    #[must_use]
    pub fn offer_counts(&self) -> OfferCounts {
        self.0.counters.sum()
    }

    /// Why nothing more is placed: what is wanted, which cap is reached, whether offers come, and of those declined for
    /// each reason how many there were and the nearest miss, in numbers. Its `Display` is for people.
    ///
    /// O(agents and handlers), on the caller's thread; no handler waits for it. Its parts are not one instant.
    ///
    /// ```
    /// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource, Timestamp, resources::Mebibytes};
    /// let config = Config::builder().executor_memory(Mebibytes::new(3712)).executor_limit(Some(3)).build()?;
    /// let kernel = Kernel::new(config, IdScheme::plain());
    /// let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 3584.0)];
    /// let offers = [Offer::new("O1", "S7", "host-7", &resources, &[])];
    /// kernel.handler().resource_offers(&offers, Timestamp::ORIGIN, &mut Decisions::new());
    ///
    /// let explanation = kernel.explain(Timestamp::from_millis(2_000));
    /// assert_eq!(explanation.to_string(), "\
    /// waiting for 3 more executors
    /// offers             1 in all, the last 2 s ago
    /// too little memory  1 offer, nearest: agent S7: memory 3584 of 4096 MiB, 2 s ago");
    /// # Ok::<(), offermill::Error>(())
    /// ```
    #[must_use]
    pub fn explain(&self, now: Timestamp) -> Explanation {
        self.0.explain(now)
    }

    /// How many updates came about executors that this kernel never placed.
    #[must_use]
    pub fn unknown_updates(&self) -> u64 {
        // Relaxed: a counter.
        self.0.unknown_updates.load(Ordering::Relaxed)
    }

    /// How many agents the kernel remembers: those that were candidates for placement and not yet forgotten.
    #[must_use]
    pub fn agents_known(&self) -> usize {
        self.0.agents.len()
    }

    /// Closes the kernel for good: no executor is placed any more, offers are declined as stopping. Returns the
    /// executors to be asked to end (tell [`Kernel::kill_executors`] of them). Closing again returns those that are
    /// left.
    ///
    /// A handler that committed just before may still be about to answer: its executors are among the returned. Join
    /// handler threads before sending kills, so that a kill can't overtake its launch.
    pub fn close(&self) -> Vec<Target> {
        self.0.close()
    }

    /// Closes the kernel, if need be, and waits until no executor is counted or `timeout` has passed; reports every
    /// executor that was counted when the kernel was closed. May be called again and from several threads. Parks; never
    /// polls.
    pub fn drain(&self, timeout: Duration) -> DrainReport {
        self.0.drain(timeout)
    }

    /// Compares the books with the cells. For tests and simulators, at moments when no other call is in progress.
    /// O(executors and agents).
    ///
    /// # Errors
    /// Names the first thing that doesn't add up: a bug in this crate.
    pub fn check(&self) -> Result<(), Violation> {
        self.0.check()
    }
}
