//! The simulator: the kernel and the engine's protocol, unmodified, on a simulated cluster in virtual time, with
//! faults.
//!
//! ```text
//!            virtual time, one event queue, one seed
//!  ┌───────────────────────────────────────────────────────┐
//!  │ agents ◄──► master ◄── network (faults) ──► framework │
//!  └───────────────────────────────────────────────────────┘
//!    framework = offer queue, offer handlers, controller and kernel: `offermill run` without its threads
//!        what was done ────────► checker ◄──────── what was decided
//! ```
//!
//! One [`Scenario`] gives one run, bit for bit: nothing in it depends on a clock, a thread, an address or the order of
//! a hash table. The master behaves as Mesos' does; `cluster/mod.rs` names the source of each rule.
//!
//! **Safety** is checked after each step; see `checker/`. **Liveness** is checked at the end: once faults are over, the
//! wanted executors must run wherever there are free resources for them, and the kernel's executors must be the
//! cluster's.

mod checker;
mod cluster;
mod corners;
mod event_queue;
mod framework;
mod network;
mod offer_buffer;
mod queues;
mod recorder;
mod report;
mod rng;
mod scenario;
mod settings;
mod shrink;
mod simulation;
mod wire;
mod world;

pub use report::{Buckets, DrainSummary, Latencies, Mark, Report, Sample};
pub use scenario::{Fault, FaultKind, Scenario, Severity};
pub use shrink::shorten;
pub use simulation::{Checks, InvariantViolation, Progress, Simulation, Stage};
