//! Whether a task of a [`WorkQueue`] may ever start: within the caps and its queue's maximum, and on some agent.

use std::collections::{HashMap, HashSet};

use super::host_ledger::HostLedger;
use super::work_queue::{WorkQueue, WorkState};
use crate::config::{Config, QueueId, Queues};
use crate::kernel::choosers::BatchCaps;
use crate::kernel::{Picks, ResourceSums, Task};
use crate::resources::MilliCpus;
use crate::time::Timestamp;

impl WorkQueue {
    /// Why a task never starts, as a sentence: it alone, or with its host, is more than a cap or its queue admits, its
    /// host is more than the queue of hosts admits, there is no such queue, or it [fits on no
    /// agent](super::AgentSurvey) of all that have offered something: then the sentence names the nearest, and what it
    /// lacks. `None` if it may start, and as long as the queue isn't started. Later settings and agents may have it
    /// start.
    ///
    /// Which agents there are is known once offers have come for 30 s without a change of agents or settings. Offers
    /// don't come at a cap. If the framework itself has them suppressed, call [`end_surplus`](WorkQueue::end_surplus)
    /// meanwhile, which sees it.
    #[must_use]
    pub fn never_starts(&self, task: &Task) -> Option<String> {
        let mut state = self.state();
        let now = state.now;
        let (config, _) = state.follow_settings(now)?;
        state.why_never(task, &config)
    }

    /// The tasks that wait and [never start](WorkQueue::never_starts), in their order, each with the reason. Those that
    /// are not to wait for other settings or larger agents are to be [removed](WorkQueue::remove).
    ///
    /// O(n log n) in the tasks that wait and the agents, while handler threads that choose wait; after that O(agents)
    /// for each size that fits on no agent. Once a second is often enough.
    #[must_use]
    pub fn unstartable(&self) -> Vec<(Task, String)> {
        let mut state = self.state();
        let now = state.now;
        let Some((config, _)) = state.follow_settings(now) else { return Vec::new() };
        let host = state.host_task();
        let waiting = state.waiting.all();
        let mut beyond: HashMap<(ResourceSums, QueueId), Option<String>> = HashMap::new();
        for task in &waiting {
            let why = || never_starts(task, host, &config);
            beyond.entry((task.sums(), task.queue)).or_insert_with(why);
        }
        let within = beyond.iter().filter(|(_, why)| why.is_none());
        let sizes: HashSet<ResourceSums> = within.map(|((size, _), _)| *size).collect();
        let too_large = state.survey.too_large(sizes, now);
        let survey = (!too_large.is_empty()).then(|| state.survey.clone());
        drop(state);
        let nearest = |size| Some((size, survey.as_ref()?.nearest(size)?.to_string()));
        let too_large: HashMap<ResourceSums, String> =
            too_large.into_iter().filter_map(nearest).collect();
        let why = |task: Task| {
            let why = beyond.get(&(task.sums(), task.queue))?.as_ref();
            Some((task, why.or_else(|| too_large.get(&task.sums()))?.clone()))
        };
        waiting.into_iter().filter_map(why).collect()
    }
}

impl WorkState {
    fn why_never(&self, task: &Task, config: &Config) -> Option<String> {
        let beyond = never_starts(task, self.host_task(), config);
        let nowhere = || self.survey.fits_nowhere(task.sums(), self.now);
        beyond.or_else(|| nowhere().map(|why| why.to_string()))
    }

    /// What each host takes, in its queue, if tasks run in hosts.
    fn host_task(&self) -> Option<Task> {
        self.hosts.as_ref().map(HostLedger::host_task)
    }

    /// Has the survey of agents begin again if the kernel's settings have changed, and stop if the caps leave nothing.
    /// Returns the settings, and what the caps leave; `None` if the queue isn't started.
    pub(super) fn follow_settings(&mut self, now: Timestamp) -> Option<(Config, BatchCaps)> {
        self.now = now.max(self.now);
        let mut config = self.kernel.as_ref()?.config();
        // Frameworks change the limit all the time. What matters of it is whether it leaves something.
        let limit = config.executor_limit.take();
        if self.survey_config.as_ref() != Some(&config) {
            self.survey.stop();
            self.survey_config = Some(config.clone());
        }
        config.executor_limit = limit;
        let caps = self.caps(&config);
        self.follow_caps(caps, &Picks::new());
        Some((config, caps))
    }

    /// Has the survey of agents stop if the caps leave nothing beside what was picked: no offers come then.
    pub(super) fn follow_caps(&mut self, mut caps: BatchCaps, picks: &Picks) {
        let Some(settings) = &self.survey_config else { return };
        let (cores, gpus) = (settings.cores_at_least(), settings.gpus_at_least());
        let least = ResourceSums { cores, gpus, ..ResourceSums::NONE };
        let have_room = picks.iter().all(|pick| caps.take(pick.task.sums()));
        if !have_room || !caps.take(least) {
            self.survey.stop();
        }
    }
}

