//! A kernel with queues beside naive books, which add up all executors for each question.

use offermill::config::{Queue, QueueId, Queues};
use offermill::resources::{Mebibytes, MilliCpus};
use offermill::{
    Change, Config, ConfigBuilder, Decisions, ExecutorId, Handler, IdScheme, Kernel, Picks,
    ReasonKind, StatusUpdate, Task, TaskState,
};
use proptest::prelude::prop;

use crate::world::{OfferData, Setup, at, lend};

/// What an executor of the configured shape takes.
const EXECUTOR: (u64, u64) = (500, 100);
const NAMES: [&str; 3] = [Queues::DEFAULT_NAME, "etl", "web"];

/// The bounds of a queue, in thousandths of cores and MiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) max_cores: Option<u64>,
    pub(super) max_memory: Option<u64>,
    pub(super) guaranteed_cores: u64,
    pub(super) guaranteed_memory: u64,
}

#[derive(Clone, Debug)]
pub(super) enum QueueStep {
    /// Queue, cores and memory of each task; as one gang, or each by itself.
    Place {
        picks: Vec<(u8, u64, u64)>,
        is_gang: bool,
    },
    /// Whole cores, for executors of the configured shape.
    Offer {
        cores: u64,
    },
    End(prop::sample::Index),
    Unreachable(prop::sample::Index),
    /// Those that are unreachable are given up.
    GiveUp,
    Return(prop::sample::Index),
    Reconfigure {
        bounds: Vec<Bounds>,
        cap: Option<u64>,
        memory: Option<u64>,
        executors: u8,
    },
    Demand(QueueId, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Reachable,
    Unreachable,
    /// When, in milliseconds.
    GivenUp(u64),
}

#[derive(Clone, Debug)]
struct Held {
    /// `None` before the kernel has answered.
    id: Option<ExecutorId>,
    queue: usize,
    cores: u64,
    memory: u64,
    life: Life,
}

impl Held {
    fn is_counted(&self) -> bool {
        !matches!(self.life, Life::GivenUp(_))
    }
}

pub(super) struct QueueBooks {
    kernel: Kernel,
    handler: Handler,
    decisions: Decisions,
    now: u64,
    bounds: Vec<Bounds>,
    cap: Option<u64>,
    memory: Option<u64>,
    executors: usize,
    demand: [bool; 3],
    held: Vec<Held>,
}

/// Settings with guarantees that are no more than there is.
fn config(
    bounds: &[Bounds],
    cap: Option<u64>,
    memory: Option<u64>,
    executors: u8,
) -> ConfigBuilder {
    let setup = Setup {
        executor_cores: Some(EXECUTOR.0),
        memory: EXECUTOR.1,
        core_cap: cap,
        exclusion: None,
        ..Setup::default()
    };
    let builder = setup.config().to_builder().queued_memory(memory.map(Mebibytes::new));
    let builder = bounds.iter().zip(NAMES).fold(builder, |builder, (bounds, name)| {
        builder.queue(
            Queue::new(name)
                .max_cores(bounds.max_cores.map(MilliCpus::from_millis))
                .max_memory(bounds.max_memory.map(Mebibytes::new))
                .guaranteed_cores(MilliCpus::from_millis(bounds.guaranteed_cores))
                .guaranteed_memory(Mebibytes::new(bounds.guaranteed_memory)),
        )
    });
    builder.executor_queue(QueueId::new(executors))
}

/// No caps below the guarantees, or below one executor.
fn possible(bounds: &[Bounds], cap: Option<u64>, memory: Option<u64>) -> [Option<u64>; 2] {
    let cores: u64 = bounds.iter().map(|bounds| bounds.guaranteed_cores).sum();
    let kept: u64 = bounds.iter().map(|bounds| bounds.guaranteed_memory).sum();
    [cap.map(|cap| cap.max(cores).max(EXECUTOR.0)), memory.map(|memory| memory.max(kept))]
}

impl QueueBooks {
    pub(super) fn new(bounds: Vec<Bounds>, cap: Option<u64>, memory: Option<u64>) -> QueueBooks {
        let [cap, memory] = possible(&bounds, cap, memory);
        let config: Config = config(&bounds, cap, memory, 0).build().unwrap();
        let kernel = Kernel::new(config, IdScheme::unique("q", 1).unwrap());
        QueueBooks {
            handler: kernel.handler(),
            kernel,
            decisions: Decisions::new(),
            now: 1_000,
            bounds,
            cap,
            memory,
            executors: 0,
            demand: [true; 3],
            held: Vec::new(),
        }
    }

