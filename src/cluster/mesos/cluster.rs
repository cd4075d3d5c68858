//! A Mesos cluster as the engine and its owner see it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, current};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{oneshot, watch};

use super::active_subscription::{ActiveSubscription, DoubtSender, StandingReceiver, doubt};
use super::call_queue::What;
use super::call_queue::{CallQueue, Inboxes, Unordered};
use super::call_sender::{CallSender, REFUSED_AFTER_FAILURE};
use super::caller::Caller;
use super::calls;
use super::config::{AtEnd, MesosConfig};
use super::http::Http;
use super::state_writer::SharedLedger;
use super::subscriber::{Subscriber, SubscriberState};
use super::supervisor::{Part, Stop, Supervisor, panic_text};
use super::task;
use super::tear_down::{Parting, TearDown};
use crate::config::Config;
use crate::engine::cluster_manager::{
    Accept, Call, ClusterManager, Event, EventSink, ReadOffers, ReconcileTask, RecoveredExecutor,
    Update,
};
use crate::error::Error;
use crate::mesos_v1::codec::Codec;
use crate::mesos_v1::messages::Call as Message;
use crate::mesos_v1::offers::OfferReader;

/// A Mesos cluster, reached through its masters.
///
/// One thread of its own subscribes, reads events and sends calls; [`ClusterManager::call`] only queues, and never
/// waits. A subscription that ends is followed by another, for as long as it takes; only a cluster that refuses the
/// framework ends that, and a first subscription that takes longer than
/// [`MesosConfig::subscribe_timeout`]: then an [`Event::Refused`](crate::engine::cluster_manager::Event::Refused) comes.
///
/// An [`Event::Refused`](crate::engine::cluster_manager::Event::Refused) also comes if a part of the manager breaks down.
///
/// Numbers of subscriptions ([`Accept::epoch`]) are counted from 1: use a manager with a new kernel.
pub struct MesosCluster {
    config: MesosConfig,
    running: OnceLock<Running>,
    thread: Mutex<Option<JoinHandle<Parting>>>,
    left: OnceLock<String>,
}

/// What calls need.
struct Running {
    config: watch::Sender<MesosConfig>,
    standing: StandingReceiver,
    reconsider: DoubtSender,
    outgoing: CallQueue,
    ledger: SharedLedger,
    stopping: watch::Sender<bool>,
    stop: Mutex<Option<oneshot::Sender<Stop>>>,
}

impl MesosCluster {
    /// A framework that is not subscribed yet.
    ///
    /// # Errors
    /// When a setting's value isn't allowed.
    pub fn new(config: MesosConfig) -> Result<MesosCluster, Error> {
        config.check()?;
        let (running, left) = (OnceLock::new(), OnceLock::new());
        Ok(MesosCluster { config, running, thread: Mutex::new(None), left })
    }

    /// Why the master may keep the framework, after [`ClusterManager::stop`] returned, although it was to be torn down:
    /// for its failover timeout, executors included. `None` if the master has torn it down, there was nothing to tear
    /// down, or it was to be left.
    #[must_use]
    pub fn why_left(&self) -> Option<&str> {
        self.left.get().map(String::as_str)
    }

    /// Tells the master what a kernel with `config` could use, after that was reconfigured. Offers that are out keep
    /// to what was asked for before.
    ///
    /// # Errors
    /// When the manager isn't running, or too many calls wait. The next subscription asks for the new in any case.
    pub fn follow(&self, config: &Config) -> Result<(), Error> {
        let running = self.running()?;
        let following = running.config.borrow().clone().for_kernel(config);
        running.config.send_replace(following.clone());
        let Some(standing) = running.subscription() else { return Ok(()) };
        let call = calls::update_framework(&following, &standing.framework_id);
        running.order(standing.epoch, plain(call))
    }

    /// Asks an executor of a custom kind to end, with all its tasks. (The executors that the engine places are tasks:
    /// they are killed.)
    ///
    /// # Errors
    /// As [`MesosCluster::send_message`].
    pub fn shut_down_executor(&self, executor_id: &str, agent_id: &str) -> Result<(), Error> {
        self.send(calls::shutdown(executor_id, agent_id))
    }

