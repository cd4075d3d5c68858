//! How a framework presents itself to a Mesos master, and how it is reached.

use std::path::PathBuf;
use std::time::Duration;

use super::masters::Masters;
use crate::config::{Config, ExecutorGpus};
use crate::constraint::{Constraint, Repeats};
use crate::error::Error;
use crate::launch::Secret;
use crate::mesos_v1::codec::Encoding;
use crate::offer::DEFAULT_ROLE;
use crate::resources::{Gpus, Mebibytes, MilliCpus};

/// The settings of a [`MesosCluster`](super::MesosCluster). [`MesosConfig::new`] has a default for each but the masters
/// and the name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MesosConfig {
    /// Where the masters are.
    pub masters: Masters,
    /// The framework's name, for people.
    pub name: String,
    /// The user that executors run as on the agents. Default: who runs this program.
    pub user: String,
    /// The roles that resources are offered to, at least one. Default: `*`.
    pub roles: Vec<String>,
    /// Who this framework is. Default: nobody in particular.
    pub credential: Option<Credential>,
    /// Whether the secret may be sent over a connection that isn't encrypted. Default: no.
    pub secret_over_plain_http: bool,
    /// How long the cluster keeps executors when this framework is gone. Default 0: it ends them at once.
    pub failover_timeout: Duration,
    /// Whether agents write down what they run, so that executors survive an agent's restart. Default: yes.
    pub checkpoint: bool,
    /// The host name that the master shows for this framework. Default: this machine's.
    pub hostname: Option<String>,
    /// A web page about this framework. Default: none.
    pub webui_url: Option<String>,
    /// Labels of the framework.
    pub labels: Vec<(String, Option<String>)>,
    /// Where the framework's id and its executors are kept, so that the next run goes on with them. Default: nowhere.
    pub framework_id_file: Option<PathBuf>,
    /// How messages are written. Default: protobuf.
    pub encoding: Encoding,
    /// The longest record that the master may send, in bytes. Default 64 MiB.
    pub record_bytes_max: usize,
    /// Certificates that a master's may be signed with, in PEM, beside the system's. Default: none.
    pub ca_file: Option<PathBuf>,
    /// How long a connection may take to be made, and a call to be answered. Default 10 s.
    /// When the manager is stopped, tearing the framework down may take twice as long.
    pub call_timeout: Duration,
    /// How long the masters are tried for before the first subscription is given up. Default 60 s.
    pub subscribe_timeout: Duration,
    /// So many heartbeats may fail to come before the subscription is taken for dead. Default 5; Mesos sends one each
    /// 15 s.
    pub heartbeats_missed_max: u32,
    /// What becomes of the framework when the manager is stopped. Default: it is torn down.
    pub at_end: AtEnd,
    /// Only agents that meet it are offered, as far as the master can tell. Default: all.
    pub constraint: Constraint,
    /// Whether an agent may have several attributes of one name: then the master can be told less of the constraint.
    /// Default: it may.
    pub repeats: Repeats,
    /// Only offers of so much are made. Default: any.
    pub least: Least,
    /// Whether agents with GPUs are offered at all. Default: no.
    pub gpus: bool,
    /// Whether resources are offered that Mesos may take back. Default: no.
    pub revocable: bool,
}

/// What becomes of a framework when its manager is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// The cluster ends it, and its executors that still run.
    #[default]
    TearDown,
    /// The cluster keeps it and its executors for the failover timeout, for the next run to take over.
    Leave,
}

/// What an executor needs at least: less isn't worth an offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least {
    /// Cores.
    pub cores: MilliCpus,
    /// Memory.
    pub memory: Mebibytes,
    /// GPUs.
    pub gpus: Gpus,
}

/// Who a framework is, and how it proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The principal.
    pub principal: String,
    /// Its secret; without one the principal is only claimed.
    pub secret: Option<Secret>,
}

impl MesosConfig {
    /// The defaults.
    #[must_use]
    pub fn new(masters: Masters, name: impl Into<String>) -> MesosConfig {
        MesosConfig {
            masters,
            name: name.into(),
            user: std::env::var("USER")
                .ok()
                .filter(|user| !user.is_empty())
                .unwrap_or_else(|| "root".to_owned()),
            roles: vec![DEFAULT_ROLE.to_owned()],
            credential: None,
            secret_over_plain_http: false,
            failover_timeout: Duration::ZERO,
            checkpoint: true,
            hostname: None,
            webui_url: None,
            labels: Vec::new(),
            framework_id_file: None,
            encoding: Encoding::default(),
            record_bytes_max: 64 << 20,
            ca_file: None,
            call_timeout: Duration::from_secs(10),
            subscribe_timeout: Duration::from_secs(60),
            heartbeats_missed_max: 5,
            at_end: AtEnd::default(),
            constraint: Constraint::default(),
            repeats: Repeats::default(),
            least: Least::default(),
            gpus: false,
            revocable: false,
        }
    }

    /// The same, asking only for what a kernel with `config` could use: its constraint, the size of its executors, GPUs
    /// and revocable resources only if it takes some.
    #[must_use]
    pub fn for_kernel(mut self, config: &Config) -> MesosConfig {
        self.constraint = config.constraint.clone();
        self.least = Least {
            cores: config.cores_at_least(),
            memory: config.memory_taken(),
            gpus: match config.executor_gpus {
                ExecutorGpus::WhatThereIs => Gpus::ZERO,
                ExecutorGpus::Exactly(gpus) => gpus,
            },
        };
        self.gpus = config.gpu_cap > Gpus::ZERO;
        self.revocable = config.revocable;
        self
    }

    /// The framework's role if it has just one, else the default: what offers that don't say are for.
    pub(super) fn only_role(&self) -> &str {
        match self.roles.as_slice() {
            [role] => role,
            _ => DEFAULT_ROLE,
        }
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// When one of them isn't allowed; the error names it as the command line does.
    pub fn check(&self) -> Result<(), Error> {
        let MesosConfig { credential, masters, .. } = self;
        for role in &self.roles {
            check_role(role)?;
        }
        if self.roles.is_empty() {
            return Err(Error::setting("role", "", "at least one"));
        }
        if self.roles.len() > 1 && self.roles.iter().any(|role| role == DEFAULT_ROLE) {
            return Err(Error::setting("role", self.roles.join(","), "\"*\" alone, or others"));
        }
        if let Some(Credential { principal, secret }) = credential {
            if principal.is_empty()
                || principal.contains(':')
                || principal.chars().any(char::is_control)
            {
                let allowed = "a name without \":\" and control characters";
                return Err(Error::setting("principal", principal, allowed));
            }
            let in_clear = !masters.tls() && !self.secret_over_plain_http;
            if secret.is_some() && in_clear {
                let allowed = "https://, as the secret would be sent in clear (or allow that)";
                return Err(Error::setting("master", masters, allowed));
            }
        }
        let longest = Duration::from_secs(365 * 24 * 3600);
        if self.failover_timeout > longest * 100 {
            let seconds = format!("{} s", self.failover_timeout.as_secs());
            return Err(Error::setting("failover timeout", seconds, "at most 100 years"));
        }
        for (name, value) in
            [("call timeout", self.call_timeout), ("subscribe timeout", self.subscribe_timeout)]
        {
            if value.is_zero() || value > longest {
                let allowed = "longer than nothing, and at most a year";
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
}

/// What Mesos allows as a role: a path of names, none of which is empty, `.`, `..` or `*`, begins with `-`, or has
/// white space or a backspace; or `*` alone.
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
                   \"-\" or has white space; or \"*\" alone";
    Err(Error::setting("role", role, allowed))
}
