//! [`TestWorld`]: workers and frameworks around a master, in virtual time, with connections that break.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::restarts::settings;
use super::task_infos::task_info;
use crate::cluster::standalone::master::{MasterAction, RegistryEntry, StandaloneMaster};
use crate::cluster::standalone::protocol::{
    ExecutorKey, ExecutorLaunch, ExecutorUpdate, HeldExecutor, ReportedState, WorkerCall,
    WorkerEvent, WorkerResources, WorkerSubscribe,
};
use crate::mesos_v1::messages::call::{self, Type};
use crate::mesos_v1::messages::event::Type as EventType;
use crate::mesos_v1::messages::{
    Call, Capability, CapabilityType, Event, FrameworkId, FrameworkInfo, Launch, Offer, Operation,
    OperationType, Reason, TaskInfo, TaskState,
};
use crate::resources::{PortRange, PortSet, Scalar};

/// Cores of each worker.
pub(super) const WORKER_CPUS: u64 = 4;
/// MiB of each worker.
pub(super) const WORKER_MEM: u64 = 1000;
/// Ports of each worker.
pub(super) const PORTS: RangeInclusive<u64> = 100..=109;

/// A worker, and what really runs on it.
#[derive(Debug, Default)]
pub(super) struct TestWorker {
    pub(super) id: Option<String>,
    pub(super) connection: Option<u64>,
    pub(super) running: BTreeMap<ExecutorKey, HeldExecutor>,
    pub(super) unacknowledged: Vec<ExecutorUpdate>,
    /// Ends the connection with the next message, which is lost.
    pub(super) breaks: bool,
    /// It takes no launches any more.
    pub(super) leaving: bool,
    /// It reads and says nothing, as a process that is stopped.
    pub(super) silent: bool,
    /// What it was told meanwhile, and reads later.
    unread: VecDeque<WorkerEvent>,
    session: u64,
    /// It is of a version that has no hosts of tasks.
    pub(super) is_old: bool,
}

impl TestWorker {
    /// What it is going to launch once it reads what it was told.
    pub(super) fn unread_launches(&self) -> impl Iterator<Item = &WorkerResources> {
        self.unread.iter().filter_map(|event| match event {
            WorkerEvent::Launch(launch) => Some(&launch.resources),
            _ => None,
        })
    }
}

/// A framework, and what it was told.
#[derive(Debug, Default)]
pub(super) struct TestFramework {
    pub(super) id: Option<String>,
    pub(super) connection: Option<u64>,
    pub(super) offers: BTreeMap<String, Offer>,
    /// Offers that were taken back.
    rescinded: Vec<Offer>,
    pub(super) states: BTreeMap<String, TaskState>,
    /// The reasons of these states, if any were told.
    pub(super) reasons: BTreeMap<String, Reason>,
    /// The messages with these states.
    pub(super) messages: BTreeMap<String, String>,
    pub(super) failover: f64,
}

/// A master and all around it.
#[derive(Debug)]
pub(super) struct TestWorld {
    pub(super) master: StandaloneMaster,
    pub(super) workers: Vec<TestWorker>,
    pub(super) frameworks: Vec<TestFramework>,
    pub(super) now: Duration,
    pub(super) journal: Vec<RegistryEntry>,
    pub(super) term: u64,
    pub(super) max_cores: Option<Scalar>,
    numbers: u64,
    launched: HashSet<ExecutorKey>,
    /// What was launched, by the executor's id.
    pub(super) launches: BTreeMap<String, ExecutorLaunch>,
    pub(super) undelivered: VecDeque<MasterAction>,
}

