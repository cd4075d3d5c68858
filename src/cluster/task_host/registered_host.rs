//! What is known of one host, and how long it is waited for.

use std::time::{Duration, Instant};

use super::connection::HostConnection;
use super::message::HostRequest;
use crate::cluster::process::{Exit, RunningExecutor};

/// How many looks in a row a host may be silent. They are counted, not timed: while this program itself is stopped,
/// nothing counts.
pub(super) const SILENT_LOOKS_MAX: u32 = 6;

/// How long hosts are waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPatience {
    /// The time between two looks at a host. One that says nothing for six of them, though it is asked to, is ended:
    /// when it starts, or later.
    pub(crate) look_interval: Duration,
    /// How long the end of a host's connection is waited for after its process has ended, before it is cut; and once
    /// more after that: until its tasks were killed.
    pub(crate) closed_wait: Duration,
}

impl Default for HostPatience {
    fn default() -> HostPatience {
        let (look_interval, closed_wait) = (Duration::from_secs(10), Duration::from_secs(20));
        HostPatience { look_interval, closed_wait }
    }
}

impl HostPatience {
    /// How long a host may be silent, in seconds.
    pub(super) fn silence_secs(&self) -> f64 {
        (self.look_interval * SILENT_LOOKS_MAX).as_secs_f64()
    }
}

/// A host, from its launch to its last report.
#[derive(Debug)]
pub(super) struct RegisteredHost<T> {
    /// `None` before it is started, and once it is closed.
    pub(super) connection: Option<HostConnection>,
    pub(super) is_ready: bool,
    /// Requests for a host that isn't ready, and tasks for one that is of no use any more.
    pub(super) waiting: Vec<HostRequest>,
    /// When it is looked at next. `None` before its start, and once it is of no use.
    pub(super) look_at: Option<Instant>,
    /// It has said something since the last look.
    pub(super) is_heard: bool,
    /// How many looks in a row have found it silent.
    pub(super) silent_looks: u32,
    /// Why the host is ended by force, if it is, such as that its messages make no sense.
    pub(super) fault: Option<String>,
    /// It was asked to end, and takes no tasks.
    pub(super) is_finishing: bool,
    pub(super) is_closed: bool,
    /// Processes of its tasks may be left.
    pub(super) is_unswept: bool,
    /// Its process, once it has ended.
    pub(super) gone: Option<GoneHost<T>>,
}

/// The process of a host that has ended.
#[derive(Debug)]
pub(super) struct GoneHost<T> {
    pub(super) executor: RunningExecutor<T>,
    pub(super) exit: Exit,
    /// Until when the end of the connection is waited for.
    pub(super) until: Instant,
    /// The connection was cut.
    pub(super) is_cut: bool,
}

impl<T> Default for RegisteredHost<T> {
    fn default() -> RegisteredHost<T> {
        RegisteredHost {
            connection: None,
            is_ready: false,
            waiting: Vec::new(),
            look_at: None,
            is_heard: false,
            silent_looks: 0,
            fault: None,
            is_finishing: false,
            is_closed: false,
            is_unswept: false,
            gone: None,
        }
    }
}

impl<T> RegisteredHost<T> {
    /// Whether requests have an effect.
    pub(super) fn is_usable(&self) -> bool {
        self.fault.is_none() && !self.is_closed && self.gone.is_none()
    }

    /// Looks at the host, whose next look is at `next`. Returns whether it has been silent for too long.
    pub(super) fn is_silent(&mut self, next: Instant) -> bool {
        self.look_at = Some(next);
        self.silent_looks =
            if std::mem::take(&mut self.is_heard) { 0 } else { self.silent_looks + 1 };
        if let Some(connection) = self.connection.as_ref().filter(|_| self.is_ready) {
            connection.send(HostRequest::Ping);
        }
        self.silent_looks >= SILENT_LOOKS_MAX
    }

    /// Sends a request, as soon as the host is ready.
    pub(super) fn send(&mut self, request: HostRequest) {
        match &self.connection {
            Some(connection) if self.is_ready => connection.send(request),
            _ => self.waiting.push(request),
        }
    }
}
