//! [`LocalCluster`], the embedded cluster: its public methods, and its start and stop.

use std::fmt;
use std::sync::mpsc::{SendError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, current};

use super::actor::Actor;
use super::config::LocalConfig;
use super::event_reporter::EventReporter;
use super::launch_queue::LaunchQueue;
use super::message::ActorMessage;
use super::stop_flag::StopFlag;
use crate::cluster::process::{
    ProcessEventSink, ProcessOptions, RunningExecutors, Sandboxes, StartingExecutors,
};
use crate::cluster::task_host::HostRegistry;
use crate::cluster::worker_offers::{CpuMemory, WorkerOffers, WorkerSpec};
use crate::engine::cluster_manager::{Call, ClusterManager, EventSink};
use crate::error::Error;

/// A cluster of agents in this process, which run executors as processes of this machine.
///
/// Executors never outlive the program, even if it is killed with SIGKILL: see the [module's documentation](super).
/// Exceptions are processes that leave their executor's process group, and processes that an executor has other
/// programs start.
///
/// Calls return at once. Their results arrive as events, which a thread of the cluster sends. While that thread is in a
/// slow [`Events::send`](crate::engine::cluster_manager::Events::send), the cluster does nothing else, and
/// [`ClusterManager::stop`] waits: a sink must not block forever.
pub struct LocalCluster {
    config: LocalConfig,
    workers: Vec<WorkerSpec>,
    inbox: OnceLock<Sender<ActorMessage>>,
    stopping: StopFlag,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LocalCluster {
    /// Creates a cluster that is not started.
    ///
    /// # Errors
    /// If the value of a setting isn't allowed.
    pub fn new(config: LocalConfig) -> Result<LocalCluster, Error> {
        config.check()?;
        let master = &config.master;
        let total = CpuMemory { cores: master.cores(), memory: master.memory() };
        let worker = |agent: usize| {
            let attributes = config.attributes.of_agent(agent)?;
            let hostname = master.hostname(agent);
            Ok(WorkerSpec { hostname, attributes, total, ports: config.ports_of(agent) })
        };
        let workers = (0..master.agents()).map(worker).collect::<Result<Vec<_>, Error>>()?;
        Ok(LocalCluster {
            config,
            workers,
            inbox: OnceLock::new(),
            stopping: StopFlag::default(),
            thread: Mutex::new(None),
        })
    }

    /// Removes an agent as if its machine had failed: its executors are killed and reported gone, and its offer is
    /// rescinded. Has no effect on an agent that is lost already. Agents are numbered from 0.
    ///
    /// # Errors
    /// If there is no agent with this number, or the cluster isn't running.
    pub fn lose_agent(&self, agent: usize) -> Result<(), Error> {
        self.check_number(agent)?;
        self.send(ActorMessage::LoseAgent(agent))
    }

    /// Registers a lost agent again, under a new id. Has no effect on an agent that isn't lost.
    ///
    /// # Errors
    /// If there is no agent with this number, or the cluster isn't running.
    pub fn restore_agent(&self, agent: usize) -> Result<(), Error> {
        self.check_number(agent)?;
        self.send(ActorMessage::RestoreAgent(agent))
    }

    fn check_number(&self, agent: usize) -> Result<(), Error> {
        if agent < self.workers.len() {
            return Ok(());
        }
        let allowed = format!("a number from 0 to {}", self.workers.len() - 1);
        Err(Error::setting("agent number", agent, allowed))
    }

    fn send(&self, message: ActorMessage) -> Result<(), Error> {
        let sent = self.inbox.get().is_some_and(|inbox| inbox.send(message).is_ok());
        if sent { Ok(()) } else { Err(Error::cluster("local cluster", "it is not running")) }
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the events of processes to the cluster's thread.
fn process_events(inbox: &Sender<ActorMessage>) -> ProcessEventSink {
    let inbox = inbox.clone();
    ProcessEventSink::new(move |event| match inbox.send(ActorMessage::Process(event)) {
        Err(SendError(ActorMessage::Process(event))) => Some(event),
        _ => None,
    })
}

impl ClusterManager for LocalCluster {
    /// Makes the folder of the sandboxes and starts the cluster's thread, which sends the first offers at once.
    fn start(&self, events: EventSink) -> Result<(), Error> {
        let mut thread = self.thread();
        if self.inbox.get().is_some() {
            return Err(Error::repeated("local cluster: it was started before"));
        }
        let sandboxes = Sandboxes::create(&self.config.work_dir)?;
        let framework_id = sandboxes.framework_id().to_owned();
        let (sender, inbox) = channel();
        let workers = self.workers.clone();
        let options = ProcessOptions {
            environment: self.config.environment,
            withheld: self.config.withheld.clone(),
            shell: self.config.shell.clone(),
            start_timeout: self.config.start_timeout,
        };
        let process_events = process_events(&sender);
        let actor = Actor {
            inbox,
            reporter: EventReporter::new(events),
            offers: WorkerOffers::new(framework_id.clone(), workers, self.config.interval),
            sandboxes: Arc::new(sandboxes),
            starting: StartingExecutors::new(options.clone(), process_events.clone()),
            running: RunningExecutors::new(options, process_events),
            queue: LaunchQueue::default(),
            own_inbox: sender.clone(),
            hosts: HostRegistry::new(self.config.host_patience),
            grace: self.config.grace,
            stopping: self.stopping.clone(),
        };
        // Set before the thread starts, because calls answer its first offers.
        let _ = self.inbox.set(sender);
        let started = Builder::new()
            .name("offermill-local".into())
            .spawn(move || actor.run(framework_id))
            .map_err(|error| {
                Error::cluster_from("local cluster: its thread can't be started", error)
            })?;
        *thread = Some(started);
        Ok(())
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        ActorMessage::from_call(call).map_or(Ok(()), |message| self.send(message))
    }

    /// Ends all executors within the configured grace, reports their ends, and ends the cluster's thread: no event is
    /// sent after that. Can be called again; only the first call waits, unless it is made by the receiver of an event.
    fn stop(&self) {
        if self.inbox.get().is_some() {
            self.stopping.set();
        }
        let _ = self.send(ActorMessage::Stop);
        // The receiver of an event runs on the cluster's thread, which can't wait for its own end. The lock is not held
        // while this call waits, because such a receiver would wait for the lock.
        let thread = self.thread().take_if(|it| it.thread().id() != current().id());
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for LocalCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCluster").field("config", &self.config).finish_non_exhaustive()
    }
}
