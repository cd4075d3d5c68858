//! [`MesosConfig`]: the framework's settings at a Mesos master, and the settings of the connection.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::http_client::{ClientCertificate, Masters};
use crate::config::Config;
use crate::constraint::{Constraint, DuplicateAttributes};
use crate::error::Error;
use crate::launch::Secret;
use crate::mesos_v1::codec::Encoding;
use crate::offer::DEFAULT_ROLE;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// The settings of a [`MesosCluster`](super::MesosCluster). [`MesosConfig::new`] sets the masters and the name, and all
/// other settings to their defaults.
///
/// What each is called on the command line, and in errors ([`InvalidSetting::name`](crate::InvalidSetting)):
///
/// | field | key of `offermill run` | in errors |
/// |---|---|---|
/// | [`masters`](Self::masters) | `spark.master` | master |
/// | [`name`](Self::name) | `spark.app.name` | |
/// | [`user`](Self::user) | `offermill.mesos.user` | user |
/// | [`roles`](Self::roles) | `spark.mesos.role` | role |
/// | [`credential`](Self::credential) | `spark.mesos.principal`, `spark.mesos.secret` (each also with `.file`) | principal |
/// | [`secret_over_plain_http`](Self::secret_over_plain_http) | `offermill.mesos.secretOverHttp` | |
/// | [`failover_timeout`](Self::failover_timeout) | `spark.mesos.driver.failoverTimeout` | failover timeout |
/// | [`checkpoint`](Self::checkpoint) | `offermill.mesos.checkpoint` | |
/// | [`webui_url`](Self::webui_url) | `spark.mesos.driver.webui.url` | web page |
/// | [`framework_id_file`](Self::framework_id_file) | `offermill.mesos.frameworkIdFile` | framework id file |
/// | [`encoding`](Self::encoding) | `offermill.mesos.encoding` | |
/// | [`ca_file`](Self::ca_file), [`ca_file_only`](Self::ca_file_only) | `offermill.mesos.caFile`, `offermill.mesos.caFileOnly` | CA file, CA file only |
/// | [`client_certificate`](Self::client_certificate) | `offermill.mesos.clientCertificateFile`, `offermill.mesos.clientKeyFile` | client certificate file, client key file |
/// | [`call_timeout`](Self::call_timeout) | `offermill.mesos.callTimeout` | call timeout |
/// | [`subscribe_timeout`](Self::subscribe_timeout) | `offermill.mesos.subscribeTimeout` | subscribe timeout |
/// | [`duplicate_attributes`](Self::duplicate_attributes) | `offermill.mesos.repeatedAttributes` | |
/// | [`hostname`](Self::hostname), [`labels`](Self::labels), [`at_end`](Self::at_end) | none: this machine's name, no labels, torn down | |
/// | [`record_bytes_max`](Self::record_bytes_max), [`heartbeats_missed_max`](Self::heartbeats_missed_max) | none: their defaults | longest record, missed heartbeats |
/// | [`constraint`](Self::constraint), [`min_offer_resources`](Self::min_offer_resources), [`gpus`](Self::gpus), [`revocable`](Self::revocable) | follow from the kernel's: [`for_kernel`](Self::for_kernel) | |
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MesosConfig {
    /// The addresses of the masters.
    pub masters: Masters,
    /// The framework's name, as it is displayed.
    pub name: String,
    /// The user that executors run as on the agents. Default: the name of the effective user of this process
    /// ([`default_user`](super::default_user)). There is no default if that is root or has no name:
    /// [`MesosCluster::new`](super::MesosCluster::new) fails then.
    pub user: Option<String>,
    /// The roles to which resources are offered, at least one. Default: `*`.
    pub roles: Vec<String>,
    /// The principal as which the framework authenticates. Default: none.
    pub credential: Option<Credential>,
    /// Whether secrets, of this framework and of its executors, may be sent over an unencrypted connection. Default:
    /// no. Then executors with [secret values](crate::launch::SecretSource::Value) fail without being launched.
    pub secret_over_plain_http: bool,
    /// How long the cluster keeps executors after the framework has disconnected, at most 100 years. Default: 0, which
    /// ends them at once. A master that was restarted since, and to which the framework hasn't returned, keeps a
    /// framework that it hears of from its agents, and its executors, whatever the timeout: until the framework
    /// returns, or an operator ends it (`POST /master/teardown`).
    pub failover_timeout: Duration,
    /// Whether agents store their executors on disk, so that executors survive an agent's restart. Default: yes.
    pub checkpoint: bool,
    /// The host name that the master displays for this framework. Default: this machine's.
    pub hostname: Option<String>,
    /// The URL of a web page about this framework. Default: none.
    pub webui_url: Option<String>,
    /// The framework's labels. Default: none.
    pub labels: Vec<(String, Option<String>)>,
    /// The file that keeps the framework's id and its executors, so that the next run can continue with them. Default:
    /// none. If the program is killed between the first subscription and the writing of the file, the master keeps a
    /// framework without executors for the failover timeout.
    pub framework_id_file: Option<PathBuf>,
    /// What the thread that writes the framework id file calls before it writes the file anew. Tests block there, in
    /// place of a disk that hangs. Default: none.
    #[doc(hidden)]
    pub before_rewrite: Option<fn(&Path)>,
    /// The encoding of messages. Default: protobuf.
    pub encoding: Encoding,
    /// The maximum length of a record from the master, in bytes: 1 KiB to 1 GiB. Default: 64 MiB.
    pub record_bytes_max: usize,
    /// A PEM file of certificate authorities that are trusted in addition to the system's. Default: none.
    pub ca_file: Option<PathBuf>,
    /// Whether only the authorities of [`ca_file`](Self::ca_file) are trusted, and not the system's. Default: no.
    pub ca_file_only: bool,
    /// The certificate that is shown to masters which ask for one. Refused if the masters aren't at `https://`.
    /// Default: none.
    pub client_certificate: Option<ClientCertificate>,
    /// The maximum time to connect, and the maximum time to answer a call, at most a year. Default: 10 s. When the
    /// manager is stopped, tearing the framework down may take twice as long: see [`MesosConfig::stop_timeout`].
    pub call_timeout: Duration,
    /// The maximum time until the first subscription, at most a year. The last attempt begins at its end: looking up
    /// the master, its answer and its first event may take up to a [`call_timeout`](Self::call_timeout) each, and
    /// redirections more. Then the manager gives up. Default: 60 s.
    pub subscribe_timeout: Duration,
    /// The number of consecutive heartbeats that may be missing before the subscription counts as broken, at least 1.
    /// Default: 5. Mesos sends a heartbeat every 15 s.
    pub heartbeats_missed_max: u32,
    /// What happens to the framework when the manager is stopped. Default: it is torn down.
    pub at_end: AtEnd,
    /// The constraint that offered agents must meet, as far as the master can check it. Default: all agents pass.
    pub constraint: Constraint,
    /// Whether an agent may have several attributes of the same name; if so, the master can check less of the
    /// constraint. Default: it may.
    pub duplicate_attributes: DuplicateAttributes,
    /// The minimum resources of an offer. Default: none.
    pub min_offer_resources: MinOfferResources,
    /// Whether agents with GPUs are offered. Default: no.
    pub gpus: bool,
    /// Whether revocable resources are offered. Default: no.
    pub revocable: bool,
}

