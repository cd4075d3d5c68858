//! Converts journal entries to the events and answers of a scenario, and events back to operations.
//!
//! A run is described twice: an [`Operation`] is a call of a kernel in the library's types, which the engine records
//! and a player applies, and an [`EventKind`] is a line of a scenario file, whose keys and values are a format and
//! don't follow the library's names. They are not one type because the replay as Spark needs what no operation has:
//! events that Offermill ignores, the agent and the original reason of a status update, and the number of tasks per
//! host.

use bumpalo::Bump;
use offermill::engine::cluster_manager::{AgentFacts, RecoveredExecutor};
use offermill::engine::journal::{BorrowedParts, JournalEntry, Operation, OperationOutcome};
use offermill::resources::{ExecutorResources, Gpus, Mebibytes, MilliCpus};
use offermill::{Binding, Bound, Change, Config, Decline, DemandCall, LimitRule, Offer, Timestamp};
use serde_json::{Value, json};

use crate::scenario::answer::CallLine;
use crate::scenario::event::{
    BoundLine, LostLine, RecoveredLine, RegisteredLine, StateLine, StatusLine, reason_name,
};
use crate::scenario::offer::{AttributeLine, to_offers};
use crate::scenario::{
    AcceptLine, AnswerLine, CallKind, ClosingLine, DeclineLine, EventKind, InitLine, OfferLine,
    ScenarioEvent, StateAfter,
};

/// Returns the first line of the answers.
pub(super) fn init(config: &Config) -> AnswerLine {
    let executor_memory = Some(config.memory_taken().get());
    AnswerLine::Init(InitLine { init: "ok".to_owned(), executor_memory, ..InitLine::default() })
}

/// Returns the event of an entry, if it has one. `last` is the time of the previous event.
pub(super) fn event(entry: &JournalEntry, last: Timestamp) -> Option<ScenarioEvent> {
    let kind = match &entry.operation {
        Operation::Offers(_) => {
            let parts = BorrowedParts::default();
            EventKind::Offers(entry.operation.batch(&parts).iter().map(OfferLine::of).collect())
        }
        Operation::AnswersLeftLate => EventKind::AnswersLate,
        Operation::Update { executor, state, reason, limit } => EventKind::Status(StatusLine {
            task: executor.clone(),
            agent: None,
            state: StateLine(*state),
            reason: reason_name(*reason).map(str::to_owned),
            counts_down: *limit == LimitRule::CountDown,
        }),
        Operation::Bind { executor, agent_id, facts } => {
            EventKind::Bound(bound_line(executor, agent_id, facts))
        }
        Operation::AgentLost { agent_id } => EventKind::SlaveLost(agent_id.clone()),
        Operation::ExecutorLost { executor } => {
            EventKind::ExecutorLost(LostLine { executor: executor.clone(), agent: None })
        }
        Operation::AgentReadmitted { agent_id } => EventKind::AgentReadmitted(agent_id.clone()),
        Operation::Limit(limit) => EventKind::Limit(*limit),
        Operation::Request { limit, hosts } => EventKind::RequestTotal {
            total: *limit,
            local: hosts.iter().map(|host| (host.clone(), 1)).collect(),
        },
        Operation::Kill(executors) => EventKind::Kill(executors.clone()),
        Operation::Recovered(former) => {
            EventKind::Recovered(former.iter().map(recovered_line).collect())
        }
        Operation::Registered { framework_id } => {
            EventKind::Registered(RegisteredLine { framework_id: Some(framework_id.clone()) })
        }
        Operation::Disconnected => EventKind::Disconnected,
        Operation::Close => EventKind::Stop,
        Operation::Wait => {
            EventKind::AdvanceMs(entry.at.as_millis().saturating_sub(last.as_millis()))
        }
        // A player generates the timer ticks itself. New operations need a line here.
        _ => return None,
    };
    Some(ScenarioEvent { at_ms: Some(entry.at.as_millis()), kind })
}

