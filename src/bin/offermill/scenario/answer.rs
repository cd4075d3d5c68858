//! Answer files: the calls that a scheduler makes for each event, and its state afterwards.

use std::collections::BTreeMap;

use offermill::engine::journal::{AcceptedOffers, Launched};
use offermill::resources::MilliCpus;
use offermill::{Amount, DEFAULT_ROLE, Offer, Piece, Reservations, Totals};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Number;

use super::head::UniqueKeys;
use super::offer::{OfferLine, RefinedLine, ReservedLine, ResourceLine};

/// A line of an answer file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum AnswerLine {
    /// The first line: whether the settings were accepted.
    Init(InitLine),
    /// The last line of an event. Calls have no `after`.
    Closing(ClosingLine),
    /// A call.
    Call(CallLine),
}

impl<'de> Deserialize<'de> for AnswerLine {
    /// The kind of line follows from its keys.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnswerLine, D::Error> {
        let UniqueKeys(value) = UniqueKeys::deserialize(deserializer)?;
        let has = |key: &str| value.get(key).is_some();
        let (is_init, is_closing, is_call) = (has("init"), has("after"), has("call"));
        let line = match (is_init, is_closing, is_call) {
            (true, ..) => InitLine::deserialize(value).map(AnswerLine::Init),
            (_, true, _) => ClosingLine::deserialize(value).map(AnswerLine::Closing),
            (_, _, true) => CallLine::deserialize(value).map(AnswerLine::Call),
            _ => return Err(D::Error::custom("neither \"init\" nor \"call\" nor \"after\"")),
        };
        line.map_err(D::Error::custom)
    }
}

/// Whether the settings were accepted, and what follows from them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct InitLine {
    /// `ok` or `error`.
    pub(crate) init: String,
    /// The memory of an executor with its overhead, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) executor_memory: Option<u64>,
    /// The core cap; 2147483647 if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_cores: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reject_unmet_constraints_s: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reject_max_cores_s: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locality_wait_ms: Option<u64>,
    /// The cores of a long-lived executor itself, in Spark's fine-grained mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mesos_executor_cores: Option<f64>,
    /// The cores of a task, in Spark's fine-grained mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task_cpus: Option<u32>,
    /// The values that the constraint allows, by attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) constraints: Option<BTreeMap<String, Vec<String>>>,
    /// Why the settings were rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}

/// A call, and the event that caused it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallLine {
    /// The event's number, from 0.
    pub(crate) ev: u64,
    /// The time of the call, if a timer caused it. Such calls precede the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at_ms: Option<u64>,
    #[serde(flatten)]
    pub(crate) call: CallKind,
}

/// A request of the scheduler to the cluster, or to the program that embeds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(crate) enum CallKind {
    Accept(AcceptLine),
    Decline(DeclineLine),
    /// The whole cores of offers, by agent, that Spark's fine-grained backend shows to the scheduler of its tasks.
    Shown {
        agents: Vec<(String, i32)>,
    },
    Revive,
    Suppress,
    Kill {
        task: String,
    },
    /// An executor was unreachable for so long that its resources are given to others.
    GivenUp {
        task: String,
    },
    /// An executor was unreachable for so long that it is removed.
    Forget {
        task: String,
    },
    DriverStop {
        failover: bool,
    },
    ExecutorRemoved {
        executor: String,
        reason: String,
    },
    ShuffleInit {
        app_id: String,
    },
    ShuffleRegister {
        host: String,
        port: u16,
    },
    ShuffleClose,
}

/// Accepted offers, and the tasks to launch on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AcceptLine {
    pub(crate) offers: Vec<String>,
    /// How long the remaining resources are refused for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refuse_seconds: Option<f64>,
    pub(crate) tasks: Vec<TaskLine>,
}

/// A declined offer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeclineLine {
    pub(crate) offer: String,
    /// Without it, the cluster's default applies.
    pub(crate) refuse_seconds: Option<f64>,
    /// The reason, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// A task that launches an executor; in Spark's fine-grained mode, one that a long-lived executor runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskLine {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) agent: String,
    pub(crate) cpus: f64,
    /// In MiB.
    pub(crate) mem: f64,
    pub(crate) gpus: f64,
    /// All pieces of resources, in order.
    pub(crate) resources: Vec<PieceLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) uris: Vec<UriLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) env: Option<BTreeMap<String, String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<ContainerLine>,
    /// The long-lived executor that runs the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) executor: Option<Box<TaskLine>>,
}

/// A part of an offered resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PieceLine {
    pub(crate) name: String,
    #[serde(default = "default_role")]
    pub(crate) role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reservation: Option<ReservedLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reservations: Option<Vec<RefinedLine>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scalar: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ranges: Option<Vec<(u64, u64)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<Vec<String>>,
}

