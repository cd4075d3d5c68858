//! [`ApiServer`]: where the API server is, and as whom requests are made.

use std::path::PathBuf;

use crate::error::Error;
use crate::launch::Secret;

/// How the API server is reached, and as whom.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum ApiServer {
    /// By `$KUBECONFIG` or `~/.kube/config`, with its current context; without such a file, as a pod of the cluster by
    /// its service account.
    #[default]
    Inferred,
    /// By the context of this name in `$KUBECONFIG` or `~/.kube/config`.
    Context(String),
    /// At this address, as whom `$KUBECONFIG` or `~/.kube/config` says: by the context of this name; without one, by
    /// the context whose cluster has this address, the current one if several have; else, within the cluster of this
    /// address, as a pod by its service account; else anonymously. Over `http://` always anonymously.
    Known {
        /// The address, such as `https://10.0.0.1:6443`.
        url: String,
        /// The context, whose cluster may have another address.
        context: Option<String>,
    },
    /// At this address, with these credentials.
    Url {
        /// The address, such as `https://10.0.0.1:6443`.
        url: String,
        /// The bearer token. `None` sends none.
        token: Option<Secret>,
        /// A file with the bearer token, in place of `token`: it is read again from time to time, as tokens expire.
        token_file: Option<PathBuf>,
        /// The certificate of this program, which the server may demand.
        key_pair: Option<ClientKeyPair>,
        /// The certificates, in PEM, of the authorities that are trusted. `None` trusts those of this machine.
        authorities: Option<Vec<u8>>,
    },
}

/// The files of a client's certificate, both in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ClientKeyPair {
    /// The certificate, perhaps with those of authorities between.
    pub certificate_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
}

impl ClientKeyPair {
    /// The files of a certificate and of its key.
    #[must_use]
    pub fn new(
        certificate_file: impl Into<PathBuf>,
        key_file: impl Into<PathBuf>,
    ) -> ClientKeyPair {
        ClientKeyPair { certificate_file: certificate_file.into(), key_file: key_file.into() }
    }
}

impl ApiServer {
    /// The API server at this address, without credentials, trusting the authorities of this machine.
    #[must_use]
    pub fn at(url: impl Into<String>) -> ApiServer {
        let url = url.into();
        ApiServer::Url { url, token: None, token_file: None, key_pair: None, authorities: None }
    }

    /// Checks the values that don't depend on the cluster.
    pub(super) fn check(&self) -> Result<(), Error> {
        let ApiServer::Url { url, token, token_file, key_pair, .. } = self else { return Ok(()) };
        let has_token = token.is_some() || token_file.is_some();
        if url.starts_with("https://") || (!has_token && key_pair.is_none()) {
            return Ok(());
        }
        let allowed = match has_token {
            true => "https://HOST:PORT, as the token would be sent in clear",
            false => "https://HOST:PORT, as certificates are for TLS",
        };
        Err(Error::setting("API server", url, allowed))
    }
}
