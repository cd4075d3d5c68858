//! [`AgentPauses`]: agents that don't start what they are given, such as one without room on its disk, or without the
//! program of hosts: each gets no tasks for a while, the longer the more often that happens in a row.

use std::collections::HashMap;
use std::time::Duration;

use super::host_ledger::HostLedger;
use super::undecided_ends::{DecidedTask, TaskStart, UndecidedEnds};
use crate::kernel::{ResourceSums, Room, Rooms};
use crate::status::{ProcessReport, TaskState, UpdateReason};
use crate::time::Timestamp;

/// The first pause of an agent. Each further one is twice as long as the one before.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How often the host of an agent must have failed before it ran, in a row, to count as one that never will.
const HOST_FAILURES_MAX: u32 = 3;
/// How often a task that is [rejected](TaskStart::Rejected) in a host is to be put back at most: its next host may be
/// gone as well, but the task may also be at fault itself.
pub const REJECTIONS_MAX: u32 = 3;

/// The agents of a framework that places tasks, as far as they don't start what they are given: each has a pause from
/// tasks, of 1 s at first, which doubles up to 60 s as long as it starts nothing.
///
/// A framework that is a [`TaskChooser`](super::TaskChooser) and an [`Observer`](super::Observer) keeps one behind its
/// lock, beside the [ledger](HostLedger) of its hosts; [`WorkQueue`](super::WorkQueue) has one of its own:
///
/// | where | what |
/// |---|---|
/// | `choose` | [`open_rooms`](AgentPauses::open_rooms), in which it picks |
/// | something runs | [`started`](AgentPauses::started) |
/// | a task has ended that hadn't run | [`start_of`](AgentPauses::start_of): if it was never started, it is put back, and its agent has [refused](AgentPauses::refused) it; so if it was [rejected](TaskStart::Rejected), [`REJECTIONS_MAX`] times at most; if that is undecided, its end is kept |
/// | something has begun a pause | [`take_new_pause`](AgentPauses::take_new_pause), to tell it |
/// | a host has ended or was given up | [`host_ended`](AgentPauses::host_ended), before [`HostLedger::noticed`] removes the host |
/// | an agent is lost | [`agent_lost`](AgentPauses::agent_lost) |
/// | after both, after a host runs, and now and then | [`take_decided`](AgentPauses::take_decided), for the ends that are kept |
/// | after a host has ended, if no task is in flight | [`no_host_runs`](AgentPauses::no_host_runs): if so, tasks that wait are to fail |
/// | the engine has ended, or the framework stops | [`take_undecided`](AgentPauses::take_undecided), for those that are kept still |
#[derive(Debug, Default)]
pub struct AgentPauses {
    /// Those that have pauses, or had some and have started nothing since.
    agents: HashMap<String, AgentPause>,
    /// The agents that had room for a task, and when they had it last, as long as a first host is awaited.
    seen: HashMap<String, Timestamp>,
    /// Tasks run in hosts, and none has run yet.
    awaits_host: bool,
    /// The tasks of which it isn't known whether they had begun.
    ends: UndecidedEnds,
}

/// The end of a host, or that it was given up.
#[derive(Clone, Copy, Debug)]
pub struct EndedHost<'a> {
    /// Its tag.
    pub tag: u64,
    /// Its agent.
    pub agent_id: &'a str,
    /// What its last update says, if it had not run.
    pub end: Option<UnstartedEnd>,
    /// The message of that update.
    pub why: &'a str,
    /// When that was told.
    pub at: Timestamp,
}

/// How an executor has ended that had not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnstartedEnd {
    /// Its agent or its cluster has dropped it, or had nothing left for it.
    Dropped,
    /// It is gone with its host.
    Gone,
    /// The cluster has rejected it (`TASK_ERROR`), as if it asks for more than there is.
    Rejected,
    /// It has failed, also if its start has.
    Failed,
}

