//! What a scheduler does in answer to events.

use std::collections::BTreeMap;

use offermill::resources::MilliCpus;
use offermill::{Accepted, Amount, DEFAULT_ROLE, Kernel, Offer, Piece, Placed, Reservations};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::offer::{RefinedLine, ReservedLine, ResourceLine};

/// A line of answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// The first line.
    Init(Init),
    /// The last line of an event. (Calls have no `after`.)
    Closing(Closing),
    /// A call.
    Call(CallLine),
}

/// How the start went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Init {
    /// `ok` or `error`.
    pub(crate) init: String,
    /// The memory of an executor with its overhead, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) executor_memory: Option<u64>,
    /// The core cap; 2147483647 is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_cores: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reject_unmet_constraints_s: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reject_max_cores_s: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locality_wait_ms: Option<u64>,
    /// The values that may be, by attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) constraints: Option<BTreeMap<String, Vec<String>>>,
    /// What is wrong with the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
}

/// A call and the event that it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallLine {
    /// The event's number, from 0.
    pub(crate) ev: u64,
    /// Its moment, if time alone asked for it: then it came before the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at_ms: Option<u64>,
    #[serde(flatten)]
    pub(crate) call: Call,
}

/// What a scheduler asks the cluster, or the program around it, to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub(crate) enum Call {
    Accept(Accept),
    Decline(Decline),
    Revive,
    Suppress,
    Kill {
        task: String,
    },
    /// An executor is out of sight for so long that others get what it had.
    GivenUp {
        task: String,
    },
    /// An executor is out of sight for so long that it is forgotten.
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

/// Offers that are used, and for what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Accept {
    pub(crate) offers: Vec<String>,
    /// How long what the tasks leave is refused for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refuse_seconds: Option<f64>,
    pub(crate) tasks: Vec<Task>,
}

/// An offer that isn't used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decline {
    pub(crate) offer: String,
    /// None leaves it to the cluster.
    pub(crate) refuse_seconds: Option<f64>,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// An executor that is started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) agent: String,
    pub(crate) cpus: f64,
    /// In MiB.
    pub(crate) mem: f64,
    pub(crate) gpus: f64,
    /// Every piece, in order.
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
    pub(crate) container: Option<Container>,
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

/// A file that an executor needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UriLine {
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) cache: bool,
}

/// What an executor runs in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Container {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    /// Whatever else there is.
    #[serde(flatten)]
    pub(crate) more: BTreeMap<String, serde_json::Value>,
}

/// How things stand after an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Closing {
    pub(crate) ev: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<serde_json::Value>,
    /// An exception that left Spark's class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    pub(crate) after: After,
}

/// The scheduler's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct After {
    pub(crate) cores: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gpus: Option<u64>,
    pub(crate) executors: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tasks_with_cores: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_task_id: Option<u64>,
    pub(crate) limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) launching: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sufficient: Option<bool>,
    pub(crate) stopped: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agents: Option<BTreeMap<String, AgentLine>>,
}

/// What is known of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentLine {
    pub(crate) failures: u64,
    pub(crate) tasks: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shuffle: Option<bool>,
}

impl After {
    /// How a kernel stands, in what is the same on every cluster.
    pub(crate) fn of(kernel: &Kernel) -> After {
        let totals = kernel.totals();
        After {
            cores: Some(cores(totals.cores)),
            executors: totals.executors.into(),
            limit: kernel.executor_limit().map(u64::from),
            stopped: totals.closed,
            ..After::default()
        }
    }
}

/// A number that is whole if the cores are.
pub(crate) fn cores(cores: MilliCpus) -> Number {
    let millis = cores.millis();
    match millis % 1000 {
        0 => Number::from(millis / 1000),
        // Thousandths are never infinite.
        _ => Number::from_f64(millis as f64 / 1000.0).unwrap_or_else(|| Number::from(0)),
    }
}

impl Accept {
    /// What the kernel accepts of a batch. Names, commands and what comes with them are left out.
    pub(crate) fn of(kernel: &Kernel, batch: &[Offer<'_>], accepted: &Accepted<'_>) -> Accept {
        let offers = accepted.offers.iter().filter_map(|at| batch.get(*at as usize));
        let agent = offers.clone().next().map_or("", |offer| offer.agent_id);
        let task = |placed: &Placed| Task {
            id: kernel.executor_name(placed.id).to_string(),
            agent: agent.to_owned(),
            cpus: placed.cores.millis() as f64 / 1000.0,
            mem: placed.memory.get() as f64,
            gpus: f64::from(placed.gpus.get()),
            resources: pieces(batch, accepted.pieces(placed)),
            ..Task::default()
        };
        Accept {
            offers: offers.map(|offer| offer.id.to_owned()).collect(),
            refuse_seconds: None,
            tasks: accepted.executors.iter().map(task).collect(),
        }
    }
}

/// What an executor takes of a batch.
pub(crate) fn pieces(batch: &[Offer<'_>], pieces: &[Piece]) -> Vec<PieceLine> {
    let line = |piece: &Piece| {
        let resource = batch.get(piece.offer as usize)?.resources.get(piece.resource as usize)?;
        let ResourceLine { name, role, reservation, reservations, .. } = ResourceLine::of(resource);
        let role = match resource.reservations {
            Reservations::Refined(_) => resource.role().to_owned(),
            Reservations::Old { .. } => role.unwrap_or_else(default_role),
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
