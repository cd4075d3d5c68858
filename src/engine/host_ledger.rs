//! [`HostLedger`]: the hosts of a framework that runs its tasks in hosts, from their picks to their ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::host_idleness::HostIdleness;
use super::notice::Notice;
#[cfg(feature = "simulated")]
use super::views::ledger_view::{HostView, LedgerView, MemberView};
use crate::kernel::choosers::BatchCaps;
use crate::kernel::{
    Change, Hosts, Joined, Pick, Picks, QueuesLeft, ResourceSums, Room, Rooms, Task, TaskHost,
    TaskHostStage,
};
use crate::launch::{Command, Hosting, LaunchContext};
use crate::time::Timestamp;

pub use super::host_terms::HostTerms;

/// The hosts of a framework that runs its tasks in hosts, one on each agent, and which task is in which: what
/// [`Hosts`] says of one agent at one instant, kept from picks to ends.
///
/// A framework that is a [`TaskChooser`](super::TaskChooser), a [`Launcher`](crate::launch::Launcher) and an
/// [`Observer`](super::Observer) keeps one behind its lock, and calls it in each:
///
/// | where | what |
/// |---|---|
/// | `choose` | [`pick`](HostLedger::pick), with a [chooser](crate::choosers) or an order of its own: hosts are added to the picks where there are none |
/// | `unplaced` | [`take_back`](HostLedger::take_back) of each tag |
/// | `killing` | [`ending`](HostLedger::ending): no more tasks join a host that is killed |
/// | `command` | [`command`](HostLedger::command), which is the command of a host; that of a task has [`hosting`](HostLedger::hosting) |
/// | `notice` | [`noticed`](HostLedger::noticed); what hosts that never run mean for it is known to [`AgentPauses`](super::AgentPauses) |
/// | now and then | [`end_idle`](HostLedger::end_idle): the engine is to [kill](super::Engine::kill) these; so it is with hosts and tasks that come back after they were given up ([`Change::Readmitted`]) |
///
/// Hosts are executors with tags of their own, from the first tag on that the ledger is made with; if there are queues,
/// they are in [one](HostTerms::queue). `examples/task_queue.rs` is a whole framework with such hosts.
#[derive(Debug)]
pub struct HostLedger {
    terms: HostTerms,
    hosts: Hosts,
    first_tag: u64,
    /// None once all tags have been given.
    next_tag: Option<u64>,
    /// By tag.
    live: BTreeMap<u64, LiveHost>,
    /// The tags of hosts by agent.
    of_agent: HashMap<String, u64>,
    /// The tasks in hosts, by tag.
    members: HashMap<u64, HostMember>,
    /// The tags of hosts and tasks that were launched, by executor: a tag may be that of several attempts.
    launched: HashMap<String, u64>,
}

#[derive(Debug)]
struct LiveHost {
    host: TaskHost,
    agent_id: String,
    /// Empty before its command is made.
    executor: Arc<str>,
    has_run: bool,
    /// Until when the ends of tasks may wait for the host's own end, as long as it hasn't run.
    decides_until: Timestamp,
    idleness: HostIdleness,
}

impl LiveHost {
    /// Whether its end is to decide about tasks that are gone with it: if it were ended as idle, that would say
    /// nothing.
    fn is_decisive(&self, now: Timestamp) -> bool {
        !self.has_run && now < self.decides_until
    }
}

#[derive(Debug)]
struct HostMember {
    host: TaskHost,
    /// The tag of the host.
    host_tag: u64,
    /// It has joined the host, rather than brought it.
    has_joined: bool,
    /// Empty before its command is made.
    executor: String,
}

impl HostLedger {
    /// A ledger without hosts, whose tags begin at `first_tag`: those of tasks are below. Each host has one of its own;
    /// once they have run out, at [`u64::MAX`], no more hosts are added, and tasks join those that there are.
    #[must_use]
    pub fn new(terms: HostTerms, first_tag: u64) -> HostLedger {
        HostLedger {
            terms,
            hosts: Hosts::new(),
            first_tag,
            next_tag: Some(first_tag),
            live: BTreeMap::new(),
            of_agent: HashMap::new(),
            members: HashMap::new(),
            launched: HashMap::new(),
        }
    }

    /// Whether a tag is that of a host.
    #[must_use]
    pub const fn is_host(&self, tag: u64) -> bool {
        tag >= self.first_tag
    }

    /// What each host takes, in its queue.
    pub(super) fn host_task(&self) -> Task {
        self.terms.task(self.first_tag)
    }

