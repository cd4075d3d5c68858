//! [`Gang`]: tasks that wait for a batch that takes all of them, for a limited time.

use std::time::Duration;

use super::Chooser;
use crate::kernel::offers::decision::Decisions;
use crate::kernel::offers::tasks::picks::{Picks, Task};
use crate::kernel::offers::tasks::room::Room;
use crate::time::Timestamp;

/// Tasks that are placed together or not at all, and how long they wait for that. The framework keeps it until it is
/// placed or given up.
///
/// While a gang waits, nothing is held for it, by nobody: each commit places a whole gang or nothing of it. So gangs
/// never wait for each other, on however many handlers: of two that don't fit together the first that is committed is
/// placed, and the other one waits for its end. The price is that no room is kept: smaller tasks may take what a large
/// gang would need, until its time is over. A framework that wants it to have its turn picks nothing else meanwhile,
/// and [proposes](crate::Handler::propose) more offers at once. A gang that the caps don't admit
/// [cuts off](crate::Rooms::commit) the picks after it: pick gangs last if that must not be.
///
/// ```
/// use std::time::Duration;
/// # use offermill::choosers::{Chooser, Gang, GangState};
/// # use offermill::resources::{Mebibytes, MilliCpus};
/// # use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Picks, Resource, Task, Timestamp};
/// # let config = Config::builder().executor_memory(Mebibytes::new(100)).memory_overhead(Some(Mebibytes::ZERO));
/// # let kernel = Kernel::new(config.build()?, IdScheme::plain());
/// # let resources = [Resource::scalar("cpus", 4.0), Resource::scalar("mem", 4096.0)];
/// # let offers = [Offer::new("O1", "S1", "h1", &resources, &[])];
/// # let (mut handler, mut picks, mut decisions) = (kernel.handler(), Picks::new(), Decisions::new());
/// # let mut chooser = Chooser::new();
/// let task = |tag, cores| Task::new(tag, MilliCpus::from_cores(cores), Mebibytes::new(512));
/// let minute = Duration::from_secs(60);
/// let mut now = Timestamp::ORIGIN;
/// let mut gangs = vec![
///     Gang::new([task(1, 3), task(2, 3)], now, minute), // more than the one agent has
///     Gang::new([task(3, 2), task(4, 2)], now, minute),
/// ];
/// // For each batch:
/// let rooms = handler.propose(&offers, now);
/// chooser.gangs(rooms.list(), &mut gangs, now, &mut picks);
/// rooms.commit(&picks, now, &mut decisions);
/// gangs.iter_mut().for_each(|gang| gang.settle(&decisions));
/// assert_eq!(gangs[0].state(), GangState::Waiting);
/// assert_eq!(gangs[1].state(), GangState::Placed);
/// gangs.retain(|gang| gang.state() == GangState::Waiting);
///
/// // At times, also when no offers arrive:
/// now = now.plus(minute);
/// for gang in gangs.extract_if(.., |gang| gang.give_up(now)) {
///     println!("not placed within {:?}: {} tasks", gang.timeout(), gang.tasks().len());
/// }
/// assert!(gangs.is_empty());
/// # Ok::<(), offermill::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gang {
    tasks: Box<[Task]>,
    since: Timestamp,
    timeout: Duration,
    state: GangState,
    /// If it is picked: the position of its first pick.
    first: u32,
}

/// What has become of a [`Gang`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GangState {
    /// It waits for a batch that takes all its tasks.
    Waiting,
    /// All its tasks are picked, and the commit hasn't been [looked at](Gang::settle).
    Picked,
    /// All its tasks were placed.
    Placed,
    /// Its time is over, and none of its tasks was placed. It isn't tried any more.
    GivenUp,
}

impl Gang {
    /// Creates a gang that waits since `since`, for `timeout` at the most; [`Duration::MAX`] is for ever. It is given
    /// up by the first call that is told a time from then on; a `timeout` of zero allows no try.
    #[must_use]
    pub fn new(tasks: impl Into<Box<[Task]>>, since: Timestamp, timeout: Duration) -> Gang {
        Gang { tasks: tasks.into(), since, timeout, state: GangState::Waiting, first: 0 }
    }

    /// Its tasks.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Since when it waits.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// How long it waits at the most.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// What has become of it.
    #[must_use]
    pub fn state(&self) -> GangState {
        self.state
    }

    /// Gives it up if it waits and its time is over. Returns `true` if this call gave it up.
    pub fn give_up(&mut self, now: Timestamp) -> bool {
        let is_due = self.state == GangState::Waiting && now.since(self.since) >= self.timeout;
        if is_due {
            self.state = GangState::GivenUp;
        }
        is_due
    }

    /// If it is picked: looks whether the commit of these picks has placed it; if not, it waits on. `decisions` are
    /// those of that commit.
    pub fn settle(&mut self, decisions: &Decisions) {
        if self.state == GangState::Picked {
            // They are in the order of the picks.
            let unplaced = decisions.unplaced();
            let is_unplaced = unplaced.binary_search_by_key(&self.first, |it| it.pick).is_ok();
            self.state = if is_unplaced { GangState::Waiting } else { GangState::Placed };
        }
    }
}

impl Chooser {
    /// Picks rooms for those of `gangs` that wait, each for all its tasks or for none of them, in their order; what one
    /// takes isn't there for the next, nor what `picks` has already. Gangs whose time is over at `now` are given up
    /// instead. Returns the number of gangs that were picked: [settle](Gang::settle) them after the commit.
    ///
    /// The tasks of each gang take turns as in [`Chooser::round_robin`], beginning with the first room. O(rooms) for
    /// each gang, besides its tasks.
    pub fn gangs(
        &mut self,
        rooms: &[Room],
        gangs: &mut [Gang],
        now: Timestamp,
        picks: &mut Picks,
    ) -> usize {
        let (mut left, mut members) =
            (std::mem::take(&mut self.before), std::mem::take(&mut self.members));
        left.clear();
        left.extend_from_slice(rooms);
        for pick in picks.iter() {
            if let Some(room) = left.get_mut(pick.room as usize) {
                // A pick that doesn't fit is left out by the commit.
                let _ = room.take(&pick.task);
            }
        }
        let mut picked = 0;
        for gang in gangs {
            if gang.give_up(now) || gang.state != GangState::Waiting {
                continue;
            }
            members.clear();
            self.in_turn(&left, gang.tasks.iter(), |room, task| members.push((room, *task)));
            if members.len() == gang.tasks.len() {
                gang.first = picks.len() as u32;
                gang.state = GangState::Picked;
                picks.push_gang(&members);
                std::mem::swap(&mut left, &mut self.left);
                picked += 1;
            }
        }
        (self.before, self.members) = (left, members);
        picked
    }
}