    /// What a queue holds: cores and memory.
    fn sums(&self, queue: usize) -> [u64; 2] {
        let own = self.held.iter().filter(|it| it.queue == queue && it.is_counted());
        own.fold([0, 0], |[cores, memory], it| [cores + it.cores, memory + it.memory])
    }

    fn cores(&self) -> u64 {
        (0..3).map(|queue| self.sums(queue)[0]).sum()
    }

    fn guaranteed(&self, queue: usize) -> [u64; 2] {
        let Bounds { guaranteed_cores, guaranteed_memory, .. } = self.bounds[queue];
        if self.demand[queue] { [guaranteed_cores, guaranteed_memory] } else { [0, 0] }
    }

    /// The cores, or the memory, of all footprints, if a queue holds this much more.
    fn footprints(&self, kind: usize, more: Option<(usize, u64)>) -> u64 {
        let footprint = |queue: usize| {
            let more = more.map_or(0, |(of, amount)| if of == queue { amount } else { 0 });
            (self.sums(queue)[kind] + more).max(self.guaranteed(queue)[kind])
        };
        (0..3).map(footprint).sum()
    }

    /// Why a queue has no room, if it has none.
    fn refusal(&self, queue: usize, asked: [u64; 2]) -> Option<ReasonKind> {
        let Some(bounds) = self.bounds.get(queue) else { return Some(ReasonKind::Malformed) };
        let most = [bounds.max_cores, bounds.max_memory];
        let is_guaranteed = self.bounds.iter().any(|bounds| bounds.guaranteed_cores > 0);
        let totals = [self.cap.filter(|_| is_guaranteed), self.memory];
        let full = [ReasonKind::QueueCores, ReasonKind::QueueMemory];
        (0..2).find_map(|kind| {
            if most[kind].is_some_and(|most| self.sums(queue)[kind] + asked[kind] > most) {
                // What a lowered maximum leaves is less than nothing, and nothing is less than that.
                return (asked[kind] > 0).then_some(full[kind]);
            }
            let (now, then) =
                (self.footprints(kind, None), self.footprints(kind, Some((queue, asked[kind]))));
            let is_over = totals[kind].is_some_and(|total| then > total);
            (then > now && is_over).then_some(ReasonKind::QueueGuarantees)
        })
    }

    fn is_beyond_cap(&self, cores: u64) -> bool {
        self.cap.is_some_and(|cap| self.cores() + cores > cap)
    }

    /// Whether what is guaranteed and not used yet is left below the core cap.
    fn guarantees_fit(&self) -> bool {
        let unused = |queue: usize| self.guaranteed(queue)[0].saturating_sub(self.sums(queue)[0]);
        let unused: u64 = (0..3).map(unused).sum();
        self.cap.is_none_or(|cap| self.cores() + unused <= cap)
    }