    /// How many hosts there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.live.len() as u64
    }

    /// What all hosts take.
    #[must_use]
    pub fn sums(&self) -> ResourceSums {
        let each = self.terms.sums();
        self.live.values().fold(ResourceSums::NONE, |sum, _| sum.saturating_add(each))
    }

    /// Has `choose` pick tasks for what rooms have for them, as far as queues and caps admit them, and
    /// [groups](HostLedger::group) its picks with the hosts that these need.
    ///
    /// If hosts leave nothing of what was picked, it is called again: with the rooms of hosts that are up alone, and
    /// then with what queues and caps leave beside a host. So a task that the caps admit where a host is, or one that
    /// they admit with its host, isn't held up by one that they don't.
    ///
    /// Gangs are not kept together: of one that `choose` picks some tasks may be left out, of which
    /// [`Gang::settle`](crate::choosers::Gang::settle) knows nothing. A framework with both has [`Hosts`] of its own.
    pub fn pick(
        &mut self,
        rooms: &Rooms<'_>,
        queues: &QueuesLeft,
        caps: BatchCaps,
        picks: &mut Picks,
        mut choose: impl FnMut(&[Room], QueuesLeft, BatchCaps, &mut Picks),
    ) {
        let list = self.rooms_for_tasks(rooms, queues);
        choose(&list, queues.clone(), caps, picks);
        if picks.is_empty() {
            return;
        }
        self.group(rooms, picks, caps, queues.clone());
        if !picks.is_empty() {
            return;
        }
        let is_up = |room: &Room| {
            let offer = rooms.offer(room);
            offer.is_some_and(|it| self.hosts.stage(it.agent_id) == TaskHostStage::Up)
        };
        let up = list.iter().map(|room| if is_up(room) { *room } else { no_room(room) });
        choose(&up.collect::<Vec<Room>>(), queues.clone(), caps, picks);
        self.group(rooms, picks, caps, queues.clone());
        let (mut left, mut caps_left) = (queues.clone(), caps);
        let may_add = left.take(&self.terms.task(0)).is_ok() && caps_left.take(self.terms.sums());
        if picks.is_empty() && may_add {
            choose(&list, left, caps_left, picks);
            self.group(rooms, picks, caps, queues.clone());
        }
    }

    /// What rooms have for tasks: a room of an agent without a host has the host's part less, none if the host's queue
    /// has no room for it or no tag is left, and one whose host is being started or ended has none.
    #[must_use]
    pub fn rooms_for_tasks(&self, rooms: &Rooms<'_>, queues: &QueuesLeft) -> Vec<Room> {
        let may_add = self.next_tag.is_some() && queues.clone().take(&self.terms.task(0)).is_ok();
        let for_tasks = |room: &Room| match self.beside_host(rooms, room) {
            (TaskHostStage::None, _) if !may_add => no_room(room),
            (_, left) => left,
        };
        rooms.list().iter().map(for_tasks).collect()
    }

    /// How far the host of an agent is.
    pub(crate) fn stage(&self, agent_id: &str) -> TaskHostStage {
        self.hosts.stage(agent_id)
    }

    /// What a room has beside its agent's host, of which there may be none yet, whatever the hosts' queue has room for;
    /// and how far that host is.
    pub(super) fn beside_host(&self, rooms: &Rooms<'_>, room: &Room) -> (TaskHostStage, Room) {
        let Some(offer) = rooms.offer(room) else { return (TaskHostStage::Ending, no_room(room)) };
        let stage = self.hosts.stage(offer.agent_id);
        let mut left = *room;
        let has_room = match stage {
            TaskHostStage::Up => true,
            TaskHostStage::None => left.take(&self.terms.task(0)).is_ok(),
            TaskHostStage::Starting | TaskHostStage::Ending => false,
        };
        (stage, if has_room { left } else { no_room(room) })
    }

    /// Has picked tasks join the hosts of their agents, and adds the hosts that there aren't: each in a gang with its
    /// tasks. Leaves out what the caps don't admit, and tasks whose queues have no room beside the hosts: these are
    /// never placed nor returned.
    pub fn group(
        &mut self,
        rooms: &Rooms<'_>,
        picks: &mut Picks,
        mut caps: BatchCaps,
        mut queues: QueuesLeft,
    ) {
        let mut by_room: BTreeMap<u32, Vec<Task>> = BTreeMap::new();
        for Pick { room, task, .. } in picks.iter() {
            by_room.entry(*room).or_default().push(*task);
        }
        picks.clear();
        for (room, tasks) in by_room {
            let offer = rooms.offer_of(room);
            let Some(offer) = offer else { continue };
            let before = (caps, queues.clone());
            let (host, is_first) = match self.hosts.join(offer.agent_id) {
                Joined::First(host) => (host, true),
                Joined::Member(host) => (host, false),
                Joined::Elsewhere => continue,
            };
            let tag =
                if is_first { self.next_tag } else { self.of_agent.get(offer.agent_id).copied() };
            let host_task = self.terms.task(0);
            let mut is_open = tag.is_some()
                && (!is_first || queues.take(&host_task).is_ok() && caps.take(self.terms.sums()));
            // The first task has joined already.
            let mut is_in = true;
            let mut members = Vec::with_capacity(tasks.len() + 1);
            for task in tasks {
                let before = caps;
                if !is_open || !caps.take(task.sums()) {
                    continue;
                }
                if queues.take(&task).is_err() {
                    caps = before;
                    continue;
                }
                is_open = is_in || host.join();
                if !is_open {
                    break;
                }
                is_in = false;
                members.push((room, task));
            }
            let (Some(tag), false) = (tag, members.is_empty()) else {
                (caps, queues) = before;
                let _left = if is_first { host.lost() } else { host.leave() };
                continue;
            };
            if is_first {
                self.add(tag, host.clone(), offer.agent_id);
            }
            for (_, task) in &members {
                let (host, executor, has_joined) = (host.clone(), String::new(), !is_first);
                let member = HostMember { host, host_tag: tag, has_joined, executor };
                self.members.insert(task.tag, member);
            }
            if is_first {
                members.insert(0, (room, self.terms.task(tag)));
                picks.push_gang(&members);
            } else {
                members.iter().for_each(|(room, task)| picks.push(*room, *task));
            }
        }
    }

    fn add(&mut self, tag: u64, host: TaskHost, agent_id: &str) {
        self.next_tag = tag.checked_add(1);
        let agent_id = agent_id.to_owned();
        self.of_agent.insert(agent_id.clone(), tag);
        let (executor, idleness) = (Arc::default(), HostIdleness::default());
        let (has_run, decides_until) = (false, Timestamp::ORIGIN);
        let live = LiveHost { host, agent_id, executor, has_run, decides_until, idleness };
        self.live.insert(tag, live);
    }

    /// A pick was not placed. Returns whether it is a task.
    pub fn take_back(&mut self, tag: u64) -> bool {
        let is_task = !self.is_host(tag);
        if is_task {
            self.leave(tag);
        } else {
            let _was_asked = self.remove(tag);
        }
        is_task
    }

    /// The command of a host that is about to be launched; `None` if it is a task that is.
    pub fn command(&mut self, context: &LaunchContext<'_>) -> Option<Command> {
        let (tag, executor) = (context.tag?, context.executor);
        self.launched(tag, executor);
        if !self.is_host(tag) {
            return None;
        }
        let command = Command::new(self.terms.argv.clone()).with_hosting(Hosting::Host);
        Some(match &self.terms.setup {
            Some(setup) => command.with_setup(Arc::clone(setup)),
            None => command,
        })
    }

    fn launched(&mut self, tag: u64, executor: &str) {
        if let Some(live) = self.live.get_mut(&tag) {
            live.executor = executor.into();
        } else if let Some(member) = self.members.get_mut(&tag) {
            executor.clone_into(&mut member.executor);
        } else {
            return;
        }
        self.launched.insert(executor.to_owned(), tag);
    }

    /// How a task is launched that was picked: in the host that it has brought or joined.
    ///
    /// If that has ended since, it is launched in none: not in its successor, of which it isn't a member, and not in it
    /// again, since Mesos would start it anew. The launch is refused, and the task waits again: see
    /// [`AgentPauses`](super::AgentPauses).
    #[must_use]
    pub fn hosting(&self, tag: u64) -> Hosting {
        let host = self.members.get(&tag).and_then(|member| self.live.get(&member.host_tag));
        let host = host.filter(|host| !host.executor.is_empty());
        Hosting::In(host.map_or_else(|| "none".into(), |host| Arc::clone(&host.executor)))
    }

    /// Follows a notice of the engine, whatever it is about: hosts that run, end or are given up, and tasks that have
    /// left theirs. An executor that comes back after it was given up isn't in the ledger any more.
    pub fn noticed(&mut self, notice: &Notice) {
        match notice {
            Notice::Placed(placed) => {
                placed.tag.into_iter().for_each(|tag| self.launched(tag, &placed.executor));
            }
            // One that was unreachable before it ran may be back.
            Notice::Updated { executor, change: Change::Running | Change::Returned, .. } => {
                let tag = self.launched.get(executor).copied();
                let _is_host = tag.is_some_and(|tag| self.up(tag));
            }
            Notice::Updated { executor, change: Change::Ended(_), .. }
            | Notice::GivenUp { executor } => {
                let tag = self.launched.get(executor).copied();
                let _is_task = tag.is_some_and(|tag| self.take_back(tag));
            }
            _ => {}
        }
    }

    /// A task has ended, was given up, or wasn't placed.
    pub fn leave(&mut self, tag: u64) {
        if let Some(member) = self.members.remove(&tag) {
            let _tasks = member.host.leave();
            self.launched.remove(&member.executor);
        }
    }

    /// A host runs: other batches may use it. Returns whether there is such a host.
    pub fn up(&mut self, tag: u64) -> bool {
        let Some(host) = self.live.get_mut(&tag) else { return false };
        host.has_run = true;
        host.host.up();
        true
    }

    /// Whether a host has run; `None` if there is no such host, or not any more.
    #[must_use]
    pub fn has_run(&self, tag: u64) -> Option<bool> {
        self.live.get(&tag).map(|host| host.has_run)
    }

    /// The agent of a host; `None` if there is no such host, or not any more.
    pub(super) fn agent_of(&self, tag: u64) -> Option<&str> {
        self.live.get(&tag).map(|host| &*host.agent_id)
    }

    /// The ends of tasks wait for that of this host until then, if it doesn't run before. It isn't idle until then.
    pub(super) fn keep_deciding(&mut self, tag: u64, until: Timestamp) {
        if let Some(host) = self.live.get_mut(&tag) {
            host.decides_until = until;
        }
    }

    /// The tag of the host that this executor is, and the agent that it is on; `None` if it is none, or not any more.
    #[must_use]
    pub fn host(&self, executor: &str) -> Option<(u64, &str)> {
        let tag = *self.launched.get(executor)?;
        Some((tag, &self.live.get(&tag)?.agent_id))
    }

    /// The tag of the host that a task is in, which may have ended, until the task has left it.
    #[must_use]
    pub fn host_of(&self, tag: u64) -> Option<u64> {
        self.members.get(&tag).map(|member| member.host_tag)
    }

    /// Whether a task has joined its host, rather than brought it, until it has left it.
    pub(super) fn has_joined(&self, tag: u64) -> bool {
        self.members.get(&tag).is_some_and(|member| member.has_joined)
    }

    /// A host is about to be killed: no more tasks join it. Nothing if the tag is that of a task.
    pub fn ending(&self, tag: u64) {
        let _is_first = self.live.get(&tag).map(|host| host.host.end());
    }

    /// A host has ended, was given up, or wasn't placed. Returns whether it had been asked to end, or is none.
    pub fn remove(&mut self, tag: u64) -> bool {
        let Some(LiveHost { host, agent_id, executor, .. }) = self.live.remove(&tag) else {
            return true;
        };
        self.launched.remove(&*executor);
        if self.of_agent.get(&agent_id) == Some(&tag) {
            self.of_agent.remove(&agent_id);
        }
        let was_asked = host.stage() == TaskHostStage::Ending;
        let _tasks = host.lost();
        was_asked
    }

    /// Has the hosts that were idle for long enough take no more tasks. Returns their executors, which are to be ended.
    ///
    /// A host isn't idle while an [undecided](super::TaskStart::Undecided) end of a task may wait for the host's own
    /// end, for a minute at most.
    #[must_use]
    pub fn end_idle(&mut self, now: Timestamp) -> Vec<String> {
        self.end_idle_after(now, Duration::MAX)
    }

    /// [`HostLedger::end_idle`], for hosts that were idle for as long as `timeout`, if that is shorter than theirs: if
    /// tasks wait for what such hosts take.
    #[must_use]
    pub fn end_idle_after(&mut self, now: Timestamp, timeout: Duration) -> Vec<String> {
        let timeout = timeout.min(self.terms.idle_timeout);
        let mut ended = Vec::new();
        // Before its launch is sent, a host has no name to be ended by.
        for host in self.live.values_mut().filter(|host| !host.executor.is_empty()) {
            if host.is_decisive(now) {
                continue;
            }
            if host.idleness.end_after(timeout, &host.host, now) {
                ended.push(host.executor.to_string());
            }
        }
        ended
    }

    /// What it holds.
    #[cfg(feature = "simulated")]
    pub(crate) fn view(&self) -> LedgerView<'_> {
        let hosts = self.live.iter().map(|(tag, live)| HostView {
            tag: *tag,
            agent_id: &live.agent_id,
            executor: &live.executor,
            stage: live.host.stage(),
            tasks: live.host.tasks(),
        });
        let members = self.members.iter().map(|(tag, member)| MemberView {
            tag: *tag,
            host_tag: member.host_tag,
            executor: &member.executor,
        });
        let (of_agent, launched) = (&self.of_agent, &self.launched);
        LedgerView { hosts: hosts.collect(), members: members.collect(), of_agent, launched }
    }
}

