//! What a master has, for people and for programs: workers, frameworks, and how much is free.

use std::collections::HashMap;

use serde::Serialize;

use super::registered::{RegisteredFramework, RegisteredWorker};
use super::{MasterCounts, MasterTotals, StandaloneMaster};
use crate::cluster::standalone::protocol::WorkerResources;
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
    /// What has happened since the master's start.
    pub totals: MasterTotals,
    /// All workers, by id.
    pub workers: Vec<WorkerReport>,
    /// All frameworks, by the order of their registration.
    pub frameworks: Vec<FrameworkReport>,
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

/// Executors of a master that haven't ended.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutorReports {
    /// Some of them, by worker, framework and id.
    pub executors: Vec<ExecutorReport>,
    /// How many more there are.
    pub not_listed: usize,
}

/// An executor of a master.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutorReport {
    /// The id that its framework chose.
    pub id: String,
    /// The framework's id.
    pub framework: String,
    /// The worker's id.
    pub worker: String,
    /// Its state as Mesos names it, in lower case and without `TASK_`.
    pub state: String,
    /// What it uses.
    pub resources: WorkerResources,
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
        let sums = ReportSums::of(self);
        MasterReport {
            cluster: self.settings.cluster.clone(),
            term: self.settings.term,
            recovering: self.is_recovering(),
            counts: self.counts(),
            totals: self.totals,
            workers: self.workers.iter().map(|(id, it)| sums.worker(id, it)).collect(),
            frameworks: self.frameworks.iter().map(|(at, it)| sums.framework(*at, it)).collect(),
        }
    }

    /// The number of workers, frameworks and executors, those included whose ends aren't acknowledged.
    #[must_use]
    pub fn items(&self) -> usize {
        self.workers.len() + self.frameworks.len() + self.placed.len()
    }

    /// Returns the executors that haven't ended, of which at most `most` are listed.
    #[must_use]
    pub fn executors(&self, most: usize) -> ExecutorReports {
        let all = self.workers.iter().flat_map(|(id, worker)| {
            worker.tasks.iter().filter(|(_, task)| !task.has_ended).map(move |it| (id, it))
        });
        let mut all = all.fuse();
        let listed = all.by_ref().take(most);
        let executors = listed.map(|(worker, (key, task))| ExecutorReport {
            id: key.executor.clone(),
            framework: key.framework.clone(),
            worker: worker.clone(),
            state: task.state.name().trim_start_matches("TASK_").to_ascii_lowercase(),
            resources: task.resources.clone(),
        });
        ExecutorReports { executors: executors.collect(), not_listed: all.count() }
    }
}

/// What a report adds up, in one pass over offers and executors.
#[derive(Default)]
struct ReportSums<'a> {
    /// By worker.
    offered: HashMap<&'a str, WorkerResources>,
    /// By the number of a framework.
    offers: HashMap<u64, usize>,
    /// By the id of a framework: its executors, and their thousandths of cores.
    executors: HashMap<&'a str, (usize, u64)>,
}

impl<'a> ReportSums<'a> {
    fn of(master: &'a StandaloneMaster) -> ReportSums<'a> {
        let mut sums = ReportSums::default();
        for offer in master.offers.values() {
            let offered = sums.offered.entry(&offer.worker).or_default();
            *offered = offered.plus(&offer.resources);
            *sums.offers.entry(offer.framework).or_default() += 1;
        }
        let tasks = master.workers.values().flat_map(|worker| &worker.tasks);
        for (key, task) in tasks.filter(|(_, task)| !task.has_ended) {
            let (executors, cores) = sums.executors.entry(&key.framework).or_default();
            *executors += 1;
            *cores += task.resources.cpus.thousandths();
        }
        sums
    }

    fn worker(&self, id: &str, worker: &RegisteredWorker) -> WorkerReport {
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
            offered: self.offered.get(id).cloned().unwrap_or_default(),
            executors: worker.living(),
        }
    }

    fn framework(&self, number: u64, framework: &RegisteredFramework) -> FrameworkReport {
        let sum = self.executors.get(framework.id.as_str()).copied();
        let (executors, cores) = sum.unwrap_or_default();
        FrameworkReport {
            id: framework.id.clone(),
            name: framework.info.name.clone(),
            user: framework.info.user.clone(),
            principal: framework.info.principal.clone(),
            connected: framework.connection.is_some(),
            suppressed: framework.suppressed,
            executors,
            cores: cores as f64 / 1000.0,
            offers: self.offers.get(&number).copied().unwrap_or_default(),
        }
    }
}
