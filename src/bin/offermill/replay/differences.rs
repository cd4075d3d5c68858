//! Describes the differences between two schedulers' answers to one event.

use std::collections::BTreeMap;

use super::shell_words::split_words;
use crate::scenario::answer::{AgentLine, PieceLine};
use crate::scenario::{AcceptLine, CallKind, ClosingLine, DeclineLine, TaskLine, line};
use crate::text::format::count;

/// The difference below which numbers are equal: Spark adds doubles, the kernel adds thousandths.
const NEAR: f64 = 1e-3;
/// Variables that aren't compared: they depend on the driver's machine and its thread settings.
const IGNORED_VARIABLES: [&str; 2] = ["SPARK_USER", "OMP_NUM_THREADS"];

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < NEAR
}

/// Describes the differences between the calls of one event, regardless of their order. `at_limit` says whether the
/// executor limit was reached before the event.
pub(super) fn calls_differ(want: &[&CallKind], got: &[&CallKind], at_limit: bool) -> Vec<String> {
    let mut found = Vec::new();
    let wanted = by_offer(want);
    let gotten = by_offer(got);
    for (key @ (offer, _), want) in &wanted {
        match (want, gotten.get(key)) {
            (want, None) => {
                found.push(format!("offer {offer}: expected {}, decided nothing", want.sentence()))
            }
            (OfferAnswer::Declined(want), Some(OfferAnswer::Declined(got))) => {
                found.extend(declines_differ(offer, want, got, at_limit));
            }
            (OfferAnswer::Accepted(want), Some(OfferAnswer::Accepted(got))) => {
                found.extend(accepts_differ(offer, want, got));
            }
            (want, Some(got)) => {
                found.push(format!(
                    "offer {offer}: expected {}, decided {}",
                    want.sentence(),
                    got.sentence()
                ));
            }
        }
    }
    for ((offer, _), got) in gotten.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
        found.push(format!("offer {offer}: expected nothing, decided {}", got.sentence()));
    }
    let wanted = other_calls(want);
    let gotten = other_calls(got);
    if wanted != gotten {
        let list = |all: &[String]| match all {
            [] => "no further call".to_owned(),
            all => all.join(", "),
        };
        found.push(format!("expected {}, decided {}", list(&wanted), list(&gotten)));
    }
    found
}

/// Describes the first call of one event that comes in another order, or accepts an offer with its tasks in another
/// order.
pub(super) fn order_differs(want: &[&CallKind], got: &[&CallKind]) -> Option<String> {
    let name = |calls: &[&CallKind], at: usize| {
        calls.get(at).map_or_else(|| "no call".to_owned(), |call| call_name(call))
    };
    let mut places = 0..want.len().max(got.len());
    let at = places.find(|at| name(want, *at) != name(got, *at))?;
    let (want, got) = (name(want, at), name(got, at));
    Some(format!("another order: call {} expected {want}, decided {got}", at + 1))
}

/// Names a call with what it is about.
fn call_name(call: &CallKind) -> String {
    match call {
        CallKind::Accept(accept) => {
            let tasks: Vec<&str> = accept.tasks.iter().map(|task| &*task.id).collect();
            format!("accept {} with {}", accept.offers.join(" + "), tasks.join(", "))
        }
        CallKind::Decline(decline) => format!("decline {}", decline.offer),
        CallKind::Shown { agents } => {
            // An answer that was written by hand may have a number below zero.
            let cores = |cores: i32| match u64::try_from(cores) {
                Ok(cores) => count(cores, "core"),
                Err(_) => format!("{cores} cores"),
            };
            let agents =
                agents.iter().map(|(agent, shown)| format!("{} of {agent}", cores(*shown)));
            format!("shown {}", agents.collect::<Vec<String>>().join(" + "))
        }
        CallKind::Revive => "revive".to_owned(),
        CallKind::Suppress => "suppress".to_owned(),
        CallKind::Kill { task } => format!("kill {task}"),
        CallKind::GivenUp { task } => format!("given_up {task}"),
        CallKind::Forget { task } => format!("forget {task}"),
        CallKind::DriverStop { failover: false } => "driver_stop".to_owned(),
        CallKind::DriverStop { failover: true } => "driver_stop with failover".to_owned(),
        CallKind::ExecutorRemoved { executor, reason } => {
            format!("executor_removed {executor} ({reason})")
        }
        CallKind::ShuffleInit { app_id } => format!("shuffle_init {app_id}"),
        CallKind::ShuffleRegister { host, port } => format!("shuffle_register {host}:{port}"),
        CallKind::ShuffleClose => "shuffle_close".to_owned(),
    }
}