    pub(super) fn play(&mut self, step: &QueueStep) {
        self.now += 10;
        let did_fit = self.guarantees_fit();
        match step {
            QueueStep::Place { picks, is_gang } => self.place(picks, *is_gang),
            QueueStep::Offer { cores } => self.offer(*cores),
            QueueStep::End(index) => self.end(index),
            QueueStep::Unreachable(index) => self.lose(index),
            QueueStep::GiveUp => self.give_up(),
            QueueStep::Return(index) => self.bring_back(index),
            QueueStep::Reconfigure { bounds, cap, memory, executors } => {
                [self.cap, self.memory] = possible(bounds, *cap, *memory);
                self.bounds.clone_from(bounds);
                self.executors = usize::from(*executors);
                let config = config(bounds, self.cap, self.memory, *executors);
                self.kernel.reconfigure(config.build().unwrap());
            }
            QueueStep::Demand(queue, has_demand) => {
                self.demand[usize::from(queue.number())] = *has_demand;
                self.kernel.set_queue_demand(*queue, *has_demand);
            }
        }
        let is_setting = matches!(step, QueueStep::Reconfigure { .. } | QueueStep::Demand(..));
        assert!(is_setting || !did_fit || self.guarantees_fit(), "a guarantee isn't kept");
        self.compare();
    }

    fn compare(&self) {
        self.kernel.check().unwrap();
        assert_eq!(self.kernel.totals().cores.millis(), self.cores());
        let queues = self.kernel.queues();
        assert_eq!(queues.len(), 3);
        for (queue, number) in queues.iter().zip(0..) {
            let found = [queue.cores.millis(), queue.memory.get()];
            assert_eq!(found, self.sums(number), "queue {}", queue.name);
            let kept = [queue.guaranteed_cores.millis(), queue.guaranteed_memory.get()];
            assert_eq!(kept, self.guaranteed(number));
        }
        let snapshot = self.kernel.snapshot(at(self.now));
        for view in &snapshot.executors {
            let held = self.held.iter().find(|held| held.id == Some(view.id)).unwrap();
            assert_eq!(view.queue.map(|queue| usize::from(queue.number())), Some(held.queue));
        }
    }

    fn place(&mut self, picks: &[(u8, u64, u64)], is_gang: bool) {
        let task = |((queue, cores, memory), tag): (&(u8, u64, u64), u64)| {
            let (cores, memory) = (MilliCpus::from_millis(*cores), Mebibytes::new(*memory));
            (0, Task::new(tag, cores, memory).in_queue(QueueId::new(*queue)))
        };
        let tasks: Vec<(u32, Task)> = picks.iter().zip(0..).map(task).collect();
        let mut all = Picks::new();
        if is_gang && !tasks.is_empty() {
            all.push_gang(&tasks);
        } else {
            tasks.iter().for_each(|(room, task)| all.push(*room, *task));
        }
        let expected = self.expect(&tasks, is_gang);
        let (handler, decisions, now) = (&mut self.handler, &mut self.decisions, at(self.now));
        let batch = [OfferData::new("S0", 1e3, 1e6)];
        lend(&batch, |offers| handler.propose(offers, now).commit(&all, now, decisions));
        let mut found = vec![Ok(()); tasks.len()];
        for unplaced in self.decisions.unplaced() {
            found[unplaced.pick as usize] = Err(unplaced.reason.kind());
        }
        assert_eq!(found, expected);
        let placed: Vec<_> = self.decisions.accepts().flat_map(|it| it.executors).collect();
        // The books have them already, in the same order.
        let first = self.held.len() - placed.len();
        for (held, placed) in self.held[first..].iter_mut().zip(&placed) {
            assert_eq!(placed.resources.cores.millis(), held.cores);
            held.id = Some(placed.id);
        }
    }

