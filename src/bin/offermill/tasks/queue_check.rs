//! The queues of tasks: which each is in, and whether it may ever start there. One may not if its queue, or all queues,
//! have no room for it, or if it would wait for what is kept for tasks that wait for it.

use offermill::config::QueueId;
use offermill::resources::{Gpus, Mebibytes, MilliCpus};
use offermill::{ResourceSums, Task};

use crate::tasks::order::TaskList;
use crate::tasks::run_queues::RunQueues;
use crate::tasks::task::TaskSpec;

/// The queues that tasks are in, a bit each by number.
type QueueBits = u64;
const _: () = assert!(offermill::limits::QUEUES_MAX <= QueueBits::BITS as usize);

impl TaskList {
    /// Finds the queue of each task.
    ///
    /// # Errors
    /// With a sentence about the first task whose queue doesn't exist, or never has room for it.
    pub(crate) fn find_queues(
        &mut self,
        quotas: &RunQueues,
        all: QueueTotals,
    ) -> Result<(), String> {
        for task in &mut self.tasks {
            let found = match task.queue_name.take() {
                Some(name) => quotas.find(&name),
                None => Ok(QueueId::DEFAULT),
            };
            let (source, line) = (&self.source, task.line);
            task.queue = found.map_err(|why| format!("{source}, line {line}: it {why}"))?;
        }
        self.check_queues(quotas, all, |_| true)
    }

    /// Checks that queues have room for each task that may start yet, by its number.
    ///
    /// # Errors
    /// With a sentence about the first task that its queue never has room for, or that would wait for what is kept for
    /// tasks that wait for it.
    pub(crate) fn check_queues(
        &self,
        quotas: &RunQueues,
        all: QueueTotals,
        may_start: impl Fn(usize) -> bool,
    ) -> Result<(), String> {
        let after = self.queues_after(&may_start);
        for (number, task) in self.tasks.iter().enumerate() {
            let why = never_starts(task, quotas, all);
            let why = why.or_else(|| waits_for_itself(task, after[number], quotas, all));
            if let Some(why) = why.filter(|_| may_start(number)) {
                return Err(format!("{}, line {}: it {why}", self.source, task.line));
            }
        }
        Ok(())
    }

    /// For each task the queues of those that wait for it, themselves or through others, as far as these may start.
    fn queues_after(&self, may_start: impl Fn(usize) -> bool) -> Vec<QueueBits> {
        let mut after: Vec<QueueBits> = vec![0; self.tasks.len()];
        // Each task comes after those that it waits for.
        let mut waits = self.waits.clone();
        let mut order: Vec<usize> = (0..waits.len()).filter(|task| waits[*task] == 0).collect();
        let mut at = 0;
        while let Some(task) = order.get(at).copied() {
            at += 1;
            for dependent in &self.dependents[task] {
                let dependent = *dependent as usize;
                waits[dependent] -= 1;
                if waits[dependent] == 0 {
                    order.push(dependent);
                }
            }
        }
        for task in order.into_iter().rev() {
            let dependents = self.dependents[task].iter().map(|dependent| *dependent as usize);
            let bits = dependents
                .filter(|dependent| may_start(*dependent))
                .map(|dependent| after[dependent] | 1 << self.tasks[dependent].queue.number());
            after[task] = bits.fold(0, |all, bits| all | bits);
        }
        after
    }
}

/// What all queues share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueTotals {
    /// The most cores that all take (`--total-executor-cores`).
    pub(crate) cores: Option<MilliCpus>,
    /// The most memory that all take (`--total-task-memory`).
    pub(crate) memory: Option<Mebibytes>,
    /// The most GPUs that all take (`spark.mesos.gpus.max`).
    pub(crate) gpus: Option<Gpus>,
    /// A host, if tasks run in hosts.
    pub(crate) host: Option<Task>,
}

/// Why queues with these bounds never have room for a task, as the rest of a sentence; `None` if they may.
fn never_starts(task: &TaskSpec, quotas: &RunQueues, all: QueueTotals) -> Option<String> {
    let own = task.sums();
    let beside = |host: Task| (own.saturating_add(host.sums()), "with its host ");
    let (both, who) = all.host.map_or((own, ""), beside);
    let is_beside = all.host.is_some_and(|host| host.queue == task.queue);
    let (in_queue, who_in_queue) = if is_beside { (both, who) } else { (own, "") };
    let too_large = quotas.too_large(task.queue, in_queue);
    let too_large = too_large.map(|why| format!("{who_in_queue}{why}"));
    too_large.or_else(|| Some(format!("{who}{}", beyond_total(both, all)?)))
}

/// Why what takes this never starts, whatever else runs, as the rest of a sentence; `None` if it may.
fn beyond_total(own: ResourceSums, all: QueueTotals) -> Option<String> {
    if let Some(total) = all.cores.filter(|total| own.cores > *total) {
        return Some(format!("takes {:#}; --total-executor-cores is {total}", own.cores));
    }
    if let Some(total) = all.memory.filter(|total| own.memory > *total) {
        return Some(format!("takes {}; --total-task-memory is {total}", own.memory));
    }
    let total = all.gpus.filter(|total| own.gpus > *total)?;
    Some(format!("takes {:#}; spark.mesos.gpus.max is {total}", own.gpus))
}

