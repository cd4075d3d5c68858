//! What a master knows of a framework, a worker, an executor and an offer.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::launch_tag::LaunchOrder;
use super::missed_updates::MissedUpdates;
use super::{ConnectionNumber, RegistryEntry, WorkerDrain};
use crate::cluster::standalone::protocol::{
    ExecutorKey, ReportedState, WorkerAttribute, WorkerResources, WorkerSubscribe,
};
use crate::mesos_v1::messages::{CapabilityType, FrameworkInfo, TaskState};

/// A framework.
#[derive(Debug)]
pub(super) struct RegisteredFramework {
    pub(super) id: String,
    pub(super) info: FrameworkInfo,
    pub(super) connection: Option<ConnectionNumber>,
    pub(super) suppressed: bool,
    /// By worker.
    pub(super) declined: HashMap<String, Vec<DeclinedResources>>,
    /// When it is torn down, if it has no connection and its clock runs.
    pub(super) gone_at: Option<Duration>,
    /// What it is told when it is back.
    pub(super) missed: MissedUpdates,
}

/// Resources that a framework gets no offer of until a time, unless there is more.
#[derive(Debug)]
pub(super) struct DeclinedResources {
    pub(super) resources: WorkerResources,
    pub(super) until: Duration,
}

impl RegisteredFramework {
    pub(super) fn new(id: String, info: FrameworkInfo) -> RegisteredFramework {
        RegisteredFramework {
            id,
            info,
            connection: None,
            suppressed: false,
            declined: HashMap::new(),
            gone_at: None,
            missed: MissedUpdates::default(),
        }
    }

    /// Whether it knows states of tasks beyond `TASK_LOST`.
    pub(super) fn is_partition_aware(&self) -> bool {
        let aware = i32::from(CapabilityType::PartitionAware);
        self.info.capabilities.iter().any(|it| it.r#type == Some(aware))
    }

    /// Whether offers may be made to it.
    pub(super) fn takes_offers(&self) -> bool {
        self.connection.is_some() && !self.suppressed
    }

    /// How long it may be away.
    pub(super) fn failover_timeout(&self) -> Duration {
        let seconds = self.info.failover_timeout.unwrap_or(0.0);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }

    /// The role of its offers.
    pub(super) fn role(&self) -> &str {
        let role = self.info.roles.first().or(self.info.role.as_ref());
        role.map_or("*", String::as_str)
    }

    pub(super) fn has_declined(&self, worker: &str, free: &WorkerResources, now: Duration) -> bool {
        let declined = self.declined.get(worker);
        declined.is_some_and(|all| all.iter().any(|it| it.until > now && it.resources.covers(free)))
    }
}

/// A worker.
#[derive(Debug)]
pub(super) struct RegisteredWorker {
    pub(super) session: String,
    pub(super) hostname: String,
    pub(super) address: String,
    /// Whose credentials registered it, if any were needed.
    pub(super) owner: Option<String>,
    pub(super) total: WorkerResources,
    pub(super) attributes: Vec<WorkerAttribute>,
    pub(super) connection: Option<ConnectionNumber>,
    /// When something came from it last.
    pub(super) heard_at: Duration,
    pub(super) is_unreachable: bool,
    /// It takes no launches any more.
    pub(super) is_draining: bool,
    /// It ends its executors, because it leaves.
    pub(super) ends_executors: bool,
    /// It has hosts of tasks.
    pub(super) has_hosts: bool,
    /// The drain that it was told, or will be once its executors have ended.
    pub(super) drain: Option<WorkerDrain>,
    /// The number of launches on this connection.
    pub(super) launches: u64,
    pub(super) tasks: BTreeMap<ExecutorKey, MasterTask>,
    /// Only known from the journal, and waited for.
    pub(super) is_awaited: bool,
    /// It wasn't there since the master's start, so that what it runs isn't known.
    pub(super) is_from_journal: bool,
}

impl RegisteredWorker {
    /// A worker that is to be connected.
    pub(super) fn new(said: &WorkerSubscribe, now: Duration) -> RegisteredWorker {
        RegisteredWorker {
            session: said.session.clone(),
            hostname: said.hostname.clone(),
            address: said.address.clone(),
            owner: None,
            total: said.resources.clone(),
            attributes: said.attributes.clone(),
            connection: None,
            heard_at: now,
            is_unreachable: false,
            is_draining: said.leaving,
            ends_executors: said.leaving,
            has_hosts: said.has_hosts,
            drain: None,
            launches: 0,
            tasks: BTreeMap::new(),
            is_awaited: false,
            is_from_journal: false,
        }
    }

