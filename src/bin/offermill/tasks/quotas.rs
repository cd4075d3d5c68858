//! The queues that tasks are in (`--queues`): parsing their bounds, and whether each has tasks that are yet to start.

use offermill::ResourceSums;
use offermill::config::text::{parse_cores, parse_memory};
use offermill::config::{Queue, QueueId, Queues};
use offermill::resources::{Mebibytes, MilliCpus};

/// The bounds that a queue may have.
const BOUNDS: &str = "max-cores, max-mem, guaranteed-cores or guaranteed-mem";

/// The queues of `--queues`; none if none was given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TaskQuotas {
    queues: Queues,
}

impl TaskQuotas {
    /// Parses `NAME:BOUND=VALUE,…;NAME:…`.
    ///
    /// # Errors
    /// With what is wrong, as a clause.
    pub(crate) fn parse(text: &str) -> Result<TaskQuotas, String> {
        let mut queues: Vec<Queue> = Vec::new();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, bounds) = part.split_once(':').unwrap_or((part, ""));
            let name = name.trim();
            if queues.iter().any(|queue| queue.name() == name) {
                return Err(format!("the queue {name:?} stands there twice"));
            }
            queues.push(parse_queue(name, bounds)?);
        }
        if queues.is_empty() {
            return Err("it names no queue".to_owned());
        }
        let queues = Queues::new(queues).map_err(|error| error.to_string())?;
        Ok(TaskQuotas { queues })
    }

    /// Whether any queue was given.
    pub(crate) fn are_given(&self) -> bool {
        !self.queues.is_empty()
    }

    /// What is guaranteed to all queues together.
    pub(crate) fn guaranteed(&self) -> (MilliCpus, Mebibytes) {
        let each = || self.queues.iter().map(|(_, queue)| queue.guarantees());
        let cores = each().map(|(cores, _)| cores.millis()).sum();
        let memory = each().map(|(_, memory)| memory.get()).sum();
        (MilliCpus::from_millis(cores), Mebibytes::new(memory))
    }

    /// What is missing of which these guarantees are, as a clause; `None` if nothing is. Whether they are too much is
    /// checked with the configuration.
    pub(crate) fn problem(
        &self,
        core_cap: Option<MilliCpus>,
        memory: Option<Mebibytes>,
    ) -> Option<String> {
        let (cores, mebibytes) = self.guaranteed();
        let missing = if cores > MilliCpus::ZERO && core_cap.is_none() {
            "guaranteed-cores needs --total-executor-cores, of which they are"
        } else if mebibytes > Mebibytes::ZERO && memory.is_none() {
            "guaranteed-mem needs --total-task-memory, of which it is"
        } else {
            return None;
        };
        Some(missing.to_owned())
    }

    /// Why hosts, each of which takes this, would never start, as a clause; `None` if they may. They are in the default
    /// queue.
    pub(crate) fn no_host_starts(
        &self,
        host: ResourceSums,
        core_cap: Option<MilliCpus>,
        memory: Option<Mebibytes>,
    ) -> Option<String> {
        if let Some(why) = self.too_large(QueueId::DEFAULT, host) {
            return Some(format!("a host {why}"));
        }
        let (kept, kept_memory) = self.guaranteed();
        let (default, default_memory) =
            self.queues.get(QueueId::DEFAULT).map(Queue::guarantees).unwrap_or_default();
        // What other queues leave.
        let cores = core_cap.map(|cap| cap.saturating_sub(kept.saturating_sub(default)));
        if kept > MilliCpus::ZERO && cores.is_some_and(|left| host.cores > left) {
            return Some(format!(
                "the guarantees leave no room for a host of {} cores",
                host.cores
            ));
        }
        let memory =
            memory.map(|all| all.get() - kept_memory.get().min(all.get()) + default_memory.get());
        let is_short = memory.is_some_and(|left| host.memory.get() > left);
        is_short
            .then(|| format!("--total-task-memory leaves no room for a host of {}", host.memory))
    }

    /// The number of the queue of this name.
    ///
    /// # Errors
    /// With what is wrong, as the rest of a sentence that begins with the task.
    pub(crate) fn find(&self, name: &str) -> Result<QueueId, String> {
        if let Some(queue) = self.queues.id(name) {
            return Ok(queue);
        }
        if name == Queues::DEFAULT_NAME && !self.are_given() {
            return Ok(QueueId::DEFAULT);
        }
        if !self.are_given() {
            return Err(format!("is of the queue {name:?}, but there are no --queues"));
        }
        let names: Vec<&str> = self.queues.iter().map(|(_, queue)| queue.name()).collect();
        Err(format!("is of the queue {name:?}, which is none of --queues: {}", names.join(", ")))
    }

    /// The queues.
    pub(crate) fn queues(&self) -> impl Iterator<Item = Queue> {
        self.queues.iter().map(|(_, queue)| queue.clone())
    }

    /// Why a task of this size never starts in its queue, as the rest of a sentence; `None` if it may.
    pub(crate) fn too_large(&self, queue: QueueId, own: ResourceSums) -> Option<String> {
        let queue = self.queues.get(queue)?;
        let (max_cores, max_memory) = queue.maxima();
        let (name, cores, memory) = (queue.name(), own.cores, own.memory);
        if let Some(most) = max_cores.filter(|most| cores > *most) {
            return Some(format!("takes {cores} cores; the queue {name} has at most {most}"));
        }
        let most = max_memory.filter(|most| memory > *most)?;
        Some(format!("takes {memory}; the queue {name} has at most {most}"))
    }

    /// How many queues tasks may be in.
    fn count(&self) -> usize {
        self.queues.iter().count().max(1)
    }
}

