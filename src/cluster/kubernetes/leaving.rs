//! Pods of former runs that were being deleted when this run began. They are no executors of this run, and their ends
//! are nobody's any more; but they take room until they are gone.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::objects::Pod;
use super::pod_state;

/// How long such a pod counts as one that takes room: the usual grace period, and some more. That of a node that is
/// silent stays for as long as the node does.
const LEAVING_MAX: Duration = Duration::from_secs(40);

/// Pods that are being deleted.
#[derive(Debug, Default)]
pub(super) struct LeavingPods {
    /// By uid: until when each takes room.
    until: HashMap<String, Instant>,
}

impl LeavingPods {
    pub(super) fn insert(&mut self, pod: &Pod, now: Instant) {
        self.until.insert(pod.metadata.uid.clone(), now + LEAVING_MAX);
    }

    /// The pod has changed. False if it is none of these.
    pub(super) fn show(&mut self, pod: &Pod, now: Instant) -> bool {
        let Some(until) = self.until.get_mut(&pod.metadata.uid) else { return false };
        // What has ended takes no room.
        if pod_state::has_ended(pod) {
            *until = now;
        }
        true
    }

    /// The pod is gone.
    pub(super) fn remove(&mut self, pod: &Pod) {
        self.until.remove(&pod.metadata.uid);
    }

    /// All pods that aren't in this list are gone.
    pub(super) fn listed(&mut self, pods: &[Pod]) {
        let uids: HashSet<&String> = pods.iter().map(|pod| &pod.metadata.uid).collect();
        self.until.retain(|uid, _| uids.contains(uid));
    }

    /// The number of those that take room.
    pub(super) fn count(&self, now: Instant) -> usize {
        self.until.values().filter(|until| **until > now).count()
    }

    /// When that number becomes less, if nothing else happens.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.until.values().copied().filter(|until| *until > now).min()
    }
}
