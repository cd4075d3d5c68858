//! Tests of the whole kernel through its public API: against a sequential reference model, with threads, with its
//! memory counted, with bad input, and by example.
//!
//! | module | question |
//! |---|---|
//! | [`algebra`] | do the taken pieces and the rest add up to exactly what was offered? |
//! | [`behaviour`] | does it do what its documentation says, sentence by sentence? |
//! | [`state_machine`] | does any [`history`] of events make it differ from [`reference`]? |
//! | [`batched_updates`] | does a batch of updates have the effect of its updates one by one? |
//! | [`spark`] | what would Spark's own backend answer? |
//! | [`tasks`] | are picked tasks of unequal sizes placed, left out and freed as naive books say? |
//! | [`hosts`] | are hosts for tasks added, joined, ended and lost as the books say? |
//! | [`queues`] | do maxima and guarantees hold, and is what is booked in queues released once? |
//! | [`threads`] | do its guarantees hold while threads race? |
//! | [`linearizability`] | are the answers of concurrent calls those of some sequential order? |
//! | [`memory`] | what does it allocate, when, and is it freed? |
//! | [`bad_input`] | does any offer make it panic, over-commit or hang? |
//!
//! The binary counts allocations (the crate `allocation-counter` brings the allocator).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod algebra;
mod bad_input;
mod batched_updates;
mod behaviour;
mod history;
mod hosts;
mod linearizability;
mod memory;
#[path = "../support/placement/mod.rs"]
mod placement;
mod queues;
mod reference;
mod spark;
mod state_machine;
mod tasks;
mod threads;
mod world;
