//! What has to do with Spark's own programs.
//!
//! | module | question |
//! |---|---|
//! | [`asking`] | does Spark's own backend decide as `offermill replay` says it would? (ignored, too) |
//! | [`shuffle`] | are shuffle services registered with, however they misbehave? |
//! | [`real`] | do Spark's own executors run Spark's own jobs, where Offermill places them? (ignored by a plain `cargo test`; `.ci/spark` runs them) |

#![allow(clippy::unwrap_used, clippy::panic)]

mod asking;
#[path = "../support/eventually.rs"]
mod eventually;
#[path = "../mesos/http.rs"]
#[allow(dead_code)]
mod http;
mod real;
mod shuffle;
#[path = "../cli/support.rs"]
#[allow(dead_code)]
mod support;

use eventually::eventually;
