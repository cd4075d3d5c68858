//! Lists the nodes of the cluster and then watches them, for runs whose constraint is checked on their labels. As with
//! [pods](super::reflector), a watch goes on where the last one ended, and only versions that the server has forgotten
//! lead to another list. Of a node only its metadata is read, which all objects have.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::sleep;

use super::api::Api;
use super::objects::{Metadata, PodPage};
use super::reflector::{FRUITLESS_MAX, Observation, Unheard, WatchProgress, next_bytes};
use super::watch_stream::{LineTooLong, WatchEvent, WatchLineReader};
use crate::backoff::Backoff;

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// How long a watch must live to count as one.
const WATCH_WORTHWHILE: Duration = Duration::from_secs(1);

/// Why a watch doesn't go on from its version.
enum Stopped {
    Unheard,
    /// The nodes must be listed again.
    Expired,
    /// It may go on.
    Failed(String),
}

impl From<Unheard> for Stopped {
    fn from(_: Unheard) -> Stopped {
        Stopped::Unheard
    }
}

impl From<LineTooLong> for Stopped {
    fn from(_: LineTooLong) -> Stopped {
        Stopped::Expired
    }
}

/// Lists and watches the nodes.
pub(super) struct NodeReflector {
    pub(super) api: Api,
    pub(super) seen: mpsc::Sender<Observation>,
}

impl NodeReflector {
    /// Runs until the receiver is dropped.
    pub(super) async fn run(self) {
        let _unheard = self.reflect().await;
    }

    async fn reflect(&self) -> Result<(), Unheard> {
        let mut backoff = Backoff::default();
        loop {
            let mut version = match self.pages().await {
                Ok((nodes, version)) => {
                    self.send(Observation::Nodes(nodes)).await?;
                    version
                }
                Err(why) => {
                    self.send(Observation::NodesUnread(why)).await?;
                    String::new()
                }
            };
            let mut fruitless = 0;
            while !version.is_empty() {
                let began = Instant::now();
                let mut progress = WatchProgress::default();
                let stopped = self.watch(&mut version, &mut progress).await;
                fruitless = match progress {
                    WatchProgress { has_shown: true, .. } => 0,
                    // Silent to its end, or until it was given up or broke.
                    WatchProgress { has_begun, .. } => fruitless + u32::from(has_begun),
                };
                if fruitless >= FRUITLESS_MAX {
                    break;
                }
                if began.elapsed() >= WATCH_WORTHWHILE {
                    backoff.reset();
                }
                match stopped {
                    Ok(()) if began.elapsed() >= WATCH_WORTHWHILE => continue,
                    Ok(()) => {}
                    Err(Stopped::Unheard) => return Err(Unheard),
                    Err(Stopped::Expired) => version.clear(),
                    Err(Stopped::Failed(why)) => {
                        self.send(Observation::NodesUnread(why)).await?;
                    }
                }
                sleep(backoff.next().min(PAUSE_MAX)).await;
            }
            sleep(backoff.next().min(PAUSE_MAX)).await;
        }
    }

    async fn send(&self, seen: Observation) -> Result<(), Unheard> {
        self.seen.send(seen).await.map_err(|_| Unheard)
    }

    /// All nodes, and the version of the list.
    async fn pages(&self) -> Result<(Vec<Metadata>, String), String> {
        let (mut nodes, mut next) = (Vec::new(), String::new());
        loop {
            let answer = self.api.nodes_page(&next).await?;
            if !answer.is_success() {
                return Err(answer.why());
            }
            let page: PodPage = answer.read()?;
            nodes.extend(page.items.into_iter().map(|node| node.metadata));
            if page.metadata.next.is_empty() {
                return Ok((nodes, page.metadata.resource_version));
            }
            next = page.metadata.next;
        }
    }

    /// Watches from a version, which it advances.
    async fn watch(
        &self,
        version: &mut String,
        progress: &mut WatchProgress,
    ) -> Result<(), Stopped> {
        let mut body = match self.api.watch_nodes(version).await {
            Ok((_, Some(body))) => body,
            Ok((answer, None)) if answer.status == 410 => return Err(Stopped::Expired),
            Ok((answer, None)) => return Err(Stopped::Failed(answer.why())),
            Err(why) => return Err(Stopped::Failed(why)),
        };
        progress.has_begun = true;
        let mut lines = WatchLineReader::default();
        while let Some(bytes) = next_bytes(&mut body).await.map_err(Stopped::Failed)? {
            let mut events = Vec::new();
            lines.push(&bytes, |line| {
                events.push(WatchEvent::read(line).map_err(|_| Stopped::Expired)?);
                Ok::<(), Stopped>(())
            })?;
            for event in events {
                progress.has_shown |= event.is_progress();
                self.apply(event, version).await?;
            }
        }
        Ok(())
    }

    async fn apply(&self, event: WatchEvent, version: &mut String) -> Result<(), Stopped> {
        match event {
            WatchEvent::Seen(node) => {
                version.clone_from(&node.metadata.resource_version);
                self.send(Observation::Node(Box::new(node.metadata))).await?;
            }
            WatchEvent::Deleted(node) => {
                version.clone_from(&node.metadata.resource_version);
                self.send(Observation::NodeDeleted(node.metadata.name)).await?;
            }
            WatchEvent::Bookmark(read) => *version = read,
            WatchEvent::Expired => return Err(Stopped::Expired),
            WatchEvent::Failed(why) => return Err(Stopped::Failed(why)),
            WatchEvent::Other => {}
        }
        Ok(())
    }
}
