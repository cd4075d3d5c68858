//! Texts and where they go: turns of phrase, columns, times of day, a writer that holds nobody up.

pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod format;
pub(crate) mod stdout;
