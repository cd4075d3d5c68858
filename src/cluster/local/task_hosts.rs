//! The hosts of tasks on local agents, and the tasks in them: what is known of each.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::message::{ActorMessage, AgentShare};
use crate::cluster::process::{Exit, RunningExecutor};
use crate::cluster::task_host::{HostConnection, HostRequest};
use crate::status::ProcessReport;

/// The hosts of all agents, and their tasks, by executor id.
#[derive(Debug)]
pub(super) struct TaskHosts {
    /// Where the events of connections go.
    inbox: Sender<ActorMessage>,
    pub(super) hosts: BTreeMap<String, HostEntry>,
    pub(super) tasks: HashMap<String, HostedTask>,
}

/// A host, from its launch to its last report.
#[derive(Debug, Default)]
pub(super) struct HostEntry {
    /// `None` before it is started, and once it is closed.
    pub(super) connection: Option<HostConnection>,
    pub(super) is_ready: bool,
    /// Requests for a host that isn't ready.
    pub(super) waiting: Vec<HostRequest>,
    /// Until when it must be ready.
    pub(super) ready_by: Option<Instant>,
    /// Why the host is ended by force, if it is, such as that its messages make no sense.
    pub(super) fault: Option<String>,
    /// It was asked to end, and takes no tasks.
    pub(super) is_finishing: bool,
    pub(super) is_closed: bool,
    /// Its process, once it has ended, and until when the end of the connection is waited for.
    pub(super) gone: Option<(RunningExecutor<AgentShare>, Exit, Instant)>,
}

/// A task in a host.
#[derive(Debug)]
pub(super) struct HostedTask {
    pub(super) host: String,
    pub(super) share: AgentShare,
    pub(super) process: Option<ProcessReport>,
    pub(super) is_asked_to_end: bool,
}

impl TaskHosts {
    /// `inbox` is that of the cluster's thread.
    pub(super) fn new(inbox: Sender<ActorMessage>) -> TaskHosts {
        TaskHosts { inbox, hosts: BTreeMap::new(), tasks: HashMap::new() }
    }

    /// A host was accepted: its tasks may be.
    pub(super) fn add(&mut self, host: &str) {
        self.hosts.insert(host.to_owned(), HostEntry::default());
    }

    /// Whether it is a task in a host.
    pub(super) fn has_task(&self, task: &str) -> bool {
        self.tasks.contains_key(task)
    }

    /// Whether a host's process has ended whose end is not reported yet.
    pub(super) fn has_unreported_ends(&self) -> bool {
        self.hosts.values().any(|host| host.gone.is_some())
    }

    /// The next time at which [`Actor::run_due_hosts`] has work.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = |host: &HostEntry| match &host.gone {
            Some(gone) => Some(gone.2),
            None => host.ready_by,
        };
        self.hosts.values().filter_map(due).min()
    }

    /// Opens the connection of a host that is about to be started, and returns its end of it. `None` if it is no host,
    /// or if there is no connection: then the host finds that it has none, and ends.
    pub(super) fn open(&mut self, host: &str) -> Option<OwnedFd> {
        let entry = self.hosts.get_mut(host)?;
        let (inbox, id) = (self.inbox.clone(), host.to_owned());
        let deliver = move |event| inbox.send(ActorMessage::Host(id.clone(), event)).is_ok();
        match HostConnection::open(deliver) {
            Ok((connection, input)) => {
                entry.connection = Some(connection);
                Some(input)
            }
            Err(_) => {
                entry.is_closed = true;
                None
            }
        }
    }

    /// Asks a host to end its tasks and itself.
    pub(super) fn finish(&mut self, host: &str, grace: Duration) {
        if let Some(entry) = self.hosts.get_mut(host) {
            entry.is_finishing = true;
            // One that isn't ready finishes then, or is killed. Tasks that wait for it are lost with it.
            entry.waiting.clear();
            entry.send(HostRequest::Finish { grace });
        }
    }

    /// Asks all hosts to end.
    pub(super) fn finish_all(&mut self, grace: Duration) {
        let hosts: Vec<String> = self.hosts.keys().cloned().collect();
        hosts.iter().for_each(|host| self.finish(host, grace));
    }

    /// Forgets what is on an agent, and returns the ids of its tasks.
    pub(super) fn remove_agent(&mut self, agent_id: &str, hosts: &[String]) -> Vec<String> {
        hosts.iter().for_each(|host| drop(self.hosts.remove(host)));
        let lost = self.tasks.iter().filter(|(_, task)| task.share.agent_id == agent_id);
        let lost: Vec<String> = lost.map(|(id, _)| id.clone()).collect();
        lost.iter().for_each(|id| drop(self.tasks.remove(id)));
        lost
    }
}

impl HostEntry {
    /// Sends a request, as soon as the host is ready.
    pub(super) fn send(&mut self, request: HostRequest) {
        match &self.connection {
            Some(connection) if self.is_ready => connection.send(request),
            _ => self.waiting.push(request),
        }
    }
}
