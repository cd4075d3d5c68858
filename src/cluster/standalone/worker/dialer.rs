//! Which master is dialled next, and when.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::config::WorkerConfig;
use super::link::{Link, LinkEnd};
use super::notice::WorkerNotice;
use crate::backoff::Backoff;
use crate::cluster::http_client::{Http, Master, SharedHttp};

/// The maximum number of redirections that are followed in a row without waiting.
const REDIRECTIONS_MAX: u32 = 4;
/// A registration that lasted for this time resets the back-off, so that a master that ends soon after its start again
/// is found soon. After shorter ones waits are short for a while. A master that ends each connection at once is asked
/// ever more rarely.
const STABLE_AFTER: Duration = Duration::from_secs(2);

/// Dials masters: the leader if one was named, otherwise one after the other, with pauses.
pub(super) struct Dialer {
    client: SharedHttp,
    masters: Vec<Master>,
    tls: bool,
    /// The index of the master to try next.
    next: usize,
    leader: Option<Master>,
    /// The master that was dialled last.
    current: Master,
    redirections: u32,
    backoff: Backoff,
    next_at: Instant,
    /// When the current registration began.
    registered_at: Option<Instant>,
    was_registered: bool,
    /// The failure that was reported last, so that it isn't reported repeatedly.
    last_failure: Option<String>,
}

impl Dialer {
    pub(super) fn new(client: Http, config: &WorkerConfig) -> Dialer {
        let nobody = || Master { host: String::new(), port: 0 };
        Dialer {
            client: Arc::new(client),
            masters: config.masters.all().to_vec(),
            tls: config.masters.tls(),
            next: 0,
            leader: None,
            current: config.masters.all().first().cloned().unwrap_or_else(nobody),
            redirections: 0,
            backoff: Backoff::default(),
            next_at: Instant::now(),
            registered_at: None,
            was_registered: false,
            last_failure: None,
        }
    }

    /// When a master is to be dialled.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// The master that was dialled last.
    pub(super) fn master(&self) -> &Master {
        &self.current
    }

    /// Whether this worker's process was ever registered.
    pub(super) fn was_registered(&self) -> bool {
        self.was_registered
    }

    /// Begins to connect to a master.
    pub(super) fn dial(&mut self, config: &WorkerConfig) -> Link {
        let leader = self.leader.take();
        if let Some(master) = leader.or_else(|| self.masters.get(self.next).cloned()) {
            self.current = master;
        }
        self.next = (self.next + 1) % self.masters.len().max(1);
        Link::dial(Arc::clone(&self.client), config, self.current.clone())
    }

    /// Records that the worker is registered.
    pub(super) fn on_registered(&mut self) {
        self.registered_at = Some(Instant::now());
        self.was_registered = true;
        self.redirections = 0;
        self.last_failure = None;
    }

    /// Records that a connection has ended, and returns what people are told of it.
    pub(super) fn on_end(&mut self, end: LinkEnd) -> Option<WorkerNotice> {
        let now = Instant::now();
        let registered_at = self.registered_at.take();
        if let Some(at) = registered_at {
            let lasted = now - at;
            self.backoff.connection_ended(lasted);
            if lasted >= STABLE_AFTER {
                self.backoff.reset();
            }
            // The leader is most likely the same.
            self.leader = Some(self.current.clone());
        }
        let why = match end {
            LinkEnd::Lost(why) | LinkEnd::Unauthorized(why) => why,
            LinkEnd::Elsewhere(location) => match self.redirect(&location) {
                Ok(leader) => {
                    self.leader = Some(leader);
                    self.next_at = now;
                    return None;
                }
                Err(why) => why,
            },
        };
        self.next_at = now + self.backoff.next();
        let master = self.current.to_string();
        if registered_at.is_some() {
            return Some(WorkerNotice::Lost { master, why });
        }
        let failure = format!("{master}: {why}");
        if self.last_failure.as_ref() == Some(&failure) {
            return None;
        }
        self.last_failure = Some(failure);
        Some(WorkerNotice::Unreachable { master, why })
    }

    /// The leader that a redirection names. Only configured masters are followed: the token is for them.
    fn redirect(&mut self, location: &str) -> Result<Master, String> {
        let location = self.client.sanitize(location);
        let leader = Master::redirected(&location, self.tls)
            .ok_or_else(|| format!("it redirects to {location:?}, which is not a master"))?;
        if !self.masters.contains(&leader) {
            return Err(format!("it says that {leader} leads, which is not among the masters"));
        }
        self.redirections += 1;
        if self.redirections > REDIRECTIONS_MAX {
            self.redirections = 0;
            return Err(format!("it says that {leader} leads, in a loop of redirections"));
        }
        Ok(leader)
    }
}
