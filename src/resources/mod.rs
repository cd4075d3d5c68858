//! Units of resources (cores, memory, GPUs, scalars) and sets of ports. All are integers; `f64` appears only on the
//! wire.
//!
//! # Which resources of an offer executors use
//!
//! | | rule |
//! |---|---|
//! | amounts | thousandths, exact: for each [`Resource`](crate::Resource), used + left = offered. An invalid quantity counts as zero |
//! | names | `cpus`, `mem` and `gpus` if they are scalars, `ports` if they are intervals; entries of one name are summed |
//! | roles | unreserved resources and those reserved for the offer's role or an ancestor of it (`eng` of `eng/etl`). If the offer's role is unknown ([`DEFAULT_ROLE`](crate::DEFAULT_ROLE)), resources of any role |
//! | order | reserved resources first, then unreserved ones; otherwise in the order of the offers |
//! | revocable | unused unless [enabled](crate::ConfigBuilder::revocable). Then each executor takes each name entirely from non-revocable resources or, if these don't suffice for one more executor, entirely from revocable ones |
//! | shared, volumes, disks | never used |
//! | GPUs | whole GPUs: a fixed number for each executor, or all of the offer for the first executor ([`ExecutorGpus`](crate::config::ExecutorGpus)). The fraction of an entry is ignored |
//! | ports | the configured port, from an interval that contains it; intervals are never expanded |
//!
//! The resources of an executor carry the reservations of the offered resource, in the same form.
//! [`Accepted::left`](crate::Accepted::left) returns the unused rest.

mod arithmetic;
mod executor;
mod ports;
mod units;

pub use executor::ExecutorResources;
pub use ports::{PortRange, PortSet};
pub use units::{Gpus, Mebibytes, MilliCpus, Scalar, ScalarError};
