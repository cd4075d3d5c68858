//! From status updates, losses and time to freed capacity; executors of a former run; the drain.

pub(crate) mod adoption;
pub(crate) mod doubt;
pub(crate) mod drain;
pub(crate) mod expiry;
pub(crate) mod limit;
pub(crate) mod release_batch;
pub(crate) mod updates;