/// Why a task never starts because of what is kept for the tasks in the queues `after`, which wait for it, as the rest
/// of a sentence; `None` if it may. As long as it waits these have demand.
fn waits_for_itself(
    task: &TaskSpec,
    after: QueueBits,
    quotas: &RunQueues,
    all: QueueTotals,
) -> Option<String> {
    let (all_cores, all_memory) = quotas.guaranteed();
    let is_too_much = all.cores.is_some_and(|total| all_cores > total)
        || all.memory.is_some_and(|total| all_memory > total);
    if is_too_much {
        // That is said of the guarantees themselves.
        return None;
    }
    let (mut cores, mut memory) = (0, 0);
    let mut kept = [0; 2];
    for (id, queue) in quotas.iter() {
        let (kept_cores, kept_memory) = queue.guarantees();
        let is_own = id == task.queue;
        let is_of_hosts = all.host.is_some_and(|host| host.queue == id);
        let has_demand = is_own || is_of_hosts || after & 1 << id.number() != 0;
        let guaranteed = match has_demand {
            true => [kept_cores.millis(), kept_memory.get()],
            false => [0; 2],
        };
        let own = is_own.then(|| task.sums());
        let host = all.host.filter(|host| host.queue == id).map(|host| host.sums());
        let needed = own.into_iter().chain(host).fold([0; 2], |[cores, memory]: [u64; 2], sums| {
            [cores + sums.cores.millis(), memory + sums.memory.get()]
        });
        cores += guaranteed[0].max(needed[0]);
        memory += guaranteed[1].max(needed[1]);
        if !is_own {
            kept[0] += guaranteed[0];
            kept[1] += guaranteed[1];
        }
    }
    if let Some(total) = all.cores.filter(|total| cores > total.millis()) {
        let kept = MilliCpus::from_millis(kept[0]);
        return Some(format!(
            "takes {:#}; of --total-executor-cores, {total}, {kept} are kept for tasks that wait for it",
            task.cores
        ));
    }
    let total = all.memory.filter(|total| memory > total.get())?;
    let (own, kept) = (task.memory, Mebibytes::new(kept[1]));
    Some(format!(
        "takes {own}; of --total-task-memory, {total}, {kept} are kept for tasks that wait for it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::parse::parse_line;
    use crate::tasks::task::TaskDefaults;

    /// Tasks of one core and one MiB: their queues, and which they are after.
    fn list(tasks: &[(&str, &[u64])]) -> (RunQueues, TaskList) {
        let quotas = RunQueues::parse("a:guaranteed-cores=3;b:guaranteed-mem=3m").unwrap();
        let (cores, memory) = (MilliCpus::from_cores(1), Mebibytes::new(1));
        let defaults = TaskDefaults { cores, memory, retries: 0 };
        let spec = |((queue, after), line): (&(&str, &[u64]), u64)| TaskSpec {
            after: after.iter().map(u64::to_string).collect(),
            queue: quotas.find(queue).unwrap(),
            ..parse_line(b"true", line, &defaults).unwrap().unwrap()
        };
        let specs = tasks.iter().zip(1..).map(spec).collect();
        let list = TaskList::new("f".to_owned(), specs).unwrap();
        (quotas, list)
    }

    /// Goal: a task is refused exactly if it can't start beside what is kept for the tasks that wait for it, through
    /// others as well; tasks that are over wait for nothing. Method: totals that leave just enough, and less, of cores
    /// and of memory; with a host.
    #[test]
    fn what_is_kept_for_those_behind_is_seen() {
        let (quotas, list) = list(&[("default", &[]), ("default", &[1]), ("a", &[2]), ("b", &[3])]);
        let after = list.queues_after(|_| true);
        assert_eq!(after, [0b111, 0b110, 0b100, 0]);
        assert_eq!(list.queues_after(|task| task != 2 && task != 3), [0b001, 0, 0, 0]);
        let starts = |cores: u64, memory: u64, host: Option<u64>| {
            let host =
                host.map(|millis| Task::new(0, MilliCpus::from_millis(millis), Mebibytes::ZERO));
            let cores = Some(MilliCpus::from_millis(cores));
            let all = QueueTotals { cores, memory: Some(Mebibytes::new(memory)), gpus: None, host };
            waits_for_itself(&list.tasks[0], after[0], &quotas, all)
        };
        assert_eq!(starts(4000, 4, None), None);
        let why =
            "takes 1 core; of --total-executor-cores, 3.9, 3 are kept for tasks that wait for it";
        assert_eq!(starts(3900, 4, None).unwrap(), why);
        assert_eq!(starts(4100, 4, Some(100)), None);
        assert!(starts(4000, 4, Some(100)).is_some());
        let why =
            "takes 1 MiB; of --total-task-memory, 3 MiB, 3 MiB are kept for tasks that wait for it";
        assert_eq!(starts(4000, 3, None).unwrap(), why);
        // A task of the queue itself has what is kept for it.
        let all = QueueTotals {
            cores: Some(MilliCpus::from_cores(3)),
            memory: None,
            gpus: None,
            host: None,
        };
        assert_eq!(waits_for_itself(&list.tasks[2], after[2], &quotas, all), None);
    }
}
