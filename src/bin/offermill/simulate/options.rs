//! The checked options of `offermill simulate`: the scenario or search to run, and where results are written.

use std::fs;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use offermill::cluster::simulated::{Checks, Scenario, Severity};
use offermill::config::text::{TimeUnit, parse_count, parse_duration};
use offermill::limits::EXECUTORS_MAX;

use super::arguments::SimulateArguments;
use super::output_file::OutputFile;
use crate::text::format::{count, passed};

/// The default of `--agents`.
const AGENTS: u32 = 100;
/// The maximum of `--agents`.
const AGENTS_MAX: u64 = 1_000_000;
/// The default of `--executors`.
const EXECUTORS: u32 = 1000;
/// The default of `--duration`.
const DURATION: Duration = Duration::from_secs(600);
/// The maximum of `--duration`.
const DURATION_MAX: Duration = Duration::from_secs(30 * 86_400);
/// The maximum of `--seeds`.
const SEEDS_MAX: u64 = 1_000_000_000;
/// The maximum number of agents and executors together for which invariants are checked after each step by default.
/// Up to it, the default ten minutes take at most a second. The time grows with the square of the number: there are
/// more steps, and each check looks at all agents and executors.
const EACH_STEP_MAX: u64 = 200;
/// Seeds derived from the time stay below this, so that they are short enough to type.
const SEED_TYPED_MAX: u64 = 1_000_000_000;
/// The maximum size of a scenario file, in bytes.
const SCENARIO_BYTES_MAX: u64 = 64 << 20;

/// All options of `offermill simulate`.
#[derive(Debug)]
pub(super) struct SimulateOptions {
    pub(super) mode: Mode,
    pub(super) report: Option<OutputFile>,
    pub(super) scenario_file: Option<OutputFile>,
    pub(super) json: bool,
    pub(super) plain: bool,
}

/// What to simulate.
#[derive(Debug)]
pub(super) enum Mode {
    /// One scenario.
    Scenario(Box<ScenarioOptions>),
    /// Small random scenarios until one fails.
    Search(SearchOptions),
}

/// The scenario to play.
#[derive(Debug)]
pub(super) struct ScenarioOptions {
    pub(super) scenario: Scenario,
    pub(super) checks: Checks,
    /// A short description.
    pub(super) title: String,
    /// The command that reproduces the run.
    pub(super) again: String,
}

/// The seeds to search.
#[derive(Debug)]
pub(super) struct SearchOptions {
    pub(super) first: u64,
    pub(super) seeds: u64,
    pub(super) severity: Severity,
    pub(super) verbose: bool,
    pub(super) placement: PlacementKind,
}

/// What is placed, and who chooses the agents.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlacementKind {
    /// Equal executors, on what agents offer.
    Executors,
    /// Equal executors, and the cluster chooses the agents.
    BoundLate,
    /// Tasks of several sizes, on what agents offer.
    Tasks { in_hosts: bool, in_queues: bool },
}

impl PlacementKind {
    fn of(arguments: &SimulateArguments) -> PlacementKind {
        match arguments {
            SimulateArguments { binds_late: true, .. } => PlacementKind::BoundLate,
            SimulateArguments { tasks: true, task_hosts, task_queues, .. } => {
                PlacementKind::Tasks { in_hosts: *task_hosts, in_queues: *task_queues }
            }
            _ => PlacementKind::Executors,
        }
    }

    fn apply(self, scenario: Scenario) -> Scenario {
        match self {
            PlacementKind::Executors => scenario,
            PlacementKind::BoundLate => scenario.with_late_binding(),
            PlacementKind::Tasks { in_hosts, in_queues } => {
                let scenario = scenario.with_tasks();
                let scenario = if in_hosts { scenario.with_hosts() } else { scenario };
                if in_queues { scenario.with_queues() } else { scenario }
            }
        }
    }

    /// Returns its flag, after a space.
    fn flag(self) -> &'static str {
        match self {
            PlacementKind::Executors => "",
            PlacementKind::BoundLate => " --binds-late",
            PlacementKind::Tasks { in_hosts, in_queues } => match (in_hosts, in_queues) {
                (false, false) => " --tasks",
                (true, false) => " --tasks --task-hosts",
                (false, true) => " --tasks --task-queues",
                (true, true) => " --tasks --task-hosts --task-queues",
            },
        }
    }
}

