//! Generates scenarios from a seed: small random clusters, and clusters of a given size.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Fault, FaultKind, Scenario, Severity};
use crate::cluster::simulated::rng::Rng;
use crate::error::Error;
use crate::resources::{Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// The stream of random numbers that scenarios are made from.
const MAKING: u64 = 1;

/// The stream of random numbers for slow handlers. It has its own stream, because otherwise scenarios without slow
/// handlers would change.
const SLOWING: u64 = 6;
/// The stream of random numbers for flapping agents.
const FLAPPING: u64 = 7;
/// The stream of random numbers for changes of queues.
const QUEUEING: u64 = 8;
/// The most queues that are added to a scenario, and how often their bounds change.
const QUEUES_MAX: u64 = 4;
const QUEUE_CHANGES_MAX: u64 = 6;
/// The maximum delay of the last call of a slow batch, in milliseconds.
const SLOW_MAX: u64 = 8_000;
/// The interval at which all executors are reconciled, in milliseconds.
const ALL_ASKED_EVERY: u64 = 900_000;

/// The maximum `release_after` of scenarios in which agents flap; with a longer one they would take too long.
const FLAPPING_RELEASE_MAX: Duration = Duration::from_secs(10);
/// The time after which the master regards an agent that doesn't answer as unreachable.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(75);
/// How long before a deadline a flapping agent comes back at the earliest; at the latest it comes back about as long
/// after it.
const CLOSE: Duration = Duration::from_millis(800);

/// The mean interval of faults in scenarios of a given size, in milliseconds: one fault per interval that hits the
/// whole cluster, and one per hundred agents that hits a single agent.
const MILD_EVERY: u64 = 60_000;
const HARSH_EVERY: u64 = 6_000;
/// The maximum number of faults of either kind in a scenario of a given size.
const SIZED_FAULTS_MAX: u64 = 5_000;

impl Scenario {
    /// The default scenario: one agent, one executor, no faults.
    pub(super) fn plain() -> Scenario {
        Scenario {
            seed: 0,
            agents: 1,
            agent_cores: 16,
            agent_memory: Mebibytes::new(64 * 1024),
            zones: 1,
            reserved_percent: 0,
            executors: 1,
            executor_cores: MilliCpus::from_cores(1),
            executor_memory: Mebibytes::new(1024),
            memory_overhead: Mebibytes::ZERO,
            extra_cores: 0,
            executor_gpus: 0,
            gpu_cap: 0,
            fixed_port: false,
            core_cap: MilliCpus::ZERO,
            plain_ids: false,
            binds_late: false,
            tasks: false,
            hosts: false,
            work_queue: false,
            queues: 0,
            exclude_after: 2,
            exclude_for: Duration::from_secs(120),
            release_after: Duration::from_secs(120),
            handlers: 1,
            queue: 10_000,
            batch: 256,
            lifetime: Duration::ZERO,
            failures_percent: 0,
            healed_at: Timestamp::from_millis(60_000),
            shutdown_timeout: Duration::from_secs(30),
            faults: Vec::new(),
        }
    }

    /// Generates a small scenario: the seed determines its size, settings and faults. A harsh scenario has only some
    /// kinds of fault, so that rare combinations occur.
    ///
    /// Equal arguments give equal scenarios. Durations and times have a resolution of a millisecond.
    #[must_use]
    pub fn generate(seed: u64, severity: Severity) -> Scenario {
        let mut rng = Rng::new(seed, MAKING);
        let agents = rng.between(1, 12) as u32;
        let executor_gpus = rng.pick(&[0, 0, 0, 1]);
        let mut scenario = Scenario {
            seed,
            agents,
            agent_cores: rng.between(1, 8) as u32,
            agent_memory: Mebibytes::new(rng.between(1, 10) * 1024),
            zones: rng.pick(&[1, 2, 3, 3]),
            reserved_percent: rng.pick(&[0, 0, 30, 100]),
            executors: rng.between(1, 40) as u32,
            executor_cores: MilliCpus::from_millis(rng.pick(&[0, 500, 1000, 1000, 2000, 3000])),
            executor_memory: Mebibytes::new(rng.between(1, 8) * 256),
            memory_overhead: Mebibytes::new(rng.pick(&[0, 0, 100])),
            extra_cores: rng.pick(&[0, 0, 2]),
            executor_gpus,
            gpu_cap: rng.pick(&[0, 3, 10]).max(executor_gpus),
            fixed_port: rng.percent(15),
            core_cap: MilliCpus::from_cores(rng.pick(&[0, 0, 5, 20])),
            plain_ids: rng.percent(30),
            exclude_after: rng.between(1, 3) as u8,
            exclude_for: Duration::from_secs(rng.pick(&[10, 60, 300])),
            release_after: Duration::from_secs(rng.pick(&[10, 60, 300])),
            handlers: rng.between(1, 4) as u32,
            queue: rng.pick(&[2, 10, 10_000]),
            batch: rng.pick(&[1, 3, 256]),
            lifetime: Duration::from_secs(rng.pick(&[0, 5, 30, 120])),
            failures_percent: rng.pick(&[0, 10, 50]),
            healed_at: Timestamp::from_millis(rng.pick(&[30_000, 120_000, 400_000])),
            shutdown_timeout: Duration::from_secs(rng.pick(&[0, 3, 30])),
            ..Scenario::plain()
        };
        let faults = match severity {
            Severity::None => 0,
            Severity::Mild => rng.below(8),
            Severity::Harsh => rng.between(4, 60),
        };
        let possible: Vec<FaultKind> = match severity {
            // Each scenario has about half of the kinds of fault.
            Severity::Harsh => {
                let kinds = FaultKind::ALL.iter().copied();
                let kinds = kinds.filter(|kind| kind.is_for_all_worlds());
                kinds.filter(|_| rng.percent(50)).collect()
            }
            _ => MILD.to_vec(),
        };
        scenario.add_faults(&mut rng, faults, &possible, severity);
        if severity == Severity::Harsh && rng.percent(15) {
            let at = Timestamp::from_millis(rng.below(scenario.healed_at.as_millis()));
            scenario.faults.push(Fault { at, ..Fault::new(FaultKind::Shutdown) });
        }
        if severity == Severity::Harsh {
            scenario.slow_handlers(&mut Rng::new(seed, SLOWING));
            scenario.flapping_agents(&mut Rng::new(seed, FLAPPING));
        }
        scenario.put_in_order();
        scenario
    }

    /// The same scenario with a framework that places [tasks](Scenario::with_tasks) in [queues](Scenario::queues),
    /// whose bounds are changed a few times while it runs.
    #[must_use]
    pub fn with_queues(self) -> Scenario {
        let mut rng = Rng::new(self.seed, QUEUEING);
        let queues = rng.between(1, QUEUES_MAX) as u32;
        let mut scenario = Scenario { queues, ..self.with_tasks() };
        for number in 1..=rng.below(QUEUE_CHANGES_MAX) {
            let change = scenario.fault(&mut rng, FaultKind::QueuesChange, 1);
            scenario.faults.push(Fault { amount: number, ..change });
        }
        scenario.put_in_order();
        scenario
    }

    /// In some scenarios handlers are slow at times, while executors fail, connections break, or all executors are
    /// reconciled.
    fn slow_handlers(&mut self, rng: &mut Rng) {
        if !rng.percent(40) {
            return;
        }
        for _ in 0..rng.between(1, 4) {
            let mut slow = self.fault(rng, FaultKind::AnswersDelayed, 100);
            slow.lasts *= 3;
            self.faults.push(slow);
            let within =
                slow.at.plus(Duration::from_millis(rng.below(slow.lasts.as_millis() as u64)));
            let further = match rng.below(4) {
                0 => Fault {
                    lasts: Duration::from_millis(rng.between(1, 500)),
                    ..Fault::new(FaultKind::ConnectionBreaks)
                },
                1 => Fault {
                    percent: rng.between(1, 50) as u8,
                    ..Fault::new(FaultKind::ExecutorsCrash)
                },
                2 => {
                    // As if the framework had started earlier: all executors will soon be reconciled.
                    let amount = ALL_ASKED_EVERY.saturating_sub(within.as_millis());
                    self.faults.push(Fault { amount, ..Fault::new(FaultKind::ClockJumps) });
                    continue;
                }
                _ => continue,
            };
            self.faults.push(Fault { at: within, ..further });
        }
    }

    /// In some scenarios agents flap: an agent is cut off until its executors are about to be given up or forgotten, is
    /// back for a moment, and is cut off again.
    fn flapping_agents(&mut self, rng: &mut Rng) {
        let release = self.release_after;
        if !rng.percent(60) || release > FLAPPING_RELEASE_MAX {
            return;
        }
        // Executors that end in the meantime would not come back.
        self.lifetime = Duration::ZERO;
        for _ in 0..rng.between(1, 3) {
            let agent = rng.below(self.agents.into()) as u32;
            let mut at = Timestamp::from_millis(rng.between(5_000, 20_000));
            for unreachable in [release, release + self.forget_after(), release] {
                let soon = Duration::from_millis(rng.between(0, 1_600));
                let lasts = (UNREACHABLE_AFTER + unreachable + soon).saturating_sub(CLOSE);
                let fault = Fault { at, agent, lasts, ..Fault::new(FaultKind::AgentPartitioned) };
                self.faults.push(fault);
                at = at.plus(lasts + Duration::from_millis(rng.between(100, 3_000)));
            }
            self.healed_at = self.healed_at.max(at);
        }
    }

    /// Generates a scenario of a given size: agents with 16 cores or more, executors with one core that live for 5
    /// minutes on average and are replaced, and faults until `duration` has passed.
    ///
    /// Faults don't change the settings: the executor limit stays at `executors`.
    #[must_use]
    pub fn sized(
        seed: u64,
        severity: Severity,
        agents: u32,
        executors: u32,
        duration: Duration,
    ) -> Scenario {
        let mut rng = Rng::new(seed, MAKING);
        let mut scenario = Scenario {
            seed,
            agents,
            zones: 4,
            reserved_percent: 10,
            executors,
            handlers: 2,
            exclude_for: Duration::from_secs(300),
            lifetime: Duration::from_secs(300),
            failures_percent: 2,
            healed_at: Timestamp::ORIGIN.plus(duration),
            ..Scenario::plain()
        };
        let (every, possible) = match severity {
            Severity::None => (u64::MAX, Vec::new()),
            Severity::Mild => (MILD_EVERY, MILD.to_vec()),
            Severity::Harsh => {
                // Settings chosen by the caller don't change.
                let kept = |kind: &FaultKind| !kind.changes_settings() && kind.is_for_all_worlds();
                (HARSH_EVERY, FaultKind::ALL.iter().copied().filter(kept).collect())
            }
        };
        // The number of agent faults grows with the number of agents; there is only one master and one network.
        let hundreds = u64::from(agents).div_ceil(100);
        let millis = scenario.healed_at.as_millis();
        let of_agents = (millis.saturating_mul(hundreds) / every).min(SIZED_FAULTS_MAX);
        let (single, common) = possible.into_iter().partition::<Vec<_>, _>(|it| it.of_an_agent());
        scenario.add_faults(&mut rng, of_agents, &single, severity);
        scenario.add_faults(&mut rng, (millis / every).min(SIZED_FAULTS_MAX), &common, severity);
        scenario.put_in_order();
        scenario
    }

    fn add_faults(
        &mut self,
        rng: &mut Rng,
        faults: u64,
        possible: &[FaultKind],
        severity: Severity,
    ) {
        if possible.is_empty() {
            return;
        }
        // Mild faults hit a small percentage at a time.
        let percent_max = if severity == Severity::Harsh { 100 } else { 10 };
        for _ in 0..faults {
            let kind = rng.pick(possible);
            let fault = self.fault(rng, kind, percent_max);
            self.faults.push(fault);
        }
    }

    /// A random fault of this kind. `percent_max` limits the percentage that it hits.
    fn fault(&self, rng: &mut Rng, kind: FaultKind, percent_max: u64) -> Fault {
        use FaultKind as K;
        let at = Timestamp::from_millis(rng.below(self.healed_at.as_millis()));
        let fault = Fault { at, ..Fault::new(kind) };
        let lasts = Duration::from_millis(rng.between(100, 20_000));
        let percent = rng.between(1, percent_max) as u8;
        match kind {
            K::AgentDies | K::AgentPartitioned => Fault {
                agent: rng.below(self.agents.into()) as u32,
                lasts: Duration::from_secs(rng.pick(&[1, 20, 90, 200])),
                amount: if kind == K::AgentDies { rng.below(2) } else { 0 },
                ..fault
            },
            K::MasterFailsOver | K::ConnectionBreaks => Fault { lasts, ..fault },
            K::MessagesReordered => {
                Fault { percent, lasts, amount: rng.between(1, 3_000), ..fault }
            }
            K::MessagesDelayed => Fault { lasts, amount: rng.between(1, 3_000), ..fault },
            K::MessagesLost | K::MessagesDuplicated | K::OffersRescinded => {
                Fault { percent, lasts, ..fault }
            }
            K::LaunchesFail | K::LaunchesHang | K::KillsOutlived => {
                Fault { percent, lasts, ..fault }
            }
            K::ExecutorsCrash | K::ExecutorsKilled => {
                Fault { percent: percent.div_ceil(2), ..fault }
            }
            K::ClockJumps => Fault { amount: rng.pick(&[10, 1_000, 60_000, 3_600_000]), ..fault },
            K::ClockLags => Fault { percent, lasts, amount: rng.between(1, 5_000), ..fault },
            K::AnswersDelayed => {
                Fault { percent, lasts, amount: rng.between(1, SLOW_MAX), ..fault }
            }
            K::OfferStorm | K::StrayUpdates => Fault { amount: rng.between(1, 10), ..fault },
            K::LimitChanges => Fault { amount: rng.below(u64::from(self.executors) * 2), ..fault },
            K::CoreCapChanges => Fault { amount: rng.below(40) * 500, ..fault },
            K::ConstraintChanges => Fault { amount: rng.below(u64::from(self.zones) + 1), ..fault },
            K::ExecutorCoresChange => Fault { amount: rng.between(1, 6) * 500, ..fault },
            K::QueuesChange | K::Shutdown => fault,
        }
    }

    /// Sorts the faults by time. Faults of the same time keep their order.
    pub(super) fn put_in_order(&mut self) {
        self.faults.sort_by_key(|fault| fault.at);
    }
}

/// The faults of [`Severity::Mild`]. A kind that is listed twice is twice as likely.
const MILD: &[FaultKind] = &[
    FaultKind::AgentDies,
    FaultKind::AgentDies,
    FaultKind::AgentPartitioned,
    FaultKind::ConnectionBreaks,
    FaultKind::MasterFailsOver,
    FaultKind::MessagesDelayed,
    FaultKind::OffersRescinded,
    FaultKind::ExecutorsCrash,
    FaultKind::LaunchesFail,
    FaultKind::OfferStorm,
];

impl FaultKind {
    /// Whether the fault hits a single agent.
    const fn of_an_agent(self) -> bool {
        matches!(self, FaultKind::AgentDies | FaultKind::AgentPartitioned)
    }

    /// Whether all harsh scenarios may have this kind. The other kinds are drawn from random numbers of their own.
    const fn is_for_all_worlds(self) -> bool {
        use FaultKind::{AnswersDelayed, QueuesChange, Shutdown};
        !matches!(self, Shutdown | AnswersDelayed | QueuesChange)
    }

    /// Whether it is an action or state of the framework, which is impossible once the framework shuts down.
    pub(crate) const fn is_the_frameworks(self) -> bool {
        self.changes_settings()
            || matches!(
                self,
                FaultKind::ExecutorsKilled
                    | FaultKind::Shutdown
                    | FaultKind::ClockJumps
                    | FaultKind::AnswersDelayed
            )
    }

    /// Whether the fault changes the framework's settings.
    pub(crate) const fn changes_settings(self) -> bool {
        matches!(
            self,
            FaultKind::LimitChanges
                | FaultKind::CoreCapChanges
                | FaultKind::ConstraintChanges
                | FaultKind::ExecutorCoresChange
                | FaultKind::QueuesChange
        )
    }
}

impl Fault {
    /// A fault of this kind at the origin, with all other fields zero.
    pub(super) fn new(kind: FaultKind) -> Fault {
        let (at, lasts) = (Timestamp::ORIGIN, Duration::ZERO);
        Fault { at, kind, agent: 0, percent: 0, lasts, amount: 0 }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::None => "none",
            Severity::Mild => "mild",
            Severity::Harsh => "harsh",
        })
    }
}

impl FromStr for Severity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Severity, Error> {
        match text {
            "none" => Ok(Severity::None),
            "mild" => Ok(Severity::Mild),
            "harsh" => Ok(Severity::Harsh),
            _ => Err(Error::setting("severity of faults", text, "none, mild or harsh")),
        }
    }
}
