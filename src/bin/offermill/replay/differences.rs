//! What differs between two answers to one event, in words.

use std::collections::BTreeMap;

use super::argv::split;
use crate::scenario::answer::{AgentLine, PieceLine};
use crate::scenario::{Accept, Call, Closing, Decline, Task, line};

/// Numbers that are closer are equal: Spark adds up as it comes, the kernel in thousandths.
const NEAR: f64 = 1e-3;
/// These say where a driver runs, and how many threads libraries take.
const PASSED_OVER: [&str; 2] = ["SPARK_USER", "OMP_NUM_THREADS"];

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < NEAR
}

/// What differs between the calls of one event. Their order doesn't count. `at_limit` says that the executor limit was
/// reached before it.
pub(super) fn calls_differ(want: &[&Call], got: &[&Call], at_limit: bool) -> Vec<String> {
    let mut found = Vec::new();
    let (wanted, gotten) = (by_offer(want), by_offer(got));
    for (offer, want) in &wanted {
        match (want, gotten.get(offer)) {
            (want, None) => {
                found.push(format!("offer {offer}: expected {}, decided nothing", want.told()))
            }
            (Answer::Declined(want), Some(Answer::Declined(got))) => {
                found.extend(declines_differ(offer, want, got, at_limit));
            }
            (Answer::Accepted(want), Some(Answer::Accepted(got))) => {
                found.extend(accepts_differ(offer, want, got));
            }
            (want, Some(got)) => {
                found.push(format!(
                    "offer {offer}: expected {}, decided {}",
                    want.told(),
                    got.told()
                ));
            }
        }
    }
    for (offer, got) in gotten.iter().filter(|(offer, _)| !wanted.contains_key(*offer)) {
        found.push(format!("offer {offer}: expected nothing, decided {}", got.told()));
    }
    let (wanted, gotten) = (others(want), others(got));
    if wanted != gotten {
        let told = |all: &[String]| match all {
            [] => "no further call".to_owned(),
            all => all.join(", "),
        };
        found.push(format!("expected {}, decided {}", told(&wanted), told(&gotten)));
    }
    found
}

/// What became of an offer.
enum Answer<'a> {
    Accepted(&'a Accept),
    Declined(&'a Decline),
}

impl Answer<'_> {
    fn told(&self) -> String {
        match self {
            Answer::Accepted(accept) => {
                let ids: Vec<&str> = accept.tasks.iter().map(|task| &*task.id).collect();
                format!("to start {} on it", ids.join(", "))
            }
            Answer::Declined(decline) => format!("to decline it {}", refusal(decline)),
        }
    }
}

fn refusal(decline: &Decline) -> String {
    match decline.refuse_seconds {
        Some(seconds) => format!("for {seconds} s"),
        None => "for as long as Mesos likes".to_owned(),
    }
}

fn by_offer<'a>(calls: &[&'a Call]) -> BTreeMap<String, Answer<'a>> {
    let answer = |call: &&'a Call| match call {
        Call::Accept(accept) => Some((accept.offers.join(" + "), Answer::Accepted(accept))),
        Call::Decline(decline) => Some((decline.offer.clone(), Answer::Declined(decline))),
        _ => None,
    };
    calls.iter().filter_map(answer).collect()
}

/// Calls that aren't about offers, sorted.
fn others(calls: &[&Call]) -> Vec<String> {
    let told = |call: &&Call| match call {
        Call::Accept(_) | Call::Decline(_) => None,
        // What it belongs to is told with the registration.
        Call::ShuffleInit { .. } | Call::ShuffleClose => None,
        Call::Revive => Some("revive".to_owned()),
        Call::Suppress => Some("suppress".to_owned()),
        Call::Kill { task } => Some(format!("kill {task}")),
        Call::GivenUp { task } => Some(format!("given_up {task}")),
        Call::Forget { task } => Some(format!("forget {task}")),
        Call::DriverStop { .. } => Some("driver_stop".to_owned()),
        Call::ExecutorRemoved { executor, .. } => Some(format!("executor_removed {executor}")),
        Call::ShuffleRegister { host, port } => Some(format!("shuffle_register {host}:{port}")),
    };
    let mut all: Vec<String> = calls.iter().filter_map(told).collect();
    all.sort();
    all
}

fn declines_differ(offer: &str, want: &Decline, got: &Decline, at_limit: bool) -> Option<String> {
    let is_same = match (want.refuse_seconds, got.refuse_seconds) {
        (Some(want), Some(got)) => near(want, got),
        // Spark looks at the limit before the constraint.
        (None, got) => got.is_none() || at_limit,
        (Some(_), None) => false,
    };
    (!is_same).then(|| {
        format!("offer {offer}: expected to decline it {}, decided {}", refusal(want), refusal(got))
    })
}

