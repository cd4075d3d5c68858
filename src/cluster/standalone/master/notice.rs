//! [`MasterNotice`]: what a master tells its operator.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::cluster::standalone::protocol::{ExecutorKey, WorkerResources};
use crate::foreign_text::{Printable, cut};
use crate::mesos_v1::messages::TaskState;

/// The most bytes that are shown of a text that a client has chosen.
const SHOWN_BYTES_MAX: usize = 256;

/// How important a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeLevel {
    /// The master can't go on.
    Error,
    /// Something is lost or refused, or doesn't do what it should.
    Warn,
    /// Somebody comes or goes.
    Info,
    /// What happens to single executors.
    Debug,
}

/// Something that has happened to a master. Its `Display` is a sentence without control characters and without secrets,
/// of a few hundred bytes at most.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MasterNotice {
    /// The master has started with a journal that names workers or frameworks, and waits for them.
    Recovering {
        /// The workers that it waits for.
        workers: usize,
        /// The frameworks that it waits for.
        frameworks: usize,
        /// The longest wait.
        timeout: Duration,
    },
    /// The master makes offers from now on.
    Recovered {
        /// The workers that aren't back.
        workers: usize,
        /// The frameworks that aren't back.
        frameworks: usize,
    },
    /// A worker is registered, for the first time or again.
    WorkerRegistered {
        /// Its id.
        id: String,
        /// Its host name.
        hostname: String,
        /// All that it has.
        total: WorkerResources,
        /// Whether it was known before.
        again: bool,
        /// The executors that it has brought along.
        executors: usize,
    },
    /// A worker isn't registered.
    WorkerRefused {
        /// Its address, as it names it.
        address: String,
        /// Why, in a sentence.
        why: String,
    },
    /// A worker's connection has ended. It may come back.
    WorkerDisconnected {
        /// Its id.
        id: String,
        /// Its host name.
        hostname: String,
    },
    /// A worker was silent for too long. What it runs may still run.
    WorkerUnreachable {
        /// Its id.
        id: String,
        /// Its host name.
        hostname: String,
        /// Its executors that haven't ended.
        executors: usize,
    },
    /// A worker takes no launches any more, because it was asked to leave or says so itself.
    WorkerDrains {
        /// Its id.
        id: String,
        /// Its host name.
        hostname: String,
        /// Its executors that haven't ended.
        executors: usize,
    },
    /// A worker is forgotten.
    WorkerRemoved {
        /// Its id.
        id: String,
        /// Its host name.
        hostname: String,
        /// Why, in a few words.
        why: &'static str,
    },
    /// A framework is registered, for the first time or again.
    FrameworkRegistered {
        /// Its id.
        id: String,
        /// Its name.
        name: String,
        /// Whose credentials it has, if any are needed.
        principal: Option<String>,
        /// Whether it was known before.
        again: bool,
    },
    /// A framework isn't registered.
    FrameworkRefused {
        /// The id that it asked for.
        id: String,
        /// Whose credentials it has, if any are needed.
        principal: Option<String>,
        /// Why, in a sentence.
        why: &'static str,
    },
    /// A framework's connection has ended. It may come back within its failover time-out.
    FrameworkDisconnected {
        /// Its id.
        id: String,
        /// Its name.
        name: String,
        /// Whose credentials it has, if any are needed.
        principal: Option<String>,
        /// Its failover time-out.
        failover_timeout: Duration,
    },
    /// A framework is torn down: its executors end.
    FrameworkTornDown {
        /// Its id.
        id: String,
        /// Its name.
        name: String,
        /// Whose credentials it has, if any are needed.
        principal: Option<String>,
        /// Why, in a few words.
        why: &'static str,
    },
    /// A framework has left offers without an answer, which are taken back.
    OffersRescinded {
        /// The framework's id.
        framework: String,
        /// Whose credentials it has, if any are needed.
        principal: Option<String>,
        /// The number of offers.
        offers: usize,
    },
    /// An executor is launched.
    ExecutorLaunched {
        /// The executor.
        key: ExecutorKey,
        /// Its worker's id.
        worker: String,
    },
    /// An executor has ended, and not as it should.
    ExecutorFailed {
        /// The executor.
        key: ExecutorKey,
        /// Its worker's id.
        worker: String,
        /// How.
        state: TaskState,
        /// What the worker says of it.
        message: String,
    },
    /// The master itself stood still: its process was stopped, or its machine slept.
    StoodStill {
        /// For how long.
        time: Duration,
    },
    /// A request was refused for its credentials.
    CredentialsRefused {
        /// Where it comes from, if that is known.
        from: Option<SocketAddr>,
        /// What is wrong, in a few words.
        why: &'static str,
    },
    /// A client's connection couldn't be secured.
    HandshakeFailed {
        /// The client.
        from: SocketAddr,
        /// Why, in the words of TLS.
        why: String,
    },
    /// Further notices weren't told, because one source has caused too many.
    NoticesOmitted {
        /// Who has caused them.
        source: NoticeSource,
        /// How many.
        notices: u64,
    },
    /// A client's connection is closed, because it doesn't read what it is sent.
    ClientTooSlow,
    /// The journal couldn't be written anew, and is appended to.
    JournalKept {
        /// Why, in a sentence.
        why: String,
    },
    /// The journal can't be written. The master ends.
    JournalFailed {
        /// Why, in a sentence.
        why: String,
    },
}