/// Returns the operation that replays an event.
pub(super) fn operation(kind: &EventKind) -> Operation {
    match kind {
        EventKind::Offers(offers) => Operation::offers(to_offers(offers, &Bump::new())),
        EventKind::AnswersLate => Operation::AnswersLeftLate,
        EventKind::Status(status) => Operation::Update {
            executor: status.task.clone(),
            state: status.state.0,
            reason: status.update_reason(),
            limit: status.limit_rule(),
        },
        EventKind::Bound(bound) => Operation::Bind {
            executor: bound.task.clone(),
            agent_id: bound.agent.clone(),
            facts: agent_facts(bound),
        },
        EventKind::SlaveLost(agent_id) => Operation::AgentLost { agent_id: agent_id.clone() },
        EventKind::ExecutorLost(lost) => {
            Operation::ExecutorLost { executor: lost.executor.clone() }
        }
        EventKind::AgentReadmitted(agent_id) => {
            Operation::AgentReadmitted { agent_id: agent_id.clone() }
        }
        EventKind::Limit(limit) => Operation::Limit(*limit),
        EventKind::RequestTotal { total, local } => {
            Operation::Request { limit: *total, hosts: local.keys().cloned().collect() }
        }
        EventKind::Kill(executors) => Operation::Kill(executors.clone()),
        EventKind::Recovered(former) => {
            Operation::Recovered(former.iter().map(recovered_executor).collect())
        }
        EventKind::Registered(registered) => Operation::Registered {
            framework_id: registered.framework_id.clone().unwrap_or_default(),
        },
        EventKind::Reregistered => Operation::Registered { framework_id: String::new() },
        EventKind::Disconnected => Operation::Disconnected,
        EventKind::Stop => Operation::Close,
        EventKind::Rescinded(_)
        | EventKind::ExecutorRegistered(_)
        | EventKind::Tasks(_)
        | EventKind::Error(_)
        | EventKind::AwaitStop
        | EventKind::NegativeRequest(_)
        | EventKind::AdvanceMs(_) => Operation::Wait,
    }
}

/// Returns the answers of an entry, to the event with the number `ev`. The answers of a timer tick precede the event's.
pub(super) fn answers(ev: u64, entry: &JournalEntry) -> Vec<AnswerLine> {
    let mut answers = Vec::new();
    let mut call = |call| answers.push(AnswerLine::Call(CallLine { ev, at_ms: None, call }));
    let mut result = None;
    let mut error = None;
    match &entry.outcome {
        OperationOutcome::Answers(made) => {
            let parts = BorrowedParts::default();
            let batch = entry.operation.batch(&parts);
            made.accepts.iter().for_each(|it| call(CallKind::Accept(AcceptLine::of(batch, it))));
            made.declines.iter().for_each(|it| call(CallKind::Decline(decline(batch, it))));
        }
        OperationOutcome::Updated { change, kill, excluded, .. } => {
            if let (true, Operation::Update { executor, .. }) = (kill, &entry.operation) {
                call(CallKind::Kill { task: executor.clone() });
            }
            let mut object = json!({ "change": change_word(*change) });
            if let Some(excluded) = excluded {
                let until = Some(excluded.until).filter(|until| *until < Timestamp::MAX);
                let until_ms = until.map(Timestamp::as_millis);
                object["excluded"] = json!({ "agent": *excluded.agent_id, "until_ms": until_ms });
            }
            result = Some(object);
        }
        OperationOutcome::Bound(bound) => result = Some(bound_result(bound)),
        OperationOutcome::Targets(targets) if matches!(entry.operation, Operation::Kill(_)) => {
            targets.iter().for_each(|(task, _)| call(CallKind::Kill { task: task.clone() }));
        }
        OperationOutcome::Targets(targets) => result = Some(json!(targets)),
        OperationOutcome::Readmitted { was_refused } => result = Some(json!(was_refused)),
        OperationOutcome::Adopted(adopted) => result = Some(json!(adopted)),
        OperationOutcome::Point { demand, given_up, forgotten, .. } => {
            return point_calls(ev, entry.at, *demand, given_up, forgotten);
        }
        OperationOutcome::Refused => error = Some("no such limit can be".to_owned()),
        _ => {}
    }
    answers.push(closing(ev, entry, result, error));
    answers
}

