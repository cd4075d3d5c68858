//! TLS of the page: the certificate and the key of the server.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use offermill::private_files::{FileAccess, open_input};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The largest file with certificates, and with a key, in bytes.
const CERTIFICATES_BYTES_MAX: u64 = 16 << 20;
const KEY_BYTES_MAX: u64 = 64 << 10;

/// What accepts connections with TLS 1.2 and 1.3 by this certificate and this key.
///
/// # Errors
/// With a sentence if a file can't be read, may be another user's, or isn't PEM; or if the key isn't the certificate's.
pub(super) fn acceptor(certificate_file: &Path, key_file: &Path) -> Result<TlsAcceptor, String> {
    let about = |file: &Path, why: String| format!("{}: {why}", file.display());
    let pem = read(certificate_file, CERTIFICATES_BYTES_MAX)
        .map_err(|error| about(certificate_file, error.to_string()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.unwrap_or_default();
    if certificates.is_empty() {
        return Err(about(certificate_file, "it has no certificate in PEM".to_owned()));
    }
    let pem = read(key_file, KEY_BYTES_MAX).map_err(|error| about(key_file, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&pem);
    let key = key.map_err(|_| about(key_file, "it has no private key in PEM".to_owned()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(certificates, key));
    let mut config = config.map_err(|error| {
        about(certificate_file, format!("it can't be used with {}: {error}", key_file.display()))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_input(path)?;
    FileAccess::of(&file)?.check_author()?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it is larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}
