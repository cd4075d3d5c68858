//! Workers come, come back, and go.

use std::collections::BTreeMap;
use std::time::Duration;

use super::launch_tag::LaunchOrder;
use super::registered::{MasterTask, RegisteredWorker, task_state};
use super::{ConnectionNumber, MasterAction, MasterNotice, Peer, RegistryEntry, StandaloneMaster};
use crate::cluster::standalone::protocol::{
    ExecutorKey, HeldExecutor, WorkerEvent, WorkerSubscribe,
};
use crate::mesos_v1::messages::event::{Failure, Type};
use crate::mesos_v1::messages::{Event, Reason, TaskState};

impl StandaloneMaster {
    /// A worker subscribes on a new connection, with the credentials of an owner if any are needed.
    pub fn worker_subscribes(
        &mut self,
        connection: ConnectionNumber,
        said: WorkerSubscribe,
        owner: Option<String>,
        now: Duration,
    ) {
        self.register_worker(connection, said, owner, now);
        self.allocate(now);
    }

    fn register_worker(
        &mut self,
        connection: ConnectionNumber,
        said: WorkerSubscribe,
        owner: Option<String>,
        now: Duration,
    ) {
        if let Some((why, may_retry)) = self.refusal(&said, owner.as_deref()) {
            let (address, reason) = (said.address.clone(), why.clone());
            self.notices.push(MasterNotice::WorkerRefused { address, why: reason });
            let event = WorkerEvent::Refused { why, may_retry };
            self.actions.push(MasterAction::TellWorker { to: connection, event });
            self.hang_up(connection);
            return;
        }
        let id = said.id.clone().unwrap_or_else(|| self.new_id('W').0);
        self.forget_former_workers(&id, &said.address);
        let before = self.workers.remove(&id);
        let again = before.is_some();
        // What runs under the master's predecessor isn't in the journal: workers tell it.
        let adopts = before.as_ref().is_some_and(|it| it.is_from_journal);
        let mut worker = RegisteredWorker::new(&said, now);
        let was_unreachable = before.as_ref().is_some_and(|it| it.is_unreachable);
        let is_same_process = before.as_ref().is_some_and(|it| it.session == said.session);
        worker.owner = owner.or_else(|| before.as_ref().and_then(|it| it.owner.clone()));
        // A worker that was started again drains no more.
        let drain = before.as_ref().and_then(|it| it.drain.clone());
        worker.drain = drain.filter(|it| it.session == said.session);
        let is_recorded = |it: &RegisteredWorker| {
            it.address == said.address && it.owner == worker.owner && it.drain == worker.drain
        };
        if !before.as_ref().is_some_and(is_recorded) {
            self.actions.push(MasterAction::Record(worker.entry(&id)));
        }
        self.rescind(|offer| offer.worker == id);
        worker.is_draining = said.leaving || worker.drain.is_some();
        // One that isn't leaving yet didn't get the message.
        let drain = worker.drain.as_ref().and_then(|it| it.grace).filter(|_| !said.leaving);
        let mut known = BTreeMap::new();
        if let Some(before) = before {
            if let Some(old) = before.connection {
                self.hang_up(old);
            }
            known = before.tasks;
        }
        worker.connection = Some(connection);
        self.workers.insert(id.clone(), worker);
        self.connections.insert(connection, Peer::Worker(id.clone()));
        let term = self.settings.term;
        let heartbeat = self.settings.told_heartbeat();
        self.tell_worker(&id, WorkerEvent::Subscribed { id: id.clone(), term, heartbeat });
        if let Some(grace) = drain {
            self.tell_worker(&id, WorkerEvent::Drain { term, grace });
        }
        let own = self.own_executors(&id, &known, adopts, said.executors);
        let unlisted = self.compare_executors(&id, known, own, was_unreachable);
        self.end_unlisted(&id, unlisted, is_same_process);
        self.notice_worker(&id, again);
        for update in said.unacknowledged {
            let _offered_at_the_end = self.take_update(&id, update);
        }
        if !said.leaving {
            self.end_decommission(&id);
        }
        // What wasn't listed and has no end among the updates is gone.
        self.finish_recovery_if_complete(now);
    }

    /// Another worker at this address is gone for good: its successor is here.
    fn forget_former_workers(&mut self, id: &str, address: &str) {
        let others =
            self.workers.iter().filter(|(other, it)| *other != id && it.address == address);
        let others: Vec<String> = others.map(|(other, _)| other.clone()).collect();
        for other in others {
            self.forget_worker(&other, TaskState::Gone, "another worker has its address");
        }
    }

