//! The queues of a simulated framework: their bounds and whether they have tasks, which follow from the seed and from
//! [how often](FrameworkSettings::queue_round) they were changed.

use super::rng::Rng;
use super::scenario::Scenario;
use super::settings::FrameworkSettings;
use crate::config::{ConfigBuilder, Queue, QueueId};
use crate::resources::{Mebibytes, MilliCpus};

/// The stream of random numbers that bounds are made from, in each round another.
const BOUNDS_STREAM: u64 = 1_000;
/// What may be guaranteed to a queue, in percent of what all have.
const GUARANTEED_PERCENT: [u64; 4] = [0, 0, 10, 20];

/// The queues of a scenario. There may be none.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimQueues {
    seed: u64,
    /// Without the default one.
    count: u32,
    /// The memory of the smallest task.
    memory: u64,
}

/// What a queue may hold, what is guaranteed to it, and whether it has tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimQueue {
    pub(super) max_cores: Option<MilliCpus>,
    pub(super) max_memory: Option<Mebibytes>,
    pub(super) guaranteed_cores: MilliCpus,
    pub(super) guaranteed_memory: Mebibytes,
    pub(super) has_demand: bool,
}

impl SimQueue {
    /// The maximum of cores (0) or memory (1), and what other queues must leave.
    pub(super) fn terms(&self, kind: usize) -> (u64, u64) {
        let (most, least) = match kind {
            0 => (self.max_cores.map(|it| it.millis()), self.guaranteed_cores.millis()),
            _ => (self.max_memory.map(|it| it.get()), self.guaranteed_memory.get()),
        };
        (most.unwrap_or(u64::MAX), if self.has_demand { least } else { 0 })
    }
}

impl SimQueues {
    pub(super) fn of(scenario: &Scenario) -> SimQueues {
        let count = if scenario.has_queues() { scenario.queues } else { 0 };
        SimQueues { seed: scenario.seed, count, memory: scenario.memory_taken().get() }
    }

    /// Whether there are none.
    pub(super) fn is_empty(self) -> bool {
        self.count == 0
    }

    /// The queue of the task with this tag.
    pub(super) fn of_tag(self, tag: u64) -> QueueId {
        QueueId::new((tag % u64::from(self.count + 1)) as u8)
    }

    /// All queues under these settings, the default one first, which has neither bounds nor a guarantee; empty if there
    /// are none.
    pub(super) fn list(self, settings: FrameworkSettings) -> Vec<SimQueue> {
        let mut rng = Rng::new(self.seed, BOUNDS_STREAM + settings.queue_round);
        let default = SimQueue {
            max_cores: None,
            max_memory: None,
            guaranteed_cores: MilliCpus::ZERO,
            guaranteed_memory: Mebibytes::ZERO,
            has_demand: true,
        };
        let total = self.total_memory(&mut rng);
        let further = (0..self.count).map(|number| {
            // Together at most 60 percent, however many there are.
            let mut percent = || if number < 3 { rng.pick(&GUARANTEED_PERCENT) } else { 0 };
            let least_cores = settings.core_cap.millis() * percent() / 100;
            let least_memory = total.unwrap_or(0) * percent() / 100;
            let most = |rng: &mut Rng, unit: u64, least: u64| {
                let most = (unit * rng.between(1, 12)).max(least);
                rng.percent(60).then_some(most)
            };
            SimQueue {
                max_cores: most(&mut rng, 500, least_cores).map(MilliCpus::from_millis),
                max_memory: most(&mut rng, self.memory, least_memory).map(Mebibytes::new),
                guaranteed_cores: MilliCpus::from_millis(least_cores),
                guaranteed_memory: Mebibytes::new(least_memory),
                has_demand: rng.percent(75),
            }
        });
        let all = std::iter::once(default).chain(further);
        if self.is_empty() { Vec::new() } else { all.collect() }
    }

    /// The memory of all queues in this round.
    fn total_memory(self, rng: &mut Rng) -> Option<u64> {
        let total = self.memory * rng.between(4, 40);
        rng.percent(50).then_some(total)
    }

    /// The memory of all queues under these settings.
    pub(super) fn memory(self, settings: FrameworkSettings) -> Option<Mebibytes> {
        let mut rng = Rng::new(self.seed, BOUNDS_STREAM + settings.queue_round);
        self.total_memory(&mut rng).filter(|_| !self.is_empty()).map(Mebibytes::new)
    }

    /// What all queues may hold and keep under these settings: thousandths of cores, and MiB.
    pub(super) fn totals(self, settings: FrameworkSettings) -> [Option<u64>; 2] {
        let cores = Some(settings.core_cap.millis()).filter(|cap| *cap > 0);
        [cores, self.memory(settings).map(|memory| memory.get())]
    }

    /// Adds the queues to the settings of a kernel.
    pub(super) fn configure(
        self,
        mut config: ConfigBuilder,
        settings: FrameworkSettings,
    ) -> ConfigBuilder {
        for (queue, number) in self.list(settings).iter().zip(0..) {
            let name = if number == 0 { "default".to_owned() } else { format!("q{number}") };
            let queue = Queue::new(&name)
                .max_cores(queue.max_cores)
                .max_memory(queue.max_memory)
                .guaranteed_cores(queue.guaranteed_cores)
                .guaranteed_memory(queue.guaranteed_memory);
            config = config.queue(queue);
        }
        config.queued_memory(self.memory(settings))
    }
}

/// Whether queues that hold these thousandths of cores and MiB have room for these amounts, one after the other: each
/// within its queue's maximum, and such that no more than the totals is held or kept.
pub(super) fn have_room(
    list: &[SimQueue],
    held: &[[u64; 2]],
    totals: [Option<u64>; 2],
    wanted: &[(QueueId, [u64; 2])],
) -> bool {
    let mut held = held.to_vec();
    let footprints = |held: &[[u64; 2]]| {
        [0, 1].map(|kind| {
            let pairs = held.iter().zip(list);
            pairs.map(|(held, queue)| held[kind].max(queue.terms(kind).1)).sum::<u64>()
        })
    };
    wanted.iter().all(|(id, amounts)| {
        let before = footprints(&held);
        let (Some(queue), Some(own)) = (list.get(id.index()), held.get_mut(id.index())) else {
            return false;
        };
        own.iter_mut().zip(amounts).for_each(|(own, amount)| *own += amount);
        let own = *own;
        let after = footprints(&held);
        [0, 1].into_iter().all(|kind| {
            let is_within = own[kind] <= queue.terms(kind).0;
            let keeps = |total| after[kind] == before[kind] || after[kind] <= total;
            is_within && totals[kind].is_none_or(keeps)
        })
    })
}
