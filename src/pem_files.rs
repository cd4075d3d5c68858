//! Certificates and private keys in PEM files, for clients and servers of TLS. Each file is opened once, because it may
//! be a pipe: what is checked is what is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tokio_rustls::rustls::Error;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::private_files::{FileAccess, open_input};

/// The maximum length of a file with a private key, in bytes.
const KEY_BYTES_MAX: u64 = 64 * 1024;
/// The maximum length of a file of certificates, in bytes. Those of all public authorities have about 200 KB.
const CERTIFICATES_BYTES_MAX: u64 = 16 << 20;

/// Reads the certificates of a file, at least one.
///
/// # Errors
/// If the file can't be read, others may write it, or it contains none.
pub(crate) fn read_certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let mut text = Vec::new();
    open_authored(path)?.take(CERTIFICATES_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > CERTIFICATES_BYTES_MAX {
        return Err(io::Error::other("it is too long"));
    }
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(io::Error::other)?;
    if certificates.is_empty() {
        return Err(io::Error::other("it contains none"));
    }
    Ok(certificates)
}

/// Reads the private key of a file, which must not be encrypted. `check` says whether what was opened may be used. The
/// text is overwritten in memory.
///
/// # Errors
/// If the file can't be read, `check` fails, or it contains none. They don't quote the file.
pub(crate) fn read_key(
    path: &Path,
    check: impl Fn(FileAccess) -> io::Result<()>,
) -> io::Result<PrivateKeyDer<'static>> {
    let file = open_input(path)?;
    check(FileAccess::of(&file)?)?;
    // As large as it may become, so that no part of the key is left behind by growing.
    let mut text = Zeroizing::new(Vec::with_capacity(KEY_BYTES_MAX as usize + 1));
    file.take(KEY_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > KEY_BYTES_MAX {
        return Err(io::Error::other("it is too long"));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| io::Error::other("it contains none"))
}

/// Why a certificate can't be used with any key, in a sentence; `None` if it is another error. Certificates without
/// extensions are made by tools that are told of none.
pub(crate) fn certificate_problem(error: &Error) -> Option<&'static str> {
    let Error::InvalidCertificate(why) = error else { return None };
    let is_old = format!("{why:?}").contains("UnsupportedCertVersion");
    Some(match is_old {
        true => {
            "the certificate is of an old version of X.509, and must be of version 3: make it with an extension, such \
             as subjectAltName"
        }
        false => "the certificate can't be read, whatever the key is",
    })
}

/// Opens a file. Others must not be able to write it.
fn open_authored(path: &Path) -> io::Result<File> {
    let file = open_input(path)?;
    FileAccess::of(&file)?.check_author()?;
    Ok(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Goal: whether a key's file may be used is asked about the file that was opened. Method: while it is asked,
    /// another file takes the place of one that others may read; and one that may be used, whose key is read.
    #[test]
    fn the_opened_key_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("key"), folder.path().join("other"));
        let certificates = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mesos/fake/certificates/");
        std::fs::copy(format!("{certificates}server-key.pem"), &path).unwrap();
        set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        std::fs::write(&other, "").unwrap();
        set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
        let error = read_key(&path, |access| {
            std::fs::rename(&other, &path)?;
            access.check_private()
        });
        assert!(error.unwrap_err().to_string().contains("other users may read it"));
        std::fs::copy(format!("{certificates}server-key.pem"), &path).unwrap();
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(read_key(&path, FileAccess::check_private).is_ok());
    }
}
