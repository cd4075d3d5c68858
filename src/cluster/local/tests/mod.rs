//! The whole cluster, with real processes, driven over the seam.

mod bench;
mod executors;
mod hanging;
mod offers;
mod stopping;
#[cfg(target_os = "linux")]
mod survival;
