//! The queues that tasks are in (`--queues`): parsing their bounds, and what each of them has room for.

use offermill::ResourceSums;
use offermill::config::text::{parse_cores, parse_memory};
use offermill::config::{Queue, QueueId, Queues};
use offermill::limits;
use offermill::resources::{Mebibytes, MilliCpus};

/// The bounds of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskQuota {
    pub(crate) name: String,
    max_cores: Option<MilliCpus>,
    max_memory: Option<Mebibytes>,
    guaranteed_cores: MilliCpus,
}

/// All queues, by number. The first is that of tasks that name none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskQuotas {
    list: Vec<TaskQuota>,
    /// Whether any was given.
    is_given: bool,
}

impl Default for TaskQuotas {
    fn default() -> TaskQuotas {
        let name = Queues::DEFAULT_NAME.to_owned();
        TaskQuotas { list: vec![TaskQuota { name, ..TaskQuota::default() }], is_given: false }
    }
}

impl TaskQuotas {
    /// Parses `NAME:BOUND=VALUE,…;NAME:…`.
    ///
    /// # Errors
    /// With what is wrong, as a clause.
    pub(crate) fn parse(text: &str) -> Result<TaskQuotas, String> {
        let mut quotas = TaskQuotas::default();
        let mut names: Vec<&str> = Vec::new();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, bounds) = part.split_once(':').unwrap_or((part, ""));
            let name = name.trim();
            if names.contains(&name) {
                return Err(format!("the queue {name:?} stands there twice"));
            }
            names.push(name);
            let quota = TaskQuota::parse(name, bounds)?;
            match quotas.list.iter_mut().find(|known| known.name == name) {
                Some(known) => *known = quota,
                None => quotas.list.push(quota),
            }
        }
        if quotas.list.len() > limits::QUEUES_MAX {
            let most = limits::QUEUES_MAX;
            return Err(format!("there are more than {most} queues, with the default one"));
        }
        if names.is_empty() {
            return Err("it names no queue".to_owned());
        }
        quotas.is_given = true;
        Ok(quotas)
    }

    /// Whether any queue was given.
    pub(crate) fn are_given(&self) -> bool {
        self.is_given
    }

    /// What is wrong with the guarantees under this core cap, as a clause; `None` if nothing is.
    pub(crate) fn problem(&self, core_cap: Option<MilliCpus>) -> Option<String> {
        let sum = self.list.iter().map(|quota| quota.guaranteed_cores.millis()).sum();
        let sum = MilliCpus::from_millis(sum);
        match core_cap {
            _ if sum == MilliCpus::ZERO => None,
            None => Some("guaranteed-cores needs --total-executor-cores, of which they are".into()),
            Some(cap) if sum > cap => {
                Some(format!("{sum} cores are guaranteed, of {cap} by --total-executor-cores"))
            }
            Some(_) => None,
        }
    }

    /// The number of the queue of this name.
    ///
    /// # Errors
    /// With what is wrong, as the rest of a sentence that begins with the task.
    pub(crate) fn find(&self, name: &str) -> Result<QueueId, String> {
        if let Some(at) = self.list.iter().position(|quota| quota.name == name) {
            return Ok(QueueId::new(at as u8));
        }
        if !self.is_given {
            return Err(format!("is of the queue {name:?}, but there are no --queues"));
        }
        let names: Vec<&str> = self.list.iter().map(|quota| &*quota.name).collect();
        Err(format!("is of the queue {name:?}, which is none of --queues: {}", names.join(", ")))
    }

    /// The queues as the kernel takes them; none if none was given.
    pub(crate) fn queues(&self) -> impl Iterator<Item = Queue> {
        self.list.iter().filter(|_| self.is_given).map(|quota| {
            Queue::new(&quota.name)
                .max_cores(quota.max_cores)
                .max_memory(quota.max_memory)
                .min_cores(quota.guaranteed_cores)
        })
    }

    /// Why a task of this size never starts in its queue, as the rest of a sentence; `None` if it may.
    pub(crate) fn too_large(&self, queue: QueueId, own: ResourceSums) -> Option<String> {
        let TaskQuota { name, max_cores, max_memory, .. } = self.list.get(queue_index(queue))?;
        let (cores, memory) = (own.cores, own.memory);
        if let Some(most) = max_cores.filter(|most| cores > *most) {
            return Some(format!("takes {cores} cores; the queue {name} has at most {most}"));
        }
        let most = max_memory.filter(|most| memory > *most)?;
        Some(format!("takes {memory}; the queue {name} has at most {most}"))
    }
}

