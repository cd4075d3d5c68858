//! [`WorkerConfig`]: the settings of a worker.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::cluster::http_client::{ClientCertificate, Masters};
use crate::cluster::process::machine;
use crate::cluster::standalone::protocol::{
    HEARTBEAT_SECONDS, WorkerAttribute, WorkerCall, WorkerResources, WorkerSubscribe,
};
use crate::error::Error;
use crate::launch::Secret;
use crate::resources::{Mebibytes, MilliCpus, Scalar};

/// The memory of a machine that doesn't report it, in MiB.
const ASSUMED_MIB: u64 = 2048;

/// The settings of a [`StandaloneWorker`](super::StandaloneWorker). [`WorkerConfig::new`] sets all but the masters to
/// their defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerConfig {
    /// The addresses of the masters. One of them leads, and the others say which.
    pub masters: Masters,
    /// The token that the masters know this worker by. Default: none.
    pub token: Option<Secret>,
    /// Whether the token may be sent without TLS to another machine. Default: no.
    pub token_over_plain_http: bool,
    /// A PEM file of certificate authorities that are trusted beside the system's. Default: none.
    pub ca_file: Option<PathBuf>,
    /// Whether only the authorities of [`ca_file`](Self::ca_file) are trusted. Default: no.
    pub ca_file_only: bool,
    /// The certificate that is shown to masters which ask for one. Default: none.
    pub client_certificate: Option<ClientCertificate>,
    /// The folder of the sandboxes, the worker's id and its lock. Default: the current folder.
    pub work_dir: PathBuf,
    /// The host name in offers. Default: the machine's.
    pub hostname: String,
    /// What must not be registered twice at a time. Default: the host name.
    pub address: Option<String>,
    /// The cores of all executors together. Default: the processors that this process may use.
    pub cores: MilliCpus,
    /// The memory of all executors together. Default: the machine's less 1 GiB, at least 512 MiB; 2 GiB if the machine
    /// doesn't report its memory.
    pub memory: Mebibytes,
    /// Attributes in offers. Default: none.
    pub attributes: Vec<WorkerAttribute>,
    /// The grace period of executors when the worker is stopped, at most a year. Default: 10 s.
    pub grace: Duration,
    /// The maximum time to connect, and to answer a registration, at most a year. Default: 10 s.
    pub call_timeout: Duration,
    /// The interval of heartbeats, at least 10 ms. A master that is silent for four of them counts as dead. Default:
    /// 15 s, which is the protocol's.
    pub heartbeat: Duration,
    /// Whether executors that are meant for another user run as the worker's user, too; otherwise they fail. Default:
    /// no.
    pub takes_any_user: bool,
    /// The maximum time in which an executor must start. Default: 60 s.
    pub start_timeout: Duration,
}

impl WorkerConfig {
    /// The default settings of a worker of these masters.
    #[must_use]
    pub fn new(masters: Masters) -> WorkerConfig {
        WorkerConfig {
            masters,
            token: None,
            token_over_plain_http: false,
            ca_file: None,
            ca_file_only: false,
            client_certificate: None,
            work_dir: PathBuf::from("."),
            hostname: machine::hostname(),
            address: None,
            cores: MilliCpus::from_cores(u64::from(machine::cores())),
            memory: machine::known_offerable_memory().unwrap_or(Mebibytes::new(ASSUMED_MIB)),
            attributes: Vec::new(),
            grace: Duration::from_secs(10),
            call_timeout: Duration::from_secs(10),
            heartbeat: Duration::from_secs(HEARTBEAT_SECONDS),
            takes_any_user: false,
            start_timeout: Duration::from_secs(60),
        }
    }

    /// Whether this machine doesn't report its memory, so that the default is a guess.
    #[must_use]
    pub fn memory_is_unknown() -> bool {
        machine::known_offerable_memory().is_none()
    }

    /// All that executors may use together.
    pub(super) fn resources(&self) -> WorkerResources {
        WorkerResources {
            cpus: Scalar::from_thousandths(self.cores.millis()),
            mem: Scalar::from_thousandths(self.memory.get().saturating_mul(1000)),
            ..WorkerResources::default()
        }
    }

    /// The masters as they are given to a worker.
    fn urls(&self) -> String {
        self.masters.to_string().replacen("mesos://", "http://", 1)
    }

    /// Checks each setting, without reading files.
    ///
    /// # Errors
    /// If a setting isn't allowed.
    pub fn check(&self) -> Result<(), Error> {
        if self.token.is_some() && self.sends_in_clear() && !self.token_over_plain_http {
            let allowed = "https://, as the token would be sent in clear (or allow that)";
            return Err(Error::setting("master", self.urls(), allowed));
        }
        if self.client_certificate.is_some() && !self.masters.tls() {
            let allowed = "https://, as no other master asks for a certificate";
            return Err(Error::setting("master", self.urls(), allowed));
        }
        if self.ca_file_only && self.ca_file.is_none() {
            let allowed = "false, or there must be a CA file, whose authorities alone are trusted";
            return Err(Error::setting("CA file only", "true", allowed));
        }
        self.check_registration()?;
        if self.cores == MilliCpus::ZERO {
            return Err(Error::setting("cores", "0", "more than 0"));
        }
        if self.memory == Mebibytes::ZERO {
            return Err(Error::setting("memory", "0", "more than 0"));
        }
        let longest = Duration::from_secs(365 * 24 * 3600);
        for (name, value, least) in [
            ("grace", self.grace, Duration::ZERO),
            ("call timeout", self.call_timeout, Duration::from_millis(1)),
            ("heartbeat", self.heartbeat, Duration::from_millis(10)),
            ("start timeout", self.start_timeout, Duration::from_millis(1)),
        ] {
            if value < least || value > longest {
                let allowed = format!("{} ms to a year", least.as_millis());
                return Err(Error::setting(name, format!("{} s", value.as_secs_f64()), allowed));
            }
        }
        Ok(())
    }

    /// Checks what the master is told, part by part, as the master does.
    fn check_registration(&self) -> Result<(), Error> {
        let one = || "1".to_owned();
        let address = self.address.as_ref().unwrap_or(&self.hostname);
        let attributes = self.attributes.iter().map(|it| format!("{}:{}", it.name, it.value));
        let attributes = attributes.collect::<Vec<_>>().join(";");
        for (name, value, hostname, address, attributes) in [
            ("host name", &self.hostname, self.hostname.clone(), one(), Vec::new()),
            ("address", address, one(), address.clone(), Vec::new()),
            ("attributes", &attributes, one(), one(), self.attributes.clone()),
        ] {
            let session = one();
            let told =
                WorkerSubscribe { session, hostname, address, attributes, ..Default::default() };
            WorkerCall::Subscribe(Box::new(told)).check().map_err(|unfit| {
                Error::setting(name, value, format!("one that masters take ({unfit})"))
            })?;
        }
        Ok(())
    }

    /// Whether what is sent can be read on a network.
    fn sends_in_clear(&self) -> bool {
        let is_here = |host: &str| {
            host == "localhost" || host.parse().is_ok_and(|it: IpAddr| it.is_loopback())
        };
        !self.masters.tls() && !self.masters.all().iter().all(|master| is_here(&master.host))
    }
}
