//! The look at a pod that a watch or a list has stopped showing. A watch says that a pod is deleted when its labels
//! cease to match, too, and a list lacks it; yet it runs on.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::api::Api;
use super::lease_validity::LeaseValidity;
use super::objects::Pod;
use super::pods::PodRef;
use super::removal::{Removal, RemovalEnd, remove};
use crate::backoff::Backoff;

/// The longest pause between two looks.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// Returns when the pod is gone: no pod has its name, or one with another uid. If it is there, it is deleted, because
/// it can't be watched any more; again if the server refuses that, for a right or a token may be missing for a while.
pub(super) async fn confirm_gone(
    api: &Api,
    pod: &PodRef,
    turns: &Arc<Semaphore>,
    validity: &mut LeaseValidity,
) {
    let mut backoff = Backoff::default();
    let mut is_removed = false;
    loop {
        {
            // Closed never: the permit is there in any case.
            let _turn = turns.acquire().await;
            if let Ok(answer) = api.pod(&pod.name).await {
                let uid = || answer.read::<Pod>().ok().map(|found| found.metadata.uid);
                if answer.status == 404
                    || answer.is_success() && uid().is_some_and(|uid| pod.uid != Some(uid))
                {
                    return;
                }
                if answer.is_success() && !is_removed {
                    let removed = remove(api, pod, &Removal::Delete(None), validity).await;
                    is_removed = !matches!(removed, RemovalEnd::Failed(_));
                    if is_removed {
                        backoff.reset();
                    }
                }
            }
        }
        tokio::time::sleep(backoff.next().min(PAUSE_MAX)).await;
    }
}
