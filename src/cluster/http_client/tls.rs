//! TLS connections to masters, verified with the system's certificates and those of a file, and the certificate that
//! this client shows.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::Error;
use crate::pem_files::{certificate_problem, read_certificates, read_key};
use crate::private_files::FileAccess;

/// The files of a TLS client's certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// A PEM file with the certificate, followed by those of intermediate authorities.
    pub certificate_file: PathBuf,
    /// A PEM file with the certificate's private key, which must not be encrypted. The file must belong to this user or
    /// root, and others must not be able to write it.
    pub key_file: PathBuf,
}

/// Who is trusted, and what is shown to masters that ask for a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsOptions<'a> {
    /// A PEM file of certificate authorities that are trusted in addition to the system's.
    pub(crate) ca_file: Option<&'a Path>,
    /// Whether only the authorities of the file are trusted.
    pub(crate) ca_file_only: bool,
    pub(crate) client_certificate: Option<&'a ClientCertificate>,
    /// What the setting of the file is called on the command line.
    pub(crate) ca_setting: &'static str,
}

/// The connector, once the files for it were read: they may be pipes, which can be read only once.
#[derive(Default)]
pub(crate) struct TlsFiles(Mutex<Option<TlsConnector>>);

impl TlsFiles {
    /// Reads the files unless that was done, or the masters are reached without TLS, for which there are no options.
    ///
    /// # Errors
    /// As [`connector`].
    pub(crate) fn read(&self, options: Option<TlsOptions<'_>>) -> Result<(), Error> {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(options)) = (&*read, options) {
            *read = Some(connector(options)?);
        }
        Ok(())
    }

    /// Returns the connector, unless there are no options.
    ///
    /// # Errors
    /// As [`connector`].
    pub(crate) fn take(
        &self,
        options: Option<TlsOptions<'_>>,
    ) -> Result<Option<TlsConnector>, Error> {
        self.read(options)?;
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).take())
    }
}

/// Builds the connector. Host names are always verified.
///
/// # Errors
/// If a file of certificates can't be read or contains none, if there are no certificates at all, or if the client's
/// certificate or key can't be used.
fn connector(options: TlsOptions<'_>) -> Result<TlsConnector, Error> {
    let roots = roots(options)?;
    let provider = Arc::new(ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::cluster_from("TLS", error))?
        .with_root_certificates(roots);
    let mut client = match options.client_certificate {
        None => client.with_no_client_auth(),
        Some(ClientCertificate { certificate_file, key_file }) => {
            let certificates = client_certificates(certificate_file)?;
            client.with_client_auth_cert(certificates, client_key(key_file)?).map_err(|error| {
                if let Some(why) = certificate_problem(&error) {
                    let allowed = format!("a certificate that can be used; {why}");
                    return Error::setting(CERTIFICATE_FILE, certificate_file.display(), allowed);
                }
                let allowed = format!("the key of the client certificate ({error})");
                Error::setting(KEY_FILE, key_file.display(), allowed)
            })?
        }
    };
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(client)))
}

/// The names of the settings in errors.
const CERTIFICATE_FILE: &str = "client certificate file";
const KEY_FILE: &str = "client key file";

/// The client's certificate and those of intermediate authorities.
fn client_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    read_certificates(path).map_err(|error| not_certificates(CERTIFICATE_FILE, path, &error))
}

fn not_certificates(name: &'static str, path: &Path, why: &dyn Display) -> Error {
    Error::setting(name, path.display(), format!("a file of certificates in PEM ({why})"))
}

/// The client's private key. Errors don't quote the file.
fn client_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    read_key(path, FileAccess::check_author).map_err(|error| {
        let allowed = format!("a file with a private key in PEM, which isn't encrypted ({error})");
        Error::setting(KEY_FILE, path.display(), allowed)
    })
}

/// The certificates that are trusted: the system's, unless only those of the file are, and those of the file.
fn roots(options: TlsOptions<'_>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    if !options.ca_file_only {
        let (_added, _odd) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if let Some(path) = options.ca_file {
        let refuse = |why: &dyn Display| not_certificates("CA file", path, why);
        for certificate in read_certificates(path).map_err(|error| refuse(&error))? {
            roots.add(certificate).map_err(|error| refuse(&error))?;
        }
    }
    if roots.is_empty() {
        let setting = options.ca_setting;
        let why = format!(
            "this machine has no root certificates to verify a master's with; set a CA file ({setting})"
        );
        return Err(Error::cluster("TLS", why));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate authority of no meaning.
    const AUTHORITY: &str = include_str!("authority.pem");

    /// Goal: with only the authorities of a file, the system's are not trusted. Method: the number of trusted
    /// authorities with the file alone, and beside the system's, if there are any.
    #[test]
    fn the_file_can_be_all_that_is_trusted() {
        let path = std::env::temp_dir().join(format!("offermill-ca-{}.pem", std::process::id()));
        std::fs::write(&path, AUTHORITY).unwrap();
        let system = rustls_native_certs::load_native_certs().certs.len();
        let options = |ca_file_only| TlsOptions {
            ca_file: Some(&path),
            ca_file_only,
            client_certificate: None,
            ca_setting: "a setting",
        };
        assert_eq!(roots(options(false)).unwrap().len() > 1, system > 0);
        assert_eq!(roots(options(true)).unwrap().len(), 1);
        std::fs::remove_file(&path).unwrap();
    }
}
