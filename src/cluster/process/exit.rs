//! Exit statuses of processes, and their descriptions.

use std::fmt;

use rustix::process::{Signal, WaitStatus};

#[cfg(feature = "mesos")]
use crate::mesos_v1::signals::SIGNALS;
use crate::status::ProcessExit;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It exited with this code.
    Code(i32),
    /// A signal with this number ended it.
    Signal(i32),
    /// Unknown, because another part of the program has collected the exit status.
    Unknown,
}

impl Exit {
    pub(crate) fn from_status(status: WaitStatus) -> Exit {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Unknown,
        }
    }

    /// The message of Mesos' own executors about this exit, which frameworks may parse.
    #[cfg(feature = "mesos")]
    pub(crate) fn as_mesos_says(self) -> String {
        match self {
            Exit::Code(code) => format!("Command exited with status {code}"),
            Exit::Signal(number) => {
                let known = SIGNALS.iter().find(|(_, known)| *known == number);
                let signal =
                    known.map_or_else(|| number.to_string(), |(name, _)| (*name).to_owned());
                format!("Command terminated with signal {signal}")
            }
            Exit::Unknown => self.to_string(),
        }
    }

    /// The exit for reports, if it is known.
    pub(crate) fn known(self) -> Option<ProcessExit> {
        match self {
            Exit::Code(code) => Some(ProcessExit::Code(code)),
            Exit::Signal(signal) => Some(ProcessExit::Signal(signal)),
            Exit::Unknown => None,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => match signal_name(signal) {
                Some(name) => write!(f, "killed by signal {signal} ({name})"),
                None => write!(f, "killed by signal {signal}"),
            },
            Exit::Unknown => f.write_str("ended, its exit status was collected elsewhere"),
        }
    }
}

/// Returns the name of a signal that ends processes.
fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [(Signal, &str); 18] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    NAMES.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: exit statuses are readable phrases. Method: each kind, and a signal without a name.
    #[test]
    fn exit_statuses_read_as_phrases() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal(9).to_string(), "killed by signal 9 (SIGKILL)");
        assert_eq!(Exit::Signal(99).to_string(), "killed by signal 99");
    }
}
