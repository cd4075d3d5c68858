//! Entries as events and answers, and events as operations.

use bumpalo::Bump;
use offermill::engine::cluster_manager::RecoveredExecutor;
use offermill::engine::journal::{Acceptance, Entry, Operation, Outcome};
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{Change, Config, Decline, DemandCall, LimitRule, Offer, Timestamp};
use serde_json::{Value, json};

use crate::scenario::answer::{CallLine, cores, pieces};
use crate::scenario::event::{FormerLine, Lost, Registered, StateLine, Status, reason_name};
use crate::scenario::offer::lend;
use crate::scenario::{
    self, Accept, After, Answer, Call, Closing, Event, Init, OfferLine, Task, What,
};

/// The first line of answers.
pub(super) fn init(config: &Config) -> Answer {
    let executor_memory = Some(config.memory_taken().get());
    Answer::Init(Init { init: "ok".to_owned(), executor_memory, ..Init::default() })
}

/// The event of an entry, if it is one. `last` is the moment of the one before.
pub(super) fn event(entry: &Entry, last: Timestamp) -> Option<Event> {
    let what = match &entry.operation {
        Operation::Offers(_) => What::Offers(
            entry.operation.with_batch(|batch| batch.iter().map(OfferLine::of).collect()),
        ),
        Operation::AnswersLeftLate => What::AnswersLate,
        Operation::Update { executor, state, reason, limit } => What::Status(Status {
            task: executor.clone(),
            agent: None,
            state: StateLine(*state),
            reason: reason_name(*reason).map(str::to_owned),
            counts_down: *limit == LimitRule::CountDown,
        }),
        Operation::AgentLost { agent_id } => What::SlaveLost(agent_id.clone()),
        Operation::ExecutorLost { executor } => {
            What::ExecutorLost(Lost { executor: executor.clone(), agent: None })
        }
        Operation::Limit(limit) => What::Limit(*limit),
        Operation::Request { limit, hosts } => What::RequestTotal {
            total: *limit,
            local: hosts.iter().map(|host| (host.clone(), 1)).collect(),
        },
        Operation::Kill(executors) => What::Kill(executors.clone()),
        Operation::Recovered(former) => What::Recovered(former.iter().map(former_line).collect()),
        Operation::Registered { framework_id } => {
            What::Registered(Registered { framework_id: Some(framework_id.clone()) })
        }
        Operation::Disconnected => What::Disconnected,
        Operation::Close => What::Stop,
        Operation::Wait => What::AdvanceMs(entry.at.as_millis().saturating_sub(last.as_millis())),
        // A player makes the points of the grid by itself. Whatever else there will be, needs a line here.
        _ => return None,
    };
    Some(Event { at_ms: Some(entry.at.as_millis()), what })
}

/// What is done again for an event.
pub(super) fn operation(what: &What) -> Operation {
    match what {
        What::Offers(offers) => Operation::offers(lend(offers, &Bump::new())),
        What::AnswersLate => Operation::AnswersLeftLate,
        What::Status(status) => Operation::Update {
            executor: status.task.clone(),
            state: status.state.0,
            reason: status.update_reason(),
            limit: status.limit_rule(),
        },
        What::SlaveLost(agent_id) => Operation::AgentLost { agent_id: agent_id.clone() },
        What::ExecutorLost(lost) => Operation::ExecutorLost { executor: lost.executor.clone() },
        What::Limit(limit) => Operation::Limit(*limit),
        What::RequestTotal { total, local } => {
            Operation::Request { limit: *total, hosts: local.keys().cloned().collect() }
        }
        What::Kill(executors) => Operation::Kill(executors.clone()),
        What::Recovered(former) => {
            Operation::Recovered(former.iter().map(former_executor).collect())
        }
        What::Registered(registered) => Operation::Registered {
            framework_id: registered.framework_id.clone().unwrap_or_default(),
        },
        What::Reregistered => Operation::Registered { framework_id: String::new() },
        What::Disconnected => Operation::Disconnected,
        What::Stop => Operation::Close,
        What::Rescinded(_)
        | What::ExecutorRegistered(_)
        | What::Error(_)
        | What::AwaitStop
        | What::AdvanceMs(_) => Operation::Wait,
    }
}

