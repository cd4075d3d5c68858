//! [`MesosCluster`], the cluster manager for Mesos: its public methods, its calls, its start and stop.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, current};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{oneshot, watch};

use super::active_subscription::{
    ActiveSubscription, ResubscribeSender, SubscriptionReceiver, request_resubscription,
};
use super::call_queue::{CallPayload, CallQueue, EnqueueError, Inboxes};
use super::call_sender::{CallSender, REFUSED_AFTER_FAILURE};
use super::caller::Caller;
use super::calls;
use super::config::{AtEnd, MesosConfig};
use super::host_executors::HostExecutors;
use super::state_writer::SharedStateFile;
use super::subscriber::{Subscriber, SubscriberState};
use super::supervisor::{StopRequest, Supervisor, panic_text};
use super::task;
use super::tear_down::{TearDown, TearDownOutcome};
use super::user::default_user;
use crate::cluster::http_client::TlsFiles;
use crate::config::Config;
use crate::engine::cluster_manager::{
    Accept, Call, ClusterManager, Event, EventSink, ReadOffers, ReconcileTask, RecoveredExecutor,
    Update,
};
use crate::engine::trace;
use crate::error::Error;
use crate::mesos_v1::codec::Codec;
use crate::mesos_v1::messages::Call as Message;
use crate::mesos_v1::offers::OfferReader;

/// A cluster manager for Mesos, which is reached through its masters.
///
/// A thread of the manager subscribes, reads events and sends calls. [`ClusterManager::call`] only queues calls;
/// launches also wait until they are in the framework id file. A subscription that ends is followed by another one. The
/// manager gives up with [`Event::Refused`] if the cluster refuses the framework, if the first subscription takes
/// longer than [`MesosConfig::subscribe_timeout`], or if one of its tasks panics.
///
/// Subscriptions are numbered from 1 ([`Accept::epoch`]), so a manager must be used with a new kernel.
pub struct MesosCluster {
    config: MesosConfig,
    /// The framework id file, if it was opened before the start.
    opened: Mutex<Option<SharedStateFile>>,
    tls_files: TlsFiles,
    running: OnceLock<Running>,
    thread: Mutex<Option<JoinHandle<TearDownOutcome>>>,
    not_torn_down: OnceLock<String>,
    torn_down: OnceLock<()>,
    hosts: HostExecutors,
}

/// The state of a started manager.
struct Running {
    config: watch::Sender<MesosConfig>,
    subscription: SubscriptionReceiver,
    resubscribe: ResubscribeSender,
    call_queue: CallQueue,
    state_file: SharedStateFile,
    stopping: watch::Sender<bool>,
    stop: Mutex<Option<oneshot::Sender<StopRequest>>>,
}

impl MesosCluster {
    /// Creates a manager that is not started.
    ///
    /// # Errors
    /// If the value of a setting isn't allowed, or if there is no user that executors can run as.
    pub fn new(mut config: MesosConfig) -> Result<MesosCluster, Error> {
        config.check()?;
        if config.user.is_none() {
            config.user = Some(default_user()?);
        }
        Ok(MesosCluster {
            config,
            opened: Mutex::new(None),
            tls_files: TlsFiles::default(),
            running: OnceLock::new(),
            thread: Mutex::new(None),
            not_torn_down: OnceLock::new(),
            torn_down: OnceLock::new(),
            hosts: HostExecutors::default(),
        })
    }

    /// Reads the files of certificates and of the client's key, so that their errors are known before the start, which
    /// reads them otherwise. Does nothing if the masters are reached without TLS.
    ///
    /// # Errors
    /// If a file can't be read or used, or if there is no authority that is trusted.
    pub fn check_certificates(&self) -> Result<(), Error> {
        self.tls_files.read(self.config.tls_options())
    }

