//! A whole cluster manager in one process: a cluster of one agent, whose executors are threads.
//!
//! Run it with `cargo run --example cluster_manager`.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use offermill::config::ExecutorCores;
use offermill::engine::cluster_manager::{
    Call, ClusterManager, Event, EventSink, OwnedOffer, Update,
};
use offermill::engine::{Engine, EngineOptions, Notice, Observer};
use offermill::launch::CommandTemplate;
use offermill::resources::MilliCpus;
use offermill::{
    Change, Config, Error, Fate, IdScheme, Kernel, Offer, Resource, TaskState, Timestamp,
    UpdateReason,
};

/// The manager: it queues calls for the thread that is the agent. So calls take effect in the order in which they are
/// made, and no call waits for the engine.
#[derive(Default)]
struct ThreadCluster {
    messages: OnceLock<Sender<Message>>,
    agent: Mutex<Option<JoinHandle<()>>>,
}

/// A message to the agent: a call, or the end of an executor.
enum Message {
    Accept { offer: String, executors: Vec<Start>, refuse: Duration },
    Decline { offers: Vec<String>, refuse: Duration },
    Suppress,
    Revive,
    Kill { executor: String },
    Reconcile { executors: Vec<String> },
    Ended { executor: String, state: TaskState },
    Stop,
}

/// An executor to start. It works for some time, and then has finished.
struct Start {
    executor: String,
    cores: MilliCpus,
    work: Duration,
}

impl ClusterManager for ThreadCluster {
    fn start(&self, events: EventSink) -> Result<(), Error> {
        let (sender, messages) = channel();
        let agent = Agent::new(events, sender.clone());
        // Set before the agent runs: its first events cause calls, perhaps before this method has returned.
        let _ = self.messages.set(sender);
        let agent = thread::Builder::new().spawn(move || agent.run(&messages));
        let agent = agent.map_err(|error| Error::cluster_from("starting the agent", error))?;
        if let Ok(mut handle) = self.agent.lock() {
            *handle = Some(agent);
        }
        Ok(())
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        let message = match call {
            Call::Accept(accept) => Message::Accept {
                offer: accept.offers[0].id.to_owned(), // there is one offer at a time
                refuse: accept.refuse,
                executors: Vec::from_iter(accept.executors.iter().map(|launch| Start {
                    executor: launch.executor.to_owned(),
                    cores: launch.resources.cores,
                    work: Duration::from_millis(launch.command.argv[1].parse().unwrap_or(0)),
                })),
            },
            Call::Decline { offers, refuse, .. } => {
                let offers = offers.iter().map(|&offer| offer.to_owned()).collect();
                Message::Decline { offers, refuse }
            }
            // The only subscription never ends, so that these calls can't be of another.
            Call::Suppress { .. } => Message::Suppress,
            Call::Revive { .. } => Message::Revive,
            Call::Kill { executor, .. } => Message::Kill { executor: executor.to_owned() },
            Call::Reconcile(tasks) => Message::Reconcile {
                executors: tasks.iter().map(|task| task.executor.to_owned()).collect(),
            },
            // Its updates need no acknowledgement, it keeps no records, and it makes offers on its own.
            _ => return Ok(()),
        };
        let sent = self.messages.get().is_some_and(|messages| messages.send(message).is_ok());
        if sent { Ok(()) } else { Err(Error::cluster("calling the agent", "it doesn't run")) }
    }

    fn stop(&self) {
        let _ = self.messages.get().map(|messages| messages.send(Message::Stop));
        let agent = self.agent.lock().ok().and_then(|mut handle| handle.take());
        let _ = agent.map(JoinHandle::join);
    }
}

/// The agent: one thread has all its state, and sends all events.
struct Agent {
    events: EventSink,
    messages: Sender<Message>,
    free: MilliCpus,
    running: HashMap<String, Running>,
    open_offer: Option<String>,
    offers_made: u64,
    suppressed: bool,
    /// When the resources that were refused may be offered again.
    offer_again: Instant,
}

/// An executor: a thread, which ends early if `kill` is dropped.
struct Running {
    cores: MilliCpus,
    kill: Option<Sender<()>>,
    thread: JoinHandle<()>,
}

impl Agent {
    /// An agent with four cores. Ends of its executors come back to it through `messages`.
    fn new(events: EventSink, messages: Sender<Message>) -> Agent {
        Agent {
            events,
            messages,
            free: MilliCpus::from_cores(4),
            running: HashMap::new(),
            open_offer: None,
            offers_made: 0,
            suppressed: false,
            offer_again: Instant::now(),
        }
    }

