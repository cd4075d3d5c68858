//! The engine's threads: its offer queue, its inbox and its shutdown, with the real kernel and a cluster that answers
//! on threads of its own.
//!
//! Under shuttle the engine's queue to the control thread has room for two messages, its clock stands still, and its
//! control thread wakes only for messages: a forgotten wake-up is found as a deadlock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex as Quiet};
use std::time::Duration;

use offermill::engine::cluster_manager::{
    Call, ClusterManager, Event, EventSink, OwnedOffer, OwnedResource, Update,
};
use offermill::engine::{Engine, EngineOptions, Notice, Observer, Unobserved};
use offermill::launch::{Command, CommandTemplate, LaunchContext, Launcher};
use offermill::resources::Scalar;
use offermill::{Error, ExecutorId, IdScheme, Kernel, TaskState, Timestamp};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread::{self, JoinHandle};

use crate::play;
use crate::world::Setup;

/// A cluster that records its calls and answers each launch and each kill on a thread. Its records are in std's locks,
/// which shuttle doesn't see.
#[derive(Default)]
struct Cluster {
    memory: Quiet<Memory>,
    events: Quiet<Option<EventSink>>,
    threads: Quiet<Vec<JoinHandle<()>>>,
    stopped: Mutex<bool>,
    told: Condvar,
    /// The number of calls, which can be waited for.
    calls: Mutex<u64>,
    called: Condvar,
}

#[derive(Default)]
struct Memory {
    /// The subscription of each answer, by the offer's id.
    answers: BTreeMap<String, Vec<u64>>,
    launched: BTreeSet<String>,
    killed: BTreeSet<String>,
    is_stopped: bool,
    /// Violations.
    wrong: Vec<String>,
}

impl Cluster {
    fn send(&self, event: Event) {
        let events = self.events.lock().unwrap().clone().unwrap();
        events.send(event);
    }

    fn register(&self) {
        self.send(Event::Registered { framework_id: "F".to_owned(), again: false });
    }

    fn offer(&self, ids: &[&str]) {
        self.send(Event::Offers(ids.iter().map(|id| offer(id)).collect()));
    }

    fn rescind(&self, id: &str) {
        self.send(Event::Rescinded { offer_id: id.to_owned() });
    }

    /// Sends an update on a thread that the stop waits for.
    fn answer(&self, executor: &str, state: TaskState) {
        let events = self.events.lock().unwrap().clone().unwrap();
        let event = update(executor, state);
        // No switch of threads while std's lock is held.
        let thread = thread::spawn(move || events.send(event));
        self.threads.lock().unwrap().push(thread);
    }

    /// Returns once these offers are answered. If they never are, shuttle sees a deadlock.
    fn wait_for_answers(&self, offers: &[&str]) {
        let is_answered = |offer: &&str| self.memory.lock().unwrap().answers.contains_key(*offer);
        let mut calls = self.calls.lock().unwrap();
        while !offers.iter().all(is_answered) {
            calls = self.called.wait(calls).unwrap();
        }
    }

    fn check_answers(&self) {
        let memory = self.memory.lock().unwrap();
        assert!(memory.wrong.is_empty(), "{:?}", memory.wrong);
        for (offer, answers) in &memory.answers {
            assert_eq!(answers.len(), 1, "offer {offer} was answered under {answers:?}");
        }
    }
}

