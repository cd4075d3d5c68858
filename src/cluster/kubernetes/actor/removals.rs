//! The removal of pods, and the look at those that aren't shown any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{KubernetesActor, RequestEnd};
use crate::cluster::kubernetes::confirmation::confirm_gone;
use crate::cluster::kubernetes::pod_state::PodState;
use crate::cluster::kubernetes::pods::PodRef;
use crate::cluster::kubernetes::removal::{Removal, remove};

impl KubernetesActor {
    /// Removes a pod.
    pub(super) fn remove(&mut self, executor: String, pod: PodRef, how: Removal) {
        self.remove_after(executor, pod, how, Duration::ZERO);
    }

    /// Removes a pod after a pause.
    pub(super) fn remove_after(
        &mut self,
        executor: String,
        pod: PodRef,
        how: Removal,
        pause: Duration,
    ) {
        if self.is_refused {
            return;
        }
        if let Some(waiting) = self.removing.get_mut(&pod) {
            *waiting = Some(how);
            return;
        }
        self.removing.insert(pod.clone(), None);
        self.acknowledging += usize::from(how == Removal::Acknowledge);
        let mut validity = self.term.validity();
        let (api, removals) = (self.api.clone(), Arc::clone(&self.removals));
        self.work.spawn(async move {
            sleep(pause).await;
            // Closed never: the permit is there in any case.
            let _turn = removals.acquire().await;
            let removed = remove(&api, &pod, &how, &mut validity).await;
            RequestEnd::Removed { executor, pod, how, removed }
        });
    }

    /// Finds out whether a pod is gone that isn't shown any more.
    pub(super) fn confirm(&mut self, executor: String, pod: PodRef, last: Option<PodState>) {
        if self.is_refused || !self.confirming.insert(pod.clone()) {
            return;
        }
        let mut validity = self.term.validity();
        let (api, turns) = (self.api.clone(), Arc::clone(&self.removals));
        self.work.spawn(async move {
            confirm_gone(&api, &pod, &turns, &mut validity).await;
            RequestEnd::ConfirmedGone { executor, pod, last }
        });
    }
}
