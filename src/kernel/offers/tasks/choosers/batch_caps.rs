//! [`BatchCaps`]: what a framework's caps leave for a batch.

use crate::kernel::state::offered_amounts::ResourceSums;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// What a framework's caps leave for a batch. The kernel places a host and its first tasks together or not at all, so
/// one that knows the caps picks no more than they admit. The default is no caps.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BatchCaps {
    /// The number of executors, of which a host is one.
    pub executors: u64,
    /// The cores and GPUs; the memory isn't looked at.
    pub left: ResourceSums,
}

impl BatchCaps {
    /// Caps that leave this.
    #[must_use]
    pub const fn new(executors: u64, left: ResourceSums) -> BatchCaps {
        BatchCaps { executors, left }
    }

    /// Takes what one executor needs. Returns `false`, and takes nothing, if that isn't left.
    pub fn take(&mut self, own: ResourceSums) -> bool {
        let fits = self.executors > 0 && own.cores <= self.left.cores && own.gpus <= self.left.gpus;
        if fits {
            self.executors -= 1;
            self.left = self.left.saturating_sub(own);
        }
        fits
    }
}

impl Default for BatchCaps {
    fn default() -> BatchCaps {
        let (cores, memory) = (MilliCpus::from_millis(u64::MAX), Mebibytes::new(u64::MAX));
        BatchCaps::new(u64::MAX, ResourceSums { cores, memory, gpus: Gpus::new(u32::MAX) })
    }
}
