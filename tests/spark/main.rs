//! Tests with Spark's own programs.
//!
//! | module | question |
//! |---|---|
//! | [`asking`] | does Spark's own backend make the decisions that `offermill replay` predicts? (ignored, too) |
//! | [`shuffle`] | does the application register with shuffle services, even if they misbehave? |
//! | [`plugin`] | do Spark's drivers get executors from the plug-in, and does it tell them why executors end? (ignored, too) |
//! | [`pods`] | are Spark's executors on Kubernetes the pods that Spark's own backend makes? (ignored, too) |
//! | [`real`] | do Spark's own executors run Spark's own jobs if Offermill places them? (ignored by a plain `cargo test`; `.ci/spark` runs them) |

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../kubernetes/fake/mod.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod api_server;
mod asking;
#[path = "../support/eventually.rs"]
mod eventually;
#[path = "../mesos/http.rs"]
#[allow(dead_code)]
mod http;
mod plugin;
mod pods;
mod real;
mod shuffle;
#[path = "../cli/support.rs"]
#[allow(dead_code)]
mod support;

use eventually::eventually;