impl ClusterManager for Cluster {
    fn start(&self, events: EventSink) -> Result<(), Error> {
        *self.events.lock().unwrap() = Some(events);
        Ok(())
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        let mut answers = Vec::new();
        {
            let mut memory = self.memory.lock().unwrap();
            if memory.is_stopped {
                memory.wrong.push(format!("after the stop: {call:?}"));
            }
            match call {
                Call::Accept(accept) => {
                    for offer in accept.offers {
                        memory.answers.entry(offer.id.to_owned()).or_default().push(accept.epoch);
                    }
                    for launch in accept.executors {
                        if memory.killed.contains(launch.executor) {
                            memory.wrong.push(format!("{} was killed before", launch.executor));
                        }
                        memory.launched.insert(launch.executor.to_owned());
                        answers.push((launch.executor.to_owned(), TaskState::Running));
                    }
                }
                Call::Decline { epoch, offers, .. } => {
                    for offer in offers {
                        memory.answers.entry((*offer).to_owned()).or_default().push(epoch);
                    }
                }
                Call::Kill { executor, .. } => {
                    memory.killed.insert(executor.to_owned());
                    answers.push((executor.to_owned(), TaskState::Killed));
                }
                _ => {}
            }
        }
        answers.iter().for_each(|(executor, state)| self.answer(executor, *state));
        *self.calls.lock().unwrap() += 1;
        self.called.notify_all();
        Ok(())
    }

    fn stop(&self) {
        self.memory.lock().unwrap().is_stopped = true;
        let threads = std::mem::take(&mut *self.threads.lock().unwrap());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        *self.stopped.lock().unwrap() = true;
        self.told.notify_all();
    }
}

struct Run;

impl Launcher for Run {
    fn command(&self, context: &LaunchContext<'_>) -> Command {
        CommandTemplate::new(vec!["run".to_owned()]).command(context)
    }
}

fn offer(id: &str) -> OwnedOffer {
    let scalar = |name: &str, amount: u64| {
        OwnedResource::scalar(name, Scalar::from_thousandths(amount * 1000))
    };
    let resources = vec![scalar("cpus", 1), scalar("mem", 10_000)];
    OwnedOffer::new(id, format!("agent-of-{id}"), "host", resources)
}

fn update(executor: &str, state: TaskState) -> Event {
    Event::Update(Update::new(executor, state).with_uuid(vec![1]))
}

/// An engine with two handlers, and batches of one offer. With `slack` the schedule chooses all deadlines of its
/// shutdown; without, they never pass.
fn start(cluster: &Arc<Cluster>, observer: Box<dyn Observer>, slack: bool) -> (Engine, Kernel) {
    start_with_batches(cluster, observer, slack, 1)
}

fn start_with_batches(
    cluster: &Arc<Cluster>,
    observer: Box<dyn Observer>,
    slack: bool,
    batch_max: usize,
) -> (Engine, Kernel) {
    let setup = Setup { limit: Some(2), ..Setup::default() };
    let kernel = Kernel::new(setup.config(), IdScheme::unique("s", 0).unwrap());
    let mut options = EngineOptions::default();
    options.handlers = 2;
    options.offers_queued_max = 3;
    options.batch_max = batch_max;
    options.shutdown_slack = if slack { Duration::from_secs(1) } else { Duration::MAX };
    let manager = Arc::clone(cluster) as Arc<dyn ClusterManager>;
    let engine = Engine::start(kernel.clone(), manager, Arc::new(Run), options, observer);
    (engine.unwrap(), kernel)
}

/// Goal: a handler that waits is woken for offers, whatever the others do: no offer waits for the engine's end. Method:
/// offers one by one and by the two, some of them sent when those before are answered, and the shutdown only after the
/// last answer.
#[test]
fn handlers_that_wait_are_woken() {
    play("engine/idle", 3000, || {
        let cluster = Arc::new(Cluster::default());
        let (engine, _) = start(&cluster, Box::new(Unobserved), false);
        cluster.register();
        cluster.offer(&["a1"]);
        cluster.offer(&["a2"]);
        cluster.wait_for_answers(&["a1"]);
        cluster.offer(&["a3", "a4"]);
        cluster.wait_for_answers(&["a2", "a3", "a4"]);
        assert!(engine.shutdown(Duration::MAX).drained);
        cluster.check_answers();
    });
}