/// The answer to an offer.
enum OfferAnswer<'a> {
    Accepted(&'a AcceptLine),
    Declined(&'a DeclineLine),
}

impl OfferAnswer<'_> {
    fn sentence(&self) -> String {
        match self {
            OfferAnswer::Accepted(accept) => {
                let ids: Vec<&str> = accept.tasks.iter().map(|task| &*task.id).collect();
                format!("to start {} on it", ids.join(", "))
            }
            OfferAnswer::Declined(decline) => format!("to decline it {}", refusal(decline)),
        }
    }
}

fn refusal(decline: &DeclineLine) -> String {
    match decline.refuse_seconds {
        Some(seconds) => format!("for {seconds} s"),
        None => "for Mesos' default time".to_owned(),
    }
}

/// Returns the answers by offers, and by their number among the answers to the same offers: an invalid file may contain
/// several.
fn by_offer<'a>(calls: &[&'a CallKind]) -> BTreeMap<(String, u32), OfferAnswer<'a>> {
    let answer = |call: &&'a CallKind| match call {
        CallKind::Accept(accept) => {
            Some((accept.offers.join(" + "), OfferAnswer::Accepted(accept)))
        }
        CallKind::Decline(decline) => Some((decline.offer.clone(), OfferAnswer::Declined(decline))),
        _ => None,
    };
    let mut answers = BTreeMap::new();
    for (offers, answer) in calls.iter().filter_map(answer) {
        let mut key = (offers, 0);
        while answers.contains_key(&key) {
            key.1 += 1;
        }
        answers.insert(key, answer);
    }
    answers
}

/// Returns the calls that aren't about offers, sorted.
fn other_calls(calls: &[&CallKind]) -> Vec<String> {
    let is_other = |call: &&&CallKind| !matches!(call, CallKind::Accept(_) | CallKind::Decline(_));
    let mut all: Vec<String> = calls.iter().filter(is_other).map(|call| call_name(call)).collect();
    all.sort();
    all
}

fn declines_differ(
    offer: &str,
    want: &DeclineLine,
    got: &DeclineLine,
    at_limit: bool,
) -> Option<String> {
    let is_same = match (want.refuse_seconds, got.refuse_seconds) {
        (Some(want), Some(got)) => near(want, got),
        // Spark checks the limit before the constraint.
        (None, got) => got.is_none() || at_limit,
        (Some(_), None) => false,
    };
    (!is_same).then(|| {
        format!("offer {offer}: expected to decline it {}, decided {}", refusal(want), refusal(got))
    })
}

fn accepts_differ(offer: &str, want: &AcceptLine, got: &AcceptLine) -> Vec<String> {
    let sorted = |accept: &AcceptLine| {
        let mut tasks: Vec<TaskLine> = accept.tasks.clone();
        tasks.sort_by(|a, b| (a.id.len(), &a.id).cmp(&(b.id.len(), &b.id)));
        tasks
    };
    if want.tasks.len() != got.tasks.len() {
        let want = OfferAnswer::Accepted(want).sentence();
        let got = OfferAnswer::Accepted(got).sentence();
        return vec![format!("offer {offer}: expected {want}, decided {got}")];
    }
    let refusals = [want.refuse_seconds, got.refuse_seconds];
    let filter = match refusals {
        [Some(want), Some(got)] if near(want, got) => None,
        [None, None] => None,
        [want, got] => Some(format!("offer {offer}: filter: expected {want:?}, decided {got:?}")),
    };
    let pairs = sorted(want).into_iter().zip(sorted(got));
    let tasks = pairs.flat_map(|(want, got)| {
        let id = want.id.clone();
        let place = move |what: String| format!("offer {offer}, task {id}: {what}");
        task_differs(&want, &got).into_iter().map(place)
    });
    filter.into_iter().chain(tasks).collect()
}

fn task_differs(want: &TaskLine, got: &TaskLine) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, want: String, got: String| {
        if want != got {
            found.push(format!("{what}: expected {want}, decided {got}"));
        }
    };
    differ("id", want.id.clone(), got.id.clone());
    differ("name", format!("{:?}", want.name), format!("{:?}", got.name));
    differ("agent", want.agent.clone(), got.agent.clone());
    for (what, want, got) in
        [("cpus", want.cpus, got.cpus), ("mem", want.mem, got.mem), ("gpus", want.gpus, got.gpus)]
    {
        if !near(want, got) {
            differ(what, want.to_string(), got.to_string());
        }
    }
    if !same_pieces(&sums(&want.resources), &sums(&got.resources)) {
        differ("resources", list_pieces(&want.resources), list_pieces(&got.resources));
    }
    let argv = |task: &TaskLine| format!("{:?}", task.command.as_deref().map(split_words));
    differ("command", argv(want), argv(got));
    let environment = |task: &TaskLine| {
        let mut all = task.env.clone().unwrap_or_default();
        all.retain(|name, _| !IGNORED_VARIABLES.contains(&&**name));
        format!("{all:?}")
    };
    differ("environment", environment(want), environment(got));
    differ("URIs", format!("{:?}", want.uris), format!("{:?}", got.uris));
    differ("labels", format!("{:?}", want.labels), format!("{:?}", got.labels));
    let container = |task: &TaskLine| task.container.as_ref().map_or_else(String::new, line);
    differ(
        "container",
        container(want).trim_end().to_owned(),
        container(got).trim_end().to_owned(),
    );
    match (&want.executor, &got.executor) {
        (Some(want), Some(got)) => {
            let of_executor = |what| format!("its executor's {what}");
            found.extend(task_differs(want, got).into_iter().map(of_executor));
        }
        (None, None) => {}
        (want, _) => {
            let [with, without] = ["one", "none"];
            let [want, got] = if want.is_some() { [with, without] } else { [without, with] };
            found.push(format!("executor: expected {want}, decided {got}"));
        }
    }
    found
}

