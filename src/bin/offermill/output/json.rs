//! The face for machines: one JSON object a line. `--help` lists the keys.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use offermill::{Declined, DemandCall, OfferCounts, Reason, Timestamp};
use serde_json::{Map, Value, json};

use crate::control::Answer;
use crate::model::event::{Exclusion, Happening, RunEvent};
use crate::model::executor::{ExecutorInfo, State};
use crate::model::state::RunState;
use crate::model::waiting::Waits;
use crate::output::summary::Summary;
use crate::output::{Renderer, View};
use crate::run::shuffle;
use crate::settings::Settings;
use crate::text::clock::rfc3339;
use crate::text::stdout::{Rank, Writer};

/// How often totals are printed, which also finds out whether anybody still reads.
const TOTALS_EVERY: Duration = Duration::from_secs(10);

/// Prints objects.
pub(crate) struct Json {
    writer: Arc<Writer>,
    totals_at: Timestamp,
}

impl Json {
    /// Nothing printed yet.
    pub(crate) fn new(writer: Arc<Writer>) -> Json {
        Json { writer, totals_at: Timestamp::ORIGIN.plus(TOTALS_EVERY) }
    }

    fn say(&self, event: &str, at: Timestamp, body: &Value, rank: Rank) -> io::Result<()> {
        let told = |lines| object("left_out", at, &json!({ "lines": lines }));
        self.writer.offer(&object(event, at, body), rank, told)
    }
}

impl Renderer for Json {
    fn begin(&mut self, settings: &Settings, _started: SystemTime) -> io::Result<()> {
        let config = &settings.config;
        self.say(
            "started",
            Timestamp::ORIGIN,
            &json!({
                "name": settings.name,
                "master": settings.site.master,
                "command": settings.executors.shown(),
                "executor_limit": config.executor_limit(),
                "memory_mib": config.memory_taken().get(),
                "until_finished": settings.until_finished,
                "executor_failures_max": settings.failures_max,
                "shutdown_timeout_ms": millis(settings.shutdown_timeout),
            }),
            Rank::Notable,
        )
    }

    fn happened(&mut self, happening: &Happening) -> io::Result<()> {
        let (event, body) = body(&happening.what);
        self.say(event, happening.at, &body, happening.what.weight().rank())
    }

    fn pass(&mut self, view: &View<'_>) -> io::Result<()> {
        if view.now < self.totals_at {
            return Ok(());
        }
        self.totals_at = view.now.plus(TOTALS_EVERY);
        let executors = states(view.roster);
        let offers = offers(&view.counts);
        let per_second = (view.offers_per_second * 10.0).round() / 10.0;
        self.say(
            "totals",
            view.now,
            &json!({
                "executors": executors, "offers": offers, "offers_per_second": per_second,
            }),
            Rank::Routine,
        )
    }

    fn end(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        let executors: Vec<Value> = summary
            .roster
            .records()
            .map(|it| {
                let mut body = record(it);
                body["state"] = json!(key(summary.state_of(it)));
                body["ran_ms"] = json!(millis(summary.ran(it)));
                body["replaced_by"] = json!(it.replaced_by);
                body
            })
            .collect();
        let agents: Vec<Value> = summary
            .roster
            .agents
            .iter()
            .map(|(agent_id, agent)| {
                let ended = State::ALL.into_iter().filter(|state| state.is_end());
                let ended: Map<String, Value> =
                    ended.map(|state| (key(state.as_str()), json!(agent.count(state)))).collect();
                let exclusions: Vec<Value> = agent.exclusions.iter().map(exclusion).collect();
                json!({
                    "agent_id": agent_id, "host": agent.host, "executors": ended,
                    "exclusions": exclusions, "lost": agent.is_lost,
                })
            })
            .collect();
        self.say(
            "summary",
            Timestamp::ORIGIN.plus(summary.ran),
            &json!({
                "name": summary.name,
                "ending": summary.ending,
                "exit_code": summary.exit.code(),
                "ran_ms": millis(summary.ran),
                "executors": executors,
                "executors_not_listed": summary.roster.forgotten,
                "executors_replaced": summary.roster.replaced,
                "finished_before": summary.roster.finished_before,
                "agents": agents,
                "offers": offers(&summary.counts),
                "shuffle_services": summary.shuffle,
                "waiting": summary.waiting.map(waiting),
                "nearest_misses": misses(&summary.declined),
                "sandboxes": summary.sandboxes.place(&summary.roster.framework_id),
            }),
            Rank::Result,
        )
    }

    fn leave(&mut self) {}
}

/// One object in a line, with the keys that all have at its start.
fn object(event: &str, at: Timestamp, body: &Value) -> String {
    let (at_ms, time) = (at.as_millis(), rfc3339(SystemTime::now()));
    let head = format!("{{\"event\":\"{event}\",\"at_ms\":{at_ms},\"time\":\"{time}\"");
    match body.to_string().strip_prefix('{') {
        Some("}") | None => format!("{head}}}\n"),
        Some(rest) => format!("{head},{rest}\n"),
    }
}

/// How many executors are in each state.
pub(crate) fn states(roster: &RunState) -> Value {
    let count = |state: State| (key(state.as_str()), json!(roster.count(state)));
    State::ALL.into_iter().map(count).collect()
}