/// Goal: each offer of the current subscription is answered once, under this subscription, unless it was rescinded;
/// older ones at most once; and no handler sleeps while there is an offer or the close. Method: two subscriptions, the
/// first with more offers than the offer queue has room for; rescissions from a second thread; then a shutdown without
/// a deadline.
#[test]
fn offers_are_answered_once() {
    play("engine/offers", 6000, || {
        let cluster = Arc::new(Cluster::default());
        let (engine, kernel) = start(&cluster, Box::new(Unobserved), false);
        let sender = Arc::clone(&cluster);
        let sender = thread::spawn(move || {
            sender.register();
            sender.offer(&["a1", "a2"]);
            sender.offer(&["a3", "a4"]);
            sender.register();
            sender.offer(&["b1", "b2"]);
            sender.offer(&["b3"]);
        });
        let rescinding = Arc::clone(&cluster);
        let rescinding = thread::spawn(move || ["a1", "b1"].map(|id| rescinding.rescind(id)));
        sender.join().unwrap();
        rescinding.join().unwrap();
        let report = engine.shutdown(Duration::MAX);
        assert!(report.drained && report.unfinished.is_empty());
        cluster.check_answers();
        let memory = cluster.memory.lock().unwrap();
        for (offer, epochs) in &memory.answers {
            let epoch = if offer.starts_with('a') { 1 } else { 2 };
            assert_eq!(epochs, &[epoch], "offer {offer}");
        }
        for offer in ["b2", "b3"] {
            assert!(memory.answers.contains_key(offer), "offer {offer} was not answered");
        }
        kernel.check().unwrap();
    });
}

/// Kills a running executor, once.
struct Killing {
    engine: Arc<Mutex<Option<Engine>>>,
    placed: Vec<(String, ExecutorId)>,
}

impl Observer for Killing {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        match notice {
            Notice::Placed(placed) => self.placed.push((placed.executor, placed.id)),
            Notice::Updated { executor, state: TaskState::Running, .. } => {
                let row = self.placed.iter().find(|(name, _)| *name == executor);
                let engine = self.engine.lock().unwrap();
                if let (Some((_, id)), Some(engine)) = (row, &*engine) {
                    engine.kill(vec![*id]);
                }
            }
            _ => {}
        }
    }
}

/// Goal: the shutdown ends, whatever threads are doing: no thread waits for ever, each executor that was launched is
/// killed after its launch and reported, and no call follows the stop. Method: a shutdown without deadlines while
/// offers come, updates fill the queue, and the observer kills.
#[test]
fn an_end_without_deadlines_loses_nothing() {
    play("engine/end", 1500, || {
        let cluster = Arc::new(Cluster::default());
        let slot = Arc::new(Mutex::new(None));
        let killing = Killing { engine: Arc::clone(&slot), placed: Vec::new() };
        let (engine, kernel) = start(&cluster, Box::new(killing), false);
        *slot.lock().unwrap() = Some(engine);
        let sender = Arc::clone(&cluster);
        let sender = thread::spawn(move || {
            sender.register();
            sender.offer(&["a1", "a2"]);
            for stray in ["x", "y", "z"] {
                sender.send(update(stray, TaskState::Lost));
            }
            sender.offer(&["a3"]);
        });
        let engine = slot.lock().unwrap().take().unwrap();
        let report = engine.shutdown(Duration::MAX);
        assert!(report.drained && report.unfinished.is_empty() && report.broken.is_none());
        sender.join().unwrap();
        cluster.check_answers();
        let memory = cluster.memory.lock().unwrap();
        assert!(memory.launched.is_subset(&memory.killed), "launched and not killed");
        assert_eq!(kernel.totals().executors, 0);
        kernel.check().unwrap();
    });
}

/// Kills each executor as soon as it is reported, which is before its launch.
struct KillingAtOnce(Arc<Mutex<Option<Engine>>>);

impl Observer for KillingAtOnce {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        if let Notice::Placed(placed) = notice
            && let Some(engine) = &*self.0.lock().unwrap()
        {
            engine.kill(vec![placed.id]);
        }
    }
}

