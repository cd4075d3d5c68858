//! One scenario, played from its start to the end of its shutdown.

use std::time::{Duration, Instant};

use console::Term;
use offermill::Timestamp;
use offermill::cluster::simulated::{Broken, Progress, Report, Simulation, Stage};

use super::figures::{moment, per_second};
use super::interrupt::Interrupt;
use super::order::{Order, Task};
use super::progress::Meter;
use super::violation::{self, Case};
use super::{Said, json, report, say, summary};
use crate::exit::Exit;
use crate::model::rate::Rate;
use crate::output::remark;
use crate::text::format::grouped;

/// How long the simulation runs until progress and signals get a look, about.
const SLICE: Duration = Duration::from_millis(50);
/// How far the bar is when faults are over. Nobody knows how long recovery takes.
const FAULTS: f64 = 0.9;
/// How far it is at the shutdown.
const DRAINING: f64 = 0.98;
/// The summary's width where there is no terminal.
const WIDTH: usize = 120;

/// How a scenario went.
pub(super) struct Outcome<'a> {
    pub(super) task: &'a Task,
    pub(super) report: Report,
    /// Real time.
    pub(super) took: Duration,
    /// The signal that asked for an end, and when in virtual time it was heeded.
    pub(super) asked: Option<(&'static str, Timestamp)>,
    pub(super) broken: Option<Broken>,
}

/// Plays a scenario and tells how it went.
pub(super) fn run(task: &Task, order: &Order, interrupt: &mut Interrupt) -> Exit {
    remark(&task.title);
    let culprit = Culprit(&task.again);
    let simulation = match Simulation::new(task.scenario.clone(), task.checks) {
        Ok(simulation) => simulation,
        Err(error) => {
            remark(&format!("no kernel takes this scenario's settings: {error}"));
            return Exit::BadInput;
        }
    };
    let outcome = play(task, simulation, order.plain, interrupt);
    drop(culprit);
    let (mut written, mut said) = (true, Said::Heard);
    if let Some(target) = &order.report {
        written &= target.write(&report::page(&outcome));
    }
    if !order.json {
        said = say(&summary::render(
            &outcome,
            order,
            Term::stdout().size_checked().map_or(WIDTH, columns),
        ));
    }
    let case = outcome.broken.as_ref().map(|broken| Case {
        broken,
        scenario: &task.scenario,
        checks: task.checks,
        origin: &task.title,
        again: &task.again,
        asked: outcome.asked.map(|(_, at)| at),
    });
    let shortened = case.map(|case| violation::pursue(&case, order, interrupt));
    if let Some(target) = &order.scenario_file {
        let scenario = shortened.as_ref().map_or(&task.scenario, |shortened| &shortened.scenario);
        written &= target.write(&scenario.to_string());
    }
    if order.json {
        said = say(&format!("{}\n", json::world(&outcome, shortened.as_ref(), order)));
    }
    match outcome.broken {
        Some(_) => Exit::Violation,
        None if !written => Exit::BadInput,
        None if said == Said::Lost => Exit::OutputClosed,
        None => Exit::Done,
    }
}

fn columns((_, columns): (u16, u16)) -> usize {
    usize::from(columns)
}

fn play<'a>(
    task: &'a Task,
    mut simulation: Simulation,
    plain: bool,
    interrupt: &mut Interrupt,
) -> Outcome<'a> {
    let started = Instant::now();
    let mut meter = Meter::new(plain);
    let (mut slice, mut rate, mut asked) = (Slice(64), Rate::default(), None);
    let broken = loop {
        match slice.advance(&mut simulation) {
            Ok(true) => {}
            Ok(false) => break None,
            Err(broken) => break Some(broken),
        }
        let progress = simulation.progress();
        if let Some(name) = interrupt.asked()
            && asked.is_none()
        {
            asked = Some((name, progress.now));
            meter.beside(|| {
                remark(&format!("{name}: the simulated framework shuts down; again to end at once"))
            });
            simulation.shut_down();
        }
        rate.note(Instant::now(), progress.offers);
        meter.show(part(&progress), || sentence(&progress, rate.per_second()));
    };
    meter.clear();
    Outcome { task, report: simulation.report(), took: started.elapsed(), asked, broken }
}

fn part(progress: &Progress) -> f64 {
    match progress.stage {
        Stage::Faults => {
            FAULTS * progress.now.as_millis() as f64 / progress.healed_at.as_millis().max(1) as f64
        }
        Stage::Recovering => FAULTS,
        Stage::Draining => DRAINING,
        _ => 1.0,
    }
}

fn sentence(progress: &Progress, offers_per_second: f64) -> String {
    let now = moment(progress.now);
    let stage = match progress.stage {
        Stage::Faults => format!("{now} of {}, faults", moment(progress.healed_at)),
        Stage::Recovering => format!("{now}, recovering (until books and cluster agree)"),
        Stage::Draining => format!("{now}, draining"),
        _ => format!("{now}, over"),
    };
    let (executors, limit) = (grouped(progress.executors.into()), grouped(progress.limit.into()));
    let offers = grouped(offers_per_second as u64);
    format!("{stage}  {executors} of {limit} executors  {offers} offers/s")
}

/// How many steps to take at once: as many as take about [`SLICE`].
struct Slice(u64);

impl Slice {
    fn advance(&mut self, simulation: &mut Simulation) -> Result<bool, Broken> {
        let began = Instant::now();
        let result = simulation.advance(self.0);
        let fitting = (per_second(self.0, began.elapsed()) as f64 * SLICE.as_secs_f64()) as u64;
        self.0 = fitting.clamp(self.0 / 4, self.0 * 2).clamp(1, 1 << 22);
        result
    }
}

/// Says which run it was if it panics.
pub(super) struct Culprit<'a>(pub(super) &'a str);

impl Drop for Culprit<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            remark(&format!("this panic comes again with: {}", self.0));
        }
    }
}