fn body(what: &RunEvent) -> (&'static str, Value) {
    match what {
        RunEvent::Registered { framework_id, again } => {
            ("registered", json!({ "framework_id": framework_id, "again": again }))
        }
        RunEvent::Disconnected(_) => ("disconnected", json!({})),
        RunEvent::Placed { record: it, replaces } => {
            let mut body = record(it);
            body["replaces"] = json!(replaces);
            ("placed", body)
        }
        RunEvent::Resumed { finished } => ("resumed", json!({ "finished": finished })),
        RunEvent::Adopted(it) => ("adopted", record(it)),
        RunEvent::Running(it) => ("running", record(it)),
        RunEvent::Ending(it) => ("ending", record(it)),
        RunEvent::OutOfSight(it) => ("out_of_sight", record(it)),
        RunEvent::Returned(it) => ("returned", record(it)),
        RunEvent::RefusedReturn(it) => ("refused_return", record(it)),
        RunEvent::GivenUp(it) => ("given_up", record(it)),
        RunEvent::Ended(it) => {
            let mut body = record(it);
            body["ran_ms"] = json!(it.ran().map(millis));
            ("ended", body)
        }
        RunEvent::Excluded(it) => ("excluded", exclusion(it)),
        RunEvent::AllExcluded { agents } => ("all_excluded", json!({ "agents": agents })),
        RunEvent::StallWatch(waits) => ("waiting", waiting(waits)),
        RunEvent::AgentLost { agent_id, host } => {
            ("agent_lost", json!({ "agent_id": agent_id, "host": host }))
        }
        RunEvent::Demand(call) => {
            let wanted = *call == DemandCall::Revive;
            ("demand", json!({ "offers_wanted": wanted }))
        }
        RunEvent::JournalEnded { why } => ("journal_ended", json!({ "why": why })),
        RunEvent::Overflow { offers } => ("overflow", json!({ "offers": offers })),
        RunEvent::CallFailed { why, calls } => {
            ("call_failed", json!({ "why": why, "calls": calls }))
        }
        RunEvent::Shuffle { news, port } => shuffle::event(news, *port),
        RunEvent::Refused { why } => ("refused", json!({ "why": why })),
        RunEvent::Panicked { why } => ("panicked", json!({ "why": why })),
        RunEvent::Broken { why } => ("broken", json!({ "why": why })),
        RunEvent::LimitSet { from, to, why } => {
            ("limit", json!({ "from": from, "to": to, "why": why }))
        }
        RunEvent::KillAsked { executors, why } => {
            ("kill", json!({ "executors": executors, "why": why }))
        }
        RunEvent::Answered(answer) => ("answer", answer_body(answer)),
        RunEvent::Stopping { why, timeout, executors, .. } => {
            let timeout = millis(*timeout);
            ("stopping", json!({ "why": why, "timeout_ms": timeout, "executors": executors }))
        }
    }
}

fn answer_body(answer: &Answer) -> Value {
    let body = match answer {
        Answer::Done(text) | Answer::Refused(text) => json!(text),
        Answer::Block(text) => text.lines().collect(),
        Answer::Object(object) => object.clone(),
    };
    json!({ "ok": !matches!(answer, Answer::Refused(_)), "answer": body })
}

pub(crate) fn record(record: &ExecutorInfo) -> Value {
    json!({
        "executor": record.name,
        "agent_id": record.agent_id,
        "host": record.host,
        "state": key(record.state.as_str()),
        "cores": record.cores.millis() as f64 / 1000.0,
        "memory_mib": record.memory.get(),
        "gpus": record.gpus.get(),
        "port": record.port,
        "message": record.message,
    })
}

fn exclusion(exclusion: &Exclusion) -> Value {
    json!({
        "agent_id": exclusion.agent_id,
        "host": exclusion.host,
        "failures": exclusion.failures,
        "why": exclusion.why,
        "until": exclusion.ends.map(rfc3339),
        "for_ms": exclusion.lasts().map(millis),
    })
}

pub(crate) fn waiting(waits: &Waits) -> Value {
    let explanation = &waits.explanation;
    let at_ms = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let first_ends = explanation.excluded.first_ends.filter(|until| *until != Timestamp::MAX);
    json!({
        "wanted": explanation.is_bounded.then_some(explanation.wanted),
        "offers": explanation.offers,
        "last_offers_ms": at_ms(explanation.last_offers),
        "suppressed": explanation.is_suppressed,
        "agents_excluded": explanation.excluded.agents,
        "first_exclusion_ends_ms": at_ms(first_ends),
        "nearest_misses": misses(&explanation.declined),
    })
}

fn misses(declined: &[Declined]) -> Value {
    let misses = declined.iter().filter_map(|declined| {
        let miss = declined.nearest.as_ref()?;
        let (asked, offered) = match miss.reason {
            Reason::Cpus { asked, offered } => {
                let [asked, offered] = [asked, offered].map(|it| it.millis() as f64 / 1000.0);
                (json!(asked), json!(offered))
            }
            Reason::Memory { asked, offered } => (json!(asked.get()), json!(offered.get())),
            Reason::Gpus { asked, offered } => (json!(asked.get()), json!(offered.get())),
            _ => (Value::Null, Value::Null),
        };
        Some(json!({
            "reason": key(declined.kind.as_str()),
            "offers": declined.offers,
            "agent_id": miss.agent_id,
            "host": miss.hostname,
            "why": miss.why(),
            "asked": asked,
            "offered": offered,
            "declined_ms": miss.at.as_millis(),
        }))
    });
    misses.collect()
}

fn offers(counts: &OfferCounts) -> Value {
    let declines = counts.declines().filter(|(_, offers)| *offers > 0);
    let declined: Map<String, Value> =
        declines.map(|(kind, offers)| (key(kind.as_str()), json!(offers))).collect();
    json!({
        "seen": counts.offers, "accepted": counts.accepted, "executors": counts.executors,
        "declined": declined,
    })
}

/// Words as a key: `too few cores` is `too_few_cores`.
pub(crate) fn key(words: &str) -> String {
    words.to_ascii_lowercase().replace(' ', "_")
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
