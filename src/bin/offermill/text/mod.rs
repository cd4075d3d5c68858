//! Text output: formatting of numbers and durations, columns, wall-clock times, and a non-blocking writer.

pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod format;
pub(crate) mod stdout;
