//! The JSON renderer: one object per line. `--help` lists the keys.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use offermill::spark::shuffle::ShuffleEvent;
use offermill::{ClusterLack, Declined, DemandCall, OfferCounts, ProcessExit, Reason, Timestamp};
use serde_json::{Map, Value, json};

use crate::model::end_cause::EndCause;
use crate::model::event::{RunEvent, TimedEvent};
use crate::model::executor::{AgentExclusion, AgentRecord, ExecutorRecord, ExecutorState};
use crate::model::reply::{CommandAnswer, ControlReply};
use crate::model::state::RunState;
use crate::model::waiting::Stall;
use crate::output::capacity::use_object;
use crate::output::queues::change_object;
use crate::output::renderer::Renderer;
use crate::output::stall::stall_sentence;
use crate::output::summary::Summary;
use crate::output::tasks::{counts_object, task_object};
use crate::output::view::RunView;
use crate::settings::RunSettings;
use crate::text::clock::rfc3339;
use crate::text::format::{core_number, printable_json};
use crate::text::stdout::{Rank, Writer};

/// How often totals are printed. This also detects that standard output was closed.
const TOTALS_INTERVAL: Duration = Duration::from_secs(10);

/// The version of the events and of the answers to commands: `docs/steering.md`. New events and keys don't change it.
const PROTOCOL: u32 = 1;

/// Prints JSON objects.
pub(crate) struct JsonRenderer {
    writer: Arc<Writer>,
    totals_at: Timestamp,
}

impl JsonRenderer {
    pub(crate) fn new(writer: Arc<Writer>) -> JsonRenderer {
        JsonRenderer { writer, totals_at: Timestamp::ORIGIN.plus(TOTALS_INTERVAL) }
    }

    fn print(&self, event: &str, at: Timestamp, body: &Value, rank: Rank) -> io::Result<()> {
        let notice = |lines| object("left_out", at, &json!({ "lines": lines }));
        self.writer.offer(&object(event, at, body), rank, notice)
    }
}

impl Renderer for JsonRenderer {
    fn show_start(&mut self, settings: &RunSettings) -> io::Result<()> {
        let config = &settings.config;
        self.print(
            "started",
            Timestamp::ORIGIN,
            &json!({
                "protocol": PROTOCOL,
                "version": env!("CARGO_PKG_VERSION"),
                "pid": std::process::id(),
                "name": settings.name,
                "master": settings.target.master,
                "command": settings.executors.shown(),
                "executor_limit": config.executor_limit(),
                "memory_mib": config.memory_taken().get(),
                "until_finished": settings.until_finished,
                "executor_failures_max": Some(settings.failures_max).filter(|most| *most < u64::MAX),
                "shutdown_timeout_ms": millis(settings.shutdown_timeout),
                "page": settings.page_url,
            }),
            Rank::Notable,
        )
    }

    fn show_event(&mut self, event: &TimedEvent) -> io::Result<()> {
        let (name, body) = body(&event.event);
        self.print(name, event.at, &body, rank(&event.event))
    }

    fn refresh(&mut self, view: &RunView<'_>) -> io::Result<()> {
        if view.now < self.totals_at {
            return Ok(());
        }
        self.totals_at = view.now.plus(TOTALS_INTERVAL);
        let executors = states(view.run_state);
        let offers = offers(&view.counts);
        let per_second = rate(view.offers_per_second);
        self.print(
            "totals",
            view.now,
            &json!({
                "tasks": view.tasks.as_ref().map(counts_object),
                "executors": executors, "offers": offers, "offers_per_second": per_second,
            }),
            Rank::Routine,
        )
    }

