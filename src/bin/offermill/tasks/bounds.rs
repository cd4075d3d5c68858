//! The queues' bounds and the tasks in them: whether all may start, how many there are, and which queues have demand.

use offermill::Config;
use offermill::config::QueueId;
use offermill::engine::HostLedger;

use crate::tasks::demand::QueueTasks;
use crate::tasks::queue::{TaskQueue, TaskStage};
use crate::tasks::queue_check::QueueTotals;
use crate::tasks::run_queues::RunQueues;

impl TaskQueue {
    /// Checks that with these queues, each of which has the number that it had, hosts and tasks that haven't ended may
    /// start.
    ///
    /// # Errors
    /// With a sentence about the first that never would.
    pub(crate) fn check_queues(&self, quotas: &RunQueues, config: &Config) -> Result<(), String> {
        let host = self.terms.hosts.as_ref().map(|hosts| hosts.task(0));
        let (cores, memory) = (config.core_cap(), config.queued_memory());
        if let Some(why) = quotas.problem(cores, memory) {
            return Err(why);
        }
        if let Some(why) = host.and_then(|host| quotas.no_host_starts(host, cores, memory)) {
            return Err(why);
        }
        let state = self.lock();
        let may_start = |number: usize| state.progress[number].stage != TaskStage::Over;
        self.list.check_queues(
            quotas,
            QueueTotals { cores, memory, gpus: Some(config.gpu_cap()), host },
            may_start,
        )
    }

    /// The tasks of each queue, by number, and how many hosts there are, with their queue.
    pub(crate) fn tasks_by_queue(&self) -> (Vec<QueueTasks>, (u64, QueueId)) {
        let state = self.lock();
        let queue = self.terms.hosts.as_ref().map_or(QueueId::DEFAULT, |hosts| hosts.queue);
        (state.demand.tasks(), (state.hosts.as_ref().map_or(0, HostLedger::count), queue))
    }

    /// Offers are suppressed, or are about to be, or the subscription has ended.
    pub(crate) fn no_offers_come(&self) {
        self.lock().survey.stop();
    }

    /// The queues whose demand has changed, and whether they have some: tasks that are yet to start.
    pub(crate) fn demand_changes(&self) -> Vec<(QueueId, bool)> {
        self.lock().demand.changes()
    }
}
