//! Hosts for tasks (`--task-hosts`): which agents have one, and the picks of hosts with their first tasks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use offermill::launch::{Command, Hosting, Setup};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Hosts, IdleHost, Joined, Pick, Picks, QueuesLeft, ResourceSums, Room, Rooms, Task, TaskHost,
    TaskHostStage, Timestamp,
};

/// The most hosts that are kept in mind after they have ended before they ran: until their tasks' ends are told.
const NEVER_RUN_MAX: usize = 1024;

/// What the hosts of a run have in common.
#[derive(Clone, Debug)]
pub(crate) struct HostTerms {
    pub(crate) cores: MilliCpus,
    pub(crate) memory: Mebibytes,
    /// How long a host without tasks is kept.
    pub(crate) idle_timeout: Duration,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// The setup that hosts have, and their tasks with them.
    pub(crate) setup: Option<Arc<Setup>>,
}

impl HostTerms {
    /// What a host takes.
    pub(crate) fn sums(&self) -> ResourceSums {
        ResourceSums { cores: self.cores, memory: self.memory, ..ResourceSums::NONE }
    }

    fn task(&self, tag: u64) -> Task {
        Task::new(tag, self.cores, self.memory)
    }
}

/// The hosts of a run, from their picks to their ends.
#[derive(Debug)]
pub(super) struct HostLedger {
    terms: HostTerms,
    hosts: Hosts,
    /// By tag. These follow the tags of tasks, which are their positions.
    live: BTreeMap<u64, LiveHost>,
    /// The tags of hosts by agent.
    tags: HashMap<String, u64>,
    next_tag: u64,
    /// The tags of the last hosts that have ended before they ran.
    never_run: BTreeSet<u64>,
}

/// The host that a task has joined.
#[derive(Clone, Debug)]
pub(super) struct JoinedHost {
    pub(super) tag: u64,
    pub(super) host: TaskHost,
}

#[derive(Debug)]
struct LiveHost {
    host: TaskHost,
    agent_id: String,
    /// Empty before its command is made.
    executor: String,
    has_run: bool,
    /// How it was found idle, and when first.
    idle: Option<(IdleHost, Timestamp)>,
}

/// What the caps leave for a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchCaps {
    pub(super) executors: u64,
    pub(super) left: ResourceSums,
}

impl BatchCaps {
    /// Takes what one executor needs of the cores and GPUs; false if they don't suffice.
    fn take(&mut self, own: ResourceSums) -> bool {
        let fits = self.executors > 0 && own.cores <= self.left.cores && own.gpus <= self.left.gpus;
        if fits {
            self.executors -= 1;
            self.left = self.left.saturating_sub(own);
        }
        fits
    }
}

impl HostLedger {
    /// A ledger without hosts, whose tags begin at `first_tag`.
    pub(super) fn new(terms: HostTerms, first_tag: u64) -> HostLedger {
        let (live, tags) = (BTreeMap::new(), HashMap::new());
        let never_run = BTreeSet::new();
        HostLedger { terms, hosts: Hosts::new(), live, tags, next_tag: first_tag, never_run }
    }

    /// How many hosts there are.
    pub(super) fn count(&self) -> u64 {
        self.live.len() as u64
    }

    /// What all hosts take.
    pub(super) fn sums(&self) -> ResourceSums {
        let each = self.terms.sums();
        self.live.values().fold(ResourceSums::NONE, |sum, _| sum.saturating_add(each))
    }

    /// What rooms have for tasks: a room of an agent without a host has the host's part less, none if the host's queue
    /// has no room for it, and one whose host is being started or ended has none.
    pub(super) fn rooms_for_tasks(&self, rooms: &Rooms<'_>, queues: &QueuesLeft) -> Vec<Room> {
        let may_add = queues.clone().take(&self.terms.task(0)).is_ok();
        let none = |room: &Room| Room::new(room.offer(), ResourceSums::NONE, 0);
        let for_tasks = |room: &Room| {
            let Some(offer) = rooms.offer(room) else { return none(room) };
            match self.hosts.stage(offer.agent_id) {
                TaskHostStage::Up => *room,
                TaskHostStage::None => {
                    let mut left = *room;
                    if may_add && left.take(&self.terms.task(0)).is_ok() {
                        left
                    } else {
                        none(room)
                    }
                }
                TaskHostStage::Starting | TaskHostStage::Ending => none(room),
            }
        };
        rooms.list().iter().map(for_tasks).collect()
    }

