//! What stands between a cluster's events and its calls: the engine, or a baseline.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use offermill::engine::cluster_manager::{
    Accept, Call, EncodedOffers, Event, EventSink, Launch, TakenResource,
};
use offermill::engine::{Engine, EngineOptions, Unobserved};
use offermill::launch::{CommandTemplate, LaunchContext, Launcher as _};
use offermill::resources::ExecutorResources;
use offermill::{Config, Offer, StatusUpdate};

use crate::BATCH;
use crate::cluster::{Cluster, Launched, ended};
use crate::support::fleet::Batch;
use crate::support::plain::{Answer, Plain, UpdateOutcome};
use crate::support::{self, ENOUGH, NOW};

/// The cluster, as all see it.
pub(crate) type Shared = Arc<Cluster>;

/// Something that answers events with calls.
pub(crate) trait System {
    /// Takes in a batch of offers, the same in both forms. May wait.
    fn offers(&self, encoded: &EncodedOffers, batch: Batch);

    /// Hears that an executor has ended. May wait.
    fn ended(&self, launched: Launched);
}

/// What executors are started with.
fn launcher() -> CommandTemplate {
    CommandTemplate::new(vec!["run".to_owned(), "{{EXECUTOR_ID}}".to_owned()])
}

/// The engine.
pub(crate) struct Engined {
    events: EventSink,
    _engine: Engine,
}

impl Engined {
    pub(crate) fn new(cluster: Shared, config: &Config, handlers: usize) -> Engined {
        let mut options = EngineOptions::default();
        options.handlers = handlers;
        options.batch_max = BATCH;
        let manager = Arc::clone(&cluster) as _;
        let (kernel, launcher) = (support::kernel(config), Arc::new(launcher()));
        let engine = Engine::start(kernel, manager, launcher, options, Box::new(Unobserved))
            .expect("an engine");
        let framework_id = "bench".to_owned();
        let events = cluster.events();
        events.send(Event::Registered { framework_id, again: false });
        Engined { events, _engine: engine }
    }
}

impl System for Engined {
    fn offers(&self, encoded: &EncodedOffers, _batch: Batch) {
        self.events.send(Event::Encoded(encoded.clone()));
    }

    fn ended(&self, launched: Launched) {
        self.events.send(ended(launched));
    }
}

/// What goes through a baseline's channel.
enum Message {
    Offers(Batch),
    Event(Event),
}

/// The baseline's loop: one thread, or several that share it.
trait Owner: Send + 'static {
    fn with<R>(&mut self, work: impl FnOnce(&mut Plain) -> R) -> R;
}

impl Owner for Plain {
    fn with<R>(&mut self, work: impl FnOnce(&mut Plain) -> R) -> R {
        work(self)
    }
}

