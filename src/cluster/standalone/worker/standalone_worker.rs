//! [`StandaloneWorker`]: its start and its stop.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::actor::{WorkerActor, WorkerMessage};
use super::config::WorkerConfig;
use super::dialer::Dialer;
use super::host_events::HostEventSink;
use super::identity::IdentityFile;
use super::link;
use super::notice::{WorkerEnd, WorkerNotice};
use super::processes::WorkerProcesses;
use super::state::{WorkerFacts, WorkerState};
use crate::cluster::http_client::Http;
use crate::cluster::process::{EnvironmentBase, ProcessEventSink, ProcessOptions, WorkFolder};
use crate::error::Error;

/// A worker that is not started: its settings are checked, and its files are open.
pub struct StandaloneWorker {
    config: WorkerConfig,
    client: Http,
    work_folder: WorkFolder,
    identity: IdentityFile,
}

impl StandaloneWorker {
    /// Checks the settings, and opens the files that they name.
    ///
    /// # Errors
    /// If a setting isn't allowed, a file can't be used, or another worker uses the work folder.
    pub fn new(config: WorkerConfig) -> Result<StandaloneWorker, Error> {
        config.check()?;
        let client = link::client(&config)?;
        let work_folder = WorkFolder::open(&config.work_dir)?;
        let identity = IdentityFile::open(&config.work_dir)?;
        Ok(StandaloneWorker { config, client, work_folder, identity })
    }

    /// Starts the worker's thread. `observer` is called on it with what happens, and must not block.
    ///
    /// # Errors
    /// If the thread or its runtime can't be started.
    pub fn start(
        self,
        observer: impl FnMut(WorkerNotice) + Send + 'static,
    ) -> Result<WorkerHandle, Error> {
        let StandaloneWorker { config, client, work_folder, identity } = self;
        let (sender, inbox) = unbounded_channel();
        let facts = WorkerFacts {
            hostname: config.hostname.clone(),
            address: config.address.clone().unwrap_or_else(|| config.hostname.clone()),
            resources: config.resources(),
            attributes: config.attributes.clone(),
            // The hashers' keys are random.
            session: RandomState::new().hash_one(std::process::id()),
            updates: RandomState::new().hash_one("updates"),
            user: user_name(),
            takes_any_user: config.takes_any_user,
        };
        let options = ProcessOptions {
            environment: EnvironmentBase::Basic,
            withheld: Vec::new(),
            shell: PathBuf::from("/bin/sh"),
            start_timeout: config.start_timeout,
        };
        let id = identity.id().map(str::to_owned);
        let began = Instant::now();
        let actor = WorkerActor {
            inbox,
            state: WorkerState::new(facts, id, identity.term()),
            processes: WorkerProcesses::new(
                work_folder,
                options,
                process_events(&sender),
                host_events(&sender),
            ),
            identity,
            dialer: Dialer::new(client, &config),
            link: None,
            observer: Box::new(observer),
            began,
            heartbeat: config.heartbeat,
            heartbeat_at: began,
            end: None,
            config,
        };
        let failed = |error| Error::cluster_from("worker: its thread can't be started", error);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().map_err(failed)?;
        let run = move || runtime.block_on(actor.run());
        let thread = Builder::new().name("offermill-worker".into()).spawn(run).map_err(failed)?;
        Ok(WorkerHandle { inbox: sender, thread })
    }
}

impl fmt::Debug for StandaloneWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandaloneWorker").field("config", &self.config).finish_non_exhaustive()
    }
}

/// A worker that runs.
#[derive(Debug)]
pub struct WorkerHandle {
    inbox: UnboundedSender<WorkerMessage>,
    thread: JoinHandle<WorkerEnd>,
}

impl WorkerHandle {
    /// Returns a function that asks the worker to end: its executors are asked to, and ended by force after the grace
    /// period; then the master is told, and the worker ends.
    pub fn stopper(&self) -> impl Fn() + Send + Sync + use<> {
        let inbox = self.inbox.clone();
        move || {
            // It has ended already.
            let _ended = inbox.send(WorkerMessage::Stop);
        }
    }

    /// Waits for the worker's end. `None` if its thread has panicked.
    #[must_use]
    pub fn wait(self) -> Option<WorkerEnd> {
        self.thread.join().ok()
    }
}

/// Sends the events of processes to the worker's thread.
fn process_events(inbox: &UnboundedSender<WorkerMessage>) -> ProcessEventSink {
    let inbox = inbox.clone();
    ProcessEventSink::new(move |event| match inbox.send(WorkerMessage::Process(event)) {
        Err(unsent) => match unsent.0 {
            WorkerMessage::Process(event) => Some(event),
            WorkerMessage::Host(..) | WorkerMessage::Stop => None,
        },
        Ok(()) => None,
    })
}

/// Sends the events of hosts' connections to the worker's thread.
fn host_events(inbox: &UnboundedSender<WorkerMessage>) -> HostEventSink {
    let inbox = inbox.clone();
    HostEventSink::new(move |host, event| inbox.send(WorkerMessage::Host(host, event)).is_ok())
}

/// The name of the user as whom this process acts.
fn user_name() -> Option<String> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    user.map(|user| user.name)
}
