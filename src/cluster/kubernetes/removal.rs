//! The deletion of one pod. It is repeated while the server can't be asked: the pod's uid makes sure that no other pod
//! of the name is deleted.

use std::time::Duration;

use super::api::Api;
use super::lease_validity::LeaseValidity;
use super::pods::PodRef;
use crate::backoff::Backoff;

/// The maximum number of attempts: the engine repeats kills, and each list reports ends again.
const ATTEMPTS_MAX: u32 = 8;

/// The longest pause that a server may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The end of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RemovalEnd {
    /// The server deletes it; a watch shows when it is gone.
    Accepted,
    /// There is no such pod.
    Missing,
    /// It wasn't deleted.
    Failed(String),
}

/// Deletes a pod, within `grace` seconds. Waits while the run's lease isn't held: the pod may be another run's.
pub(super) async fn remove(
    api: &Api,
    pod: &PodRef,
    grace: Option<u64>,
    validity: &mut LeaseValidity,
) -> RemovalEnd {
    let mut backoff = Backoff::default();
    let mut why = String::new();
    for _attempt in 0..ATTEMPTS_MAX {
        let pause = match validity.during(api.delete_pod(pod, grace)).await {
            Ok(answer) if answer.is_success() => return RemovalEnd::Accepted,
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