impl UnstartedEnd {
    /// What the last update of an executor that had not run says; `None` if it was ended on request, or may have run.
    #[must_use]
    pub fn of(
        state: TaskState,
        reason: UpdateReason,
        process: Option<&ProcessReport>,
    ) -> Option<UnstartedEnd> {
        use UpdateReason::{AgentDraining, AgentRemoved, InvalidOffers, Preempted, Reconciliation};
        match (state, reason) {
            (_, Preempted | AgentDraining) | (TaskState::Killed | TaskState::Finished, _) => None,
            (TaskState::Dropped, _) | (_, InvalidOffers) => Some(UnstartedEnd::Dropped),
            // It may have run unheard, while its agent was away.
            (TaskState::Gone, Reconciliation) | (_, AgentRemoved) => None,
            (TaskState::Gone, _) => Some(UnstartedEnd::Gone),
            _ if process.is_some_and(|it| it.is_agent_exhausted) => Some(UnstartedEnd::Dropped),
            // The last that the cluster knows of it: that it ran may be told later, or was told to a former run.
            (_, Reconciliation) => None,
            (TaskState::Error, _) => Some(UnstartedEnd::Rejected),
            (TaskState::Failed, _) => Some(UnstartedEnd::Failed),
            _ => None,
        }
    }
}

/// What is known of an agent that has not started something.
#[derive(Debug, Default)]
struct AgentPause {
    /// How many pauses it has had in a row.
    count: u32,
    /// How many hosts have failed there in a row before they ran.
    host_failures: u32,
    until: Timestamp,
    /// The present pause, until it is told.
    untold: Option<Duration>,
    why: String,
}

impl AgentPauses {
    /// The pauses of a framework whose tasks run in hosts, of which none has run yet. Those of one without hosts are
    /// [`AgentPauses::default`].
    #[must_use]
    pub fn awaiting_hosts() -> AgentPauses {
        AgentPauses { awaits_host: true, ..AgentPauses::default() }
    }

    /// An agent has not started a task or a host. It has a pause from now on, unless it has one.
    pub fn refused(&mut self, agent_id: &str, why: &str, now: Timestamp) {
        let agent = self.agents.entry(agent_id.to_owned()).or_default();
        if now < agent.until {
            return;
        }
        why.clone_into(&mut agent.why);
        let pause = PAUSE_MIN.saturating_mul(1 << agent.count.min(16)).min(PAUSE_MAX);
        agent.count = agent.count.saturating_add(1);
        agent.until = now.plus(pause);
        agent.untold = Some(pause);
    }

    /// Whether anything of a task has run that has ended so. To be asked once, before the task leaves its host in the
    /// ledger, and only if the task has not been told as running.
    ///
    /// Reports about a host and about its tasks may come in any order, as on Mesos. So if a task is gone with a host
    /// that is told neither as running nor as ended yet, it is [undecided](TaskStart::Undecided) until one of these is
    /// told. Until then the ledger doesn't have the host end as idle.
    ///
    /// Nothing has run of a task either that is [rejected](TaskStart::Rejected) in a host that it has joined, rather
    /// than brought: the host may have ended before the framework was told, so that its agent has too little for both.
    /// Since the task may be at fault itself, the framework counts how often that happens to it. What is rejected more
    /// than [`REJECTIONS_MAX`] times has failed.
    #[must_use]
    pub fn start_of(
        &mut self,
        hosts: Option<&mut HostLedger>,
        tag: u64,
        end: Option<UnstartedEnd>,
        now: Timestamp,
    ) -> TaskStart {
        match (end, hosts) {
            (Some(UnstartedEnd::Dropped), _) => TaskStart::Never,
            (Some(UnstartedEnd::Rejected), Some(hosts)) if hosts.has_joined(tag) => {
                TaskStart::Rejected
            }
            (Some(UnstartedEnd::Gone), Some(hosts)) => self.ends.start_of(hosts, tag, now),
            _ => TaskStart::Possible,
        }
    }

    /// The tasks that were undecided and aren't any more, each once: their hosts have run, have ended or were given up,
    /// their agents are lost, or 60 s have gone by. To be called after the [ledger](HostLedger) knows it.
    #[must_use]
    pub fn take_decided(&mut self, hosts: &HostLedger, now: Timestamp) -> Vec<DecidedTask> {
        self.ends.take_decided(hosts, now)
    }

    /// The tags of the tasks that are undecided.
    #[cfg(feature = "simulated")]
    pub(super) fn undecided(&self) -> impl Iterator<Item = u64> {
        self.ends.tags()
    }

