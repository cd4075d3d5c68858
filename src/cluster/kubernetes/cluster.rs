//! [`KubernetesCluster`], the cluster manager for Kubernetes: its start, its calls and its stop.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, current};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::access;
use super::actor::{Epoch, KubernetesActor};
use super::api::Api;
use super::client;
use super::command::ActorCommand;
use super::config::KubernetesConfig;
use super::lease::{Lease, LeaseError};
use super::names::creator;
use super::node_reflector::NodeReflector;
use super::objects::PodPage;
use super::reflector::Reflector;
use crate::backoff::Backoff;
use crate::config::Config;
use crate::engine::cluster_manager::{Call, ClusterManager, Event, EventSink};
use crate::error::Error;

/// The maximum number of observations that wait for the actor.
const SEEN_MAX: usize = 1024;

/// A cluster manager for Kubernetes, whose executors are pods.
///
/// A thread of the manager takes the run's lease, lists the run's pods and watches them, and creates and deletes pods.
/// [`ClusterManager::call`] only queues. The manager gives up with [`Event::Refused`] if another program holds the
/// run's lease, if the pods may not be listed, if the API server isn't reached within
/// [`KubernetesConfig::connect_timeout`], or if its thread panics.
///
/// Executor ids must be of [`IdScheme::unique`](crate::IdScheme::unique) with the run's name as prefix: they become the
/// names of pods. With a [`pod_prefix`](KubernetesConfig::pod_prefix) they must be of
/// [`IdScheme::plain`](crate::IdScheme::plain).
pub struct KubernetesCluster {
    config: KubernetesConfig,
    epoch: Epoch,
    commands: OnceLock<mpsc::UnboundedSender<ActorCommand>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Set by the thread, which a stop may not wait for.
    why_left: Arc<OnceLock<String>>,
}

impl KubernetesCluster {
    /// Creates a manager that is not started.
    ///
    /// # Errors
    /// If the value of a setting isn't allowed, and without [`KubernetesConfig::for_kernel`].
    pub fn new(config: KubernetesConfig) -> Result<KubernetesCluster, Error> {
        config.check()?;
        Ok(KubernetesCluster {
            config,
            epoch: Epoch::default(),
            commands: OnceLock::new(),
            thread: Mutex::new(None),
            why_left: Arc::default(),
        })
    }

    /// The reason for which [`ClusterManager::stop`] failed to delete all pods and the lease, or to give the lease
    /// back.
    #[must_use]
    pub fn why_left(&self) -> Option<&str> {
        self.why_left.get().map(String::as_str)
    }

    /// Places executors by another constraint from now on, after the kernel was reconfigured to `config`. Executors
    /// that were placed don't move.
    ///
    /// # Errors
    /// As [`KubernetesConfig::for_kernel`], if no node can meet the constraint, if it needs the labels of nodes and
    /// that of the start didn't, and if the manager isn't running. Then executors are placed as before.
    pub fn reconfigure(&self, config: &Config) -> Result<(), Error> {
        let changed = self.config.clone().for_kernel(config)?;
        changed.check()?;
        if changed.placement.reads_nodes() && !self.config.placement.reads_nodes() {
            let allowed = "a few names and values of labels: the nodes, on which others are checked, are read only if \
                           the run began with such a constraint";
            return Err(Error::setting("constraint", config.constraint(), allowed));
        }
        self.send(ActorCommand::Place(changed.placement))
    }

    fn send(&self, command: ActorCommand) -> Result<(), Error> {
        let sent = self.commands.get().is_some_and(|commands| commands.send(command).is_ok());
        if sent { Ok(()) } else { Err(Error::cluster("Kubernetes", "the manager is not running")) }
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterManager for KubernetesCluster {
    /// Starts the manager's thread. Doesn't wait for the API server.
    fn start(&self, events: EventSink) -> Result<(), Error> {
        let mut thread = self.thread();
        if self.commands.get().is_some() {
            return Err(Error::repeated("Kubernetes: the manager was started before"));
        }
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime =
            runtime.map_err(|error| Error::cluster_from("Kubernetes: no event loop", error))?;
        let (sender, commands) = mpsc::unbounded_channel();
        // Set before the thread starts, because calls answer its first events.
        let _new = self.commands.set(sender);
        let (config, epoch) = (self.config.clone(), Arc::clone(&self.epoch));
        let why_left = Arc::clone(&self.why_left);
        let work = move || {
            let running = run(config, Arc::clone(&events), epoch, commands);
            let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(running)));
            let ended = ended.unwrap_or_else(|panic| Err(report_panic(&events, &*panic)));
            if let Err(why) = ended {
                let _first = why_left.set(why);
            }
            // Look-ups of host names may take long and can't be interrupted; dropping the runtime would wait for them.
            runtime.shutdown_background();
        };
        let started = Builder::new().name("offermill-kubernetes".into()).spawn(work);
        let started =
            started.map_err(|error| Error::cluster_from("Kubernetes: no thread", error))?;
        *thread = Some(started);
        Ok(())
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        if let Call::Accept(accept) = &call {
            let epoch = *self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
            if accept.epoch != epoch {
                return Err(Error::cluster("ACCEPT", "the permits' subscription has ended"));
            }
        }
        ActorCommand::from_call(call).map_or(Ok(()), |command| self.send(command))
    }

    fn binds_late(&self) -> bool {
        true
    }

    /// Deletes the run's pods and its lease, or gives the lease back if they are to stay, and ends the manager's
    /// thread. Takes up to 4 s. What fails is reported by [`KubernetesCluster::why_left`]. Can be called again.
    fn stop(&self) {
        let _gone = self.send(ActorCommand::Stop);
        let thread = self.thread().take_if(|it| it.thread().id() != current().id());
        if let Some(Err(_)) = thread.map(JoinHandle::join) {
            let _first = self.why_left.set("the manager's thread panicked".to_owned());
        }
    }
}

