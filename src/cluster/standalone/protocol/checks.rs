//! Bounds of what messages may contain, checked after they were parsed and before anything else is done with them.

use std::collections::HashSet;
use std::fmt;

use super::amounts::PORT_RANGES_MAX;
use super::call::{ExecutorUpdate, ReportedState, WorkerCall, WorkerSubscribe};
use super::event::{ExecutorCommand, ExecutorKey, ExecutorLaunch, WorkerEvent};
use super::frame::frame_event;
use super::{EXECUTORS_MAX, HEARTBEAT_MILLISECONDS, MESSAGE_BYTES_MAX};
use crate::foreign_text::id_problem;
use crate::limits::FOREIGN_ID_BYTES_MAX;

/// The most bytes of a sentence, a name of an attribute or its value.
pub(super) const TEXT_BYTES_MAX: usize = 4096;
/// The most bytes of a launch's tag.
const TAG_BYTES_MAX: usize = 128;
/// The most attributes.
const ATTRIBUTES_MAX: usize = 256;
/// The most bytes of all attributes of a worker: each offer has them.
const ATTRIBUTES_BYTES_MAX: usize = 64 << 10;
/// The most unacknowledged updates of a worker: an executor starts, runs, is asked to end, and ends.
const UPDATES_MAX: usize = 4 * EXECUTORS_MAX;
/// The most arguments, and the most variables, of a command.
const COMMAND_PARTS_MAX: usize = 8192;
/// The most bytes of a command with its variables: Linux allows some MiB at most.
const COMMAND_BYTES_MAX: usize = 2 << 20;
/// The longest grace period, in milliseconds: a year.
const GRACE_MAX: u64 = 365 * 24 * 3600 * 1000;

/// Why a message that could be parsed is refused, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

impl WorkerCall {
    /// Checks the bounds of all parts.
    ///
    /// # Errors
    /// With what is out of bounds.
    pub fn check(&self) -> Result<(), Unfit> {
        match self {
            WorkerCall::Subscribe(subscribe) => subscribe.check(),
            WorkerCall::Update(update) => update.check(),
            WorkerCall::Heartbeat | WorkerCall::Leaving | WorkerCall::Leave => Ok(()),
        }
    }
}

impl WorkerEvent {
    /// Checks the bounds of all parts.
    ///
    /// # Errors
    /// With what is out of bounds.
    pub fn check(&self) -> Result<(), Unfit> {
        match self {
            WorkerEvent::Subscribed { id, heartbeat, .. } => {
                if heartbeat.is_some_and(|it| !HEARTBEAT_MILLISECONDS.contains(&it)) {
                    return Err(Unfit("the interval of heartbeats is out of bounds".to_owned()));
                }
                check_id("a worker's id", id)
            }
            WorkerEvent::Refused { why, .. } => check_text("the reason of a refusal", why),
            WorkerEvent::Launch(launch) => launch.check(),
            WorkerEvent::Kill { key, grace, .. } => {
                key.check()?;
                check_grace(*grace)
            }
            WorkerEvent::Ack { key, uuid } => {
                key.check()?;
                check_uuid(uuid)
            }
            WorkerEvent::ShutdownFramework { framework, .. } => {
                check_id("a framework's id", framework)
            }
            WorkerEvent::Drain { grace, .. } => check_grace(*grace),
            WorkerEvent::Heartbeat => Ok(()),
        }
    }
}

impl WorkerEvent {
    /// Checks what a worker checks, before it is sent: the bounds of all parts, and the length of the message, in which
    /// characters may be escaped.
    ///
    /// # Errors
    /// With what is out of bounds.
    pub fn check_message(&self) -> Result<(), Unfit> {
        self.check()?;
        at_most("bytes in a message", frame_event(self).len(), MESSAGE_BYTES_MAX)
    }
}

impl WorkerSubscribe {
    fn check(&self) -> Result<(), Unfit> {
        if let Some(id) = &self.id {
            check_id("a worker's id", id)?;
        }
        check_id("a worker's session", &self.session)?;
        check_id("a worker's host name", &self.hostname)?;
        check_id("a worker's address", &self.address)?;
        at_most("attributes", self.attributes.len(), ATTRIBUTES_MAX)?;
        for attribute in &self.attributes {
            check_id("an attribute's name", &attribute.name)?;
            check_text("an attribute's value", &attribute.value)?;
        }
        let bytes = self.attributes.iter().map(|it| it.name.len() + it.value.len()).sum();
        at_most("bytes of attributes", bytes, ATTRIBUTES_BYTES_MAX)?;
        at_most("executors", self.executors.len(), EXECUTORS_MAX)?;
        let mut seen = HashSet::new();
        for held in &self.executors {
            held.key.check()?;
            at_most("bytes in an executor's tag", held.tag.len(), TAG_BYTES_MAX)?;
            check_lost(held.is_lost, held.state)?;
            if !seen.insert(&held.key) {
                return Err(Unfit(format!("executor {} is listed twice", held.key.executor)));
            }
        }
        at_most("unacknowledged updates", self.unacknowledged.len(), UPDATES_MAX)?;
        self.unacknowledged.iter().try_for_each(ExecutorUpdate::check)
    }
}