fn default_role() -> String {
    DEFAULT_ROLE.to_owned()
}

/// A file that an executor fetches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UriLine {
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) cache: bool,
}

/// The container of an executor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContainerLine {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    /// All other fields.
    #[serde(flatten)]
    pub(crate) more: BTreeMap<String, serde_json::Value>,
}

/// The last line of an event: its result, and the state after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClosingLine {
    pub(crate) ev: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<serde_json::Value>,
    /// An exception that Spark's backend threw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) after: StateAfter,
}

/// The scheduler's state after an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StateAfter {
    pub(crate) cores: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gpus: Option<u64>,
    pub(crate) executors: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tasks_with_cores: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_task_id: Option<u64>,
    /// The tasks that wait for offers, in Spark's fine-grained mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waiting: Option<u64>,
    pub(crate) limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) launching: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sufficient: Option<bool>,
    pub(crate) stopped: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agents: Option<BTreeMap<String, AgentLine>>,
}

/// The state of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentLine {
    pub(crate) failures: u64,
    pub(crate) tasks: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shuffle: Option<bool>,
    /// Whether a long-lived executor is known there, in Spark's fine-grained mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) executor: Option<bool>,
}

impl StateAfter {
    /// The state of a kernel, in the fields that are the same for every cluster.
    pub(crate) fn of(totals: &Totals, limit: Option<u32>) -> StateAfter {
        StateAfter {
            cores: Some(cores(totals.cores)),
            executors: totals.executors.into(),
            limit: limit.map(u64::from),
            stopped: totals.closed,
            ..StateAfter::default()
        }
    }
}

/// Cores as a number, without a decimal point if they are whole.
fn cores(cores: MilliCpus) -> Number {
    let millis = cores.millis();
    match millis % 1000 {
        0 => Number::from(millis / 1000),
        // The quotient is finite.
        _ => Number::from_f64(millis as f64 / 1000.0).unwrap_or_else(|| Number::from(0)),
    }
}

impl AcceptLine {
    /// The line of an acceptance, without names, commands, files, labels and containers.
    pub(crate) fn of(batch: &[Offer<'_>], accepted: &AcceptedOffers) -> AcceptLine {
        let offers = accepted.offers.iter().filter_map(|at| batch.get(*at as usize));
        let agent = offers.clone().next().map_or("", |offer| offer.agent_id);
        let task = |launched: &Launched| TaskLine {
            id: launched.executor.clone(),
            agent: agent.to_owned(),
            cpus: launched.resources.cores.millis() as f64 / 1000.0,
            mem: launched.resources.memory.get() as f64,
            gpus: f64::from(launched.resources.gpus.get()),
            resources: pieces(batch, &launched.pieces),
            ..TaskLine::default()
        };
        AcceptLine {
            offers: offers.map(|offer| offer.id.to_owned()).collect(),
            refuse_seconds: Some(accepted.refuse.as_secs_f64()),
            tasks: accepted.executors.iter().map(task).collect(),
        }
    }

    /// Adds the roles of reservations, which the kernel doesn't have, from the lines of the batch.
    pub(crate) fn restore_reservation_roles(
        &mut self,
        batch: &[OfferLine],
        accepted: &AcceptedOffers,
    ) {
        let role = |piece: &Piece| {
            let resource = batch.get(piece.offer as usize)?.resources.get(piece.resource as usize);
            resource?.reservation.as_ref()?.role.clone()
        };
        for (task, launched) in self.tasks.iter_mut().zip(&accepted.executors) {
            for (line, piece) in task.resources.iter_mut().zip(&launched.pieces) {
                if let Some(reservation) = &mut line.reservation {
                    reservation.role = role(piece);
                }
            }
        }
    }
}

/// Returns the lines of an executor's pieces of resources.
fn pieces(batch: &[Offer<'_>], pieces: &[Piece]) -> Vec<PieceLine> {
    let line = |piece: &Piece| {
        let resource = batch.get(piece.offer as usize)?.resources.get(piece.resource as usize)?;
        let ResourceLine { name, role, reservation, reservations, .. } = ResourceLine::of(resource);
        let role = match resource.reservations {
            Reservations::PostRefinement(_) => resource.role().to_owned(),
            Reservations::PreRefinement { .. } => role.unwrap_or_else(default_role),
        };
        let mut line = PieceLine { name, role, reservation, reservations, ..PieceLine::default() };
        match piece.amount {
            Amount::Scalar(scalar) => line.scalar = Some(scalar.as_f64()),
            Amount::Port(port) => line.ranges = Some(vec![(port.into(), port.into())]),
        }
        Some(line)
    };
    pieces.iter().filter_map(line).collect()
}
