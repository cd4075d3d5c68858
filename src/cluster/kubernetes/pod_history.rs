//! What has happened to the pod of one name since a version: whether it was created, though it isn't there.
//!
//! A watch that begins at the version shows it, and is given up after a moment. If the server doesn't know the version
//! any more, nothing is known.

use std::time::Duration;

use kube::client::Body;
use tokio::time::timeout;

use super::api::Api;
use super::objects::Pod;
use super::reflector::next_bytes;
use super::watch_stream::{LineTooLong, WatchEvent, WatchLineReader};

/// How long the watch is listened to. What has happened before, it shows at once.
const LISTENED: Duration = Duration::from_millis(500);

/// What has happened to a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PodHistory {
    /// Nothing that is known.
    Unknown,
    /// It was created, and isn't deleted yet.
    Exists(Box<Pod>),
    /// It was created, perhaps before the version, and deleted. This was its last state.
    Deleted(Box<Pod>),
}

/// Asks what has happened to the pod of this name since the version.
pub(super) async fn history(api: &Api, name: &str, since: &str) -> PodHistory {
    let mut last = PodHistory::Unknown;
    if !since.is_empty()
        && let Ok((_, Some(body))) = api.watch_pod(name, since).await
    {
        let _time_is_up = timeout(LISTENED, read(body, &mut last)).await;
    }
    last
}

/// Reads the watch until it ends, or shows that the pod was deleted.
async fn read(mut body: Body, last: &mut PodHistory) {
    let mut lines = WatchLineReader::default();
    while let Ok(Some(bytes)) = next_bytes(&mut body).await {
        let read = lines.push(&bytes, |line| {
            match WatchEvent::read(line).map_err(|_| LineTooLong)? {
                WatchEvent::Seen(pod) => *last = PodHistory::Exists(pod),
                WatchEvent::Deleted(pod) => *last = PodHistory::Deleted(pod),
                _ => {}
            }
            Ok::<(), LineTooLong>(())
        });
        if read.is_err() || matches!(last, PodHistory::Deleted(_)) {
            return;
        }
    }
}
