//! Plays small random scenarios, one per seed, and checks each after every step until one violates an invariant.

use std::time::{Duration, Instant};

use offermill::cluster::simulated::{Checks, InvariantViolation, Progress, Scenario, Simulation};

use super::interrupt::Interrupt;
use super::json;
use super::numbers::{moment, rough, speed};
use super::options::{SearchOptions, SimulateOptions};
use super::progress::ProgressDisplay;
use super::result::{SearchResult, Shortened};
use super::violation::{CommandOnPanic, FoundViolation, report_violation};
use crate::exit::ExitStatus;
use crate::output::{PrintOutcome, print_json, print_result, remark};
use crate::text::format::{count, grouped, passed};
use crate::text::styled::StyledText;

/// The number of steps between two checks for signals. Small scenarios have few more.
const STEPS: u64 = 10_000;

/// Plays the seeds and writes the results.
pub(super) fn run(
    search: &SearchOptions,
    options: &SimulateOptions,
    interrupt: &mut Interrupt,
) -> ExitStatus {
    let result = play_seeds(search, options, interrupt);
    let mut printed = result.printed;
    if !options.json && printed == PrintOutcome::Written {
        let sentence = result.sentence();
        let seeds = speed(result.seeds, result.took);
        let took = passed(result.took);
        let text = format!("{sentence}\nreal time {took}, {seeds} seeds/s\n");
        printed = print_result(&StyledText::lines(&text));
    }
    let shortened = shorten_violation(&result, options, interrupt);
    let written = save_scenario(&result, shortened.as_ref(), options);
    if options.json {
        printed = print_json(&format!("{}\n", json::search(&result, shortened.as_ref(), options)));
    }
    match result.broken {
        Some(_) => ExitStatus::Violation,
        None if !written || result.rejected > 0 => ExitStatus::BadInput,
        None if printed == PrintOutcome::Failed => ExitStatus::OutputClosed,
        None => ExitStatus::Done,
    }
}

/// Reports and shortens the violation, if one was found.
fn shorten_violation(
    result: &SearchResult<'_>,
    options: &SimulateOptions,
    interrupt: &mut Interrupt,
) -> Option<Shortened> {
    let (seed, broken) = result.broken.as_ref()?;
    let search = result.options;
    let violation = FoundViolation {
        broken,
        scenario: &search.scenario(*seed),
        checks: Checks::EachStep,
        origin: &format!("seed {seed}, {} faults", search.severity),
        again: &search.again(*seed),
        stopped_at: None,
    };
    Some(report_violation(&violation, options, interrupt))
}

/// Writes the scenario file, if one was asked for. Returns false if it can't be written.
fn save_scenario(
    result: &SearchResult<'_>,
    shortened: Option<&Shortened>,
    options: &SimulateOptions,
) -> bool {
    let Some(file) = &options.scenario_file else { return true };
    let search = result.options;
    match shortened {
        Some(shortened) => file.write(&shortened.scenario.to_string()),
        None if search.seeds == 1 => file.write(&search.scenario(search.first).to_string()),
        None => {
            remark(&format!("no violation: {} isn't written", file.path().display()));
            true
        }
    }
}

fn play_seeds<'a>(
    search: &'a SearchOptions,
    options: &SimulateOptions,
    interrupt: &mut Interrupt,
) -> SearchResult<'a> {
    let started = Instant::now();
    let mut display = ProgressDisplay::new(options.plain);
    let mut result = SearchResult {
        options: search,
        seeds: 0,
        rejected: 0,
        steps: 0,
        offers: 0,
        took: Duration::ZERO,
        stopped_by: None,
        printed: PrintOutcome::Written,
        broken: None,
    };
    for seed in search.first..search.first.saturating_add(search.seeds) {
        let scenario = search.scenario(seed);
        let description = search.verbose.then(|| description(seed, &scenario));
        let again = search.again(seed);
        let on_panic = CommandOnPanic(&again);
        let simulation = match Simulation::new(scenario, Checks::EachStep) {
            Ok(simulation) => simulation,
            Err(error) => {
                display.suspend(|| {
                    remark(&format!("the kernel rejects the settings of seed {seed}: {error}"))
                });
                result.rejected += 1;
                continue;
            }
        };
        let Some((played, broken)) = play(simulation, interrupt) else { break };
        drop(on_panic);
        result.seeds += 1;
        result.steps += played.progress.steps;
        result.offers += played.progress.offers;
        result.broken = broken.map(|broken| (seed, broken));
        if let Some(description) = description {
            result.printed = print_seed(&display, &description, &played);
            if result.printed != PrintOutcome::Written {
                result.stopped_by = Some("closed output");
                break;
            }
        }
        if result.broken.is_some() || interrupt.signal().is_some() {
            break;
        }
        let took = started.elapsed();
        let part = result.seeds as f64 / search.seeds as f64;
        display.show(part, || progress_sentence(&result, took));
    }
    display.clear();
    result.took = started.elapsed();
    result.stopped_by = result.stopped_by.or(interrupt.signal());
    result
}

/// The end of one seed's simulation.
struct Played {
    progress: Progress,
    fingerprint: u64,
}

/// Plays one simulation to its end. Returns `None` if a signal stops it.
fn play(
    mut simulation: Simulation,
    interrupt: &mut Interrupt,
) -> Option<(Played, Option<InvariantViolation>)> {
    let broken = loop {
        match simulation.advance(STEPS) {
            Ok(true) if interrupt.signal().is_some() => return None,
            Ok(true) => {}
            Ok(false) => break None,
            Err(broken) => break Some(broken),
        }
    };
    let fingerprint = simulation.report().fingerprint;
    Some((Played { progress: simulation.progress(), fingerprint }, broken))
}

fn description(seed: u64, scenario: &Scenario) -> String {
    format!(
        "seed {seed}: {}, {}, {}",
        count(scenario.agents.into(), "agent"),
        count(scenario.executors.into(), "executor"),
        count(scenario.faults.len() as u64, "fault"),
    )
}

/// Prints the line of `--verbose` for a seed.
fn print_seed(display: &ProgressDisplay, description: &str, played: &Played) -> PrintOutcome {
    let Played { progress, fingerprint } = played;
    let steps = count(progress.steps, "step");
    let offers = count(progress.offers, "offer");
    let now = moment(progress.now);
    let line = format!("{description}; {steps}, {offers}, {now}, {fingerprint:016x}\n");
    display.suspend(|| print_result(&StyledText::lines(&line)))
}

fn progress_sentence(result: &SearchResult<'_>, took: Duration) -> String {
    let done = result.seeds;
    let all = result.options.seeds;
    let left = took.mul_f64((all - done) as f64 / done.max(1) as f64);
    let seeds = speed(done, took);
    format!("{} of {}  {seeds} seeds/s  {} left", grouped(done), count(all, "seed"), passed(left))
}

impl SearchResult<'_> {
    fn sentence(&self) -> String {
        let all = self.options.seeds;
        let played = match self.seeds {
            seeds if seeds == all => count(all, "seed"),
            seeds => format!("{} of {}", grouped(seeds), count(all, "seed")),
        };
        let verdict = match (&self.broken, self.stopped_by) {
            (Some((seed, _)), _) => format!("seed {seed} violates an invariant"),
            (None, Some(name)) => format!("no violation, stopped by {name}"),
            (None, None) => "no violation".to_owned(),
        };
        let first = self.options.first;
        let steps = rough(self.steps);
        let offers = rough(self.offers);
        format!("{played} from {first}: {steps} steps, {offers} offers, {verdict}")
    }
}
