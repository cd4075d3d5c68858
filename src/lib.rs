//! Offermill is a scheduler kernel that is linked into a framework. Resource offers go in, executor placements and
//! declines come out; status updates go in, freed capacity and cluster calls come out.
//!
//! It does what Spark's coarse-grained Mesos backend did: offers are matched against a constraint, executors placed
//! round robin, cores, executors and GPUs capped, failing agents excluded, and everything is drained within a timeout
//! at the end. But from any number of threads at once, without a lock on the offer path.
//!
//! # How an offer becomes a running executor
//!
//! ```text
//!   cluster manager          engine (threads)                 kernel (no threads, no clock, no I/O)
//! ┌──────────────┐ events ┌───────────────┐ &[Offer], now ┌────────────┐ plan ┌───────────┐
//! │ local        │ ─────► │ bounded intake│ ────────────► │ constraint │ ───► │ admission │ one CAS
//! │ (yours)      │        │ N handlers    │               │ placement  │      │ (one word)│ a batch
//! │              │ ◄───── │ timers        │ ◄──────────── │  pure plan │ ◄─── └───────────┘
//! └──────────────┘ calls  └───────────────┘   decisions   └────────────┘    agents · executors
//! ```
//!
//! Each layer imports only what stands before it here:
//! 1. [`Offer`], [`StatusUpdate`], [`resources`], [`ExecutorId`]: plain data, integer units.
//! 2. [`constraint`]: parsed once, matched many times, total.
//! 3. [`Kernel`]: the heart; only it has memory that threads share.
//! 4. [`launch`]: what an executor is started with.
//! 5. [`engine`]: threads around the kernel, and the seam to clusters.
//! 6. [`cluster`]: cluster managers, each behind a feature.
//! 7. The command line, `offermill`, behind the feature `cli`.
//!
//! A framework with threads and transport of its own uses 1 to 4 and never meets the rest. Nothing is global: many
//! kernels live side by side.
//!
//! # Example
//!
//! A framework of one's own that feeds offers from four threads (`examples/embed.rs`):
//!
//! ```
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! # What is guaranteed, and how each is checked
//!
//! | guarantee | checked by |
//! |---|---|
//! | Each offer is answered exactly once | state machine against the reference model (`tests/kernel`) |
//! | The core cap and the executor limit are never exceeded, not for an instant | loom (`loom-tests/admission.rs`), observer thread in `tests/kernel/threads.rs` |
//! | After `close`, `set_executor_limit` or `reconfigure` has returned, nothing is placed under the older state | loom (`loom-tests/admission.rs`) |
//! | Resources are freed exactly once, whichever of several reports comes first | loom (`loom-tests/executors.rs`), reference model |
//! | After an exclusion takes effect nothing is placed on the agent; a late offer meets no stranger's entry | loom (`loom-tests/agents.rs`) |
//! | A drain's wake-up is not lost; every executor that lived at the close is reported | loom (`loom-tests/drain.rs`), `tests/kernel/threads.rs` |
//! | One suppress at the cap, one revive when there is room, none lost | loom (`loom-tests/demand.rs`), unit tests |
//! | What an executor takes is cut exactly from what is offered, role and reservation kept | property test (`src/kernel/cutting.rs`), naive packer in `tests/kernel` |
//! | No input makes the kernel or the constraint parser panic | fuzzing (`fuzz/`), property tests |
//! | No allocation on the offer path in the steady state; memory follows the agents and executors that are there | counting allocator (`tests/kernel/memory.rs`) |
//!
//! **Lock-free** are: [`Handler::resource_offers`] for agents that the handler has met, and
//! [`Kernel::status_update`] except for failures and for [plain ids](IdScheme::plain). First sights of agents,
//! failures, reconfiguration, snapshots' agent names and reports take short locks that no offer path of another thread
//! waits for, except another first sight in the same shard of the map.
//!
//! **Not checked**: the orderings inside `arc-swap` and `dashmap`, which loom can't see (the protocols don't rest on
//! them: what a launch depends on is in words of our own); timeouts under loom, which knows no time; and weak memory
//! beyond what loom explores (it doesn't explore load buffering).
//!
//! There is no unsafe code in this crate (`forbid`).
//!
//! # Features
//!
//! * `local`: the embedded cluster, executors as child processes of this machine. Unix.
//! * `cli`: the command line. Nobody who links the library needs it.
//!
//! The default has neither, and brings no async runtime, no HTTP and no allocator. (Hosts that want mimalloc set it
//! themselves; the figures are measured with it.)

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod cluster;
pub mod config;
pub mod constraint;
pub mod engine;
mod error;
mod ids;
mod kernel;
pub mod launch;
pub mod limits;
mod offer;
pub mod resources;
mod status;
mod sync;
mod time;

#[cfg(all(test, loom))]
#[path = "../loom-tests/mod.rs"]
mod loom_tests;

pub use config::{Config, ConfigBuilder};
pub use constraint::Constraint;
pub use error::Error;
pub use ids::{ExecutorId, IdScheme};
pub use kernel::*;
pub use offer::{
    Attribute, AttributeValue, DEFAULT_ROLE, Offer, Reservation, Resource, ResourceKind, Value,
};
pub use status::{Fate, StatusUpdate, TaskState, UpdateReason};
pub use time::Timestamp;
