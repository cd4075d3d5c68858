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
//! │ mesos        │        │ N handlers    │               │ placement  │      │ (one word)│ a batch
//! │ (yours)      │ ◄───── │ timers        │ ◄──────────── │  pure plan │ ◄─── └───────────┘
//! └──────────────┘ calls  └───────────────┘   decisions   └────────────┘    agents · executors
//! ```
//!
//! What isn't used is declined with a reason in numbers, and [`Kernel::explain`] says why executors are still waited
//! for: which cap is reached, whether offers come, and for each reason the nearest miss ("agent S7: memory 3584 of 4096
//! MiB"). It reads while handlers go on, and nothing is allocated for it on the offer path.
//!
//! Each layer imports only what stands before it here:
//! 1. [`Offer`], [`StatusUpdate`], [`resources`], [`ExecutorId`]: plain data, integer units.
//! 2. [`constraint`]: parsed once, matched many times, total.
//! 3. [`Kernel`]: the heart; only it has memory that threads share.
//! 4. [`launch`]: what an executor is started with.
//! 5. [`engine`]: threads around the kernel, and the seam to clusters.
//! 6. [`cluster`]: cluster managers, each behind a feature.
//! 7. `spark`: what Spark's other services are told, behind a feature.
//! 8. The command line, `offermill`, behind the feature `cli`.
//!
//! Beside them stands [`allocation`]: how many executors a load of tasks needs, and which of the idle ones may go.
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
//! | tool | what it sees | where |
//! |---|---|---|
//! | **L** loom | every interleaving and every reordering that C11 allows, of two or three threads on one or two words; each model has a known mistake in the real code that it must catch | `loom-tests/`, `.ci/loom` |
//! | **S** shuttle | random and adversarial schedules of the whole kernel with many threads, maps included; no weak memory | `tests/shuttle/`, `.ci/shuttle` |
//! | **C** counting | the real kernel on words that note each write: how many lines a batch and an update write, to the last one | `counting-tests/`, `.ci/counting` |
//! | **T** threads | real threads: the books at standstills, short histories judged for linearizability, ThreadSanitizer | `tests/kernel/`, `tests/sanitizer/`, `.ci/sanitizer` |
//! | **P** properties | random inputs against a reference: the whole kernel as a state machine against a sequential model, and parts against naive ones | `tests/kernel/`, unit tests |
//! | **D** simulator | the kernel and the engine's protocol on a simulated cluster with faults, judged after each step | `tests/simulated/`, `offermill simulate` |
//! | **F** fuzzing | inputs that grow towards new code: constraints, attributes, resources, histories of events through the whole kernel, and what Mesos sends | `fuzz/`, `.ci/fuzz` |
//! | **A** asking | Spark itself: recorded answers of Spark 3.5's own backend for Mesos, its answers to scenarios that each run makes up, its executors and its shuffle service | `tests/cli/replaying.rs`, `tests/spark/`, `.ci/spark` |
//! | **M** Mesos | a real master and real agents, killed, stopped and started at will; a fake master for faults that the real one can't be made to show; recorded sessions | `tests/mesos/`, `.ci/mesos` |
//!
//! `.ci/planted` plants known mistakes in the real code and demands that each is caught by the model, scene or test
//! that it names. Each loom model is named so or has a mutant, and each shuttle scene is named so.
//!
//! | | guarantee | checked by |
//! |---|---|---|
//! | 1 | The books add up: what the admission word counts is what agents and executors hold | P, F, D after each step; T at standstills |
//! | 2 | The core cap is never exceeded, not for an instant, by anything that is placed or readmitted | L `admission`, `updates`; S; T, D |
//! | 3 | No counter underflows or wraps | P, F, D, with debug assertions |
//! | 4 | What executors take is within what their offers have, to the thousandth, role and reservation kept; ports once. What is used and what is left are what was offered; reserved first; nothing revocable, shared or of others' roles unless asked for, and nothing revocable mixed with the rest | P, F against a naive kernel; D |
//! | 5 | What the cluster is told to give an executor is what the books count for it | D; P |
//! | 6 | Each offer is answered once; a rescinded one that still waited, never | D; P, F |
//! | 7 | No answer bears another subscription's number | D; M |
//! | 8 | One accept names one agent and one role, and each offer once | D; M, where a mistake is TASK_DROPPED |
//! | 9 | No offer waits long, and none is missing while executors are wanted and agents have room | D, when faults are over |
//! | 10 | Executor ids are never used twice and are ones that Mesos takes | P; D; M |
//! | 11 | An executor's state follows its diagram; an end is final | L `executors`; P, D |
//! | 12 | Resources are freed once, whichever of several reports, losses, timeouts and the drain comes first | L `executors`, `updates`; S; T; P, F, D |
//! | 13 | An update applied twice is an update applied once; it is acknowledged after it was applied, once a copy, and only if it asks for it | D; P; M |
//! | 14 | Reports about executors and agents that nobody knows change nothing | P, F, D |
//! | 15 | The executor limit is never exceeded; lowering it kills nobody; once it is set nothing is placed beyond it | L `admission`, `policy`; S; T; P, F, D |
//! | 16 | Once an exclusion has taken effect nothing is placed on the agent until it ends; a failure counts once | L `agents`; P, F, D |
//! | 17 | Nothing is placed on an agent that doesn't meet the constraint; an answer from memory is the one that asking again would give | P, F against a naive matcher; D |
//! | 18 | Round robin: of agents that are able alike none gets two executors more than another | P, D |
//! | 19 | An executor whose launch has an unknown outcome keeps its resources until the cluster has said what became of it | D; M |
//! | 20 | No room: one suppress. Room again: one revive, none lost, no storm; one that is lost on its way is repeated | L `demand`; S; P, D |
//! | 21 | A snapshot that says it is exact is the kernel at one instant; numbers grow | L `snapshot`; S; T; D |
//! | 22 | Nobody who answers offers waits for a snapshot, and a snapshot waits for nobody who does | by construction: the offer path has no lock that a snapshot takes |
//! | 23 | After a close nothing is placed; a drain ends in time and names who is left; callers agree | L `drain`, `commit`; S; T; D |
//! | 24 | The end of the last executor wakes who waits for it | L `drain` |
//! | 25 | Memory follows the agents and executors that are there; none is allocated for offers in the steady state | D; counting allocator and a million agents in `tests/kernel/memory.rs` |
//! | 26 | The constraint parser is total, linear and bounded, without recursion; it reads what the grammars admit and nothing else; what it prints it reads back | P, F against a naive reader |
//! | 27 | What a stream's records say doesn't depend on the pieces in which it comes; memory follows what came, up to the longest record allowed; after a mistake nothing more is read. Offers that are read in place say what prost reads | P, F against a naive reader and prost |
//! | 28 | No secret is shown by a `Debug`, an error, a notice, an event or the argument list | M with a canary |
//! | 29 | When faults are over, the kernel's executors are the cluster's | D; M after ten minutes of random faults |
//! | 30 | The nearest miss that an explanation names was one, with these numbers, under the settings in force | L `seqlock`; P |
//! | 31 | With [`Conduct::SPARK_3_5`](config::Conduct) batches are answered as Spark 3.5 answers them, one after the other; once hosts are wanted nothing starts elsewhere before the wait is over | A; P against Spark's loop told anew; L `locality` |
//! | 32 | Spark's executors are told what Spark's backend told them, and no setting breaks out of a command | A; P through a real shell |
//! | 33 | A run that keeps a journal is decided again as it was, to the byte, from the journal alone | P; runs on local agents, on Mesos and with real Spark executors |
//! | 34 | Dynamic allocation keeps its bounds: nobody ends before their time, or below what limit and load need | P |
//! | 35 | A shuffle service that is down, slow or talks nonsense delays no placement, and is registered with when it is back | stand-ins in `tests/spark/`; A |
//! | 36 | Declines write no line that another handler reads or writes, but for the first at a cap after each call about demand, and an agent's line once a minute; a batch that launches writes the admission word once, unless others do meanwhile | C |
//!
//! **Lock-free** are: [`Handler::resource_offers`] for agents that the handler has met, [`Kernel::status_update`] and
//! [`Kernel::status_updates`] except for failures and for [plain ids](IdScheme::plain). First sights of agents,
//! failures, reconfiguration, snapshots' agent names and reports take short locks that no offer path of another thread
//! waits for, except another first sight in the same shard of the map.
//!
//! **Not checked**:
//! * The inside of `arc-swap`, `dashmap` and `std`: loom and shuttle see stand-ins of our own that promise no more than
//!   their documentation does (`src/sync/`). ThreadSanitizer runs the real ones, as far as they come in 60 rounds.
//! * Weak memory in scenes of more than a few threads, and load buffering, which loom doesn't explore.
//! * How long things take: under loom and shuttle timeouts end when the tool decides. Nothing is claimed of
//!   wait-freedom.
//! * An executor whose state changes and changes back (out of sight and returned) between the two looks of a snapshot;
//!   at the instant of the picture it may have been out of sight.
//! * The engine's threads and its intake, except by tests of the usual kind; the simulator runs their protocol on one
//!   thread.
//! * Mesos of other releases than 1.11, with ZooKeeper, TLS or container images: the Mesos of the tests has none. The
//!   simulated master does what Mesos' sources and recorded sessions say, as far as
//!   `src/cluster/simulated/cluster/` says so.
//! * Advisories about dependencies: `cargo audit` has to be run where there is a network.
//!
//! There is no unsafe code in this crate (`forbid`).
//!
//! # Features
//!
//! * `regex`: regular expressions in constraints.
//! * `simulated`: the simulated cluster. No dependencies.
//! * `mesos`: a Mesos cluster over its v1 scheduler API. Brings tokio (one thread), hyper, rustls, prost and serde.
//! * `local`: the embedded cluster, executors as child processes of this machine. Unix.
//! * `spark`: registers with Spark's external shuffle services. No dependencies.
//! * `cli`: the command line. Nobody who links the library needs it.
//!
//! The default has none of them, and brings no async runtime, no HTTP and no allocator. (Hosts that want mimalloc set
//! it themselves; the figures are measured with it.)

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod allocation;
pub mod attributes;
#[cfg(any(feature = "mesos", feature = "spark"))]
mod backoff;
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
#[cfg(feature = "spark")]
pub mod spark;
mod status;
mod sync;
mod time;

#[cfg(all(test, counting))]
#[path = "../counting-tests/mod.rs"]
mod counting_tests;
#[cfg(all(test, loom))]
#[path = "../loom-tests/mod.rs"]
mod loom_tests;

pub use config::{Config, ConfigBuilder};
pub use constraint::Constraint;
pub use error::Error;
pub use ids::{ExecutorId, IdScheme};
pub use kernel::*;
pub use offer::{
    Attribute, AttributeValue, DEFAULT_ROLE, Label, Offer, Reservation, ReservationKind,
    Reservations, ReservedBy, Resource, ResourceKind, Standing, Value,
};
pub use status::{Fate, StatusUpdate, TaskState, UpdateReason};
pub use time::Timestamp;
