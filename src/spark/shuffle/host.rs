//! One host's service, as the registrar knows it.
//!
//! ```text
//!        ┌───────────── failed: wait ◄──────────┐
//!        ▼                                      │
//!  due ─► calling ─► registered ─── lost ───────┘
//!               └──────── failed
//! ```
//!
//! A connection that is lost is made anew, and with it the registration: a service that was started again has forgotten
//! the application, and nothing that it says would tell. One that still knows it only begins to count anew.
//!
//! A service that takes registrations and loses them at once fails, too: what was told of it is taken back only when a
//! registration has lasted for a heartbeat interval, and its waits grow until then.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::call::Failure;
use super::event::{RegistrationState, ShuffleEvent};
use crate::backoff::Backoff;

/// Connections are looked after this often, or with each heartbeat if those are more frequent.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A host's service.
#[derive(Debug)]
pub(super) struct Host {
    name: String,
    stage: HostStage,
    backoff: Backoff,
    told: RegistrationState,
    /// Whether the last registration ended too soon.
    was_brief: bool,
    /// Whether an agent is there.
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
    look_at: Instant,
    beat_at: Instant,
    /// How many heartbeats were sent.
    beats: u64,
}

/// When heartbeats are due, and what they are.
#[derive(Clone, Debug)]
pub(super) struct Pulse {
    pub(super) interval: Duration,
    pub(super) timeout: Duration,
    pub(super) frame: Vec<u8>,
}

impl Host {
    /// To be called now.
    pub(super) fn new(name: &str, now: Instant) -> Host {
        Host {
            name: name.to_owned(),
            stage: HostStage::Due(now),
            backoff: Backoff::default(),
            told: RegistrationState::New,
            was_brief: false,
            is_wanted: true,
        }
    }

    /// When it is to be called: those that nothing was heard of first. `None` if it isn't to be.
    pub(super) fn due(&self) -> Option<(bool, Instant)> {
        match self.stage {
            HostStage::Due(at) => Some((self.told != RegistrationState::New, at)),
            HostStage::Calling | HostStage::Registered(_) => None,
        }
    }

    /// When there is something to do about its connection.
    pub(super) fn look_at(&self) -> Option<Instant> {
        match &self.stage {
            HostStage::Registered(link) => Some(link.look_at),
            HostStage::Due(_) | HostStage::Calling => None,
        }
    }

    /// How it stands, as it was told.
    pub(super) fn standing(&self) -> RegistrationState {
        self.told
    }

    /// Whether it can be forgotten: no agent, no connection, no call.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_wanted && matches!(self.stage, HostStage::Due(_))
    }

    /// It is being called.
    pub(super) fn calling(&mut self) {
        self.stage = HostStage::Calling;
    }

    /// The call has ended.
    pub(super) fn called(
        &mut self,
        result: Result<TcpStream, Failure>,
        now: Instant,
    ) -> Option<ShuffleEvent> {
        let stream = match result {
            Ok(stream) => stream,
            Err(failure) => return self.failed(failure, now),
        };
        let link = Heartbeats { stream, look_at: now, beat_at: now, beats: 0 };
        self.stage = HostStage::Registered(link);
        if self.was_brief { None } else { Some(self.registered()) }
    }

    /// Sends a heartbeat if it is time, and sees whether the connection still stands.
    pub(super) fn look(&mut self, now: Instant, pulse: &Pulse) -> Option<ShuffleEvent> {
        let HostStage::Registered(link) = &mut self.stage else { return None };
        if now < link.look_at {
            return None;
        }
        if link.is_overdue(now, pulse) {
            self.stage = HostStage::Due(now);
            return None;
        }
        let looked = link.look(now, pulse);
        // With the second heartbeat it has lasted for an interval.
        let is_brief = link.beats < 2;
        if let Err(failure) = looked {
            if is_brief {
                self.was_brief = true;
                return self.failed(failure, now);
            }
            // Most likely the service was started again. If it can't be had, that will be told.
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
        (self.told == RegistrationState::Failing).then(|| self.registered())
    }

    fn registered(&mut self) -> ShuffleEvent {
        let again = self.told != RegistrationState::New;
        self.told = RegistrationState::Registered;
        ShuffleEvent::Registered { host: self.name.clone(), again }
    }

    /// It is tried again later. That it fails is told once.
    fn failed(&mut self, failure: Failure, now: Instant) -> Option<ShuffleEvent> {
        self.stage = HostStage::Due(now + self.backoff.next());
        if self.told == RegistrationState::Failing {
            return None;
        }
        self.told = RegistrationState::Failing;
        let Failure { why, is_refusal } = failure;
        Some(ShuffleEvent::Failing { host: self.name.clone(), why, is_refusal })
    }
}

impl Heartbeats {
    /// Whether no heartbeat was sent for the whole timeout, as when this program was stopped: the service has forgotten
    /// the application by then.
    fn is_overdue(&self, now: Instant, pulse: &Pulse) -> bool {
        now.saturating_duration_since(self.beat_at) + pulse.interval >= pulse.timeout
    }

    fn look(&mut self, now: Instant, pulse: &Pulse) -> Result<(), Failure> {
        self.listen()?;
        if now >= self.beat_at {
            self.beat(&pulse.frame)?;
            self.beat_at = now + pulse.interval;
            self.beats = self.beats.saturating_add(1);
        }
        self.look_at = (now + LOOK_EVERY).min(self.beat_at);
        Ok(())
    }

    /// Nothing is due to come; the end may.
    fn listen(&mut self) -> Result<(), Failure> {
        match self.stream.read(&mut [0; 64]) {
            Ok(0) => Err(Failure::new("it closed the connection")),
            Ok(_) => Err(Failure::new("it sent what was not asked for")),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
                _ => Err(Failure::new(error.to_string())),
            },
        }
    }

    /// A heartbeat has room in any connection whose other side reads at all.
    fn beat(&mut self, frame: &[u8]) -> Result<(), Failure> {
        match self.stream.write(frame) {
            Ok(count) if count == frame.len() => Ok(()),
            Ok(_) => Err(Failure::new("it doesn't read what it is sent")),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Err(Failure::new("it doesn't read what it is sent")),
                _ => Err(Failure::new(error.to_string())),
            },
        }
    }
}