/// Goal: executors of a batch with several ACCEPTs are killed each after its own launch, however early that is asked
/// for, and none is left. Method: batches of two offers of two agents, an observer that kills at the first report, a
/// further registration, and a shutdown without deadlines.
#[test]
fn no_kill_overtakes_a_launch_of_a_batch() {
    play("engine/batches", 1500, || {
        let cluster = Arc::new(Cluster::default());
        let slot = Arc::new(Mutex::new(None));
        let killing = Box::new(KillingAtOnce(Arc::clone(&slot)));
        let (engine, kernel) = start_with_batches(&cluster, killing, false, 2);
        *slot.lock().unwrap() = Some(engine);
        let sender = Arc::clone(&cluster);
        let sender = thread::spawn(move || {
            sender.register();
            sender.offer(&["a1", "a2"]);
            sender.register();
            sender.offer(&["b1"]);
        });
        sender.join().unwrap();
        let engine = slot.lock().unwrap().take().unwrap();
        let report = engine.shutdown(Duration::MAX);
        assert!(report.drained && report.unfinished.is_empty() && report.broken.is_none());
        cluster.check_answers();
        let memory = cluster.memory.lock().unwrap();
        assert!(memory.launched.is_subset(&memory.killed), "launched and not killed");
        assert_eq!(kernel.totals().executors, 0);
        kernel.check().unwrap();
    });
}

/// Goal: a shutdown whose deadlines pass at any moment returns, and no call follows the stop. Method: the same with
/// deadlines chosen by the schedule, or the engine is dropped.
#[test]
fn an_end_with_deadlines_makes_no_call_after_the_stop() {
    play("engine/deadlines", 1500, || {
        let cluster = Arc::new(Cluster::default());
        let (engine, _kernel) = start(&cluster, Box::new(Unobserved), true);
        let sender = Arc::clone(&cluster);
        let sender = thread::spawn(move || {
            sender.register();
            sender.offer(&["a1", "a2"]);
            sender.send(update("x", TaskState::Lost));
            sender.send(update("y", TaskState::Lost));
        });
        if shuttle::rand::Rng::r#gen(&mut shuttle::rand::thread_rng()) {
            drop(engine);
        } else {
            engine.shutdown(Duration::from_secs(1));
        }
        sender.join().unwrap();
        let late = cluster.memory.lock().unwrap().wrong.clone();
        let late = late.iter().find(|wrong| wrong.contains("after the stop"));
        // The kernel isn't checked: threads that were abandoned may be in the middle of a step.
        assert_eq!(late, None);
    });
}

/// Shuts the engine down at the first update.
struct Ends(Arc<Mutex<Option<Engine>>>);

impl Observer for Ends {
    fn notice(&mut self, _at: Timestamp, notice: Notice) {
        if let Notice::Updated { .. } = notice {
            let engine = self.0.lock().unwrap().take();
            if let Some(engine) = engine {
                engine.shutdown(Duration::MAX);
            }
        }
    }
}

/// Goal: an observer may shut the engine down: the control thread goes on, and the manager is stopped. Method: it shuts
/// down, without deadlines, while offers and updates come; all threads have to end.
#[test]
fn an_observer_ends_the_engine() {
    play("engine/observer", 1500, || {
        let cluster = Arc::new(Cluster::default());
        let slot = Arc::new(Mutex::new(None));
        let (engine, _kernel) = start(&cluster, Box::new(Ends(Arc::clone(&slot))), false);
        *slot.lock().unwrap() = Some(engine);
        cluster.register();
        cluster.offer(&["a1", "a2", "a3"]);
        for stray in ["x", "y", "z"] {
            cluster.send(update(stray, TaskState::Lost));
        }
        let stopped = cluster.stopped.lock().unwrap();
        drop(cluster.told.wait_while(stopped, |stopped| !*stopped).unwrap());
        // The kernel isn't checked: the stop doesn't wait for all steps of the engine's threads.
        cluster.check_answers();
    });
}
