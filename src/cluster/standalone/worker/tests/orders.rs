//! Random orders of launches, kills, losses and reconnections against a model of a master.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{at, key, launch, worker};
use crate::cluster::standalone::protocol::{
    ExecutorKey, ExecutorUpdate, LaunchHosting, ReportedState, WorkerCall, WorkerEvent,
};
use crate::cluster::standalone::worker::state::WorkerState;
use crate::cluster::standalone::worker::step::{WorkerAction, WorkerInput};

/// Something that happens. Numbers choose among what there is.
#[derive(Clone, Copy, Debug)]
enum OrderStep {
    /// The master launches the executor with this number, which may have been launched before.
    Launch {
        framework: u8,
        executor: u8,
        repeats_sequence: bool,
    },
    Kill(u8),
    Shutdown(u8),
    /// A process runs, or ends.
    Runs(u8),
    Ends(u8),
    /// What the worker has sent arrives, or what the master has answered; a number of messages at most.
    WorkerSent(u8),
    MasterSent(u8),
    /// The connection breaks: what is on its way is lost.
    Breaks,
    /// The worker registers again.
    Registers {
        higher_term: bool,
    },
    /// An old leader sends a command.
    OldLeader(u8),
    TimePasses,
}

fn steps() -> impl Strategy<Value = OrderStep> {
    prop_oneof![
        4 => (0..3_u8, 0..6_u8, any::<bool>()).prop_map(|(framework, executor, repeats_sequence)| {
            OrderStep::Launch { framework, executor, repeats_sequence }
        }),
        2 => any::<u8>().prop_map(OrderStep::Kill),
        1 => (0..3_u8).prop_map(OrderStep::Shutdown),
        4 => any::<u8>().prop_map(OrderStep::Runs),
        3 => any::<u8>().prop_map(OrderStep::Ends),
        5 => any::<u8>().prop_map(OrderStep::WorkerSent),
        5 => any::<u8>().prop_map(OrderStep::MasterSent),
        2 => Just(OrderStep::Breaks),
        4 => any::<bool>().prop_map(|higher_term| OrderStep::Registers { higher_term }),
        1 => (0..3_u8).prop_map(OrderStep::OldLeader),
        2 => Just(OrderStep::TimePasses),
    ]
}

/// The executors that are tasks in the host of their framework.
const TASKS: [&str; 2] = ["e4", "e5"];

/// What an executor is, by its name.
fn hosting(key: &ExecutorKey) -> LaunchHosting {
    match &*key.executor {
        "e0" => LaunchHosting::Host,
        task if TASKS.contains(&task) => LaunchHosting::In("e0".to_owned()),
        _ => LaunchHosting::Alone,
    }
}

/// A worker, the master that it talks to, and what is on its way between them.
struct OrderWorld {
    worker: WorkerState,
    seconds: u64,
    is_connected: bool,
    to_worker: Vec<WorkerEvent>,
    to_master: Vec<WorkerCall>,
    term: u64,
    sequence: u64,
    /// Frameworks that were shut down under this term, as far as the worker was told.
    shut_down: BTreeSet<String>,
    /// Processes that were started and haven't ended, and whether they were asked to end.
    processes: BTreeMap<ExecutorKey, bool>,
    started: BTreeMap<ExecutorKey, u32>,
    /// All updates in the order in which the worker made them, and those that the master has received.
    made: BTreeMap<ExecutorKey, Vec<ExecutorUpdate>>,
    received: BTreeMap<ExecutorKey, Vec<String>>,
    launches: BTreeMap<ExecutorKey, u32>,
}

impl OrderWorld {
    fn new() -> OrderWorld {
        OrderWorld {
            worker: worker(1000),
            seconds: 0,
            is_connected: false,
            to_worker: Vec::new(),
            to_master: Vec::new(),
            term: 1,
            sequence: 0,
            shut_down: BTreeSet::new(),
            processes: BTreeMap::new(),
            started: BTreeMap::new(),
            made: BTreeMap::new(),
            received: BTreeMap::new(),
            launches: BTreeMap::new(),
        }
    }

