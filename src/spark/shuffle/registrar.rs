//! The registrar: a thread that looks after all services, and a few for a moment that call them.
//!
//! ```text
//!  running, lost ─► table: agents and their hosts ─► caller ─► news
//!  services      ◄──────── states ◄──────────────┘  ▲ │
//!                                                      │ ▼
//!                                                callers, 8 at most
//! ```
//!
//! The table is behind a mutex that nobody holds while he waits for a network: [`Registrar::running`] never does
//! either. It has a row for each agent that is there, and so needs no bound of its own. Hosts that nothing was heard of
//! are called before those that failed, so that dead ones delay others by one registration timeout at most.

use std::collections::{BTreeMap, HashMap};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::call::{self, Failure};
use super::driver::DriverMessage;
use super::event::{RegistrationState, ShuffleEvent};
use super::frame::ShuffleMessage;
use super::host::{Host, Pulse};
use super::options::ShuffleOptions;
use crate::error::Error;

/// So many services are called at a time.
const CALLS_MAX: usize = 8;
/// With nothing to do the caller sleeps for so long.
const IDLE: Duration = Duration::from_secs(3600);

/// A service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its host.
    pub host: String,
    /// How it stands.
    pub standing: RegistrationState,
}

/// Keeps an application registered with the shuffle service of each host that it has executors on.
///
/// Dropped, it stops as [`Registrar::stop`] does.
#[derive(Debug)]
pub struct Registrar {
    shared: Arc<Shared>,
    caller: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<HostTable>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct HostTable {
    /// The host of each agent that is there.
    agents: HashMap<String, String>,
    /// How many agents are there, by host.
    hosts: BTreeMap<String, usize>,
    /// Whether the caller has yet to see those.
    are_new: bool,
    /// Calls that have ended: no more than there can be at a time.
    called: Vec<(String, Result<TcpStream, Failure>)>,
    states: BTreeMap<String, RegistrationState>,
    is_stopping: bool,
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, HostTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostTable {
    /// An agent of this host is there no more.
    fn left(&mut self, host: &str) {
        self.are_new = true;
        if let Some(agents) = self.hosts.get_mut(host) {
            *agents -= 1;
            if *agents == 0 {
                self.hosts.remove(host);
            }
        }
    }
}

impl Registrar {
    /// Starts without services. `tell` is called on a thread of the registrar's, with nothing held.
    ///
    /// # Errors
    /// When an option isn't allowed, or there can't be a thread.
    pub fn start(
        options: ShuffleOptions,
        tell: impl FnMut(ShuffleEvent) + Send + 'static,
    ) -> Result<Registrar, Error> {
        options.check()?;
        let heartbeat = DriverMessage::Heartbeat { app_id: options.app_id.clone() };
        let frame = ShuffleMessage::OneWay { body: heartbeat.to_body() }.to_frame();
        let frame = frame.map_err(|error| Error::cluster("a heartbeat can't be written", error))?;
        let (interval, timeout) = (options.heartbeat_interval, options.heartbeat_timeout);
        let shared = Arc::new(Shared::default());
        let caller = HostCaller {
            shared: Arc::clone(&shared),
            options: Arc::new(options),
            pulse: Pulse { interval, timeout, frame },
            hosts: BTreeMap::new(),
            calls: 0,
        };
        let thread = Builder::new().name("offermill-shuffle".into());
        let thread = thread.spawn(move || caller.run(tell));
        let thread = thread.map_err(|error| Error::cluster("no thread can be started", error))?;
        Ok(Registrar { shared, caller: Some(thread) })
    }

    /// An executor runs on this agent. The first time that its host is heard of, the application is registered there.
    pub fn running(&self, agent_id: &str, host: &str) {
        let mut table = self.shared.table();
        match table.agents.get(agent_id).cloned() {
            Some(known) if known == host => return,
            Some(former) => table.left(&former),
            None => {}
        }
        table.agents.insert(agent_id.to_owned(), host.to_owned());
        *table.hosts.entry(host.to_owned()).or_default() += 1;
        table.are_new = true;
        self.shared.changed.notify_all();
    }

    /// This agent is lost. A service that still listens on its host goes on to get heartbeats, as it still has the
    /// files; one that doesn't is not tried again.
    pub fn lost(&self, agent_id: &str) {
        let mut table = self.shared.table();
        if let Some(host) = table.agents.remove(agent_id) {
            table.left(&host);
            self.shared.changed.notify_all();
        }
    }

    /// How all services stand, by their hosts' names.
    #[must_use]
    pub fn services(&self) -> Vec<Service> {
        let table = self.shared.table();
        let services = table.states.iter();
        services
            .map(|(host, standing)| Service { host: host.clone(), standing: *standing })
            .collect()
    }

    /// Closes all connections; nothing is told any more. Services delete the application's files when its heartbeat
    /// timeout is over. Calls that are under way end within the registration timeout, unheard.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.table().is_stopping = true;
        self.shared.changed.notify_all();
        if let Some(caller) = self.caller.take() {
            // If it panicked, that was said already.
            let _panicked = caller.join();
        }
    }
}

impl Drop for Registrar {
    fn drop(&mut self) {
        self.end();
    }
}

struct HostCaller {
    shared: Arc<Shared>,
    options: Arc<ShuffleOptions>,
    pulse: Pulse,
    hosts: BTreeMap<String, Host>,
    calls: usize,
}

impl HostCaller {
    fn run(mut self, mut tell: impl FnMut(ShuffleEvent)) {
        let shared = Arc::clone(&self.shared);
        let mut table = shared.table();
        while !table.is_stopping {
            let called = self.read(&mut table);
            drop(table);
            let news = self.turn(called);
            news.into_iter().for_each(&mut tell);
            table = shared.table();
            self.publish(&mut table);
            let wait =
                self.wake_at().map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
            if !table.is_stopping && !table.are_new && table.called.is_empty() {
                let waited = shared.changed.wait_timeout(table, wait);
                table = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Takes in what stands on the table.
    fn read(&mut self, table: &mut HostTable) -> Vec<(String, Result<TcpStream, Failure>)> {
        if std::mem::take(&mut table.are_new) {
            let now = Instant::now();
            for (name, host) in &mut self.hosts {
                host.is_wanted = table.hosts.contains_key(name);
            }
            for name in table.hosts.keys() {
                self.hosts.entry(name.clone()).or_insert_with(|| Host::new(name, now));
            }
        }
        std::mem::take(&mut table.called)
    }

    /// Does what is due.
    fn turn(&mut self, called: Vec<(String, Result<TcpStream, Failure>)>) -> Vec<ShuffleEvent> {
        let mut news = Vec::new();
        for (name, result) in called {
            self.calls -= 1;
            let host = self.hosts.get_mut(&name);
            news.extend(host.and_then(|host| host.called(result, Instant::now())));
        }
        for host in self.hosts.values_mut() {
            news.extend(host.look(Instant::now(), &self.pulse));
        }
        self.hosts.retain(|_, host| !host.is_idle());
        news.extend(self.call());
        news
    }

    /// Calls those that are due, as many as can be.
    fn call(&mut self) -> Vec<ShuffleEvent> {
        let now = Instant::now();
        let due = self.hosts.iter().filter_map(|(name, host)| Some((host.due()?, name)));
        let mut due: Vec<_> = due.filter(|((_, at), _)| *at <= now).collect();
        due.sort_unstable();
        let room = CALLS_MAX.saturating_sub(self.calls);
        let names: Vec<String> = due.into_iter().take(room).map(|(_, name)| name.clone()).collect();
        let mut news = Vec::new();
        for name in names {
            let started = self.start_call(&name);
            let Some(host) = self.hosts.get_mut(&name) else { continue };
            match started {
                Ok(()) => {
                    self.calls += 1;
                    host.calling();
                }
                Err(failure) => news.extend(host.called(Err(failure), now)),
            }
        }
        news
    }

    fn start_call(&self, name: &str) -> Result<(), Failure> {
        let (shared, options) = (Arc::clone(&self.shared), Arc::clone(&self.options));
        let host = name.to_owned();
        let call = move || {
            let result = call::register(&host, &options);
            let mut table = shared.table();
            if !table.is_stopping {
                table.called.push((host, result));
                shared.changed.notify_all();
            }
        };
        let thread = Builder::new().name("offermill-shuffle-call".into()).spawn(call);
        thread.map(|_| ()).map_err(Failure::from)
    }

    fn publish(&self, table: &mut HostTable) {
        table.states.retain(|name, _| self.hosts.contains_key(name));
        for (name, host) in &self.hosts {
            match table.states.get_mut(name) {
                Some(standing) => *standing = host.standing(),
                None => drop(table.states.insert(name.clone(), host.standing())),
            }
        }
    }

    /// When something is due next.
    fn wake_at(&self) -> Option<Instant> {
        let has_room = self.calls < CALLS_MAX;
        let times = self.hosts.values().filter_map(|host| match host.due() {
            Some((_, at)) => has_room.then_some(at),
            None => host.look_at(),
        });
        times.min()
    }
}
