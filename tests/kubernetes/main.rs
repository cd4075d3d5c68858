//! The cluster manager for Kubernetes against a fake API server, and (`real::`, by `.ci/kubernetes`) against a real
//! control plane with hollow nodes.
//!
//! What shows what:
//!
//! | what is promised | shown by |
//! |---|---|
//! | `--master` is the only changed flag; kubeconfig, context, token file, CA file | `real::program::runs_to_their_ends`; `tests/cli/pods.rs` |
//! | bad input: rights, namespace, token, certificate, template, labels, prefix, files | `real::program::missing_rights_are_named`, `real::rights`; `tests/cli/kubernetes.rs`, `pod_files.rs`, `spark_pods.rs` |
//! | pods alive never exceed the limit, at any event of an independent watch; the books are those of an independent list | each of `real::drills` |
//! | API server killed in mid-batch, and etcd hung for 6 s | `real::drills::loss_of_the_control_plane` (prints when the first new pod comes), `real::restart_of_the_api_server` |
//! | etcd hung for 30 s during creations | `real::drills::etcd_hangs_during_creations` |
//! | watches dropped, silent, cut in mid-line; compaction as an event, as HTTP 410 and on `continue` | [`watching`] |
//! | a watch that is silent though its connection is open, noticed within 65 s; a token that ends | `real::expiry`, [`watching`]; `token_file.rs` |
//! | a steady hour has one list | [`watching`] |
//! | node killed, paused and back in time, paused and evicted, its object deleted | `real::drills::loss_of_a_node`, `deletion_of_a_node`, `real::silence_of_a_node` |
//! | eviction, drain, preemption, `kubectl delete pod` | `real::drills::drain_of_a_node`, `preemption`, `real::lives` |
//! | a pod on a node that was excluded meanwhile | `real::drills::a_node_is_excluded_meanwhile` |
//! | quota full, lowered below use, raised; few denials in five minutes | `real::quota`, `real::drills::quota_lowered_and_raised`, [`creation`]; `permits.rs` |
//! | 409: own, another's, another's that is about to go | [`creation`], `real::drills::a_name_is_taken_by_a_pod_that_goes` |
//! | 429, 5xx, no answer, after success or before, late or never | [`creation`] |
//! | no node, then one; image missing | `real::drills::a_node_is_labelled`, `an_image_is_missing` |
//! | SIGKILL at each step, then a restart; two runs of a name; leases | `real::kills`, [`runs`], [`leases`], [`figures`] |
//! | ends are told apart, stay until acknowledged, grace is never 0 | [`ends`]; `pod_state.rs` |
//! | a stop leaves nothing, or all; `clean` deletes the rest; all goes with the own pod | [`ends`], [`leases`], `real::program`; `tests/cli/pods.rs`, `pod_files.rs` |
//! | 10 000 pods, 1000 adopted, memory, requests | [`figures`] (ignored: benches/README.md) |
//! | constraints that affinities can't express: nodes come and go, none meets it, rights are missing; pods that wait when nodes, exclusions or the constraint change | [`nodes`], [`waiting`]; `node_choice.rs`, `real::drills::a_pattern_of_labels` |
//! | affinities and names select the nodes that the matcher does; arguments arrive as they are | `affinity.rs`, `expansion.rs`, `manifest.rs` (random) |
//! | Spark's executors are the pods that Spark makes | `tests/spark/pods.rs` (by `.ci/spark`), `real::program::executors_of_spark` |
//! | late binding with faults | `tests/simulated`, loom `binding`, `tests/kernel` |
//! | 410 ignored, a list from the cache, blind repetition, grace 0 and others | `tests/planted/kubernetes-*` |
//!
//! Not shown: an hour in real time (its sixty watches are), and any program in a pod, because nodes are hollow.

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
mod nodes;
#[cfg(feature = "cli")]
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod program;
mod real;
mod run;
mod runs;
mod waiting;
mod watching;