fn parse_queue(name: &str, bounds: &str) -> Result<Queue, String> {
    let mut queue = Queue::new(name);
    let mut seen: Vec<&str> = Vec::new();
    for bound in bounds.split(',').map(str::trim).filter(|bound| !bound.is_empty()) {
        let (key, value) = bound.split_once('=').ok_or_else(|| {
            format!("{bound:?} of the queue {name} must be BOUND=VALUE with {BOUNDS}")
        })?;
        let (key, value) = (key.trim(), value.trim());
        if seen.contains(&key) {
            return Err(format!("{key} of the queue {name} stands there twice"));
        }
        seen.push(key);
        let named = format!("{key} of the queue {name}");
        let failed = |error: offermill::Error| error.to_string();
        let cores = || parse_cores(&named, value).map_err(failed);
        let memory = || parse_memory(&named, value).map_err(failed);
        queue = match key {
            "max-cores" => queue.max_cores(Some(cores()?)),
            "max-mem" => queue.max_memory(Some(memory()?)),
            "guaranteed-cores" => queue.guaranteed_cores(cores()?),
            "guaranteed-mem" => queue.guaranteed_memory(memory()?),
            _ => {
                return Err(format!("{key:?} of the queue {name} is no bound; expected {BOUNDS}"));
            }
        };
    }
    Ok(queue)
}

/// How many tasks of each queue are yet to start: as long as there are some, it has demand.
#[derive(Debug)]
pub(super) struct QueueDemand {
    are_given: bool,
    yet_to_start: Vec<u64>,
    /// Whether the kernel was told that the queue has demand.
    has_demand: Vec<bool>,
}

