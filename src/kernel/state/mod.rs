//! Every word that threads share, each with a table of which threads write and read it, in which order.

pub(crate) mod absence_clock;
pub(crate) mod admission;
pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod budget;
pub(crate) mod demand;
pub(crate) mod executors;
pub(crate) mod offer_watchdog;
pub(crate) mod policy;
pub(crate) mod seqlock;
pub(crate) mod slab;
pub(crate) mod subscription;