    fn apply(&mut self, step: OrderStep) {
        match step {
            OrderStep::Launch { framework, executor, repeats_sequence } => {
                if self.is_connected {
                    let is_new = !repeats_sequence || self.sequence == 0;
                    self.sequence += u64::from(is_new);
                    let key = key(&format!("f{framework}"), &format!("e{executor}"));
                    *self.launches.entry(key.clone()).or_default() += u32::from(is_new);
                    let mut launch = launch(key, self.sequence, self.term);
                    if let WorkerEvent::Launch(launch) = &mut launch {
                        launch.hosting = hosting(&launch.key);
                    }
                    self.to_worker.push(launch);
                }
            }
            OrderStep::Kill(number) => {
                if let (Some(key), true) = (self.process(number), self.is_connected) {
                    self.to_worker.push(WorkerEvent::Kill { key, term: self.term, grace: 0 });
                }
            }
            OrderStep::Shutdown(framework) => {
                if self.is_connected {
                    let framework = format!("f{framework}");
                    let term = self.term;
                    self.to_worker.push(WorkerEvent::ShutdownFramework { framework, term });
                }
            }
            OrderStep::Runs(number) => {
                if let Some(key) = self.process(number) {
                    let message = String::new();
                    self.input(WorkerInput::Running { key, pid: None, message, folder: None });
                }
            }
            OrderStep::Ends(number) => {
                if let Some(key) = self.process(number) {
                    self.end_process(&key);
                }
            }
            OrderStep::WorkerSent(number) => {
                let arrived = (usize::from(number) % 8).min(self.to_master.len());
                let arrived: Vec<WorkerCall> = self.to_master.drain(..arrived).collect();
                arrived.into_iter().for_each(|call| self.receive(call));
            }
            OrderStep::MasterSent(number) => {
                for _ in 0..usize::from(number) % 8 {
                    if !self.to_worker.is_empty() {
                        let event = self.to_worker.remove(0);
                        self.deliver(event);
                    }
                }
            }
            OrderStep::Breaks => self.break_connection(),
            OrderStep::Registers { higher_term } => self.register(higher_term),
            OrderStep::OldLeader(framework) => {
                if self.term > 1 && self.worker.is_subscribed() {
                    let framework = format!("f{framework}");
                    let term = self.term - 1;
                    self.deliver(WorkerEvent::ShutdownFramework { framework, term });
                    assert!(!self.worker.is_subscribed(), "an old leader was obeyed");
                }
            }
            OrderStep::TimePasses => {
                self.seconds += 7;
                self.input(WorkerInput::Tick);
            }
        }
    }

    fn process(&self, number: u8) -> Option<ExecutorKey> {
        self.processes.keys().nth(usize::from(number) % self.processes.len().max(1)).cloned()
    }

    /// A process ends. If it is a host, its tasks do before.
    fn end_process(&mut self, key: &ExecutorKey) {
        if hosting(key) == LaunchHosting::Host {
            for task in TASKS.map(|task| ExecutorKey::new(key.framework.clone(), task)) {
                self.end_one(&task, true);
            }
        }
        self.end_one(key, false);
    }

    fn end_one(&mut self, key: &ExecutorKey, with_host: bool) {
        let Some(was_asked) = self.processes.remove(key) else { return };
        let state = if was_asked { ReportedState::Killed } else { ReportedState::Failed };
        let (message, is_lost) = (String::new(), with_host && !was_asked);
        self.input(WorkerInput::Ended { key: key.clone(), state, message, is_lost });
    }

    fn break_connection(&mut self) {
        self.is_connected = false;
        self.to_worker.clear();
        self.to_master.clear();
        self.input(WorkerInput::Disconnected);
    }

    /// The master answers the registration at once.
    fn register(&mut self, higher_term: bool) {
        self.break_connection();
        if higher_term {
            self.term += 1;
            self.shut_down.clear();
        }
        self.is_connected = true;
        self.sequence = 0;
        let call = self.worker.subscribe(at(self.seconds));
        self.receive(call);
        let id = "w-1".to_owned();
        // Acknowledgements of the listed updates come after the answer.
        self.to_worker.insert(0, WorkerEvent::Subscribed { id, term: self.term, heartbeat: None });
        let answer = self.to_worker.remove(0);
        self.deliver(answer);
    }

