//! Offers made from workers' free resources: one open offer per worker, declines that hold resources back for a time,
//! suppress and revive.
//!
//! It is independent of connections and processes: cluster managers whose workers are known by name build on it. In
//! offers, a worker is called an agent.

mod offers;
mod worker;

pub(crate) use offers::WorkerOffers;
pub(crate) use worker::{CpuMemory, WorkerSpec};