fn accepts_differ(offer: &str, want: &Accept, got: &Accept) -> Vec<String> {
    let sorted = |accept: &Accept| {
        let mut tasks: Vec<Task> = accept.tasks.clone();
        tasks.sort_by(|a, b| (a.id.len(), &a.id).cmp(&(b.id.len(), &b.id)));
        tasks
    };
    if want.tasks.len() != got.tasks.len() {
        let (want, got) = (Answer::Accepted(want).told(), Answer::Accepted(got).told());
        return vec![format!("offer {offer}: expected {want}, decided {got}")];
    }
    let pairs = sorted(want).into_iter().zip(sorted(got));
    pairs
        .flat_map(|(want, got)| {
            let id = want.id.clone();
            let place = move |what: String| format!("offer {offer}, task {id}: {what}");
            task_differs(&want, &got).into_iter().map(place)
        })
        .collect()
}

fn task_differs(want: &Task, got: &Task) -> Vec<String> {
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
    let (wanted, gotten) = (pieces(&want.resources), pieces(&got.resources));
    if !same_pieces(&wanted, &gotten) {
        differ("resources", pieces_told(&want.resources), pieces_told(&got.resources));
    }
    let argv = |task: &Task| format!("{:?}", task.command.as_deref().map(split));
    differ("command", argv(want), argv(got));
    let environment = |task: &Task| {
        let mut all = task.env.clone().unwrap_or_default();
        all.retain(|name, _| !PASSED_OVER.contains(&&**name));
        format!("{all:?}")
    };
    differ("environment", environment(want), environment(got));
    differ("URIs", format!("{:?}", want.uris), format!("{:?}", got.uris));
    differ("labels", format!("{:?}", want.labels), format!("{:?}", got.labels));
    let container = |task: &Task| task.container.as_ref().map_or_else(String::new, line);
    differ(
        "container",
        container(want).trim_end().to_owned(),
        container(got).trim_end().to_owned(),
    );
    found
}

/// Pieces of one name, role and reservation, put together.
#[derive(Debug, Default, PartialEq)]
struct Sum {
    scalar: f64,
    ranges: Vec<(u64, u64)>,
    items: Vec<String>,
}

fn pieces(pieces: &[PieceLine]) -> BTreeMap<String, Sum> {
    let mut sums = BTreeMap::<String, Sum>::new();
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
    // Less than a thousandth is what is left over when Spark subtracts; for Mesos it is nothing.
    let is_nothing =
        |sum: &Sum| sum.scalar < 0.0005 && sum.ranges.is_empty() && sum.items.is_empty();
    sums.retain(|_, sum| !is_nothing(sum));
    sums
}

fn same_pieces(a: &BTreeMap<String, Sum>, b: &BTreeMap<String, Sum>) -> bool {
    let same =
        |a: &Sum, b: &Sum| near(a.scalar, b.scalar) && a.ranges == b.ranges && a.items == b.items;
    a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
}

fn pieces_told(pieces: &[PieceLine]) -> String {
    let pieces: Vec<String> = pieces.iter().map(|it| line(it).trim_end().to_owned()).collect();
    format!("[{}]", pieces.join(", "))
}

/// What differs in the state after an event.
pub(super) fn state_differs(want: &Closing, got: &Closing) -> Vec<String> {
    let (want, got) = (&want.after, &got.after);
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
    // What isn't kept in one's own way isn't compared.
    if let (Some(want), Some(got)) = (want.gpus, got.gpus) {
        differ("GPUs", want.to_string(), got.to_string());
    }
    if let (Some(want), Some(got)) = (want.sufficient, got.sufficient) {
        differ("sufficient resources", want.to_string(), got.to_string());
    }
    if let (Some(want), Some(got)) = (&want.agents, &got.agents) {
        differ("agents", agents(want), agents(got));
    }
    found
}

/// Agents of which there is something to tell.
fn agents(agents: &BTreeMap<String, AgentLine>) -> String {
    let told = |(id, agent): (&String, &AgentLine)| {
        let AgentLine { failures, tasks, shuffle: _ } = agent;
        let mut tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
        tasks.sort_unstable();
        let is_something = *failures > 0 || !tasks.is_empty();
        is_something.then(|| format!("{id}: {failures} failures, tasks {}", tasks.join(" ")))
    };
    let told: Vec<String> = agents.iter().filter_map(told).collect();
    format!("({})", told.join("; "))
}
