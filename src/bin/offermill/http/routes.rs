//! What each path answers.

use hyper::body::{Body, Incoming};
use hyper::{Request, StatusCode};
use offermill::http_server::{PAGE_CODE, PAGE_STYLE};
use serde_json::json;

use crate::http::access::PageAccess;
use crate::http::answer::{PageResponse, answer, problem};
use crate::http::metrics::{RunLabels, metrics_text};
use crate::http::reports::{NoReply, RunReports};

const PAGE: &str = include_str!("assets/run.html");
const CODE: &str = include_str!("assets/run.js");

const JSON: &str = "application/json";
/// The text form of Prometheus.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page, and all that it and others may ask for.
pub(super) struct RunPage {
    pub(super) access: PageAccess,
    pub(super) reports: RunReports,
    pub(super) labels: RunLabels,
}

impl RunPage {
    /// Answers a request.
    pub(super) async fn respond(&self, request: Request<Incoming>) -> PageResponse {
        let has_body = !request.body().is_end_stream();
        let (head, _) = request.into_parts();
        if let Err(refused) = self.access.check(&head, has_body) {
            return *refused;
        }
        let reply = match head.uri.path() {
            "/" => Ok(asset("text/html; charset=utf-8", PAGE)),
            "/page.css" => Ok(asset("text/css; charset=utf-8", PAGE_STYLE)),
            "/page.js" => Ok(asset("text/javascript; charset=utf-8", PAGE_CODE)),
            "/run.js" => Ok(asset("text/javascript; charset=utf-8", CODE)),
            "/state" => self.reports.state().await.map(|it| answer(StatusCode::OK, JSON, it)),
            "/history" => self.reports.history().await.map(|it| answer(StatusCode::OK, JSON, it)),
            "/metrics" => self.metrics().await,
            "/health" => self.health().await,
            _ => Ok(problem(StatusCode::NOT_FOUND, "nothing is at this path")),
        };
        reply.unwrap_or_else(unavailable)
    }

    async fn metrics(&self) -> Result<PageResponse, NoReply> {
        let figures = self.reports.figures().await?;
        Ok(answer(StatusCode::OK, METRICS, metrics_text(&self.labels, &figures)))
    }

    /// Whether the run answers; a cluster that is away is no reason to start it again.
    async fn health(&self) -> Result<PageResponse, NoReply> {
        let figures = self.reports.figures().await?;
        let state = if figures.is_stopping { "stopping" } else { "running" };
        let body = json!({ "state": state, "registered": figures.is_registered });
        Ok(answer(StatusCode::OK, JSON, format!("{body}\n")))
    }
}

fn asset(kind: &'static str, text: &'static str) -> PageResponse {
    answer(StatusCode::OK, kind, text)
}

fn unavailable(why: NoReply) -> PageResponse {
    let sentence = match why {
        NoReply::Ended => "the run has ended",
        NoReply::Late => "the run doesn't answer",
    };
    problem(StatusCode::SERVICE_UNAVAILABLE, sentence)
}