impl TestWorld {
    pub(super) fn new(workers: usize, frameworks: usize, max_cores: Option<u64>) -> TestWorld {
        let max_cores = max_cores.map(|cores| Scalar::from_thousandths(cores * 1000));
        TestWorld {
            master: StandaloneMaster::new(settings(1, max_cores), Vec::new()),
            workers: (0..workers).map(|_| TestWorker::default()).collect(),
            frameworks: (0..frameworks).map(|_| TestFramework::default()).collect(),
            now: Duration::ZERO,
            journal: Vec::new(),
            term: 1,
            max_cores,
            numbers: 0,
            launched: HashSet::new(),
            launches: BTreeMap::new(),
            undelivered: VecDeque::new(),
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Judges what a call wants done, at the state that the call left.
    fn judge(&mut self) {
        let actions = self.master.take_actions();
        self.master.assert_sound(&actions, self.now);
        self.undelivered.extend(actions);
    }

    /// Delivers what the master wants done, until nothing more follows.
    pub(super) fn deliver(&mut self) {
        self.judge();
        while let Some(action) = self.undelivered.pop_front() {
            match action {
                MasterAction::Record(entry) => self.journal.push(entry),
                MasterAction::TellWorker { to, event } => self.tell_worker(to, event),
                MasterAction::TellFramework { to, event } => self.tell_framework(to, &event),
                MasterAction::Close(connection) => self.hang_up(connection),
            }
        }
        self.assert_books();
    }

    fn hang_up(&mut self, connection: u64) {
        for worker in self.workers.iter_mut().filter(|it| it.connection == Some(connection)) {
            worker.connection = None;
        }
        for framework in self.frameworks.iter_mut().filter(|it| it.connection == Some(connection)) {
            framework.connection = None;
            framework.offers.clear();
        }
    }

    fn tell_worker(&mut self, to: u64, event: WorkerEvent) {
        let found = self.workers.iter().position(|it| it.connection == Some(to));
        let Some(index) = found else { return };
        let worker = &mut self.workers[index];
        if worker.breaks && !matches!(event, WorkerEvent::Subscribed { .. }) {
            worker.breaks = false;
            worker.connection = None;
            self.master.connection_closed(to, self.now);
            self.judge();
        } else if worker.silent {
            worker.unread.push_back(event);
        } else {
            self.worker_reads(index, event);
        }
    }

    fn worker_reads(&mut self, index: usize, event: WorkerEvent) {
        let worker = &mut self.workers[index];
        match event {
            WorkerEvent::Subscribed { id, term, .. } => {
                assert_eq!(term, self.term);
                worker.id = Some(id);
            }
            WorkerEvent::Launch(launch) => {
                assert!(self.launched.insert(launch.key.clone()), "doubled: {:?}", launch.key);
                assert!(!worker.leaving, "{:?} is launched on a leaving worker", launch.key);
                let ExecutorLaunch { key, resources, tag, .. } = *launch.clone();
                self.launches.insert(key.executor.clone(), *launch);
                let state = ReportedState::Starting;
                let held = HeldExecutor { key: key.clone(), state, resources, tag, is_lost: false };
                worker.running.insert(key, held);
            }
            WorkerEvent::Kill { key, .. } => self.report(index, &key, ReportedState::Killed),
            WorkerEvent::Ack { key, uuid } => {
                worker.unacknowledged.retain(|update| update.uuid != uuid);
                let ended = worker.running.get(&key).is_some_and(|held| held.state.is_end());
                if ended && worker.unacknowledged.iter().all(|update| update.key != key) {
                    worker.running.remove(&key);
                }
            }
            WorkerEvent::ShutdownFramework { framework, .. } => {
                let own = worker.running.keys().filter(|key| key.framework == framework);
                for key in own.cloned().collect::<Vec<ExecutorKey>>() {
                    self.report(index, &key, ReportedState::Killed);
                }
            }
            WorkerEvent::Drain { .. } => {
                worker.leaving = true;
                if let Some(to) = worker.connection {
                    let _gone = self.master.worker_calls(to, WorkerCall::Leaving, self.now);
                    self.judge();
                }
            }
            WorkerEvent::Refused { .. } | WorkerEvent::Heartbeat => {}
        }
    }

    /// A worker that was silent reads what it was told, also by a master that has given it up.
    pub(super) fn wake_worker(&mut self, index: usize) {
        self.workers[index].silent = false;
        while let Some(event) = self.workers[index].unread.pop_front() {
            self.worker_reads(index, event);
        }
        self.deliver();
    }

    fn tell_framework(&mut self, to: u64, event: &Event) {
        let found = self.frameworks.iter_mut().find(|it| it.connection == Some(to));
        let Some(framework) = found else { return };
        match event.r#type() {
            EventType::Subscribed => {
                framework.id = event.subscribed.as_ref().map(|it| it.framework_id.value.clone());
            }
            EventType::Offers => {
                for offer in event.offers.iter().flat_map(|it| &it.offers) {
                    framework.offers.insert(offer.id.value.clone(), offer.clone());
                }
            }
            EventType::Rescind => {
                let rescind = event.rescind.as_ref().unwrap();
                framework.rescinded.extend(framework.offers.remove(&rescind.offer_id.value));
            }
            EventType::Update => {
                let status = &event.update.as_ref().unwrap().status;
                framework.states.insert(status.task_id.value.clone(), status.state());
                if status.reason.is_some() {
                    framework.reasons.insert(status.task_id.value.clone(), status.reason());
                }
                if let Some(message) = &status.message {
                    framework.messages.insert(status.task_id.value.clone(), message.clone());
                }
                if let Some(uuid) = status.uuid.clone() {
                    let acknowledge = call::Acknowledge {
                        agent_id: status.agent_id.clone().unwrap(),
                        task_id: status.task_id.clone(),
                        uuid,
                    };
                    let call = Call { acknowledge: Some(acknowledge), ..Call::default() };
                    self.call_on(to, Type::Acknowledge, call);
                }
            }
            // It is gone, and starts anew.
            EventType::Error => framework.id = None,
            _ => {}
        }
    }

    /// A framework's call on a connection. Returns whether it was taken.
    fn call_on(&mut self, connection: u64, of: Type, call: Call) -> bool {
        let found = self.frameworks.iter().find(|it| it.connection == Some(connection));
        let id = found.and_then(|framework| framework.id.clone());
        let framework_id = id.map(|value| FrameworkId { value });
        let call = Call { r#type: Some(of.into()), framework_id, ..call };
        let is_taken = self.master.framework_calls(connection, call, self.now).is_ok();
        self.judge();
        is_taken
    }

    /// A framework's call, with all that follows.
    pub(super) fn call(&mut self, framework: usize, of: Type, call: Call) -> bool {
        let Some(connection) = self.frameworks[framework].connection else { return false };
        let taken = self.call_on(connection, of, call);
        self.deliver();
        taken
    }

    pub(super) fn connect_worker(&mut self, index: usize) {
        self.connect_worker_with(index, Vec::new());
    }

    /// A worker claims to run what another one runs, with the tags that it has, if any. The master believes none of it.
    pub(super) fn claim_executors(&mut self, thief: usize, victim: usize) {
        let own = self.workers[thief].running.values().next().map(|it| it.tag.clone());
        let claimed = self.workers[victim].running.values().filter(|_| thief != victim);
        let claimed: Vec<HeldExecutor> = claimed
            .map(|held| HeldExecutor { tag: own.clone().unwrap_or_default(), ..held.clone() })
            .collect();
        let keys: Vec<ExecutorKey> = claimed.iter().map(|it| it.key.clone()).collect();
        self.disconnect_worker(thief);
        self.connect_worker_with(thief, claimed);
        for key in keys {
            let found = self.master.placed.get(&key);
            assert!(found.is_none() || found != self.workers[thief].id.as_ref(), "{key:?}");
        }
    }

    fn connect_worker_with(&mut self, index: usize, claimed: Vec<HeldExecutor>) {
        self.wake_worker(index);
        let connection = self.number();
        let worker = &mut self.workers[index];
        worker.connection = Some(connection);
        let ports = PortSet::of([PortRange::new(*PORTS.start(), *PORTS.end())]);
        let amount = |units: u64| Scalar::from_thousandths(units * 1000);
        let (cpus, mem) = (amount(WORKER_CPUS), amount(WORKER_MEM));
        let said = WorkerSubscribe {
            id: worker.id.clone(),
            session: format!("s{}", worker.session),
            hostname: format!("h{index}"),
            address: format!("h{index}"),
            term: self.term,
            resources: WorkerResources { cpus, mem, ports, ..WorkerResources::default() },
            attributes: Vec::new(),
            executors: worker.running.values().cloned().chain(claimed).collect(),
            unacknowledged: worker.unacknowledged.clone(),
            leaving: worker.leaving,
            has_hosts: !worker.is_old,
        };
        self.master.worker_subscribes(connection, said, Some(format!("o{index}")), self.now);
        self.deliver();
    }

    /// Somebody with other credentials pretends to be a worker, by its id or by its address. Nothing changes as long as
    /// the master knows the worker.
    pub(super) fn impersonate_worker(&mut self, index: usize, by_id: bool) {
        let connection = self.number();
        let Some(id) = self.workers[index].id.clone() else { return };
        let is_known =
            self.master.journal_entries().iter().any(
                |entry| matches!(entry, RegistryEntry::Worker { id: known, .. } if *known == id),
            );
        if !is_known {
            return;
        }
        let session = format!("s{}", self.workers[index].session);
        let address = format!("h{index}");
        let id = by_id.then_some(id);
        let said = WorkerSubscribe { id, session, address, ..WorkerSubscribe::default() };
        self.master.worker_subscribes(connection, said, Some("another".to_owned()), self.now);
        let actions = self.master.take_actions();
        self.master.assert_sound(&actions, self.now);
        let [MasterAction::TellWorker { to, event: WorkerEvent::Refused { .. } }, close] =
            &actions[..]
        else {
            panic!("{actions:?}")
        };
        assert_eq!((*to, close), (connection, &MasterAction::Close(connection)));
    }

    /// An operator drains a worker, whose executors don't end.
    pub(super) fn drain_worker(&mut self, index: usize) {
        if let Some(id) = self.workers[index].id.clone() {
            self.master.drain_worker(&id, 60_000, self.now);
            self.deliver();
        }
    }

    /// A worker begins to leave by itself. Its executors don't end.
    pub(super) fn begin_to_leave(&mut self, index: usize) {
        self.workers[index].leaving = true;
        if let Some(connection) = self.workers[index].connection {
            let _gone = self.master.worker_calls(connection, WorkerCall::Leaving, self.now);
            self.deliver();
        }
    }

    /// Lets executors be launched again under their ids.
    pub(super) fn forget_launches(&mut self) {
        self.launched.clear();
    }

    /// A worker's program ends, and its executors with it.
    pub(super) fn crash_worker(&mut self, index: usize) {
        self.disconnect_worker(index);
        let worker = &mut self.workers[index];
        worker.session += 1;
        worker.leaving = false;
        worker.silent = false;
        worker.unread.clear();
        worker.running.clear();
        worker.unacknowledged.clear();
    }

    pub(super) fn disconnect_worker(&mut self, index: usize) {
        if let Some(connection) = self.workers[index].connection.take() {
            self.master.connection_closed(connection, self.now);
            self.deliver();
        }
    }

    /// An executor's state changes. The master is told if the worker is connected.
    pub(super) fn report(&mut self, index: usize, key: &ExecutorKey, state: ReportedState) {
        let uuid = format!("{:032x}", self.number());
        let worker = &mut self.workers[index];
        let Some(held) = worker.running.get_mut(key) else { return };
        if held.state.is_end() {
            return;
        }
        held.state = state;
        let update = ExecutorUpdate::new(key.clone(), uuid, state, 1.0);
        worker.unacknowledged.push(update.clone());
        if let Some(connection) = worker.connection {
            let _gone = self.master.worker_calls(connection, WorkerCall::Update(update), self.now);
            self.judge();
        }
    }

    pub(super) fn subscribe_framework(&mut self, index: usize) {
        let connection = self.number();
        let framework = &mut self.frameworks[index];
        framework.connection = Some(connection);
        framework.offers.clear();
        let aware = Capability { r#type: Some(CapabilityType::PartitionAware.into()) };
        let framework_info = FrameworkInfo {
            name: format!("f{index}"),
            user: format!("u{index}"),
            id: framework.id.clone().map(|value| FrameworkId { value }),
            failover_timeout: Some(framework.failover),
            capabilities: if index == 0 { Vec::new() } else { vec![aware] },
            ..FrameworkInfo::default()
        };
        let subscribe = call::Subscribe { framework_info, ..call::Subscribe::default() };
        self.master.framework_subscribes(connection, subscribe, self.now);
        self.deliver();
    }

    pub(super) fn disconnect_framework(&mut self, index: usize) {
        if let Some(connection) = self.frameworks[index].connection.take() {
            self.frameworks[index].offers.clear();
            self.master.connection_closed(connection, self.now);
            self.deliver();
        }
    }

    /// Accepts an offer with one task of this size.
    pub(super) fn accept(
        &mut self,
        index: usize,
        offer: &str,
        cores: f64,
        port: Option<u64>,
    ) -> String {
        let task = format!("t{}", self.number());
        let info = task_info(&task, &self.frameworks[index].offers[offer], cores, port);
        self.accept_tasks(index, offer, vec![info]);
        task
    }

    /// Accepts an offer that was taken back, before the framework knew that. Nothing may be launched.
    pub(super) fn accept_rescinded(&mut self, index: usize, choice: usize) {
        let framework = &mut self.frameworks[index];
        if framework.rescinded.is_empty() || framework.connection.is_none() {
            return;
        }
        let offer = framework.rescinded.swap_remove(choice % framework.rescinded.len());
        let id = offer.id.value.clone();
        framework.offers.insert(id.clone(), offer);
        let task = self.accept(index, &id, 1.0, None);
        assert!(self.launched.iter().all(|key| key.executor != task), "{task} is launched");
    }

    /// Accepts an offer with these tasks.
    pub(super) fn accept_tasks(&mut self, index: usize, offer: &str, task_infos: Vec<TaskInfo>) {
        let offer = self.frameworks[index].offers.remove(offer).unwrap();
        let operation = Operation {
            r#type: Some(OperationType::Launch.into()),
            launch: Some(Launch { task_infos }),
            ..Operation::default()
        };
        let accept =
            call::Accept { offer_ids: vec![offer.id], operations: vec![operation], filters: None };
        self.call(index, Type::Accept, Call { accept: Some(accept), ..Call::default() });
    }

    /// Time passes. Workers that are connected say so.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + Duration::from_secs(10));
            let awake = self.workers.iter().filter(|worker| !worker.silent);
            let connected = awake.filter_map(|worker| worker.connection);
            for connection in connected.collect::<Vec<_>>() {
                let _gone = self.master.worker_calls(connection, WorkerCall::Heartbeat, self.now);
                self.judge();
            }
            self.deliver();
            self.master.tick(self.now);
            self.deliver();
        }
    }
}