    /// Opens the [framework id file](MesosConfig::framework_id_file), if one is configured, so that its errors are
    /// known before [`ClusterManager::start`], which opens it otherwise. Creates the file, and locks it until the
    /// manager is dropped. Waits for the disk, and up to a second for another program that is about to release the
    /// file.
    ///
    /// # Errors
    /// If the file can't be opened, read, written or locked, if it is in use by another program, or if it isn't a
    /// framework id file; such a file isn't modified.
    pub fn open_framework_id_file(&self) -> Result<(), Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() && self.running.get().is_none() {
            *opened = Some(SharedStateFile::open(&self.config)?);
        }
        Ok(())
    }

    /// The reason for which [`ClusterManager::stop`] failed to tear the framework down: the master may keep it and its
    /// executors for the failover timeout. `None` if the master has torn it down, if there was nothing to tear down, or
    /// if the framework was to be left.
    #[must_use]
    pub fn why_left(&self) -> Option<&str> {
        self.not_torn_down.get().map(String::as_str)
    }

    /// Whether the master has torn the framework down, with all its executors, because this manager was stopped.
    #[must_use]
    pub fn is_torn_down(&self) -> bool {
        self.torn_down.get().is_some()
    }

    /// Updates the framework's constraints and filters of offers after the kernel was reconfigured to `config`. Offers
    /// that have been made already don't change.
    ///
    /// # Errors
    /// If the manager isn't running or too many calls wait. The next subscription uses the new settings in any case.
    pub fn reconfigure(&self, config: &Config) -> Result<(), Error> {
        let running = self.running()?;
        let changed = running.config.borrow().clone().for_kernel(config);
        running.config.send_replace(changed.clone());
        let Some(subscription) = running.subscription() else { return Ok(()) };
        let call = calls::update_framework(&changed, &subscription.framework_id);
        running.enqueue(subscription.epoch, plain(call))
    }

    /// Shuts down a custom executor with all its tasks. (The executors that the engine launches are tasks: they are
    /// killed.)
    ///
    /// # Errors
    /// Same as [`MesosCluster::send_message`].
    pub fn shut_down_executor(&self, executor_id: &str, agent_id: &str) -> Result<(), Error> {
        self.send(calls::shutdown(executor_id, agent_id))
    }

    /// Sends bytes to a custom executor. Delivery isn't guaranteed.
    ///
    /// # Errors
    /// If there is no subscription, or too many calls wait.
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
        let Some(subscription) = running.subscription() else {
            return Err(Error::cluster(calls::name(&call), "there is no subscription now"));
        };
        running.enqueue(subscription.epoch, plain(call))
    }

    /// The framework id file, for the start.
    fn take_state_file(&self) -> Result<SharedStateFile, Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        match opened.take() {
            Some(opened) => Ok(opened),
            None => SharedStateFile::open(&self.config),
        }
    }

    fn running(&self) -> Result<&Running, Error> {
        self.running.get().ok_or_else(|| Error::cluster("Mesos", "the manager is not running"))
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<TearDownOutcome>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterManager for MesosCluster {
    /// Opens the framework id file and starts the manager's thread, which subscribes. Doesn't wait for the
    /// subscription.
    fn start(&self, events: EventSink) -> Result<(), Error> {
        let mut thread = self.thread();
        if self.running.get().is_some() {
            return Err(Error::repeated("Mesos: the manager was started before"));
        }
        let codec = Codec::new(self.config.encoding);
        let http = Arc::new(self.config.http_client(codec.content_type(), &self.tls_files)?);
        let state_file = self.take_state_file()?;
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime =
            runtime.map_err(|error| Error::cluster_from("Mesos: no event loop", error))?;
        let (config, config_seen) = watch::channel(self.config.clone());
        let (subscription_sender, subscription) = watch::channel(None);
        let (resubscribe, resubscribe_seen) = watch::channel(0);
        let (call_queue, inboxes) = CallQueue::new();
        let (stopping, stopping_seen) = watch::channel(false);
        let (stop, stopped) = oneshot::channel();
        let framework_id = Arc::new(OnceLock::new());
        let subscriber = Subscriber {
            config: config_seen,
            http: Arc::clone(&http),
            codec,
            events: Arc::clone(&events),
            state_file: state_file.clone(),
            subscription: subscription_sender.clone(),
            resubscribe: resubscribe_seen,
            framework_id: Arc::clone(&framework_id),
            stopping: stopping_seen.clone(),
            call_queue: call_queue.clone(),
            state: SubscriberState::default(),
        };
        let tear_down = TearDown {
            caller: Caller::new(Arc::clone(&http), codec),
            subscription: subscription.clone(),
            resubscribe: resubscribe.clone(),
            framework_id,
        };
        let stop = Mutex::new(Some(stop));
        // Set before the thread starts, because calls answer its first events.
        let running =
            Running { config, subscription, resubscribe, call_queue, state_file, stopping, stop };
        let caller = || Caller::new(Arc::clone(&http), codec);
        let senders = running.call_senders(inboxes, &stopping_seen, &events, caller);
        let _new = self.running.set(running);
        let work = move || {
            let supervised = async {
                let mut supervisor =
                    Supervisor::new(Arc::clone(&events), subscription_sender.clone());
                for sender in senders {
                    supervisor.start_call_sender(sender.run());
                }
                supervisor.start_subscriber(subscriber.run());
                supervisor.run(stopped, tear_down).await
            };
            let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(supervised)));
            // Ends all remaining work, except look-ups of host names: these may take long and can't be interrupted, and
            // dropping the runtime would wait for them.
            runtime.shutdown_background();
            subscription_sender.send_replace(None);
            let outcome = ended.unwrap_or_else(|panic| report_panic(&events, &panic_text(&*panic)));
            if let TearDownOutcome::Left { why, .. } = &outcome {
                events.send(Event::CallFailed { why: format!("TEARDOWN: {why}") });
            }
            outcome
        };
        let started = Builder::new().name("offermill-mesos".into()).spawn(work);
        let started = started.map_err(|error| Error::cluster_from("Mesos: no thread", error))?;
        *thread = Some(started);
        Ok(())
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        self.running()?.call(call, &self.hosts)
    }

    /// A reader that reads encoded offers in place.
    fn offer_reader(&self) -> Option<Box<dyn ReadOffers>> {
        Some(Box::new(OfferReader::new(self.config.only_role())))
    }

    /// Tears the framework down, if configured and this run has subscribed it, and ends the manager's thread. TEARDOWN
    /// is tried for up to two call timeouts. If the master hasn't accepted it by then, an [`Event::CallFailed`] and
    /// [`MesosCluster::why_left`] report that, and the framework id file keeps the framework's id alone: a next run
    /// continues the framework, and begins anew otherwise. Can be called again.
    fn stop(&self) {
        let Some(running) = self.running.get() else { return };
        running.stopping.send_replace(true);
        let stop = running.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread().take_if(|it| it.thread().id() != current().id());
        let is_wanted = thread.is_some() && self.config.at_end == AtEnd::TearDown;
        let tear_down = is_wanted.then(|| self.config.call_timeout.saturating_mul(2));
        // Fails if the manager was stopped before, or its thread has ended.
        let _gone = stop.map(|stop| stop.send(StopRequest { tear_down }));
        let is_first = thread.is_some();
        match thread.map(JoinHandle::join) {
            Some(Ok(TearDownOutcome::TornDown)) => {
                let _first = self.torn_down.set(());
                // The framework has been removed, so its id is of no use.
                let _kept = running.state_file.remove();
                trace::torn_down(None);
                return;
            }
            Some(Ok(TearDownOutcome::Left { why, is_complete })) => {
                let why = self.not_torn_down.get_or_init(|| why);
                if is_complete {
                    // If this fails, the next run continues this one. It waits for what was to be written before.
                    let _kept = running.state_file.complete();
                }
                trace::torn_down(Some(why));
                if is_complete {
                    return;
                }
            }
            // The thread can only panic while it reports another panic.
            Some(Err(_)) => {
                let _first = self.not_torn_down.set("the manager's thread panicked".to_owned());
            }
            Some(Ok(TearDownOutcome::Nothing)) | None => {}
        }
        if is_first {
            // What is missing in the file is reported by the cluster when the next run reconciles.
            let _late = running.state_file.flush();
        }
    }
}