/// What happens to a framework when its manager is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtEnd {
    /// The cluster removes the framework and ends its executors.
    #[default]
    TearDown,
    /// The cluster keeps the framework and its executors for the failover timeout, so that the next run can continue
    /// with them. [`Engine::shutdown`](crate::engine::Engine::shutdown) kills all executors before it stops the
    /// manager, so only those remain that have not ended by its timeout. To leave all of them, drop the engine instead.
    Leave,
}

/// The minimum resources of an executor. The master makes no offers with less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinOfferResources {
    /// Cores.
    pub cores: MilliCpus,
    /// Memory.
    pub memory: Mebibytes,
    /// GPUs.
    pub gpus: Gpus,
}

/// A framework's principal and its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The principal.
    pub principal: String,
    /// The secret. Without one the principal is not authenticated.
    pub secret: Option<Secret>,
}

impl MesosConfig {
    /// The default settings for a framework with this name.
    #[must_use]
    pub fn new(masters: Masters, name: impl Into<String>) -> MesosConfig {
        MesosConfig {
            masters,
            name: name.into(),
            user: None,
            roles: vec![DEFAULT_ROLE.to_owned()],
            credential: None,
            secret_over_plain_http: false,
            failover_timeout: Duration::ZERO,
            checkpoint: true,
            hostname: None,
            webui_url: None,
            labels: Vec::new(),
            framework_id_file: None,
            before_rewrite: None,
            encoding: Encoding::default(),
            record_bytes_max: 64 << 20,
            ca_file: None,
            ca_file_only: false,
            client_certificate: None,
            call_timeout: Duration::from_secs(10),
            subscribe_timeout: Duration::from_secs(60),
            heartbeats_missed_max: 5,
            at_end: AtEnd::default(),
            constraint: Constraint::default(),
            duplicate_attributes: DuplicateAttributes::default(),
            min_offer_resources: MinOfferResources::default(),
            gpus: false,
            revocable: false,
        }
    }