    fn run(mut self, messages: &Receiver<Message>) {
        self.events.send(Event::Registered { framework_id: "threads".into(), again: false });
        loop {
            self.offer();
            // Waits for a message, or until what was refused may be offered again.
            let refused = self.offer_again.saturating_duration_since(Instant::now());
            let wait = if refused.is_zero() { Duration::from_secs(3600) } else { refused };
            match messages.recv_timeout(wait) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(message) => self.apply(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        for (_, running) in self.running {
            drop(running.kill);
            let _ = running.thread.join();
        }
    }

    /// Offers the free resources, if they are not offered yet and may be.
    fn offer(&mut self) {
        let may_offer = !self.suppressed && self.offer_again <= Instant::now();
        if self.open_offer.is_some() || self.free == MilliCpus::ZERO || !may_offer {
            return;
        }
        self.offers_made += 1;
        let id = format!("offer-{}", self.offers_made);
        let cores = self.free.millis() as f64 / 1000.0;
        let resources = [Resource::scalar("cpus", cores), Resource::scalar("mem", 65_536.0)];
        let offer = Offer::new(&id, "agent-0", "localhost", &resources, &[]);
        self.events.send(Event::Offers(vec![OwnedOffer::from(&offer)]));
        self.open_offer = Some(id);
    }

    fn apply(&mut self, message: Message) {
        match message {
            Message::Accept { offer, executors, refuse } => {
                if self.open_offer.take_if(|open| *open == offer).is_none() {
                    // It was rescinded while a handler had it.
                    for start in executors {
                        self.report(start.executor, TaskState::Lost, UpdateReason::InvalidOffers);
                    }
                    return;
                }
                self.offer_again = Instant::now() + refuse;
                executors.into_iter().for_each(|start| self.start(start));
            }
            Message::Decline { offers, refuse } => {
                // An offer that was rescinded meanwhile refuses nothing: its resources are in a newer one.
                if self.open_offer.take_if(|open| offers.contains(open)).is_some() {
                    self.offer_again = Instant::now() + refuse;
                }
            }
            Message::Suppress => self.suppressed = true,
            Message::Revive => {
                self.suppressed = false;
                self.offer_again = Instant::now();
            }
            // The thread reports its end. A kill that is repeated, or comes too late, does nothing.
            Message::Kill { executor } => {
                if let Some(running) = self.running.get_mut(&executor) {
                    running.kill = None;
                }
            }
            Message::Reconcile { mut executors } => {
                if executors.is_empty() {
                    executors = self.running.keys().cloned().collect();
                }
                for executor in executors {
                    let runs = self.running.contains_key(&executor);
                    let state = if runs { TaskState::Running } else { TaskState::Gone };
                    self.report(executor, state, UpdateReason::Reconciliation);
                }
            }
            Message::Ended { executor, state } => {
                if let Some(running) = self.running.remove(&executor) {
                    self.free += running.cores;
                    // The next offer includes what has become free.
                    if let Some(offer_id) = self.open_offer.take() {
                        self.events.send(Event::Rescinded { offer_id });
                    }
                }
                self.report(executor, state, UpdateReason::Other);
            }
            Message::Stop => {}
        }
    }

    fn start(&mut self, start: Start) {
        let Start { executor, cores, work } = start;
        let (kill, killed) = channel();
        let (messages, id) = (self.messages.clone(), executor.clone());
        let thread = thread::spawn(move || {
            let state = match killed.recv_timeout(work) {
                Err(RecvTimeoutError::Timeout) => TaskState::Finished,
                _ => TaskState::Killed,
            };
            let _ = messages.send(Message::Ended { executor: id, state });
        });
        self.free = MilliCpus::from_millis(self.free.millis() - cores.millis());
        let running = Running { cores, kill: Some(kill), thread };
        self.running.insert(executor.clone(), running);
        self.report(executor, TaskState::Running, UpdateReason::Other);
    }

    fn report(&self, executor: String, state: TaskState, reason: UpdateReason) {
        // Without a uuid, it needs no acknowledgement.
        let update = Update::new(executor, state).with_agent("agent-0").with_reason(reason);
        self.events.send(Event::Update(update));
    }
}

/// Prints what becomes of executors, and tells the main thread when one has finished.
struct Printer(Sender<()>);

impl Observer for Printer {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        match notice {
            Notice::Placed(it) => println!("{} placed on {}", it.executor, it.agent_id),
            Notice::Updated { executor, change: Change::Ended(fate), .. } => {
                println!("{executor} {fate}");
                if fate == Fate::Finished {
                    let _ = self.0.send(());
                }
            }
            _ => {}
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::builder()
        .executor_cores(ExecutorCores::Fixed(MilliCpus::from_cores(2)))
        .executor_limit(Some(2))
        .build()?;
    let kernel = Kernel::new(config, IdScheme::unique("example", 1)?);
    let launcher = CommandTemplate::new(vec!["work".to_owned(), "100".to_owned()]); // milliseconds
    let (sender, finished) = channel();
    let engine = Engine::start(
        kernel,
        Arc::new(ThreadCluster::default()),
        Arc::new(launcher),
        EngineOptions::default(),
        Box::new(Printer(sender)),
    )?;
    // Two executors run at a time; each that finishes is replaced.
    for _ in 0..4 {
        finished.recv()?;
    }
    let shutdown = engine.shutdown(Duration::from_secs(10));
    println!("drained: {}", shutdown.drained);
    Ok(())
}

#[cfg(test)]
#[path = "cluster_manager/tests.rs"]
mod tests;
