//! A Mesos cluster as the engine and its owner see it.

use super::config::MesosConfig;
use crate::engine::seam::{Call, ClusterManager, EventSink};
use crate::error::Error;

/// A Mesos cluster, reached through its masters.
#[derive(Debug)]
pub struct MesosCluster {
    config: MesosConfig,
}

impl MesosCluster {
    /// A framework that is not subscribed yet.
    ///
    /// # Errors
    /// When a setting's value isn't allowed.
    pub fn new(config: MesosConfig) -> Result<MesosCluster, Error> {
        config.check()?;
        Ok(MesosCluster { config })
    }
}

impl ClusterManager for MesosCluster {
    fn start(&self, _events: EventSink) -> Result<(), Error> {
        Err(Error::cluster("Mesos", format!("{} can't be reached yet", self.config.name)))
    }

    fn call(&self, _call: Call<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn stop(&self) {}
}