impl SearchOptions {
    /// Returns the scenario of a seed.
    pub(super) fn scenario(&self, seed: u64) -> Scenario {
        self.placement.apply(Scenario::generate(seed, self.severity))
    }

    /// Returns the command that reproduces one seed.
    pub(super) fn again(&self, seed: u64) -> String {
        let placement = self.placement.flag();
        format!("offermill simulate --seeds 1 --seed {seed} --faults {}{placement}", self.severity)
    }
}

impl SimulateOptions {
    /// Reads and checks all arguments.
    ///
    /// # Errors
    /// With a sentence for each invalid argument.
    pub(super) fn read(arguments: &SimulateArguments) -> Result<SimulateOptions, Vec<String>> {
        let mut problems = Problems(Vec::new());
        let mode = match (&arguments.scenario, &arguments.seeds) {
            (Some(path), _) => problems.collect(saved(path, arguments)).map(Mode::Scenario),
            (None, Some(seeds)) => search(seeds, arguments, &mut problems).map(Mode::Search),
            (None, None) => sized(arguments, &mut problems).map(Mode::Scenario),
        };
        let report = problems.output_file("--report", arguments.report.as_deref());
        let scenario_file =
            problems.output_file("--write-scenario", arguments.write_scenario.as_deref());
        if report.is_some() && report == scenario_file {
            problems.0.push("--report and --write-scenario are the same file".to_owned());
        }
        match mode {
            Some(mode) if problems.0.is_empty() => Ok(SimulateOptions {
                mode,
                report,
                scenario_file,
                json: arguments.json,
                plain: arguments.plain,
            }),
            _ => Err(problems.0),
        }
    }
}

/// The sentences about invalid arguments.
struct Problems(Vec<String>);

impl Problems {
    /// Returns the value of `Ok`, or adds the error.
    fn collect<T, E: ToString>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.0.push(error.to_string())).ok()
    }

    /// Checks an output file, if its flag was given.
    fn output_file(&mut self, flag: &str, path: Option<&Path>) -> Option<OutputFile> {
        self.collect(OutputFile::check(flag, path?))
    }

    /// Reads the number of a flag; `default` if the flag wasn't given.
    fn count(
        &mut self,
        flag: &str,
        text: &Option<String>,
        allowed: RangeInclusive<u64>,
        default: u64,
    ) -> Option<u64> {
        let read = text.as_deref().map(|text| parse_count(flag, text, allowed));
        self.collect(read.unwrap_or(Ok(default)))
    }
}

fn sized(arguments: &SimulateArguments, problems: &mut Problems) -> Option<Box<ScenarioOptions>> {
    let agents = problems.count("--agents", &arguments.agents, 1..=AGENTS_MAX, AGENTS.into());
    let allowed = 0..=EXECUTORS_MAX.into();
    let executors = problems.count("--executors", &arguments.executors, allowed, EXECUTORS.into());
    let duration = arguments.duration.as_deref().map_or(Ok(DURATION), read_duration);
    let duration = problems.collect(duration);
    let seed = read_seed(arguments, problems, seed_from_time);
    let severity = arguments.faults.unwrap_or_default();
    let agents = agents? as u32;
    let executors = executors? as u32;
    let duration = duration?;
    let seed = seed?;
    let checks = checks(arguments, u64::from(agents) + u64::from(executors));
    let placement = PlacementKind::of(arguments);
    let title = format!(
        "{}, up to {}, {severity} faults for {}, seed {seed}",
        count(agents.into(), "agent"),
        count(executors.into(), "executor"),
        passed(duration),
    );
    let again = format!(
        "offermill simulate --agents {agents} --executors {executors} --seed {seed} \
         --faults {severity} --duration {} --check {}{}",
        as_flag(duration),
        checks_name(checks),
        placement.flag()
    );
    let scenario = placement.apply(Scenario::sized(seed, severity, agents, executors, duration));
    Some(Box::new(ScenarioOptions { scenario, checks, title, again }))
}