    fn show_summary(&mut self, summary: &Summary<'_>) -> io::Result<()> {
        self.print(
            "summary",
            Timestamp::ORIGIN.plus(summary.ran),
            &json!({
                "name": summary.name,
                "ending": summary.ending,
                "exit_code": summary.exit.code(),
                "ran_ms": millis(summary.ran),
                "executors": summary_executors(summary),
                "tasks": summary.tasks.as_ref().map(|tasks| counts_object(&tasks.counts)),
                "results": summary.tasks.as_ref().map(|tasks| &tasks.results),
                "executors_not_listed": summary.run_state.forgotten,
                "executors_replaced": summary.run_state.replaced,
                "executors_denied": summary.run_state.denials,
                "finished_before": summary.run_state.finished_before,
                "agents": summary_agents(summary.run_state),
                "offers": offers(&summary.counts),
                "cluster": use_object(&summary.cluster_use, summary.run_state.used_most),
                "shuffle_services": summary.shuffle,
                "waiting": summary.stall.map(waiting),
                "nearest_misses": misses(&summary.declined),
                "sandboxes": summary.sandboxes.path(&summary.run_state.framework_id),
            }),
            Rank::Result,
        )
    }

    fn restore_terminal(&mut self) {}
}

/// The rank of an event. Programs follow executors by their ends, so these are dropped last.
fn rank(event: &RunEvent) -> Rank {
    match event {
        RunEvent::Ended(_) | RunEvent::Task(_) => Rank::Notable,
        event => event.severity().rank(),
    }
}

/// The executors of a summary.
fn summary_executors(summary: &Summary<'_>) -> Vec<Value> {
    let executor = |it: &ExecutorRecord| {
        let mut body = ended_record(it);
        body["state"] = json!(key(summary.state_of(it)));
        body["ran_ms"] = json!(millis(summary.ran(it)));
        body["replaced_by"] = json!(it.replaced_by);
        body
    };
    summary.run_state.records().map(executor).collect()
}

/// The agents of a summary.
fn summary_agents(run_state: &RunState) -> Vec<Value> {
    let agent = |(agent_id, agent): (&String, &AgentRecord)| {
        let ended = ExecutorState::ALL.into_iter().filter(|state| state.is_end());
        let ended: Map<String, Value> =
            ended.map(|state| (key(state.as_str()), json!(agent.count(state)))).collect();
        let exclusions: Vec<Value> = agent.exclusions.iter().map(exclusion).collect();
        json!({
            "agent_id": agent_id, "host": agent.host, "executors": ended,
            "exclusions": exclusions, "lost": agent.is_lost,
        })
    };
    run_state.agents.iter().map(agent).collect()
}

/// One object per line, which begins with the keys that all objects have.
fn object(event: &str, at: Timestamp, body: &Value) -> String {
    let at_ms = at.as_millis();
    let time = rfc3339(SystemTime::now());
    let head = format!("{{\"event\":\"{event}\",\"at_ms\":{at_ms},\"time\":\"{time}\"");
    match printable_json(&body.to_string()).strip_prefix('{') {
        Some("}") | None => format!("{head}}}\n"),
        Some(rest) => format!("{head},{rest}\n"),
    }
}

/// The number of executors in each state.
pub(crate) fn states(run_state: &RunState) -> Value {
    let count = |state: ExecutorState| (key(state.as_str()), json!(run_state.count(state)));
    ExecutorState::ALL.into_iter().map(count).collect()
}

