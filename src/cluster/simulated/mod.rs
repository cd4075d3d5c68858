//! A simulated cluster: the kernel and the engine's own protocol, unmodified, in virtual time and with faults.
//!
//! ```text
//!            virtual time, one queue, one seed
//!  ┌───────────────────────────────────────────────────────┐
//!  │ agents ◄──► master ◄── network (faults) ──► framework │     framework = offer queue, offer handlers, controller, kernel:
//!  └───────────────────────────────────────────────────────┘     what `offermill run` runs, without its threads
//!        what was done ────────► judge ◄──────── what was decided
//! ```
//!
//! One [`Scenario`] gives one run, bit for bit: nothing in it depends on a clock, a thread, an address or the order of
//! a hash table. The master's behaviour follows Mesos'; `cluster/mod.rs` says where each rule comes from.
//!
//! **Safety** is judged after each step: see `judge`. **Liveness** is demanded at the end: when faults are over, the
//! executors that are wanted must run wherever there is room for them, and the kernel's books must agree with the
//! cluster.

mod agenda;
mod checker;
mod cluster;
mod corners;
mod faults;
mod framework;
mod handlers;
mod network;
mod offer_buffer;
mod recorder;
mod recovery;
mod report;
mod rng;
mod scenario;
mod shrink;
mod simulation;
mod wire;

pub use report::{Drained, Latencies, Mark, Report, Sample};
pub use scenario::{Fault, FaultKind, Scenario, Severity};
pub use shrink::shorten;
pub use simulation::{Broken, Checks, Progress, Simulation, Stage};
