//! [`TaskDemand`]: what the tasks of a run want of the cluster, from one moment to the next.

use std::time::Duration;

use offermill::{Kernel, Timestamp};

use crate::tasks::queue::TaskQueue;

/// How long no task must be ready before offers are suppressed. Until then the ends of others bring offers for those
/// that wait for them.
const IDLE_AFTER: Duration = Duration::from_secs(2);

/// Whether offers are wanted for tasks: they are at first, and not any more once no task has been ready for 2 s.
#[derive(Debug, Default)]
pub(super) struct TaskDemand {
    /// Since when no task has been ready.
    idle_since: Option<Timestamp>,
    is_suppressed: bool,
}

impl TaskDemand {
    /// Tells the kernel which queues have demand. Returns whether offers are wanted, if that has changed.
    pub(super) fn follow(
        &mut self,
        queue: &TaskQueue,
        kernel: &Kernel,
        now: Timestamp,
    ) -> Option<bool> {
        for (queue, has_demand) in queue.demand_changes() {
            kernel.set_queue_demand(queue, has_demand);
        }
        self.idle_since = match queue.has_ready() {
            true => None,
            false => self.idle_since.or(Some(now)),
        };
        let is_idle = self.idle_since.is_some_and(|since| now.since(since) >= IDLE_AFTER);
        if is_idle {
            queue.no_offers_come();
        }
        let was_suppressed = std::mem::replace(&mut self.is_suppressed, is_idle);
        (was_suppressed != is_idle).then_some(!is_idle)
    }
}

#[cfg(test)]
mod tests {
    use offermill::config::{Placement, Queue, QueueId};
    use offermill::engine::TaskChooser as _;
    use offermill::launch::CommandForm;
    use offermill::resources::{Gpus, Mebibytes, MilliCpus};
    use offermill::{Config, IdScheme, Offer, Picks, Resource, ResourceSums};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::model::executor::{ExecutorRecord, ExecutorState};
    use crate::model::task::TaskChange;
    use crate::tasks::order::TaskList;
    use crate::tasks::parse::parse_line;
    use crate::tasks::queue::TaskTerms;
    use crate::tasks::queue_check::QueueTotals;
    use crate::tasks::run_queues::RunQueues;
    use crate::tasks::task::TaskDefaults;

    const TASKS: u64 = 6;