    /// All tasks that are undecided, which may have run: nothing is reported about their hosts after this.
    #[must_use]
    pub fn take_undecided(&mut self) -> Vec<DecidedTask> {
        self.ends.take_all()
    }

    /// A host has ended, or was given up, and is removed from the ledger. Returns whether it had been asked to end, or
    /// is none.
    pub fn host_ended(&mut self, hosts: &mut HostLedger, ended: EndedHost<'_>) -> bool {
        let EndedHost { tag, agent_id, end, why, at } = ended;
        let never_ran = hosts.has_run(tag) == Some(false);
        // Of an end of a kind that isn't named here, the tasks may have begun.
        if never_ran
            && let Some(UnstartedEnd::Dropped | UnstartedEnd::Failed | UnstartedEnd::Rejected) = end
        {
            self.ends.host_never_ran(tag);
        }
        let was_asked = hosts.remove(tag);
        match end {
            _ if was_asked || !never_ran => {}
            Some(UnstartedEnd::Failed | UnstartedEnd::Rejected) => {
                self.host_failed(agent_id, why, at);
            }
            Some(UnstartedEnd::Dropped) => self.refused(agent_id, why, at),
            Some(UnstartedEnd::Gone) | None => {}
        }
        was_asked
    }

    /// The host of an agent has failed before it ran.
    fn host_failed(&mut self, agent_id: &str, why: &str, now: Timestamp) {
        self.refused(agent_id, why, now);
        if self.awaits_host {
            // While its host was being started the agent had no room, for however long that took.
            let seen = self.seen.entry(agent_id.to_owned()).or_insert(now);
            *seen = now.max(*seen);
        }
        if let Some(agent) = self.agents.get_mut(agent_id) {
            agent.host_failures = agent.host_failures.saturating_add(1);
            // What its tasks are told of it afterwards says less.
            why.clone_into(&mut agent.why);
        }
    }

    /// An agent has started a task or a host: its next pause is a first one. The present one goes on.
    pub fn started(&mut self, agent_id: &str, is_host: bool) {
        if is_host && self.awaits_host {
            (self.awaits_host, self.seen) = (false, HashMap::new());
        }
        if let Some(agent) = self.agents.get_mut(agent_id) {
            (agent.count, agent.host_failures) = (0, 0);
        }
    }

    /// The length of the pause that an agent has; `None` if it has none, or if it was taken before.
    pub fn take_new_pause(&mut self, agent_id: &str) -> Option<Duration> {
        self.agents.get_mut(agent_id)?.untold.take()
    }

    /// These rooms of a proposal without those of agents that have a pause, which stay in their places and are empty;
    /// `None` if no agent has a pause, so that `list` holds. As long as a first host is awaited, it notes which agents
    /// have room for a task that waits, as `is_wanted` says of a room.
    pub fn open_rooms(
        &mut self,
        rooms: &Rooms<'_>,
        list: &[Room],
        is_wanted: impl Fn(&Room) -> bool,
        now: Timestamp,
    ) -> Option<Vec<Room>> {
        if self.awaits_host {
            for room in list.iter().filter(|room| room.tasks() > 0 && is_wanted(room)) {
                let Some(offer) = rooms.offer(room) else { continue };
                match self.seen.get_mut(offer.agent_id) {
                    Some(seen) => *seen = now,
                    None => drop(self.seen.insert(offer.agent_id.to_owned(), now)),
                }
            }
        }
        // The pauses of those that have started something again are over.
        self.agents.retain(|_, agent| agent.count > 0 || now < agent.until);
        if self.agents.values().all(|agent| agent.until <= now) {
            return None;
        }
        let is_paused = |room: &Room| {
            let agent = rooms.offer(room).and_then(|offer| self.agents.get(offer.agent_id));
            agent.is_some_and(|agent| now < agent.until)
        };
        let open = |room: &Room| match is_paused(room) {
            true => Room::new(room.offer(), ResourceSums::NONE, 0),
            false => *room,
        };
        Some(list.iter().map(open).collect())
    }

    /// An agent is lost: it isn't waited for any more, nor are the ends of its hosts.
    pub fn agent_lost(&mut self, agent_id: &str) {
        self.ends.agent_lost(agent_id);
        self.seen.remove(agent_id);
        self.agents.remove(agent_id);
    }

