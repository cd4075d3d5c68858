//! Lists the run's pods and then watches them, for as long as the manager runs.
//!
//! * One list, then watches, each from the last version that was read. The server ends a watch after a minute, and
//!   sends a bookmark before, so that the next one begins at a version which it still has.
//! * A watch of which nothing is heard for longer than that is given up: a connection can be dead without an error.
//! * If the server no longer has the version (410, as HTTP status or as an event), the pods are listed again. So it is
//!   if a page of a list has expired, or if an event can't be read.
//! * The pods are listed again after three watches that show nothing. While watches go on nothing else lists them, in a
//!   year either: a server that shows events or bookmarks up to a version has shown all before it.
//! * While the server can't be reached, or ends watches at once, requests are repeated, the first after 0.2 s, then up
//!   to 3 s apart. A watch that shows something, or lives for a second, ends that.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::api::{Api, ApiAnswer, WATCH_SILENCE_MAX, chain};
use super::objects::{Metadata, Pod, PodPage};
use super::watch_stream::{LineTooLong, WatchEvent, WatchLineReader};
use crate::backoff::Backoff;

/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(3);

/// How long a watch must live to count as one, if it has shown nothing.
const WATCH_WORTHWHILE: Duration = Duration::from_secs(1);

/// The maximum number of watches in a row that show nothing, no bookmark either: a server may keep a connection open
/// and forget what is to be sent on it.
pub(super) const FRUITLESS_MAX: u32 = 3;

/// What the reflector has seen.
#[derive(Debug)]
pub(super) enum Observation {
    /// A list is about to begin. It waits for the answer.
    ListBegins(oneshot::Sender<()>),
    /// The pods of the run, all of them.
    Listed(Vec<Pod>),
    /// A watch goes on from there: the server is reachable.
    Watching,
    /// A pod was created or has changed.
    Pod(Box<Pod>),
    /// A pod was deleted.
    Deleted(Box<Pod>),
    /// The server can't be reached, or doesn't answer as it should.
    Unreachable(String),
    /// The server refuses to show the pods, permanently as far as is known.
    Forbidden(String),
    /// The nodes of the cluster, all of them.
    Nodes(Vec<Metadata>),
    /// A node was created or has changed.
    Node(Box<Metadata>),
    /// The node of this name was deleted.
    NodeDeleted(String),
    /// The nodes can't be read.
    NodesUnread(String),
}

/// The manager has ended, and nobody receives what is seen.
pub(super) struct Unheard;

/// What came of a watch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WatchProgress {
    /// The server has accepted it.
    pub(super) has_begun: bool,
    /// It has shown a change or a bookmark.
    pub(super) has_shown: bool,
}

/// How a watch ended.
enum WatchEnd {
    /// At its time, or because the connection broke: the next begins where it ended.
    Resumable(Option<String>),
    /// Its version is of no use any more.
    Expired,
}

/// Lists and watches the pods of a run.
pub(super) struct Reflector {
    pub(super) api: Api,
    pub(super) seen: mpsc::Sender<Observation>,
    /// The last version that was read. Empty before the first list.
    pub(super) version: watch::Sender<String>,
}

impl Reflector {
    /// Runs until the receiver is dropped.
    pub(super) async fn run(self) {
        let _unheard = self.reflect().await;
    }

    async fn reflect(&self) -> Result<(), Unheard> {
        let mut backoff = Backoff::default();
        loop {
            let mut version = self.list(&mut backoff).await?;
            self.version.send_replace(version.clone());
            let mut fruitless = 0;
            while fruitless < FRUITLESS_MAX {
                // A watch without a version would begin anywhere.
                if version.is_empty() {
                    sleep(backoff.next().min(PAUSE_MAX)).await;
                    break;
                }
                let began = Instant::now();
                let mut progress = WatchProgress::default();
                let ended = self.watch(&mut version, &mut progress).await?;
                fruitless = match progress {
                    WatchProgress { has_shown: true, .. } => 0,
                    WatchProgress { has_begun, .. } => fruitless + u32::from(has_begun),
                };
                if progress.has_shown || began.elapsed() >= WATCH_WORTHWHILE {
                    backoff.reset();
                }
                let is_over = matches!(ended, WatchEnd::Expired);
                let is_usual = matches!(ended, WatchEnd::Resumable(None));
                if let WatchEnd::Resumable(Some(why)) = ended {
                    self.send(Observation::Unreachable(why)).await?;
                }
                if !is_usual || began.elapsed() < WATCH_WORTHWHILE {
                    sleep(backoff.next().min(PAUSE_MAX)).await;
                }
                if is_over {
                    break;
                }
            }
        }
    }

    async fn send(&self, seen: Observation) -> Result<(), Unheard> {
        self.seen.send(seen).await.map_err(|_| Unheard)
    }

