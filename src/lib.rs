//! Offermill is a scheduler kernel which is linked into a framework. Resource offers go in, executor placements and
//! declines come out; status updates go in, freed capacity and cluster calls come out.
//!
//! It does what Spark's coarse-grained Mesos backend did: it matches offers against a constraint, places executors
//! round robin, caps cores, executors and GPUs, excludes failing agents, and drains within a timeout on shutdown. It
//! does so from any number of threads at once, without a lock on the offer path.
//!
//! # How an offer becomes a running executor
//!
//! ```text
//!   cluster manager          engine (threads)                 kernel (no threads, no clock, no I/O)
//! ┌──────────────┐ events ┌───────────────┐ &[Offer], now ┌────────────┐ plan ┌───────────┐
//! │ local        │ ─────► │ offer queue   │ ────────────► │ constraint │ ───► │ admission │ one CAS
//! │ mesos        │        │ N handlers    │               │ placement  │      │ (one word)│ per batch
//! │ (yours)      │ ◄───── │ timers        │ ◄──────────── │  pure plan │ ◄─── └───────────┘
//! └──────────────┘ calls  └───────────────┘   decisions   └────────────┘    agents · executors
//! ```
//!
//! The way of an offer through the files of `src`, from the wire to the ACCEPT, in the order in which each is first
//! entered:
//!
//! 1. `cluster/mesos/subscription`, `mesos_v1/record_io`: the stream's bytes become records.
//! 2. `cluster/mesos/subscriber`, `event_decoder`, `mesos_v1/offers/split`: a record becomes an event. Offers stay
//!    encoded; where each lies in the record is noted. (With JSON they are decoded here.)
//! 3. `engine/state`: hands the event to its receiver.
//! 4. `engine/offer_queue`: offers wait here, bounded, until they are answered or rescinded.
//! 5. `engine/handler_thread`, `mesos_v1/offers/reader`: a handler takes a batch of offers, which borrow from the
//!    records and from an arena.
//! 6. `engine/offer_handler`, `recorded_kernel`: pass the batch to the kernel, and record it if there is a journal.
//! 7. `kernel/offers/handler`: `agent_cache`, `eligibility`, `candidates`, `locality` and `placement` plan; `commit`
//!    admits what was planned, or has it planned again; `carve` cuts the resources of each executor.
//!    Frameworks that place tasks themselves call `kernel/offers/tasks` instead: `propose` does what comes before the
//!    plan, `check` makes it of their picks, and the same `commit` admits it.
//! 8. `engine/handler_calls`, `gate`: make the ACCEPT call.
//! 9. `cluster/mesos/cluster`, `task`, `calls`, `state_writer`: build the message, and write the launch to the
//!    framework id file if there is one.
//! 10. `cluster/mesos/call_queue`, `call_sender`, `caller`: send it.
//!
//! If the cluster has a scheduler of its own that chooses the agents, as Kubernetes has, offers are permits that name
//! none ([`Offer::late`]). They go the same way, but rules about agents are left out in step 7.
//!
//! And of a status update, from the wire to freed resources:
//!
//! 1. `cluster/mesos/subscription`, `subscriber`, `event_decoder`, `status`: the stream's bytes become an update.
//! 2. `engine/state`, `inbox`: it waits for the control thread, bounded.
//! 3. `engine/control`, `controller`, `recorded_kernel`: pass it to the kernel. Before, `engine/late_binding` and
//!    `kernel/lifecycle/binding` bind an executor whose agent is named for the first time ([`Kernel::bind`]); one
//!    compare-exchange decides whether it was bound before it ended. If the agent doesn't take it, it is killed.
//! 4. `kernel/lifecycle/updates`: one compare-exchange on the executor's word; `release` returns the resources of
//!    the ended to the agent and to admission, and wakes a drain that waits for them.
//! 5. `engine/gate`, `cluster/mesos/cluster`, `call_queue`: acknowledge it. The next poll of the demand revives offers.
//!
//! An executor is found by its id without a lock: ids that [`IdScheme::unique`] makes contain the number of the
//! executor's cell, plain numbers lead to it through a table of pages (`kernel/state/numbers`), which are given back
//! when their executors have ended, and the names of adopted executors are in a map that is made once.
//!
//! Unused offers are declined, each with a reason in numbers. [`Kernel::explain`] reports why executors are still
//! missing: which cap is reached, whether offers arrive, the nearest miss per reason ("agent S7: memory 3584 of 4096
//! MiB"), and what no agent has ("no agent has 64 cores for executors, the largest has 16 (agent S7)"). It reads while
//! handlers run, and the offer path allocates nothing for it.
//!
//! Each layer imports only the layers before it in this list (`tests/tidy` checks it):
//! 1. [`Offer`], [`StatusUpdate`], [`resources`], [`ExecutorId`], [`foreign_text`]: plain data, integer units.
//! 2. [`constraint`]: parsed once, matched many times; every input has a result.
//! 3. [`config`]: all settings, checked when they are built.
//! 4. [`Kernel`]: all memory which threads share.
//! 5. [`allocation`]: how many executors a number of tasks needs, and which idle executors may end.
//! 6. [`launch`]: the command with which an executor starts.
//! 7. `spark`: clients of Spark's other services, behind a feature.
//! 8. [`engine`]: threads around the kernel, and the trait that cluster managers implement.
//! 9. [`cluster`]: cluster managers, each behind a feature.
//! 10. The command line, `offermill`, behind the feature `cli`.
//!
//! A framework with its own threads and transport uses 1 to 6. There is no global state: a process can have many
//! kernels.
//!
//! # Example
//!
//! A framework which feeds offers from four threads (`examples/embed.rs`):
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
//! | **C** counting | the real kernel on words that record each write: the exact number of cache lines which a batch and an update write | `tests/counting/`, `.ci/counting` |
//! | **T** threads | real threads: the accounts whenever all threads pause, short histories checked for linearizability, ThreadSanitizer | `tests/kernel/`, `tests/sanitizer/`, `.ci/sanitizer` |
//! | **P** properties | random inputs against a reference: the whole kernel as a state machine against a sequential model, and parts against naive ones | `tests/kernel/`, unit tests |
//! | **D** simulator | the kernel and the engine's protocol on a simulated cluster with faults, checked after each step | `tests/simulated/`, `offermill simulate` |
//! | **F** fuzzing | inputs guided by coverage: constraints, attributes, resources, histories of events through the whole kernel, and messages of Mesos | `fuzz/`, `.ci/fuzz` |
//! | **A** asking | Spark itself: recorded answers of Spark 3.5's own backend for Mesos, its answers to scenarios generated in each run, where its own master places executors, its executors and its shuffle service | `tests/cli/replaying.rs`, `tests/spark/`, `.ci/spark` |
//! | **M** Mesos | a real master and real agents which the tests kill, stop and start; a fake master for faults that the real one can't show; recorded sessions | `tests/mesos/`, `.ci/mesos` |
//!
//! `.ci/planted` inserts known mistakes into the real code; the model, scene or test which a mistake names must catch
//! it. Every shuttle scene is named by a mistake; every loom model is named by one or has a mutant.
//!
//! | | guarantee | checked by |
//! |---|---|---|
//! | 1 | The accounts agree: admission counts exactly the resources which agents and executors hold | P, F, D after each step; T whenever all threads pause |
//! | 2 | Placements and readmissions never exceed the core cap, not even for an instant. Counted are all executors but those that were given up: an executor that is unreachable for [`release_after`](config::UnreachableRule) (default 5 min) is replaced, and may still run; until it returns and is killed, or ends, more than the cap may be in use. Tasks of unequal sizes count as what they take; a plan of them is cut off from its end, a gang whole | L `admission`, `updates`, `tasks`; S; T, D; P against naive books |
//! | 3 | No count underflows or wraps; the two sums whose difference admission is do wrap, and it doesn't | P, F, D, with debug assertions |
//! | 4 | Executors take no more than their offers have, exact to a thousandth of a core, with role and reservation kept; each port once. Used plus left is what was offered; reserved resources are used first; nothing revocable, shared or of other roles unless configured, and revocable resources are never mixed with others | P, F against a naive kernel; D |
//! | 5 | The resources in a launch call are those which the kernel counts for the executor. [Extra cores](ConfigBuilder::extra_cores) are in neither: the executor is only told that it has them | D; P |
//! | 6 | Each offer is answered exactly once; an offer rescinded while it waited, never. (The engine can't answer an offer whose id it can't read: that is a [notice](engine::Notice::Unreadable), once for each agent and cause. If a manager can't tell the offers of an event apart, it has to subscribe again. Of an event that is longer than it reads, offers are lost until it does: that is a [report](engine::cluster_manager::Event::CallFailed)) | D; P, F |
//! | 7 | No answer carries another subscription's number | D; M |
//! | 8 | One accept names one agent and one role, and each offer once | D; M, where a mistake is TASK_DROPPED |
//! | 9 | No offer waits long; while executors are wanted and agents have room, offers arrive | D, when faults are over |
//! | 10 | Executor ids are unique and valid for Mesos | P; D; M |
//! | 11 | An executor's state follows its diagram; an end is final | L `executors`; P, D |
//! | 12 | Resources are freed exactly once, in whatever order reports, losses, timeouts and the drain arrive | L `executors`, `updates`; S; T; P, F, D |
//! | 13 | Applying an update twice has the effect of applying it once; it is acknowledged after it was applied, once per copy, and only on request | D; P; M |
//! | 14 | Reports about unknown executors change nothing; of unknown agents, only a loss is kept (41), and that an executor was bound there (47) | P, F, D |
//! | 15 | The executor limit is never exceeded by the executors counted (see 2); lowering it kills no executor; after the setter returns nothing is placed beyond it | L `admission`, `policy`; S; T; P, F, D |
//! | 16 | After the update that excludes an agent is applied, nothing is placed there until the exclusion ends, by itself or by [`Kernel::readmit_agent`]; a failure counts once | L `agents`; P, F, D |
//! | 17 | Nothing is placed on an agent that doesn't meet the constraint; a cached answer is the one that a new evaluation gives | P, F against a naive matcher; D |
//! | 18 | Round robin: among equally able agents, none gets two executors more than another | P, D; A |
//! | 19 | An executor whose launch has an unknown outcome keeps its resources until the cluster reports its state | D; M |
//! | 20 | One suppress when the kernel is full; one revive when it has room again, none missed, no storm; a call that is lost in transit is repeated | L `demand`; S; P, D |
//! | 21 | The totals and executors of a snapshot marked exact are those of one instant; its agents, with their numbers of executors and exclusions, are each as they were at some moment of the call. Sequence numbers increase | L `snapshot`; S; T; D |
//! | 22 | No batch waits for a snapshot and no snapshot for a batch, except when an agent is first seen, whose name has a lock | by construction: the offer path takes no other lock that a snapshot takes |
//! | 23 | After a close nothing is placed; a drain ends within its timeout and names the executors that are left; concurrent callers get the same report | L `drain`, `commit`; S; T; D |
//! | 24 | The end of the last executor wakes every thread and every future which waits in a drain | L `drain` |
//! | 25 | Memory is a high-water mark: it is proportional to the peak number of agents and executors, and what the tables took for the peak is reused, but not returned before the kernel is dropped. With [plain ids](IdScheme::plain), an executor that outlives its neighbours in number keeps a page of 1 KiB. Offers allocate nothing in the steady state, as said below | D; counting allocator, a million agents, and 300 000 plain ids in `tests/kernel/memory.rs` |
//! | 26 | The constraint parser is total, linear and bounded, without recursion; it accepts exactly its grammars, and parses its own output back | P, F against a naive reader |
//! | 27 | RecordIO decoding is independent of how the stream is split; memory is proportional to the received bytes, up to the longest record allowed; a longer one is skipped, and reading stops at any other error. Offers read in place equal offers decoded by prost | P, F against a naive reader and prost |
//! | 28 | No secret is shown by a `Debug`, an error, a notice, an event or the argument list | M with a canary |
//! | 29 | After faults end, kernel and cluster have the same executors | D; M after ten minutes of random faults |
//! | 30 | The nearest miss in an explanation really occurred, with these numbers, under the settings in force | L `seqlock`; P |
//! | 31 | With [`Compatibility::SPARK_3_5`](config::Compatibility) batches are answered as Spark 3.5 answers them, one after the other; while preferred hosts are set, nothing starts elsewhere before the locality wait is over | A; P against a second implementation of Spark's loop; L `locality` |
//! | 32 | Spark's executors get the command and environment that Spark's backend gave them; no setting escapes its shell quoting | A; P through a real shell |
//! | 33 | Replaying a journal gives the same decisions, byte for byte, from the journal alone | P; runs on local agents, on Mesos and with real Spark executors |
//! | 34 | Dynamic allocation keeps its bounds: no executor ends before its idle timeout, or while limit and load need it | P |
//! | 35 | A shuffle service that is down, slow or sends garbage delays no placement; registration is repeated when it is back | stand-ins in `tests/spark/`; A |
//! | 36 | Declines write no cache line which another handler reads or writes, except the first decline at a cap after each revive or suppress, and an agent's line once per minute, and whenever it offers something else than executors which came and went explain; a batch that launches writes the admission word once if no other thread writes it meanwhile | C |
//! | 37 | An executor is given up or forgotten by the clock of its present absence only, however often it has come and gone | L `expiry`; S `flapping`; P, D |
//! | 38 | After a setter returns nothing is placed under an older policy, however often the policy changed during the batch | L `policy/launch-versions`, `commit/retry-limits`; S `policy/many-changes`; P |
//! | 39 | An executor that finishes under [`LimitRule::CountDown`] is not replaced, and no limit change is lost | L `policy/count-set`, `policy/count-count`, `policy/count-launch`; P |
//! | 40 | Of two concurrent adoptions one is refused; an adopted executor is never dropped because its agent is being forgotten, and a concurrent close reports it by its cluster name | L `adoption`; S `agents/adopt-sweep`; P |
//! | 41 | After [`Kernel::agent_lost`] returns, nothing is placed on the agent for 10 s, also if it was never offered before, unless it is [readmitted](Kernel::readmit_agent); and each executor there is in doubt. A forgotten agent prevents no offer from being used | L `agents/lost-launch`, `agents/lost-meet`, `agents/sweep-offer` |
//! | 42 | The engine reconciles and kills no executor before the call that launches it was made; the other launches of the batch don't delay that | D; tests of the engine |
//! | 43 | A kill that was lost is made again with the next subscription, when its executor is reachable again, and otherwise after at most a sixth of a shutdown's timeout (1 s at least), or within 15 s and then ever more rarely, up to 5 min, where there is no shutdown | tests of the engine; M |
//! | 44 | An engine's shutdown returns within its timeout and slack, whatever hangs; its kills wait for no update; no call begins after the manager's stop. The engine's queues are bounded by weight, also during shutdown, except the queue of kills | S `engine`; `tests/engine` |
//! | 45 | A panic in a call, a launcher or an observer is reported, and loses at most one batch or closes the kernel | S `engine/observer`; `tests/engine` |
//! | 46 | A picture of the [capacity](Kernel::capacity) is as old as it says, and shows each agent that was offered lately; what executors use there is what they hold, if it is marked exact; what an agent offered is what it did in a batch, and what is free follows from the last one that was looked at, if executors have a fixed size | L `capacity`; P, D |
//! | 47 | An executor that is [bound late](Kernel::bind) counts on the agent that it is bound to, on no other, and on none once it has ended; whichever of a binding, a refusal and an end comes first decides. Once its agent is reported lost, it is in doubt. If the agent was excluded before, or doesn't meet the constraint, it is killed, and blames no agent | L `binding`; P, F; D |
//! | 48 | An executor whose launch was returned is found by its id until it ends, and by no other id, also while the tables behind ids are reused; to look up an id allocates nothing, whatever it says | L `numbers`; S `numbers/plain-ids`; P, F; counting allocator |
//! | 49 | An agent has at most one [host](Hosts) for tasks: of several first tasks on an agent one adds it, and it is placed with its first tasks or not at all; no task joins a host that the framework is about to end, and what is said of a former host's tasks doesn't count for the next host | L `hosts`, `tasks`; P, F against naive books; D |
//! | 50 | Each task that is picked is placed once, with what it asked for, or comes back with the reason; a gang is placed whole or not at all | L `tasks`; P, F, D |
//! | 51 | With [queues](ConfigBuilder::queue), placements and readmissions never exceed a queue's maximum, and leave other queues what is [guaranteed](Kernel::set_queue_demand) to them; offers that are refused for a claim which another batch gives back are revived | L `queues`; S `caps/queue`; T; P, F against naive books; D |
//! | 52 | An attempt of a task in a [work queue](engine::WorkQueue) has one end, which is told once, or its task waits again. No task waits again of which anything has begun, nor is one placed beside an attempt of it that has neither ended nor was given up | tests of the engine; D |
//!
//! # Which call waits for which
//!
//! Here a call is lock-free if a thread that is stopped anywhere in it prevents no other thread from completing such a
//! call. [`Handler::resource_offers`], [`Kernel::status_update`], [`Updater::status_update`] and
//! [`Kernel::status_updates`] are lock-free, with these exceptions; so are [`Handler::propose`] and [`Rooms::commit`],
//! where a row says "an offer" or "a launch":
//!
//! | call | waits for | when | shown by |
//! |---|---|---|---|
//! | a launch, first task, or first in a [queue](ConfigBuilder::queue) | a commit whose task is the first of the kernel, or in its segment of the table of executors, and allocates the tags there, at most 1 MiB | the first task in a segment | by construction: the table of tags is written nowhere else |
//! | an offer, agent first seen | other first sights and removals of agents in the same shard of a map; the lock of the name in the agent's cell. It allocates | the first offer of an agent to this handler, and the first after the agent was forgotten | C `an_agent_is_inserted_once`; L `agents/insert-insert`, `agents/sweep-offer`; S `maps/insert-forget` |
//! | a launch, growth | a launch that allocates the same segment of a table, at most 4 MiB | no cell is free (with [plain ids](IdScheme::plain): or no page of numbers), and the table grew by a quarter of its last segment since the last [`Kernel::tick`] | C `growing_writes_one_word_more_and_a_stack_less`; L `slab/grow-claim`; P `a_table_that_looks_ahead_is_never_short`; S `maps/growth` |
//! | an update, failure | other failures, suspicions, readmissions and reports of the same agent | the agent is to blame | C `a_failure_writes_its_agents_line`; L `agents/fail-fail`, `agents/exclude-readmit` |
//! | an update, exclusion | as a call that changes the limit does, see below | the failure excludes the agent | L `agents/exclude-launch` |
//! | an update, return | calls that change limit or settings, which may wait themselves, see below | the executor was given up and is reported again | L `policy/return-versions` |
//! | an update, last end | threads in [`Kernel::drain`], and polls of [`Kernel::drained`], which hold the lock to read one word; then it calls the wakers | the kernel is closed and no other executor is counted | L `drain/end-wait`, `drain/end-poll`, `drain/deadline` |
//! | an update, [count-down](LimitRule::CountDown) | as a call that changes the limit does, see below | the executor finished | L `policy/count-set`, `policy/count-launch` |
//!
//! [`Handler::resource_offers`] allocates, or frees, in these cases only:
//!
//! | case | what |
//! |---|---|
//! | a batch is larger than each before it | scratch memory of the handler and of [`Decisions`] |
//! | an agent is new to the handler, or was dropped from its cache | the agent's entry; every 15 min at most, a smaller cache |
//! | a launch, growth (see above) | a segment of the table, at most 4 MiB |
//! | an agent offers to more roles, to another role or with other attributes than before | what is recorded of its offer |
//! | the handler's first decline of a kind | the cell of its nearest miss, about 200 bytes |
//! | the settings changed since the handler's last batch | it may be the last to use the old ones, and frees them |
//! | a regular expression in the constraint, agent or constraint new to the handler | `regex` keeps a pool of scratch memory, which it locks if several threads evaluate one expression at the same time |
//!
//! The engine adds locks of its own, outside of these calls: each batch passes a bounded queue, and with a journal
//! operations take turns.
//!
//! All other calls may take locks; their documentation says which. Except in the cases above, the calls above take none
//! of these locks. So a thread that answers offers waits in no other case for a poll, a tick, a snapshot, an
//! explanation, a change of settings or a drain (C `timers_and_reports_write_no_line_that_batches_read` and
//! `declines_write_no_shared_line`: taking a lock is a write).
//!
//! | call | waits for |
//! |---|---|
//! | [`Kernel::set_executor_limit`], [`Kernel::reconfigure`], [`Kernel::set_locality`], [`Kernel::request_executors`]; [`Kernel::agent_lost`], if executors are on the agent, and if it is unknown, as a first sight | each other; updates that exclude an agent; the creation and drop of a handler; adoptions and returns. If there are more than 128 handlers, and running batches and the first 128 handlers together use all 256 versions of the policy: one of these batches (L `policy/launch-crowd`) |
//! | [`Kernel::set_queue_demand`] | each other; [`Kernel::reconfigure`], while that sets guarantees |
//! | [`Kernel::poll_demand`], [`Kernel::registered`] | each other (L `subscription/poll-register`); a poll that finds room also waits for the lock of the list of handlers' counters |
//! | [`Kernel::bind`] | first sights and removals of agents in the same shard of a map; the lock of the name in the agent's cell, if the agent is new, its host name is learnt, or the executor is bound |
//! | [`Kernel::readmit_agent`] | failures, suspicions and reports of the same agent (L `agents/exclude-readmit`); then as a change of the limit does |
//! | [`Kernel::tick`] | other ticks, and first sights in a shard of the map when it forgets an agent; a report that copies the name of an agent that it forgets; a launch that allocates the same segment of a table, when it lets the table grow; nothing when it gives up executors (L `expiry/tick-tick`) |
//! | [`Kernel::snapshot`], [`Kernel::explain`], [`Kernel::offer_counts`] | the lock of the name in an agent's cell, the lock of the list of handlers' counters; the second, as [`Kernel::capacity`] does |
//! | [`Kernel::close`], [`Kernel::reconcile`], [`Kernel::kill_executors`], [`Kernel::executor_lost`] | the lock of the name in an agent's cell; the first close, other closes that list executors |
//! | [`Kernel::agents_known`] | first sights and removals of agents, in each shard of the map |
//! | [`Kernel::capacity`] | nothing, if another thread builds a picture or the last one will do; otherwise the lock of the name in an agent's cell |
//! | [`Kernel::adopt`] | nothing for the right to adopt: the second of two calls fails at once (L `adoption/adopt-adopt`); then as a return |
//! | [`Kernel::drain`] | the last end, or its timeout (L `drain`) |
//! | a poll of [`Kernel::drained`] | other polls, threads in [`Kernel::drain`] and the last end, for a few instructions (L `drain/end-poll`) |
//!
//! **Not checked**:
//! * The inside of `arc-swap`, `dashmap` and `std`: loom and shuttle run stand-ins which promise no more than the
//!   documentation of these crates (`src/sync/`). ThreadSanitizer runs the real ones, as far as 60 rounds reach.
//! * Weak memory in scenes of more than a few threads, and load buffering, which loom doesn't explore.
//! * Durations: under loom and shuttle the tool decides when a timeout ends. Wait-freedom is not claimed.
//! * An executor whose state changes and changes back (unreachable and returned) between the two reads of a snapshot;
//!   at the instant of the snapshot it may have been unreachable.
//! * The engine's timeouts and its journal under shuttle: scenes run its offer queue, inbox, gates and end, as orders
//!   of events without time. Tests with real time are in `tests/engine`; the simulator runs the protocol on one thread.
//! * The wrap of small counters whose round is argued in the module that has them: 256 absences of one executor, or 256
//!   exclusions and suspicions of one agent, or 2¹⁶ executors that are placed on one agent and end there, or 2³⁸
//!   executors that are placed, or executors that add up to a multiple of 2⁵⁵ in the admission word (3.7 million at
//!   least), between two steps of one thread.
//! * Mesos of other releases than 1.11, with ZooKeeper, TLS or container images: the Mesos of the tests has none. The
//!   simulated master follows Mesos' sources and recorded sessions, to the extent that
//!   `src/cluster/simulated/cluster/` describes.
//! * Advisories about dependencies: `cargo deny check` has to be run where there is a network.
//!
//! There is no unsafe code in this crate (`forbid`).
//!
//! # Features
//!
//! * `regex`: regular expressions in constraints.
//! * `simulated`: the simulated cluster. No dependencies.
//! * `mesos`: a Mesos cluster over its v1 scheduler API. Brings tokio (one thread), hyper, rustls, prost and serde.
//! * `kubernetes`: executors as pods of a Kubernetes cluster: kube, tokio (one thread), rustls, serde. The program
//!   chooses a version of k8s-openapi.
//! * `local`: the embedded cluster, executors as child processes of this machine. Unix.
//! * `spark`: registers with Spark's external shuffle services. No dependencies.
//! * `standalone`: a master and workers for a few machines. Brings what `mesos` and `local` do. Unix.
//! * `serde`: `Serialize` and `Deserialize` on snapshots, reports, explanations, notices and other plain data.
//! * `tracing`: events of the crate `tracing` from the engine and the cluster managers.
//! * `cli`: the command line. A program which links the library doesn't need it.
//!
//! No feature is enabled by default; the library then brings no async runtime, no HTTP and no allocator. (A program
//! that wants mimalloc sets it itself; the figures are measured with it.)

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod allocation;
#[cfg(any(feature = "kubernetes", feature = "mesos", feature = "spark"))]
mod backoff;
pub mod cluster;
pub mod config;
pub mod constraint;
pub mod engine;
mod error;
pub mod foreign_text;
#[cfg(feature = "standalone")]
#[doc(hidden)]
pub mod http_server;
mod ids;
mod kernel;
pub mod launch;
pub mod limits;
#[cfg(feature = "mesos")]
#[doc(hidden)]
pub mod mesos_v1;
mod offer;
#[cfg(feature = "mesos")]
mod pem_files;
#[cfg(any(feature = "local", feature = "mesos"))]
#[doc(hidden)]
pub mod private_files;
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
pub use error::{Error, ErrorKind, InvalidSetting};
pub use ids::{ExecutorId, IdScheme};
pub use kernel::{
    Accepted, AgentResources, AgentState, Amount, Bound, CapacitySums, Change, ClusterCapacity,
    ClusterLack, Decisions, Decline, DeclineCounts, Declined, DemandCall, DrainFuture, DrainReport,
    Drained, ExcludedAgents, Exclusion, ExecutorView, Explanation, GivenUp, Handler, Hosts,
    IdleHost, Joined, Kernel, LargestAgent, Left, LeftResources, LimitRule, Miss, OfferCounts,
    Outcome, Phase, Pick, Picks, Piece, Placed, QueueUse, QueuesLeft, Reason, ReasonKind,
    Recovered, Remainder, ResourceSums, RoleOffer, Room, Rooms, Scope, Snapshot, Target, Task,
    TaskHost, TaskHostStage, Ticked, Totals, Unplaced, Updater, Violation, choosers,
};
pub use offer::attributes;
pub use offer::{
    Attribute, AttributeValue, Binding, BoundAgent, DEFAULT_ROLE, Label, Offer, Reservation,
    ReservationKind, Reservations, ReservedBy, Resource, ResourceKind, Revocability, Value,
};
pub use status::{Fate, ProcessExit, ProcessReport, StatusUpdate, TaskState, UpdateReason};
pub use time::Timestamp;
