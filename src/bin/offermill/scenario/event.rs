//! The events of a scenario, one per line.
//!
//! | key | value | event |
//! |---|---|---|
//! | `registered` | `{"framework_id"?}` | the framework subscribed |
//! | `reregistered`, `disconnected` | `true` | it subscribed again; the subscription ended |
//! | `offers` | offers, see [`super::offer`] | a batch of offers, in order |
//! | `rescinded` | offer | the offer is no longer valid |
//! | `status` | `{"task","agent","state","reason"?,"counts_down"?}` | a status update; states and reasons have Mesos' names; with `counts_down` an executor that finishes lowers the executor limit by one |
//! | `bound` | `{"task","agent","host"?,"region"?,"zone"?,"attributes"?}` | a task without an agent was found on one; without `attributes`, these are unknown |
//! | `slave_lost` | agent | the agent was lost |
//! | `executor_lost` | `{"executor","agent"?}` | the executor was lost |
//! | `agent_readmitted` | agent | the agent's exclusion was ended |
//! | `request_total` | number or `null`, and beside it `local`: tasks by host | sets the executor limit and the preferred hosts; a negative number changes nothing |
//! | `limit` | number or `null` | sets the executor limit and keeps the preferred hosts |
//! | `kill` | executors | requests to kill executors |
//! | `executor_registered` | `{"cores"}` | an executor registered with the driver |
//! | `tasks` | number | Spark's next stage has that many tasks, which wait; only its fine-grained mode places them |
//! | `former` | executors, see [`RecoveredLine`] | executors of a former run are adopted |
//! | `error` | text | the cluster rejected the framework |
//! | `answers_late` | `true` | the last batch's answers were sent only after a revive that was requested meanwhile |
//! | `stop` | `true` | the shutdown begins |
//! | `await_stop` | `true` | waits for the end of the shutdown |
//! | `advance_ms` | number | that many milliseconds pass |

use std::collections::BTreeMap;
use std::fmt;

use offermill::{LimitRule, TaskState, UpdateReason};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::head::unique;
use super::offer::{AttributeLine, OfferLine, is_false};

/// The maximum number of tasks of a stage.
const TASKS_MAX: u32 = 100_000;
/// The keys of all events.
const KINDS: &[&str] = &[
    "registered",
    "reregistered",
    "disconnected",
    "offers",
    "rescinded",
    "status",
    "bound",
    "slave_lost",
    "executor_lost",
    "agent_readmitted",
    "request_total",
    "limit",
    "kill",
    "executor_registered",
    "tasks",
    "former",
    "error",
    "answers_late",
    "stop",
    "await_stop",
    "advance_ms",
];

/// An event and its time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScenarioEvent {
    /// The time of the event, in milliseconds since the start. Without it, the time of the previous event.
    pub(crate) at_ms: Option<u64>,
    pub(crate) kind: EventKind,
}

/// The kind of an event, with its data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventKind {
    Registered(RegisteredLine),
    Reregistered,
    Disconnected,
    Offers(Vec<OfferLine>),
    Rescinded(String),
    Status(StatusLine),
    Bound(BoundLine),
    SlaveLost(String),
    ExecutorLost(LostLine),
    AgentReadmitted(String),
    RequestTotal {
        total: Option<u32>,
        local: BTreeMap<String, u64>,
    },
    /// A request for a negative number of executors, which is rejected.
    NegativeRequest(i64),
    Limit(Option<u32>),
    Kill(Vec<String>),
    ExecutorRegistered(CoresLine),
    /// Tasks of one stage.
    Tasks(u32),
    Recovered(Vec<RecoveredLine>),
    Error(String),
    AnswersLate,
    Stop,
    AwaitStop,
    AdvanceMs(u64),
}

/// The data of `registered`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegisteredLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) framework_id: Option<String>,
}

/// The data of `status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusLine {
    pub(crate) task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    pub(crate) state: StateLine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) counts_down: bool,
}

/// The data of `bound`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoundLine {
    pub(crate) task: String,
    pub(crate) agent: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) region: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attributes: Option<Vec<AttributeLine>>,
}

/// A task state, written as its name, such as `TASK_RUNNING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateLine(pub(crate) TaskState);

/// The data of `executor_lost`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LostLine {
    pub(crate) executor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
}