    /// Tasks of one core with two retries, every other one in the queue `etl`, which is guaranteed a core.
    fn queue(results: String) -> TaskQueue {
        let (cores, memory) = (MilliCpus::from_cores(1), Mebibytes::new(1));
        let defaults = TaskDefaults { cores, memory, retries: 2 };
        let task = |number| {
            let name = if number % 2 == 0 { "etl" } else { "default" };
            let line = format!(r#"{{"command": "true", "queue": "{name}"}}"#);
            parse_line(line.as_bytes(), number, &defaults).unwrap().unwrap()
        };
        let mut list = TaskList::new("f".to_owned(), (1..=TASKS).map(task).collect()).unwrap();
        let quotas = RunQueues::parse("etl:guaranteed-cores=1").unwrap();
        let all = QueueTotals {
            cores: Some(MilliCpus::from_cores(9)),
            memory: None,
            gpus: None,
            host: None,
        };
        list.find_queues(&quotas, all).unwrap();
        let terms = TaskTerms {
            form: CommandForm::Argv,
            setup: None,
            variables: Vec::new(),
            placement: Placement::RoundRobin,
            queues: quotas,
            placement_timeout: None,
            tasks_max: 9,
            most: ResourceSums {
                cores: MilliCpus::from_cores(9),
                memory: Mebibytes::new(9),
                gpus: Gpus::ZERO,
            },
            hosts: None,
        };
        let queue = TaskQueue::new(list, terms, results);
        queue.open_results(false).unwrap();
        queue
    }

    fn kernel() -> Kernel {
        let config = Config::builder()
            .executor_memory(Mebibytes::new(1))
            .memory_overhead(Some(Mebibytes::ZERO))
            .core_cap(Some(MilliCpus::from_cores(9)))
            .queue(Queue::new("etl").guaranteed_cores(MilliCpus::from_cores(1)));
        Kernel::new(config.build().unwrap(), IdScheme::plain())
    }

    /// Answers an offer of this many cores, also if none is wanted any more. Returns the tags of the tasks that start.
    fn start(queue: &TaskQueue, kernel: &Kernel, cores: u8, now: Timestamp) -> Vec<u64> {
        let resources = [Resource::scalar("cpus", cores.into()), Resource::scalar("mem", 100.0)];
        let offers = [Offer::new("O", "S1", "agent-1", &resources, &[])];
        let (mut handler, mut picks) = (kernel.handler(), Picks::new());
        queue.choose(&handler.propose(&offers, now), now, &mut picks);
        let tags: Vec<u64> = picks.iter().map(|pick| pick.task.tag).collect();
        tags.iter().for_each(|tag| queue.placed(&record(*tag, ExecutorState::Starting, now)));
        tags
    }

    fn record(tag: u64, state: ExecutorState, now: Timestamp) -> ExecutorRecord {
        let [agent, host] = ["S1", "agent-1"].map(str::to_owned);
        let new = ExecutorRecord::starting(format!("t-{tag}"), agent, host, now);
        ExecutorRecord { tag: Some(tag), state, ..new }
    }

    #[derive(Clone, Copy, Debug)]
    enum DemandStep {
        Offer(u8),
        /// The first, second, … of the tasks in flight.
        End(u8, ExecutorState),
        /// The time goes on; the session looks after it, or hangs.
        Sleep {
            millis: u16,
            looks: bool,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<DemandStep>> {
        let state = prop_oneof![
            Just(ExecutorState::Finished),
            Just(ExecutorState::Failed),
            Just(ExecutorState::Lost)
        ];
        let sleep = (0u16..3000, proptest::bool::weighted(0.8));
        let step = prop_oneof![
            3 => (0u8..5).prop_map(DemandStep::Offer),
            3 => (any::<u8>(), state).prop_map(|(at, state)| DemandStep::End(at, state)),
            4 => sleep.prop_map(|(millis, looks)| DemandStep::Sleep { millis, looks }),
        ];
        vec(step, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Goal: offers aren't wanted once no task has been ready for 2 s, and are again as soon as one is; a change is
        /// told once; and the kernel keeps a queue's guarantee as long as tasks of it are yet to start. Method: random
        /// offers, also those that come late, ends of tasks, of which some are to start again, and times, beside plain
        /// lists of tasks; some of the time the session hangs and doesn't look.
        #[test]
        fn offers_are_wanted_while_tasks_are_ready(steps in steps()) {
            let folder = tempfile::tempdir().unwrap();
            let queue = queue(folder.path().join("results").to_str().unwrap().to_owned());
            let (kernel, mut demand) = (kernel(), TaskDemand::default());
            let (mut ready, mut in_flight): (Vec<u64>, Vec<u64>) = ((0..TASKS).collect(), vec![]);
            let (mut now, mut idle_since, mut is_wanted) = (Timestamp::ORIGIN, None, true);
            for step in steps {
                match step {
                    DemandStep::Offer(cores) => {
                        let started = start(&queue, &kernel, cores, now);
                        prop_assert!(started.len() == ready.len().min(cores.into()));
                        ready.retain(|tag| !started.contains(tag));
                        in_flight.extend(started);
                    }
                    DemandStep::End(at, state) if !in_flight.is_empty() => {
                        let tag = in_flight.remove(usize::from(at) % in_flight.len());
                        let events = queue.ended(&record(tag, state, now), None);
                        let is_over = events.iter().any(|it| {
                            matches!(it.what, TaskChange::Succeeded | TaskChange::Failed)
                        });
                        ready.extend((!is_over).then_some(tag));
                    }
                    DemandStep::Sleep { millis, looks } => {
                        now = now.plus(Duration::from_millis(millis.into()));
                        if !looks {
                            continue;
                        }
                    }
                    DemandStep::End(..) => {}
                }
                idle_since = if ready.is_empty() { idle_since.or(Some(now)) } else { None };
                let before = is_wanted;
                is_wanted = idle_since.is_none_or(|since| now < since.plus(Duration::from_secs(2)));
                let told = demand.follow(&queue, &kernel, now);
                prop_assert_eq!(told, (before != is_wanted).then_some(is_wanted));
                prop_assert_eq!(demand.follow(&queue, &kernel, now), None);
                let etl = kernel.queues().into_iter().find(|it| it.id != QueueId::DEFAULT).unwrap();
                let kept = u64::from(ready.iter().any(|tag| tag % 2 == 1));
                prop_assert_eq!(etl.guaranteed_cores, MilliCpus::from_cores(kept));
            }
        }
    }
}