    /// Why a worker isn't registered, and whether it may be later.
    fn refusal(&self, said: &WorkerSubscribe, owner: Option<&str>) -> Option<(String, bool)> {
        let term = self.settings.term;
        if said.term > term {
            let why =
                format!("the worker knows of term {}, but this master's is {term}", said.term);
            return Some((why, true));
        }
        for (id, worker) in &self.workers {
            let is_there = worker.connection.is_some() || !worker.is_unreachable;
            if Some(id) == said.id.as_ref() {
                if worker.is_of_another(owner) {
                    return Some((
                        format!("the worker {id} was registered with another token"),
                        true,
                    ));
                }
                if worker.connection.is_some() && worker.session != said.session {
                    return Some((format!("a worker with the id {id} is connected"), true));
                }
            } else if worker.address == said.address && (is_there || worker.is_of_another(owner)) {
                // One that is awaited counts as there, until recovery is over.
                let why = format!(
                    "the worker {id} has the address {}; a second one on the same machine needs an address and a \
                     host name of its own (--address, --hostname)",
                    worker.address
                );
                return Some((why, true));
            }
        }
        None
    }

    /// Those of the executors that a worker lists which were launched there, and when. The others end.
    fn own_executors(
        &mut self,
        id: &str,
        known: &BTreeMap<ExecutorKey, MasterTask>,
        adopts: bool,
        listed: Vec<HeldExecutor>,
    ) -> Vec<(HeldExecutor, LaunchOrder)> {
        let mut own = Vec::new();
        for held in listed {
            let launched = match known.get(&held.key) {
                Some(task) => Some(task.launched),
                None if adopts => self.adopt(id, &held),
                None => None,
            };
            match launched {
                Some(launched) => own.push((held, launched)),
                None if held.state.is_end() => {}
                None => self.end_strange_executor(id, &held.key),
            }
        }
        own
    }

    /// When an executor that a worker lists was launched there by a master before this one; `None` if it wasn't, or if
    /// it was launched elsewhere afterwards. One elsewhere that was launched before is over, and ended there.
    fn adopt(&mut self, id: &str, held: &HeldExecutor) -> Option<LaunchOrder> {
        let launched = self.settings.launch_key.read(id, &held.key, &held.tag)?;
        let Some(other) = self.placed.get(&held.key).filter(|other| *other != id).cloned() else {
            return Some(launched);
        };
        let there = self.workers.get_mut(&other)?;
        if there.tasks.get(&held.key).is_some_and(|task| task.launched >= launched) {
            return None;
        }
        there.tasks.remove(&held.key);
        self.placed.remove(&held.key);
        self.end_strange_executor(&other, &held.key);
        Some(launched)
    }

    /// Ends an executor that this master didn't launch on the worker that lists it.
    fn end_strange_executor(&mut self, id: &str, key: &ExecutorKey) {
        let term = self.settings.term;
        let event = match self.framework_number(&key.framework) {
            Some(_) => WorkerEvent::Kill { key: key.clone(), term, grace: 0 },
            None => WorkerEvent::ShutdownFramework { framework: key.framework.clone(), term },
        };
        self.tell_worker(id, event);
    }

    /// Takes over what a worker lists. Returns what it doesn't list any more.
    fn compare_executors(
        &mut self,
        id: &str,
        mut known: BTreeMap<ExecutorKey, MasterTask>,
        listed: Vec<(HeldExecutor, LaunchOrder)>,
        was_unreachable: bool,
    ) -> BTreeMap<ExecutorKey, MasterTask> {
        let term = self.settings.term;
        for (HeldExecutor { key, state, resources, is_lost, .. }, launched) in listed {
            let known = known.remove(&key);
            let mut task = MasterTask::new(launched, resources, task_state(state, is_lost));
            task.has_ended = state.is_end();
            let mut kill = None;
            if let Some(before) = &known {
                kill = before.kill_grace;
                if before.is_called_lost {
                    kill = Some(kill.unwrap_or(0));
                }
                task.end_uuid.clone_from(&before.end_uuid);
            }
            task.kill_grace = kill;
            let (has_ended, shown) = (task.has_ended, task.state);
            if known.as_ref().is_some_and(|before| !before.has_ended) {
                self.totals.count_end(shown);
            }
            if let Some(worker) = self.workers.get_mut(id) {
                worker.tasks.insert(key.clone(), task);
            }
            self.placed.insert(key.clone(), id.to_owned());
            let is_orphan = self.framework_number(&key.framework).is_none();
            if is_orphan && !self.is_recovering() {
                let framework = key.framework.clone();
                self.tell_worker(id, WorkerEvent::ShutdownFramework { framework, term });
            } else if let Some(grace) = kill.filter(|_| !has_ended) {
                self.tell_worker(id, WorkerEvent::Kill { key, term, grace });
            } else if was_unreachable && !has_ended {
                self.report(&key, Some(id), shown, Reason::AgentReregistered, "");
            }
        }
        known
    }

    /// Reports what a worker that is back doesn't list. Its process knows each launch that it got; another one than
    /// before doesn't know what that one had started.
    fn end_unlisted(
        &mut self,
        id: &str,
        unlisted: BTreeMap<ExecutorKey, MasterTask>,
        is_same_process: bool,
    ) {
        for (key, task) in unlisted {
            self.placed.remove(&key);
            if task.has_ended {
                continue;
            }
            let (state, message) = match task.state {
                TaskState::Staging if is_same_process => {
                    (TaskState::Dropped, "its launch didn't arrive")
                }
                _ if !is_same_process => (TaskState::Gone, "its worker was started again"),
                _ => (TaskState::Gone, "its worker doesn't have it any more"),
            };
            self.totals.count_end(state);
            if !task.is_called_lost {
                self.report(&key, Some(id), state, Reason::AgentReregistered, message);
            }
        }
    }

