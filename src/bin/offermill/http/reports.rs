//! What the run says about itself: requests to the run, and the replies of the last half second, so that any number of
//! clients costs the run no more than one.

use std::time::Duration;

use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, timeout};

use crate::model::figures::RunFigures;
use crate::text::format::printable_json;

/// How long a reply is given to further clients.
const FRESH_FOR: Duration = Duration::from_millis(500);
/// The longest wait for the run's reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// A request to the run. One that is dropped is answered: the run has ended.
#[derive(Debug)]
pub(crate) enum ReportRequest {
    /// The object of `status json`.
    State(oneshot::Sender<Value>),
    /// The samples of the last hour.
    History(oneshot::Sender<Value>),
    /// The figures for metrics.
    Figures(oneshot::Sender<RunFigures>),
}

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoReply {
    /// The run has ended.
    Ended,
    /// It doesn't reply in time.
    Late,
}

/// A reply, and when it came.
type Reply<T> = Mutex<Option<(Instant, Result<T, NoReply>)>>;

/// Asks the run, and keeps its replies.
pub(super) struct RunReports {
    /// Passes a request to the run. Returns whether the run accepts requests.
    ask: Box<dyn Fn(ReportRequest) -> bool>,
    state: Reply<Bytes>,
    history: Reply<Bytes>,
    figures: Reply<RunFigures>,
}

impl RunReports {
    pub(super) fn new(ask: Box<dyn Fn(ReportRequest) -> bool>) -> RunReports {
        let (state, history, figures) = (Reply::default(), Reply::default(), Reply::default());
        RunReports { ask, state, history, figures }
    }

    /// The state of the run as a line of JSON.
    pub(super) async fn state(&self) -> Result<Bytes, NoReply> {
        let ask = async || self.exchange(ReportRequest::State).await.map(|it| line(&it));
        recent(&self.state, ask).await
    }

    /// The samples of the last hour as a line of JSON.
    pub(super) async fn history(&self) -> Result<Bytes, NoReply> {
        let ask = async || self.exchange(ReportRequest::History).await.map(|it| line(&it));
        recent(&self.history, ask).await
    }

    /// The figures of the run.
    pub(super) async fn figures(&self) -> Result<RunFigures, NoReply> {
        recent(&self.figures, async || self.exchange(ReportRequest::Figures).await).await
    }

    async fn exchange<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> ReportRequest,
    ) -> Result<T, NoReply> {
        let (reply_to, reply) = oneshot::channel();
        if !(self.ask)(request(reply_to)) {
            return Err(NoReply::Ended);
        }
        match timeout(REPLY_TIMEOUT, reply).await {
            Ok(reply) => reply.map_err(|_| NoReply::Ended),
            Err(_) => Err(NoReply::Late),
        }
    }
}

/// The last reply if it is recent, else a new one. Clients that ask meanwhile wait for the same one.
async fn recent<T: Clone>(
    last: &Reply<T>,
    ask: impl AsyncFnOnce() -> Result<T, NoReply>,
) -> Result<T, NoReply> {
    let mut last = last.lock().await;
    if let Some((at, reply)) = &*last
        && at.elapsed() < FRESH_FOR
    {
        return reply.clone();
    }
    let reply = ask().await;
    *last = Some((Instant::now(), reply.clone()));
    reply
}

/// An object as a line, in which characters that aren't shown are escaped.
fn line(object: &Value) -> Bytes {
    printable_json(&format!("{object}\n")).into_owned().into()
}
