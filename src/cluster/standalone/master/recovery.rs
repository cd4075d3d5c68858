//! A master's start, and the wait for those that its journal names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::registered::{RegisteredFramework, RegisteredWorker};
use super::{MasterNotice, MasterSettings, MasterTotals, RegistryEntry, StandaloneMaster};
use crate::cluster::standalone::protocol::{WorkerResources, WorkerSubscribe};

impl StandaloneMaster {
    /// Starts a master that knows what the journal says, oldest entry first.
    #[must_use]
    pub fn new(settings: MasterSettings, journal: Vec<RegistryEntry>) -> StandaloneMaster {
        let until = settings.recovery_timeout;
        let mut master = StandaloneMaster {
            settings,
            frameworks: BTreeMap::new(),
            workers: BTreeMap::new(),
            offers: BTreeMap::new(),
            placed: HashMap::new(),
            connections: HashMap::new(),
            recovering_until: Some(until),
            allocated_at: Duration::ZERO,
            ticked_at: Duration::ZERO,
            next_heartbeat: Duration::ZERO,
            next_number: 0,
            totals: MasterTotals::default(),
            actions: Vec::new(),
            notices: Vec::new(),
        };
        for entry in journal {
            master.remember(entry);
        }
        let (workers, frameworks) = (master.workers.len(), master.frameworks.len());
        if workers + frameworks > 0 {
            let timeout = until;
            master.notices.push(MasterNotice::Recovering { workers, frameworks, timeout });
        }
        master.finish_recovery_if_complete(Duration::ZERO);
        master
    }

    fn remember(&mut self, entry: RegistryEntry) {
        match entry {
            RegistryEntry::Worker { id, address, owner, drain } => {
                let said = WorkerSubscribe {
                    address,
                    resources: WorkerResources::default(),
                    ..WorkerSubscribe::default()
                };
                let mut worker = RegisteredWorker::new(&said, Duration::ZERO);
                worker.owner = owner;
                worker.drain = drain;
                worker.is_awaited = true;
                worker.is_from_journal = true;
                self.workers.insert(id, worker);
            }
            RegistryEntry::WorkerGone { id } => {
                self.workers.remove(&id);
            }
            RegistryEntry::Framework { id, info } => match self.framework_number(&id) {
                Some(number) => {
                    if let Some(framework) = self.frameworks.get_mut(&number) {
                        framework.info = *info;
                    }
                }
                None => {
                    let number = self.next_number;
                    self.next_number += 1;
                    self.frameworks.insert(number, RegisteredFramework::new(id, *info));
                }
            },
            RegistryEntry::FrameworkGone { id } => {
                if let Some(number) = self.framework_number(&id) {
                    self.frameworks.remove(&number);
                }
            }
        }
    }

    /// The entries that a new journal begins with: all that is known now.
    #[must_use]
    pub fn journal_entries(&self) -> Vec<RegistryEntry> {
        let frameworks = self.frameworks.values().map(|it| RegistryEntry::Framework {
            id: it.id.clone(),
            info: Box::new(it.info.clone()),
        });
        let workers = self.workers.iter().map(|(id, it)| it.entry(id));
        frameworks.chain(workers).collect()
    }

    /// Ends recovery if nobody is waited for any more. Others than those of the journal delay it by nothing.
    pub(super) fn finish_recovery_if_complete(&mut self, now: Duration) {
        let is_complete = self.workers.values().all(|it| !it.is_awaited)
            && self.frameworks.values().all(|it| it.connection.is_some());
        if self.is_recovering() && is_complete {
            self.finish_recovery(now);
        }
    }

    /// Ends recovery: silent workers are unreachable, the clocks of silent frameworks run, and executors whose
    /// framework is unknown end.
    pub(super) fn finish_recovery(&mut self, now: Duration) {
        if self.recovering_until.take().is_none() {
            return;
        }
        let awaited = self.workers.iter().filter(|(_, it)| it.is_awaited);
        let awaited: Vec<String> = awaited.map(|(id, _)| id.clone()).collect();
        let frameworks = self.frameworks.values().filter(|it| it.connection.is_none()).count();
        let workers = awaited.len();
        self.notices.push(MasterNotice::Recovered { workers, frameworks });
        for id in awaited {
            if let Some(worker) = self.workers.get_mut(&id) {
                worker.is_awaited = false;
            }
            self.give_up_worker(&id);
        }
        for framework in self.frameworks.values_mut().filter(|it| it.connection.is_none()) {
            framework.gone_at = Some(now.saturating_add(framework.failover_timeout()));
        }
        self.remove_gone_frameworks(now);
        self.bound_frameworks_away();
        let known: HashSet<&str> = self.frameworks.values().map(|it| it.id.as_str()).collect();
        let tasks = self.workers.values().flat_map(|worker| worker.tasks.keys());
        let orphans: HashSet<String> = tasks
            .filter(|key| !known.contains(key.framework.as_str()))
            .map(|key| key.framework.clone())
            .collect();
        let mut orphans: Vec<String> = orphans.into_iter().collect();
        orphans.sort();
        for framework in orphans {
            self.shut_down_executors(&framework);
        }
    }
}
