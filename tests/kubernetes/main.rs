//! The cluster manager for Kubernetes against a fake API server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests panic when they fail"
)]

#[path = "../support/eventually.rs"]
mod eventually;
mod fake;
mod framework;

mod child;
mod creation;
mod ends;
mod engine;
mod figures;
mod leases;
#[cfg(feature = "cli")]
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod program;
mod real;
mod run;
mod runs;
mod watching;
