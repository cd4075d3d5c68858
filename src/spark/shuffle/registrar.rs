//! [`Registrar`]: a thread that keeps registrations alive, and short-lived threads that call the services.
//!
//! ```text
//!  running, lost ─► table: agents and their hosts ─► caller ─► events
//!  services      ◄─ table: states ◄──────────────────┘ ▲ │
//!                                                      │ ▼
//!                                                calls, 8 at most
//! ```
//!
//! The table is behind a mutex that is never held during network operations, so [`Registrar::running`] never waits for
//! the network. The table has one row per known agent, and therefore needs no limit of its own. Hosts that have not
//! been called yet come before those that failed, so unreachable hosts delay the others by at most one registration
//! timeout.

use std::collections::{BTreeMap, HashMap};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::call::{self, Failure, LookUps};
use super::driver::DriverMessage;
use super::event::{RegistrationState, ShuffleEvent};
use super::frame::ShuffleMessage;
use super::host::{HeartbeatPlan, Host};
use super::options::ShuffleOptions;
use crate::error::Error;

/// The maximum number of services that are called at the same time.
const CALLS_MAX: usize = 8;
/// The time for which the caller sleeps if nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// A shuffle service and the state of its registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The host of the service.
    pub host: String,
    /// The state of the registration.
    pub state: RegistrationState,
}

/// Keeps an application registered with the shuffle service of each host that runs its executors.
///
/// Dropping it stops it like [`Registrar::stop`].
///
/// ```
/// use std::net::TcpListener;
///
/// use offermill::spark::shuffle::{Registrar, RegistrationState, ShuffleOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // In place of a shuffle service, this listener accepts the connection and never answers.
/// let service = TcpListener::bind("127.0.0.1:0")?;
/// let mut options = ShuffleOptions::new("app-1");
/// options.port = service.local_addr()?.port();
/// let registrar = Registrar::start(options, |event| println!("{event:?}"))?;
///
/// // The first executor on an agent: the registrar calls the service on the agent's host.
/// registrar.running("agent-1", "127.0.0.1");
/// let (_connection, _registrar) = service.accept()?;
/// while registrar.services().is_empty() {
///     std::thread::yield_now(); // the registrar is about to see that it is connected
/// }
/// assert_eq!(registrar.services()[0].state, RegistrationState::New);
/// registrar.stop();
/// # Ok(())
/// # }
/// ```
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
    /// The host of each known agent.
    agents: HashMap<String, String>,
    /// The number of known agents per host.
    hosts: BTreeMap<String, usize>,
    /// Whether `hosts` has changed since the caller last read it.
    are_new: bool,
    /// Calls that have ended: at most [`CALLS_MAX`].
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
    /// Removes an agent of `host`.
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
    /// Starts the registrar without any services. It calls `report` for each event, on its own thread and without
    /// holding a lock.
    ///
    /// # Errors
    /// If an option is invalid, or if the thread can't be started.
    pub fn start(
        options: ShuffleOptions,
        report: impl FnMut(ShuffleEvent) + Send + 'static,
    ) -> Result<Registrar, Error> {
        options.check()?;
        let heartbeat = DriverMessage::Heartbeat { app_id: options.app_id.clone() };
        let frame = ShuffleMessage::OneWay { body: heartbeat.to_body() }.to_frame();
        let frame =
            frame.map_err(|error| Error::cluster_from("a heartbeat can't be written", error))?;
        let (interval, timeout) = (options.heartbeat_interval, options.heartbeat_timeout);
        let shared = Arc::new(Shared::default());
        let caller = HostCaller {
            shared: Arc::clone(&shared),
            options: Arc::new(options),
            plan: HeartbeatPlan { interval, timeout, frame },
            hosts: BTreeMap::new(),
            calls: 0,
            look_ups: LookUps::default(),
        };
        let thread = Builder::new().name("offermill-shuffle".into());
        let thread = thread.spawn(move || caller.run(report));
        let thread =
            thread.map_err(|error| Error::cluster_from("no thread can be started", error))?;
        Ok(Registrar { shared, caller: Some(thread) })
    }

    /// Records that an executor runs on this agent. If the host is new, the application is registered with its service.
    ///
    /// It never waits for the network.
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

    /// Records that this agent was lost. If the service on its host still listens, it continues to receive heartbeats,
    /// because it still has the files. Otherwise it is not called again.
    pub fn lost(&self, agent_id: &str) {
        let mut table = self.shared.table();
        if let Some(host) = table.agents.remove(agent_id) {
            table.left(&host);
            self.shared.changed.notify_all();
        }
    }

    /// Returns the states of all services, ordered by host.
    #[must_use]
    pub fn services(&self) -> Vec<Service> {
        let table = self.shared.table();
        let services = table.states.iter();
        services.map(|(host, state)| Service { host: host.clone(), state: *state }).collect()
    }

    /// Closes all connections and reports no more events. The services delete the application's files after its
    /// heartbeat timeout. Calls in progress end within the registration timeout, and their results are dropped.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.shared.table().is_stopping = true;
        self.shared.changed.notify_all();
        if let Some(caller) = self.caller.take() {
            // If the thread panicked, the panic was reported already.
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
    plan: HeartbeatPlan,
    hosts: BTreeMap<String, Host>,
    calls: usize,
    look_ups: LookUps,
}

