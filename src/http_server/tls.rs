//! TLS of a server: its certificate and its key, and the authorities of its clients' certificates.

use std::fmt::{self, Display};
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier as _;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};

use crate::pem_files::{certificate_problem, read_certificates, read_key};
use crate::private_files::FileAccess;

/// What accepts connections with TLS, and what its operator should know.
#[derive(Clone)]
pub struct ServerTls {
    /// What accepts connections.
    pub acceptor: TlsAcceptor,
    /// Why clients will refuse the certificate now, in a sentence, if it is out of date or not valid yet.
    pub remark: Option<String>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("remark", &self.remark).finish_non_exhaustive()
    }
}

/// What accepts connections with TLS 1.2 and 1.3 by a certificate and its key, both PEM files. With a file of
/// authorities, clients are asked for a certificate, and those that show another's are refused; those that show none
/// aren't. `check_key` says whether the key's file may be used: it is asked about the file that was opened.
///
/// # Errors
/// With a sentence if a file can't be read, may be another user's, isn't allowed by `check_key`, or isn't PEM; or if
/// the key isn't the certificate's.
pub fn server_tls(
    certificate_file: &Path,
    key_file: &Path,
    check_key: impl Fn(FileAccess) -> io::Result<()>,
    client_authorities: Option<&Path>,
) -> Result<ServerTls, String> {
    let certificates = certificates(certificate_file)?;
    let remark = certificates.first().and_then(|own| validity_problem(own, UnixTime::now()));
    let remark = remark.map(|why| about(certificate_file, &format!("the certificate {why}")));
    let key = read_key(key_file, check_key)
        .map_err(|error| about(key_file, &unusable("a file with a private key in PEM", &error)))?;
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| about(certificate_file, &error))?;
    let config = match client_authorities {
        None => config.with_no_client_auth(),
        Some(file) => config.with_client_cert_verifier(verifier(file, provider)?),
    };
    let mut config = config.with_single_cert(certificates, key).map_err(|error| {
        let why = match certificate_problem(&error) {
            Some(why) => why.to_owned(),
            None => format!("it can't be used with {}: {error}", key_file.display()),
        };
        about(certificate_file, &why)
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(ServerTls { acceptor: TlsAcceptor::from(Arc::new(config)), remark })
}

/// Why a certificate is refused at a time, if that is due to the time. Other reasons are left to clients. It is checked
/// as if it were its own authority: the time is checked first.
fn validity_problem(certificate: &CertificateDer<'_>, now: UnixTime) -> Option<&'static str> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone().into_owned()).ok()?;
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let name = ServerName::try_from("localhost").ok()?;
    let verified = verifier.build().ok()?.verify_server_cert(certificate, &[], &name, &[], now);
    let Err(Error::InvalidCertificate(why)) = verified else { return None };
    match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Some("has expired"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Some("isn't valid yet")
        }
        _ => None,
    }
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
        .map_err(|error| about(file, &unusable("a file of certificates in PEM", &error)))
}

/// Whether a file isn't there, or may not be read, so that nothing is known of what it contains.
fn is_unreadable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Why a file can't be used, which should be of a kind.
fn unusable(kind: &str, error: &io::Error) -> String {
    match is_unreadable(error) {
        true => format!("it can't be read: {error}"),
        false => format!("it isn't {kind} ({error})"),
    }
}

fn about(file: &Path, why: &dyn Display) -> String {
    format!("{}: {why}", file.display())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Goal: a certificate that clients refuse now is told from one that they accept. Method: one that is valid from
    /// 2020 to 2120, and its authority, before, meanwhile and after.
    #[test]
    fn validity_depends_on_the_time() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mesos/fake/certificates/");
        for file in ["server.pem", "authority.pem"] {
            let certificate = certificates(&Path::new(folder).join(file)).unwrap().remove(0);
            for (seconds, expected) in [
                (1_500_000_000, Some("isn't valid yet")),
                (1_800_000_000, None),
                (4_800_000_000, Some("has expired")),
            ] {
                let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
                assert_eq!(validity_problem(&certificate, now), expected, "{file} {seconds}");
            }
        }
    }
}
