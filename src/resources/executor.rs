//! The resources of one executor.

use super::{Gpus, Mebibytes, MilliCpus};

/// The resources that one executor takes from its offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ExecutorResources {
    /// Cores.
    pub cores: MilliCpus,
    /// Memory, including the overhead.
    pub memory: Mebibytes,
    /// GPUs.
    pub gpus: Gpus,
    /// The fixed port, if the configuration asks for one.
    pub port: Option<u16>,
}

impl ExecutorResources {
    /// No resources.
    pub const NONE: ExecutorResources = ExecutorResources {
        cores: MilliCpus::ZERO,
        memory: Mebibytes::ZERO,
        gpus: Gpus::ZERO,
        port: None,
    };
}