    /// Sends bytes to an executor of a custom kind. They may get lost.
    ///
    /// # Errors
    /// When there is no subscription now, or too many calls wait.
    pub fn send_message(
        &self,
        executor_id: &str,
        agent_id: &str,
        data: Vec<u8>,
    ) -> Result<(), Error> {
        self.send(calls::message(executor_id, agent_id, data))
    }

    fn send(&self, call: Message) -> Result<(), Error> {
        let running = self.running()?;
        let Some(standing) = running.subscription() else {
            return Err(Error::cluster(calls::name(&call), "there is no subscription now"));
        };
        running.order(standing.epoch, plain(call))
    }

    fn running(&self) -> Result<&Running, Error> {
        self.running.get().ok_or_else(|| Error::cluster("Mesos", "the manager is not running"))
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<Parting>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterManager for MesosCluster {
    /// Opens the framework id file and starts the manager's thread, which subscribes. Doesn't wait for that.
    fn start(&self, events: EventSink) -> Result<(), Error> {
        let mut thread = self.thread();
        if self.running.get().is_some() {
            return Err(Error::cluster("Mesos", "the manager was started before"));
        }
        let codec = Codec::new(self.config.encoding);
        let http = Arc::new(Http::new(&self.config, codec.content_type())?);
        let ledger = SharedLedger::open(self.config.framework_id_file.as_deref())?;
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| Error::cluster("Mesos: no event loop", error))?;
        let (config, config_seen) = watch::channel(self.config.clone());
        let (standing_sender, standing) = watch::channel(None);
        let (reconsider, reconsidered) = watch::channel(0);
        let (outgoing, inboxes) = CallQueue::new();
        let (stopping, stopping_seen) = watch::channel(false);
        let (stop, stopped) = oneshot::channel();
        let framework_id = Arc::new(OnceLock::new());
        let link = Subscriber {
            config: config_seen,
            http: Arc::clone(&http),
            codec,
            events: Arc::clone(&events),
            ledger: ledger.clone(),
            standing: standing_sender.clone(),
            reconsider: reconsidered,
            framework_id: Arc::clone(&framework_id),
            stopping: stopping_seen.clone(),
            outgoing: outgoing.clone(),
            state: SubscriberState::default(),
        };
        let tear_down = TearDown {
            caller: Caller::new(Arc::clone(&http), codec),
            standing: standing.clone(),
            reconsider: reconsider.clone(),
            framework_id,
        };
        let stop = Mutex::new(Some(stop));
        // Before the thread, whose first events are answered by calls.
        let running = Running { config, standing, reconsider, outgoing, ledger, stopping, stop };
        let caller = || Caller::new(Arc::clone(&http), codec);
        let lanes = running.lanes(inboxes, &stopping_seen, &events, caller);
        let _new = self.running.set(running);
        let work = move || {
            let supervised = async {
                let mut supervisor = Supervisor::new(Arc::clone(&events), standing_sender.clone());
                for lane in lanes {
                    supervisor.start(Part::CallSender, lane.run());
                }
                supervisor.start(Part::Subscriber, link.run());
                supervisor.run(stopped, tear_down).await
            };
            let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(supervised)));
            // Whatever still goes on ends here, before the thread does. But for the look-up of a host's name, which may
            // take long, can't be interrupted, and tells nobody any more: dropping the runtime would wait for it.
            runtime.shutdown_background();
            standing_sender.send_replace(None);
            let parting = ended.unwrap_or_else(|panic| broken(&events, &panic_text(&*panic)));
            if let Parting::Left(why) = &parting {
                events.send(Event::CallFailed { why: format!("TEARDOWN: {why}") });
            }
            parting
        };
        let started = Builder::new().name("offermill-mesos".into()).spawn(work);
        let started = started.map_err(|error| Error::cluster("Mesos: no thread", error))?;
        *thread = Some(started);
        Ok(())
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        self.running()?.call(call)
    }

    /// Reads the wire's offers in place.
    fn offer_reader(&self) -> Option<Box<dyn ReadOffers>> {
        Some(Box::new(OfferReader::new(self.config.only_role())))
    }

    /// Tears the framework down, if the settings say so and this run has subscribed it, and ends the manager's thread.
    /// TEARDOWN is tried for up to two call timeouts; if the master hasn't taken it by then, an
    /// [`Event::CallFailed`] and [`MesosCluster::why_left`] say so. Can be called again.
    fn stop(&self) {
        let Some(running) = self.running.get() else { return };
        running.stopping.send_replace(true);
        let stop = running.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread().take_if(|it| it.thread().id() != current().id());
        let is_wanted = thread.is_some() && self.config.at_end == AtEnd::TearDown;
        let tear_down = is_wanted.then(|| self.config.call_timeout.saturating_mul(2));
        // Either is gone if it was stopped before, or has ended by itself.
        let _gone = stop.map(|stop| stop.send(Stop { tear_down }));
        let is_first = thread.is_some();
        match thread.map(JoinHandle::join) {
            Some(Ok(Parting::TornDown)) => {
                // It means nothing any more; the next run would find that out by itself.
                let _kept = running.ledger.remove();
                return;
            }
            Some(Ok(Parting::Left(why))) => {
                let _first = self.left.set(why);
            }
            // It can only have panicked while it told of another panic.
            Some(Err(_)) => {
                let _first = self.left.set("the manager's thread panicked".to_owned());
            }
            Some(Ok(Parting::Nothing)) | None => {}
        }
        if is_first {
            // What isn't in the file, the cluster says again when the next run asks.
            let _late = running.ledger.flush();
        }
    }
}

