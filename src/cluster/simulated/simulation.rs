//! One run: what is due happens, one thing after the other, and is judged.

use std::fmt;
use std::time::Duration;

use super::agenda::{Agenda, Item};
use super::checker::Checker;
use super::cluster::Cluster;
use super::corners::Corners;
use super::framework::{Framework, World};
use super::recorder::Recorder;
use super::recovery;
use super::report::{Drained, Report, Sample};
use super::scenario::Scenario;
use crate::error::Error;
use crate::time::Timestamp;

/// When a run is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// Never.
    Off,
    /// The sums after each step, everything each second of virtual time.
    EverySecond,
    /// Everything after each step: O(executors and agents) each.
    #[default]
    EachStep,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// When, in virtual time.
    pub at: Timestamp,
    /// After how many steps.
    pub step: u64,
    /// Which rule: its number in the table of invariants.
    pub invariant: u8,
    /// What was seen.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken { at, step, invariant, what } = self;
        write!(f, "invariant {invariant} is broken at {at} (step {step}): {what}")
    }
}

impl std::error::Error for Broken {}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Faults happen.
    Faults,
    /// Faults are over; the framework is to recover.
    Recovering,
    /// The framework shuts down.
    Draining,
    /// That's all.
    Over,
}

/// A look at a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Virtual time.
    pub now: Timestamp,
    /// When faults are over.
    pub healed_at: Timestamp,
    /// How far it has come.
    pub stage: Stage,
    /// Offers answered.
    pub offers: u64,
    /// Executors that the kernel counts.
    pub executors: u32,
    /// The executor limit.
    pub limit: u32,
    /// Events played.
    pub steps: u64,
}

/// A simulation.
pub struct Simulation {
    pub(super) scenario: Scenario,
    checks: Checks,
    pub(super) agenda: Agenda,
    pub(super) cluster: Cluster,
    pub(super) framework: Framework,
    pub(super) judge: Checker,
    pub(super) recorder: Recorder,
    corners: Corners,
    pub(super) stage: Stage,
    steps: u64,
    looked_at: u64,
    sample_every: u64,
    recovered_by: u64,
    drained: Option<Drained>,
    over_at: Option<u64>,
    most_running: u32,
}

