//! From a seed to a scenario.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Fault, FaultKind, Scenario, Severity};
use crate::cluster::simulated::rng::Rng;
use crate::error::Error;
use crate::resources::{Mebibytes, MilliCpus};
use crate::time::Timestamp;

/// The purpose of the rng that make scenarios.
const MAKING: u64 = 1;

/// The purpose of the rng that make handlers slow: their own, so that worlds without slow handlers stay what they
/// were.
const SLOWING: u64 = 6;
/// The purpose of the rng that make agents flap.
const FLAPPING: u64 = 7;
/// The last call of a slow batch leaves after so many milliseconds at most.
const SLOW_MAX: u64 = 8_000;
/// All executors are asked about each time so many milliseconds are over.
const ALL_ASKED_EVERY: u64 = 900_000;

/// Agents flap in worlds where executors are given up after so long at most: others would take too long.
const FLAPPING_RELEASE_MAX: Duration = Duration::from_secs(10);
/// The master takes an agent that doesn't answer for unreachable after so long.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(75);
/// Agents come back at most so long before a deadline, and about as long after it.
const CLOSE: Duration = Duration::from_millis(800);

/// Faults of a user's world come so often: one in so many milliseconds on average that befalls all, and one for each
/// hundred agents that befalls an agent.
const MILD_EVERY: u64 = 60_000;
const HARSH_EVERY: u64 = 6_000;
/// A user's world sees so many faults at most, however large it is.
const SIZED_FAULTS_MAX: u64 = 5_000;

impl Scenario {
    /// One agent, one executor, no faults.
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

    /// A small world of the seed's choosing: its size, its settings and its faults. Worlds differ in what can happen
    /// in them at all, so that rare mixtures come up.
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
            // Each world has some kinds of fault and lacks others.
            Severity::Harsh => {
                let kinds = FaultKind::ALL.iter().copied();
                let kinds = kinds.filter(|kind| kind.is_for_all_worlds());
                kinds.filter(|_| rng.percent(50)).collect()
            }
            _ => MILD.to_vec(),
        };
        scenario.befall(&mut rng, faults, &possible, severity);
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

    /// In part of the worlds handlers are slow now and then: while executors fail, connections break, and all are asked
    /// about.
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
                    // As if the framework had started so long before: soon all are asked about.
                    let amount = ALL_ASKED_EVERY.saturating_sub(within.as_millis());
                    self.faults.push(Fault { amount, ..Fault::new(FaultKind::ClockJumps) });
                    continue;
                }
                _ => continue,
            };
            self.faults.push(Fault { at: within, ..further });
        }
    }

    /// In part of the worlds agents flap: each is cut off until its executors are about to be given up, or about to be
    /// forgotten, is back for a moment, and is cut off again.
    fn flapping_agents(&mut self, rng: &mut Rng) {
        let release = self.release_after;
        if !rng.percent(60) || release > FLAPPING_RELEASE_MAX {
            return;
        }
        // Executors that end meanwhile don't come back.
        self.lifetime = Duration::ZERO;
        for _ in 0..rng.between(1, 3) {
            let agent = rng.below(self.agents.into()) as u32;
            let mut at = Timestamp::from_millis(rng.between(5_000, 20_000));
            for out_of_sight in [release, release + self.forget_after(), release] {
                let soon = Duration::from_millis(rng.between(0, 1_600));
                let lasts = (UNREACHABLE_AFTER + out_of_sight + soon).saturating_sub(CLOSE);
                let fault = Fault { at, agent, lasts, ..Fault::new(FaultKind::AgentPartitioned) };
                self.faults.push(fault);
                at = at.plus(lasts + Duration::from_millis(rng.between(100, 3_000)));
            }
            self.healed_at = self.healed_at.max(at);
        }
    }

    /// A world of a user's size: agents of 16 cores or more, executors of one core that live for some minutes and are
    /// replaced, faults until `duration` is over.
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
                // What a user asked for stays as it is.
                let kept = |kind: &FaultKind| !kind.changes_settings() && kind.is_for_all_worlds();
                (HARSH_EVERY, FaultKind::ALL.iter().copied().filter(kept).collect())
            }
        };
        // The more agents, the more of them die; there is one master and one network whatever their number.
        let hundreds = u64::from(agents).div_ceil(100);
        let millis = scenario.healed_at.as_millis();
        let of_agents = (millis.saturating_mul(hundreds) / every).min(SIZED_FAULTS_MAX);
        let (single, common) = possible.into_iter().partition::<Vec<_>, _>(|it| it.of_an_agent());
        scenario.befall(&mut rng, of_agents, &single, severity);
        scenario.befall(&mut rng, (millis / every).min(SIZED_FAULTS_MAX), &common, severity);
        scenario.put_in_order();
        scenario
    }

    fn befall(&mut self, rng: &mut Rng, faults: u64, possible: &[FaultKind], severity: Severity) {
        if possible.is_empty() {
            return;
        }
        // Mild faults hit few at a time.
        let percent_max = if severity == Severity::Harsh { 100 } else { 10 };
        for _ in 0..faults {
            let kind = rng.pick(possible);
            let fault = self.fault(rng, kind, percent_max);
            self.faults.push(fault);
        }
    }

    /// A fault of this kind, as severe as chance has it.
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
            K::MessagesReordered | K::MessagesDelayed => {
                Fault { percent, lasts, amount: rng.between(1, 3_000), ..fault }
            }
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
            K::Shutdown => fault,
        }
    }

    /// Puts the faults in the order of time. Equal moments keep their order.
    pub(super) fn put_in_order(&mut self) {
        self.faults.sort_by_key(|fault| fault.at);
    }
}

/// What a cluster sees in ordinary times.
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
    /// Whether it befalls one agent.
    const fn of_an_agent(self) -> bool {
        matches!(self, FaultKind::AgentDies | FaultKind::AgentPartitioned)
    }

    /// Whether any harsh world may have it. Others have rng of their own.
    const fn is_for_all_worlds(self) -> bool {
        !matches!(self, FaultKind::Shutdown | FaultKind::AnswersDelayed)
    }

    /// Whether it is something that the framework does, and can't any more once it shuts down.
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

    /// Whether it changes what the framework is told to do.
    pub(crate) const fn changes_settings(self) -> bool {
        matches!(
            self,
            FaultKind::LimitChanges
                | FaultKind::CoreCapChanges
                | FaultKind::ConstraintChanges
                | FaultKind::ExecutorCoresChange
        )
    }
}

impl Fault {
    /// A fault of this kind at the origin, with nothing to it.
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
