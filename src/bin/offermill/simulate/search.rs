//! Many small random worlds, each judged after each step, until one fails.

use std::time::{Duration, Instant};

use offermill::cluster::simulated::{Broken, Checks, Progress, Scenario, Simulation};

use super::figures::{moment, rough, speed, whole};
use super::interrupt::Interrupt;
use super::order::{Hunt, Order};
use super::progress::Meter;
use super::violation::{self, Case};
use super::world::Culprit;
use super::{Said, json, say};
use crate::exit::Exit;
use crate::output::remark;
use crate::text::format::{grouped, passed};

/// So many steps until a signal gets a look. Small worlds have not many more.
const STEPS: u64 = 10_000;

/// How a search stands.
pub(super) struct Findings<'a> {
    pub(super) hunt: &'a Hunt,
    /// Seeds that were played to their end, or to a violation.
    pub(super) seeds: u64,
    /// Seeds whose settings the kernel didn't take: a fault of the generator.
    pub(super) refused: u64,
    pub(super) steps: u64,
    pub(super) offers: u64,
    pub(super) took: Duration,
    pub(super) stopped_by: Option<&'static str>,
    /// What became of what was printed last.
    pub(super) said: Said,
    /// The seed that failed, and how.
    pub(super) broken: Option<(u64, Broken)>,
}

/// Plays seed after seed and tells how it went.
pub(super) fn run(hunt: &Hunt, order: &Order, interrupt: &mut Interrupt) -> Exit {
    let findings = search(hunt, order, interrupt);
    let mut said = findings.said;
    if !order.json && said == Said::Heard {
        let sentence = findings.sentence();
        let seeds = speed(findings.seeds, findings.took);
        said = say(&format!("{sentence}\nreal time {}, {seeds} seeds/s\n", passed(findings.took)));
    }
    let mut written = true;
    let shortened = findings.broken.as_ref().map(|(seed, broken)| {
        let scenario = hunt.scenario(*seed);
        let origin = format!("seed {seed}, {} faults", hunt.severity);
        let again = hunt.again(*seed);
        let case = Case {
            broken,
            scenario: &scenario,
            checks: Checks::EachStep,
            origin: &origin,
            again: &again,
            asked: None,
        };
        violation::pursue(&case, order, interrupt)
    });
    if let Some(target) = &order.scenario_file {
        match &shortened {
            Some(shortened) => written &= target.write(&shortened.scenario.to_string()),
            None if hunt.seeds == 1 => {
                written &= target.write(&hunt.scenario(hunt.first).to_string());
            }
            None => remark(&format!("no violation: {} isn't written", target.path().display())),
        }
    }
    if order.json {
        said = say(&format!("{}\n", json::search(&findings, shortened.as_ref(), order)));
    }
    match findings.broken {
        Some(_) => Exit::Violation,
        None if !written || findings.refused > 0 => Exit::BadInput,
        None if said == Said::Lost => Exit::OutputClosed,
        None => Exit::Done,
    }
}

fn search<'a>(hunt: &'a Hunt, order: &Order, interrupt: &mut Interrupt) -> Findings<'a> {
    let started = Instant::now();
    let mut meter = Meter::new(order.plain);
    let mut findings = Findings {
        hunt,
        seeds: 0,
        refused: 0,
        steps: 0,
        offers: 0,
        took: Duration::ZERO,
        stopped_by: None,
        said: Said::Heard,
        broken: None,
    };
    for seed in hunt.first..hunt.first.saturating_add(hunt.seeds) {
        let scenario = hunt.scenario(seed);
        let about = hunt.verbose.then(|| about(seed, &scenario));
        let again = hunt.again(seed);
        let culprit = Culprit(&again);
        let simulation = match Simulation::new(scenario, Checks::EachStep) {
            Ok(simulation) => simulation,
            Err(error) => {
                meter.beside(|| {
                    remark(&format!("no kernel takes the settings of seed {seed}: {error}"))
                });
                findings.refused += 1;
                continue;
            }
        };
        let Some((played, broken)) = play(simulation, interrupt) else { break };
        drop(culprit);
        findings.seeds += 1;
        findings.steps += played.progress.steps;
        findings.offers += played.progress.offers;
        findings.broken = broken.map(|broken| (seed, broken));
        if let Some(about) = about {
            findings.said = tell(&meter, &about, &played);
            if findings.said != Said::Heard {
                findings.stopped_by = Some("closed output");
                break;
            }
        }
        if findings.broken.is_some() || interrupt.asked().is_some() {
            break;
        }
        let took = started.elapsed();
        let part = findings.seeds as f64 / hunt.seeds as f64;
        meter.show(part, || sentence(&findings, took));
    }
    meter.clear();
    findings.took = started.elapsed();
    findings.stopped_by = findings.stopped_by.or(interrupt.asked());
    findings
}

struct Played {
    progress: Progress,
    fingerprint: u64,
}

/// Plays one to its end; `None` if the user wants none.
fn play(mut simulation: Simulation, interrupt: &mut Interrupt) -> Option<(Played, Option<Broken>)> {
    let broken = loop {
        match simulation.advance(STEPS) {
            Ok(true) if interrupt.asked().is_some() => return None,
            Ok(true) => {}
            Ok(false) => break None,
            Err(broken) => break Some(broken),
        }
    };
    let fingerprint = simulation.report().fingerprint;
    Some((Played { progress: simulation.progress(), fingerprint }, broken))
}

fn about(seed: u64, scenario: &Scenario) -> String {
    format!(
        "seed {seed}: {}, {}, {}",
        whole(scenario.agents.into(), "agent"),
        whole(scenario.executors.into(), "executor"),
        whole(scenario.faults.len() as u64, "fault"),
    )
}

/// Prints a seed's line.
fn tell(meter: &Meter, about: &str, played: &Played) -> Said {
    let Played { progress, fingerprint } = played;
    let (steps, offers) = (whole(progress.steps, "step"), whole(progress.offers, "offer"));
    let line =
        format!("{about}; {steps}, {offers}, {}, {fingerprint:016x}\n", moment(progress.now));
    meter.beside(|| say(&line))
}

fn sentence(findings: &Findings<'_>, took: Duration) -> String {
    let (done, all) = (findings.seeds, findings.hunt.seeds);
    let left = took.mul_f64((all - done) as f64 / done.max(1) as f64);
    let seeds = speed(done, took);
    let (done, all) = (grouped(done), grouped(all));
    format!("{done} of {all} seeds  {seeds} seeds/s  {} left", passed(left))
}

impl Findings<'_> {
    fn sentence(&self) -> String {
        let all = self.hunt.seeds;
        let played = match self.seeds {
            seeds if seeds == all => whole(all, "seed"),
            seeds => format!("{} of {}", grouped(seeds), whole(all, "seed")),
        };
        let verdict = match (&self.broken, self.stopped_by) {
            (Some((seed, _)), _) => format!("seed {seed} violates an invariant"),
            (None, Some(name)) => format!("no violation, stopped by {name}"),
            (None, None) => "no violation".to_owned(),
        };
        let (first, steps, offers) = (self.hunt.first, rough(self.steps), rough(self.offers));
        format!("{played} from {first}: {steps} steps, {offers} offers, {verdict}")
    }
}
