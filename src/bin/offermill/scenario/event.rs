//! What happens in a scenario: one event a line.
//!
//! | key | value | what it is |
//! |---|---|---|
//! | `registered` | `{"framework_id"?}` | a subscription begins |
//! | `reregistered`, `disconnected` | `true` | a further one begins; it ends |
//! | `offers` | offers, see [`super::offer`] | one batch, in order |
//! | `rescinded` | offer | it is no longer valid |
//! | `status` | `{"task","agent","state","reason"?,"counts_down"?}` | an update; states and reasons as Mesos names them; with `counts_down` an executor that finished by it lowers the executor limit by one |
//! | `slave_lost` | agent | it is lost |
//! | `executor_lost` | `{"executor","agent"?}` | it is lost |
//! | `request_total` | number or `null`, and beside it `local`: tasks by host | the executor limit, and where tasks want to run |
//! | `limit` | number or `null` | the executor limit alone: where tasks want to run stays as it is |
//! | `kill` | executors | they are to end |
//! | `executor_registered` | `{"cores"}` | one has told the driver that it is there |
//! | `former` | executors, see [`FormerLine`] | those that a former run has left are taken over |
//! | `error` | text | the cluster has no more to do with this framework |
//! | `answers_late` | `true` | the last batch's answers left only after a revive that came meanwhile |
//! | `stop` | `true` | the end begins |
//! | `await_stop` | `true` | until it is over |
//! | `advance_ms` | number | so much time passes |

use std::collections::BTreeMap;
use std::fmt;

use offermill::{LimitRule, TaskState, UpdateReason};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::head::unique;
use super::offer::OfferLine;

/// The keys of events.
const KINDS: &[&str] = &[
    "registered",
    "reregistered",
    "disconnected",
    "offers",
    "rescinded",
    "status",
    "slave_lost",
    "executor_lost",
    "request_total",
    "limit",
    "kill",
    "executor_registered",
    "former",
    "error",
    "answers_late",
    "stop",
    "await_stop",
    "advance_ms",
];

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    /// Its moment, in milliseconds since the start.
    pub(crate) at_ms: Option<u64>,
    pub(crate) what: What,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Registered(Registered),
    Reregistered,
    Disconnected,
    Offers(Vec<OfferLine>),
    Rescinded(String),
    Status(Status),
    SlaveLost(String),
    ExecutorLost(Lost),
    RequestTotal { total: Option<u32>, local: BTreeMap<String, u64> },
    Limit(Option<u32>),
    Kill(Vec<String>),
    ExecutorRegistered(Cores),
    Recovered(Vec<FormerLine>),
    Error(String),
    AnswersLate,
    Stop,
    AwaitStop,
    AdvanceMs(u64),
}

/// A subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Registered {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) framework_id: Option<String>,
}

/// A status update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    pub(crate) task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    pub(crate) state: StateLine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) counts_down: bool,
}

/// A task state by its name, such as `TASK_RUNNING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateLine(pub(crate) TaskState);

/// An executor that was reported lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lost {
    pub(crate) executor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
}

/// Cores that an executor has told of. Fewer than none take some back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cores {
    pub(crate) cores: i64,
}

/// An executor that a former run has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FormerLine {
    pub(crate) executor: String,
    pub(crate) agent: String,
    pub(crate) host: String,
    /// In thousandths.
    pub(crate) millicores: u64,
    /// In MiB, overhead included.
    pub(crate) mem: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) gpus: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<u16>,
}

// A reference is what serde passes.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

// A reference is what serde passes.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Status {
    /// Why, as far as it matters.
    pub(crate) fn update_reason(&self) -> UpdateReason {
        self.reason.as_deref().map_or(UpdateReason::Other, read_reason)
    }

    /// What it does to the executor limit, if the executor finished.
    pub(crate) fn limit_rule(&self) -> LimitRule {
        if self.counts_down { LimitRule::CountDown } else { LimitRule::Keep }
    }
}

/// The reason that Mesos' name stands for. Old and new names of one are the same.
fn read_reason(name: &str) -> UpdateReason {
    match name.strip_prefix("REASON_").unwrap_or(name) {
        "AGENT_DISCONNECTED" | "SLAVE_DISCONNECTED" => UpdateReason::AgentDisconnected,
        "AGENT_REMOVED"
        | "SLAVE_REMOVED"
        | "AGENT_REMOVED_BY_OPERATOR"
        | "SLAVE_REMOVED_BY_OPERATOR" => UpdateReason::AgentRemoved,
        "RECONCILIATION" => UpdateReason::Reconciliation,
        "INVALID_OFFERS" => UpdateReason::InvalidOffers,
        "AGENT_DRAINING" | "SLAVE_DRAINING" => UpdateReason::AgentDraining,
        "CONTAINER_PREEMPTED" => UpdateReason::Preempted,
        _ => UpdateReason::Other,
    }
}

/// Mesos' name of a reason; none of one that doesn't matter.
pub(crate) fn reason_name(reason: UpdateReason) -> Option<&'static str> {
    match reason {
        UpdateReason::AgentDisconnected => Some("REASON_AGENT_DISCONNECTED"),
        UpdateReason::AgentRemoved => Some("REASON_AGENT_REMOVED"),
        UpdateReason::Reconciliation => Some("REASON_RECONCILIATION"),
        UpdateReason::InvalidOffers => Some("REASON_INVALID_OFFERS"),
        UpdateReason::AgentDraining => Some("REASON_AGENT_DRAINING"),
        UpdateReason::Preempted => Some("REASON_CONTAINER_PREEMPTED"),
        _ => None,
    }
}

