//! The queues of a run, of its tasks or its executors (`--queues`): parsing their bounds, and changing them.

use offermill::config::text::{parse_cores, parse_memory};
use offermill::config::{ExecutorCores, Queue, QueueId, Queues};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{Config, ResourceSums, Task};

use crate::model::queue::BoundChange;
use crate::text::format::shortened;

/// The bounds that a queue may have.
const BOUNDS: &str = "max-cores, max-mem, guaranteed-cores or guaranteed-mem";
/// The value of a bound that a queue doesn't have.
const NONE: &str = "none";

/// The queues of `--queues`; none if none was given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunQueues {
    queues: Queues,
}

impl RunQueues {
    /// Parses `NAME:BOUND=VALUE,…;NAME:…`.
    ///
    /// # Errors
    /// With what is wrong, as a clause.
    pub(crate) fn parse(text: &str) -> Result<RunQueues, String> {
        let queues = parse_queues(text, |name| Ok(Queue::new(name)))?;
        let queues = Queues::new(queues).map_err(|error| error.to_string())?;
        Ok(RunQueues { queues })
    }

    /// The queues of a configuration.
    pub(crate) fn of(config: &Config) -> RunQueues {
        RunQueues { queues: config.queues().clone() }
    }

    /// These queues with the bounds of a text as [`parse`](RunQueues::parse) takes it. Others stay.
    ///
    /// # Errors
    /// With what is wrong, as a sentence: also if it names a queue that isn't there, or changes nothing of one.
    pub(crate) fn changed(&self, text: &str) -> Result<RunQueues, String> {
        let known = |name: &str| {
            let queue = self.queues.id(name).and_then(|id| self.queues.get(id)).cloned();
            queue.ok_or_else(|| {
                format!("{:?} is no queue of this run: {}", shortened(name), self.names())
            })
        };
        let mut parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        if let Some(part) = parts.find(|part| !part.contains('=')) {
            let part = shortened(part);
            return Err(format!(
                "{part:?} changes nothing; expected NAME:BOUND=VALUE with {BOUNDS}"
            ));
        }
        let changed = parse_queues(text, known)?;
        let all = self.queues.iter().map(|(_, queue)| queue).chain(&changed).cloned();
        let queues = Queues::new(all).map_err(|error| error.to_string())?;
        Ok(RunQueues { queues })
    }

    /// What is different in `after`, which has the same queues.
    pub(crate) fn changes(&self, after: &RunQueues) -> Vec<BoundChange> {
        let pairs = self.queues.iter().zip(after.queues.iter());
        let of_queue = |((_, before), (_, after)): ((_, &Queue), (_, &Queue))| {
            let all = bounds(before).into_iter().zip(bounds(after));
            let differ = all.filter(|((_, before), (_, after))| before != after);
            let queue = before.name().to_owned();
            differ
                .map(move |((bound, from), (_, to))| {
                    let queue = queue.clone();
                    BoundChange { queue, bound, from, to }
                })
                .collect::<Vec<_>>()
        };
        pairs.flat_map(of_queue).collect()
    }

    /// Whether any queue was given.
    pub(crate) fn are_given(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Whether anything is guaranteed to any.
    pub(crate) fn have_guarantees(&self) -> bool {
        self.guaranteed() != (MilliCpus::ZERO, Mebibytes::ZERO)
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

    /// Why hosts, of which this is one, would never start, as a clause; `None` if they may.
    pub(crate) fn no_host_starts(
        &self,
        host: Task,
        core_cap: Option<MilliCpus>,
        memory: Option<Mebibytes>,
    ) -> Option<String> {
        if let Some(why) = self.too_large(host.queue, host.sums()) {
            return Some(format!("a host {why}"));
        }
        let (kept, kept_memory) = self.guaranteed();
        let (own, own_memory) =
            self.queues.get(host.queue).map(Queue::guarantees).unwrap_or_default();
        // What other queues leave.
        let cores = core_cap.map(|cap| cap.saturating_sub(kept.saturating_sub(own)));
        if kept > MilliCpus::ZERO && cores.is_some_and(|left| host.cores > left) {
            return Some(format!("the guarantees leave no room for a host of {:#}", host.cores));
        }
        let memory =
            memory.map(|all| all.get() - kept_memory.get().min(all.get()) + own_memory.get());
        let is_short = memory.is_some_and(|left| host.memory.get() > left);
        is_short
            .then(|| format!("--total-task-memory leaves no room for a host of {}", host.memory))
    }

    /// Why executors of these settings, which are all in one queue, would never start with these bounds, as a clause;
    /// `None` if they may.
    pub(crate) fn no_executor_starts(&self, config: &Config) -> Option<String> {
        let cores = match config.executor_cores() {
            ExecutorCores::Fixed(cores) => cores,
            ExecutorCores::WholeOffer => MilliCpus::from_cores(1),
        };
        let own = ResourceSums { cores, memory: config.memory_taken(), ..ResourceSums::NONE };
        let why = self.too_large(config.queues().executor_queue(), own)?;
        Some(format!("an executor {why}"))
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
        Err(format!("is of the queue {name:?}, which is none of --queues: {}", self.names()))
    }

    /// The names of all, with commas.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.queues.iter().map(|(_, queue)| queue.name()).collect();
        names.join(", ")
    }

    /// The queues with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.queues.iter()
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
            return Some(format!("takes {cores:#}; the queue {name} has at most {most}"));
        }
        let most = max_memory.filter(|most| memory > *most)?;
        Some(format!("takes {memory}; the queue {name} has at most {most}"))
    }

    /// How many queues there are; the default one if none was given.
    pub(crate) fn count(&self) -> usize {
        self.queues.iter().count().max(1)
    }
}