/// The work of the manager's thread. Returns what couldn't be cleaned up.
async fn run(
    config: KubernetesConfig,
    events: EventSink,
    epoch: Epoch,
    mut commands: mpsc::UnboundedReceiver<ActorCommand>,
) -> Result<(), String> {
    let creator = creator();
    let connected = {
        let connecting = connect(&config, &creator);
        tokio::pin!(connecting);
        // Before the first subscription no other command has an effect.
        loop {
            tokio::select! {
                connected = &mut connecting => break Some(connected),
                command = commands.recv() => match command {
                    Some(ActorCommand::Stop) | None => break None,
                    Some(_) => {}
                }
            }
        }
    };
    match connected {
        None => Ok(()),
        Some(Ok((api, lease, since))) => {
            let (seen, observations) = mpsc::channel(SEEN_MAX);
            let (version, versions) = watch::channel(String::new());
            let nodes = config.placement.reads_nodes();
            let nodes = nodes.then(|| NodeReflector { api: api.clone(), seen: seen.clone() });
            let reflector =
                tokio::spawn(Reflector { api: api.clone(), seen, version }.run()).abort_handle();
            let nodes = nodes.map(|nodes| tokio::spawn(nodes.run()).abort_handle());
            let reflectors: Vec<AbortHandle> = nodes.into_iter().chain([reflector]).collect();
            let watching = (reflectors.clone(), versions);
            let held = (lease, since);
            let actor = KubernetesActor::new(api, config, events, epoch, creator, held, watching);
            let ended = actor.run(commands, observations).await;
            reflectors.iter().for_each(AbortHandle::abort);
            ended
        }
        Some(Err(why)) => {
            events.send(Event::Refused { why });
            while commands
                .recv()
                .await
                .is_some_and(|command| !matches!(command, ActorCommand::Stop))
            {}
            Ok(())
        }
    }
}

/// Connects, and takes the run's lease.
async fn connect(
    config: &KubernetesConfig,
    creator: &str,
) -> Result<(Api, Lease, Instant), String> {
    let api = client::connect(config).await?;
    let needs = config.more_needs();
    // What is missing of them would show when pods can't be created.
    if config.checks_access || needs.reads_nodes {
        access::check(&api, config.connect_timeout, needs, &mut |_| {}).await?;
    }
    let owner = config.owner.find(&api).await?;
    let lease = Lease::new(&config.name, creator, config.lease_duration);
    let mut lease = lease.with_owner(owner);
    let acquired = lease.acquire(&api, config.connect_timeout).await;
    let since = acquired.map_err(|error| match error {
        LeaseError::Held(holder) => {
            format!("another run named {} is active: {holder} holds its lease", config.name)
        }
        LeaseError::Forbidden(why) => format!("the lease of the run was refused: {why}"),
        LeaseError::Failed(why) => format!("the API server could not be reached: {why}"),
    })?;
    let prepared = prepare(&api, config, &lease).await;
    if let Err(why) = prepared {
        // The next start needn't wait; pods that were left keep the lease as their owner.
        let _released = lease.release(&api).await;
        return Err(why);
    }
    Ok((api, lease, since))
}

/// What is done under the lease before pods are listed.
async fn prepare(api: &Api, config: &KubernetesConfig, lease: &Lease) -> Result<(), String> {
    if !config.adopts
        && let Some(left) = pods_left(api).await?
    {
        return Err(format!(
            "a former run named {} has left {left} and perhaps others, which can't be taken over because their numbers \
             would be used again: delete them with offermill clean",
            config.name
        ));
    }
    if config.files.is_empty() {
        return Ok(());
    }
    let map = config.files.config_map((&config.name, &lease.uid));
    store_files(api, &map, lease.duration() / 2).await
}

/// Creates the config map with the files, within `patience`.
async fn store_files(api: &Api, map: &Value, patience: Duration) -> Result<(), String> {
    let began = Instant::now();
    let mut backoff = Backoff::default();
    loop {
        let (why, is_final) = match api.create_config_map(map).await {
            // It has the name of what is in it: a former run has left the same.
            Ok(answer) if answer.is_success() || answer.status == 409 => return Ok(()),
            Ok(answer) => (answer.why(), matches!(answer.status, 400..=428 | 430..=499)),
            Err(why) => (why, false),
        };
        if is_final || began.elapsed() >= patience {
            return Err(format!("the files for executors could not be stored: {why}"));
        }
        sleep(backoff.next().min(Duration::from_secs(1))).await;
    }
}

/// The name of a pod that a former run has left and that nobody deletes, if there is one.
async fn pods_left(api: &Api) -> Result<Option<String>, String> {
    let mut next = String::new();
    loop {
        let answer = api.page(&next).await?;
        if !answer.is_success() {
            return Err(format!("its pods can't be listed: {}", answer.why()));
        }
        let page: PodPage = answer.read()?;
        if let Some(pod) = page.items.into_iter().find(|pod| !pod.is_being_deleted()) {
            return Ok(Some(pod.metadata.name));
        }
        next = page.metadata.next;
        if next.is_empty() {
            return Ok(None);
        }
    }
}

/// Reports a panic of the manager's thread.
fn report_panic(events: &EventSink, panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    let why = format!("the Kubernetes manager's thread panicked: {text}");
    // The receiver of events may be what panicked.
    let _again = catch_unwind(AssertUnwindSafe(|| {
        events.send(Event::Refused { why: why.clone() });
    }));
    why
}

impl Drop for KubernetesCluster {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for KubernetesCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesCluster").field("config", &self.config).finish_non_exhaustive()
    }
}
