//! [`Rooms`]: a proposal, from [`Handler::propose`] to [`Rooms::commit`].

use std::fmt;
use std::time::Duration;

use super::commit::PickedBatch;
use super::picks::Picks;
use super::room::Room;
use crate::kernel::Core;
use crate::kernel::offers::decision::Decisions;
use crate::kernel::offers::handler::Handler;
use crate::kernel::reason::{Decline, Reason};
use crate::kernel::state::offered_amounts::ResourceSums;
use crate::offer::Offer;
use crate::sync::UntrackedOnceLock;
use crate::time::Timestamp;

/// What is left of a batch of offers, by agent and role, for tasks that the framework chooses itself; from
/// [`Handler::propose`]. It must be [committed](Rooms::commit), also without picks: otherwise its offers are not
/// answered. It borrows the handler: there is one proposal at a time.
#[must_use = "offers are answered by the commit"]
pub struct Rooms<'h> {
    handler: &'h mut Handler,
    offers: &'h [Offer<'h>],
    /// The [number of claims](crate::kernel::state::claim_returns) that were given back before the proposal.
    claim_returns: u64,
    /// Whether a queue was said to have less room than its maximum.
    told_less: UntrackedOnceLock<()>,
}

impl fmt::Debug for Rooms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rooms").field("list", &self.list()).finish_non_exhaustive()
    }
}

impl Handler {
    /// Looks at offers as [`Handler::resource_offers`] does, but places nothing: returns what is left of those that can
    /// be used, for tasks of the framework's choice. Each offer is in one room or among the declines.
    ///
    /// The [configured executor](crate::ConfigBuilder::executor_cores) is the least that a room has, and the least that
    /// the caps must leave: make it as small as the smallest task. A smaller offer is declined, with what it lacks.
    /// Rooms are in the order of their first offers; an agent's offers to one role are one room. An offer that is
    /// [bound late](Offer::late) is a room for one task.
    ///
    /// No thread waits for a proposal, however long it is looked at, and nothing is reserved by it.
    ///
    /// ```
    /// use offermill::config::ExecutorCores;
    /// use offermill::resources::{Mebibytes, MilliCpus};
    /// use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Picks, Resource, Task, Timestamp};
    ///
    /// let config = Config::builder()
    ///     .executor_cores(ExecutorCores::Fixed(MilliCpus::from_millis(100))) // the smallest task
    ///     .executor_memory(Mebibytes::new(64))
    ///     .memory_overhead(Some(Mebibytes::ZERO))
    ///     .core_cap(Some(MilliCpus::from_cores(3)))
    ///     .build()?;
    /// let kernel = Kernel::new(config, IdScheme::unique("queue", 1)?);
    /// let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
    /// let (mut picks, now) = (Picks::new(), Timestamp::ORIGIN);
    ///
    /// let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 4096.0)];
    /// let offers = ["S1", "S2"].map(|agent| Offer::new(agent, agent, "host", &resources, &[]));
    /// let rooms = handler.propose(&offers, now);
    /// assert_eq!(rooms.list()[1].left().cores, MilliCpus::from_cores(4));
    /// for (tag, millis) in [(70, 2000), (71, 500), (72, 1500)] {
    ///     picks.push(0, Task::new(tag, MilliCpus::from_millis(millis), Mebibytes::new(512)));
    /// }
    /// rooms.commit(&picks, now, &mut decisions);
    ///
    /// // The cap leaves room for two. They are executors of their own sizes, each with its tag.
    /// let accepted = decisions.accepts().next().unwrap();
    /// let placed: Vec<_> = accepted.tasks().map(|(tag, task)| (tag, task.resources.cores.millis())).collect();
    /// assert_eq!(placed, [(70, 2000), (71, 500)]);
    /// assert_eq!(decisions.unplaced()[0].tag, 72);
    /// println!("{}", decisions.unplaced()[0].reason); // core cap reached: 2.5 of 3 cores taken, 1.5 asked
    /// println!("{}", decisions.declines()[0].reason); // no task picked
    /// # assert_eq!(decisions.unplaced()[0].reason.to_string(), "core cap reached: 2.5 of 3 cores taken, 1.5 asked");
    /// # assert_eq!(decisions.declines()[0].reason.to_string(), "no task picked");
    ///
    /// let task = accepted.executors[1].id;
    /// assert_eq!(kernel.task_tag(task), Some(71));
    /// # Ok::<(), offermill::Error>(())
    /// ```
    ///
    /// # Panics
    /// Never, whatever the input.
    ///
    /// # Blocking
    /// As [`Handler::resource_offers`] does.
    pub fn propose<'h>(&'h mut self, offers: &'h [Offer<'h>], now: Timestamp) -> Rooms<'h> {
        let core = &*self.core;
        self.scratch.tasks.revives = core.demand.revives();
        self.scratch.tasks.again = false;
        let claim_returns = core.queues.get().map_or(0, |queues| queues.returns.count());
        // The word is loaded before the policy, so the policy is at least as new as the word's version.
        let admission = core.admission.load_pinned(&mut self.pin);
        let policy = self.policy.load();
        self.scratch.propose(core, policy, admission, offers, now);
        self.pin.end_batch();
        Rooms { handler: self, offers, claim_returns, told_less: UntrackedOnceLock::new() }
    }
}

