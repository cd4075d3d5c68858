//! The hosts of a simulated framework's tasks: as in `offermill run --tasks --task-hosts`, the first task on an agent
//! brings its host, others join it once it runs, and a host without tasks is ended after a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::host_idleness::HostIdleness;
use crate::kernel::{
    Change, Hosts, Joined, ResourceSums, Room, Rooms, Task, TaskHost, TaskHostStage,
};
use crate::launch::Hosting;
use crate::resources::{Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// What a host takes.
pub(super) const HOST_CORES: MilliCpus = MilliCpus::from_millis(100);
pub(super) const HOST_MEMORY: Mebibytes = Mebibytes::new(32);
/// The tags of hosts begin here.
pub(in super::super) const HOST_TAGS: u64 = 1 << 40;
/// How long a host without tasks is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// Which agents have hosts, and which tasks are in them.
pub(super) struct SimulatedHosts {
    hosts: Hosts,
    /// By tag.
    live: BTreeMap<u64, LiveSimHost>,
    /// The host that each task is in, and that host's tag; by the task's tag.
    members: BTreeMap<u64, (u64, TaskHost)>,
    /// The tags of hosts and tasks by the ids of their executors.
    tags: BTreeMap<String, u64>,
    next_tag: u64,
    /// Executors that came back after they had been given up. They are to end.
    returned: Vec<String>,
}

struct LiveSimHost {
    host: TaskHost,
    agent_id: String,
    /// Empty before its command is made.
    executor: Arc<str>,
    idleness: HostIdleness,
}

/// An agent's host as the framework sees it.
pub(in super::super) struct HostView {
    pub(in super::super) agent_id: String,
    pub(in super::super) stage: TaskHostStage,
    pub(in super::super) tasks: u32,
}

/// What has become of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum HostFate {
    LostWithTasks,
    GivenUp,
    Returned,
}

impl SimulatedHosts {
    pub(super) fn new() -> SimulatedHosts {
        SimulatedHosts {
            hosts: Hosts::new(),
            live: BTreeMap::new(),
            members: BTreeMap::new(),
            tags: BTreeMap::new(),
            next_tag: HOST_TAGS,
            returned: Vec::new(),
        }
    }

    /// What rooms have for tasks, beside the host if there is none. While it is being started or ended, none may join
    /// it, which is left to the kernel's word to say.
    pub(super) fn rooms_for_tasks(&self, rooms: &Rooms<'_>) -> Vec<Room> {
        let for_tasks = |room: &Room| {
            let stage = rooms.offer(room).map(|offer| self.hosts.stage(offer.agent_id));
            let mut left = *room;
            let has_room = stage != Some(TaskHostStage::None) || left.take(&Self::task(0)).is_ok();
            if has_room { left } else { Room::new(room.offer(), ResourceSums::NONE, 0) }
        };
        rooms.list().iter().map(for_tasks).collect()
    }

    /// How far the host of an agent is.
    pub(super) fn stage(&self, agent_id: &str) -> TaskHostStage {
        self.hosts.stage(agent_id)
    }

    fn task(tag: u64) -> Task {
        Task::new(tag, HOST_CORES, HOST_MEMORY)
    }

    /// Has tasks join the host of this agent. Returns the host if it is to be picked with them, and how many have
    /// joined: none if it takes no tasks now.
    pub(super) fn join(&mut self, agent_id: &str, tasks: &[Task]) -> (Option<Task>, usize) {
        let (host, is_first) = match self.hosts.join(agent_id) {
            Joined::First(host) => (host, true),
            Joined::Member(host) => (host, false),
            Joined::Elsewhere => return (None, 0),
        };
        let tag = if is_first {
            self.next_tag += 1;
            let live = LiveSimHost {
                host: host.clone(),
                agent_id: agent_id.to_owned(),
                executor: Arc::default(),
                idleness: HostIdleness::default(),
            };
            self.live.insert(self.next_tag, live);
            self.next_tag
        } else {
            let own = |(tag, it): (&u64, &LiveSimHost)| (it.agent_id == agent_id).then_some(*tag);
            self.live.iter().rev().find_map(own).unwrap_or_default()
        };
        // The first has joined already.
        let more = tasks.iter().skip(1).take_while(|_| host.join()).count();
        let joined = tasks.len().min(1 + more);
        for task in &tasks[..joined] {
            self.members.insert(task.tag, (tag, host.clone()));
        }
        (is_first.then(|| Self::task(tag)), joined)
    }

