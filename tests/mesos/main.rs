//! Tests of the cluster manager for Mesos: against a fake master for faults that a real one can't be made to have, and
//! against a real one (ignored by a plain `cargo test`; `.ci/mesos` runs those).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake;
mod framework;
mod host;
mod http;
mod offers;
mod real;
mod recorded;