/// The manager's thread has panicked.
fn broken(events: &EventSink, why: &str) -> Parting {
    let why = format!("the Mesos manager's thread panicked: {why}");
    // It may have been the receiver of events that did.
    let _again = catch_unwind(AssertUnwindSafe(|| {
        events.send(Event::Refused { why: why.clone() });
    }));
    Parting::Left(why)
}

impl Running {
    /// The tasks that send what is ordered.
    fn lanes(
        &self,
        inboxes: Inboxes,
        stopping: &watch::Receiver<bool>,
        events: &EventSink,
        caller: impl Fn() -> Caller,
    ) -> Vec<CallSender> {
        let Inboxes { main, acknowledgements } = inboxes;
        let inboxes = std::iter::once(main).chain(acknowledgements);
        let lane = |inbox| CallSender {
            caller: caller(),
            inbox,
            standing: self.standing.clone(),
            reconsider: self.reconsider.clone(),
            stopping: stopping.clone(),
            events: Arc::clone(events),
            ledger: self.ledger.clone(),
            outgoing: self.outgoing.clone(),
        };
        inboxes.map(lane).collect()
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        let standing = self.subscription();
        if let Call::Accept(accept) = call {
            let accepted = self.accept(&accept, standing.as_deref());
            if accepted.is_err() {
                // The master holds offers until they are answered.
                let offers = accept.offers.iter().map(|offer| offer.id.to_owned()).collect();
                let _told = self.decline(accept.epoch, offers, REFUSED_AFTER_FAILURE);
            }
            return accepted;
        }
        if let Call::Forget { executor } = call {
            self.ledger.forget(executor);
            return Ok(());
        }
        // Without a subscription there is nobody to tell. Offers and refusals are forgotten then, and whoever asked
        // for the rest asks again.
        let Some(ActiveSubscription { epoch, .. }) = standing.as_deref() else { return Ok(()) };
        match call {
            Call::Decline { epoch, offers, refuse } => {
                let offers = offers.iter().map(|id| (*id).to_owned()).collect();
                self.decline(epoch, offers, refuse)
            }
            Call::Revive { epoch } => self.order(epoch, plain(calls::revive())),
            Call::Suppress { epoch } => self.order(epoch, plain(calls::suppress())),
            Call::Kill { executor, agent_id, grace } => {
                self.order(*epoch, plain(calls::kill(executor, agent_id, grace)))
            }
            Call::Reconcile(questioned) => self.reconcile(*epoch, questioned),
            Call::Acknowledge { update, uuid } => self.acknowledge(*epoch, update, uuid),
            Call::Want(_) | Call::Forget { .. } | Call::Accept(_) => Ok(()),
        }
    }

