//! The removal of one pod from the run: its deletion, or its label, if pods stay that have ended. It is repeated while
//! the server can't be asked: the pod's uid makes sure that no other pod of the name is deleted or labelled.

use std::time::Duration;

use super::api::Api;
use super::lease_validity::LeaseValidity;
use super::names::ACKNOWLEDGED_LABEL;
use super::pods::PodRef;
use crate::backoff::Backoff;

/// The maximum number of attempts: the engine repeats kills, and each list reports ends again.
const ATTEMPTS_MAX: u32 = 8;

/// The longest pause that a server may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How a pod is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// It is deleted, within this many seconds, or its own grace period.
    Delete(Option<u64>),
    /// It gets this label, if the server takes it at once, and is deleted within this many seconds.
    End { label: (String, String), grace: u64 },
    /// It is deleted if nothing about it has changed since this version: it has no node so far.
    IfUnplaced { version: String },
    /// It is labelled, and stays.
    Acknowledge,
}

/// The end of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemovalEnd {
    /// The server does it; a watch shows when that is done.
    Accepted,
    /// There is no such pod.
    Missing,
    /// It has changed since it was looked at, and stays.
    Changed,
    /// It wasn't removed.
    Failed(String),
}

/// Removes a pod. Waits while the run's lease isn't held: the pod may be another run's.
pub(super) async fn remove(
    api: &Api,
    pod: &PodRef,
    how: &Removal,
    validity: &mut LeaseValidity,
) -> RemovalEnd {
    let request = async || match how {
        Removal::Delete(grace) => api.delete_pod(pod, *grace).await,
        Removal::End { grace, .. } => api.delete_pod(pod, Some(*grace)).await,
        Removal::IfUnplaced { version } => api.delete_unchanged_pod(pod, version).await,
        Removal::Acknowledge => api.label_pod(pod, ACKNOWLEDGED_LABEL, "true").await,
    };
    if let Removal::End { label: (label, value), .. } = how {
        // Its end doesn't wait for it.
        let _labelled = validity.during(api.label_pod(pod, label, value)).await;
    }
    let mut backoff = Backoff::default();
    let mut why = String::new();
    for _attempt in 0..ATTEMPTS_MAX {
        let pause = match validity.during(request()).await {
            Ok(answer) if answer.is_success() => return RemovalEnd::Accepted,
            Ok(answer) if answer.status == 409 && matches!(how, Removal::IfUnplaced { .. }) => {
                return RemovalEnd::Changed;
            }
            // The precondition failed: the name belongs to another pod now.
            Ok(answer) if matches!(answer.status, 404 | 409) => return RemovalEnd::Missing,
            Ok(answer) if answer.status < 500 && answer.status != 429 => {
                return RemovalEnd::Failed(answer.why());
            }
            Ok(answer) => {
                why = answer.why();
                answer.retry_after.map(Duration::from_secs)
            }
            Err(unanswered) => {
                why = unanswered;
                None
            }
        };
        tokio::time::sleep(pause.unwrap_or_else(|| backoff.next()).min(PAUSE_MAX)).await;
    }
    RemovalEnd::Failed(why)
}
