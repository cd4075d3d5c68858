//! The embedded cluster as the engine and its owner see it.

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{Builder, JoinHandle, current};

use super::actor::{Actor, Stopping};
use super::agent::{Room, Seat};
use super::config::LocalConfig;
use super::executors::Executors;
use super::fleet::Fleet;
use super::message::Message;
use super::outbox::Outbox;
use super::sandbox::Sandboxes;
use super::starts::{Starter, Starts};
use super::waiting::Queue;
use crate::engine::cluster_manager::{Call, ClusterManager, EventSink};
use crate::error::Error;

/// A cluster of agents that live in this process and run executors as processes of this machine.
///
/// Executors end with the program, whichever way it ends, SIGKILL included: see the module's
/// documentation. What leaves its executor's process group is out of reach, as is what an executor
/// asks other programs to start.
///
/// Calls return at once; what comes of them arrives as events, sent from one thread of the
/// cluster's own. While that thread waits for a slow
/// [`Events::send`](crate::engine::cluster_manager::Events::send), the cluster stands still, and so does
/// [`ClusterManager::stop`]: a sink must not block for good.
pub struct LocalCluster {
    config: LocalConfig,
    seats: Vec<Seat>,
    inbox: OnceLock<Sender<Message>>,
    stopping: Stopping,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl LocalCluster {
    /// A cluster that is not started yet.
    ///
    /// # Errors
    /// When a setting's value isn't allowed.
    pub fn new(config: LocalConfig) -> Result<LocalCluster, Error> {
        config.check()?;
        let master = &config.master;
        let total = Room { cores: master.cores(), memory: master.memory() };
        let seat = |agent: usize| {
            let attributes = config.attributes.of_agent(agent)?;
            let hostname = master.hostname(agent);
            Ok(Seat { hostname, attributes, total, ports: config.ports_of(agent) })
        };
        let seats = (0..master.agents()).map(seat).collect::<Result<Vec<_>, Error>>()?;
        let (inbox, stopping, thread) = (OnceLock::new(), Stopping::default(), Mutex::new(None));
        Ok(LocalCluster { seats, config, inbox, stopping, thread })
    }

    /// Loses an agent as if its machine had gone: its executors are killed and reported gone, its
    /// offer is rescinded. Has no effect on an agent that is lost already. Agents are numbered from
    /// 0.
    ///
    /// # Errors
    /// When there is no agent with this number, or the cluster isn't running.
    pub fn lose_agent(&self, agent: usize) -> Result<(), Error> {
        self.check_number(agent)?;
        self.post(Message::LoseAgent(agent))
    }

    /// Brings a lost agent back, under a new id, as agents that register again have. Has no effect
    /// on one that isn't lost.
    ///
    /// # Errors
    /// When there is no agent with this number, or the cluster isn't running.
    pub fn restore_agent(&self, agent: usize) -> Result<(), Error> {
        self.check_number(agent)?;
        self.post(Message::RestoreAgent(agent))
    }

    fn check_number(&self, agent: usize) -> Result<(), Error> {
        if agent < self.seats.len() {
            return Ok(());
        }
        let allowed = format!("a number from 0 to {}", self.seats.len() - 1);
        Err(Error::setting("agent number", agent, allowed))
    }

    fn post(&self, message: Message) -> Result<(), Error> {
        let sent = self.inbox.get().is_some_and(|inbox| inbox.send(message).is_ok());
        if sent { Ok(()) } else { Err(Error::cluster("local cluster", "it is not running")) }
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterManager for LocalCluster {
    /// Makes the folder for sandboxes and starts the cluster's thread; the first offers follow at
    /// once.
    fn start(&self, events: EventSink) -> Result<(), Error> {
        let mut thread = self.thread();
        if self.inbox.get().is_some() {
            return Err(Error::cluster("local cluster", "it was started before"));
        }
        let sandboxes = Sandboxes::create(&self.config.work_dir)?;
        let framework_id = sandboxes.framework_id().to_owned();
        let (sender, inbox) = channel();
        let fleet = Fleet::new(framework_id.clone(), self.seats.clone(), self.config.interval);
        let starter = Starter {
            sandboxes: Arc::new(sandboxes),
            environment: self.config.environment,
            shell: self.config.shell.clone(),
            within: self.config.start_within,
            inbox: sender.clone(),
        };
        let (executors, starts) = (Executors::new(starter.clone()), Starts::new(starter));
        let outbox = Outbox::new(events);
        let (waiting, grace) = (Queue::default(), self.config.grace);
        let stopping = self.stopping.clone();
        let actor = Actor { inbox, outbox, fleet, starts, executors, waiting, grace, stopping };
        // Before the thread, whose first offers are answered by calls.
        let _ = self.inbox.set(sender);
        let started = Builder::new()
            .name("offermill-local".into())
            .spawn(move || actor.run(framework_id))
            .map_err(|error| Error::cluster("local cluster: its thread can't be started", error))?;
        *thread = Some(started);
        Ok(())
    }

    fn call(&self, call: Call<'_>) -> Result<(), Error> {
        Message::of(call).map_or(Ok(()), |message| self.post(message))
    }

    /// Ends all executors within the configured grace, reports their ends, and ends the cluster's
    /// thread: no event comes after that. Can be called again; only the first call waits, and not
    /// even that one if it comes from an event's receiver.
    fn stop(&self) {
        if self.inbox.get().is_some() {
            self.stopping.set();
        }
        let _ = self.post(Message::Stop);
        // An event's receiver that stops the cluster is on that very thread, which can't wait for
        // its own end. The lock is not held while waiting, as such a receiver would wait for it.
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