/// Returns the calls of a point of the grid.
fn point_calls(
    ev: u64,
    at: Timestamp,
    demand: Option<DemandCall>,
    given_up: &[String],
    forgotten: &[String],
) -> Vec<AnswerLine> {
    let demand = demand.map(|call| match call {
        DemandCall::Revive => CallKind::Revive,
        DemandCall::Suppress => CallKind::Suppress,
    });
    let given_up = given_up.iter().map(|task| CallKind::GivenUp { task: task.clone() });
    let forgotten = forgotten.iter().map(|task| CallKind::Forget { task: task.clone() });
    let at_ms = Some(at.as_millis());
    let calls = demand.into_iter().chain(given_up).chain(forgotten);
    calls.map(|call| AnswerLine::Call(CallLine { ev, at_ms, call })).collect()
}

fn closing(
    ev: u64,
    entry: &JournalEntry,
    result: Option<Value>,
    error: Option<String>,
) -> AnswerLine {
    let after = StateAfter::of(&entry.totals, entry.limit);
    AnswerLine::Closing(ClosingLine { ev, result, error, after })
}

fn decline(batch: &[Offer<'_>], decline: &Decline) -> DeclineLine {
    let offer = batch.get(decline.offer as usize).map_or("", |offer| offer.id);
    DeclineLine {
        offer: offer.to_owned(),
        refuse_seconds: Some(decline.refuse.as_secs_f64()),
        reason: Some(decline.reason.to_string()),
    }
}

fn change_word(change: Change) -> String {
    match change {
        Change::Nothing => "nothing".to_owned(),
        Change::UnknownExecutor => "unknown executor".to_owned(),
        Change::Running => "running".to_owned(),
        Change::Unreachable => "out of sight".to_owned(),
        Change::Returned | Change::Readmitted => "returned".to_owned(),
        Change::Refused => "refused".to_owned(),
        Change::Ended(fate) => format!("ended: {}", fate.as_str()),
        other => format!("{other:?}"),
    }
}

fn bound_line(executor: &str, agent_id: &str, facts: &AgentFacts) -> BoundLine {
    let attributes = facts.attributes.as_ref();
    BoundLine {
        task: executor.to_owned(),
        agent: agent_id.to_owned(),
        host: facts.hostname.clone(),
        region: facts.region.clone(),
        zone: facts.zone.clone(),
        attributes: attributes.map(|all| all.iter().map(AttributeLine::of_owned).collect()),
    }
}

fn agent_facts(line: &BoundLine) -> AgentFacts {
    let mut facts = AgentFacts::new(&line.host);
    let attributes = line.attributes.as_ref();
    facts.attributes =
        attributes.map(|all| all.iter().map(AttributeLine::to_owned_attribute).collect());
    facts.region.clone_from(&line.region);
    facts.zone.clone_from(&line.zone);
    facts
}

fn bound_result(bound: &Bound) -> Value {
    match bound {
        Bound::Settled { in_doubt, .. } => json!({ "bound": "settled", "in_doubt": in_doubt }),
        Bound::Already => json!({ "bound": "already" }),
        Bound::Elsewhere { agent_id } => json!({ "bound": "elsewhere", "agent": **agent_id }),
        Bound::Unwelcome { why, .. } => {
            json!({ "bound": "unwelcome", "why": why.map(|why| why.to_string()) })
        }
        _ => json!({ "bound": "nothing" }),
    }
}

fn recovered_line(former: &RecoveredExecutor) -> RecoveredLine {
    RecoveredLine {
        executor: former.executor.clone(),
        agent: former.agent_id.clone(),
        host: former.hostname.clone(),
        millicores: former.resources.cores.millis(),
        mem: former.resources.memory.get(),
        gpus: former.resources.gpus.get(),
        port: former.resources.port,
        late: former.binding == Binding::Late,
    }
}

fn recovered_executor(line: &RecoveredLine) -> RecoveredExecutor {
    let resources = ExecutorResources {
        cores: MilliCpus::from_millis(line.millicores),
        memory: Mebibytes::new(line.mem),
        gpus: Gpus::new(line.gpus),
        port: line.port,
    };
    let mut former = RecoveredExecutor::new(&line.executor, &line.agent, &line.host, resources);
    former.binding = if line.late { Binding::Late } else { Binding::Immediate };
    former
}
