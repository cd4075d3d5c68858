//! The HTTP client as the settings describe it.

use super::config::{Credential, MesosConfig};
use crate::cluster::http_client::{Authorization, Http, TlsFiles, TlsOptions};
use crate::error::Error;

/// The path of Mesos' v1 scheduler API.
const PATH: &str = "/api/v1/scheduler";

impl MesosConfig {
    /// Who is trusted; `None` if the masters are reached without TLS.
    pub(super) fn tls_options(&self) -> Option<TlsOptions<'_>> {
        self.masters.tls().then_some(TlsOptions {
            ca_file: self.ca_file.as_deref(),
            ca_file_only: self.ca_file_only,
            client_certificate: self.client_certificate.as_ref(),
            ca_setting: "offermill.mesos.caFile",
        })
    }

    /// Creates the client.
    ///
    /// # Errors
    /// If the files for TLS can't be used, or the principal and its secret can't be sent.
    pub(super) fn http_client(
        &self,
        media: &'static str,
        tls_files: &TlsFiles,
    ) -> Result<Http, Error> {
        let tls = tls_files.take(self.tls_options())?;
        let authorization = match &self.credential {
            Some(Credential { principal, secret: Some(secret) }) => {
                let made = Authorization::basic(principal, secret);
                Some(made.ok_or_else(|| Error::setting("principal", principal, "shorter"))?)
            }
            _ => None,
        };
        Ok(Http::new(PATH, media, authorization, tls, self.call_timeout))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Goal: the setting that only a file's authorities are trusted needs a file. Method: the setting without one.
    #[test]
    fn a_file_alone_can_be_trusted_only_if_there_is_one() {
        let mut config = MesosConfig::new("https://h".parse().unwrap(), "test");
        config.ca_file_only = true;
        assert!(config.check().unwrap_err().to_string().contains("CA file only is \"true\""));
        config.ca_file = Some(PathBuf::from("authority.pem"));
        config.check().unwrap();
    }
}