    /// Sets the user that executors run as; see [`user`](Self::user).
    #[must_use]
    pub fn with_user(self, user: impl Into<String>) -> MesosConfig {
        MesosConfig { user: Some(user.into()), ..self }
    }

    /// Sets the roles to which resources are offered; see [`roles`](Self::roles).
    #[must_use]
    pub fn with_roles(self, roles: Vec<String>) -> MesosConfig {
        MesosConfig { roles, ..self }
    }

    /// Sets the principal as which the framework authenticates, and its secret; see [`credential`](Self::credential).
    #[must_use]
    pub fn with_credential(self, credential: Credential) -> MesosConfig {
        MesosConfig { credential: Some(credential), ..self }
    }

    /// Sets how long the cluster keeps executors after the framework has disconnected; see
    /// [`failover_timeout`](Self::failover_timeout).
    #[must_use]
    pub fn with_failover_timeout(self, failover_timeout: Duration) -> MesosConfig {
        MesosConfig { failover_timeout, ..self }
    }

    /// Sets the file that keeps the framework's id and its executors; see
    /// [`framework_id_file`](Self::framework_id_file).
    #[must_use]
    pub fn with_framework_id_file(self, framework_id_file: impl Into<PathBuf>) -> MesosConfig {
        MesosConfig { framework_id_file: Some(framework_id_file.into()), ..self }
    }

    /// Sets a file of further certificate authorities; see [`ca_file`](Self::ca_file).
    #[must_use]
    pub fn with_ca_file(self, ca_file: impl Into<PathBuf>) -> MesosConfig {
        MesosConfig { ca_file: Some(ca_file.into()), ..self }
    }

    /// Sets the certificate for masters that demand one; see [`client_certificate`](Self::client_certificate).
    #[must_use]
    pub fn with_client_certificate(self, client_certificate: ClientCertificate) -> MesosConfig {
        MesosConfig { client_certificate: Some(client_certificate), ..self }
    }

    /// Sets the maximum time to connect, and to answer a call; see [`call_timeout`](Self::call_timeout).
    #[must_use]
    pub fn with_call_timeout(self, call_timeout: Duration) -> MesosConfig {
        MesosConfig { call_timeout, ..self }
    }

    /// Sets the maximum time until the first subscription; see [`subscribe_timeout`](Self::subscribe_timeout).
    #[must_use]
    pub fn with_subscribe_timeout(self, subscribe_timeout: Duration) -> MesosConfig {
        MesosConfig { subscribe_timeout, ..self }
    }

    /// Sets what happens to the framework when the manager is stopped; see [`at_end`](Self::at_end).
    #[must_use]
    pub fn with_at_end(self, at_end: AtEnd) -> MesosConfig {
        MesosConfig { at_end, ..self }
    }

    /// Sets the framework's labels; see [`labels`](Self::labels).
    #[must_use]
    pub fn with_labels(self, labels: Vec<(String, Option<String>)>) -> MesosConfig {
        MesosConfig { labels, ..self }
    }

    /// Restricts offers to those that a kernel with `config` can use: sets the constraint, the minimum resources, and
    /// whether GPUs and revocable resources are offered.
    #[must_use]
    pub fn for_kernel(mut self, config: &Config) -> MesosConfig {
        self.constraint = config.constraint.clone();
        self.min_offer_resources = MinOfferResources {
            cores: config.cores_at_least(),
            memory: config.memory_taken(),
            gpus: config.gpus_at_least(),
        };
        self.gpus = config.gpu_cap > Gpus::ZERO;
        self.revocable = config.revocable;
        self
    }

    /// How long [`MesosCluster::stop`](super::MesosCluster) may take: two call timeouts for tearing the framework down,
    /// and 10 s for a framework id file on a disk that hangs. An engine waits for it if its
    /// [slack](crate::engine::EngineOptions::shutdown_slack) is at least 4/3 of this, because the stop must be over
    /// after three quarters of the slack: the last quarter is for the observer and the journal. A stop that is given up
    /// leaves the framework to the master.
    ///
    /// ```
    /// use offermill::cluster::mesos::MesosConfig;
    /// use offermill::engine::EngineOptions;
    ///
    /// let mesos = MesosConfig::new("mesos://127.0.0.1:5050".parse()?, "etl");
    /// let mut options = EngineOptions::default();
    /// options.shutdown_slack = mesos.stop_timeout() * 4 / 3; // 40 s
    /// # assert_eq!(options.shutdown_slack.as_secs(), 40);
    /// # Ok::<(), offermill::Error>(())
    /// ```
    #[must_use]
    pub fn stop_timeout(&self) -> Duration {
        self.call_timeout.saturating_mul(2).saturating_add(Duration::from_secs(10))
    }

