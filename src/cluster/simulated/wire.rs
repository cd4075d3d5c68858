//! Messages between the simulated framework and master: offers, events, calls, and resource amounts.

use std::borrow::Cow;
use std::time::Duration;

use crate::engine::cluster_manager::Update;
use crate::engine::offer_queue::Queued;
use crate::launch::Hosting;
use crate::offer::DEFAULT_ROLE;
use crate::resources::PortRange;
use crate::status::{TaskState, UpdateReason};

/// The role that some agents reserve half of their resources for.
pub(super) const ROLE: &str = "etl";
/// The fixed port of executors, in scenarios that have one.
pub(super) const PORT: u16 = 31_500;

/// The scalars that agents have: name and role, in the order in which they are offered.
pub(super) const SCALARS: [(&str, &str); 6] = [
    ("cpus", DEFAULT_ROLE),
    ("cpus", ROLE),
    ("mem", DEFAULT_ROLE),
    ("mem", ROLE),
    ("gpus", DEFAULT_ROLE),
    ("disk", DEFAULT_ROLE),
];

/// The ports that an agent offers while [`PORT`] is free.
pub(super) const PORTS_FREE: &[PortRange] = &[PortRange::new(31_000, 32_000)];
/// The ports that an agent offers while [`PORT`] is in use.
pub(super) const PORTS_TAKEN: &[PortRange] =
    &[PortRange::new(31_000, PORT as u64 - 1), PortRange::new(PORT as u64 + 1, 32_000)];

/// Resources of an agent, in thousandths, and whether [`PORT`] is among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) scalars: [u64; SCALARS.len()],
    pub(super) port: bool,
}

impl Amounts {
    pub(super) fn add(&mut self, other: &Amounts) {
        for (mine, theirs) in self.scalars.iter_mut().zip(other.scalars) {
            *mine += theirs;
        }
        self.port |= other.port;
    }

    /// Subtracts `other`. Returns `false`, and changes nothing, if there is less than that.
    pub(super) fn subtract(&mut self, other: &Amounts) -> bool {
        let enough = self.scalars.iter().zip(other.scalars).all(|(mine, theirs)| *mine >= theirs);
        if !enough || other.port && !self.port {
            return false;
        }
        for (mine, theirs) in self.scalars.iter_mut().zip(other.scalars) {
            *mine -= theirs;
        }
        self.port &= !other.port;
        true
    }

    /// Subtracts cores and memory, in thousandths, of whatever role; if there is less, what there is.
    pub(super) fn take_up_to(&mut self, cpus: u64, mem: u64) {
        for (name, mut wanted) in [("cpus", cpus), ("mem", mem)] {
            let kinds = self.scalars.iter_mut().zip(SCALARS);
            for (amount, _) in kinds.filter(|(_, (kind, _))| *kind == name) {
                let taken = wanted.min(*amount);
                *amount -= taken;
                wanted -= taken;
            }
        }
    }

    /// The amount of a resource over all roles, in thousandths.
    pub(super) fn of(&self, name: &str) -> u64 {
        let kinds = self.scalars.iter().zip(SCALARS);
        kinds.filter(|(_, (kind, _))| *kind == name).map(|(amount, _)| amount).sum()
    }
}

/// An offer of the simulated master.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimOffer {
    pub(super) number: u64,
    pub(super) agent: AgentRef,
    pub(super) zone: u32,
    pub(super) amounts: Amounts,
    /// Whether it is a permit: the framework isn't told of the agent.
    pub(super) is_late: bool,
}

impl Queued for SimOffer {
    fn id_bytes(&self) -> Cow<'_, [u8]> {
        Cow::Owned(format!("O{}", self.number).into_bytes())
    }
}

/// An agent's id: the machine, and how many ids it had before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AgentRef {
    pub(super) machine: u32,
    pub(super) incarnation: u32,
}

impl std::fmt::Display for AgentRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "S{}", self.machine)?;
        if self.incarnation > 0 { write!(f, "-{}", self.incarnation) } else { Ok(()) }
    }
}

impl AgentRef {
    /// Parses an agent's id.
    pub(super) fn parse(text: &str) -> Option<AgentRef> {
        let number = text.strip_prefix('S')?;
        let (machine, incarnation) = number.split_once('-').unwrap_or((number, "0"));
        Some(AgentRef { machine: machine.parse().ok()?, incarnation: incarnation.parse().ok()? })
    }
}

/// Parses an offer's id.
pub(super) fn offer_number(id: &str) -> Option<u64> {
    id.strip_prefix('O')?.parse().ok()
}

/// An event that the master sends to the framework.
#[derive(Clone, Debug)]
pub(super) enum MasterEvent {
    Subscribed,
    Offers(Vec<SimOffer>),
    Rescinded(u64),
    Update(Update),
    AgentLost(AgentRef),
}

/// A call that the framework sends to the master.
#[derive(Clone, Debug)]
pub(super) enum FrameworkCall {
    /// Without an agent: of a permit.
    Accept {
        agent: Option<AgentRef>,
        offers: Vec<u64>,
        tasks: Vec<TaskLaunch>,
        refuse: Duration,
    },
    Decline {
        offers: Vec<u64>,
        refuse: Duration,
    },
    Revive,
    Suppress,
    Kill {
        executor: String,
        agent: Option<AgentRef>,
        grace: Duration,
    },
    /// Without an agent: of executors that aren't bound yet.
    Reconcile(Vec<(String, Option<AgentRef>)>),
    /// The agents on which no executor may start, and for how long.
    Avoid(Vec<(AgentRef, Duration)>),
    Acknowledge {
        executor: String,
        uuid: u64,
    },
}

/// An executor to launch.
#[derive(Clone, Debug)]
pub(super) struct TaskLaunch {
    pub(super) executor: String,
    pub(super) amounts: Amounts,
    pub(super) hosting: Hosting,
}

/// An update that the master makes itself. It has no uuid.
pub(super) fn master_update(
    executor: &str,
    agent: AgentRef,
    state: TaskState,
    reason: UpdateReason,
) -> Update {
    Update {
        executor: executor.to_owned(),
        agent_id: Some(agent.to_string()),
        state,
        reason,
        message: String::new(),
        uuid: None,
        reported_at: None,
        process: None,
        facts: None,
    }
}