/// Reports a panic of the manager's thread.
fn report_panic(events: &EventSink, why: &str) -> TearDownOutcome {
    let why = format!("the Mesos manager's thread panicked: {why}");
    // The receiver of events may be what panicked.
    let _again = catch_unwind(AssertUnwindSafe(|| {
        events.send(Event::Refused { why: why.clone() });
    }));
    TearDownOutcome::Left { why, is_complete: false }
}

impl Running {
    /// The tasks that send queued calls.
    fn call_senders(
        &self,
        inboxes: Inboxes,
        stopping: &watch::Receiver<bool>,
        events: &EventSink,
        caller: impl Fn() -> Caller,
    ) -> Vec<CallSender> {
        let Inboxes { main, acknowledgements } = inboxes;
        let inboxes = std::iter::once(main).chain(acknowledgements);
        let sender = |inbox| CallSender {
            caller: caller(),
            inbox,
            subscription: self.subscription.clone(),
            resubscribe: self.resubscribe.clone(),
            stopping: stopping.clone(),
            events: Arc::clone(events),
            state_file: self.state_file.clone(),
            call_queue: self.call_queue.clone(),
        };
        inboxes.map(sender).collect()
    }

    fn call(&self, call: Call<'_>, hosts: &HostExecutors) -> Result<(), Error> {
        let subscription = self.subscription();
        if let Call::Accept(accept) = call {
            let accepted = self.accept(&accept, subscription.as_deref(), hosts);
            if accepted.is_err() {
                // The master holds offers until they are answered.
                let offers = accept.offers.iter().map(|offer| offer.id.to_owned()).collect();
                let _failed = self.decline(accept.epoch, offers, REFUSED_AFTER_FAILURE);
            }
            return accepted;
        }
        if let Call::Forget { executor } = call {
            self.state_file.forget(executor);
            return Ok(());
        }
        // Without a subscription no call can be sent. Its offers and refusals are void, and all other calls are
        // repeated by the engine.
        let Some(ActiveSubscription { epoch, .. }) = subscription.as_deref() else { return Ok(()) };
        match call {
            Call::Decline { epoch, offers, refuse } => {
                let offers = offers.iter().map(|id| (*id).to_owned()).collect();
                self.decline(epoch, offers, refuse)
            }
            Call::Revive { epoch } => self.enqueue(epoch, plain(calls::revive())),
            Call::Suppress { epoch } => self.enqueue(epoch, plain(calls::suppress())),
            Call::Kill { executor, agent_id, grace } => {
                self.enqueue(*epoch, plain(calls::kill(executor, agent_id, grace)))
            }
            Call::Reconcile(tasks) => self.reconcile(*epoch, tasks),
            Call::Acknowledge { update, uuid } => self.acknowledge(*epoch, update, uuid),
            Call::RequestExecutors(_) | Call::Avoid(_) | Call::Forget { .. } | Call::Accept(_) => {
                Ok(())
            }
        }
    }