fn saved(path: &Path, arguments: &SimulateArguments) -> Result<Box<ScenarioOptions>, String> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "standard input".into() } else { path.display().to_string() };
    let text = read_text(path, is_stdin).map_err(|error| format!("--scenario {name}: {error}"))?;
    let scenario = text.parse::<Scenario>().map_err(|error| format!("{name}: {error}"))?;
    let checks = checks(arguments, u64::from(scenario.agents) + u64::from(scenario.executors));
    let title = format!(
        "{}, up to {}, {}, seed {}",
        count(scenario.agents.into(), "agent"),
        count(scenario.executors.into(), "executor"),
        count(scenario.faults.len() as u64, "fault"),
        scenario.seed
    );
    let file = if is_stdin { "FILE".into() } else { quoted(&name) };
    let again = format!("offermill simulate --scenario {file} --check {}", checks_name(checks));
    Ok(Box::new(ScenarioOptions { scenario, checks, title, again }))
}

fn search(
    seeds: &str,
    arguments: &SimulateArguments,
    problems: &mut Problems,
) -> Option<SearchOptions> {
    let seeds = problems.collect(parse_count("--seeds", seeds, 1..=SEEDS_MAX));
    let first = read_seed(arguments, problems, || 1);
    let seeds = seeds?;
    let first = first?;
    if first.checked_add(seeds).is_none() {
        problems
            .0
            .push(format!("{} from --seed {first}: there are no such seeds", count(seeds, "seed")));
    }
    let severity = arguments.faults.unwrap_or_default();
    let (verbose, placement) = (arguments.verbose, PlacementKind::of(arguments));
    Some(SearchOptions { first, seeds, severity, verbose, placement })
}

fn read_seed(
    arguments: &SimulateArguments,
    problems: &mut Problems,
    default: fn() -> u64,
) -> Option<u64> {
    match &arguments.seed {
        Some(text) => problems.collect(parse_count("--seed", text, 0..=u64::MAX)),
        None => Some(default()),
    }
}

fn seed_from_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default() % SEED_TYPED_MAX
}

fn read_duration(text: &str) -> Result<Duration, String> {
    let read = |text: &str| parse_duration("--duration", text, TimeUnit::Seconds);
    // If the text with all digits replaced by zeros can be read, its form is right and its number is out of range.
    let zeros = text.replace(|c: char| c.is_ascii_digit(), "0");
    match read(text) {
        Ok(duration) if (Duration::from_millis(1)..=DURATION_MAX).contains(&duration) => {
            Ok(duration)
        }
        Err(error) if read(&zeros).is_err() => Err(error.to_string()),
        _ => Err(format!("--duration is {text:?}, but must be from 1ms to 30d")),
    }
}

fn checks(arguments: &SimulateArguments, size: u64) -> Checks {
    let default = if size <= EACH_STEP_MAX { Checks::EachStep } else { Checks::EverySecond };
    arguments.check.unwrap_or(default)
}

/// Returns the value of `--check`.
fn checks_name(checks: Checks) -> &'static str {
    match checks {
        Checks::Off => "off",
        Checks::EverySecond => "every-second",
        Checks::EachStep => "each-step",
    }
}

/// Formats a duration as a value of `--duration`.
fn as_flag(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, name) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")] {
        if millis.is_multiple_of(unit) {
            return format!("{}{name}", millis / unit);
        }
    }
    format!("{millis}ms")
}

fn read_text(path: &Path, is_stdin: bool) -> io::Result<String> {
    let mut text = String::new();
    let source: Box<dyn Read> =
        if is_stdin { Box::new(io::stdin()) } else { Box::new(fs::File::open(path)?) };
    source.take(SCENARIO_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Quotes a file name for a shell.
pub(super) fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,=@%".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a printed command reproduces the run. Method: print durations and quote names of each kind.
    #[test]
    fn commands_can_be_typed() {
        for text in ["1ms", "90s", "10min", "36h", "30d"] {
            assert_eq!(as_flag(read_duration(text).unwrap()), text);
        }
        assert_eq!(quoted("a/b-1.txt"), "a/b-1.txt");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