/// The queues that a text names, with its bounds; `find` says what each is without them.
fn parse_queues(
    text: &str,
    find: impl Fn(&str) -> Result<Queue, String>,
) -> Result<Vec<Queue>, String> {
    let mut queues: Vec<Queue> = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, bounds) = part.split_once(':').unwrap_or((part, ""));
        let name = name.trim();
        if queues.iter().any(|queue| queue.name() == name) {
            return Err(format!("the queue {:?} stands there twice", shortened(name)));
        }
        queues.push(parse_bounds(find(name)?, bounds)?);
    }
    if queues.is_empty() { Err("it names no queue".to_owned()) } else { Ok(queues) }
}

/// The queue with these bounds; `none` is none. Those that aren't named stay.
fn parse_bounds(mut queue: Queue, bounds: &str) -> Result<Queue, String> {
    let name = shortened(queue.name());
    let mut seen: Vec<&str> = Vec::new();
    for bound in bounds.split(',').map(str::trim).filter(|bound| !bound.is_empty()) {
        let (key, value) = bound.split_once('=').ok_or_else(|| {
            let bound = shortened(bound);
            format!("{bound:?} of the queue {name} must be BOUND=VALUE with {BOUNDS}")
        })?;
        let (key, value) = (key.trim(), value.trim());
        if seen.contains(&key) {
            return Err(format!("{} of the queue {name} stands there twice", shortened(key)));
        }
        seen.push(key);
        let named = format!("{} of the queue {name}", shortened(key));
        let failed = |error: offermill::Error| error.to_string();
        let is_none = value == NONE;
        let cores = || match is_none {
            true => Ok(None),
            false => parse_cores(&named, value).map(Some).map_err(failed),
        };
        let memory = || match is_none {
            true => Ok(None),
            false => parse_bound_of_memory(&named, value).map(Some),
        };
        queue = match key {
            "max-cores" => queue.max_cores(cores()?),
            "max-mem" => queue.max_memory(memory()?),
            "guaranteed-cores" => queue.guaranteed_cores(cores()?.unwrap_or(MilliCpus::ZERO)),
            "guaranteed-mem" => queue.guaranteed_memory(memory()?.unwrap_or(Mebibytes::ZERO)),
            _ => {
                let key = shortened(key);
                return Err(format!("{key:?} of the queue {name} is no bound; expected {BOUNDS}"));
            }
        };
    }
    Ok(queue)
}

/// Parses an amount of memory that bounds tasks: as one of cores, it is above 0.
///
/// # Errors
/// With what is wrong, as a clause that begins with `named`.
pub(crate) fn parse_bound_of_memory(named: &str, text: &str) -> Result<Mebibytes, String> {
    match parse_memory(named, text).map_err(|error| error.to_string())? {
        Mebibytes::ZERO => {
            Err(format!("{named} is {:?}, but must be at least 1 MiB", shortened(text)))
        }
        memory => Ok(memory),
    }
}

