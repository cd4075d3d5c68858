//! How many tasks of each queue are yet to start, and how many are in flight.

use offermill::config::QueueId;

use crate::tasks::run_queues::RunQueues;

/// How many tasks of each queue are yet to start: as long as there are some, it has demand. And how many are in flight.
#[derive(Debug)]
pub(super) struct QueueDemand {
    are_given: bool,
    /// The queue that hosts are in, if there are hosts: it has demand as long as any task is yet to start.
    host_queue: Option<QueueId>,
    yet_to_start: Vec<u64>,
    in_flight: Vec<u64>,
    /// Whether the kernel was told that the queue has demand.
    has_demand: Vec<bool>,
}

/// How many tasks a queue has that haven't ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueTasks {
    pub(crate) in_flight: u64,
    /// Those that wait for others are among them.
    pub(crate) yet_to_start: u64,
}

impl QueueDemand {
    /// The demand of this many tasks in each queue.
    pub(super) fn new(
        quotas: &RunQueues,
        host_queue: Option<QueueId>,
        tasks: impl Iterator<Item = QueueId>,
    ) -> QueueDemand {
        let count = quotas.count();
        let mut demand = QueueDemand {
            are_given: quotas.are_given(),
            host_queue,
            yet_to_start: vec![0; count],
            in_flight: vec![0; count],
            has_demand: vec![true; count],
        };
        tasks.for_each(|queue| demand.await_task(queue));
        demand
    }

    /// A task is to start, or to start again.
    pub(super) fn await_task(&mut self, queue: QueueId) {
        self.yet_to_start[usize::from(queue.number())] += 1;
    }

    /// A task has started, or is never to start.
    pub(super) fn settle_task(&mut self, queue: QueueId) {
        let count = &mut self.yet_to_start[usize::from(queue.number())];
        *count = count.saturating_sub(1);
    }

    /// A task is in flight from now on.
    pub(super) fn take_off(&mut self, queue: QueueId) {
        self.in_flight[usize::from(queue.number())] += 1;
    }

    /// A task is in flight no more.
    pub(super) fn land(&mut self, queue: QueueId) {
        let count = &mut self.in_flight[usize::from(queue.number())];
        *count = count.saturating_sub(1);
    }

    /// The tasks of each queue, by number.
    pub(super) fn tasks(&self) -> Vec<QueueTasks> {
        let pairs = self.in_flight.iter().zip(&self.yet_to_start);
        let of_queue = |(in_flight, yet_to_start): (&u64, &u64)| QueueTasks {
            in_flight: *in_flight,
            yet_to_start: *yet_to_start,
        };
        pairs.map(of_queue).collect()
    }

    /// The queues whose demand has changed, and whether they have some now. The caller tells the kernel.
    pub(super) fn changes(&mut self) -> Vec<(QueueId, bool)> {
        if !self.are_given {
            return Vec::new();
        }
        let are_wanted = self.yet_to_start.iter().any(|count| *count > 0);
        let host_queue = self.host_queue.filter(|_| are_wanted);
        let told = self.has_demand.iter_mut().zip(&self.yet_to_start).zip(0..);
        let changed = told.filter_map(|((told, count), number)| {
            let has_demand = *count > 0 || host_queue == Some(QueueId::new(number));
            let before = std::mem::replace(told, has_demand);
            (before != has_demand).then_some((QueueId::new(number), has_demand))
        });
        changed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a queue has demand as long as it has tasks that are yet to start, and changes are told once. Method: a
    /// task that starts, and is to start again.
    #[test]
    fn queues_have_demand_while_tasks_wait() {
        let quotas = RunQueues::parse("etl;web").unwrap();
        let (etl, web) = (QueueId::new(1), QueueId::new(2));
        let mut demand = QueueDemand::new(&quotas, None, [etl, web].into_iter());
        assert_eq!(demand.changes(), [(QueueId::DEFAULT, false)]);
        demand.settle_task(web);
        assert_eq!(demand.changes(), [(web, false)]);
        demand.await_task(web);
        assert_eq!(demand.changes(), [(web, true)]);
        assert_eq!(demand.changes(), []);
    }

    /// Goal: the queue of hosts has demand as long as a task of any queue is yet to start. Method: hosts in a queue
    /// without tasks, and a task of another that starts.
    #[test]
    fn hosts_are_wanted_while_tasks_wait() {
        let quotas = RunQueues::parse("etl;hosts").unwrap();
        let (etl, hosts) = (QueueId::new(1), QueueId::new(2));
        let mut demand = QueueDemand::new(&quotas, Some(hosts), [etl].into_iter());
        assert_eq!(demand.changes(), [(QueueId::DEFAULT, false)]);
        demand.settle_task(etl);
        assert_eq!(demand.changes(), [(etl, false), (hosts, false)]);
    }
}
