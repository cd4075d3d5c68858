//! The state machine of one host's shuffle service: calls, heartbeats, retries and reported events.
//!
//! ```text
//!        ┌───────────── failed: wait ◄──────────┐
//!        ▼                                      │
//!  due ─► calling ─► registered ─── lost ───────┘
//!               └──────── failed
//! ```
//!
//! A lost connection is opened again, and the application is registered again: a restarted service has forgotten the
//! application, and its answers would not show this. A service that still knows the application only restarts its
//! heartbeat timeout.
//!
//! A service that accepts registrations and drops them at once also counts as failing: a reported failure is only taken
//! back after a registration has lasted for a heartbeat interval, and the waits between attempts grow until then.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::call::Failure;
use super::event::{RegistrationState, ShuffleEvent};
use crate::backoff::Backoff;

/// The maximum time between two checks of a connection. Heartbeats that are due earlier also check it.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The service of one host.
#[derive(Debug)]
pub(super) struct Host {
    name: String,
    stage: HostStage,
    backoff: Backoff,
    /// The last reported state.
    reported: RegistrationState,
    /// Whether the last registration was lost within a heartbeat interval.
    was_brief: bool,
    /// Whether an agent on this host is known.
    pub(super) is_wanted: bool,
}

#[derive(Debug)]
enum HostStage {
    Due(Instant),
    Calling,
    Registered(Heartbeats),
}

#[derive(Debug)]
struct Heartbeats {
    stream: TcpStream,
    next_check: Instant,
    next_heartbeat: Instant,
    /// The number of heartbeats that were sent.
    sent: u64,
}

/// The heartbeat's interval, timeout and encoded message.
#[derive(Clone, Debug)]
pub(super) struct HeartbeatPlan {
    pub(super) interval: Duration,
    pub(super) timeout: Duration,
    pub(super) frame: Vec<u8>,
}

impl Host {
    /// Creates the state of a service that is to be called now.
    pub(super) fn new(name: &str, now: Instant) -> Host {
        Host {
            name: name.to_owned(),
            stage: HostStage::Due(now),
            backoff: Backoff::default(),
            reported: RegistrationState::New,
            was_brief: false,
            is_wanted: true,
        }
    }

    /// When the service is to be called, or `None` if it is called already or registered. In the order of this key,
    /// services that nothing was reported about come first.
    pub(super) fn due(&self) -> Option<(bool, Instant)> {
        match self.stage {
            HostStage::Due(at) => Some((self.reported != RegistrationState::New, at)),
            HostStage::Calling | HostStage::Registered(_) => None,
        }
    }

    /// When its connection is to be checked next.
    pub(super) fn next_check(&self) -> Option<Instant> {
        match &self.stage {
            HostStage::Registered(link) => Some(link.next_check),
            HostStage::Due(_) | HostStage::Calling => None,
        }
    }

    /// The last reported state.
    pub(super) fn state(&self) -> RegistrationState {
        self.reported
    }

    /// Whether the service can be forgotten: no agent, no connection, no call.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_wanted && matches!(self.stage, HostStage::Due(_))
    }

    /// Records that a call was started.
    pub(super) fn calling(&mut self) {
        self.stage = HostStage::Calling;
    }

    /// Records the result of a call.
    pub(super) fn called(
        &mut self,
        result: Result<TcpStream, Failure>,
        now: Instant,
    ) -> Option<ShuffleEvent> {
        let stream = match result {
            Ok(stream) => stream,
            Err(failure) => return self.failed(failure, now),
        };
        let link = Heartbeats { stream, next_check: now, next_heartbeat: now, sent: 0 };
        self.stage = HostStage::Registered(link);
        if self.was_brief { None } else { Some(self.registered()) }
    }

    /// Sends a heartbeat if one is due, and checks whether the connection is still open.
    pub(super) fn check(&mut self, now: Instant, plan: &HeartbeatPlan) -> Option<ShuffleEvent> {
        let HostStage::Registered(link) = &mut self.stage else { return None };
        if now < link.next_check {
            return None;
        }
        if link.is_overdue(now, plan) {
            self.stage = HostStage::Due(now);
            return None;
        }
        let checked = link.check(now, plan);
        // When the second heartbeat is sent, the registration has lasted for an interval.
        let is_brief = link.sent < 2;
        if let Err(failure) = checked {
            if is_brief {
                self.was_brief = true;
                return self.failed(failure, now);
            }
            // The service was probably restarted. If it can't be reached, the next call reports that.
            self.was_brief = false;
            self.backoff.reset();
            self.stage = HostStage::Due(now + self.backoff.next());
            return None;
        }
        if is_brief {
            return None;
        }
        self.backoff.reset();
        self.was_brief = false;
        (self.reported == RegistrationState::Failing).then(|| self.registered())
    }

    fn registered(&mut self) -> ShuffleEvent {
        let again = self.reported != RegistrationState::New;
        self.reported = RegistrationState::Registered;
        ShuffleEvent::Registered { host: self.name.clone(), again }
    }

    /// Schedules a retry. The failure is reported unless the last report was one.
    fn failed(&mut self, failure: Failure, now: Instant) -> Option<ShuffleEvent> {
        self.stage = HostStage::Due(now + self.backoff.next());
        if self.reported == RegistrationState::Failing {
            return None;
        }
        self.reported = RegistrationState::Failing;
        let Failure { why, is_refusal } = failure;
        Some(ShuffleEvent::Failing { host: self.name.clone(), why, is_refusal })
    }
}

impl Heartbeats {
    /// Whether no heartbeat was sent for the whole timeout, for example because this program was suspended. The service
    /// has forgotten the application by then.
    fn is_overdue(&self, now: Instant, plan: &HeartbeatPlan) -> bool {
        now.saturating_duration_since(self.next_heartbeat) + plan.interval >= plan.timeout
    }

    fn check(&mut self, now: Instant, plan: &HeartbeatPlan) -> Result<(), Failure> {
        self.check_connection()?;
        if now >= self.next_heartbeat {
            self.send_heartbeat(&plan.frame)?;
            self.next_heartbeat = now + plan.interval;
            self.sent = self.sent.saturating_add(1);
        }
        self.next_check = (now + CHECK_EVERY).min(self.next_heartbeat);
        Ok(())
    }

    /// Checks for the end of the connection. The service is not expected to send anything.
    fn check_connection(&mut self) -> Result<(), Failure> {
        match self.stream.read(&mut [0; 64]) {
            Ok(0) => Err(Failure::new("the service closed the connection")),
            Ok(_) => Err(Failure::new("the service sent unexpected data")),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(Failure::new(error.to_string())),
            },
        }
    }

    /// Sends a heartbeat. It fits into the send buffer of any connection whose other side reads.
    fn send_heartbeat(&mut self, frame: &[u8]) -> Result<(), Failure> {
        match self.stream.write(frame) {
            Ok(count) if count == frame.len() => Ok(()),
            Ok(_) => Err(Failure::new("the service does not read")),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Err(Failure::new("the service does not read")),
                _ => Err(Failure::new(error.to_string())),
            },
        }
    }
}