impl QueueDemand {
    /// The demand of this many tasks in each queue.
    pub(super) fn new(quotas: &TaskQuotas, tasks: impl Iterator<Item = QueueId>) -> QueueDemand {
        let count = quotas.count();
        let mut demand = QueueDemand {
            are_given: quotas.are_given(),
            yet_to_start: vec![0; count],
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

    /// The queues whose demand has changed, and whether they have some now. The caller tells the kernel.
    pub(super) fn changes(&mut self) -> Vec<(QueueId, bool)> {
        if !self.are_given {
            return Vec::new();
        }
        let told = self.has_demand.iter_mut().zip(&self.yet_to_start).zip(0..);
        let changed = told.filter_map(|((told, count), number)| {
            let has_demand = *count > 0;
            let before = std::mem::replace(told, has_demand);
            (before != has_demand).then_some((QueueId::new(number), has_demand))
        });
        changed.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(cores: u64, memory: u64) -> ResourceSums {
        let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(memory));
        ResourceSums { cores, memory, ..ResourceSums::NONE }
    }

    /// Goal: bounds are read, and queues have numbers in their order, the default one first. Method: three queues with
    /// and without bounds, in several spellings.
    #[test]
    fn queues_are_read() {
        let quotas = TaskQuotas::parse(
            "etl:max-cores=16,max-mem=32g,guaranteed-cores=0.5,guaranteed-mem=1g; adhoc ;",
        )
        .unwrap();
        assert_eq!(quotas.find("adhoc"), Ok(QueueId::new(2)));
        assert_eq!(quotas.find("default"), Ok(QueueId::DEFAULT));
        let etl = Queue::new("etl")
            .max_cores(Some(MilliCpus::from_cores(16)))
            .max_memory(Some(Mebibytes::new(32 * 1024)))
            .guaranteed_cores(MilliCpus::from_millis(500))
            .guaranteed_memory(Mebibytes::new(1024));
        let expected = [Queue::new("default"), etl, Queue::new("adhoc")];
        assert_eq!(quotas.queues().collect::<Vec<_>>(), expected);
        let own = TaskQuotas::parse("default:max-cores=1").unwrap();
        assert_eq!(own.queues().count(), 1);
        let none = TaskQuotas::default();
        assert_eq!((none.queues().count(), none.find("default")), (0, Ok(QueueId::DEFAULT)));
    }

    /// Goal: each mistake has a sentence that names it. Method: one of each.
    #[test]
    fn mistakes_in_queues_are_named() {
        for (text, expected) in [
            (" ; ", "it names no queue"),
            ("a b", "queue name is \"a b\", but must be 1 to 64 letters"),
            (":max-cores=1", "queue name is \"\", but must be"),
            ("a;a", "the queue \"a\" stands there twice"),
            (
                "a:max-cores",
                "\"max-cores\" of the queue a must be BOUND=VALUE with max-cores, max-mem",
            ),
            ("a:cores=1", "\"cores\" of the queue a is no bound; expected max-cores, max-mem,"),
            ("a:max-cores=1,max-cores=2", "max-cores of the queue a stands there twice"),
            ("a:max-cores=many", "max-cores of the queue a is \"many\", but must be"),
            ("a:max-mem=1.5g", "max-mem of the queue a is \"1.5g\", but must be"),
            ("a:max-mem=9999999g", "maximum of memory of the queue a is"),
            ("a:max-cores=9000000", "maximum of cores of the queue a is"),
            ("a:max-cores=1,guaranteed-cores=2", "guarantee of cores of the queue a is \"2\", but"),
            ("a:max-mem=1g,guaranteed-mem=2g", "guarantee of memory of the queue a is"),
        ] {
            let why = TaskQuotas::parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        let many: String = (0..64).map(|number| format!("q{number};")).collect();
        assert!(TaskQuotas::parse(&many).unwrap_err().contains("number of queues"));
        let quotas = TaskQuotas::parse("a:guaranteed-cores=5;b:guaranteed-cores=4").unwrap();
        assert!(quotas.problem(None, None).unwrap().contains("needs --total-executor-cores"));
        assert_eq!(quotas.problem(Some(MilliCpus::from_cores(8)), None), None);
        let memory = TaskQuotas::parse("a:guaranteed-mem=2g").unwrap();
        assert!(memory.problem(None, None).unwrap().contains("needs --total-task-memory"));
        assert_eq!(memory.problem(None, Some(Mebibytes::new(2048))), None);
        let why = "is of the queue \"c\", which is none of --queues: default, a, b";
        assert_eq!(quotas.find("c").unwrap_err(), why);
        let why = "takes 1 cores; the queue d has at most 0.5";
        let small = TaskQuotas::parse("d:max-cores=0.5,max-mem=1g").unwrap();
        assert_eq!(small.too_large(QueueId::new(1), own(1, 1)).unwrap(), why);
        assert!(small.too_large(QueueId::new(1), own(0, 2000)).unwrap().contains("2000 MiB"));
        assert_eq!(small.too_large(QueueId::DEFAULT, own(9, 2000)), None);
    }

    /// Goal: hosts are refused that the default queue never has room for. Method: a maximum, and guarantees of others,
    /// that leave just enough or too little.
    #[test]
    fn hosts_need_room_in_the_default_queue() {
        let starts = |text: &str, cap: u64| {
            let quotas = TaskQuotas::parse(text).unwrap();
            quotas.no_host_starts(own(1, 100), Some(MilliCpus::from_cores(cap)), None).is_none()
        };
        assert!(starts("default:max-cores=1", 8) && !starts("default:max-cores=0.9", 8));
        assert!(starts("a:guaranteed-cores=7", 8) && !starts("a:guaranteed-cores=7.5", 8));
        assert!(starts("a:guaranteed-cores=7;default:guaranteed-cores=1", 8));
        assert!(!starts("default:max-mem=99m", 8));
        let kept = TaskQuotas::parse("a:guaranteed-mem=1g").unwrap();
        let starts =
            |all| kept.no_host_starts(own(1, 100), None, Some(Mebibytes::new(all))).is_none();
        assert!(starts(1124) && !starts(1123));
    }

    /// Goal: a queue has demand as long as it has tasks that are yet to start, and changes are told once. Method: a
    /// task that starts, and is to start again.
    #[test]
    fn queues_have_demand_while_tasks_wait() {
        let quotas = TaskQuotas::parse("etl;web").unwrap();
        let (etl, web) = (QueueId::new(1), QueueId::new(2));
        let mut demand = QueueDemand::new(&quotas, [etl, web].into_iter());
        assert_eq!(demand.changes(), [(QueueId::DEFAULT, false)]);
        demand.settle_task(web);
        assert_eq!(demand.changes(), [(web, false)]);
        demand.await_task(web);
        assert_eq!(demand.changes(), [(web, true)]);
        assert_eq!(demand.changes(), []);
    }
}
