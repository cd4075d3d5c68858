//! Every word that threads share. Each module has a table of the threads that write and read its words, and the
//! orderings.

pub(crate) mod absence_clock;
pub(crate) mod admission;
pub(crate) mod adopted;
pub(crate) mod agent;
pub(crate) mod agent_binding;
pub(crate) mod agent_hint;
pub(crate) mod agent_key;
pub(crate) mod agent_view;
pub(crate) mod agents;
pub(crate) mod budget;
pub(crate) mod claim_returns;
pub(crate) mod counters;
pub(crate) mod demand;
pub(crate) mod drain;
pub(crate) mod executor_state;
pub(crate) mod executors;
pub(crate) mod host_state;
pub(crate) mod inline_id;
pub(crate) mod lazy;
pub(crate) mod locality;
pub(crate) mod near_miss;
pub(crate) mod numbers;
pub(crate) mod offer_watchdog;
pub(crate) mod offered;
pub(crate) mod offered_amounts;
pub(crate) mod offered_details;
pub(crate) mod offered_numbers;
pub(crate) mod policy;
pub(crate) mod queues;
pub(crate) mod quota;
pub(crate) mod seqlock;
pub(crate) mod slab;
pub(crate) mod subscription;
pub(crate) mod tags;
pub(crate) mod target;
