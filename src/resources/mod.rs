//! Quantities and ports: integer units inside, `f64` only at a border.
//!
//! # What is taken of an offer
//!
//! | | rule |
//! |---|---|
//! | amounts | thousandths, exact: of each [`Resource`](crate::Resource), used + left = offered. What is no quantity is nothing |
//! | names | `cpus`, `mem` and `gpus` that are scalars, `ports` that are intervals; entries of one name add up |
//! | roles | what is reserved for nobody, for the offer's role, or for one above it (`eng` of `eng/etl`); for nobody else. From an offer whose role is not known ([`DEFAULT_ROLE`](crate::DEFAULT_ROLE)), any |
//! | order | reserved resources first, then unreserved ones; within that as the offers have them |
//! | revocable | left alone unless [asked for](crate::ConfigBuilder::revocable). Then each executor takes each name wholly from resources that stay or, when those don't hold one more share, wholly from revocable ones |
//! | shared, volumes, disks | left alone always |
//! | GPUs | whole ones: exactly as many for each executor, or those that there are for the first ([`ExecutorGpus`](crate::config::ExecutorGpus)). Of an entry with a fraction the whole ones count |
//! | ports | the one that is asked for, from an interval that holds it; intervals are never expanded |
//!
//! What is cut bears the reservations of its resource, in their form. What is left is
//! [`Accepted::left`](crate::Accepted::left).

mod executor;
mod ports;
mod units;

pub use executor::ExecutorResources;
pub use ports::{PortRange, PortSet};
pub use units::{Gpus, Mebibytes, MilliCpus, Scalar, ScalarError};
