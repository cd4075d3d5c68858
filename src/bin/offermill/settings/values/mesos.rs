//! The settings of a Mesos cluster.

use std::path::PathBuf;
use std::time::Duration;

use offermill::cluster::mesos::{ClientCertificate, Credential, Encoding, Secret};

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
    pub(crate) client_certificate_file: Option<(Sourced, PathBuf)>,
    pub(crate) client_key_file: Option<(Sourced, PathBuf)>,
    pub(crate) repeats: bool,
    pub(crate) subscribe_timeout: Duration,
    pub(crate) call_timeout: Duration,
    /// The port of agents, for links to executors' logs.
    pub(crate) agent_port: u16,
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

    /// The certificate that is shown to masters, and its key.
    ///
    /// # Errors
    /// With a sentence if only one of them is given.
    pub(crate) fn client_certificate(&self) -> Result<Option<ClientCertificate>, String> {
        let (given, missing) = match (&self.client_certificate_file, &self.client_key_file) {
            (None, None) => return Ok(None),
            (Some((_, certificate_file)), Some((_, key_file))) => {
                return Ok(Some(ClientCertificate {
                    certificate_file: certificate_file.clone(),
                    key_file: key_file.clone(),
                }));
            }
            (Some((given, _)), None) => (given, "offermill.mesos.clientKeyFile"),
            (None, Some((given, _))) => (given, "offermill.mesos.clientCertificateFile"),
        };
        Err(format!("{} is given alone; give {missing} too", given.name))
    }

    /// The name under which the secret was given.
    pub(crate) fn secret_name(&self) -> Option<&str> {
        self.secret.as_ref().map(|(given, _)| given.name.as_str())
    }
}