impl TaskQuota {
    const BOUNDS: &str = "max-cores, max-mem or guaranteed-cores";

    fn parse(name: &str, bounds: &str) -> Result<TaskQuota, String> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let length = 1..=limits::QUEUE_NAME_BYTES_MAX;
        if !length.contains(&name.len()) || !name.bytes().all(allowed) {
            let most = limits::QUEUE_NAME_BYTES_MAX;
            return Err(format!(
                "the queue name {name:?} must have 1 to {most} letters, digits, dots, underscores and hyphens"
            ));
        }
        let mut quota = TaskQuota { name: name.to_owned(), ..TaskQuota::default() };
        let mut seen: Vec<&str> = Vec::new();
        for bound in bounds.split(',').map(str::trim).filter(|bound| !bound.is_empty()) {
            let (key, value) = bound.split_once('=').ok_or_else(|| {
                format!("{bound:?} of the queue {name} must be BOUND=VALUE with {}", Self::BOUNDS)
            })?;
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(format!("{key} of the queue {name} stands there twice"));
            }
            seen.push(key);
            let named = format!("{key} of the queue {name}");
            let failed = |error: offermill::Error| error.to_string();
            match key {
                "max-cores" => {
                    quota.max_cores = Some(parse_cores(&named, value).map_err(failed)?);
                }
                "max-mem" => {
                    quota.max_memory = Some(parse_memory(&named, value).map_err(failed)?);
                }
                "guaranteed-cores" => {
                    quota.guaranteed_cores = parse_cores(&named, value).map_err(failed)?;
                }
                _ => {
                    let expected = Self::BOUNDS;
                    return Err(format!(
                        "{key:?} of the queue {name} is no bound; expected {expected}"
                    ));
                }
            }
        }
        quota.check().map_or(Ok(quota), Err)
    }

    /// What is wrong with the bounds, if something is.
    fn check(&self) -> Option<String> {
        let TaskQuota { name, max_cores, max_memory, guaranteed_cores } = self;
        if let Some(most) = max_cores.filter(|most| guaranteed_cores > most) {
            return Some(format!(
                "{guaranteed_cores} cores are guaranteed to the queue {name}, which has at most {most}"
            ));
        }
        let most = limits::TOTAL_CORES_MAX.min(limits::QUEUE_MIN_CORES_MAX);
        if max_cores.is_some_and(|cores| cores > most) || *guaranteed_cores > most {
            return Some(format!("the queue {name} has more than {most} cores"));
        }
        let most = limits::QUEUE_MEMORY_MAX;
        let is_more = max_memory.is_some_and(|memory| memory > most);
        is_more.then(|| format!("the queue {name} has more than {most}"))
    }
}

fn queue_index(queue: QueueId) -> usize {
    usize::from(queue.number())
}

/// What the tasks of each queue take, and how many are yet to start.
#[derive(Debug)]
pub(super) struct QuotaLedger {
    quotas: TaskQuotas,
    held: Vec<ResourceSums>,
    yet_to_start: Vec<u64>,
    /// Whether the kernel was told that the queue has demand.
    has_demand: Vec<bool>,
}

/// What the queues leave for a batch.
pub(super) struct QuotasLeft<'l> {
    ledger: &'l QuotaLedger,
    held: Vec<ResourceSums>,
    /// The cores that no queue holds and none is guaranteed.
    spare: MilliCpus,
}

impl QuotaLedger {
    /// A ledger in which nothing is held, of this many tasks in each queue.
    pub(super) fn new(quotas: TaskQuotas, tasks: impl Iterator<Item = QueueId>) -> QuotaLedger {
        let count = quotas.list.len();
        let mut yet_to_start = vec![0; count];
        tasks.for_each(|queue| yet_to_start[queue_index(queue)] += 1);
        let (held, has_demand) = (vec![ResourceSums::NONE; count], vec![true; count]);
        QuotaLedger { quotas, held, yet_to_start, has_demand }
    }

    pub(super) fn take(&mut self, queue: QueueId, own: ResourceSums) {
        let held = &mut self.held[queue_index(queue)];
        *held = held.saturating_add(own);
    }