/// The answers that an entry makes, to the event with this number; those of a point of the grid come before it.
pub(super) fn answers(ev: u64, entry: &Entry) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut call = |call| answers.push(Answer::Call(CallLine { ev, at_ms: None, call }));
    let mut result = None;
    let mut error = None;
    match &entry.outcome {
        Outcome::Answers(made) => entry.operation.with_batch(|batch| {
            made.accepts.iter().for_each(|it| call(Call::Accept(accept(batch, it))));
            made.declines.iter().for_each(|it| call(Call::Decline(decline(batch, it))));
        }),
        Outcome::Updated { change, kill, excluded, .. } => {
            if let (true, Operation::Update { executor, .. }) = (kill, &entry.operation) {
                call(Call::Kill { task: executor.clone() });
            }
            let mut told = json!({ "change": change_word(*change) });
            if let Some(excluded) = excluded {
                let until = Some(excluded.until).filter(|until| *until < Timestamp::MAX);
                let until_ms = until.map(Timestamp::as_millis);
                told["excluded"] = json!({ "agent": *excluded.agent_id, "until_ms": until_ms });
            }
            result = Some(told);
        }
        Outcome::Targets(targets) if matches!(entry.operation, Operation::Kill(_)) => {
            targets.iter().for_each(|(task, _)| call(Call::Kill { task: task.clone() }));
        }
        Outcome::Targets(targets) => result = Some(json!(targets)),
        Outcome::Adopted(adopted) => result = Some(json!(adopted)),
        Outcome::Passed { demand, given_up, forgotten, .. } => {
            return passed(ev, entry.at, *demand, given_up, forgotten);
        }
        Outcome::Refused => error = Some("no such limit can be".to_owned()),
        _ => {}
    }
    answers.push(closing(ev, entry, result, error));
    answers
}

/// What a point of the grid asked for.
fn passed(
    ev: u64,
    at: Timestamp,
    demand: Option<DemandCall>,
    given_up: &[String],
    forgotten: &[String],
) -> Vec<Answer> {
    let demand = demand.map(|call| match call {
        DemandCall::Revive => Call::Revive,
        DemandCall::Suppress => Call::Suppress,
    });
    let given_up = given_up.iter().map(|task| Call::GivenUp { task: task.clone() });
    let forgotten = forgotten.iter().map(|task| Call::Forget { task: task.clone() });
    let at_ms = Some(at.as_millis());
    let calls = demand.into_iter().chain(given_up).chain(forgotten);
    calls.map(|call| Answer::Call(CallLine { ev, at_ms, call })).collect()
}

fn closing(ev: u64, entry: &Entry, result: Option<Value>, error: Option<String>) -> Answer {
    let after = After {
        cores: Some(cores(entry.totals.cores)),
        executors: entry.totals.executors.into(),
        limit: entry.limit.map(u64::from),
        stopped: entry.totals.closed,
        ..After::default()
    };
    Answer::Closing(Closing { ev, result, error, after })
}

fn accept(batch: &[Offer<'_>], acceptance: &Acceptance) -> Accept {
    let offers = acceptance.offers.iter().filter_map(|at| batch.get(*at as usize));
    let agent = offers.clone().next().map_or("", |offer| offer.agent_id);
    let tasks = acceptance.executors.iter().map(|it| Task {
        id: it.executor.clone(),
        agent: agent.to_owned(),
        cpus: it.cores.millis() as f64 / 1000.0,
        mem: it.memory.get() as f64,
        gpus: f64::from(it.gpus.get()),
        resources: pieces(batch, &it.pieces),
        ..Task::default()
    });
    Accept {
        offers: offers.map(|offer| offer.id.to_owned()).collect(),
        refuse_seconds: Some(acceptance.refuse.as_secs_f64()),
        tasks: tasks.collect(),
    }
}

fn decline(batch: &[Offer<'_>], decline: &Decline) -> scenario::Decline {
    let offer = batch.get(decline.offer as usize).map_or("", |offer| offer.id);
    scenario::Decline {
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
        Change::Returned => "returned".to_owned(),
        Change::Refused => "refused".to_owned(),
        Change::Ended(fate) => format!("ended: {}", fate.as_str()),
        other => format!("{other:?}"),
    }
}

fn former_line(former: &RecoveredExecutor) -> FormerLine {
    FormerLine {
        executor: former.executor.clone(),
        agent: former.agent_id.clone(),
        host: former.hostname.clone(),
        millicores: former.cores.millis(),
        mem: former.memory.get(),
        gpus: former.gpus.get(),
        port: former.port,
    }
}

fn former_executor(line: &FormerLine) -> RecoveredExecutor {
    RecoveredExecutor {
        executor: line.executor.clone(),
        agent_id: line.agent.clone(),
        hostname: line.host.clone(),
        cores: MilliCpus::from_millis(line.millicores),
        memory: Mebibytes::new(line.mem),
        gpus: Gpus::new(line.gpus),
        port: line.port,
    }
}
