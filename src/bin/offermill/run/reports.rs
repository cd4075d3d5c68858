//! The replies to requests of the web page and of metrics.

use std::time::Duration;

use offermill::Timestamp;
use serde_json::{Value, json};

use super::Session;
use crate::http::ReportRequest;
use crate::model::executor::ExecutorState;
use crate::model::figures::RunFigures;
use crate::model::history::{HistorySample, RunHistory, SAMPLE_INTERVAL};
use crate::output::json;
use crate::text::format::core_number;

/// How the stop of a run began.
pub(super) struct StopProgress {
    pub(super) why: String,
    pub(super) at: Timestamp,
    /// How long executors have.
    pub(super) timeout: Duration,
    /// How many executors had not ended.
    pub(super) executors: u64,
}

impl StopProgress {
    /// The keys of a stop.
    pub(super) fn object(&self) -> Value {
        json!({
            "why": self.why,
            "since_ms": self.at.as_millis(),
            "timeout_ms": json::millis(self.timeout),
            "executors": self.executors,
        })
    }
}

impl Session {
    /// Replies to a request. A client that doesn't wait any more misses the reply.
    pub(super) fn report(&self, request: ReportRequest) {
        match request {
            ReportRequest::State(reply_to) => {
                let _gone = reply_to.send(self.status_object());
            }
            ReportRequest::History(reply_to) => {
                let _gone =
                    reply_to.send(self.history.as_ref().map_or(Value::Null, history_object));
            }
            ReportRequest::Figures(reply_to) => {
                let _gone = reply_to.send(self.figures(self.clock.now()));
            }
        }
    }

    /// Adds a sample to the history, if there is one and a sample is due.
    pub(super) fn record_history(&mut self, now: Timestamp) {
        if self.history.as_ref().is_some_and(|history| history.is_due(now)) {
            let figures = self.figures(now);
            if let Some(history) = &mut self.history {
                history.record(now, &figures);
            }
        }
    }

    fn figures(&self, now: Timestamp) -> RunFigures {
        RunFigures {
            ran: now.since(Timestamp::ORIGIN),
            executors: ExecutorState::ALL.map(|state| (state, self.run_state.count(state))),
            replaced: self.run_state.replaced,
            limit: self.kernel.executor_limit(),
            wanted: self.kernel.wanted(),
            offers: self.kernel.offer_counts(),
            cluster: self.kernel.capacity(now).sums(),
            excluded: self.run_state.excluded(now),
            is_registered: self.run_state.is_connected,
            is_stopping: self.end_reason.is_some(),
        }
    }
}

/// The samples, a list for each figure.
fn history_object(history: &RunHistory) -> Value {
    let list = |figure: &dyn Fn(&HistorySample) -> Value| -> Value {
        history.samples().map(figure).collect()
    };
    json!({
        "interval_ms": json::millis(SAMPLE_INTERVAL),
        "at_ms": list(&|it| json!(it.at.as_millis())),
        "running": list(&|it| json!(it.running)),
        "alive": list(&|it| json!(it.alive)),
        "failed": list(&|it| json!(it.failed)),
        "offers_per_second": list(&|it| json!(json::rate(it.offers_per_second))),
        "cores_used": list(&|it| json!(core_number(it.cores_used))),
        "cores_free": list(&|it| json!(core_number(it.cores_free))),
    })
}