    /// A task or a host is launched as this executor. Returns how.
    pub(super) fn launch(&mut self, tag: u64, executor: &str) -> Hosting {
        self.tags.insert(executor.to_owned(), tag);
        if let Some(live) = self.live.get_mut(&tag) {
            live.executor = executor.into();
            return Hosting::Host;
        }
        let host = self.members.get(&tag).and_then(|(host, _)| self.live.get(host));
        Hosting::In(host.map_or_else(|| "none".into(), |host| Arc::clone(&host.executor)))
    }

    /// A task or a host has ended, was given up, or was not placed. Returns how many tasks were in the host.
    pub(super) fn remove(&mut self, tag: u64) -> Option<u32> {
        if let Some((_, host)) = self.members.remove(&tag) {
            let _left = host.leave();
            return None;
        }
        self.live.remove(&tag)?.host.lost()
    }

    /// A task or a host was not placed. Returns whether it is a host.
    pub(super) fn take_back(&mut self, tag: u64) -> bool {
        let is_host = self.live.contains_key(&tag);
        let _tasks = self.remove(tag);
        is_host
    }

    /// What an update has changed.
    pub(super) fn updated(&mut self, executor: &str, tag: u64, change: Change) -> Option<HostFate> {
        let is_known = self.live.contains_key(&tag) || self.members.contains_key(&tag);
        match change {
            Change::Ended(_) => {
                self.tags.remove(executor);
                let tasks = self.remove(tag)?;
                return (tasks > 0).then_some(HostFate::LostWithTasks);
            }
            // One that was unreachable before it ran may be back.
            Change::Running | Change::Returned => {
                let _is_first = self.live.get(&tag).map(|live| live.host.up());
            }
            Change::Readmitted if !is_known => {
                self.returned.push(executor.to_owned());
                return Some(HostFate::Returned);
            }
            _ => {}
        }
        None
    }

    /// An executor was given up.
    pub(super) fn given_up(&mut self, executor: &str) -> Option<HostFate> {
        let tag = *self.tags.get(executor)?;
        self.remove(tag).map(|_| HostFate::GivenUp)
    }

    /// An executor is asked to end, whatever it is.
    pub(super) fn ending(&self, tag: u64) {
        let _is_first = self.live.get(&tag).map(|live| live.host.end());
    }

    /// Takes the executors that came back after they had been given up.
    pub(super) fn take_returned(&mut self) -> Vec<String> {
        std::mem::take(&mut self.returned)
    }

    /// Has the hosts that were idle for long enough take no more tasks. Returns their executors, which are to end.
    pub(super) fn end_idle(&mut self, now: Timestamp) -> Vec<String> {
        let mut ended = Vec::new();
        // Before its launch is sent, a host has no name to be ended by.
        for live in self.live.values_mut().filter(|live| !live.executor.is_empty()) {
            if live.idleness.end_after(IDLE_TIMEOUT, &live.host, now) {
                ended.push(live.executor.to_string());
            }
        }
        ended
    }

    /// The hosts as the framework sees them.
    pub(super) fn views(&self) -> Vec<HostView> {
        let view = |live: &LiveSimHost| HostView {
            agent_id: live.agent_id.clone(),
            stage: live.host.stage(),
            tasks: live.host.tasks(),
        };
        self.live.values().map(view).collect()
    }
}