    fn receive(&mut self, call: WorkerCall) {
        let updates = match call {
            WorkerCall::Update(update) => vec![update],
            WorkerCall::Subscribe(subscribe) => {
                // Each process is among the executors that are listed.
                for key in self.processes.keys() {
                    assert!(subscribe.executors.iter().any(|held| held.key == *key), "{key:?}");
                }
                subscribe.unacknowledged
            }
            WorkerCall::Heartbeat | WorkerCall::Leaving | WorkerCall::Leave => Vec::new(),
        };
        for update in updates {
            let received = self.received.entry(update.key.clone()).or_default();
            if !received.contains(&update.uuid) {
                received.push(update.uuid.clone());
            }
            self.to_worker.push(WorkerEvent::Ack { key: update.key, uuid: update.uuid });
        }
    }

    fn deliver(&mut self, event: WorkerEvent) {
        if let WorkerEvent::ShutdownFramework { framework, term } = &event
            && *term == self.term
            && self.worker.is_subscribed()
        {
            self.shut_down.insert(framework.clone());
        }
        self.input(WorkerInput::Event(event));
    }

    fn input(&mut self, input: WorkerInput) {
        for action in self.worker.handle(input, at(self.seconds)) {
            match action {
                WorkerAction::Start(launch) => {
                    let framework = &launch.key.framework;
                    assert!(!self.shut_down.contains(framework), "{framework} was shut down");
                    if let Some(host) = launch.hosting.host() {
                        let host = ExecutorKey::new(framework.clone(), host);
                        let is_asked = self.processes.get(&host);
                        assert_eq!(is_asked, Some(&false), "{:?} has no host", launch.key);
                    }
                    let doubled = self.processes.insert(launch.key.clone(), false);
                    assert_eq!(doubled, None, "{:?} was started twice", launch.key);
                    *self.started.entry(launch.key).or_default() += 1;
                }
                WorkerAction::End { key, .. } => {
                    if let Some(was_asked) = self.processes.get_mut(&key) {
                        *was_asked = true;
                    }
                }
                WorkerAction::Send(call) => self.to_master.push(call),
                WorkerAction::Changed(update) => {
                    self.made.entry(update.key.clone()).or_default().push(*update);
                }
                WorkerAction::Disconnect { .. } => self.is_connected = false,
                WorkerAction::Persist { .. }
                | WorkerAction::Registered { .. }
                | WorkerAction::Drains { .. } => {}
                WorkerAction::Exit(reason) => panic!("nothing asked the worker to end: {reason:?}"),
            }
        }
        let running = self.processes.iter().filter(|(_, was_asked)| !**was_asked);
        for (key, _) in running {
            assert!(!self.shut_down.contains(&key.framework), "{key:?} runs on");
        }
    }

    /// Lets all processes end, the connection hold, and all messages arrive.
    fn settle(&mut self) {
        for key in self.processes.keys().cloned().collect::<Vec<_>>() {
            self.end_process(&key);
        }
        self.register(false);
        while !self.to_master.is_empty() || !self.to_worker.is_empty() {
            self.apply(OrderStep::WorkerSent(7));
            self.apply(OrderStep::MasterSent(7));
        }
    }

    fn check(&mut self) {
        for (key, made) in &self.made {
            let made: Vec<&String> = made.iter().map(|update| &update.uuid).collect();
            let received: Vec<&String> = self.received.get(key).into_iter().flatten().collect();
            assert_eq!(received, made, "{key:?}: updates were lost, or came in another order");
        }
        for (key, started) in &self.started {
            assert!(*started <= self.launches[key], "{key:?} was started by one launch twice");
        }
        let WorkerCall::Subscribe(last) = self.worker.subscribe(at(self.seconds)) else {
            panic!("another message")
        };
        assert!(last.executors.is_empty() && last.unacknowledged.is_empty(), "{last:?}");
    }
}

proptest! {
    /// Goal: in whatever order connections break and come back, launches repeat and acknowledgements are lost, no
    /// executor is started twice, no update is lost, an executor's updates arrive in their order, nothing runs of a
    /// framework that was shut down, no task is started without its host, and a lower term is refused. Method: random
    /// orders against a model of a master, judged at each step and after all messages have arrived. proptest prints the
    /// seed of an order that fails.
    #[test]
    fn nothing_is_lost_or_doubled(order in prop::collection::vec(steps(), 1..120)) {
        let mut world = OrderWorld::new();
        order.into_iter().for_each(|step| world.apply(step));
        world.settle();
        world.check();
    }
}