/// Who causes notices, and may cause many.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoticeSource {
    /// A client at this address, or with IPv6 those whose addresses begin with the same 64 bits.
    Peer(IpAddr),
    /// Workers that aren't registered.
    RefusedWorkers,
    /// The frameworks of a principal, or all if none is needed.
    Frameworks {
        /// The principal.
        principal: Option<String>,
    },
    /// All others.
    Others,
}

impl NoticeSource {
    fn of_peer(address: IpAddr) -> NoticeSource {
        NoticeSource::Peer(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
            address => address,
        })
    }
}

impl fmt::Display for NoticeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoticeSource::Peer(IpAddr::V6(address)) => {
                write!(f, "refusals of clients at {address}/64")
            }
            NoticeSource::Peer(address) => write!(f, "refusals of clients at {address}"),
            NoticeSource::RefusedWorkers => f.write_str("workers that are refused"),
            NoticeSource::Frameworks { principal: Some(principal) } => {
                write!(f, "frameworks of principal {}", named(principal))
            }
            NoticeSource::Frameworks { principal: None } => f.write_str("frameworks"),
            NoticeSource::Others => f.write_str("other clients"),
        }
    }
}

impl MasterNotice {
    /// How important it is.
    #[must_use]
    pub fn level(&self) -> NoticeLevel {
        match self {
            MasterNotice::JournalFailed { .. } => NoticeLevel::Error,
            MasterNotice::WorkerRefused { .. }
            | MasterNotice::WorkerUnreachable { .. }
            | MasterNotice::FrameworkRefused { .. }
            | MasterNotice::OffersRescinded { .. }
            | MasterNotice::StoodStill { .. }
            | MasterNotice::CredentialsRefused { .. }
            | MasterNotice::HandshakeFailed { .. }
            | MasterNotice::NoticesOmitted { .. }
            | MasterNotice::ClientTooSlow
            | MasterNotice::JournalKept { .. } => NoticeLevel::Warn,
            MasterNotice::ExecutorLaunched { .. } | MasterNotice::ExecutorFailed { .. } => {
                NoticeLevel::Debug
            }
            _ => NoticeLevel::Info,
        }
    }

