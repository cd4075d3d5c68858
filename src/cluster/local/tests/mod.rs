//! Tests of the whole embedded cluster with real processes, through the `ClusterManager` trait.

mod as_root;
#[cfg(target_os = "linux")]
mod attacks;
mod bench;
mod executors;
mod hanging;
#[cfg(target_os = "linux")]
mod host_ends;
mod hosts;
mod offers;
mod removal;
mod stopping;
#[cfg(target_os = "linux")]
mod survival;