    /// Has picked tasks join the hosts of their agents, and adds the hosts that there aren't: each in a gang with its
    /// tasks. Leaves out what the caps don't admit, and tasks whose queues have no room beside the hosts. Returns the
    /// host of each task that is left, by tag.
    pub(super) fn group(
        &mut self,
        rooms: &Rooms<'_>,
        picks: &mut Picks,
        mut caps: BatchCaps,
        mut queues: QueuesLeft,
    ) -> HashMap<u64, JoinedHost> {
        let mut by_room: BTreeMap<u32, Vec<Task>> = BTreeMap::new();
        for Pick { room, task, .. } in picks.iter() {
            by_room.entry(*room).or_default().push(*task);
        }
        picks.clear();
        let mut joined = HashMap::new();
        for (room, tasks) in by_room {
            let offer = rooms.list().get(room as usize).and_then(|room| rooms.offer(room));
            let Some(offer) = offer else { continue };
            let before = (caps, queues.clone());
            let (host, is_first) = match self.hosts.join(offer.agent_id) {
                Joined::First(host) => (host, true),
                Joined::Member(host) => (host, false),
                Joined::Elsewhere => continue,
            };
            let host_task = self.terms.task(0);
            let mut is_open =
                !is_first || queues.take(&host_task).is_ok() && caps.take(self.terms.sums());
            // The first task has joined already.
            let mut is_in = true;
            let mut members = Vec::with_capacity(tasks.len() + 1);
            for task in tasks {
                if !is_open || queues.take(&task).is_err() {
                    continue;
                }
                is_open = is_open && caps.take(sums(&task)) && (is_in || host.join());
                if !is_open {
                    break;
                }
                is_in = false;
                members.push((room, task));
            }
            if members.is_empty() {
                (caps, queues) = before;
                let _left = if is_first { host.lost() } else { host.leave() };
                continue;
            }
            let tag = match is_first {
                true => self.add(host.clone(), offer.agent_id),
                false => self.tags.get(offer.agent_id).copied().unwrap_or(u64::MAX),
            };
            let join = |task: &Task| (task.tag, JoinedHost { tag, host: host.clone() });
            joined.extend(members.iter().map(|(_, task)| join(task)));
            if is_first {
                members.insert(0, (room, self.terms.task(tag)));
                picks.push_gang(&members);
            } else {
                members.iter().for_each(|(room, task)| picks.push(*room, *task));
            }
        }
        joined
    }