/// The name and the keys of an event.
fn body(event: &RunEvent) -> (&'static str, Value) {
    match event {
        RunEvent::Registered { framework_id, again } => {
            ("registered", json!({ "framework_id": framework_id, "again": again }))
        }
        RunEvent::Disconnected(_) => ("disconnected", json!({})),
        RunEvent::Placed { record: it, replaces } => {
            let mut body = record(it);
            body["replaces"] = json!(replaces);
            ("placed", body)
        }
        RunEvent::Bound(it) => ("bound", record(it)),
        RunEvent::Unwelcome { executor, host, why } => {
            ("unwelcome", json!({ "executor": executor, "host": host, "why": why }))
        }
        RunEvent::Resumed { finished } => ("resumed", json!({ "finished": finished })),
        RunEvent::Adopted(it) => ("adopted", record(it)),
        RunEvent::Task(event) => ("task", task_object(event)),
        RunEvent::Running(it) => ("running", living_record(it)),
        RunEvent::Ending(it) => ("ending", record(it)),
        RunEvent::Unreachable { record: it, .. } => ("out_of_sight", record(it)),
        RunEvent::Returned(it) => ("returned", record(it)),
        RunEvent::RefusedReturn(it) => ("refused_return", record(it)),
        RunEvent::GivenUp(it) => ("given_up", record(it)),
        RunEvent::Ended(it) => ("ended", ended_record(it)),
        RunEvent::Excluded(it) => ("excluded", exclusion(it)),
        RunEvent::AllExcluded { agents } => ("all_excluded", json!({ "agents": agents })),
        RunEvent::Stalled(stall) => ("waiting", waiting(stall)),
        RunEvent::AgentLost { agent_id, host } => {
            ("agent_lost", json!({ "agent_id": agent_id, "host": host }))
        }
        RunEvent::Demand(call) => {
            let wanted = *call == DemandCall::Revive;
            ("demand", json!({ "offers_wanted": wanted }))
        }
        RunEvent::JournalEnded { why } => ("journal_ended", json!({ "why": why })),
        RunEvent::Overflow { offers } => ("overflow", json!({ "offers": offers })),
        RunEvent::Unreadable { offers, unanswered, agent_id, why } => (
            "unreadable",
            json!({ "offers": offers, "unanswered": unanswered, "agent_id": agent_id, "why": why }),
        ),
        RunEvent::CallFailed { why, calls } => {
            ("call_failed", json!({ "why": why, "calls": calls }))
        }
        RunEvent::Shuffle { event, port } => shuffle(event, *port),
        RunEvent::Refused { why } => ("refused", json!({ "why": why })),
        RunEvent::Panicked { why } => ("panicked", json!({ "why": why })),
        RunEvent::Broken { why } => ("broken", json!({ "why": why })),
        RunEvent::LimitSet { from, to, why } => {
            ("limit", json!({ "from": from, "to": to, "why": why }))
        }
        RunEvent::QueuesChanged { changes, why } => {
            let changes: Vec<Value> = changes.iter().map(change_object).collect();
            ("queues", json!({ "changes": changes, "why": why }))
        }
        RunEvent::KillAsked { executors, why } => {
            ("kill", json!({ "executors": executors, "why": why }))
        }
        RunEvent::Answered(answer) => ("answer", answer_body(answer)),
        RunEvent::Stopping { why, timeout, living, .. } => {
            let timeout = millis(*timeout);
            ("stopping", json!({ "why": why, "timeout_ms": timeout, "executors": living.all() }))
        }
    }
}

/// The keys of an executor, and those of its process.
pub(crate) fn living_record(it: &ExecutorRecord) -> Value {
    let mut body = record(it);
    body["pid"] = json!(it.process.pid);
    body["sandbox"] = json!(it.process.sandbox);
    body["address"] = json!(it.address);
    body
}

/// The keys of an executor, and how and why it ended.
pub(crate) fn ended_record(it: &ExecutorRecord) -> Value {
    let (code, signal) = match it.process.exit {
        Some(ProcessExit::Code(code)) => (Some(code), None),
        Some(ProcessExit::Signal(signal)) => (None, Some(signal)),
        _ => (None, None),
    };
    let mut body = record(it);
    body["ran_ms"] = json!(it.ran().map(millis));
    body["exit_code"] = json!(code);
    body["signal"] = json!(signal);
    body["cause"] = json!(it.cause.map(EndCause::as_str));
    body
}

/// The name and the keys of an event of a shuffle service.
fn shuffle(event: &ShuffleEvent, port: u16) -> (&'static str, Value) {
    match event {
        ShuffleEvent::Registered { host, again } => {
            ("shuffle_registered", json!({ "host": host, "port": port, "again": again }))
        }
        ShuffleEvent::Failing { host, why, is_refusal } => {
            let body = json!({ "host": host, "port": port, "refused": is_refusal, "why": why });
            ("shuffle_failing", body)
        }
        _ => ("shuffle", json!({})),
    }
}

fn answer_body(answer: &CommandAnswer) -> Value {
    let CommandAnswer { number, id, reply, detail } = answer;
    let body = match reply {
        ControlReply::Done(text) | ControlReply::Refused(text) => json!(text),
        ControlReply::Block(text) => text.lines().collect(),
        ControlReply::Object(object) => object.clone(),
    };
    json!({
        "command": number,
        "id": id,
        "ok": !matches!(reply, ControlReply::Refused(_)),
        "answer": body,
        "detail": detail,
    })
}