impl Rooms<'_> {
    /// The rooms. A pick names one by its position here.
    #[must_use]
    pub fn list(&self) -> &[Room] {
        &self.handler.scratch.tasks.rooms
    }

    /// The offers that are in no room, each with the reason. The commit copies them to the decisions.
    #[must_use]
    pub fn declines(&self) -> &[Decline] {
        &self.handler.scratch.tasks.declines
    }

    /// The first offer of a room, which names agent, host and attributes; `None` if the room is of another batch.
    #[must_use]
    pub fn offer(&self, room: &Room) -> Option<&Offer<'_>> {
        self.offers.get(room.offer() as usize)
    }

    /// [`Rooms::offer`] of the room at this position, as a [pick](crate::Pick::room) has it; `None` if there is none.
    #[must_use]
    pub fn offer_of(&self, room: u32) -> Option<&Offer<'_>> {
        self.offer(self.list().get(room as usize)?)
    }

    /// The offers that are declined because they are too small for the smallest task, or because other hosts are
    /// wanted; what each has, and whether its agent takes one executor only while hosts are wanted. Of the kind that
    /// one lacks it has what can be used, of the others all, whatever its role.
    pub(crate) fn unused(&self) -> impl Iterator<Item = (&Offer<'_>, ResourceSums, bool)> {
        self.declines().iter().filter_map(|decline| {
            let offer = self.offers.get(decline.offer as usize)?;
            let all = || ResourceSums::of(offer);
            let (has, takes_one) = match decline.reason {
                Reason::Cpus { offered, .. } => (ResourceSums { cores: offered, ..all() }, false),
                Reason::Memory { offered, .. } => {
                    (ResourceSums { memory: offered, ..all() }, false)
                }
                Reason::Gpus { offered, .. } => (ResourceSums { gpus: offered, ..all() }, false),
                Reason::Locality { .. } => (all(), true),
                _ => return None,
            };
            Some((offer, has, takes_one))
        })
    }

    /// All offers of the batch.
    pub(crate) const fn offers(&self) -> &[Offer<'_>] {
        self.offers
    }

    /// The longest time for which an answer may refuse an agent's resources.
    pub(crate) fn longest_refusal(&self) -> Duration {
        self.core().policy.load().config.refuse.longest()
    }

    /// Whether a cap has all offers declined, or the kernel is closed: the declines say little of the agents.
    pub(crate) const fn are_closed(&self) -> bool {
        self.handler.scratch.tasks.at_cap || self.handler.scratch.tasks.alike
    }

    pub(super) fn core(&self) -> &Core {
        &self.handler.core
    }

    /// A queue was said to have less room than its maximum.
    pub(super) fn told_less(&self) {
        self.told_less.get_or_init(|| ());
    }

    /// Places the picked tasks, in their order, and answers each offer exactly once. Replaces the content of
    /// `decisions`.
    ///
    /// * All tasks that are placed are admitted in one step. If the caps don't admit all, the picks are cut off: the
    ///   first one that is too much, and all after it, are not placed. Nothing is placed that wasn't picked.
    /// * A pick that its room can't take after the picks before is left out; the others aren't concerned. A
    ///   [gang](Picks::push_gang) is left out or cut off as a whole.
    /// * With [queues](crate::ConfigBuilder::queue), a pick that its queue has no room for is left out, too; tasks of
    ///   other queues aren't concerned.
    /// * Each pick that isn't placed is [returned](Decisions::unplaced) with the reason.
    /// * Each task that is placed is an executor with its own amounts ([`Placed::resources`](crate::Placed)) and
    ///   [tag](crate::Accepted::tasks). Its end frees exactly these. It counts as one executor for the executor limit.
    /// * Offers of rooms without a task are declined: with [`Reason::NotPicked`](crate::Reason::NotPicked) if nothing
    ///   was picked there and no cap is reached.
    ///
    /// A task takes each kind of resource from non-revocable resources or, if these don't suffice, from revocable ones.
    /// It gets no port and no extra cores.
    ///
    /// # Consistency
    /// As with [`Handler::resource_offers`]: no cap is exceeded, not even for an instant, and once a setter, a close, a
    /// report of a loss or an exclusion has returned, nothing is placed under the older state. If the settings were
    /// changed since the proposal, the offers are looked at again; picks on agents that can't be used any more are
    /// returned.
    ///
    /// # Panics
    /// Never, whatever the input. A pick on a room that doesn't exist is returned as
    /// [malformed](crate::Reason::Malformed).
    ///
    /// # Blocking
    /// Lock-free as [`Handler::resource_offers`] is. Besides what that allocates, the table of tags grows with that of
    /// the executors: other first tasks in the same segment wait meanwhile.
    pub fn commit(self, picks: &Picks, now: Timestamp, decisions: &mut Decisions) {
        let Rooms { handler, offers, claim_returns, told_less } = self;
        let Handler { core, policy, pin, scratch, .. } = handler;
        scratch.tasks.told_less = told_less.get().map(|()| claim_returns);
        let batch = PickedBatch { offers, picks, now };
        let mut outdated = false;
        let (admission, config_version) = loop {
            decisions.clear();
            let admission = core.admission.load_pinned(pin);
            let policy = policy.load();
            if outdated || policy.number != scratch.tasks.policy {
                scratch.propose_again(core, policy, admission, offers, now);
            }
            decisions.revives = scratch.tasks.revives;
            decisions.policy = policy.number;
            if scratch.commit_picks(core, policy, admission, &batch, decisions) {
                break (admission, policy.config_version);
            }
            outdated = true;
        };
        let alike = scratch.tasks.alike;
        handler.kept.forget();
        handler.end_batch(offers, admission, config_version, alike, now, decisions);
    }
}