    fn add(&mut self, host: TaskHost, agent_id: &str) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        let agent_id = agent_id.to_owned();
        self.tags.insert(agent_id.clone(), tag);
        let executor = String::new();
        self.live.insert(tag, LiveHost { host, agent_id, executor, has_run: false, idle: None });
        tag
    }

    /// The command of a host that is about to be launched as this executor.
    pub(super) fn command(&mut self, tag: u64, executor: &str) -> Command {
        if let Some(host) = self.live.get_mut(&tag) {
            executor.clone_into(&mut host.executor);
        }
        let command = Command::new(self.terms.argv.clone()).with_hosting(Hosting::Host);
        match &self.terms.setup {
            Some(setup) => command.with_setup(Arc::clone(setup)),
            None => command,
        }
    }

    /// The executor id of the host of an agent.
    pub(super) fn host_of(&self, agent_id: &str) -> Arc<str> {
        let host = self.tags.get(agent_id).and_then(|tag| self.live.get(tag));
        host.map_or("none", |host| &*host.executor).into()
    }

    /// A host runs: other batches may use it. Returns whether there is such a host.
    pub(super) fn up(&mut self, tag: u64) -> bool {
        let Some(host) = self.live.get_mut(&tag) else { return false };
        host.has_run = true;
        host.host.up();
        true
    }

    /// A host is about to be removed. Returns whether it has not run, which is kept in mind.
    pub(super) fn note_never_run(&mut self, tag: u64) -> bool {
        let never_run = self.live.get(&tag).is_some_and(|host| !host.has_run);
        if never_run && self.never_run.insert(tag) && self.never_run.len() > NEVER_RUN_MAX {
            self.never_run.pop_first();
        }
        never_run
    }

    /// Whether a host doesn't run yet, or has ended before it ran.
    pub(super) fn has_never_run(&self, tag: u64) -> bool {
        self.never_run.contains(&tag) || self.live.get(&tag).is_some_and(|host| !host.has_run)
    }

    /// A host was asked to end.
    pub(super) fn ending(&self, tag: u64) {
        let _is_first = self.live.get(&tag).map(|host| host.host.end());
    }

    /// A host has ended, or was not placed. Returns whether it had been asked to end.
    pub(super) fn remove(&mut self, tag: u64) -> bool {
        let Some(LiveHost { host, agent_id, .. }) = self.live.remove(&tag) else { return true };
        if self.tags.get(&agent_id) == Some(&tag) {
            self.tags.remove(&agent_id);
        }
        let was_asked = host.stage() == TaskHostStage::Ending;
        let _tasks = host.lost();
        was_asked
    }

    /// Ends the hosts that have been idle for long enough. Returns their executors, which are to be ended.
    pub(super) fn end_idle(&mut self, now: Timestamp) -> Vec<String> {
        let mut ended = Vec::new();
        for host in self.live.values_mut() {
            let Some(idle) = host.host.idle() else {
                host.idle = None;
                continue;
            };
            let since = match host.idle.take() {
                Some((before, since)) if before.is_same(&idle) => since,
                _ => now,
            };
            if now.since(since) < self.terms.idle_timeout {
                host.idle = Some((idle, since));
            } else if idle.end() {
                ended.push(host.executor.clone());
            }
        }
        ended
    }
}

fn sums(task: &Task) -> ResourceSums {
    ResourceSums { cores: task.cores, memory: task.memory, gpus: task.gpus }
}

#[cfg(test)]
mod tests {
    use super::*;
    use offermill::config::ExecutorCores;
    use offermill::resources::Gpus;
    use offermill::{Config, Decisions, IdScheme, Kernel, Offer, Resource};

    const NOW: Timestamp = Timestamp::ORIGIN;
    const FIRST_TAG: u64 = 100;

    fn ledger() -> HostLedger {
        let terms = HostTerms {
            cores: MilliCpus::from_millis(500),
            memory: Mebibytes::new(10),
            idle_timeout: Duration::from_secs(60),
            argv: vec!["host".to_owned()],
            setup: None,
        };
        HostLedger::new(terms, FIRST_TAG)
    }

    fn caps(executors: u64, millis: u64) -> BatchCaps {
        let (cores, memory) = (MilliCpus::from_millis(millis), Mebibytes::new(1000));
        BatchCaps { executors, left: ResourceSums { cores, memory, gpus: Gpus::ZERO } }
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
        let (mut picks, mut chooser) = (Picks::new(), offermill::choosers::Chooser::new());
        let task = |tag: &u64| Task::new(*tag, MilliCpus::from_millis(400), Mebibytes::new(10));
        let tasks: Vec<Task> = tags.iter().map(task).collect();
        let queues = rooms.queues_left();
        chooser.round_robin(&ledger.rooms_for_tasks(&rooms, &queues), &tasks, &mut picks);
        let joined = ledger.group(&rooms, &mut picks, caps, queues);
        let picked: Vec<u64> = picks.iter().map(|pick| pick.task.tag).collect();
        assert_eq!(joined.len(), picked.iter().filter(|tag| **tag < FIRST_TAG).count());
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
        ledger.command(100, "hosts-1-0.0");
        ledger.up(100);
        assert_eq!(&*ledger.host_of("S1"), "hosts-1-0.0");
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
}
