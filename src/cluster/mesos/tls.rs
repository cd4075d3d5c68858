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
    let mut roots = RootCertStore::empty();
    let (_added, _odd) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
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
    let provider = Arc::new(ring::default_provider());
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::cluster_from("TLS", error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(client)))
}