    pub(super) fn give_back(&mut self, queue: QueueId, own: ResourceSums) {
        let held = &mut self.held[queue_index(queue)];
        *held = held.saturating_sub(own);
    }

    /// A task is to start again.
    pub(super) fn await_task(&mut self, queue: QueueId) {
        self.yet_to_start[queue_index(queue)] += 1;
    }

    /// A task has started, or is never to start.
    pub(super) fn settle_task(&mut self, queue: QueueId) {
        let count = &mut self.yet_to_start[queue_index(queue)];
        *count = count.saturating_sub(1);
    }

    /// The queues whose demand has changed, and whether they have some now. The caller tells the kernel.
    pub(super) fn demand_changes(&mut self) -> Vec<(QueueId, bool)> {
        if !self.quotas.is_given {
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

    /// What is left of this core cap for each queue.
    pub(super) fn left(&self, core_cap: MilliCpus) -> QuotasLeft<'_> {
        let footprints = self.held.iter().zip(0..).map(|(held, at)| {
            let kept = self.guaranteed(at);
            held.cores.max(kept).millis()
        });
        let spare = core_cap.millis().saturating_sub(footprints.sum());
        QuotasLeft { ledger: self, held: self.held.clone(), spare: MilliCpus::from_millis(spare) }
    }

    /// What is kept for a queue.
    fn guaranteed(&self, at: usize) -> MilliCpus {
        if self.has_demand[at] { self.quotas.list[at].guaranteed_cores } else { MilliCpus::ZERO }
    }
}

impl QuotasLeft<'_> {
    /// What a queue has room for.
    pub(super) fn room(&self, queue: QueueId) -> ResourceSums {
        let at = queue_index(queue);
        let (held, TaskQuota { max_cores, max_memory, .. }) =
            (self.held[at], &self.ledger.quotas.list[at]);
        let unused = self.ledger.guaranteed(at).millis().saturating_sub(held.cores.millis());
        let by_others = self.spare.millis().saturating_add(unused);
        let by_cores =
            max_cores.map_or(u64::MAX, |most| most.millis().saturating_sub(held.cores.millis()));
        let by_memory =
            max_memory.map_or(u64::MAX, |most| most.get().saturating_sub(held.memory.get()));
        ResourceSums {
            cores: MilliCpus::from_millis(by_others.min(by_cores)),
            memory: Mebibytes::new(by_memory),
            gpus: offermill::resources::Gpus::new(u32::MAX),
        }
    }

    /// Takes what a task needs of its queue. Returns whether the queue had room for it.
    pub(super) fn take(&mut self, queue: QueueId, own: ResourceSums) -> bool {
        let room = self.room(queue);
        if own.cores > room.cores || own.memory > room.memory {
            return false;
        }
        let at = queue_index(queue);
        let kept = self.ledger.guaranteed(at);
        let before = self.held[at].cores.max(kept).millis();
        self.held[at] = self.held[at].saturating_add(own);
        let grown = self.held[at].cores.max(kept).millis() - before;
        self.spare = MilliCpus::from_millis(self.spare.millis().saturating_sub(grown));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: MilliCpus = MilliCpus::from_cores(8);

    fn own(cores: u64, memory: u64) -> ResourceSums {
        let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(memory));
        ResourceSums { cores, memory, ..ResourceSums::NONE }
    }

    /// Goal: bounds are read, and queues have numbers in their order, the default one first. Method: three queues with
    /// and without bounds, in several spellings.
    #[test]
    fn queues_are_read() {
        let quotas =
            TaskQuotas::parse("etl:max-cores=16,max-mem=32g,guaranteed-cores=0.5; adhoc ;")
                .unwrap();
        assert_eq!(quotas.find("adhoc"), Ok(QueueId::new(2)));
        assert_eq!(quotas.find("default"), Ok(QueueId::DEFAULT));
        let etl = Queue::new("etl")
            .max_cores(Some(MilliCpus::from_cores(16)))
            .max_memory(Some(Mebibytes::new(32 * 1024)))
            .min_cores(MilliCpus::from_millis(500));
        let expected = [Queue::new("default"), etl, Queue::new("adhoc")];
        assert_eq!(quotas.queues().collect::<Vec<_>>(), expected);
        let own = TaskQuotas::parse("default:max-cores=1").unwrap();
        assert_eq!(own.queues().count(), 1);
        assert_eq!(TaskQuotas::default().queues().count(), 0);
    }