fn never_starts(task: &Task, host: Option<Task>, config: &Config) -> Option<String> {
    let (own, queues) = (task.sums(), config.queues());
    let both = own.saturating_add(host.map_or(ResourceSums::NONE, |host| host.sums()));
    if own.cores == MilliCpus::ZERO {
        return Some("it takes no cores".to_owned());
    }
    let is_missing = |queue: QueueId| !queues.is_empty() && queues.get(queue).is_none();
    if is_missing(task.queue) {
        return Some(format!("there is no queue of the number {}", task.queue));
    }
    if let Some(host) = host.filter(|host| is_missing(host.queue)) {
        return Some(format!(
            "there is no queue of the number {}, in which its host is to be",
            host.queue
        ));
    }
    if host.is_some() && config.executor_limit() == Some(1) {
        return Some("it and its host are two executors; there is at most one".to_owned());
    }
    if let Some(host) = host
        && let Some(why) = beyond_queue(host.sums(), queues, host.queue)
    {
        return Some(format!("its host {why}"));
    }
    let with_host = if host.is_some() { "with its host " } else { "" };
    let is_beside = host.is_some_and(|host| host.queue == task.queue);
    let (in_queue, in_queue_with) = if is_beside { (both, with_host) } else { (own, "") };
    let memory_cap = config.queued_memory().filter(|_| !queues.is_empty());
    if let Some(why) = beyond_queue(in_queue, queues, task.queue) {
        return Some(format!("{in_queue_with}it {why}"));
    }
    if let Some(cap) = config.core_cap().filter(|cap| both.cores > *cap) {
        return Some(format!(
            "{with_host}it takes {:#}; all executors have at most {cap}",
            both.cores
        ));
    }
    if let Some(cap) = memory_cap.filter(|cap| both.memory > *cap) {
        return Some(format!("{with_host}it takes {}; all queues have at most {cap}", both.memory));
    }
    let cap = config.gpu_cap();
    (own.gpus > cap).then(|| format!("it takes {:#}; all executors have at most {cap}", own.gpus))
}

/// Why a queue never has room for what takes this, as the rest of a sentence; `None` if it may.
fn beyond_queue(taken: ResourceSums, queues: &Queues, queue: QueueId) -> Option<String> {
    let bounds = queues.bounds(queue);
    if taken.cores > bounds.cores {
        let (cores, most) = (taken.cores, bounds.cores);
        return Some(format!("takes {cores:#}; its queue has at most {most}"));
    }
    let is_too_much = !queues.is_empty() && taken.memory > bounds.memory;
    is_too_much.then(|| format!("takes {}; its queue has at most {}", taken.memory, bounds.memory))
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;
    use crate::config::{ConfigBuilder, Queue};
    use crate::resources::{Gpus, Mebibytes, MilliCpus};

    /// Goal: a task is said to never start exactly if a cap or a maximum is less than it takes, with its host where
    /// that counts. Method: each bound, with just enough and one less.
    #[test]
    fn each_bound_is_seen() {
        let cores = MilliCpus::from_millis;
        let host = Task::new(9, cores(100), Mebibytes::new(8));
        let [in_q, in_nowhere] = [1, 9].map(|queue| host.in_queue(QueueId::new(queue)));
        let why = |config: ConfigBuilder, queue: u8, host: Option<Task>| {
            let task = Task::new(0, cores(1000), Mebibytes::new(64)).in_queue(QueueId::new(queue));
            let config = config.smallest_task(cores(1000), Mebibytes::new(64)).build().unwrap();
            never_starts(&task, host, &config)
        };
        let of = |queue: &str| Queue::new(queue);
        let capped = |millis| Config::builder().core_cap(Some(cores(millis)));
        let most_cores = |name: &str, millis| {
            Config::builder().queue(of("q")).queue(of(name).max_cores(Some(cores(millis))))
        };
        let most_memory = |mebibytes| {
            Config::builder().queue(of("q").max_memory(Some(Mebibytes::new(mebibytes))))
        };
        let limited = |executors| Config::builder().executor_limit(Some(executors));
        let memory = |mebibytes| {
            Config::builder().queue(of("q")).queued_memory(Some(Mebibytes::new(mebibytes)))
        };
        for (enough, less, queue, host, told) in [
            (capped(1100), capped(1099), 0, Some(host), "all executors have at most 1.099"),
            (most_cores("q", 1000), most_cores("q", 999), 1, Some(host), "its queue has at most"),
            (most_cores("default", 1100), most_cores("default", 1099), 0, Some(host), "takes 1.1"),
            (
                most_memory(64),
                most_memory(63),
                1,
                None,
                "it takes 64 MiB; its queue has at most 63",
            ),
            (memory(72), memory(71), 1, Some(host), "it takes 72 MiB; all queues have at most 71"),
            (
                most_cores("default", 100),
                most_cores("default", 99),
                1,
                Some(host),
                "its host takes",
            ),
            (most_cores("q", 1100), most_cores("q", 1099), 1, Some(in_q), "with its host it takes"),
            (most_cores("q", 100), most_cores("q", 99), 0, Some(in_q), "its host takes 0.1 cores"),
            (limited(2), limited(1), 0, Some(host), "two executors"),
            (most_memory(64), most_memory(64), 2, None, "there is no queue of the number 2"),
            (limited(2), most_cores("q", 1100), 0, Some(in_nowhere), "its host is to be"),
        ] {
            let is_unknown = queue == 2;
            assert_eq!(why(enough, queue, host).is_none(), !is_unknown, "{told}");
            let sentence = why(less, queue, host).unwrap();
            assert!(sentence.contains(told), "{sentence}");
        }
        let task = Task { gpus: Gpus::new(1), ..Task::new(0, cores(1000), Mebibytes::new(64)) };
        let config = Config::builder().build().unwrap();
        assert!(never_starts(&task, None, &config).unwrap().contains("takes 1 GPU;"));
    }
}
