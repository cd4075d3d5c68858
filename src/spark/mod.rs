//! Client for Spark's own services: the external shuffle service.

pub mod shuffle;
