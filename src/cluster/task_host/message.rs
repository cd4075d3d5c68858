//! The messages between a cluster and a host of tasks.
//!
//! ```text
//! cluster                                    host
//!         Begin (version, folder)  ────────►
//!                                  ◄────────  Ready (process of its sweeper)
//!         Start (task, command)    ────────►
//!                                  ◄────────  Started (task, process), or NotStarted (task, why)
//!         Kill (task, grace)       ────────►
//!                                  ◄────────  Ended (task, exit)
//!         Ping                     ────────►
//!                                  ◄────────  Pong
//!         Finish (grace)           ────────►  ends its tasks, and itself
//!                                  ◄────────  Swept, from its sweeper: nothing of its tasks is left
//! ```

use std::io;
use std::time::Duration;

use super::frame::{MessageReader, NONSENSE, invalid, put_number, put_text};
use crate::cluster::process::Exit;

/// The version of these messages. A host of another one refuses to begin.
pub(super) const VERSION: u64 = 2;
/// The longest message to a host, in bytes: a command with its environment.
pub(super) const REQUEST_BYTES_MAX: usize = 8 << 20;
/// The longest message from a host, in bytes.
pub(super) const REPORT_BYTES_MAX: usize = 64 << 10;
/// The longest sentence about a start that failed, in bytes.
const WHY_BYTES_MAX: usize = 4 << 10;

/// What a cluster asks of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostRequest {
    /// The first message.
    Begin { version: u64, folder: String },
    /// Run a command as a task, with its output in the folder of that name.
    Start { task: String, argv: Vec<String>, environment: Vec<(String, String)> },
    /// End a task: by SIGTERM first, and by SIGKILL after the grace.
    Kill { task: String, grace: Duration },
    /// End all tasks, and then the host.
    Finish { grace: Duration },
    /// Say that it isn't stuck.
    Ping,
}

/// What a host tells the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostReport {
    /// It takes tasks. If it ends, this process kills those that are left.
    Ready { sweeper: i32 },
    /// A task has a process.
    Started { task: String, pid: i32, folder: String },
    /// A task could not be started. `is_busy` says that the machine had no process or file for it at the moment.
    NotStarted { task: String, why: String, is_busy: bool },
    /// A task's process has ended.
    Ended { task: String, exit: Exit },
    /// It isn't stuck.
    Pong,
    /// The last report, of the host's sweeper: the host has ended, and nothing of its tasks is left.
    Swept,
}

impl HostRequest {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut message = Vec::new();
        let millis = |grace: &Duration| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        match self {
            HostRequest::Begin { version, folder } => {
                message.push(0);
                put_number(&mut message, *version);
                put_text(&mut message, folder);
            }
            HostRequest::Start { task, argv, environment } => {
                message.push(1);
                put_text(&mut message, task);
                put_number(&mut message, argv.len() as u64);
                argv.iter().for_each(|argument| put_text(&mut message, argument));
                put_number(&mut message, environment.len() as u64 * 2);
                for (name, value) in environment {
                    put_text(&mut message, name);
                    put_text(&mut message, value);
                }
            }
            HostRequest::Kill { task, grace } => {
                message.push(2);
                put_text(&mut message, task);
                put_number(&mut message, millis(grace));
            }
            HostRequest::Finish { grace } => {
                message.push(3);
                put_number(&mut message, millis(grace));
            }
            HostRequest::Ping => message.push(4),
        }
        message
    }

    pub(super) fn decode(content: &[u8]) -> io::Result<HostRequest> {
        let mut message = MessageReader(content);
        let request = match message.byte()? {
            0 => HostRequest::Begin { version: message.number()?, folder: message.text()? },
            1 => {
                let (task, argv, variables) = (message.text()?, message.texts()?, message.texts()?);
                let (pairs, rest) = variables.as_chunks();
                if !rest.is_empty() {
                    return Err(invalid(NONSENSE));
                }
                let pair = |[name, value]: &[String; 2]| (name.clone(), value.clone());
                HostRequest::Start { task, argv, environment: pairs.iter().map(pair).collect() }
            }
            2 => HostRequest::Kill { task: message.text()?, grace: grace(&mut message)? },
            3 => HostRequest::Finish { grace: grace(&mut message)? },
            4 => HostRequest::Ping,
            _ => return Err(invalid(NONSENSE)),
        };
        message.end()?;
        Ok(request)
    }
}

fn grace(message: &mut MessageReader<'_>) -> io::Result<Duration> {
    message.number().map(Duration::from_millis)
}

