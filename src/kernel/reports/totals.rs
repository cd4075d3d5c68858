//! Sums over all executors.

use crate::kernel::state::admission::AdmissionState;
use crate::resources::MilliCpus;

/// Sums over all counted executors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Totals {
    /// The number of executors that count against the limit.
    pub executors: u32,
    /// The cores that count against the cap.
    pub cores: MilliCpus,
    /// Whether the kernel is closed.
    pub closed: bool,
}

impl From<AdmissionState> for Totals {
    fn from(admission: AdmissionState) -> Totals {
        Totals {
            executors: admission.executors(),
            cores: admission.cores(),
            closed: admission.closed(),
        }
    }
}
