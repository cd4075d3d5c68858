//! The whole cluster, with real processes, driven over the seam.

mod bench;
mod executors;
mod offers;
#[cfg(target_os = "linux")]
mod survival;