/// After so long in milliseconds whatever was still under way has come.
const AFTERMATH: u64 = 5_000;
/// So many samples are taken until faults are over, at most each 100 ms.
const SAMPLES: u64 = 400;
const SAMPLE_EVERY_MIN: u64 = 100;

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Simulation {
    /// A run at its beginning.
    ///
    /// # Errors
    /// When the scenario's settings are none that a kernel takes.
    pub fn new(scenario: Scenario, checks: Checks) -> Result<Simulation, Error> {
        let framework = Framework::new(&scenario)?;
        let mut agenda = Agenda::default();
        agenda.at(0, Item::Subscribe);
        agenda.at(0, Item::Poll);
        agenda.at(0, Item::Allocate);
        agenda.at(0, Item::Sample);
        for (index, fault) in scenario.faults.iter().enumerate() {
            agenda.at(fault.at.as_millis(), Item::Fault { index });
        }
        agenda.at(scenario.healed_at.as_millis(), Item::Heal);
        Ok(Simulation {
            cluster: Cluster::new(&scenario),
            judge: Checker::new(&scenario, checks != Checks::Off),
            recorder: Recorder::default(),
            corners: Corners::new(&scenario),
            stage: Stage::Faults,
            steps: 0,
            looked_at: 0,
            sample_every: (scenario.healed_at.as_millis() / SAMPLES).max(SAMPLE_EVERY_MIN),
            recovered_by: 0,
            drained: None,
            over_at: None,
            most_running: 0,
            framework,
            agenda,
            checks,
            scenario,
        })
    }

    /// Plays up to so many events. `true` if there is more.
    ///
    /// # Errors
    /// The first rule that was broken. Nothing more can be played then.
    pub fn advance(&mut self, steps: u64) -> Result<bool, Broken> {
        for _ in 0..steps {
            if self.stage == Stage::Over {
                return Ok(false);
            }
            let Some(item) = self.agenda.next() else { return Ok(false) };
            self.steps += 1;
            self.happen(item);
            self.recorder.step_ends(&self.framework.kernel, self.agenda.now);
            self.follow_the_end();
            if self.checks != Checks::Off {
                self.check()?;
            }
        }
        Ok(self.stage != Stage::Over)
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            now: Timestamp::from_millis(self.agenda.now),
            healed_at: self.scenario.healed_at,
            stage: self.stage,
            offers: self.recorder.offers,
            executors: self.framework.kernel.totals().executors,
            limit: self.framework.settings.limit,
            steps: self.steps,
        }
    }

    /// Has the framework shut down now, whatever was to come.
    pub fn shut_down(&mut self) {
        if matches!(self.stage, Stage::Draining | Stage::Over) {
            return;
        }
        self.stage = Stage::Draining;
        let timeout = self.scenario.shutdown_timeout;
        let closed_at = Timestamp::from_millis(self.agenda.now);
        self.drained = Some(Drained { closed_at, over_at: closed_at, left: 0 });
        self.agenda.after(timeout.as_millis() as u64, Item::ShutdownTimesOut);
        let (framework, mut world) = self.parts();
        framework.shut_down(timeout, &mut world);
        self.recorder.mark(self.agenda.now, "shutdown".to_owned());
    }

    /// What was measured so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let recorder = &self.recorder;
        Report {
            scenario: self.scenario.clone(),
            ended_at: Timestamp::from_millis(self.agenda.now),
            steps: self.steps,
            samples: recorder.samples.clone(),
            marks: recorder.marks.clone(),
            placement_latency: recorder.placement_latency.clone(),
            launch_latency: recorder.launch_latency.clone(),
            spread: recorder.spread.clone(),
            spread_at: Timestamp::from_millis(recorder.spread_at),
            offers: recorder.offers,
            accepted: recorder.accepted,
            declines: recorder.declines(),
            placed: recorder.placed,
            ended: recorder.ended,
            drained: self.drained,
            fingerprint: recorder.fingerprint,
            corners: self.corners.reached(),
        }
    }

    /// The framework, and all that it works on.
    pub(super) fn parts(&mut self) -> (&mut Framework, World<'_>) {
        let Simulation { agenda, cluster, judge, recorder, corners, framework, .. } = self;
        (framework, World { agenda, cluster, judge, recorder, corners })
    }

    fn happen(&mut self, item: Item) {
        let (framework, mut world) = self.parts();
        match item {
            Item::Told { stream, tell } => framework.told(stream, tell, &mut world),
            Item::Subscribe => framework.subscribe(&mut world),
            Item::Answer { handler } => framework.answer(handler, &mut world),
            Item::Poll => framework.poll(&mut world),
            Item::Fault { index } => self.befall(index),
            Item::Heal => self.heal(),
            Item::Sample => self.sample(),
            Item::ShutdownTimesOut => self.drain_ends(),
            other => self.cluster.happen(&mut self.agenda, other),
        }
    }

    fn heal(&mut self) {
        self.cluster.heal(&mut self.agenda);
        if self.stage != Stage::Faults {
            return;
        }
        self.stage = Stage::Recovering;
        (self.framework.lagging, self.framework.slow) = Default::default();
        self.recorder.mark(self.agenda.now, "healed".to_owned());
        self.recovered_by = self.agenda.now + recovery::patience(&self.scenario);
    }

    /// From recovery to shutdown, and from there to the end.
    fn follow_the_end(&mut self) {
        let now = self.agenda.now;
        match self.stage {
            Stage::Draining => {
                if self.over_at.is_none() && self.framework.kernel.totals().executors == 0 {
                    self.drain_ends();
                }
                if self.over_at.is_some_and(|at| now >= at) {
                    self.stage = Stage::Over;
                }
            }
            Stage::Recovering if self.checks == Checks::Off && now >= self.recovered_by => {
                self.shut_down();
            }
            _ => {}
        }
    }

    /// All executors have ended, or the time for it is over.
    fn drain_ends(&mut self) {
        if self.over_at.is_some() {
            return;
        }
        self.over_at = Some(self.agenda.now + AFTERMATH);
        let report = self.framework.kernel.drain(Duration::ZERO);
        let left = self.framework.kernel.totals().executors;
        if let Some(drained) = &mut self.drained {
            drained.over_at = Timestamp::from_millis(self.agenda.now);
            drained.left = left;
        }
        self.judge.drained(&self.framework.kernel, &report);
    }

    fn sample(&mut self) {
        let now = self.agenda.now;
        self.agenda.after(self.sample_every, Item::Sample);
        let totals = self.framework.kernel.totals();
        let (agents_up, running) = self.cluster.census();
        let recorder = &mut self.recorder;
        recorder.samples.push(Sample {
            at: Timestamp::from_millis(now),
            executors: totals.executors,
            running,
            limit: self.framework.settings.limit,
            cores: totals.cores,
            offers: recorder.offers,
            placed: recorder.placed,
            ended: recorder.ended.iter().sum(),
            agents_up,
        });
        if running > self.most_running {
            self.most_running = running;
            recorder.spread = self.cluster.spread();
            recorder.spread_at = now;
        }
        if self.stage == Stage::Recovering {
            self.look_for_recovery();
        }
    }

    /// Shuts down once the framework has recovered.
    fn look_for_recovery(&mut self) {
        let recovered = recovery::recovered(self);
        match recovered {
            Ok(()) => self.shut_down(),
            Err(missing) if self.agenda.now >= self.recovered_by => self.judge.missed(missing),
            Err(_) => {}
        }
    }

    fn check(&mut self) -> Result<(), Broken> {
        self.judge.step_ends(&self.framework.kernel, self.framework.settings);
        let now = self.agenda.now;
        if self.checks == Checks::EachStep || now >= self.looked_at + 1_000 {
            self.looked_at = now;
            let own = self.framework.now(&self.agenda);
            self.judge.look_closely(&self.framework.kernel, own, now);
        }
        let Some((invariant, what)) = self.judge.verdict() else { return Ok(()) };
        self.stage = Stage::Over;
        Err(Broken { at: Timestamp::from_millis(now), step: self.steps, invariant, what })
    }
}