/// All states.
const STATES: [TaskState; 14] = [
    TaskState::Staging,
    TaskState::Starting,
    TaskState::Running,
    TaskState::Killing,
    TaskState::Finished,
    TaskState::Failed,
    TaskState::Killed,
    TaskState::Error,
    TaskState::Lost,
    TaskState::Dropped,
    TaskState::Unreachable,
    TaskState::Gone,
    TaskState::GoneByOperator,
    TaskState::Unknown,
];

impl Serialize for StateLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for StateLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StateLine, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = STATES.into_iter().find(|state| state.as_str() == name);
        found.map(StateLine).ok_or_else(|| {
            let names = STATES.map(TaskState::as_str).join(", ");
            D::Error::custom(format_args!("unknown state {name:?}, expected one of {names}"))
        })
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(at) = self.at_ms {
            map.serialize_entry("at_ms", &at)?;
        }
        match &self.what {
            What::Registered(registered) => map.serialize_entry("registered", registered)?,
            What::Reregistered => map.serialize_entry("reregistered", &true)?,
            What::Disconnected => map.serialize_entry("disconnected", &true)?,
            What::Offers(offers) => map.serialize_entry("offers", offers)?,
            What::Rescinded(offer) => map.serialize_entry("rescinded", offer)?,
            What::Status(status) => map.serialize_entry("status", status)?,
            What::SlaveLost(agent) => map.serialize_entry("slave_lost", agent)?,
            What::ExecutorLost(lost) => map.serialize_entry("executor_lost", lost)?,
            What::RequestTotal { total, local } => {
                map.serialize_entry("request_total", total)?;
                if !local.is_empty() {
                    map.serialize_entry("local", local)?;
                }
            }
            What::Limit(total) => map.serialize_entry("limit", total)?,
            What::Kill(executors) => map.serialize_entry("kill", executors)?,
            What::ExecutorRegistered(cores) => map.serialize_entry("executor_registered", cores)?,
            What::Recovered(former) => map.serialize_entry("former", former)?,
            What::Error(message) => map.serialize_entry("error", message)?,
            What::AnswersLate => map.serialize_entry("answers_late", &true)?,
            What::Stop => map.serialize_entry("stop", &true)?,
            What::AwaitStop => map.serialize_entry("await_stop", &true)?,
            What::AdvanceMs(ms) => map.serialize_entry("advance_ms", ms)?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

/// A map of tasks by host.
struct Local(BTreeMap<String, u64>);

impl<'de> Deserialize<'de> for Local {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Local, D::Error> {
        unique(deserializer).map(Local)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event: an object with one key that says which")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let (mut at_ms, mut local, mut what) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            let is_twice = match &*key {
                "at_ms" => at_ms.replace(map.next_value::<u64>()?).is_some(),
                "local" => local.replace(map.next_value::<Local>()?.0).is_some(),
                kind if KINDS.contains(&kind) && what.is_some() => {
                    // Its value is of no interest any more.
                    let _skipped: IgnoredAny = map.next_value()?;
                    return Err(A::Error::custom(format_args!(
                        "a second event, {kind:?}, expected one a line"
                    )));
                }
                kind => what.replace(read_what(kind, &mut map)?).is_some(),
            };
            if is_twice {
                return Err(A::Error::custom(format_args!(
                    "the key {key:?} comes twice, expected each once"
                )));
            }
        }
        match (what, local) {
            (None, _) => Err(A::Error::custom(format_args!(
                "no event, expected one of {}",
                KINDS.join(", ")
            ))),
            (Some(What::RequestTotal { total, .. }), Some(local)) => {
                Ok(Event { at_ms, what: What::RequestTotal { total, local } })
            }
            (Some(_), Some(_)) => {
                Err(A::Error::custom("\"local\" by itself, expected it beside \"request_total\""))
            }
            (Some(what), None) => Ok(Event { at_ms, what }),
        }
    }
}

/// Reads the value of an event of this kind.
fn read_what<'de, A: MapAccess<'de>>(kind: &str, map: &mut A) -> Result<What, A::Error> {
    let what = match kind {
        "registered" => What::Registered(map.next_value()?),
        "reregistered" => truly(map, What::Reregistered)?,
        "disconnected" => truly(map, What::Disconnected)?,
        "offers" => What::Offers(offers(map.next_value()?)?),
        "rescinded" => What::Rescinded(map.next_value()?),
        "status" => What::Status(map.next_value()?),
        "slave_lost" => What::SlaveLost(map.next_value()?),
        "executor_lost" => What::ExecutorLost(map.next_value()?),
        "request_total" => What::RequestTotal { total: map.next_value()?, local: BTreeMap::new() },
        "limit" => What::Limit(map.next_value()?),
        "kill" => What::Kill(map.next_value()?),
        "executor_registered" => What::ExecutorRegistered(map.next_value()?),
        "former" => What::Recovered(map.next_value()?),
        "error" => What::Error(map.next_value()?),
        "answers_late" => truly(map, What::AnswersLate)?,
        "stop" => truly(map, What::Stop)?,
        "await_stop" => truly(map, What::AwaitStop)?,
        "advance_ms" => What::AdvanceMs(map.next_value()?),
        _ => {
            return Err(A::Error::custom(format_args!(
                "unknown event {kind:?}, expected one of {}",
                KINDS.join(", ")
            )));
        }
    };
    Ok(what)
}

fn offers<E: Error>(offers: Vec<OfferLine>) -> Result<Vec<OfferLine>, E> {
    match offers.iter().find_map(OfferLine::fault) {
        Some(fault) => Err(E::custom(fault)),
        None => Ok(offers),
    }
}

/// Reads the `true` of an event that says no more.
fn truly<'de, A: MapAccess<'de>>(map: &mut A, what: What) -> Result<What, A::Error> {
    match map.next_value::<bool>()? {
        true => Ok(what),
        false => Err(A::Error::custom("false, expected true")),
    }
}
