//! The end of a run. Each step is tried, even if others fail:
//! 1. The lease is renewed. If that fails although no other run holds it, the run goes on only while it surely holds
//!    the lease; past that, only if the server says that it does. Else the pods may be another run's, and all is left.
//! 2. The run's pods are deleted, if they aren't to stay. One that comes into being later has the lease as its owner,
//!    and goes with it.
//! 3. The lease is deleted, in the version that this run has written; or given back, if pods stay.
//! 4. The config map with the run's files is deleted, if no pod stays. It, too, has the lease as its owner.

use std::time::Instant;

use tokio::time::timeout_at;

use super::api::{Api, ApiAnswer};
use super::config::{KubernetesConfig, PodsAtEnd};
use super::lease::{Lease, LeaseError};

/// What is said of a step whose time is up.
const TOO_SLOW: &str = "no answer in time";

/// Cleans up after a run, which surely holds its lease until `valid_until`, by `deadline`.
///
/// # Errors
/// Says what is left.
pub(super) async fn clean_up(
    api: &Api,
    config: &KubernetesConfig,
    mut lease: Lease,
    valid_until: Instant,
    deadline: Instant,
) -> Result<(), String> {
    let now = Instant::now();
    let third = deadline.saturating_duration_since(now) / 3;
    // Each step leaves the next ones their time, because the lease's end ends the pods, too.
    let by = [now + third, now + 2 * third, deadline];
    check_lease(api, &mut lease, valid_until, by[0]).await?;
    let steps = match config.at_end {
        PodsAtEnd::Leave => {
            vec![("release of the lease", limited(lease.release(api), deadline).await)]
        }
        // Pods that stay have the lease as their owner.
        PodsAtEnd::Delete if config.keeps_ended => vec![
            ("deletion of the pods", deleted(within(api.delete_pods(false), by[1]).await)),
            ("release of the lease", limited(lease.release(api), deadline).await),
        ],
        PodsAtEnd::Delete => vec![
            ("deletion of the pods", deleted(within(api.delete_pods(true), by[1]).await)),
            ("deletion of the lease", limited(lease.delete(api), deadline).await),
        ],
    };
    let mut steps = steps;
    if config.at_end == PodsAtEnd::Delete && !config.keeps_ended && !config.files.is_empty() {
        let maps = within(api.delete_config_maps(), deadline).await;
        steps.push(("deletion of the files", deleted(maps)));
    }
    let failures: Vec<String> = steps
        .into_iter()
        .filter_map(|(what, done)| Some(format!("{what}: {}", done.err()?)))
        .collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Makes sure that the run holds its lease.
async fn check_lease(
    api: &Api,
    lease: &mut Lease,
    valid_until: Instant,
    by: Instant,
) -> Result<(), String> {
    let left = |holder| format!("{holder} holds the run's lease: pods and lease were left");
    let half = by.saturating_duration_since(Instant::now()) / 2;
    let renewed = timeout_at((by - half).into(), lease.renew(api)).await;
    match renewed.unwrap_or_else(|_| Err(LeaseError::Failed(TOO_SLOW.to_owned()))) {
        Ok(_) => Ok(()),
        Err(LeaseError::Held(holder)) => Err(left(holder)),
        Err(_) if Instant::now() < valid_until => Ok(()),
        Err(_) => {
            let checked = timeout_at(by.into(), lease.check_holder(api)).await;
            let checked = checked.unwrap_or_else(|_| Err(LeaseError::Failed(TOO_SLOW.to_owned())));
            checked.map_err(|error| match error {
                LeaseError::Held(holder) => left(holder),
                LeaseError::Forbidden(why) | LeaseError::Failed(why) => {
                    format!("the run's lease has expired, and can't be read ({why}): pods and lease were left")
                }
            })
        }
    }
}

fn deleted(answer: Result<ApiAnswer, String>) -> Result<(), String> {
    let answer = answer?;
    if answer.is_success() || answer.status == 404 { Ok(()) } else { Err(answer.why()) }
}

async fn within<T>(
    request: impl Future<Output = Result<T, String>>,
    by: Instant,
) -> Result<T, String> {
    timeout_at(by.into(), request).await.unwrap_or_else(|_| Err(TOO_SLOW.to_owned()))
}

async fn limited(
    request: impl Future<Output = Result<(), LeaseError>>,
    by: Instant,
) -> Result<(), String> {
    let said = async {
        request.await.map_err(|error| match error {
            LeaseError::Held(why) | LeaseError::Forbidden(why) | LeaseError::Failed(why) => why,
        })
    };
    within(said, by).await
}