impl ExecutorUpdate {
    fn check(&self) -> Result<(), Unfit> {
        self.key.check()?;
        check_uuid(&self.uuid)?;
        if !self.timestamp.is_finite() || self.timestamp < 0.0 {
            return Err(Unfit("the time of an update must not be negative".to_owned()));
        }
        if let Some(host) = &self.host {
            check_executor_id(host)?;
        }
        check_lost(self.is_lost, self.state)?;
        if self.is_exhausted && self.state != ReportedState::Failed {
            let why = "what the machine had nothing left for must have the state FAILED";
            return Err(Unfit(why.to_owned()));
        }
        let texts = [("a message", &self.message), ("a task's folder", &self.folder)];
        texts.into_iter().try_for_each(|(what, text)| {
            text.as_ref().map_or(Ok(()), |text| check_text(what, text))
        })
    }

    /// An update at this time, in seconds since 1970, of an executor that is no task in a host, with no message and no
    /// process id.
    #[must_use]
    pub fn new(
        key: ExecutorKey,
        uuid: String,
        state: ReportedState,
        timestamp: f64,
    ) -> ExecutorUpdate {
        ExecutorUpdate {
            key,
            uuid,
            state,
            timestamp,
            message: None,
            pid: None,
            host: None,
            folder: None,
            is_lost: false,
            is_exhausted: false,
        }
    }

    /// Sets the message, cut to what is allowed.
    #[must_use]
    pub fn with_message(self, message: String) -> ExecutorUpdate {
        let message = crate::foreign_text::cut(message, TEXT_BYTES_MAX);
        ExecutorUpdate { message: Some(message), ..self }
    }

    /// Sets the folder, unless it is longer than what is allowed.
    #[must_use]
    pub fn with_folder(self, folder: Option<String>) -> ExecutorUpdate {
        ExecutorUpdate { folder: folder.filter(|it| it.len() <= TEXT_BYTES_MAX), ..self }
    }
}

impl ExecutorKey {
    fn check(&self) -> Result<(), Unfit> {
        check_id("a framework's id", &self.framework)?;
        check_executor_id(&self.executor)
    }
}

impl ExecutorLaunch {
    fn check(&self) -> Result<(), Unfit> {
        self.key.check()?;
        check_text("a framework's name", &self.name)?;
        check_grace(self.grace)?;
        at_most("bytes in an executor's tag", self.tag.len(), TAG_BYTES_MAX)?;
        at_most("intervals of ports", self.resources.ports.ranges().len(), PORT_RANGES_MAX)?;
        if let Some(host) = self.hosting.host() {
            check_executor_id(host)?;
        }
        self.command.check()
    }
}

impl ExecutorCommand {
    /// Checks the bounds of all parts, and that the system can start it.
    ///
    /// # Errors
    /// With what is out of bounds.
    pub fn check(&self) -> Result<(), Unfit> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(Unfit("a command must begin with a program".to_owned()));
        }
        at_most("arguments", self.argv.len(), COMMAND_PARTS_MAX)?;
        at_most("variables", self.environment.len(), COMMAND_PARTS_MAX)?;
        let variables = self.environment.iter().flat_map(|(name, value)| [name, value]);
        let parts = || self.argv.iter().chain(variables.clone()).chain(&self.user);
        if parts().any(|part| part.contains('\0')) {
            return Err(Unfit("a command must not contain the character NUL".to_owned()));
        }
        at_most("bytes in a command", parts().map(String::len).sum(), COMMAND_BYTES_MAX)?;
        match self.environment.iter().find(|(name, _)| name.is_empty() || name.contains('=')) {
            Some(_) => Err(Unfit("a variable's name must not be empty or contain '='".to_owned())),
            None => Ok(()),
        }
    }
}

fn check_id(what: &str, id: &str) -> Result<(), Unfit> {
    if id.is_empty() {
        return Err(Unfit(format!("{what} must not be empty")));
    }
    id_problem(what, id).map_or(Ok(()), |why| Err(Unfit(why)))
}

/// As in Mesos, it may have white space.
fn check_executor_id(id: &str) -> Result<(), Unfit> {
    at_most("bytes in an executor's id", id.len(), FOREIGN_ID_BYTES_MAX)?;
    match id.is_empty() || id.contains(char::is_control) {
        true => Err(Unfit("an executor's id is empty or has control characters".to_owned())),
        false => Ok(()),
    }
}

fn check_text(what: &str, text: &str) -> Result<(), Unfit> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(Unfit(format!("{what} has {} bytes, but {TEXT_BYTES_MAX} is the most", text.len())))
}

fn check_uuid(uuid: &str) -> Result<(), Unfit> {
    if uuid.len() == 32 && uuid.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(());
    }
    Err(Unfit("an update's uuid must be 32 hexadecimal digits in lower case".to_owned()))
}

/// Only what has failed may be lost.
fn check_lost(is_lost: bool, state: ReportedState) -> Result<(), Unfit> {
    match is_lost && state != ReportedState::Failed {
        true => Err(Unfit("what is lost with its host must have the state FAILED".to_owned())),
        false => Ok(()),
    }
}

fn check_grace(grace: u64) -> Result<(), Unfit> {
    if grace <= GRACE_MAX {
        return Ok(());
    }
    Err(Unfit(format!("a grace period is {grace} ms, but {GRACE_MAX} ms is the most")))
}

fn at_most(what: &str, count: usize, most: usize) -> Result<(), Unfit> {
    if count <= most { Ok(()) } else { Err(Unfit(format!("{count} {what}; {most} is the most"))) }
}