    /// Who can cause it as often as it likes; `None` if nobody can.
    #[must_use]
    pub fn source(&self) -> Option<NoticeSource> {
        match self {
            MasterNotice::CredentialsRefused { from: Some(from), .. }
            | MasterNotice::HandshakeFailed { from, .. } => Some(NoticeSource::of_peer(from.ip())),
            MasterNotice::CredentialsRefused { from: None, .. } => Some(NoticeSource::Others),
            MasterNotice::WorkerRefused { .. } => Some(NoticeSource::RefusedWorkers),
            MasterNotice::FrameworkRegistered { principal, .. }
            | MasterNotice::FrameworkRefused { principal, .. }
            | MasterNotice::FrameworkDisconnected { principal, .. }
            | MasterNotice::FrameworkTornDown { principal, .. }
            | MasterNotice::OffersRescinded { principal, .. } => {
                Some(NoticeSource::Frameworks { principal: principal.clone() })
            }
            _ => None,
        }
    }
}

impl fmt::Display for MasterNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MasterNotice::Recovering { workers, frameworks, timeout } => write!(
                f,
                "waiting up to {} s for {} and {} of the journal before offers are made",
                timeout.as_secs(),
                counted(*workers, "worker"),
                counted(*frameworks, "framework")
            ),
            MasterNotice::Recovered { workers: 0, frameworks: 0 } => {
                f.write_str("all workers and frameworks of the journal are back; offers are made")
            }
            MasterNotice::Recovered { workers, frameworks } => write!(
                f,
                "offers are made, though {} and {} of the journal aren't back",
                counted(*workers, "worker"),
                counted(*frameworks, "framework")
            ),
            MasterNotice::WorkerRefused { .. }
            | MasterNotice::FrameworkRefused { .. }
            | MasterNotice::CredentialsRefused { .. }
            | MasterNotice::HandshakeFailed { .. } => self.refusal(f),
            notice => notice.member(f),
        }
    }
}

/// The sentences.
impl MasterNotice {
    fn refusal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MasterNotice::WorkerRefused { address, why } => {
                write!(f, "a worker with the address {} is refused: {}", named(address), shown(why))
            }
            MasterNotice::FrameworkRefused { id, why, .. } => {
                write!(f, "a framework that asks for the id {} is refused: {why}", named(id))
            }
            MasterNotice::CredentialsRefused { from: Some(from), why } => {
                write!(f, "a request from {from} is refused: {why}")
            }
            MasterNotice::CredentialsRefused { from: None, why } => {
                write!(f, "a request is refused: {why}")
            }
            MasterNotice::HandshakeFailed { from, why } => {
                write!(f, "no connection with TLS to {from}: {}", shown(why))
            }
            _ => Ok(()),
        }
    }

    /// About workers, frameworks and executors.
    fn member(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MasterNotice::WorkerRegistered { id, hostname, total, again, executors } => {
                let how = if *again { "is back" } else { "is registered" };
                write!(
                    f,
                    "worker {} {how} with {total} and {}",
                    placed(id, hostname),
                    counted(*executors, "executor")
                )
            }
            MasterNotice::WorkerDisconnected { id, hostname } => {
                write!(f, "worker {} is disconnected", placed(id, hostname))
            }
            MasterNotice::WorkerUnreachable { id, hostname, executors } => {
                let executors = counted(*executors, "executor");
                let worker = placed(id, hostname);
                write!(f, "worker {worker} is unreachable, with {executors} that may still run")
            }
            MasterNotice::WorkerDrains { id, hostname, executors } => {
                let executors = counted(*executors, "executor");
                write!(f, "worker {} drains, with {executors}", placed(id, hostname))
            }
            MasterNotice::WorkerRemoved { id, hostname, why } => {
                write!(f, "worker {} is removed: {why}", placed(id, hostname))
            }
            MasterNotice::FrameworkRegistered { id, name, principal, again } => {
                let how = if *again { "is back" } else { "is registered" };
                write!(f, "framework {} ({}) {how}", named(id), named(name))?;
                principal.as_ref().map_or(Ok(()), |it| write!(f, " as principal {}", named(it)))
            }
            MasterNotice::FrameworkDisconnected { id, name, failover_timeout, .. } => write!(
                f,
                "framework {} ({}) is disconnected; its failover time-out is {} s",
                named(id),
                named(name),
                failover_timeout.as_secs_f64()
            ),
            MasterNotice::FrameworkTornDown { id, name, why, .. } => {
                write!(f, "framework {} ({}) is torn down: {why}", named(id), named(name))
            }
            MasterNotice::OffersRescinded { framework, offers, .. } => {
                let offers = counted(*offers, "offer");
                let framework = named(framework);
                write!(f, "framework {framework} didn't answer {offers} in time: rescinded")
            }
            notice => notice.incident(f),
        }
    }

    /// About executors and the master itself.
    fn incident(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MasterNotice::ExecutorLaunched { key, worker } => {
                let ExecutorKey { framework, executor } = key;
                let [executor, framework] = [executor, framework].map(|it| named(it));
                write!(f, "executor {executor} of {framework} is launched on {}", named(worker))
            }
            MasterNotice::ExecutorFailed { key, worker, state, message } => {
                let ExecutorKey { framework, executor } = key;
                let [executor, framework] = [executor, framework].map(|it| named(it));
                let (worker, state) = (named(worker), format!("{state:?}").to_lowercase());
                write!(f, "executor {executor} of {framework} on {worker} has ended: {state}")?;
                if message.is_empty() { Ok(()) } else { write!(f, ": {}", shown(message)) }
            }
            MasterNotice::StoodStill { time } => write!(
                f,
                "this master stood still for {:.1} s; that doesn't count as silence of workers",
                time.as_secs_f64()
            ),
            MasterNotice::NoticesOmitted { source, notices } => {
                let lines = if *notices == 1 { "line" } else { "lines" };
                write!(f, "{notices} more {lines} about {source} in 10 s, which aren't shown")
            }
            MasterNotice::ClientTooSlow => f.write_str(
                "a connection is closed, because its client doesn't read what it is sent",
            ),
            MasterNotice::JournalKept { why } => {
                write!(f, "the journal can't be written anew, and is appended to: {}", shown(why))
            }
            MasterNotice::JournalFailed { why } => write!(f, "{}; the master ends", shown(why)),
            _ => Ok(()),
        }
    }
}

