//! The names of signals in the messages of Mesos' executors.

/// The names that Mesos' executors give to signals, which are those of Linux' `strsignal`.
pub(crate) const SIGNALS: [(&str, i32); 17] = [
    ("Hangup", 1),
    ("Interrupt", 2),
    ("Quit", 3),
    ("Illegal instruction", 4),
    ("Trace/breakpoint trap", 5),
    ("Aborted", 6),
    ("Bus error", 7),
    ("Floating point exception", 8),
    ("Killed", 9),
    ("User defined signal 1", 10),
    ("Segmentation fault", 11),
    ("User defined signal 2", 12),
    ("Broken pipe", 13),
    ("Alarm clock", 14),
    ("Terminated", 15),
    ("CPU time limit exceeded", 24),
    ("File size limit exceeded", 25),
];
