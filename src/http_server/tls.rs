//! TLS of a server: its certificate and its key, and the authorities of its clients' certificates.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::pem_files::{read_certificates, read_key};
use crate::private_files::FileAccess;

/// What accepts connections with TLS 1.2 and 1.3 by a certificate and its key, both PEM files. With a file of
/// authorities, clients are asked for a certificate, and those that show another's are refused; those that show none
/// aren't. `check_key` says whether the key's file may be used: it is asked about the file that was opened.
///
/// # Errors
/// With a sentence if a file can't be read, may be another user's, isn't allowed by `check_key`, or isn't PEM; or if the
/// key isn't the certificate's.
pub fn server_tls(
    certificate_file: &Path,
    key_file: &Path,
    check_key: impl Fn(FileAccess) -> io::Result<()>,
    client_authorities: Option<&Path>,
) -> Result<TlsAcceptor, String> {
    let certificates = certificates(certificate_file)?;
    let key = read_key(key_file, check_key).map_err(|error| {
        about(key_file, &format!("it isn't a file with a private key in PEM ({error})"))
    })?;
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| about(certificate_file, &error))?;
    let config = match client_authorities {
        None => config.with_no_client_auth(),
        Some(file) => config.with_client_cert_verifier(verifier(file, provider)?),
    };
    let mut config = config.with_single_cert(certificates, key).map_err(|error| {
        about(certificate_file, &format!("it can't be used with {}: {error}", key_file.display()))
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What checks clients' certificates, if they show one.
fn verifier(
    file: &Path,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| about(file, &error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| about(file, &error))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    read_certificates(file)
        .map_err(|error| about(file, &format!("it isn't a file of certificates in PEM ({error})")))
}

fn about(file: &Path, why: &dyn Display) -> String {
    format!("{}: {why}", file.display())
}
