//! The kernel as a whole, from outside: against a sequential reference model, under threads, by its memory, with
//! bad input, and by example.
//!
//! | module | question |
//! |---|---|
//! | [`algebra`] | are cut pieces and what is left exactly what was offered? |
//! | [`behaviour`] | does it do what its documentation says, sentence by sentence? |
//! | [`state_machine`] | does any [`history`] of events take it away from [`reference`]? |
//! | [`batched_updates`] | is a batch of updates the same as its updates one by one? |
//! | [`spark`] | what would Spark's own backend answer? |
//! | [`threads`] | do its promises hold while threads race? |
//! | [`linearizability`] | are the answers of concurrent calls those of some order of them? |
//! | [`memory`] | what does it allocate, when, and does it give it back? |
//! | [`bad_input`] | does any offer make it panic, over-commit or hang? |
//!
//! The binary counts allocations (the crate `allocation-counter` brings the allocator).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod algebra;
mod bad_input;
mod batched_updates;
mod behaviour;
mod history;
mod linearizability;
mod memory;
mod reference;
mod spark;
mod state_machine;
#[path = "../support/algebra/mod.rs"]
mod support;
mod threads;
mod world;