/// The data of `executor_registered`: the cores of an executor. A negative number removes cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CoresLine {
    pub(crate) cores: i64,
}

/// An executor that a former run left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecoveredLine {
    pub(crate) executor: String,
    pub(crate) agent: String,
    pub(crate) host: String,
    /// Cores, in thousandths.
    pub(crate) millicores: u64,
    /// Memory, in MiB, including the overhead.
    pub(crate) mem: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) gpus: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<u16>,
    /// Whether it is bound late, if there is no agent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) late: bool,
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl StatusLine {
    /// Returns the reason as far as the kernel distinguishes it.
    pub(crate) fn update_reason(&self) -> UpdateReason {
        self.reason.as_deref().map_or(UpdateReason::Other, read_reason)
    }

    /// Returns how the update changes the executor limit if the executor finished.
    pub(crate) fn limit_rule(&self) -> LimitRule {
        if self.counts_down { LimitRule::CountDown } else { LimitRule::Keep }
    }
}

/// Reads Mesos' name of a reason. Old and new names of a reason are equivalent.
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

/// Returns Mesos' name of a reason; none for a reason that the kernel doesn't distinguish.
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

/// All task states.
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

impl Serialize for ScenarioEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(at) = self.at_ms {
            map.serialize_entry("at_ms", &at)?;
        }
        match &self.kind {
            EventKind::Registered(registered) => map.serialize_entry("registered", registered)?,
            EventKind::Reregistered => map.serialize_entry("reregistered", &true)?,
            EventKind::Disconnected => map.serialize_entry("disconnected", &true)?,
            EventKind::Offers(offers) => map.serialize_entry("offers", offers)?,
            EventKind::Rescinded(offer) => map.serialize_entry("rescinded", offer)?,
            EventKind::Status(status) => map.serialize_entry("status", status)?,
            EventKind::Bound(bound) => map.serialize_entry("bound", bound)?,
            EventKind::SlaveLost(agent) => map.serialize_entry("slave_lost", agent)?,
            EventKind::ExecutorLost(lost) => map.serialize_entry("executor_lost", lost)?,
            EventKind::AgentReadmitted(agent) => map.serialize_entry("agent_readmitted", agent)?,
            EventKind::RequestTotal { total, local } => {
                map.serialize_entry("request_total", total)?;
                if !local.is_empty() {
                    map.serialize_entry("local", local)?;
                }
            }
            EventKind::NegativeRequest(total) => map.serialize_entry("request_total", total)?,
            EventKind::Limit(total) => map.serialize_entry("limit", total)?,
            EventKind::Kill(executors) => map.serialize_entry("kill", executors)?,
            EventKind::ExecutorRegistered(cores) => {
                map.serialize_entry("executor_registered", cores)?
            }
            EventKind::Tasks(count) => map.serialize_entry("tasks", count)?,
            EventKind::Recovered(former) => map.serialize_entry("former", former)?,
            EventKind::Error(message) => map.serialize_entry("error", message)?,
            EventKind::AnswersLate => map.serialize_entry("answers_late", &true)?,
            EventKind::Stop => map.serialize_entry("stop", &true)?,
            EventKind::AwaitStop => map.serialize_entry("await_stop", &true)?,
            EventKind::AdvanceMs(ms) => map.serialize_entry("advance_ms", ms)?,
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ScenarioEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ScenarioEvent, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

/// The number of tasks by host.
struct TasksByHost(BTreeMap<String, u64>);

impl<'de> Deserialize<'de> for TasksByHost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TasksByHost, D::Error> {
        unique(deserializer).map(TasksByHost)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = ScenarioEvent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event: an object with one key, the kind of event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ScenarioEvent, A::Error> {
        let mut at_ms = None;
        let mut local = None;
        let mut kind = None;
        while let Some(key) = map.next_key::<String>()? {
            let is_twice = match &*key {
                "at_ms" => at_ms.replace(map.next_value::<u64>()?).is_some(),
                "local" => local.replace(map.next_value::<TasksByHost>()?.0).is_some(),
                key if KINDS.contains(&key) && kind.is_some() => {
                    let _skipped: IgnoredAny = map.next_value()?;
                    return Err(A::Error::custom(format_args!(
                        "a second event, {key:?}, expected one per line"
                    )));
                }
                key => kind.replace(read_kind(key, &mut map)?).is_some(),
            };
            if is_twice {
                return Err(A::Error::custom(format_args!(
                    "the key {key:?} occurs twice, expected each once"
                )));
            }
        }
        match (kind, local) {
            (None, _) => Err(A::Error::custom(format_args!(
                "no event, expected one of {}",
                KINDS.join(", ")
            ))),
            (Some(EventKind::RequestTotal { total, .. }), Some(local)) => {
                Ok(ScenarioEvent { at_ms, kind: EventKind::RequestTotal { total, local } })
            }
            (Some(kind @ EventKind::NegativeRequest(_)), Some(_)) => {
                Ok(ScenarioEvent { at_ms, kind })
            }
            (Some(_), Some(_)) => {
                Err(A::Error::custom("\"local\" by itself, expected it beside \"request_total\""))
            }
            (Some(kind), None) => Ok(ScenarioEvent { at_ms, kind }),
        }
    }
}

/// Reads the value of the event with this key.
fn read_kind<'de, A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<EventKind, A::Error> {
    let kind = match key {
        "registered" => EventKind::Registered(map.next_value()?),
        "reregistered" => read_true(map, EventKind::Reregistered)?,
        "disconnected" => read_true(map, EventKind::Disconnected)?,
        "offers" => EventKind::Offers(checked(map.next_value()?)?),
        "rescinded" => EventKind::Rescinded(map.next_value()?),
        "status" => EventKind::Status(map.next_value()?),
        "bound" => EventKind::Bound(map.next_value()?),
        "slave_lost" => EventKind::SlaveLost(map.next_value()?),
        "executor_lost" => EventKind::ExecutorLost(map.next_value()?),
        "agent_readmitted" => EventKind::AgentReadmitted(map.next_value()?),
        "request_total" => read_request(map.next_value()?)?,
        "limit" => EventKind::Limit(map.next_value()?),
        "kill" => EventKind::Kill(map.next_value()?),
        "executor_registered" => EventKind::ExecutorRegistered(map.next_value()?),
        "tasks" => EventKind::Tasks(read_tasks(map.next_value()?)?),
        "former" => EventKind::Recovered(map.next_value()?),
        "error" => EventKind::Error(map.next_value()?),
        "answers_late" => read_true(map, EventKind::AnswersLate)?,
        "stop" => read_true(map, EventKind::Stop)?,
        "await_stop" => read_true(map, EventKind::AwaitStop)?,
        "advance_ms" => EventKind::AdvanceMs(map.next_value()?),
        _ => {
            return Err(A::Error::custom(format_args!(
                "unknown event {key:?}, expected one of {}",
                KINDS.join(", ")
            )));
        }
    };
    Ok(kind)
}