    /// The framework's role if it has just one, otherwise the default role: the role of offers that name none.
    pub(super) fn only_role(&self) -> &str {
        match self.roles.as_slice() {
            [role] => role,
            _ => DEFAULT_ROLE,
        }
    }

    /// Whether secrets may be sent to the masters: over TLS, or because it is allowed without.
    pub(super) fn may_send_secrets(&self) -> bool {
        self.masters.tls() || self.secret_over_plain_http
    }

    /// Checks each setting, and settings that contradict each other.
    ///
    /// # Errors
    /// If a setting isn't allowed. The error names the setting as the command line does.
    pub fn check(&self) -> Result<(), Error> {
        let MesosConfig { credential, masters, .. } = self;
        for role in &self.roles {
            check_role(role)?;
        }
        if let Some(user) = &self.user
            && (user.is_empty() || user.chars().any(|c| c.is_whitespace() || c.is_control()))
        {
            let allowed = "a name without white space and control characters";
            return Err(Error::setting("user", user, allowed));
        }
        if self.roles.is_empty() {
            return Err(Error::setting("role", "", "at least one"));
        }
        if self.roles.len() > 1 && self.roles.iter().any(|role| role == DEFAULT_ROLE) {
            return Err(Error::setting(
                "role",
                self.roles.join(","),
                "\"*\" alone, or only other roles",
            ));
        }
        if let Some(Credential { principal, secret }) = credential {
            if principal.is_empty()
                || principal.contains(':')
                || principal.chars().any(char::is_control)
            {
                let allowed = "a name without \":\" and control characters";
                return Err(Error::setting("principal", principal, allowed));
            }
            if secret.is_some() && !self.may_send_secrets() {
                let allowed = "https://, as the secret would be sent in clear (or allow that)";
                return Err(Error::setting("master", masters, allowed));
            }
        }
        self.check_tls()?;
        let longest = Duration::from_secs(365 * 24 * 3600);
        if self.failover_timeout > longest * 100 {
            let seconds = format!("{} s", self.failover_timeout.as_secs());
            return Err(Error::setting("failover timeout", seconds, "at most 100 years"));
        }
        for (name, value) in
            [("call timeout", self.call_timeout), ("subscribe timeout", self.subscribe_timeout)]
        {
            if value.is_zero() || value > longest {
                let allowed = "more than 0 and at most a year";
                return Err(Error::setting(name, format!("{} s", value.as_secs_f64()), allowed));
            }
        }
        if !(1024..=1 << 30).contains(&self.record_bytes_max) {
            let allowed = "from 1 KiB to 1 GiB";
            return Err(Error::setting("longest record", self.record_bytes_max, allowed));
        }
        if self.heartbeats_missed_max == 0 {
            return Err(Error::setting("missed heartbeats", 0, "at least 1"));
        }
        Ok(())
    }

    /// Checks the files for TLS, without reading them.
    fn check_tls(&self) -> Result<(), Error> {
        if let Some(ClientCertificate { certificate_file, .. }) = &self.client_certificate
            && !self.masters.tls()
        {
            let allowed = "for masters at https://, as no other master asks for it";
            return Err(Error::setting(
                "client certificate file",
                certificate_file.display(),
                allowed,
            ));
        }
        if self.ca_file_only && self.ca_file.is_none() {
            let allowed = "false, or there must be a CA file (offermill.mesos.caFile), whose authorities alone are \
                           trusted";
            return Err(Error::setting("CA file only", "true", allowed));
        }
        Ok(())
    }
}

/// Checks a role. Mesos allows `*` alone, or a path of names of which none is empty, `.`, `..` or `*`, begins with `-`,
/// or contains white space or control characters.
fn check_role(role: &str) -> Result<(), Error> {
    let allowed = |part: &str| {
        !matches!(part, "" | "." | ".." | "*")
            && !part.starts_with('-')
            && !part.chars().any(|c| c.is_whitespace() || c.is_control())
    };
    if role == DEFAULT_ROLE || role.split('/').all(allowed) {
        return Ok(());
    }
    let allowed = "a path of names with \"/\" between, of which none is empty, \".\", \"..\" or \"*\", begins with \
                   \"-\", or contains white space or control characters; or \"*\" alone";
    Err(Error::setting("role", role, allowed))
}
