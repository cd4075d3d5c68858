//! A Mesos cluster as the engine and its owner see it.

use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, current};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{oneshot, watch};

use super::calls;
use super::config::{AtEnd, MesosConfig};
use super::http::Http;
use super::lane::{Lane, REFUSED_AFTER_FAILURE, What};
use super::ledger::SharedLedger;
use super::link::{Link, State};
use super::outgoing::{Full, Outgoing};
use super::standing::{DoubtSender, Standing, StandingReceiver, doubt};
use super::task;
use super::wire::codec::Codec;
use super::wire::messages::{Call as Message, ResourceRequest};
use super::wire::offers::OfferReader;
use crate::config::Config;
use crate::engine::seam::{
    Accept, Call, ClusterManager, EventSink, FormerExecutor, Questioned, ReadOffers, Update,
};
use crate::error::Error;

/// A Mesos cluster, reached through its masters.
///
/// One thread of its own subscribes, reads events and sends calls; [`ClusterManager::call`] only queues, and never
/// waits. A subscription that ends is followed by another, for as long as it takes; only a cluster that refuses the
/// framework ends that, and a first subscription that takes longer than
/// [`MesosConfig::subscribe_timeout`]: then an [`Event::Refused`](crate::engine::seam::Event::Refused) comes.
///
/// Numbers of subscriptions ([`Accept::epoch`]) are counted from 1: use a manager with a new kernel.
pub struct MesosCluster {
    config: MesosConfig,
    running: OnceLock<Running>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What calls need.
struct Running {
    config: watch::Sender<MesosConfig>,
    standing: StandingReceiver,
    reconsider: DoubtSender,
    outgoing: Outgoing,
    ledger: SharedLedger,
    stopping: watch::Sender<bool>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

impl MesosCluster {
    /// A framework that is not subscribed yet.
    ///
    /// # Errors
    /// When a setting's value isn't allowed.
    pub fn new(config: MesosConfig) -> Result<MesosCluster, Error> {
        config.check()?;
        Ok(MesosCluster { config, running: OnceLock::new(), thread: Mutex::new(None) })
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

    /// Asks for resources. Mesos' own allocator doesn't listen; others may.
    ///
    /// # Errors
    /// As [`MesosCluster::send_message`].
    pub fn request(&self, resources: Vec<ResourceRequest>) -> Result<(), Error> {
        self.send(calls::request(resources))
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

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
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
        let (outgoing, inboxes) = Outgoing::new();
        let (stopping, stopping_seen) = watch::channel(false);
        let (stop, stopped) = oneshot::channel();
        let link = Link {
            config: config_seen,
            http: Arc::clone(&http),
            codec,
            events: Arc::clone(&events),
            ledger: ledger.clone(),
            standing: standing_sender,
            reconsider: reconsidered,
            stopping: stopping_seen.clone(),
            outgoing: outgoing.clone(),
            state: State::default(),
        };
        let lanes = [inboxes.main, inboxes.acknowledgements].map(|inbox| Lane {
            http: Arc::clone(&http),
            codec,
            inbox,
            standing: standing.clone(),
            reconsider: reconsider.clone(),
            stopping: stopping_seen.clone(),
            events: Arc::clone(&events),
            ledger: ledger.clone(),
            connection: None,
        });
        let stop = Mutex::new(Some(stop));
        // Before the thread, whose first events are answered by calls.
        let running = Running { config, standing, reconsider, outgoing, ledger, stopping, stop };
        let _new = self.running.set(running);
        let work = move || {
            runtime.block_on(async {
                for lane in lanes {
                    tokio::spawn(lane.run());
                }
                tokio::spawn(link.run());
                // Nobody can stop it any more when the other end is gone.
                let _gone = stopped.await;
            });
            // Whatever still goes on ends here, before the thread does. But for the look-up of a host's name, which may
            // take long, can't be interrupted, and tells nobody any more: dropping the runtime would wait for it.
            runtime.shutdown_background();
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

    /// Tears the framework down, if the settings say so and there is a subscription, and ends the manager's thread. Can
    /// be called again.
    fn stop(&self) {
        let Some(running) = self.running.get() else { return };
        running.stopping.send_replace(true);
        let stop = running.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread().take_if(|it| it.thread().id() != current().id());
        if let (Some(_), AtEnd::TearDown, Some(stop)) = (&thread, self.config.at_end, &stop)
            && !stop.is_closed()
        {
            running.tear_down(self.config.call_timeout);
        }
        // Either is gone if it was stopped before, or has ended by itself.
        let _gone = stop.map(|stop| stop.send(()));
        let _panicked = thread.map(JoinHandle::join);
    }
}

impl Running {
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
        let Some(Standing { epoch, .. }) = standing.as_deref() else { return Ok(()) };
        match call {
            Call::Decline { epoch, offers, refuse } => {
                let offers = offers.iter().map(|id| (*id).to_owned()).collect();
                self.decline(epoch, offers, refuse)
            }
            Call::Revive => self.order(*epoch, plain(calls::revive())),
            Call::Suppress => self.order(*epoch, plain(calls::suppress())),
            Call::Kill { executor, agent_id, grace } => {
                self.order(*epoch, plain(calls::kill(executor, agent_id, grace)))
            }
            Call::Reconcile(questioned) => self.reconcile(*epoch, questioned),
            Call::Acknowledge { update, uuid } => self.acknowledge(*epoch, update, uuid),
            Call::Want(_) | Call::Forget { .. } | Call::Accept(_) => Ok(()),
        }
    }

    /// Writes down what is about to be launched, then orders that.
    fn accept(&self, accept: &Accept<'_>, standing: Option<&Standing>) -> Result<(), Error> {
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
        let former = accept.executors.iter().map(|launch| FormerExecutor {
            executor: launch.executor.to_owned(),
            agent_id: accept.agent_id.to_owned(),
            hostname: hostname.to_owned(),
            cores: launch.cores,
            memory: launch.memory,
            gpus: launch.gpus,
            port: launch.port,
        });
        let former: Vec<FormerExecutor> = former.collect();
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
    fn reconcile(&self, epoch: u64, questioned: &[Questioned<'_>]) -> Result<(), Error> {
        if questioned.is_empty() {
            return self.order(epoch, plain(calls::reconcile(&[])));
        }
        let mut batches = questioned.chunks(QUESTIONS_MAX);
        batches.try_for_each(|batch| self.order(epoch, plain(calls::reconcile(batch))))
    }

    fn acknowledge(&self, epoch: u64, update: &Update, uuid: &[u8]) -> Result<(), Error> {
        let Some(agent_id) = &update.agent_id else { return Ok(()) };
        let call = calls::acknowledge(&update.executor, agent_id, uuid);
        self.outgoing.acknowledge(epoch, call).map_err(crowded)
    }

    fn tear_down(&self, patience: Duration) {
        let Some(standing) = self.subscription() else { return };
        let (sender, answer) = sync_channel(1);
        if self.order(standing.epoch, What::TearDown(sender)).is_ok()
            && matches!(answer.recv_timeout(patience.saturating_mul(2)), Ok(Ok(())))
        {
            // It means nothing any more; the next run would find that out by itself.
            let _kept = self.ledger.remove();
        }
    }

    fn subscription(&self) -> Option<Arc<Standing>> {
        self.standing.borrow().clone()
    }

    fn order(&self, epoch: u64, what: What) -> Result<(), Error> {
        self.outgoing.order(epoch, what).map_err(crowded)
    }
}

/// No more executors are asked about in one call.
const QUESTIONS_MAX: usize = 1000;

fn crowded(_: Full) -> Error {
    Error::cluster("Mesos", "too many calls wait for the master to take them")
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