/// Reads the number of a `request_total`.
fn read_request<E: Error>(total: Option<i64>) -> Result<EventKind, E> {
    if let Some(total) = total.filter(|total| *total < 0) {
        return Ok(EventKind::NegativeRequest(total));
    }
    let total = total.map(u32::try_from).transpose().map_err(|_| {
        let most = u32::MAX;
        E::custom(format_args!("too many executors, expected at most {most}, or null"))
    })?;
    Ok(EventKind::RequestTotal { total, local: BTreeMap::new() })
}

/// Checks the number of a stage's tasks.
fn read_tasks<E: Error>(count: u32) -> Result<u32, E> {
    match count {
        1..=TASKS_MAX => Ok(count),
        _ => Err(E::custom(format_args!("{count} tasks, expected 1 to {TASKS_MAX}"))),
    }
}

/// Checks the offers of a batch.
fn checked<E: Error>(offers: Vec<OfferLine>) -> Result<Vec<OfferLine>, E> {
    match offers.iter().find_map(OfferLine::error) {
        Some(error) => Err(E::custom(error)),
        None => Ok(offers),
    }
}

/// Reads the `true` of an event without data.
fn read_true<'de, A: MapAccess<'de>>(map: &mut A, kind: EventKind) -> Result<EventKind, A::Error> {
    match map.next_value::<bool>()? {
        true => Ok(kind),
        false => Err(A::Error::custom("false, expected true")),
    }
}