    /// What the journal says of it.
    pub(super) fn entry(&self, id: &str) -> RegistryEntry {
        RegistryEntry::Worker {
            id: id.to_owned(),
            address: self.address.clone(),
            owner: self.owner.clone(),
            drain: self.drain.clone(),
        }
    }

    /// Whether what is free on it may be offered.
    pub(super) fn may_be_offered(&self) -> bool {
        self.connection.is_some() && !self.is_unreachable && !self.is_draining
    }

    /// Its connection has ended. What only offers need is forgotten.
    pub(super) fn disconnect(&mut self) -> Option<ConnectionNumber> {
        self.attributes = Vec::new();
        self.connection.take()
    }

    /// Whether it may not be another's: both have credentials, which differ.
    pub(super) fn is_of_another(&self, owner: Option<&str>) -> bool {
        self.owner.as_deref().zip(owner).is_some_and(|(own, other)| own != other)
    }

    /// The number of its executors that haven't ended.
    pub(super) fn living(&self) -> usize {
        self.tasks.values().filter(|task| !task.has_ended).count()
    }

    /// What its executors use.
    pub(super) fn used(&self) -> WorkerResources {
        let tasks = self.tasks.values().filter(|task| !task.has_ended);
        tasks.fold(WorkerResources::default(), |sum, task| sum.plus(&task.resources))
    }
}

/// An executor: a task to its framework.
#[derive(Debug)]
pub(super) struct MasterTask {
    pub(super) launched: LaunchOrder,
    pub(super) resources: WorkerResources,
    pub(super) state: TaskState,
    /// Its end was reported; it is kept until the framework has acknowledged that.
    pub(super) has_ended: bool,
    /// The number of the update that reported its end.
    pub(super) end_uuid: Option<String>,
    /// The grace period of a kill, in milliseconds, to be said again when the worker comes back.
    pub(super) kill_grace: Option<u64>,
    /// Its framework, which knows no other word for an unreachable worker, was told that it is lost.
    pub(super) is_called_lost: bool,
}

impl MasterTask {
    pub(super) fn new(
        launched: LaunchOrder,
        resources: WorkerResources,
        state: TaskState,
    ) -> MasterTask {
        MasterTask {
            launched,
            resources,
            state,
            has_ended: false,
            end_uuid: None,
            kill_grace: None,
            is_called_lost: false,
        }
    }
}

/// Returns a state under its name in Mesos. What is lost with its host is gone.
pub(super) fn task_state(state: ReportedState, is_lost: bool) -> TaskState {
    match state {
        ReportedState::Failed if is_lost => TaskState::Gone,
        ReportedState::Starting => TaskState::Starting,
        ReportedState::Running => TaskState::Running,
        ReportedState::Killing => TaskState::Killing,
        ReportedState::Finished => TaskState::Finished,
        ReportedState::Failed => TaskState::Failed,
        ReportedState::Killed => TaskState::Killed,
        ReportedState::Dropped => TaskState::Dropped,
    }
}

/// An offer that isn't answered yet.
#[derive(Debug)]
pub(super) struct OutstandingOffer {
    pub(super) id: String,
    pub(super) framework: u64,
    pub(super) worker: String,
    pub(super) resources: WorkerResources,
    pub(super) made_at: Duration,
}