impl HostCaller {
    fn run(mut self, mut report: impl FnMut(ShuffleEvent)) {
        let shared = Arc::clone(&self.shared);
        let mut table = shared.table();
        while !table.is_stopping {
            let called = self.read(&mut table);
            drop(table);
            let events = self.run_due(called);
            events.into_iter().for_each(&mut report);
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

    /// Reads the changes in the table, and takes the results of calls.
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

    /// Processes the results of calls, sends due heartbeats and starts due calls.
    fn run_due(&mut self, called: Vec<(String, Result<TcpStream, Failure>)>) -> Vec<ShuffleEvent> {
        let mut events = Vec::new();
        for (name, result) in called {
            self.calls -= 1;
            let host = self.hosts.get_mut(&name);
            events.extend(host.and_then(|host| host.called(result, Instant::now())));
        }
        for host in self.hosts.values_mut() {
            events.extend(host.check(Instant::now(), &self.plan));
        }
        self.hosts.retain(|_, host| !host.is_idle());
        events.extend(self.call());
        events
    }

    /// Starts calls to the services that are due, up to [`CALLS_MAX`] in total.
    fn call(&mut self) -> Vec<ShuffleEvent> {
        let now = Instant::now();
        let due = self.hosts.iter().filter_map(|(name, host)| Some((host.due()?, name)));
        let mut due: Vec<_> = due.filter(|((_, at), _)| *at <= now).collect();
        due.sort_unstable();
        let room = CALLS_MAX.saturating_sub(self.calls);
        let names: Vec<String> = due.into_iter().take(room).map(|(_, name)| name.clone()).collect();
        let mut events = Vec::new();
        for name in names {
            let started = self.start_call(&name);
            let Some(host) = self.hosts.get_mut(&name) else { continue };
            match started {
                Ok(()) => {
                    self.calls += 1;
                    host.calling();
                }
                Err(failure) => events.extend(host.called(Err(failure), now)),
            }
        }
        events
    }

    fn start_call(&self, name: &str) -> Result<(), Failure> {
        let (shared, options) = (Arc::clone(&self.shared), Arc::clone(&self.options));
        let host = name.to_owned();
        let look_ups = self.look_ups.clone();
        let call = move || {
            let result = call::register(&host, &options, &look_ups);
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
                Some(state) => *state = host.state(),
                None => drop(table.states.insert(name.clone(), host.state())),
            }
        }
    }

    /// When the next call, heartbeat or check is due.
    fn wake_at(&self) -> Option<Instant> {
        let has_room = self.calls < CALLS_MAX;
        let times = self.hosts.values().filter_map(|host| match host.due() {
            Some((_, at)) => has_room.then_some(at),
            None => host.next_check(),
        });
        times.min()
    }
}
