//! [`MasterOptions`]: the settings of a master's server.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use super::access::MasterAccess;
use super::observer::MasterObserver;
use crate::cluster::standalone::protocol::SILENCE_SECONDS;
use crate::http_server::TlsAcceptor;
use crate::resources::Scalar;

/// The settings of a master's server.
#[derive(Clone)]
pub struct MasterOptions {
    /// The most cores of a framework. `None` means all.
    pub max_cores: Option<Scalar>,
    /// How long it waits for the workers and frameworks of its journal before it makes offers. Default: 15 s.
    pub recovery_timeout: Duration,
    /// The silence after which a worker is unreachable, 1 s to 1 h. A quarter of it is the interval of heartbeats.
    /// Default: 60 s.
    pub worker_timeout: Duration,
    /// Who is answered.
    pub access: MasterAccess,
    /// What accepts connections with TLS. `None` means that there is none.
    pub tls: Option<TlsAcceptor>,
    /// Whether it may listen beyond loopback without TLS or without credentials, and whether frameworks and workers of
    /// other users of this machine are answered without credentials.
    pub is_insecure: bool,
    /// Who is told what happens.
    pub observer: MasterObserver,
}

impl Default for MasterOptions {
    fn default() -> MasterOptions {
        MasterOptions {
            max_cores: None,
            recovery_timeout: Duration::from_secs(15),
            worker_timeout: Duration::from_secs(SILENCE_SECONDS),
            access: MasterAccess::default(),
            tls: None,
            is_insecure: false,
            observer: MasterObserver::default(),
        }
    }
}

impl MasterOptions {
    /// Why a master may not listen at an address, in a sentence; `None` if it may. Without TLS others could read and
    /// change what goes over a network, and without credentials they could run commands.
    #[must_use]
    pub fn address_problem(&self, address: SocketAddr) -> Option<String> {
        if address.ip().is_loopback() || self.is_insecure {
            return None;
        }
        let mut missing = self.access.missing();
        if self.tls.is_none() {
            missing.insert(0, "TLS");
        }
        (!missing.is_empty()).then(|| {
            format!(
                "{address} isn't an address of this machine's loopback, and this master has no {}",
                missing.join(" and no ")
            )
        })
    }
}

impl fmt::Debug for MasterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterOptions")
            .field("max_cores", &self.max_cores)
            .field("recovery_timeout", &self.recovery_timeout)
            .field("worker_timeout", &self.worker_timeout)
            .field("access", &self.access)
            .field("tls", &self.tls.is_some())
            .field("is_insecure", &self.is_insecure)
            .field("observer", &self.observer)
            .finish()
    }
}
