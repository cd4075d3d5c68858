//! The tasks of a simulated framework that places tasks: an endless supply of several sizes, some of them in gangs, or
//! in hosts, and in queues if there are some.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hosts::{HOST_TAGS, HostFate, host_terms};
use crate::cluster::simulated::queues::SimQueues;
use crate::cluster::simulated::scenario::Scenario;
use crate::cluster::simulated::settings::FrameworkSettings;
use crate::config::QueueId;
use crate::engine::{HostLedger, Notice, TaskChooser};
use crate::kernel::choosers::BatchCaps;
use crate::kernel::{
    Kernel, Picks, QueuesLeft, ResourceSums, Room, Rooms, Task, TaskHostStage, Unplaced,
};
use crate::launch::{Command, LaunchContext, Launcher};
use crate::resources::{Gpus, Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// How many more tasks than the kernel wants a batch picks at most: the caps have to cut some off.
const BEYOND_WANTED: u32 = 3;
/// The members of a gang.
const GANG: usize = 2;
/// One of this number of tasks begins a gang.
const GANG_EVERY: u64 = 7;
/// How many of the tasks that came back are tried for a room.
const TRIED_MAX: usize = 8;
/// The most tasks that a batch puts into one host.
const IN_HOST_MAX: u64 = 3;
/// Tasks in hosts come for a while, and then there are none for a while, in milliseconds: so hosts are idle, and tasks
/// come just when hosts are ended.
const BUSY_MS: u64 = 25_000;
const PAUSE_MS: u64 = 15_000;
/// One of this number of tasks is picked though its queue has no room for it.
const BEYOND_QUEUE_EVERY: u64 = 16;
/// One of this number of batches in hosts is chosen as if the caps left all, and queues what they had left at the batch
/// before: the commit has to cut off what hosts and their tasks take beyond that.
const BEHIND_EVERY: u64 = 2;

/// What kinds of tasks take, in multiples of the configured executor's cores, memory and GPUs; the smallest first.
const KINDS: [(u64, u64, u32); 6] =
    [(1, 1, 1), (2, 1, 1), (1, 2, 1), (3, 2, 2), (1, 1, 2), (4, 3, 1)];

/// Chooses tasks for rooms: first those that came back, then new ones. For each room there is a task small enough, if
/// there is one at all and its queue has room. After a cap has cut off picks, which may all be too large for what it
/// leaves, the next batch gets new tasks of the smallest size alone.
pub(in super::super) struct SimulatedTasks {
    kernel: Kernel,
    supply: Mutex<TaskSupply>,
}

struct TaskSupply {
    /// The cores, memory and GPUs of the smallest task.
    smallest: (MilliCpus, Mebibytes, u32),
    /// Tasks that were picked and not placed.
    returned: VecDeque<Task>,
    /// The number of tasks so far.
    created: u64,
    /// The picks of the last batch; the members of a gang are together.
    picked: Vec<Vec<Task>>,
    /// Whether a cap has cut off the last batch's picks.
    is_cut: bool,
    queues: SimQueues,
    /// Which queues have tasks, and what they have room for in this batch; by number.
    queues_left: Vec<(bool, ResourceSums)>,
    settings: FrameworkSettings,
    hosts: Option<HostLedger>,
    /// The number of batches in hosts so far.
    batches: u64,
    /// What queues had room for at the last of them.
    queues_before: Option<QueuesLeft>,
    /// The agents whose hosts the tasks of the last batch were to join.
    joined: BTreeSet<String>,
    /// Executors that came back after they had been given up. They are to end.
    surplus: Vec<String>,
}

impl SimulatedTasks {
    pub(super) fn new(kernel: Kernel, scenario: &Scenario) -> SimulatedTasks {
        let settings = FrameworkSettings::of(scenario);
        let supply = TaskSupply {
            smallest: (
                settings.executor_cores_min(),
                scenario.memory_taken(),
                scenario.executor_gpus,
            ),
            returned: VecDeque::new(),
            created: 0,
            picked: Vec::new(),
            is_cut: false,
            queues: SimQueues::of(scenario),
            queues_left: Vec::new(),
            settings,
            hosts: scenario.has_hosts().then(|| HostLedger::new(host_terms(), HOST_TAGS)),
            batches: 0,
            queues_before: None,
            joined: BTreeSet::new(),
            surplus: Vec::new(),
        };
        let tasks = SimulatedTasks { kernel, supply: Mutex::new(supply) };
        tasks.tell_demand();
        tasks
    }

    /// The settings were changed: from now on, new tasks have multiples of the cores of an executor, and queues have
    /// tasks as these settings say.
    pub(super) fn set(&self, settings: FrameworkSettings) {
        let mut supply = self.supply();
        supply.smallest.0 = settings.executor_cores_min();
        supply.settings = settings;
        drop(supply);
        self.tell_demand();
    }

    fn tell_demand(&self) {
        let supply = self.supply();
        for (queue, number) in supply.queues.list(supply.settings).iter().zip(0..) {
            self.kernel.set_queue_demand(QueueId::new(number), queue.has_demand);
        }
    }

    /// Takes what the last batch picked; the members of a gang are together.
    pub(super) fn take_picked(&self) -> Vec<Vec<Task>> {
        std::mem::take(&mut self.supply().picked)
    }

    /// Takes the agents whose hosts the tasks of the last batch were to join, placed or not.
    pub(super) fn take_joined(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.supply().joined)
    }

    /// Follows the hosts.
    pub(super) fn noticed(&self, notice: &Notice) -> Option<HostFate> {
        let mut supply = self.supply();
        let TaskSupply { hosts, surplus, .. } = &mut *supply;
        let hosts = hosts.as_mut()?;
        let fate = HostFate::of(notice, hosts);
        hosts.noticed(notice);
        if let (Some(HostFate::Returned), Notice::Updated { executor, .. }) = (fate, notice) {
            surplus.push(executor.clone());
        }
        fate
    }

    /// An executor with this tag is asked to end.
    pub(super) fn ending(&self, tag: u64) {
        let supply = self.supply();
        supply.hosts.iter().for_each(|hosts| hosts.ending(tag));
    }

    /// The executors that are to end: those that came back after they had been given up, and hosts that were idle for
    /// long enough.
    pub(super) fn take_to_end(&self, now: Timestamp) -> (Vec<String>, Vec<String>) {
        let mut supply = self.supply();
        let surplus = std::mem::take(&mut supply.surplus);
        let idle = supply.hosts.iter_mut().flat_map(|hosts| hosts.end_idle(now)).collect();
        (surplus, idle)
    }

    /// Has `check` see the hosts, unless tasks run without.
    pub(in super::super) fn with_hosts(&self, check: impl FnOnce(&HostLedger)) {
        if let Some(hosts) = &self.supply().hosts {
            check(hosts);
        }
    }

    /// What must be placed on this agent with the smallest task: nothing, or a host. `None` if its host takes no tasks
    /// now.
    pub(in super::super) fn beside_a_task(&self, agent_id: &str) -> Option<Option<ResourceSums>> {
        let stage = self.supply().hosts.as_ref().map(|hosts| hosts.stage(agent_id));
        match stage {
            None | Some(TaskHostStage::Up) => Some(None),
            Some(TaskHostStage::None) => Some(Some(host_terms().sums())),
            Some(TaskHostStage::Starting | TaskHostStage::Ending) => None,
        }
    }

    /// What the caps leave.
    fn caps(&self) -> BatchCaps {
        let (config, totals) = (self.kernel.config(), self.kernel.totals());
        let mut caps = BatchCaps::default();
        if let Some(limit) = config.executor_limit() {
            caps.executors = limit.saturating_sub(totals.executors).into();
        }
        if let Some(cap) = config.core_cap() {
            caps.left.cores = cap.saturating_sub(totals.cores);
        }
        caps
    }

    fn supply(&self) -> MutexGuard<'_, TaskSupply> {
        self.supply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskSupply {
    /// A task for what is left of a room: one that came back, the next new one or, if both are too large, the smallest.
    fn next_for(&mut self, room: &mut Room) -> Option<Task> {
        let tried = self.returned.iter().take(if self.is_cut { 0 } else { TRIED_MAX });
        let fits = |task: &Task| room.fits(task) && self.has_queue_room(task);
        if let Some(at) = tried.enumerate().find_map(|(at, task)| fits(task).then_some(at)) {
            let task = self.returned.remove(at)?;
            self.take_in_queue(&task);
            return room.take(&task).ok().map(|()| task);
        }
        let kind = (self.created % KINDS.len() as u64) as usize;
        let kinds = [kind, 0].into_iter().skip(self.is_cut.into());
        let queues = self.queues_left.len().max(1) as u64;
        // In its queue's turn or, if that has no room, in the next one that has.
        let tags = self.created..self.created + queues;
        let mut tried = kinds.flat_map(|kind| tags.clone().map(move |tag| (kind, tag)));
        let task = tried.find_map(|(kind, tag)| {
            let task = self.task(kind, tag);
            (self.has_queue_room(&task) && room.take(&task).is_ok()).then_some(task)
        })?;
        self.take_in_queue(&task);
        self.created = task.tag + 1;
        Some(task)
    }

    /// The task with this tag, if it is of this kind.
    fn task(&self, kind: usize, tag: u64) -> Task {
        let (times_cores, times_memory, times_gpus) = KINDS[kind];
        let (cores, memory, gpus) = self.smallest;
        let cores = MilliCpus::from_millis(cores.millis() * times_cores);
        let memory = Mebibytes::new(memory.get() * times_memory);
        let (gpus, queue) = (Gpus::new(gpus * times_gpus), self.queues.of_tag(tag));
        Task { gpus, queue, ..Task::new(tag, cores, memory) }
    }

    /// Whether the queue of a task has tasks, and room for it; now and then it needn't have room.
    fn has_queue_room(&self, task: &Task) -> bool {
        let Some((has_demand, left)) = self.queues_left.get(task.queue.index()) else {
            return true;
        };
        let is_beyond = !self.is_cut && task.tag % BEYOND_QUEUE_EVERY == 5;
        *has_demand && (is_beyond || task.cores <= left.cores && task.memory <= left.memory)
    }

    fn take_in_queue(&mut self, task: &Task) {
        if let Some((_, left)) = self.queues_left.get_mut(task.queue.index()) {
            let own = ResourceSums { cores: task.cores, memory: task.memory, gpus: Gpus::ZERO };
            *left = left.saturating_sub(own);
        }
    }

    /// Picks these tasks together.
    fn push(&mut self, gang: &mut Vec<(u32, Task)>, picks: &mut Picks) {
        match gang[..] {
            [] => return,
            [(room, task)] => picks.push(room, task),
            _ => picks.push_gang(gang),
        }
        self.picked.push(gang.drain(..).map(|(_, task)| task).collect());
    }

    /// Picks up to `most` tasks for rooms, which take turns.
    fn choose_in_turns(&mut self, mut left: Vec<Room>, most: usize, picks: &mut Picks) {
        let mut gang: Vec<(u32, Task)> = Vec::new();
        let (mut chosen, mut before) = (0, None);
        while before != Some(chosen) {
            before = Some(chosen);
            for (room, position) in left.iter_mut().zip(0..) {
                if chosen == most {
                    break;
                }
                let Some(task) = self.next_for(room) else { continue };
                chosen += 1;
                let begins_gang = task.tag % GANG_EVERY == 3 && !self.is_cut;
                gang.push((position, task));
                if gang.len() == GANG || gang.len() == 1 && !begins_gang {
                    self.push(&mut gang, picks);
                }
            }
        }
        self.push(&mut gang, picks);
    }

    /// Picks up to `most` tasks for the hosts of rooms, and hosts where there are none.
    fn choose_in_hosts(
        &mut self,
        hosts: &mut HostLedger,
        rooms: &Rooms<'_>,
        caps: BatchCaps,
        most: usize,
        picks: &mut Picks,
    ) {
        self.batches += 1;
        let mut known = (rooms.queues_left(), caps);
        let before = self.queues_before.replace(known.0.clone());
        if self.batches % BEHIND_EVERY == 0 && !self.is_cut {
            known = (before.unwrap_or(known.0), BatchCaps::default());
        }
        let (queues, caps) = known;
        let mut chosen: Vec<Task> = Vec::new();
        hosts.pick(rooms, &queues, caps, picks, |list, queues, caps, picks| {
            self.returned.extend(chosen.drain(..));
            self.follow_queues(&queues);
            chosen = self.choose_within(list, caps, most, picks);
            let agents = picks.iter().filter_map(|pick| rooms.offer_of(pick.room));
            self.joined.extend(agents.map(|offer| offer.agent_id.to_owned()));
        });
        let mut gang = 0;
        for pick in picks.iter() {
            match self.picked.last_mut() {
                Some(members) if pick.gang > 0 && pick.gang == gang => members.push(pick.task),
                _ => self.picked.push(vec![pick.task]),
            }
            gang = pick.gang;
        }
        let picked: BTreeSet<u64> = picks.iter().map(|pick| pick.task.tag).collect();
        chosen.retain(|task| !picked.contains(&task.tag));
        self.is_cut = !chosen.is_empty();
        self.returned.extend(chosen);
    }

    /// Picks up to `most` tasks for rooms, a few for each. Returns all that it has chosen, of which those that caps
    /// don't admit are not picked.
    fn choose_within(
        &mut self,
        list: &[Room],
        mut caps: BatchCaps,
        most: usize,
        picks: &mut Picks,
    ) -> Vec<Task> {
        let mut chosen = Vec::new();
        for (room, position) in list.iter().zip(0u32..) {
            let mut room = *room;
            let share = if self.is_cut { 1 } else { 1 + self.created % IN_HOST_MAX };
            for _ in 0..share.min((most - chosen.len()) as u64) {
                let Some(task) = self.next_for(&mut room) else { break };
                chosen.push(task);
                if caps.take(task.sums()) {
                    picks.push(position, task);
                }
            }
        }
        chosen
    }

    /// Notes what queues have room for.
    fn follow_queues(&mut self, left: &QueuesLeft) {
        let queues = self.queues.list(self.settings);
        let left = |number: u8| left.room(QueueId::new(number));
        self.queues_left =
            queues.iter().zip(0..).map(|(it, number)| (it.has_demand, left(number))).collect();
    }
}

impl TaskChooser for SimulatedTasks {
    fn choose(&self, rooms: &Rooms<'_>, now: Timestamp, picks: &mut Picks) {
        let mut supply = self.supply();
        supply.picked.clear();
        supply.joined.clear();
        let most = self.kernel.wanted().saturating_add(BEYOND_WANTED) as usize;
        let Some(mut hosts) = supply.hosts.take() else {
            supply.follow_queues(&rooms.queues_left());
            supply.choose_in_turns(rooms.list().to_vec(), most, picks);
            supply.is_cut = false;
            return;
        };
        if now.as_millis() % (BUSY_MS + PAUSE_MS) < BUSY_MS {
            supply.choose_in_hosts(&mut hosts, rooms, self.caps(), most, picks);
        } else {
            supply.is_cut = false;
        }
        supply.hosts = Some(hosts);
    }

    fn unplaced(&self, unplaced: &[Unplaced]) {
        let mut supply = self.supply();
        let supply = &mut *supply;
        let is_too_much = |it: &Unplaced| it.reason.is_cap() || it.reason.queue().is_some();
        supply.is_cut |= unplaced.iter().any(is_too_much);
        let is_back = |task: &&Task| unplaced.iter().any(|it| it.tag == task.tag);
        let back: Vec<Task> = supply.picked.iter().flatten().filter(is_back).copied().collect();
        for task in back {
            let is_task = supply.hosts.as_mut().is_none_or(|hosts| hosts.take_back(task.tag));
            if is_task {
                supply.returned.push_back(task);
            }
        }
    }
}

impl Launcher for SimulatedTasks {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        let mut supply = self.supply();
        let (Some(hosts), Some(tag)) = (&mut supply.hosts, context.tag) else {
            return Command::default();
        };
        let host = hosts.command(context);
        host.unwrap_or_else(|| Command::default().with_hosting(hosts.hosting(tag)))
    }
}
