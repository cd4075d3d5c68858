//! The engine of a [`WorkQueue`]: its start, which may fail, its notices, and its end.

use std::sync::Arc;

use super::cluster_manager::ClusterManager;
use super::host_ledger::HostLedger;
use super::notice::{Notice, Observer};
use super::task_chooser::TaskChooser;
use super::work_queue::{EngineStart, WorkQueue, WorkState};
use super::{Engine, EngineOptions};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::launch::Launcher;
use crate::resources::MilliCpus;
use crate::time::Timestamp;

impl WorkQueue {
    /// Starts an engine that places the tasks; see [`Engine::start_with_tasks`]. `observer` receives all its notices,
    /// each after the queue.
    ///
    /// The kernel's configured executor must be as small as the smallest task:
    /// [`ConfigBuilder::smallest_task`](crate::ConfigBuilder::smallest_task).
    ///
    /// # Errors
    /// As [`Engine::start`], if hosts are to take no cores, if there are to be hosts though the manager
    /// [binds late](ClusterManager::binds_late), and if it was started before. After a start that has failed
    /// it may be started again, with another kernel.
    pub fn start(
        self: &Arc<WorkQueue>,
        kernel: Kernel,
        manager: Arc<dyn ClusterManager>,
        options: EngineOptions,
        observer: Box<dyn Observer>,
    ) -> Result<Engine, Error> {
        let mut state = self.state();
        if state.kernel.is_some() {
            return Err(Error::repeated("the work queue was started before"));
        }
        let host = state.hosts.as_ref().map(HostLedger::host_task);
        if let Some(host) = host.filter(|host| host.cores == MilliCpus::ZERO) {
            return Err(Error::setting("cores of a host", host.cores, "more than 0"));
        }
        if host.is_some() && manager.binds_late() {
            let allowed = "none with a cluster that chooses agents itself: a task and its host are two executors";
            return Err(Error::setting("hosts of tasks", "given", allowed));
        }
        let start = state.begin_start(&kernel);
        drop(state);
        let launcher = Arc::clone(self) as Arc<dyn Launcher>;
        let chooser = Arc::clone(self) as Arc<dyn TaskChooser>;
        let observer = Box::new(WorkObserver::new(self, start, observer));
        let started =
            Engine::start_with_tasks(kernel, manager, launcher, chooser, options, observer);
        self.state().end_start(started.is_ok());
        started
    }

    /// The engine of this start has ended.
    pub(super) fn close(&self, start: u64) {
        let mut state = self.state();
        if start != state.start.number {
            return;
        }
        match state.start.is_under_way {
            true => state.start.has_ended = true,
            false => state.close(),
        }
    }
}

impl WorkState {
    /// A start begins, of which this is the number.
    fn begin_start(&mut self, kernel: &Kernel) -> u64 {
        self.kernel = Some(kernel.clone());
        let number = self.start.number + 1;
        self.start = EngineStart { number, is_under_way: true, has_ended: false };
        number
    }

    /// The start has succeeded or failed. If it has failed, the queue is as before.
    fn end_start(&mut self, is_started: bool) {
        self.start.is_under_way = false;
        if !is_started {
            self.start.number += 1;
            (self.kernel, self.refused) = (None, None);
        } else if self.start.has_ended {
            self.close();
        }
    }

    /// There are no more ends, but those that were kept.
    fn close(&mut self) {
        let ends = self.decide_all();
        self.send(ends);
        self.ends = None;
    }
}

/// Has the queue follow notices before its user does.
pub(super) struct WorkObserver {
    queue: Arc<WorkQueue>,
    /// The number of the start.
    start: u64,
    observer: Box<dyn Observer>,
}

impl WorkObserver {
    pub(super) fn new(
        queue: &Arc<WorkQueue>,
        start: u64,
        observer: Box<dyn Observer>,
    ) -> WorkObserver {
        WorkObserver { queue: Arc::clone(queue), start, observer }
    }
}

impl Observer for WorkObserver {
    fn notice(&mut self, at: Timestamp, notice: Notice) {
        self.queue.noticed(at, &notice);
        self.observer.notice(at, notice);
    }
}

impl Drop for WorkObserver {
    fn drop(&mut self) {
        self.queue.close(self.start);
    }
}