/// The bounds of a queue as a text has them.
fn bounds(queue: &Queue) -> [(&'static str, String); 4] {
    let cores = |cores: Option<MilliCpus>| cores.map_or(NONE.to_owned(), |it| it.to_string());
    let memory = |it: Option<Mebibytes>| it.map_or(NONE.to_owned(), |it| format!("{}m", it.get()));
    let (max_cores, max_memory) = queue.maxima();
    let (kept_cores, kept_memory) = queue.guarantees();
    [
        ("max-cores", cores(max_cores)),
        ("max-mem", memory(max_memory)),
        ("guaranteed-cores", cores(Some(kept_cores).filter(|it| *it > MilliCpus::ZERO))),
        ("guaranteed-mem", memory(Some(kept_memory).filter(|it| *it > Mebibytes::ZERO))),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    fn own(cores: u64, memory: u64) -> ResourceSums {
        let (cores, memory) = (MilliCpus::from_cores(cores), Mebibytes::new(memory));
        ResourceSums { cores, memory, ..ResourceSums::NONE }
    }

    /// Goal: bounds are read, and queues have numbers in their order, the default one first. Method: three queues with
    /// and without bounds, in several spellings.
    #[test]
    fn queues_are_read() {
        let quotas = RunQueues::parse(
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
        let own = RunQueues::parse("default:max-cores=1").unwrap();
        assert_eq!(own.queues().count(), 1);
        let none = RunQueues::default();
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
            ("a:max-cores=0", "max-cores of the queue a is \"0\", but must be"),
            ("a:max-mem=0", "max-mem of the queue a is \"0\", but must be at least 1 MiB"),
            ("a:max-mem=0g", "max-mem of the queue a is \"0g\", but must be at least 1 MiB"),
            ("a:guaranteed-cores=0.0", "guaranteed-cores of the queue a is \"0.0\", but must be"),
            (
                "a:guaranteed-mem=0",
                "guaranteed-mem of the queue a is \"0\", but must be at least 1",
            ),
            ("a:max-mem=9999999g", "maximum of memory of the queue a is"),
            ("a:max-cores=9000000", "maximum of cores of the queue a is"),
            ("a:max-cores=1,guaranteed-cores=2", "guarantee of cores of the queue a is \"2\", but"),
            ("a:max-mem=1g,guaranteed-mem=2g", "guarantee of memory of the queue a is"),
        ] {
            let why = RunQueues::parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        let many: String = (0..64).map(|number| format!("q{number};")).collect();
        assert!(RunQueues::parse(&many).unwrap_err().contains("number of queues"));
        let quotas = RunQueues::parse("a:guaranteed-cores=5;b:guaranteed-cores=4").unwrap();
        assert!(quotas.problem(None, None).unwrap().contains("needs --total-executor-cores"));
        assert_eq!(quotas.problem(Some(MilliCpus::from_cores(8)), None), None);
        let memory = RunQueues::parse("a:guaranteed-mem=2g").unwrap();
        assert!(memory.problem(None, None).unwrap().contains("needs --total-task-memory"));
        assert_eq!(memory.problem(None, Some(Mebibytes::new(2048))), None);
        let why = "is of the queue \"c\", which is none of --queues: default, a, b";
        assert_eq!(quotas.find("c").unwrap_err(), why);
        let why = "takes 1 core; the queue d has at most 0.5";
        let small = RunQueues::parse("d:max-cores=0.5,max-mem=1g").unwrap();
        assert_eq!(small.too_large(QueueId::new(1), own(1, 1)).unwrap(), why);
        assert!(small.too_large(QueueId::new(1), own(0, 2000)).unwrap().contains("2000 MiB"));
        assert_eq!(small.too_large(QueueId::DEFAULT, own(9, 2000)), None);
    }

    /// Goal: hosts are refused that their queue never has room for. Method: a maximum, and guarantees of others, that
    /// leave just enough or too little; in the default queue and in another one.
    #[test]
    fn hosts_need_room_in_their_queue() {
        let host = Task::new(9, MilliCpus::from_cores(1), Mebibytes::new(100));
        let starts = |text: &str, cap: u64| {
            let quotas = RunQueues::parse(text).unwrap();
            quotas.no_host_starts(host, Some(MilliCpus::from_cores(cap)), None).is_none()
        };
        assert!(starts("default:max-cores=1", 8) && !starts("default:max-cores=0.9", 8));
        assert!(starts("a:guaranteed-cores=7", 8) && !starts("a:guaranteed-cores=7.5", 8));
        assert!(starts("a:guaranteed-cores=7;default:guaranteed-cores=1", 8));
        assert!(!starts("default:max-mem=99m", 8));
        let kept = RunQueues::parse("a:guaranteed-mem=1g").unwrap();
        let starts = |all| kept.no_host_starts(host, None, Some(Mebibytes::new(all))).is_none();
        assert!(starts(1124) && !starts(1123));
        let in_a = |text: &str| {
            let quotas = RunQueues::parse(text).unwrap();
            let host = host.in_queue(quotas.find("a").unwrap());
            quotas.no_host_starts(host, Some(MilliCpus::from_cores(8)), None).is_none()
        };
        assert!(in_a("a:guaranteed-cores=8") && in_a("default:max-cores=0.9;a:max-cores=1"));
        assert!(!in_a("a:max-cores=0.9") && !in_a("a;b:guaranteed-cores=8"));
    }

    proptest! {
        /// Goal: a change sets the bounds that it names, in the queues that it names, and nothing else; what differs is
        /// told, and told again it brings the same. Method: random bounds of three queues, random changes of some of
        /// them, and a table of what each queue should have.
        #[test]
        fn changes_touch_what_they_name(
            before in vec(values(), 3),
            change in vec(option::of(values()), 3),
        ) {
            let text = |all: &[Option<[Option<u64>; 4]>], none: bool| {
                let queue = |(name, values): (&str, &Option<[Option<u64>; 4]>)| {
                    let bounds = KEYS.iter().zip((*values)?);
                    let bounds = bounds.filter(|(_, value)| none || value.is_some());
                    let bounds = bounds.map(|(key, value)| {
                        format!("{key}={}", value.map_or("none".to_owned(), |it| it.to_string()))
                    });
                    Some(format!("{name}:{}", bounds.collect::<Vec<_>>().join(",")))
                };
                let all = ["default", "a", "b"].into_iter().zip(all).filter_map(queue);
                all.collect::<Vec<_>>().join(";")
            };
            let given: Vec<_> = before.iter().copied().map(Some).collect();
            let quotas = RunQueues::parse(&text(&given, false)).unwrap();
            let is_given = change.iter().any(Option::is_some);
            prop_assume!(is_given);
            let changed = quotas.changed(&text(&change, true)).unwrap();
            let expected: Vec<_> =
                given.iter().zip(&change).map(|(before, change)| change.or(*before)).collect();
            prop_assert_eq!(&changed, &RunQueues::parse(&text(&expected, false)).unwrap());
            let told = quotas.changes(&changed);
            prop_assert_eq!(told.is_empty(), quotas == changed);
            let again = told.iter().fold(quotas, |quotas, it| {
                quotas.changed(&format!("{}:{}={}", it.queue, it.bound, it.to)).unwrap()
            });
            prop_assert_eq!(again, changed);
        }

        /// Goal: any text changes queues or is refused with one line of limited length. Method: words of the language
        /// and any text, in any order.
        #[test]
        fn every_change_has_an_answer(words in vec(prop_oneof![
            Just("a".to_owned()), Just(":".to_owned()), Just(";".to_owned()), Just(",".to_owned()),
            Just("max-cores=".to_owned()), Just("guaranteed-mem=".to_owned()),
            Just("none".to_owned()), "[0-9.mg]{0,24}", ".{0,300}",
        ], 0..9)) {
            let quotas = RunQueues::parse("a:max-cores=2;b").unwrap();
            if let Err(why) = quotas.changed(&words.concat()) {
                prop_assert!(!why.is_empty() && why.len() < 5_000, "{}", why);
            }
        }
    }

    const KEYS: [&str; 4] = ["max-cores", "max-mem", "guaranteed-cores", "guaranteed-mem"];

    /// Values of all bounds, of which no guarantee is more than any maximum.
    fn values() -> impl Strategy<Value = [Option<u64>; 4]> {
        [option::of(5..9u64), option::of(5..9), option::of(1..6), option::of(1..6)]
    }

    /// Goal: each mistake in a change has a sentence that names it. Method: one of each.
    #[test]
    fn mistakes_in_changes_are_named() {
        let quotas = RunQueues::parse("a:max-cores=2,guaranteed-cores=1").unwrap();
        for (text, expected) in [
            ("", "it names no queue"),
            ("a", "\"a\" changes nothing; expected NAME:BOUND=VALUE with max-cores, max-mem,"),
            ("a:", "\"a:\" changes nothing"),
            ("a:max-cores", "\"a:max-cores\" changes nothing"),
            ("c:max-cores=1", "\"c\" is no queue of this run: default, a"),
            ("a:max-cores=3;a:max-mem=1g", "the queue \"a\" stands there twice"),
            ("a:max-cores=0", "max-cores of the queue a is \"0\", but must be"),
            ("a:max-mem=0", "max-mem of the queue a is \"0\", but must be at least 1 MiB"),
            (
                "a:guaranteed-mem=0m",
                "guaranteed-mem of the queue a is \"0m\", but must be at least",
            ),
            (
                "a:max-cores=0.5",
                "guarantee of cores of the queue a is \"1\", but must be at most 0.5",
            ),
            ("a:max-cores=3,max-cores=none", "max-cores of the queue a stands there twice"),
        ] {
            let why = quotas.changed(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