/// The sum of all pieces of one name, role and reservation.
#[derive(Debug, Default, PartialEq)]
struct PieceSum {
    scalar: f64,
    ranges: Vec<(u64, u64)>,
    items: Vec<String>,
}

fn sums(pieces: &[PieceLine]) -> BTreeMap<String, PieceSum> {
    let mut sums = BTreeMap::<String, PieceSum>::new();
    for piece in pieces {
        let PieceLine { name, role, reservation, reservations, scalar, ranges, set } = piece;
        let sum =
            sums.entry(format!("{name} {role} {reservation:?} {reservations:?}")).or_default();
        sum.scalar += scalar.unwrap_or_default();
        sum.ranges.extend(ranges.iter().flatten());
        sum.ranges.sort_unstable();
        sum.items.extend(set.iter().flatten().cloned());
        sum.items.sort_unstable();
    }
    // Spark's subtractions leave remainders below a thousandth, which Mesos rounds to zero.
    let is_empty =
        |sum: &PieceSum| sum.scalar < 0.0005 && sum.ranges.is_empty() && sum.items.is_empty();
    sums.retain(|_, sum| !is_empty(sum));
    sums
}

fn same_pieces(a: &BTreeMap<String, PieceSum>, b: &BTreeMap<String, PieceSum>) -> bool {
    let same = |a: &PieceSum, b: &PieceSum| {
        near(a.scalar, b.scalar) && a.ranges == b.ranges && a.items == b.items
    };
    a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
}

fn list_pieces(pieces: &[PieceLine]) -> String {
    let pieces: Vec<String> = pieces.iter().map(|it| line(it).trim_end().to_owned()).collect();
    format!("[{}]", pieces.join(", "))
}

/// Describes the differences between the states after an event.
pub(super) fn state_differs(want: &ClosingLine, got: &ClosingLine) -> Vec<String> {
    let want = &want.after;
    let got = &got.after;
    let number = |it: &Option<serde_json::Number>| {
        it.as_ref().and_then(serde_json::Number::as_f64).unwrap_or_default()
    };
    let mut found = Vec::new();
    let mut differ = |what: &str, want: String, got: String| {
        if want != got {
            found.push(format!("{what} after it: expected {want}, decided {got}"));
        }
    };
    let limit =
        |limit: Option<u64>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    if !near(number(&want.cores), number(&got.cores)) {
        differ("cores", number(&want.cores).to_string(), number(&got.cores).to_string());
    }
    differ("executors", want.executors.to_string(), got.executors.to_string());
    differ("limit", limit(want.limit), limit(got.limit));
    differ("stopped", want.stopped.to_string(), got.stopped.to_string());
    // Fields that only one of the schedulers has are not compared.
    if let (Some(want), Some(got)) = (want.gpus, got.gpus) {
        differ("GPUs", want.to_string(), got.to_string());
    }
    if let (Some(want), Some(got)) = (want.waiting, got.waiting) {
        differ("waiting tasks", want.to_string(), got.to_string());
    }
    if let (Some(want), Some(got)) = (want.sufficient, got.sufficient) {
        differ("sufficient resources", want.to_string(), got.to_string());
    }
    if let (Some(want), Some(got)) = (&want.agents, &got.agents) {
        differ("agents", list_agents(want), list_agents(got));
    }
    found
}

/// Lists the agents that have failures, tasks or a long-lived executor.
fn list_agents(agents: &BTreeMap<String, AgentLine>) -> String {
    let describe = |(id, agent): (&String, &AgentLine)| {
        let AgentLine { failures, tasks, shuffle: _, executor } = agent;
        let executor = if *executor == Some(true) { "an executor, " } else { "" };
        let mut tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
        tasks.sort_unstable();
        let is_listed = *failures > 0 || !tasks.is_empty() || !executor.is_empty();
        let tasks = tasks.join(" ");
        is_listed.then(|| format!("{id}: {executor}{}, tasks {tasks}", count(*failures, "failure")))
    };
    let lines: Vec<String> = agents.iter().filter_map(describe).collect();
    format!("({})", lines.join("; "))
}
