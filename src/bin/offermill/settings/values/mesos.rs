//! The settings of a Mesos cluster.

use std::path::PathBuf;
use std::time::Duration;

use offermill::cluster::mesos::{Credential, Encoding, Secret};

use crate::settings::sources::Sourced;

/// The settings of a Mesos cluster.
#[derive(Debug, Default)]
pub(crate) struct MesosSettings {
    pub(crate) roles: Vec<String>,
    pub(crate) user: Option<String>,
    pub(crate) principal: Option<(Sourced, String)>,
    pub(crate) secret: Option<(Sourced, Secret)>,
    pub(crate) plain_secret: bool,
    pub(crate) failover_timeout: Duration,
    pub(crate) framework_id_file: Option<(Sourced, PathBuf)>,
    pub(crate) checkpoint: bool,
    pub(crate) webui_url: Option<String>,
    pub(crate) encoding: Encoding,
    pub(crate) ca_file: Option<(Sourced, PathBuf)>,
    /// Whether the system's certificates are not trusted.
    pub(crate) ca_file_only: bool,
    pub(crate) repeats: bool,
    pub(crate) subscribe_timeout: Duration,
    pub(crate) call_timeout: Duration,
}

impl MesosSettings {
    /// The principal and its secret.
    ///
    /// # Errors
    /// With a sentence if there is a secret without a principal.
    pub(crate) fn credential(&self) -> Result<Option<Credential>, String> {
        match (&self.principal, &self.secret) {
            (None, None) => Ok(None),
            (None, Some((given, _))) => Err(format!(
                "{} is given without a principal; give --principal \
                 (spark.mesos.principal) too",
                given.name
            )),
            (Some((_, principal)), secret) => {
                let secret = secret.as_ref().map(|(_, secret)| secret.clone());
                Ok(Some(Credential { principal: principal.clone(), secret }))
            }
        }
    }

    /// The name under which the secret was given.
    pub(crate) fn secret_name(&self) -> Option<&str> {
        self.secret.as_ref().map(|(given, _)| given.name.as_str())
    }
}