    /// Goal: each mistake has a sentence that names it. Method: one of each.
    #[test]
    fn mistakes_in_queues_are_named() {
        for (text, expected) in [
            (" ; ", "it names no queue"),
            ("a b", "the queue name \"a b\" must have 1 to 64 letters"),
            (":max-cores=1", "the queue name \"\" must have"),
            ("a;a", "the queue \"a\" stands there twice"),
            (
                "a:max-cores",
                "\"max-cores\" of the queue a must be BOUND=VALUE with max-cores, max-mem",
            ),
            ("a:cores=1", "\"cores\" of the queue a is no bound; expected max-cores, max-mem or"),
            ("a:max-cores=1,max-cores=2", "max-cores of the queue a stands there twice"),
            ("a:max-cores=many", "max-cores of the queue a is \"many\", but must be"),
            ("a:max-mem=1.5g", "max-mem of the queue a is \"1.5g\", but must be"),
            ("a:max-mem=9999999g", "the queue a has more than 8589934591 MiB"),
            ("a:max-cores=9000000", "the queue a has more than"),
            (
                "a:max-cores=1,guaranteed-cores=2",
                "2 cores are guaranteed to the queue a, which has",
            ),
        ] {
            let why = TaskQuotas::parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        let many: String = (0..64).map(|number| format!("q{number};")).collect();
        assert!(TaskQuotas::parse(&many).unwrap_err().contains("more than 64 queues"));
        let quotas = TaskQuotas::parse("a:guaranteed-cores=5;b:guaranteed-cores=4").unwrap();
        assert!(quotas.problem(None).unwrap().contains("needs --total-executor-cores"));
        assert!(quotas.problem(Some(CAP)).unwrap().starts_with("9 cores are guaranteed, of 8"));
        assert_eq!(quotas.problem(Some(MilliCpus::from_cores(9))), None);
        let why = "is of the queue \"c\", which is none of --queues: default, a, b";
        assert_eq!(quotas.find("c").unwrap_err(), why);
        let why = "takes 1 cores; the queue d has at most 0.5";
        let small = TaskQuotas::parse("d:max-cores=0.5,max-mem=1g").unwrap();
        assert_eq!(small.too_large(QueueId::new(1), own(1, 1)).unwrap(), why);
        assert!(small.too_large(QueueId::new(1), own(0, 2000)).unwrap().contains("2000 MiB"));
        assert_eq!(small.too_large(QueueId::DEFAULT, own(9, 2000)), None);
    }

    /// Goal: queues have room up to their maxima, and leave what is guaranteed to those with tasks that are yet to
    /// start. Method: a queue with a maximum beside one with a guarantee, which has a task, and then none.
    #[test]
    fn queues_have_room_within_their_bounds() {
        let quotas =
            TaskQuotas::parse("etl:max-cores=5,max-mem=100m;web:guaranteed-cores=4").unwrap();
        let (etl, web) = (QueueId::new(1), QueueId::new(2));
        let mut ledger = QuotaLedger::new(quotas, [etl, web].into_iter());
        assert_eq!(ledger.demand_changes(), [(QueueId::DEFAULT, false)]);
        let mut left = ledger.left(CAP);
        assert!(!left.take(etl, own(5, 10)), "four are kept");
        assert!(!left.take(etl, own(1, 101)), "too much memory");
        assert!(left.take(etl, own(3, 90)));
        assert!(!left.take(etl, own(1, 11)));
        assert!(
            left.take(web, own(3, 900)) && left.take(etl, own(1, 1)) && left.take(web, own(1, 1))
        );
        assert!(!left.take(web, own(1, 1)), "the cap is reached");
        ledger.take(etl, own(3, 90));
        ledger.settle_task(web);
        assert_eq!(ledger.demand_changes(), [(web, false)]);
        assert_eq!(ledger.left(CAP).room(etl).cores, MilliCpus::from_cores(2));
        ledger.await_task(web);
        assert_eq!(ledger.demand_changes(), [(web, true)]);
        assert_eq!(ledger.left(CAP).room(etl).cores, MilliCpus::from_cores(1));
        ledger.give_back(etl, own(3, 90));
        assert_eq!(ledger.left(CAP).room(etl).memory, Mebibytes::new(100));
    }
}
