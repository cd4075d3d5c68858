//! Quantities and resources: integer units inside, `f64` only at a border.

mod ports;
mod units;

pub use ports::{PortRange, PortSet};
pub use units::{Gpus, Mebibytes, MilliCpus, Scalar, ScalarError};
