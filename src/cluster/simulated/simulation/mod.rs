//! [`Simulation`]: runs a scenario event by event, and checks each step.

mod faults;
mod recovery;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::checker::Checker;
use super::cluster::Cluster;
use super::corners::Corners;
use super::event_queue::{EventQueue, SimEvent};
use super::framework::{Framework, SimulatedWork};
use super::recorder::Recorder;
use super::report::{DrainSummary, Report, Sample};
use super::scenario::Scenario;
use super::world::World;
use crate::error::Error;
use crate::time::Timestamp;

/// How often a simulation is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// No checks.
    Off,
    /// The totals after each step, and everything once per second of virtual time.
    EverySecond,
    /// Everything after each step. A step costs O(executors and agents).
    #[default]
    EachStep,
}

/// A violated invariant, where the simulation stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvariantViolation {
    /// Virtual time of the violation.
    pub at: Timestamp,
    /// The number of steps until then.
    pub step: u64,
    /// The invariant's number in the table of the crate's documentation.
    pub invariant: u8,
    /// What was observed.
    pub what: String,
}

impl fmt::Display for InvariantViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvariantViolation { at, step, invariant, what } = self;
        write!(f, "invariant {invariant} is broken at {at} (step {step}): {what}")
    }
}

impl std::error::Error for InvariantViolation {}

/// The stages of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Faults occur.
    Faults,
    /// Faults are over, and the framework recovers.
    Recovering,
    /// The framework shuts down.
    Draining,
    /// The simulation has ended.
    Over,
}

/// The progress of a simulation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The present virtual time.
    pub now: Timestamp,
    /// When faults are over, in virtual time.
    pub healed_at: Timestamp,
    /// The present stage.
    pub stage: Stage,
    /// The number of answered offers.
    pub offers: u64,
    /// The number of executors that the kernel counts.
    pub executors: u32,
    /// The executor limit in force.
    pub limit: u32,
    /// The number of processed events.
    pub steps: u64,
}

/// A simulation of one [`Scenario`].
pub struct Simulation {
    scenario: Scenario,
    checks: Checks,
    events: EventQueue,
    cluster: Cluster,
    framework: Framework,
    /// Those of the framework.
    tasks: Option<Arc<dyn SimulatedWork>>,
    checker: Checker,
    recorder: Recorder,
    corners: Corners,
    stage: Stage,
    steps: u64,
    checked_at: u64,
    sample_every: u64,
    recovery_deadline: u64,
    drained: Option<DrainSummary>,
    over_at: Option<u64>,
    most_running: u32,
}

