//! What Spark's own services are told about an application whose executors this crate places.

pub mod shuffle;
