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
//! │ local        │ ─────► │ bounded offer queue│ ────────────► │ constraint │ ───► │ admission │ one CAS
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
//! | **S** shuttle | random and adversarial schedules of the whole kernel with many threads, maps included, and of the engine around it; no weak memory | `tests/shuttle/`, `.ci/shuttle` |
//! | **C** counting | the real kernel on words that note each write: how many lines a batch and an update write, to the last one | `tests/counting/`, `.ci/counting` |
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
//! | 16 | Once the update that excludes an agent has been applied nothing is placed there until the exclusion ends; a failure counts once | L `agents`; P, F, D |
//! | 17 | Nothing is placed on an agent that doesn't meet the constraint; an answer from memory is the one that asking again would give | P, F against a naive matcher; D |
//! | 18 | Round robin: of agents that are able alike none gets two executors more than another | P, D |
//! | 19 | An executor whose launch has an unknown outcome keeps its resources until the cluster has said what became of it | D; M |
//! | 20 | No room: one suppress. Room again: one revive, none lost, no storm; one that is lost on its way is repeated | L `demand`; S; P, D |
//! | 21 | A snapshot that says it is exact is the kernel at one instant; numbers grow | L `snapshot`; S; T; D |
//! | 22 | No batch waits for a snapshot, nor a snapshot for a batch, except at the first sight of an agent, whose name has a lock | by construction: otherwise the offer path takes no lock that a snapshot takes |
//! | 23 | After a close nothing is placed; a drain ends in time and names who is left; callers agree | L `drain`, `commit`; S; T; D |
//! | 24 | The end of the last executor wakes who waits for it | L `drain` |
//! | 25 | Memory follows the most agents and executors that were there at a time; none is allocated for offers in the steady state | D; counting allocator and a million agents in `tests/kernel/memory.rs` |
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
//! | 37 | An executor is given up or forgotten for its present absence alone, by the clock of that absence, however often it comes and goes | L `ageing`; S `flapping`; P, D |
//! | 38 | Nothing is placed under an older policy once a setter has returned, however often the policy changed during the batch | L `policy/launch-versions`, `commit/retry-limits`; S `policy/many-changes`; P |
//! | 39 | An executor that finishes under [`LimitRule::CountDown`] is not replaced, and no limit that is set is lost | L `policy/count-set`, `policy/count-count`, `policy/count-launch`; P |
//! | 40 | Of two adoptions one is refused; an adopted executor is never left out because its agent is being forgotten, and a close beside the adoption names it as the cluster does | L `adoption`; S `agents/adopt-sweep`; P |
//! | 41 | Once [`Kernel::agent_lost`] has returned, nothing is placed for 10 s on the agent, if the kernel knows it, and each executor there is in doubt. A forgotten agent keeps no offer from being used | L `agents/lost-launch`, `agents/sweep-offer` |
//! | 42 | The engine asks about no executor, and has none end, before the call that launches it was made; no other launch of the batch holds that up | D; tests of the engine |
//! | 43 | A kill that was lost with a subscription is made again with the next | tests of the engine; M |
//! | 44 | An engine's shutdown returns within its timeout and slack whatever hangs; its kills wait for no update; no call is begun after the manager's stop. What waits in the engine is bounded by what it holds, its end included, but for kills | S `engine`; `tests/engine` |
//! | 45 | A panic in a call, a launcher or an observer is told, and costs a batch at most or closes the kernel | S `engine/observer`; `tests/engine` |
//!
//! # Which call waits for which
//!
//! A call is lock-free here if a thread that is stopped anywhere in it keeps no other from completing such a call.
//! [`Handler::resource_offers`], [`Kernel::status_update`] and [`Kernel::status_updates`] are, with these exceptions:
//!
//! | call | waits for | when | shown by |
//! |---|---|---|---|
//! | an offer, first sight | first sights and forgetting of agents in the same shard of a map; the name's lock of the agent's cell. It allocates | the first offer of an agent to this handler, and the first after the agent was forgotten | C `an_agent_is_met_once`; L `agents/meet-meet`, `agents/sweep-offer`; S `maps/meet-forget` |
//! | a launch, growth | a launch that allocates the same segment of a table, of 4 MiB at most | no cell is free, and the table grew by a quarter of its last segment since the last [`Kernel::tick`] | C `growing_writes_one_word_more_and_a_stack_less`; L `slab/grow-claim`; P `a_table_that_looks_ahead_is_never_short`; S `maps/growth` |
//! | a launch or an update, [plain ids](IdScheme::plain) | launches and updates in the same shard of a map | always | C `plain_ids_cost_a_map`, `options_cost_what_is_said_here`; S `maps/plain-ids` |
//! | an update, failure | other failures, suspicions and reports of the same agent | the agent is to blame | C `a_failure_writes_its_agents_line`; L `agents/fail-fail` |
//! | an update, exclusion | as a call that changes the limit does, see below | the failure is one too many for the agent | L `agents/exclude-launch` |
//! | an update, return | calls that change limit or settings, which may wait themselves, see below | the executor was given up and is heard of again | L `policy/return-versions` |
//! | an update, last end | threads in [`Kernel::drain`], which hold the lock to look at one word | the kernel is closed and no other executor is counted | L `drain/end-wait`, `drain/deadline` |
//! | an update, [count-down](LimitRule::CountDown) | as a call that changes the limit does, see below | the executor finished | L `policy/count-set`, `policy/count-launch` |
//!
//! All other calls may take locks, and say so. None is one that a call above takes but in these cases, so nobody who
//! answers offers otherwise waits for a poll, a tick, a snapshot, an explanation, a change of settings or a drain (C
//! `timers_and_reports_write_no_line_that_batches_read` and `declines_write_no_shared_line`: a lock is a write).
//!
//! | call | waits for |
//! |---|---|
//! | [`Kernel::set_executor_limit`], [`Kernel::reconfigure`], [`Kernel::set_locality`], [`Kernel::request_executors`]; [`Kernel::agent_lost`], if executors are on the agent | each other; updates that exclude an agent; a handler that is made or dropped; adoptions and returns. If there are more than 128 handlers, and batches in progress and the first 128 handlers together hold all 256 versions of the policy: one of these batches (L `policy/launch-crowd`) |
//! | [`Kernel::poll_demand`], [`Kernel::registered`] | each other (L `subscription/poll-register`); a poll that finds room also for the lock of the list of handlers' counters |
//! | [`Kernel::tick`] | other ticks and first sights in a shard of the map, when it forgets an agent; nothing when it gives up executors (L `ageing/tick-tick`) |
//! | [`Kernel::snapshot`], [`Kernel::explain`], [`Kernel::offer_counts`] | the name's lock of an agent's cell, the lock of the list of handlers' counters |
//! | [`Kernel::adopt`] | nobody at all for the right to adopt: one of two gets an error at once (L `adoption/adopt-adopt`); then as a return |
//! | [`Kernel::drain`] | the last end, or its timeout (L `drain`) |
//!
//! **Not checked**:
//! * The inside of `arc-swap`, `dashmap` and `std`: loom and shuttle see stand-ins of our own that promise no more than
//!   their documentation does (`src/sync/`). ThreadSanitizer runs the real ones, as far as they come in 60 rounds.
//! * Weak memory in scenes of more than a few threads, and load buffering, which loom doesn't explore.
//! * How long things take: under loom and shuttle timeouts end when the tool decides. Nothing is claimed of
//!   wait-freedom.
//! * An executor whose state changes and changes back (out of sight and returned) between the two looks of a snapshot;
//!   at the instant of the picture it may have been out of sight.
//! * The engine's timeouts and its journal under shuttle: its offer queue, inbox, gates and end are played there, in the
//!   order of events alone. What takes real time is in `tests/engine`; the simulator runs the protocol on one thread.
//! * The wrap of small counters whose round is argued in the module that has them: 256 absences of one executor, or 256
//!   exclusions and suspicions of one agent, between two steps of one thread.
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
#[cfg(feature = "mesos")]
#[doc(hidden)]
pub mod mesos_v1;
mod offer;
pub mod resources;
#[cfg(feature = "spark")]
pub mod spark;
mod status;
mod sync;
mod time;

#[cfg(all(test, counting))]
#[path = "../tests/counting/mod.rs"]
mod counting_tests;
#[cfg(all(test, loom))]
#[path = "../loom-tests/mod.rs"]
mod loom_tests;

pub use config::{Config, ConfigBuilder};
pub use constraint::Constraint;
pub use error::Error;
pub use ids::{ExecutorId, IdScheme};
pub use kernel::*;
pub use offer::attributes;
pub use offer::{
    Attribute, AttributeValue, DEFAULT_ROLE, Label, Offer, Reservation, ReservationKind,
    Reservations, ReservedBy, Resource, ResourceKind, Revocability, Value,
};
pub use status::{Fate, StatusUpdate, TaskState, UpdateReason};
pub use time::Timestamp;