    /// Lists all pods, until that has succeeded. Returns the list's version.
    async fn list(&self, backoff: &mut Backoff) -> Result<String, Unheard> {
        loop {
            let (begins, may_begin) = oneshot::channel();
            self.send(Observation::ListBegins(begins)).await?;
            may_begin.await.map_err(|_| Unheard)?;
            match self.pages().await {
                Ok((pods, version)) => {
                    self.send(Observation::Listed(pods)).await?;
                    return Ok(version);
                }
                Err(ListError::Forbidden(why)) => self.send(Observation::Forbidden(why)).await?,
                Err(ListError::Failed(why)) => self.send(Observation::Unreachable(why)).await?,
                Err(ListError::Expired) => {}
            }
            sleep(backoff.next().min(PAUSE_MAX)).await;
        }
    }

    async fn pages(&self) -> Result<(Vec<Pod>, String), ListError> {
        let mut pods = Vec::new();
        let mut next = String::new();
        loop {
            let answer = self.api.page(&next).await.map_err(ListError::Failed)?;
            if !answer.is_success() {
                return Err(ListError::of(&answer));
            }
            let page: PodPage = answer.read().map_err(ListError::Failed)?;
            pods.extend(page.items);
            if page.metadata.next.is_empty() {
                return Ok((pods, page.metadata.resource_version));
            }
            next = page.metadata.next;
        }
    }

    /// Watches from a version, which it advances.
    async fn watch(
        &self,
        version: &mut String,
        progress: &mut WatchProgress,
    ) -> Result<WatchEnd, Unheard> {
        let mut body = match self.api.watch(version).await {
            Ok((_, Some(body))) => body,
            Ok((answer, None)) if answer.status == 410 => return Ok(WatchEnd::Expired),
            Ok((answer, None)) => return Ok(WatchEnd::Resumable(Some(answer.why()))),
            Err(why) => return Ok(WatchEnd::Resumable(Some(why))),
        };
        progress.has_begun = true;
        self.send(Observation::Watching).await?;
        let mut lines = WatchLineReader::default();
        loop {
            let bytes = match next_bytes(&mut body).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(WatchEnd::Resumable(None)),
                Err(why) => return Ok(WatchEnd::Resumable(Some(why))),
            };
            let mut events = Vec::new();
            let read = lines.push(&bytes, |line| {
                events.push(WatchEvent::read(line)?);
                Ok::<(), Unreadable>(())
            });
            for event in events {
                progress.has_shown |= event.is_progress();
                if let Some(ended) = self.apply(event, version).await? {
                    return Ok(ended);
                }
            }
            self.version.send_replace(version.clone());
            if read.is_err() {
                return Ok(WatchEnd::Expired);
            }
        }
    }

    async fn apply(
        &self,
        event: WatchEvent,
        version: &mut String,
    ) -> Result<Option<WatchEnd>, Unheard> {
        match event {
            WatchEvent::Seen(pod) => {
                version.clone_from(&pod.metadata.resource_version);
                self.send(Observation::Pod(pod)).await?;
            }
            WatchEvent::Deleted(pod) => {
                version.clone_from(&pod.metadata.resource_version);
                self.send(Observation::Deleted(pod)).await?;
            }
            WatchEvent::Bookmark(read) => *version = read,
            WatchEvent::Expired => return Ok(Some(WatchEnd::Expired)),
            WatchEvent::Failed(why) => return Ok(Some(WatchEnd::Resumable(Some(why)))),
            WatchEvent::Other => {}
        }
        Ok(None)
    }
}

/// Returns the next bytes of a stream; `None` at its end.
pub(super) async fn next_bytes(body: &mut Body) -> Result<Option<Vec<u8>>, String> {
    loop {
        let frame = timeout(WATCH_SILENCE_MAX, body.frame()).await;
        let frame = frame.map_err(|_| format!("a watch was silent for {WATCH_SILENCE_MAX:?}"))?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => return Err(chain(&error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data.to_vec()));
                }
            }
        }
    }
}

/// Why the pods weren't listed.
enum ListError {
    Failed(String),
    Forbidden(String),
    /// A page of it was asked for too late.
    Expired,
}

impl ListError {
    fn of(answer: &ApiAnswer) -> ListError {
        match answer.status {
            410 => ListError::Expired,
            401 | 403 | 404 => ListError::Forbidden(answer.why()),
            _ => ListError::Failed(answer.why()),
        }
    }
}

/// A line of the stream is no event, or too long: what it would have said is in a new list.
struct Unreadable;

impl From<LineTooLong> for Unreadable {
    fn from(_: LineTooLong) -> Unreadable {
        Unreadable
    }
}

impl From<String> for Unreadable {
    fn from(_: String) -> Unreadable {
        Unreadable
    }
}