    /// Why no host will run: none has, and on each agent that had room for a task within the last minute several have
    /// failed in a row. `None` if one may.
    #[must_use]
    pub fn no_host_runs(&self, now: Timestamp) -> Option<String> {
        if !self.awaits_host {
            return None;
        }
        let mut why: Option<(&str, &str)> = None;
        // An agent has room in its pauses, too. One that has had none for longer is others'.
        for (id, _) in self.seen.iter().filter(|(_, seen)| now.since(**seen) <= PAUSE_MAX) {
            let agent = self.agents.get(id).filter(|it| it.host_failures >= HOST_FAILURES_MAX)?;
            // That of the first by name, so that it is the same each time.
            if why.is_none_or(|(first, _)| &**id < first) {
                why = Some((id, &agent.why));
            }
        }
        why.map(|(_, why)| format!("no host of tasks has started on any agent: {why}"))
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    /// Goal: pauses grow from 1 s to 60 s, begin again once something starts, and each is told once; what comes in a
    /// pause neither adds to it nor shortens it. Method: refusals at the end of each pause, also several at once; a
    /// start in a pause.
    #[test]
    fn pauses_grow_and_begin_again() {
        let (mut pauses, mut now) = (AgentPauses::default(), Timestamp::ORIGIN);
        let mut seconds = Vec::new();
        for _ in 0..9 {
            pauses.refused("S1", "full", now);
            pauses.refused("S1", "full", now);
            let pause = pauses.take_new_pause("S1").unwrap();
            assert_eq!((pauses.take_new_pause("S1"), pauses.take_new_pause("S2")), (None, None));
            assert_eq!(pauses.agents["S1"].until, now.plus(pause));
            seconds.push(pause.as_secs());
            now = now.plus(pause);
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        pauses.refused("S1", "full", now);
        assert_eq!(pauses.take_new_pause("S1"), Some(PAUSE_MAX));
        pauses.started("S1", false);
        pauses.refused("S1", "full", now);
        assert_eq!(
            (pauses.take_new_pause("S1"), pauses.agents["S1"].until),
            (None, now.plus(PAUSE_MAX))
        );
        now = now.plus(PAUSE_MAX);
        pauses.refused("S1", "full", now);
        assert_eq!(pauses.take_new_pause("S1"), Some(PAUSE_MIN));
    }

    /// Goal: no host is said to run only if each agent with room has failed three times in a row, and none ever ran.
    /// Method: two agents, one after the other, and a third whose room is others' soon; hosts that run.
    #[test]
    fn hosts_that_never_run_are_told() {
        let mut pauses = AgentPauses::awaiting_hosts();
        let at = |seconds| Timestamp::ORIGIN.plus(Duration::from_secs(seconds));
        assert_eq!(pauses.no_host_runs(at(0)), None);
        let seen = [("S1", 300), ("S2", 300), ("S3", 0)];
        pauses.seen.extend(seen.map(|(id, seconds)| (id.to_owned(), at(seconds))));
        for round in 0..3 {
            pauses.host_failed("S1", "not found", at(round * 100));
            assert_eq!(pauses.no_host_runs(at(round * 100)), None);
        }
        (0..3).for_each(|_| pauses.host_failed("S2", "no", at(0)));
        assert_eq!(pauses.no_host_runs(at(60)), None, "the third had room");
        let told = "no host of tasks has started on any agent: not found";
        assert_eq!(pauses.no_host_runs(at(61)).as_deref(), Some(told));
        assert_eq!(pauses.no_host_runs(at(361)), None, "none has room");
        pauses.host_failed("S2", "no", at(361));
        assert_eq!(
            pauses.no_host_runs(at(361)).as_deref(),
            Some("no host of tasks has started on any agent: no")
        );
        pauses.agent_lost("S1");
        assert!(pauses.no_host_runs(at(300)).unwrap().ends_with(": no"));
        pauses.started("S2", true);
        (0..3).for_each(|_| pauses.host_failed("S2", "no", at(0)));
        assert_eq!(pauses.no_host_runs(at(300)), None);
    }
}