    /// Writes down what is about to be launched, then orders that.
    fn accept(
        &self,
        accept: &Accept<'_>,
        standing: Option<&ActiveSubscription>,
    ) -> Result<(), Error> {
        let failed = |why: &dyn fmt::Display| Error::cluster("ACCEPT", why);
        if standing.is_none_or(|it| it.epoch != accept.epoch) {
            return Err(failed(&"the offers' subscription has ended"));
        }
        let agent_id = accept.agent_id.to_owned();
        let described = task::accept(&self.config.borrow().name, accept);
        let call = match described {
            Ok(described) => calls::accept(described),
            Err(error) => {
                let offers = accept.offers.iter().map(|offer| offer.id.to_owned()).collect();
                let executors = accept.executors.iter().map(|it| it.executor.to_owned()).collect();
                let why = error.to_string();
                let what = What::Indescribable { offers, agent_id, executors, why };
                return self.order(accept.epoch, what);
            }
        };
        let hostname = accept.offers.first().map_or("", |offer| offer.hostname);
        let former = accept.executors.iter().map(|launch| RecoveredExecutor {
            executor: launch.executor.to_owned(),
            agent_id: accept.agent_id.to_owned(),
            hostname: hostname.to_owned(),
            resources: launch.resources,
        });
        let former: Vec<RecoveredExecutor> = former.collect();
        let written = self.ledger.launch(&former);
        written
            .map_err(|error| failed(&format!("the framework id file can't be written: {error}")))?;
        let executors = former.iter().map(|it| it.executor.clone()).collect();
        let ordered =
            self.order(accept.epoch, What::Accept { call: Box::new(call), agent_id, executors });
        if ordered.is_err() {
            former.iter().for_each(|it| self.ledger.forget(&it.executor));
        }
        ordered
    }

    /// Where there is no room for declines, offers could pile up unanswered: then all are given up.
    fn decline(&self, epoch: u64, offers: Vec<String>, refuse: Duration) -> Result<(), Error> {
        let ordered = self.order(epoch, What::Decline { offers, refuse });
        if ordered.is_err() {
            doubt(&self.reconsider, epoch);
        }
        ordered
    }

    /// Questions are asked a thousand at a time.
    fn reconcile(&self, epoch: u64, questioned: &[ReconcileTask<'_>]) -> Result<(), Error> {
        if questioned.is_empty() {
            return self.order(epoch, plain(calls::reconcile(&[])));
        }
        let mut batches = questioned.chunks(QUESTIONS_MAX);
        batches.try_for_each(|batch| self.order(epoch, plain(calls::reconcile(batch))))
    }

    fn acknowledge(&self, epoch: u64, update: &Update, uuid: &[u8]) -> Result<(), Error> {
        let Some(agent_id) = &update.agent_id else { return Ok(()) };
        let call = calls::acknowledge(&update.executor, agent_id, uuid);
        self.outgoing.acknowledge(epoch, &update.executor, call).map_err(unordered)
    }

    fn subscription(&self) -> Option<Arc<ActiveSubscription>> {
        self.standing.borrow().clone()
    }

    fn order(&self, epoch: u64, what: What) -> Result<(), Error> {
        self.outgoing.order(epoch, what).map_err(unordered)
    }
}

/// No more executors are asked about in one call.
const QUESTIONS_MAX: usize = 1000;

fn unordered(why: Unordered) -> Error {
    let why = match why {
        Unordered::Full => "too many calls wait for the master to take them",
        Unordered::Closed => "the manager has ended",
    };
    Error::cluster("Mesos", why)
}

fn plain(call: Message) -> What {
    What::Plain(Box::new(call))
}

impl Drop for MesosCluster {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for MesosCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MesosCluster").field("config", &self.config).finish_non_exhaustive()
    }
}