impl Owner for Arc<Mutex<Plain>> {
    fn with<R>(&mut self, work: impl FnOnce(&mut Plain) -> R) -> R {
        work(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Threads at one channel.
pub(crate) struct Threads {
    channel: Option<Sender<Message>>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    /// One thread that has a loop of its own.
    pub(crate) fn plain(cluster: Shared, config: &Config, constraint: &str) -> Threads {
        let plain = || Plain::new(config, constraint, ENOUGH);
        Threads::start(cluster, [(plain(), plain())].into_iter())
    }

    /// Threads that share a loop.
    pub(crate) fn locked(
        cluster: Shared,
        config: &Config,
        constraint: &str,
        threads: usize,
    ) -> Threads {
        let plain = || Plain::new(config, constraint, ENOUGH);
        let shared = Arc::new(Mutex::new(plain()));
        Threads::start(cluster, (0..threads).map(|_| (Arc::clone(&shared), plain())))
    }

    /// A thread for each owner, with a loop that writes names as the owner's does, so that it needn't be asked.
    fn start<O: Owner>(cluster: Shared, owners: impl Iterator<Item = (O, Plain)>) -> Threads {
        // As many messages as wait for the engine's control thread.
        let (sender, receiver) = crossbeam_channel::bounded(16 * 1024);
        let threads = owners.map(|(owner, namer)| {
            let (cluster, receiver) = (Arc::clone(&cluster), receiver.clone());
            let clerk = Clerk { owner, namer, cluster, answer: Answer::default() };
            std::thread::spawn(move || clerk.work(&receiver))
        });
        Threads { channel: Some(sender), threads: threads.collect() }
    }

    fn send(&self, message: Message) {
        let channel = self.channel.as_ref().expect("open");
        assert!(channel.send(message).is_ok(), "the receiver is gone");
    }
}

impl System for Threads {
    fn offers(&self, _encoded: &EncodedOffers, batch: Batch) {
        self.send(Message::Offers(batch));
    }

    fn ended(&self, launched: Launched) {
        self.send(Message::Event(ended(launched)));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.channel = None;
        self.threads.drain(..).for_each(|thread| thread.join().expect("no panic"));
    }
}

/// A thread's work: the engine's answers, by the plain loop.
struct Clerk<O> {
    owner: O,
    namer: Plain,
    cluster: Shared,
    answer: Answer,
}

impl<O: Owner> Clerk<O> {
    fn work(mut self, channel: &Receiver<Message>) {
        let launcher = launcher();
        for message in channel {
            match message {
                Message::Offers(batch) => {
                    let Clerk { owner, answer, .. } = &mut self;
                    owner.with(|plain| plain.answer(batch, NOW, answer));
                    self.accept(batch, &launcher);
                    self.decline(batch);
                }
                Message::Event(Event::Update(update)) => {
                    let status = StatusUpdate::new(&update.executor, update.state);
                    let outcome = self.owner.with(|plain| plain.update(&status, NOW));
                    assert!(matches!(outcome, UpdateOutcome::Ended(..)), "{outcome:?}");
                    let uuid = update.uuid.as_deref().expect("a token");
                    self.cluster.take(&Call::Acknowledge { update: &update, uuid });
                }
                Message::Event(_) => {}
            }
        }
    }

    fn accept(&self, batch: Batch, launcher: &CommandTemplate) {
        for accept in &self.answer.accepts {
            let offer = &batch[accept.offer as usize];
            let rows = &self.answer.placed[accept.placed.0 as usize..accept.placed.1 as usize];
            let name = |row| {
                let mut name = String::new();
                self.namer.write_name(row, &mut name);
                name
            };
            let names: Vec<String> = rows.iter().map(name).collect();
            let launches = rows.iter().zip(&names).map(|(row, executor)| {
                let Offer { agent_id, hostname, .. } = *offer;
                let (cores, memory) = (row.cores, row.memory);
                let context = LaunchContext::new(executor, agent_id, hostname, cores, memory);
                let context = context.with_app("bench");
                let pieces = &self.answer.pieces[row.pieces.0 as usize..row.pieces.1 as usize];
                let taken = pieces.iter().map(|piece| {
                    TakenResource::new(&offer.resources[piece.resource as usize], piece.amount)
                });
                let resources = ExecutorResources { cores, memory, ..ExecutorResources::NONE };
                Launch::new(executor, resources, taken.collect(), launcher.command(&context))
            });
            let (offers, launches) = ([offer], launches.collect::<Vec<_>>());
            let accept = Accept::new(1, offer.agent_id, &offers, &launches);
            self.cluster.take(&Call::Accept(accept.with_refuse(self.answer.leftover_refuse)));
        }
    }

    fn decline(&self, batch: Batch) {
        let mut groups: Vec<(Duration, Vec<&str>)> = Vec::new();
        for decline in &self.answer.declines {
            let id = batch[decline.offer as usize].id;
            match groups.iter_mut().find(|(refuse, _)| *refuse == decline.refuse) {
                Some((_, ids)) => ids.push(id),
                None => groups.push((decline.refuse, vec![id])),
            }
        }
        for (refuse, offers) in &groups {
            let (offers, refuse) = (offers.as_slice(), *refuse);
            self.cluster.take(&Call::Decline { epoch: 1, offers, refuse });
        }
    }
}