/// The keys of an executor.
pub(crate) fn record(record: &ExecutorRecord) -> Value {
    json!({
        "executor": record.name,
        "agent_id": record.agent_id,
        "host": record.host,
        "state": key(record.state.as_str()),
        "cores": core_number(record.resources.cores),
        "memory_mib": record.resources.memory.get(),
        "gpus": record.resources.gpus.get(),
        "port": record.resources.port,
        "message": record.message,
    })
}

/// The keys of an exclusion.
pub(crate) fn exclusion(exclusion: &AgentExclusion) -> Value {
    json!({
        "agent_id": exclusion.agent_id,
        "host": exclusion.host,
        "failures": exclusion.failures,
        "why": exclusion.why,
        "until": exclusion.ends.map(rfc3339),
        "for_ms": exclusion.duration().map(millis),
    })
}

/// The keys of a stalled run.
pub(crate) fn waiting(stall: &Stall) -> Value {
    let explanation = &stall.explanation;
    let at_ms = |at: Option<Timestamp>| at.map(Timestamp::as_millis);
    let first_ends = explanation.excluded.first_ends.filter(|until| *until != Timestamp::MAX);
    json!({
        "sentence": stall_sentence(stall),
        "wanted": explanation.is_bounded.then_some(explanation.wanted),
        "offers": explanation.offers,
        "last_offers_ms": at_ms(explanation.last_offers),
        "suppressed": explanation.is_suppressed,
        "agents_excluded": explanation.excluded.agents,
        "first_exclusion_ends_ms": at_ms(first_ends),
        "nearest_misses": misses(&explanation.declined),
        "cluster_lacks": explanation.lacks.iter().map(lack).collect::<Vec<Value>>(),
        "capacity_ms": at_ms(explanation.capacity_at),
        "unstarted": stall.delays.unstarted.iter().map(unstarted).collect::<Vec<Value>>(),
        "denied": stall.delays.denied,
    })
}

/// Executors that were placed and have not started.
fn unstarted((why, executors): &(String, u64)) -> Value {
    json!({ "executors": executors, "why": why })
}

/// What no agent has. Cores are a number of cores, memory is in MiB.
fn lack(lack: &ClusterLack) -> Value {
    let (what, asked, largest) = match lack {
        ClusterLack::Constraint { .. } => ("constraint", Value::Null, Value::Null),
        ClusterLack::Cores { asked, largest, .. } => {
            ("cores", core_number(*asked).into(), core_number(*largest).into())
        }
        ClusterLack::Memory { asked, largest, .. } => {
            ("memory_mib", asked.get().into(), largest.get().into())
        }
        ClusterLack::Gpus { asked, largest, .. } => {
            ("gpus", asked.get().into(), largest.get().into())
        }
        _ => ("together", Value::Null, Value::Null),
    };
    let agent = lack.agent();
    json!({
        "what": what, "why": lack.why(), "asked": asked, "largest": largest,
        "agent_id": agent.map(|agent| &agent.agent_id),
        "host": agent.and_then(|agent| agent.hostname.as_ref()),
    })
}

/// The nearest misses, each with its keys.
pub(crate) fn misses(declined: &[Declined]) -> Value {
    let misses = declined.iter().filter_map(|declined| {
        let miss = declined.nearest.as_ref()?;
        let (asked, offered) = match miss.reason {
            Reason::Cpus { asked, offered } => {
                let [asked, offered] = [asked, offered].map(core_number);
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

/// What became of offers.
pub(crate) fn offers(counts: &OfferCounts) -> Value {
    let declines = counts.declines().filter(|(_, offers)| *offers > 0);
    let declined: Map<String, Value> =
        declines.map(|(kind, offers)| (key(kind.as_str()), json!(offers))).collect();
    json!({
        "seen": counts.offers, "accepted": counts.accepted, "executors": counts.executors,
        "declined": declined,
    })
}

/// A rate with one decimal.
pub(crate) fn rate(per_second: f64) -> f64 {
    (per_second * 10.0).round() / 10.0
}

/// A key made of words: `too few cores` becomes `too_few_cores`.
pub(crate) fn key(words: &str) -> String {
    words.to_ascii_lowercase().replace(' ', "_")
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