/// The room, in its place, with nothing in it.
fn no_room(room: &Room) -> Room {
    Room::new(room.offer(), ResourceSums::NONE, 0)
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::config::{Config, ExecutorCores, Queue, QueueId};
    use crate::ids::IdScheme;
    use crate::kernel::choosers::{Chooser, WaitingTasks};
    use crate::kernel::{Decisions, Kernel};
    use crate::offer::{Offer, Resource};
    use crate::resources::{Gpus, Mebibytes, MilliCpus};
    use crate::status::{Fate, TaskState, UpdateReason};

    const NOW: Timestamp = Timestamp::ORIGIN;
    const FIRST_TAG: u64 = 100;

    fn ledger() -> HostLedger {
        let mut terms = HostTerms::new(vec!["host".to_owned()]);
        (terms.cores, terms.memory) = (MilliCpus::from_millis(500), Mebibytes::new(10));
        HostLedger::new(terms, FIRST_TAG)
    }

    fn caps(executors: u64, millis: u64) -> BatchCaps {
        let (cores, memory) = (MilliCpus::from_millis(millis), Mebibytes::new(1000));
        BatchCaps::new(executors, ResourceSums { cores, memory, gpus: Gpus::ZERO })
    }

    /// Offers two cores of one agent, picks tasks of 0.4 cores with these tags as far as they fit, and commits them.
    /// Returns the tags that were picked, as gangs and singles, and those that were placed.
    fn batch(
        ledger: &mut HostLedger,
        kernel: &Kernel,
        tags: &[u64],
        caps: BatchCaps,
    ) -> (Vec<u64>, Vec<u64>) {
        let resources = [Resource::scalar("cpus", 2.0), Resource::scalar("mem", 100.0)];
        let offers = [Offer::new("O", "S1", "agent-1", &resources, &[])];
        let (mut handler, mut decisions) = (kernel.handler(), Decisions::new());
        let rooms = handler.propose(&offers, NOW);
        let (mut picks, mut chooser) = (Picks::new(), Chooser::new());
        let task = |tag: &u64| Task::new(*tag, MilliCpus::from_millis(400), Mebibytes::new(10));
        let tasks: Vec<Task> = tags.iter().map(task).collect();
        ledger.pick(&rooms, &rooms.queues_left(), caps, &mut picks, |rooms, _, _, picks| {
            chooser.round_robin(rooms, &tasks, picks);
        });
        let picked: Vec<u64> = picks.iter().map(|pick| pick.task.tag).collect();
        rooms.commit(&picks, NOW, &mut decisions);
        let placed = decisions.accepts().flat_map(|accept| accept.tasks().map(|(tag, _)| tag));
        (picked, placed.collect())
    }

    fn kernel(cap: Option<MilliCpus>) -> Kernel {
        let config = Config::builder()
            .executor_cores(ExecutorCores::Fixed(MilliCpus::from_millis(400)))
            .executor_memory(Mebibytes::new(10))
            .memory_overhead(Some(Mebibytes::ZERO))
            .core_cap(cap);
        Kernel::new(config.build().unwrap(), IdScheme::unique("hosts", 1).unwrap())
    }

    /// Goal: an agent without a host has no room for tasks while the hosts' queue is full, and yet what it has for them
    /// is seen. Method: a queue with room for one host, which the first agent's batch brings; the room of a second one.
    #[test]
    fn a_full_queue_of_hosts_hides_no_agent() {
        let hosts = Queue::new("hosts").max_cores(Some(MilliCpus::from_millis(500)));
        let config = Config::builder()
            .smallest_task(MilliCpus::from_millis(400), Mebibytes::new(10))
            .queue(hosts);
        let kernel = Kernel::new(config.build().unwrap(), IdScheme::unique("hosts", 1).unwrap());
        let terms = HostTerms { queue: QueueId::new(1), ..ledger().terms };
        let mut ledger = HostLedger::new(terms, FIRST_TAG);
        assert_eq!(batch(&mut ledger, &kernel, &[1], caps(9, 9000)).1, [100, 1]);
        let resources = [Resource::scalar("cpus", 8.0), Resource::scalar("mem", 100.0)];
        let offers = [Offer::new("O", "S2", "agent-2", &resources, &[])];
        let mut handler = kernel.handler();
        let rooms = handler.propose(&offers, NOW);
        let for_tasks = ledger.rooms_for_tasks(&rooms, &rooms.queues_left());
        let (_, beside) = ledger.beside_host(&rooms, &rooms.list()[0]);
        assert_eq!((for_tasks[0].tasks(), beside.left().cores.millis()), (0, 7500));
        rooms.commit(&Picks::new(), NOW, &mut Decisions::new());
    }

    /// Goal: the first batch of an agent brings its host, which takes room and caps; the next ones wait until it runs,
    /// and need no other. Method: batches before and after the host runs, and after it has ended; narrow caps.
    #[test]
    fn the_first_batch_brings_the_host() {
        let (mut ledger, kernel) = (ledger(), kernel(None));
        let first = batch(&mut ledger, &kernel, &[1, 2, 3, 4], caps(9, 9000));
        // 2 cores, less 0.5 of the host: three tasks.
        assert_eq!(first, (vec![100, 1, 2, 3], vec![100, 1, 2, 3]));
        assert_eq!((ledger.count(), ledger.sums().cores.millis()), (1, 500));
        assert_eq!(batch(&mut ledger, &kernel, &[4], caps(9, 9000)).0, [] as [u64; 0]);
        ledger.up(100);
        let next = batch(&mut ledger, &kernel, &[4, 5, 6, 7, 8, 9], caps(9, 9000));
        assert_eq!(next.1, [4, 5, 6, 7, 8]);
        assert_eq!(batch(&mut ledger, &kernel, &[9, 10], caps(1, 9000)).1, [9]);
        assert!(!ledger.remove(100), "it ended by itself");
        // The caps leave room for the host and one task, and then for no task.
        assert_eq!(batch(&mut ledger, &kernel, &[11, 12], caps(9, 900)).1, [101, 11]);
        ledger.ending(101);
        assert!(ledger.remove(101), "it was asked to end");
        assert_eq!(batch(&mut ledger, &kernel, &[13], caps(9, 800)).0, [] as [u64; 0]);
        assert_eq!(batch(&mut ledger, &kernel, &[13], caps(1, 9000)).0, [] as [u64; 0]);
        assert_eq!(ledger.count(), 0);
    }

    /// Goal: where caps leave too little for another host, tasks start in those that are up, and where they leave too
    /// little for a task and its host, a smaller one starts. Method: offers of an agent without a host and of one with
    /// one, in this order, with room for one executor, and for the cores of one task; then an agent without a host
    /// alone, and two tasks in their order.
    #[test]
    fn hosts_that_caps_do_not_admit_hold_up_no_task() {
        let resources = [Resource::scalar("cpus", 2.0), Resource::scalar("mem", 100.0)];
        let offer = |agent| Offer::new(agent, agent, "host", &resources, &[]);
        for (offers, tasks, caps, expected) in [
            (vec!["S2", "S1"], vec![400], caps(1, 9000), vec![10]),
            (vec!["S2", "S1"], vec![400], caps(9, 400), vec![10]),
            (vec!["S2"], vec![1000, 400], caps(9, 1000), vec![101, 11]),
            (vec!["S2"], vec![1000], caps(9, 1000), vec![]),
            (vec!["S2"], vec![400], caps(9, 400), vec![]),
        ] {
            let (mut ledger, kernel) = (ledger(), kernel(None));
            batch(&mut ledger, &kernel, &[1], BatchCaps::default());
            ledger.up(100);
            let mut waiting = WaitingTasks::new();
            for (millis, tag) in tasks.into_iter().zip(10..) {
                let task = Task::new(tag, MilliCpus::from_millis(millis), Mebibytes::new(10));
                waiting.insert(0, &task);
            }
            let offers: Vec<Offer<'_>> = offers.into_iter().map(offer).collect();
            let (mut handler, mut picks, mut chooser) =
                (kernel.handler(), Picks::new(), Chooser::new());
            let rooms = handler.propose(&offers, NOW);
            ledger.pick(
                &rooms,
                &rooms.queues_left(),
                caps,
                &mut picks,
                |list, queues, caps, picks| {
                    chooser.round_robin_waiting(list, waiting.admitted(queues, caps), picks);
                },
            );
            let picked: Vec<u64> = picks.iter().map(|pick| pick.task.tag).collect();
            assert_eq!(picked, expected, "{caps:?}");
            rooms.commit(&Picks::new(), NOW, &mut Decisions::new());
        }
    }

    /// Goal: no task is placed without its host, nor a host without a task, if the kernel's own cap is narrower than
    /// the framework knew. Method: a cap of a host, one of a host and a task.
    #[test]
    fn host_and_tasks_are_placed_together() {
        let (mut one, narrow) = (ledger(), kernel(Some(MilliCpus::from_millis(1000))));
        let (picked, placed) = batch(&mut one, &narrow, &[1, 2, 3], caps(9, 9000));
        assert_eq!((picked.len(), placed), (4, vec![]));
        assert!(!one.remove(100));
        assert_eq!(batch(&mut one, &narrow, &[1, 2, 3], caps(9, 900)).1, [101, 1]);
    }

    /// Goal: a host is ended once it has been idle for its time-out, not sooner. Method: a task that ends, and one that
    /// joins and leaves between two looks.
    #[test]
    fn idle_hosts_end_after_their_time() {
        let (mut ledger, kernel) = (ledger(), kernel(None));
        let at = |seconds| NOW.plus(Duration::from_secs(seconds));
        batch(&mut ledger, &kernel, &[1], caps(9, 9000));
        launch(&mut ledger, 100, "hosts-1-0.0");
        ledger.up(100);
        assert_eq!(ledger.hosting(1), Hosting::In("hosts-1-0.0".into()));
        assert_eq!(ledger.end_idle(at(100)), [] as [&str; 0]);
        let host = ledger.live[&100].host.clone();
        assert_eq!(host.leave(), Some(0));
        assert_eq!(ledger.end_idle(at(110)), [] as [&str; 0]);
        assert!(host.join() && host.leave() == Some(0));
        assert_eq!(ledger.end_idle(at(170)), [] as [&str; 0]);
        assert_eq!(ledger.end_idle(at(229)), [] as [&str; 0]);
        assert_eq!(ledger.end_idle(at(230)), ["hosts-1-0.0"]);
        assert_eq!(ledger.end_idle(at(300)), [] as [&str; 0]);
    }

    /// Goal: a host that hasn't been launched isn't ended, for its executor has no name yet. Method: its only task is
    /// taken back before the launch; a look without patience before the launch, and one after it.
    #[test]
    fn a_host_without_a_name_is_not_ended() {
        let (mut ledger, kernel) = (ledger(), kernel(None));
        batch(&mut ledger, &kernel, &[1], caps(9, 9000));
        assert!(ledger.take_back(1));
        assert_eq!(ledger.end_idle_after(NOW, Duration::ZERO), [] as [&str; 0]);
        launch(&mut ledger, 100, "h");
        assert_eq!(ledger.end_idle_after(NOW, Duration::ZERO), ["h"]);
    }

    /// Goal: if all tags of hosts have been given, no more hosts are added, and tasks join those that there are.
    /// Method: a ledger with one tag; a batch before and after its host has ended.
    #[test]
    fn tags_may_run_out() {
        let (mut ledger, kernel) = (HostLedger::new(ledger().terms, u64::MAX), kernel(None));
        assert_eq!(batch(&mut ledger, &kernel, &[1], caps(9, 9000)).1, [u64::MAX, 1]);
        ledger.up(u64::MAX);
        assert_eq!(batch(&mut ledger, &kernel, &[2], caps(9, 9000)).1, [2]);
        assert!(!ledger.remove(u64::MAX));
        assert_eq!(batch(&mut ledger, &kernel, &[3], caps(9, 9000)).0, [] as [u64; 0]);
        assert_eq!((ledger.count(), ledger.hosts.stage("S1")), (0, TaskHostStage::None));
    }

    /// Launches a host or a task as this executor. Returns whether it is a host.
    fn launch(ledger: &mut HostLedger, tag: u64, executor: &str) -> bool {
        let (cores, memory) = (MilliCpus::from_cores(1), Mebibytes::new(1));
        let mut context = LaunchContext::new(executor, "S1", "agent-1", cores, memory);
        context.tag = Some(tag);
        let command = ledger.command(&context);
        assert!(command.iter().all(|command| command.hosting == Hosting::Host));
        command.is_some()
    }

    /// Goal: a task is launched in the host that it has joined; in none if that has ended since, and never in the next
    /// one of its agent. Method: a task that joins a host, the end of this host, and the next one, before its launch
    /// and after it; a task that wasn't picked.
    #[test]
    fn a_task_is_launched_in_the_host_that_it_has_joined() {
        let (mut ledger, kernel) = (ledger(), kernel(None));
        let of = |ledger: &HostLedger| [1, 2, 3].map(|tag| ledger.hosting(tag));
        let hosts = |names: [&str; 3]| names.map(|name| Hosting::In(name.into()));
        batch(&mut ledger, &kernel, &[1], caps(9, 9000));
        launch(&mut ledger, 100, "h-1");
        ledger.up(100);
        assert_eq!(batch(&mut ledger, &kernel, &[2], caps(9, 9000)).1, [2]);
        assert_eq!(of(&ledger), hosts(["h-1", "h-1", "none"]));
        ledger.remove(100);
        assert_eq!(of(&ledger), hosts(["none"; 3]));
        assert_eq!(batch(&mut ledger, &kernel, &[3], caps(9, 9000)).1, [101, 3]);
        assert_eq!(of(&ledger), hosts(["none"; 3]));
        launch(&mut ledger, 101, "h-2");
        assert_eq!(of(&ledger), hosts(["none", "none", "h-2"]));
    }

    fn updated(ledger: &mut HostLedger, executor: &str, change: Change) {
        ledger.noticed(&Notice::Updated {
            executor: executor.to_owned(),
            tag: None,
            state: TaskState::Running,
            change,
            message: String::new(),
            reported_at: None,
            reason: UpdateReason::Other,
            process: None,
        });
    }

    /// Goal: notices alone keep the ledger: a host takes tasks once it runs, each end counts once, and what is said of
    /// an attempt that was given up says nothing of the next one of its task, nor of the next host. Method: two tasks
    /// in a host, of which one ends and one is given up and starts again; then the host is given up and replaced; all
    /// of the former ones end late.
    #[test]
    fn notices_keep_the_ledger() {
        let (mut ledger, kernel) = (ledger(), kernel(None));
        let ended = Change::Ended(Fate::Lost);
        let tasks = |ledger: &HostLedger| {
            ledger.live.values().map(|host| host.host.tasks()).collect::<Vec<_>>()
        };
        assert_eq!(batch(&mut ledger, &kernel, &[1, 2], caps(9, 9000)).1, [100, 1, 2]);
        assert!(launch(&mut ledger, 100, "h-1"));
        assert!(!launch(&mut ledger, 1, "t-1") && !launch(&mut ledger, 2, "t-2"));
        updated(&mut ledger, "t-1", Change::Running);
        assert_eq!(batch(&mut ledger, &kernel, &[3], caps(9, 9000)).0, [] as [u64; 0]);
        updated(&mut ledger, "h-1", Change::Running);
        updated(&mut ledger, "t-1", ended);
        updated(&mut ledger, "t-1", ended);
        assert_eq!(tasks(&ledger), [1]);
        ledger.noticed(&Notice::GivenUp { executor: "t-2".to_owned() });
        assert_eq!(tasks(&ledger), [0]);
        assert_eq!(batch(&mut ledger, &kernel, &[2], caps(9, 9000)).1, [2]);
        updated(&mut ledger, "t-2", ended);
        assert_eq!(tasks(&ledger), [1], "its next attempt is in the host");
        launch(&mut ledger, 2, "t-3");
        updated(&mut ledger, "t-2", ended);
        assert_eq!(tasks(&ledger), [1]);

        ledger.noticed(&Notice::GivenUp { executor: "h-1".to_owned() });
        assert_eq!(ledger.count(), 0);
        assert_eq!(batch(&mut ledger, &kernel, &[4], caps(9, 9000)).1, [101, 4]);
        launch(&mut ledger, 101, "h-2");
        for (executor, change) in [("t-3", ended), ("h-1", Change::Readmitted), ("h-1", ended)] {
            updated(&mut ledger, executor, change);
        }
        assert_eq!((ledger.count(), tasks(&ledger)), (1, vec![1]));
        assert!(ledger.take_back(4), "it is a task");
        assert!(!ledger.take_back(101), "it is a host");
        assert!(ledger.live.is_empty() && ledger.members.is_empty() && ledger.launched.is_empty());
    }
}
