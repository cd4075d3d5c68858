//! Text output: formatting of numbers and durations, printable text, columns, wall-clock times, and a non-blocking
//! writer.

pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod format;
pub(crate) mod stdout;
pub(crate) mod styled;
