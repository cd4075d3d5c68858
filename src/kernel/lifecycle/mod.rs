//! What happens to executors after placement: status updates, losses, timeouts, kills, adoption, drain.

pub(crate) mod adoption;
pub(crate) mod agent_ids;
pub(crate) mod binding;
pub(crate) mod doubt;
pub(crate) mod drain;
pub(crate) mod expiry;
pub(crate) mod limit;
pub(crate) mod outcome;
pub(crate) mod polling;
pub(crate) mod queues;
pub(crate) mod release;
pub(crate) mod settings;
pub(crate) mod task_tag;
pub(crate) mod updater;
pub(crate) mod updates;