    /// Tells the operator that a worker is registered.
    fn notice_worker(&mut self, id: &str, again: bool) {
        let Some(worker) = self.workers.get(id) else { return };
        self.notices.push(MasterNotice::WorkerRegistered {
            id: id.to_owned(),
            hostname: worker.hostname.clone(),
            total: worker.total.clone(),
            again,
            executors: worker.living(),
        });
    }

    /// A worker's connection has ended. It may come back; its offers are taken back at once.
    pub(super) fn worker_disconnected(&mut self, id: &str) {
        if let Some(worker) = self.workers.get_mut(id) {
            worker.disconnect();
            let (id, hostname) = (id.to_owned(), worker.hostname.clone());
            self.notices.push(MasterNotice::WorkerDisconnected { id, hostname });
        }
        self.rescind(|offer| offer.worker == id);
        self.bound_workers_away();
    }

    /// A worker was silent for too long. What it runs may still run.
    pub(super) fn give_up_worker(&mut self, id: &str) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        worker.is_unreachable = true;
        let connection = worker.disconnect();
        self.notices.push(MasterNotice::WorkerUnreachable {
            id: id.to_owned(),
            hostname: worker.hostname.clone(),
            executors: worker.living(),
        });
        let running = worker.tasks.iter().filter(|(_, task)| !task.has_ended);
        let running: Vec<ExecutorKey> = running.map(|(key, _)| key.clone()).collect();
        if let Some(connection) = connection {
            self.hang_up(connection);
        }
        self.rescind(|offer| offer.worker == id);
        self.tell_of_failure(id);
        for key in running {
            let framework = self.framework_number(&key.framework);
            let is_aware = framework
                .and_then(|number| self.frameworks.get(&number))
                .is_some_and(|it| it.is_partition_aware());
            let task = self.workers.get_mut(id).and_then(|it| it.tasks.get_mut(&key));
            if let Some(task) = task {
                task.is_called_lost = framework.is_some() && !is_aware;
            }
            let (state, reason) = (TaskState::Unreachable, Reason::AgentRemoved);
            self.report(&key, Some(id), state, reason, "its worker is silent");
        }
    }

    /// Forgets a worker. Unless it was unreachable before, frameworks are told this state of its executors, and why.
    pub(super) fn forget_worker(&mut self, id: &str, state: TaskState, why: &'static str) {
        self.rescind(|offer| offer.worker == id);
        let Some(worker) = self.workers.remove(id) else { return };
        self.actions.push(MasterAction::Record(RegistryEntry::WorkerGone { id: id.to_owned() }));
        if let Some(connection) = worker.connection {
            self.connections.remove(&connection);
        }
        for framework in self.frameworks.values_mut() {
            framework.declined.remove(id);
        }
        for (key, task) in &worker.tasks {
            if !task.has_ended {
                self.totals.count_end(TaskState::Gone);
            }
            if self.placed.get(key).is_some_and(|placed| placed == id) {
                self.placed.remove(key);
            }
            let is_told = task.has_ended || task.is_called_lost || state == TaskState::Unreachable;
            if !is_told {
                self.report(key, Some(id), state, Reason::AgentRemoved, why);
            }
        }
        if !worker.is_unreachable {
            self.tell_of_failure(id);
        }
        let (id, hostname) = (id.to_owned(), worker.hostname);
        self.notices.push(MasterNotice::WorkerRemoved { id, hostname, why });
    }

    /// Tells all frameworks that a worker is lost.
    fn tell_of_failure(&mut self, id: &str) {
        let numbers: Vec<u64> = self.frameworks.keys().copied().collect();
        for number in numbers {
            let failure = Some(Failure { agent_id: Some(id.into()), ..Failure::default() });
            let failed = Event { failure, ..super::statuses::event(Type::Failure) };
            self.tell_framework(number, failed);
        }
    }

    /// A worker leaves, and ends its executors. Returns whether that is news.
    pub(super) fn worker_ends_executors(&mut self, id: &str) -> bool {
        let worker = self.workers.get_mut(id);
        let is_news = worker.is_some_and(|it| !std::mem::replace(&mut it.ends_executors, true));
        self.worker_leaves(id);
        is_news
    }

    /// A worker takes no launches any more.
    pub(super) fn worker_leaves(&mut self, id: &str) {
        if let Some(worker) = self.workers.get_mut(id) {
            if !worker.is_draining {
                self.notices.push(MasterNotice::WorkerDrains {
                    id: id.to_owned(),
                    hostname: worker.hostname.clone(),
                    executors: worker.living(),
                });
            }
            worker.is_draining = true;
        }
        self.rescind(|offer| offer.worker == id);
    }
}
