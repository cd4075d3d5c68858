//! [`RunCleaner`]: deletes what a run that was killed has left, its pods and its lease.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use super::access::{self, AccessNeeds};
use super::api::Api;
use super::clean_up::clean_up;
use super::client;
use super::config::{KubernetesConfig, PodsAtEnd};
use super::lease::{Lease, LeaseError};
use super::names::creator;
use super::objects::PodPage;
use crate::error::Error;

/// How long a run may take to end after it has noticed that it doesn't hold its lease any more.
const NOTICE_TIME: Duration = Duration::from_secs(1);

/// How long the deletion may take.
const DELETION_TIMEOUT: Duration = Duration::from_secs(30);

/// Looks for what a run has left, and deletes it. Its calls block.
pub struct RunCleaner {
    runtime: Runtime,
    api: Api,
    config: KubernetesConfig,
    pods: Vec<String>,
    lease: Option<RunLease>,
}

/// The lease of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunLease {
    /// The program that holds it; empty if none does.
    pub holder: String,
    /// After how long without a renewal it has expired.
    pub duration: Duration,
}

/// Why nothing, or not all, was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CleanError {
    /// The run is alive: a program renews its lease.
    Alive {
        /// The program that holds the lease.
        holder: String,
    },
    /// The cluster refused something, or didn't answer.
    Failed {
        /// What is left, and why.
        why: String,
    },
}

impl RunCleaner {
    /// Connects, and looks for pods and the lease of the run of [`KubernetesConfig::name`]. Of the settings, those of
    /// the connection and the namespace have an effect.
    ///
    /// # Errors
    /// If a value isn't allowed, if the API server isn't reached within [`KubernetesConfig::connect_timeout`], or if it
    /// refuses requests.
    pub fn connect(config: &KubernetesConfig) -> Result<RunCleaner, Error> {
        RunCleaner::connect_telling(config, &mut |_| {})
    }

    /// As [`RunCleaner::connect`]. If the API server doesn't answer within a second, `waits` is told once why.
    ///
    /// # Errors
    /// As [`RunCleaner::connect`].
    pub fn connect_telling(
        config: &KubernetesConfig,
        waits: &mut dyn FnMut(&str),
    ) -> Result<RunCleaner, Error> {
        config.check_connection()?;
        // Some say already what they are about.
        let failed = |why: String| {
            Error::cluster("Kubernetes", why.strip_prefix("Kubernetes: ").unwrap_or(&why))
        };
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime =
            runtime.map_err(|error| Error::cluster_from("Kubernetes: no event loop", error))?;
        let connecting = async {
            let api = client::connect(config).await?;
            access::check(&api, config.connect_timeout, AccessNeeds::default(), waits).await?;
            let (pods, lease) = (pods(&api).await?, lease(&api, &config.name).await?);
            Ok((api, pods, lease))
        };
        let (api, pods, lease) = runtime.block_on(connecting).map_err(failed)?;
        Ok(RunCleaner { runtime, api, config: config.clone(), pods, lease })
    }

    /// The name of the run.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The namespace in which was looked.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.api.namespace()
    }

    /// The names of the run's pods, except those that are being deleted.
    #[must_use]
    pub fn pods(&self) -> &[String] {
        &self.pods
    }

    /// The run's lease, if there is one.
    #[must_use]
    pub fn lease(&self) -> Option<&RunLease> {
        self.lease.as_ref()
    }

    /// Whether nothing is left of the run.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.pods.is_empty() && self.lease.is_none()
    }

    /// Deletes the pods and the lease, which it takes over first, so that no run of the name begins meanwhile. If a
    /// program holds the lease, waits for its expiry; or, if `is_forced`, takes it at once, and gives a run that is
    /// alive the time of a renewal to notice that, and to end.
    ///
    /// # Errors
    /// If the run is alive; and if something couldn't be deleted.
    pub fn delete(self, is_forced: bool) -> Result<(), CleanError> {
        let RunCleaner { runtime, api, mut config, lease, .. } = self;
        (config.at_end, config.keeps_ended) = (PodsAtEnd::Delete, false);
        runtime.block_on(async {
            let mut taken = Lease::new(&config.name, &creator(), config.lease_duration);
            let refused = |error| match error {
                LeaseError::Held(holder) => CleanError::Alive { holder },
                LeaseError::Forbidden(why) | LeaseError::Failed(why) => {
                    CleanError::Failed { why: format!("the lease {}: {why}", config.name) }
                }
            };
            let lasts = lease.as_ref().map_or(Duration::ZERO, |it| it.duration);
            let is_held = lease.is_some_and(|it| !it.holder.is_empty());
            let mut since = match is_forced {
                true => taken.seize(&api).await.map_err(refused)?,
                false => {
                    let patience = lasts + config.request_timeout;
                    taken.acquire(&api, patience).await.map_err(refused)?
                }
            };
            if is_forced && is_held {
                // A run that is alive would replace pods that it misses.
                sleep(lasts / 3 + NOTICE_TIME).await;
                since = taken.renew(&api).await.map_err(refused)?;
            }
            delete_files(&api).await.map_err(|why| CleanError::Failed { why })?;
            let (valid_until, deadline) =
                (since + taken.duration(), Instant::now() + DELETION_TIMEOUT);
            let cleaned = clean_up(&api, &config, taken, valid_until, deadline).await;
            cleaned.map_err(|why| CleanError::Failed { why })
        })
    }
}

/// Deletes what is left of a run's files. Without the right to do so they are left to the server, which deletes them
/// with the lease.
async fn delete_files(api: &Api) -> Result<(), String> {
    let answer = api.delete_config_maps().await.map_err(|why| format!("its files: {why}"))?;
    match answer.status {
        403 | 404 => Ok(()),
        _ if answer.is_success() => Ok(()),
        _ => Err(format!("its files: {}", answer.why())),
    }
}

/// The names of the run's pods that nobody deletes yet.
async fn pods(api: &Api) -> Result<Vec<String>, String> {
    let (mut names, mut next) = (Vec::new(), String::new());
    loop {
        let answer = api.page_of_all(&next).await?;
        if !answer.is_success() {
            return Err(answer.why());
        }
        let page: PodPage = answer.read()?;
        // Those that are being deleted go by themselves.
        let left = page.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        names.extend(left.map(|pod| pod.metadata.name));
        next = page.metadata.next;
        if next.is_empty() {
            return Ok(names);
        }
    }
}

async fn lease(api: &Api, name: &str) -> Result<Option<RunLease>, String> {
    let answer = api.lease(name).await?;
    match answer.status {
        404 => Ok(None),
        _ if answer.is_success() => {
            let (holder, duration) = Lease::read_holder(&answer)?;
            Ok(Some(RunLease { holder, duration }))
        }
        _ => Err(answer.why()),
    }
}

impl fmt::Debug for RunCleaner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunCleaner { pods, lease, .. } = self;
        let mut shown = f.debug_struct("RunCleaner");
        shown.field("pods", pods).field("lease", lease).finish_non_exhaustive()
    }
}