/// A sentence of a client, bounded and printable.
fn shown(text: &str) -> String {
    Printable(&cut(text.to_owned(), SHOWN_BYTES_MAX)).to_string()
}

/// A name that a client has chosen, bounded and printable, and in quotation marks if it could be taken for a part of
/// the sentence.
fn named(name: &str) -> String {
    let is_word = |c: char| !c.is_whitespace() && !"\"\\(),;:".contains(c);
    let shown = shown(name);
    if !shown.is_empty() && shown.chars().all(is_word) {
        return shown;
    }
    format!("\"{}\"", shown.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A worker and its host. One that only the journal names has no host name.
fn placed(id: &str, hostname: &str) -> String {
    match hostname {
        "" => named(id),
        hostname => format!("{} on {}", named(id), named(hostname)),
    }
}

/// As in `2 workers`.
fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what clients choose isn't taken for a part of a sentence about them. Method: names that end a sentence and
    /// begin another, or look like one of the log's own words.
    #[test]
    fn names_stand_out() {
        let came = |id: &str, name: &str| {
            let (id, name) = (id.to_owned(), name.to_owned());
            MasterNotice::FrameworkRegistered { id, name, principal: None, again: false }
        };
        let sentence = came("a-1-F1", "etl@h1/x").to_string();
        assert_eq!(sentence, "framework a-1-F1 (etl@h1/x) is registered");
        for (name, shown) in [
            ("a b", "\"a b\""),
            ("", "\"\""),
            ("x) is torn down: y (", "\"x) is torn down: y (\""),
            ("a\"b\\", "\"a\\\"b\\\\\""),
            ("a\n2026", "\"a\\\\n2026\""),
        ] {
            let expected = format!("framework 1 ({shown}) is registered");
            assert_eq!(came("1", name).to_string(), expected);
        }
    }
}