    /// Writes the executors to the framework id file, then queues their launch.
    fn accept(
        &self,
        accept: &Accept<'_>,
        subscription: Option<&ActiveSubscription>,
        hosts: &HostExecutors,
    ) -> Result<(), Error> {
        let failed = |why: &dyn fmt::Display| Error::cluster("ACCEPT", why);
        if subscription.is_none_or(|it| it.epoch != accept.epoch) {
            return Err(failed(&"the offers' subscription has ended"));
        }
        let agent_id = accept.agent_id.to_owned();
        let accept_call = {
            let config = self.config.borrow();
            task::check(&config, accept).and_then(|()| task::accept(&config.name, hosts, accept))
        };
        let call = match accept_call {
            Ok(accept_call) => calls::accept(accept_call),
            Err(error) => {
                let offers = accept.offers.iter().map(|offer| offer.id.to_owned()).collect();
                let executors = accept.executors.iter().map(|it| it.executor.to_owned()).collect();
                let why = error.to_string();
                let what = CallPayload::Unlaunchable { offers, agent_id, executors, why };
                return self.enqueue(accept.epoch, what);
            }
        };
        let hostname = accept.offers.first().map_or("", |offer| offer.hostname);
        let launched = accept.executors.iter().map(|launch| RecoveredExecutor {
            queue_name: launch.queue.as_deref().map(str::to_owned),
            ..RecoveredExecutor::new(launch.executor, accept.agent_id, hostname, launch.resources)
        });
        let launched: Vec<RecoveredExecutor> = launched.collect();
        let written = self.state_file.launch(&launched);
        written
            .map_err(|error| failed(&format!("the framework id file can't be written: {error}")))?;
        let executors = launched.iter().map(|it| it.executor.clone()).collect();
        let ordered = self.enqueue(
            accept.epoch,
            CallPayload::Accept { call: Box::new(call), agent_id, executors },
        );
        if ordered.is_err() {
            launched.iter().for_each(|it| self.state_file.forget(&it.executor));
        }
        ordered
    }

    /// Queues a decline. If there is no room, the subscription is replaced, so that unanswered offers can't accumulate.
    fn decline(&self, epoch: u64, offers: Vec<String>, refuse: Duration) -> Result<(), Error> {
        let ordered = self.enqueue(epoch, CallPayload::Decline { offers, refuse });
        if ordered.is_err() {
            request_resubscription(&self.resubscribe, epoch);
        }
        ordered
    }

    /// Queues reconciliation calls of at most [`RECONCILED_MAX`] executors each.
    fn reconcile(&self, epoch: u64, tasks: &[ReconcileTask<'_>]) -> Result<(), Error> {
        if tasks.is_empty() {
            return self.enqueue(epoch, plain(calls::reconcile(&[])));
        }
        let mut batches = tasks.chunks(RECONCILED_MAX);
        batches.try_for_each(|batch| self.enqueue(epoch, plain(calls::reconcile(batch))))
    }

    fn acknowledge(&self, epoch: u64, update: &Update, uuid: &[u8]) -> Result<(), Error> {
        let Some(agent_id) = &update.agent_id else { return Ok(()) };
        let call = calls::acknowledge(&update.executor, agent_id, uuid);
        self.call_queue.acknowledge(epoch, &update.executor, call).map_err(enqueue_error)
    }

    fn subscription(&self) -> Option<Arc<ActiveSubscription>> {
        self.subscription.borrow().clone()
    }

    fn enqueue(&self, epoch: u64, what: CallPayload) -> Result<(), Error> {
        self.call_queue.enqueue(epoch, what).map_err(enqueue_error)
    }
}

/// The maximum number of executors in one reconciliation call.
const RECONCILED_MAX: usize = 1000;

fn enqueue_error(why: EnqueueError) -> Error {
    let why = match why {
        EnqueueError::Full => "too many calls wait to be sent to the master",
        EnqueueError::Closed => "the manager has ended",
    };
    Error::cluster("Mesos", why)
}

fn plain(call: Message) -> CallPayload {
    CallPayload::Plain(Box::new(call))
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
