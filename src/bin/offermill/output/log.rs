//! The log of a master and of a worker: lines on standard error, each with its time and its level.
//!
//! ```text
//! 2026-11-25T08:14:03.112Z INFO worker 26b92b18-1-W0 on h1 is registered with 8 cores, 31023 MiB and 0 executors
//! ```

use std::fmt;
use std::time::SystemTime;

use clap::ValueEnum;

use crate::output::messages::write_remark;
use crate::text::clock::rfc3339;
use crate::text::styled::StyledText;

/// How much is logged: this level and those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    /// Nothing.
    Off,
    /// Why the program can't go on.
    Error,
    /// What is lost or refused.
    Warn,
    /// Who comes and goes.
    Info,
    /// Executors.
    Debug,
}

impl LogLevel {
    const ALL: [(&str, LogLevel); 6] = [
        ("off", LogLevel::Off),
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
        ("trace", LogLevel::Debug),
    ];

    /// The level of the flag; without one that of `RUST_LOG`; without that `info`.
    pub(crate) fn chosen(flag: Option<LogLevel>) -> LogLevel {
        let variable = || std::env::var("RUST_LOG").ok();
        flag.or_else(|| variable().and_then(|text| of_variable(&text))).unwrap_or(LogLevel::Info)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogLevel::Off => "OFF",
            LogLevel::Error => "ERROR",
            LogLevel::Warn => "WARN",
            LogLevel::Info => "INFO",
            LogLevel::Debug => "DEBUG",
        })
    }
}

/// The level in a value of `RUST_LOG`: `LEVEL`, or `offermill=LEVEL`, which takes precedence, with commas between.
/// Directives about other programs mean nothing here.
fn of_variable(text: &str) -> Option<LogLevel> {
    let level = |name: &str| {
        let found = LogLevel::ALL.iter().find(|(it, _)| it.eq_ignore_ascii_case(name.trim()));
        found.map(|(_, level)| *level)
    };
    let mut own = text.split(',').filter_map(|directive| {
        let (target, name) = directive.split_once('=')?;
        (target.trim() == "offermill").then(|| level(name)).flatten()
    });
    own.next_back().or_else(|| text.split(',').filter_map(level).next_back())
}

/// Writes lines of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    level: LogLevel,
}

impl Log {
    /// A log of this level.
    pub(crate) fn new(level: LogLevel) -> Log {
        Log { level }
    }

    /// Writes a line, unless its level is below that of the log. Control characters are escaped. After
    /// [`write_remarks_aside`](crate::output::write_remarks_aside) it doesn't wait until the line is read.
    pub(crate) fn write(self, level: LogLevel, text: &str) {
        if level <= self.level {
            let time = rfc3339(SystemTime::now());
            write_remark(&format!("{time} {level} {}\n", StyledText::plain(text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: `RUST_LOG` means what it means to other programs in Rust. Method: values with one directive and several.
    #[test]
    fn the_variable_is_read() {
        for (text, expected) in [
            ("debug", Some(LogLevel::Debug)),
            ("WARN", Some(LogLevel::Warn)),
            ("hyper=debug", None),
            ("hyper=debug,error", Some(LogLevel::Error)),
            ("offermill=debug,error", Some(LogLevel::Debug)),
            ("info, offermill=off", Some(LogLevel::Off)),
            ("", None),
            ("loud", None),
        ] {
            assert_eq!(of_variable(text), expected, "{text}");
        }
    }
}
