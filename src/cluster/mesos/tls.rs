//! TLS connections to masters, verified with the system's certificates and those of a file.

use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::config::MesosConfig;
use crate::error::Error;

/// Builds the connector. Host names are always verified.
///
/// # Errors
/// If the file of certificates can't be read or contains none, or if there are no certificates at all.
pub(super) fn connector(config: &MesosConfig) -> Result<TlsConnector, Error> {
    let roots = roots(config)?;
    let provider = Arc::new(ring::default_provider());
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::cluster_from("TLS", error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(client)))
}

/// The certificates that are trusted: the system's, unless only those of the file are, and those of the file.
fn roots(config: &MesosConfig) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    if !config.ca_file_only {
        let (_added, _odd) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if let Some(path) = &config.ca_file {
        let refuse = |why: String| {
            let allowed = format!("a file of certificates in PEM ({why})");
            Error::setting("CA file", path.display(), allowed)
        };
        let own = CertificateDer::pem_file_iter(path).map_err(|error| refuse(error.to_string()))?;
        let mut count = 0;
        for certificate in own {
            let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
            roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
            count += 1;
        }
        if count == 0 {
            return Err(refuse("it contains none".to_owned()));
        }
    }
    if roots.is_empty() {
        let why = "this machine has no root certificates to verify a master's with; set a CA file";
        return Err(Error::cluster("TLS", why));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate authority of no meaning.
    const AUTHORITY: &str = include_str!("tests/authority.pem");

    /// Goal: with only the authorities of a file, the system's are not trusted. Method: the number of trusted
    /// authorities with the file alone, and beside the system's, if there are any; and the setting without a file.
    #[test]
    fn the_file_can_be_all_that_is_trusted() {
        let path = std::env::temp_dir().join(format!("offermill-ca-{}.pem", std::process::id()));
        std::fs::write(&path, AUTHORITY).unwrap();
        let mut config = MesosConfig::new("https://h".parse().unwrap(), "test");
        let system = rustls_native_certs::load_native_certs().certs.len();
        config.ca_file = Some(path.clone());
        assert_eq!(roots(&config).unwrap().len() > 1, system > 0);
        config.ca_file_only = true;
        assert_eq!(roots(&config).unwrap().len(), 1);
        config.ca_file = None;
        assert!(config.check().unwrap_err().to_string().contains("CA file is \"\""));
        std::fs::remove_file(&path).unwrap();
    }
}