impl HostReport {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut message = Vec::new();
        match self {
            HostReport::Ready { sweeper } => {
                message.push(0);
                put_number(&mut message, u64::from(sweeper.unsigned_abs()));
            }
            HostReport::Started { task, pid, folder } => {
                message.push(1);
                put_text(&mut message, task);
                put_number(&mut message, u64::from(pid.unsigned_abs()));
                put_text(&mut message, folder);
            }
            HostReport::NotStarted { task, why, is_busy } => {
                message.push(2);
                put_text(&mut message, task);
                put_text(&mut message, &why[..why.floor_char_boundary_at(WHY_BYTES_MAX)]);
                message.push(u8::from(*is_busy));
            }
            HostReport::Ended { task, exit } => {
                message.push(3);
                put_text(&mut message, task);
                let (kind, number) = match exit {
                    Exit::Code(code) => (0, *code),
                    Exit::Signal(signal) => (1, *signal),
                    Exit::Unknown => (2, 0),
                };
                message.push(kind);
                put_number(&mut message, u64::from(number.unsigned_abs()));
            }
            HostReport::Pong => message.push(4),
            HostReport::Swept => message.push(5),
        }
        message
    }

    pub(super) fn decode(content: &[u8]) -> io::Result<HostReport> {
        let mut message = MessageReader(content);
        let small = |number: u64| i32::try_from(number).map_err(|_| invalid(NONSENSE));
        let report = match message.byte()? {
            0 => HostReport::Ready { sweeper: small(message.number()?)? },
            1 => HostReport::Started {
                task: message.text()?,
                pid: small(message.number()?)?,
                folder: message.text()?,
            },
            2 => HostReport::NotStarted {
                task: message.text()?,
                why: message.text()?,
                is_busy: message.byte()? != 0,
            },
            3 => {
                let task = message.text()?;
                let (kind, number) = (message.byte()?, small(message.number()?)?);
                let exit = match kind {
                    0 => Exit::Code(number),
                    1 => Exit::Signal(number),
                    2 => Exit::Unknown,
                    _ => return Err(invalid(NONSENSE)),
                };
                HostReport::Ended { task, exit }
            }
            4 => HostReport::Pong,
            5 => HostReport::Swept,
            _ => return Err(invalid(NONSENSE)),
        };
        message.end()?;
        Ok(report)
    }
}

/// `str::floor_char_boundary`, which the oldest compiler that builds this doesn't have.
trait FloorCharBoundary {
    fn floor_char_boundary_at(&self, most: usize) -> usize;
}

impl FloorCharBoundary for str {
    fn floor_char_boundary_at(&self, most: usize) -> usize {
        let most = most.min(self.len());
        (0..=most).rev().find(|at| self.is_char_boundary(*at)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request() -> impl Strategy<Value = HostRequest> {
        let grace = || (0u64..u64::MAX).prop_map(Duration::from_millis);
        let texts = || prop::collection::vec(".*", 0..4);
        let pairs = prop::collection::vec((".*", ".*"), 0..4);
        prop_oneof![
            (any::<u64>(), ".*")
                .prop_map(|(version, folder)| HostRequest::Begin { version, folder }),
            (".*", texts(), pairs).prop_map(|(task, argv, environment)| HostRequest::Start {
                task,
                argv,
                environment
            }),
            (".*", grace()).prop_map(|(task, grace)| HostRequest::Kill { task, grace }),
            grace().prop_map(|grace| HostRequest::Finish { grace }),
            Just(HostRequest::Ping),
        ]
    }

    fn report() -> impl Strategy<Value = HostReport> {
        let number = || 0..i32::MAX;
        let exit = prop_oneof![
            number().prop_map(Exit::Code),
            number().prop_map(Exit::Signal),
            Just(Exit::Unknown)
        ];
        prop_oneof![
            number().prop_map(|sweeper| HostReport::Ready { sweeper }),
            Just(HostReport::Pong),
            Just(HostReport::Swept),
            (".*", number(), ".*").prop_map(|(task, pid, folder)| HostReport::Started {
                task,
                pid,
                folder
            }),
            (".*", ".*", any::<bool>()).prop_map(|(task, why, is_busy)| HostReport::NotStarted {
                task,
                why,
                is_busy
            }),
            (".*", exit).prop_map(|(task, exit)| HostReport::Ended { task, exit }),
        ]
    }

    proptest! {
        /// Goal: messages come back as they were written, and what is no message is refused. Method: random messages,
        /// each also with a byte less and one more; random bytes.
        #[test]
        fn messages_come_back(request in request(), report in report(), noise: Vec<u8>) {
            let bytes = request.encode();
            prop_assert_eq!(HostRequest::decode(&bytes).unwrap(), request);
            prop_assert!(HostRequest::decode(&bytes[..bytes.len() - 1]).is_err());
            prop_assert!(HostRequest::decode(&[&bytes[..], &[0]].concat()).is_err());
            let bytes = report.encode();
            prop_assert_eq!(HostReport::decode(&bytes).unwrap(), report);
            prop_assert!(HostReport::decode(&bytes[..bytes.len() - 1]).is_err());
            prop_assert!(HostReport::decode(&[&bytes[..], &[0]].concat()).is_err());
            let _any = (HostRequest::decode(&noise), HostReport::decode(&noise));
        }
    }

    /// Goal: a long sentence is cut off between characters. Method: one of characters of two bytes.
    #[test]
    fn long_sentences_are_cut() {
        let why = "ä".repeat(WHY_BYTES_MAX);
        let report = HostReport::NotStarted { task: "a".to_owned(), why, is_busy: false };
        let bytes = report.encode();
        let HostReport::NotStarted { why, .. } = HostReport::decode(&bytes).unwrap() else {
            panic!("another message");
        };
        assert_eq!(why.len(), WHY_BYTES_MAX);
    }
}