    /// Decides about picks one by one, and books those that are placed under no id yet.
    fn expect(&mut self, tasks: &[(u32, Task)], is_gang: bool) -> Vec<Result<(), ReasonKind>> {
        let mut cut = self.is_beyond_cap(EXECUTOR.0).then_some(ReasonKind::CoreCap);
        let before = self.held.clone();
        let mut answers = Vec::new();
        for (_, task) in tasks {
            let (queue, cores) = (usize::from(task.queue.number()), task.cores.millis());
            let memory = task.memory.get();
            let refused = cut.or_else(|| self.refusal(queue, [cores, memory])).or_else(|| {
                cut = self.is_beyond_cap(cores).then_some(ReasonKind::CoreCap);
                cut
            });
            if let (Some(reason), true) = (refused, is_gang) {
                self.held = before;
                return vec![Err(reason); tasks.len()];
            }
            answers.push(refused.map_or(Ok(()), Err));
            if refused.is_none() {
                let (id, life) = (None, Life::Reachable);
                self.held.push(Held { id, queue, cores, memory, life });
            }
        }
        answers
    }

    fn offer(&mut self, cores: u64) {
        let batch = [OfferData::new("S0", cores as f64, 1e6)];
        let (handler, decisions, now) = (&mut self.handler, &mut self.decisions, at(self.now));
        lend(&batch, |offers| handler.resource_offers(offers, now, decisions));
        let mut expected = 0;
        let (queue, (taken, memory)) = (self.executors, EXECUTOR);
        let first = self.held.len();
        let refused = loop {
            if self.is_beyond_cap(taken) {
                break Some(ReasonKind::CoreCap);
            }
            let refusal = self.refusal(queue, [taken, memory]);
            if refusal.is_some() || (expected + 1) * taken > cores * 1000 {
                break refusal;
            }
            expected += 1;
            let (id, life) = (None, Life::Reachable);
            self.held.push(Held { id, queue, cores: taken, memory, life });
        };
        let placed: Vec<_> = self.decisions.accepts().flat_map(|it| it.executors).collect();
        assert_eq!(placed.len() as u64, expected);
        for (held, placed) in self.held[first..].iter_mut().zip(&placed) {
            held.id = Some(placed.id);
        }
        let declined = self.decisions.declines().first().map(|decline| decline.reason.kind());
        assert_eq!(declined, refused.filter(|_| expected == 0));
    }

    fn report(&self, id: Option<ExecutorId>, state: TaskState) -> Change {
        let name = self.kernel.executor_name(id.unwrap()).to_string();
        self.kernel.status_update(&StatusUpdate::new(&name, state), at(self.now)).change
    }

    fn end(&mut self, index: &prop::sample::Index) {
        if !self.held.is_empty() {
            let ended = self.held.remove(index.index(self.held.len()));
            self.report(ended.id, TaskState::Finished);
            assert_eq!(self.report(ended.id, TaskState::Finished), Change::Nothing);
        }
    }

    fn lose(&mut self, index: &prop::sample::Index) {
        if !self.held.is_empty() {
            let at = index.index(self.held.len());
            if self.held[at].life == Life::Reachable {
                self.held[at].life = Life::Unreachable;
                self.report(self.held[at].id, TaskState::Unreachable);
            }
        }
    }

    fn give_up(&mut self) {
        // A little longer than the rule says. Those that were given up are forgotten after twice the time.
        self.now += 301_000;
        let now = self.now;
        self.held.retain(|it| !matches!(it.life, Life::GivenUp(at) if now - at >= 600_000));
        for held in self.held.iter_mut().filter(|it| it.life == Life::Unreachable) {
            held.life = Life::GivenUp(now);
        }
        self.kernel.tick(at(now));
    }

    fn bring_back(&mut self, index: &prop::sample::Index) {
        if self.held.is_empty() {
            return;
        }
        let at = index.index(self.held.len());
        let Held { id, queue, cores, memory, life } = self.held[at];
        let is_refused =
            self.refusal(queue, [cores, memory]).is_some() || self.is_beyond_cap(cores);
        let change = self.report(id, TaskState::Running);
        match life {
            Life::GivenUp(_) if is_refused => assert_eq!(change, Change::Refused),
            Life::GivenUp(_) => {
                assert_eq!(change, Change::Readmitted);
                self.held[at].life = Life::Reachable;
            }
            _ => self.held[at].life = Life::Reachable,
        }
    }
}
