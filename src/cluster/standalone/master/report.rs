//! What a master has, for people and for programs: workers, frameworks, and how much is free.

use serde::Serialize;

use super::registered::{MasterTask, RegisteredFramework, RegisteredWorker};
use super::{MasterCounts, StandaloneMaster};
use crate::cluster::standalone::protocol::{ExecutorKey, WorkerResources};
use crate::mesos_v1::json::Named;

/// A picture of a master.
#[derive(Clone, Debug, Serialize)]
pub struct MasterReport {
    /// What the ids of the cluster begin with.
    pub cluster: String,
    /// The number of the master's leadership.
    pub term: u64,
    /// Whether workers and frameworks of the journal are still waited for.
    pub recovering: bool,
    /// How much there is of everything.
    pub counts: MasterCounts,
    /// All workers, by id.
    pub workers: Vec<WorkerReport>,
    /// All frameworks, by the order of their registration.
    pub frameworks: Vec<FrameworkReport>,
    /// All executors that haven't ended, by worker.
    pub executors: Vec<ExecutorReport>,
}

/// An executor of a master.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutorReport {
    /// Its id, a task's to the framework.
    pub id: String,
    /// The id of its framework.
    pub framework: String,
    /// The id of its worker.
    pub worker: String,
    /// `TASK_RUNNING` and so on, as the worker reported it last.
    pub state: &'static str,
    /// What it uses.
    pub resources: WorkerResources,
}

/// A worker of a master.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerReport {
    /// Its id.
    pub id: String,
    /// Its host name.
    pub hostname: String,
    /// What must not register twice at a time.
    pub address: String,
    /// Whether it is there.
    pub state: WorkerPresence,
    /// All that it has.
    pub total: WorkerResources,
    /// What its executors use.
    pub used: WorkerResources,
    /// What is offered of it.
    pub offered: WorkerResources,
    /// The number of its executors that haven't ended.
    pub executors: usize,
}

/// Whether a worker is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerPresence {
    /// It is connected, and what it has is offered.
    Active,
    /// It is connected, takes no launches, and leaves once its executors have ended.
    Draining,
    /// Its connection has ended, and it may come back.
    Disconnected,
    /// It was silent for too long.
    Unreachable,
}

/// A framework of a master.
#[derive(Clone, Debug, Serialize)]
pub struct FrameworkReport {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The user of its executors, unless they name another.
    pub user: String,
    /// Whose credentials it has, if any are needed.
    pub principal: Option<String>,
    /// Whether it has a connection.
    pub connected: bool,
    /// Whether it wants no offers.
    pub suppressed: bool,
    /// The number of its executors that haven't ended.
    pub executors: usize,
    /// The cores of its executors.
    pub cores: f64,
    /// The number of its offers that aren't answered.
    pub offers: usize,
}

impl WorkerPresence {
    /// All of them.
    pub const ALL: [WorkerPresence; 4] = [
        WorkerPresence::Active,
        WorkerPresence::Draining,
        WorkerPresence::Disconnected,
        WorkerPresence::Unreachable,
    ];

    /// Its name, as in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            WorkerPresence::Active => "active",
            WorkerPresence::Draining => "draining",
            WorkerPresence::Disconnected => "disconnected",
            WorkerPresence::Unreachable => "unreachable",
        }
    }
}

impl StandaloneMaster {
    /// Returns a picture of all that is known.
    #[must_use]
    pub fn overview(&self) -> MasterReport {
        MasterReport {
            cluster: self.settings.cluster.clone(),
            term: self.settings.term,
            recovering: self.is_recovering(),
            counts: self.counts(),
            workers: self.workers.iter().map(|(id, it)| self.worker_report(id, it)).collect(),
            frameworks: self
                .frameworks
                .iter()
                .map(|(at, it)| self.framework_report(*at, it))
                .collect(),
            executors: self.executor_reports(),
        }
    }

    fn worker_report(&self, id: &str, worker: &RegisteredWorker) -> WorkerReport {
        let offers = self.offers.values().filter(|offer| offer.worker == id);
        let state = match worker {
            it if it.is_unreachable => WorkerPresence::Unreachable,
            it if it.connection.is_none() => WorkerPresence::Disconnected,
            it if it.is_draining => WorkerPresence::Draining,
            _ => WorkerPresence::Active,
        };
        WorkerReport {
            id: id.to_owned(),
            hostname: worker.hostname.clone(),
            address: worker.address.clone(),
            state,
            total: worker.total.clone(),
            used: worker.used(),
            offered: offers.fold(WorkerResources::default(), |sum, it| sum.plus(&it.resources)),
            executors: worker.tasks.values().filter(|task| !task.has_ended).count(),
        }
    }

    fn executor_reports(&self) -> Vec<ExecutorReport> {
        let workers = self.workers.iter();
        let tasks = workers.flat_map(|(id, it)| it.tasks.iter().map(move |task| (id, task)));
        let alive = tasks.filter(|(_, (_, task))| !task.has_ended);
        let report =
            |(worker, (key, task)): (&String, (&ExecutorKey, &MasterTask))| ExecutorReport {
                id: key.executor.clone(),
                framework: key.framework.clone(),
                worker: worker.clone(),
                state: task.state.name(),
                resources: task.resources.clone(),
            };
        alive.map(report).collect()
    }

    fn framework_report(&self, number: u64, framework: &RegisteredFramework) -> FrameworkReport {
        let tasks = self.workers.values().flat_map(|worker| &worker.tasks);
        let own = tasks.filter(|(key, task)| key.framework == framework.id && !task.has_ended);
        let cores: Vec<u64> = own.map(|(_, task)| task.resources.cpus.thousandths()).collect();
        FrameworkReport {
            id: framework.id.clone(),
            name: framework.info.name.clone(),
            user: framework.info.user.clone(),
            principal: framework.info.principal.clone(),
            connected: framework.connection.is_some(),
            suppressed: framework.suppressed,
            executors: cores.len(),
            cores: cores.iter().sum::<u64>() as f64 / 1000.0,
            offers: self.offers.values().filter(|offer| offer.framework == number).count(),
        }
    }
}