/// How long the simulation continues after the drain, in milliseconds, so that delayed messages arrive.
const AFTERMATH_MS: u64 = 5_000;
/// The number of samples until faults are over.
const SAMPLES: u64 = 400;
/// The minimum time between two samples, in milliseconds.
const SAMPLE_EVERY_MIN: u64 = 100;

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Simulation {
    /// Creates a simulation that has not started.
    ///
    /// # Errors
    /// If the kernel rejects the scenario's settings.
    pub fn new(scenario: Scenario, checks: Checks) -> Result<Simulation, Error> {
        let framework = Framework::new(&scenario)?;
        let mut events = EventQueue::default();
        events.at(0, SimEvent::Subscribe);
        events.at(0, SimEvent::Poll);
        events.at(0, SimEvent::Allocate);
        events.at(0, SimEvent::Sample);
        for (index, fault) in scenario.faults.iter().enumerate() {
            events.at(fault.at.as_millis(), SimEvent::Fault { index });
        }
        events.at(scenario.healed_at.as_millis(), SimEvent::Heal);
        Ok(Simulation {
            cluster: Cluster::new(&scenario),
            checker: Checker::new(&scenario, checks != Checks::Off),
            recorder: Recorder::default(),
            corners: Corners::new(&scenario),
            stage: Stage::Faults,
            steps: 0,
            checked_at: 0,
            sample_every: (scenario.healed_at.as_millis() / SAMPLES).max(SAMPLE_EVERY_MIN),
            recovery_deadline: 0,
            drained: None,
            over_at: None,
            most_running: 0,
            tasks: framework.tasks.clone(),
            framework,
            events,
            checks,
            scenario,
        })
    }

    /// Processes up to `steps` events. Returns whether there are more.
    ///
    /// # Errors
    /// The first violated invariant. The simulation can't be continued then.
    pub fn advance(&mut self, steps: u64) -> Result<bool, InvariantViolation> {
        for _ in 0..steps {
            if self.stage == Stage::Over {
                return Ok(false);
            }
            let Some(item) = self.events.next() else { return Ok(false) };
            self.steps += 1;
            self.process(item);
            self.recorder.step_ends(&self.framework.kernel, self.events.now);
            self.advance_stage();
            if self.checks != Checks::Off {
                self.check()?;
            }
        }
        Ok(self.stage != Stage::Over)
    }

    /// The present progress.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            now: Timestamp::from_millis(self.events.now),
            healed_at: self.scenario.healed_at,
            stage: self.stage,
            offers: self.recorder.offers,
            executors: self.framework.kernel.totals().executors,
            limit: self.framework.settings.limit,
            steps: self.steps,
        }
    }

    /// Shuts the framework down now, unless it is shutting down already.
    pub fn shut_down(&mut self) {
        if matches!(self.stage, Stage::Draining | Stage::Over) {
            return;
        }
        self.stage = Stage::Draining;
        let timeout = self.scenario.shutdown_timeout;
        let closed_at = Timestamp::from_millis(self.events.now);
        self.drained = Some(DrainSummary { closed_at, over_at: closed_at, left: 0 });
        self.events.after(timeout.as_millis() as u64, SimEvent::ShutdownTimesOut);
        let (framework, mut world) = self.split();
        framework.shut_down(timeout, &mut world);
        self.recorder.mark(self.events.now, "shutdown".to_owned());
    }

    /// The measurements so far. Can be called at any time.
    #[must_use]
    pub fn report(&self) -> Report {
        let recorder = &self.recorder;
        Report {
            scenario: self.scenario.clone(),
            ended_at: Timestamp::from_millis(self.events.now),
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

    /// Borrows the framework, and separately the world on which it acts.
    fn split(&mut self) -> (&mut Framework, World<'_>) {
        let Simulation { events, cluster, checker, recorder, corners, framework, tasks, .. } = self;
        let tasks = tasks.as_deref();
        (framework, World { events, cluster, checker, recorder, corners, tasks })
    }

    fn process(&mut self, item: SimEvent) {
        let (framework, mut world) = self.split();
        match item {
            SimEvent::EventArrives { stream, event } => {
                framework.receive(stream, event, &mut world)
            }
            SimEvent::Subscribe => framework.subscribe(&mut world),
            SimEvent::Answer { handler } => framework.answer(handler, &mut world),
            SimEvent::Poll => framework.poll(&mut world),
            SimEvent::Fault { index } => self.inject_fault(index),
            SimEvent::Heal => self.heal(),
            SimEvent::Sample => self.sample(),
            SimEvent::ShutdownTimesOut => self.finish_drain(),
            other => self.cluster.process(&mut self.events, other),
        }
    }

    fn heal(&mut self) {
        self.cluster.heal(&mut self.events);
        if self.stage != Stage::Faults {
            return;
        }
        self.stage = Stage::Recovering;
        self.framework.lagging = Default::default();
        self.framework.slow = Default::default();
        self.recorder.mark(self.events.now, "healed".to_owned());
        self.recovery_deadline = self.events.now + recovery::recovery_timeout_ms(&self.scenario);
    }

    /// Advances from recovery to the shutdown, and from there to the end.
    fn advance_stage(&mut self) {
        let now = self.events.now;
        match self.stage {
            Stage::Draining => {
                if self.over_at.is_none() && self.framework.kernel.totals().executors == 0 {
                    self.finish_drain();
                }
                if self.over_at.is_some_and(|at| now >= at) {
                    self.stage = Stage::Over;
                    self.tasks.iter().for_each(|tasks| tasks.close());
                }
            }
            Stage::Recovering if self.checks == Checks::Off && now >= self.recovery_deadline => {
                self.shut_down();
            }
            _ => {}
        }
    }

    /// Ends the drain: all executors have ended, or the timeout has passed.
    fn finish_drain(&mut self) {
        if self.over_at.is_some() {
            return;
        }
        self.over_at = Some(self.events.now + AFTERMATH_MS);
        let report = self.framework.kernel.drain(Duration::ZERO);
        let left = self.framework.kernel.totals().executors;
        if let Some(drained) = &mut self.drained {
            drained.over_at = Timestamp::from_millis(self.events.now);
            drained.left = left;
        }
        self.checker.drained(&self.framework.kernel, &report);
    }

    fn sample(&mut self) {
        let now = self.events.now;
        self.events.after(self.sample_every, SimEvent::Sample);
        let kernel = &self.framework.kernel;
        let framework_now = self.framework.now(&self.events);
        let capacity = kernel.capacity(framework_now);
        self.checker.check_capacity(&capacity, framework_now);
        let totals = kernel.totals();
        let (agents_up, running) = self.cluster.count_running();
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
            capacity: capacity.sums(),
        });
        if running > self.most_running {
            self.most_running = running;
            recorder.spread = self.cluster.spread();
            recorder.spread_at = now;
        }
        if self.stage == Stage::Recovering {
            self.check_recovery();
        }
    }

    /// Shuts the framework down if it has recovered.
    fn check_recovery(&mut self) {
        let recovered = recovery::recovered(self);
        match recovered {
            Ok(()) => self.shut_down(),
            Err(missing) if self.events.now >= self.recovery_deadline => {
                self.checker.not_recovered(missing)
            }
            Err(_) => {}
        }
    }

    fn check(&mut self) -> Result<(), InvariantViolation> {
        self.checker.step_ends(&self.framework.kernel, self.framework.settings);
        let now = self.events.now;
        if self.checks == Checks::EachStep || now >= self.checked_at + 1_000 {
            self.checked_at = now;
            let framework_now = self.framework.now(&self.events);
            self.checker.check_all(&self.framework.kernel, framework_now, now);
            if let Some(tasks) = &self.tasks {
                tasks.with_hosts(&mut |hosts| self.checker.check_hosts(hosts));
                if let Some((view, ends)) = tasks.take_told() {
                    let has_begun = |name: &str| self.cluster.has_begun(name);
                    self.checker.check_work(&view, &ends, has_begun);
                }
            }
        }
        let Some((invariant, what)) = self.checker.take_violation() else { return Ok(()) };
        self.stage = Stage::Over;
        Err(InvariantViolation {
            at: Timestamp::from_millis(now),
            step: self.steps,
            invariant,
            what,
        })
    }
}
