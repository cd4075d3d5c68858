//! What is to be simulated and where results go: the arguments, checked before anything begins.

use std::fs;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use offermill::cluster::simulated::{Checks, Scenario, Severity};
use offermill::config::text::{TimeUnit, parse_count, parse_duration};
use offermill::limits::EXECUTORS_MAX;

use super::arguments::SimulateArguments;
use super::figures::whole;
use super::files::Target;
use crate::text::format::count;

const AGENTS: u32 = 100;
const AGENTS_MAX: u64 = 1_000_000;
const EXECUTORS: u32 = 1000;
const DURATION: Duration = Duration::from_secs(600);
const DURATION_MAX: Duration = Duration::from_secs(30 * 86_400);
const SEEDS_MAX: u64 = 1_000_000_000;
/// Up to so many agents and executors together, judging each step of the default ten minutes takes
/// a second at most. It grows with their number twice over: there are more steps, and each looks at
/// all of them.
const EACH_STEP_MAX: u64 = 200;
/// Seeds that are made up stay below this, so that they can be typed.
const SEED_TYPED_MAX: u64 = 1_000_000_000;
/// A scenario of more bytes isn't one.
const SCENARIO_BYTES_MAX: u64 = 64 << 20;

/// Everything that was asked for.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) what: What,
    pub(super) report: Option<Target>,
    pub(super) scenario_file: Option<Target>,
    pub(super) json: bool,
    pub(super) plain: bool,
}

/// What is to be simulated.
#[derive(Debug)]
pub(super) enum What {
    /// One scenario.
    World(Box<Task>),
    /// Small random ones until one fails.
    Search(Hunt),
}

/// One scenario to play.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) scenario: Scenario,
    pub(super) checks: Checks,
    /// What it is, in a few words.
    pub(super) title: String,
    /// The command that plays it again.
    pub(super) again: String,
}

/// Seeds to try.
#[derive(Debug)]
pub(super) struct Hunt {
    pub(super) first: u64,
    pub(super) seeds: u64,
    pub(super) severity: Severity,
    pub(super) verbose: bool,
}

impl Hunt {
    /// The scenario of one seed.
    pub(super) fn scenario(&self, seed: u64) -> Scenario {
        Scenario::generate(seed, self.severity)
    }

    /// The command that plays one seed again.
    pub(super) fn again(&self, seed: u64) -> String {
        format!("offermill simulate --seeds 1 --seed {seed} --faults {}", self.severity)
    }
}

impl Order {
    /// Reads and checks everything.
    ///
    /// # Errors
    /// A sentence for each thing that isn't allowed.
    pub(super) fn read(arguments: &SimulateArguments) -> Result<Order, Vec<String>> {
        let mut problems = Problems(Vec::new());
        let what = match (&arguments.scenario, &arguments.seeds) {
            (Some(path), _) => problems.take(saved(path, arguments)).map(What::World),
            (None, Some(seeds)) => hunt(seeds, arguments, &mut problems).map(What::Search),
            (None, None) => sized(arguments, &mut problems).map(What::World),
        };
        let target = |flag, path: &Option<_>| path.as_deref().map(|path| Target::check(flag, path));
        let report = problems.take(target("--report", &arguments.report).transpose()).flatten();
        let scenario_file = target("--write-scenario", &arguments.write_scenario).transpose();
        let scenario_file = problems.take(scenario_file).flatten();
        if report.is_some() && report == scenario_file {
            problems.0.push("--report and --write-scenario are the same file".to_owned());
        }
        match what {
            Some(what) if problems.0.is_empty() => {
                let (json, plain) = (arguments.json, arguments.plain);
                Ok(Order { what, report, scenario_file, json, plain })
            }
            _ => Err(problems.0),
        }
    }
}

struct Problems(Vec<String>);

impl Problems {
    fn take<T, E: ToString>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.0.push(error.to_string())).ok()
    }

    /// A number of a flag; `default` if it wasn't given.
    fn count(
        &mut self,
        flag: &str,
        text: &Option<String>,
        allowed: RangeInclusive<u64>,
        default: u64,
    ) -> Option<u64> {
        let read = text.as_deref().map(|text| parse_count(flag, text, allowed));
        self.take(read.unwrap_or(Ok(default)))
    }
}

fn sized(arguments: &SimulateArguments, problems: &mut Problems) -> Option<Box<Task>> {
    let agents = problems.count("--agents", &arguments.agents, 1..=AGENTS_MAX, AGENTS.into());
    let (allowed, default) = (0..=EXECUTORS_MAX.into(), EXECUTORS.into());
    let executors = problems.count("--executors", &arguments.executors, allowed, default);
    let duration = arguments.duration.as_deref().map(read_duration);
    let duration = problems.take(duration.unwrap_or(Ok(DURATION)));
    let seed = read_seed(arguments, problems, seed_of_the_time);
    let severity = arguments.faults.unwrap_or_default();
    let (agents, executors) = (agents? as u32, executors? as u32);
    let (duration, seed) = (duration?, seed?);
    let checks = checks(arguments, u64::from(agents) + u64::from(executors));
    let title = format!(
        "{}, up to {}, {severity} faults for {}, seed {seed}",
        whole(agents.into(), "agent"),
        whole(executors.into(), "executor"),
        crate::text::format::passed(duration),
    );
    let again = format!(
        "offermill simulate --agents {agents} --executors {executors} --seed {seed} \
         --faults {severity} --duration {} --check {}",
        as_flag(duration),
        checks_name(checks)
    );
    let scenario = Scenario::sized(seed, severity, agents, executors, duration);
    Some(Box::new(Task { scenario, checks, title, again }))
}

fn saved(path: &Path, arguments: &SimulateArguments) -> Result<Box<Task>, String> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "standard input".into() } else { path.display().to_string() };
    let text = read_text(path, is_stdin).map_err(|error| format!("--scenario {name}: {error}"))?;
    let scenario = text.parse::<Scenario>().map_err(|error| format!("{name}: {error}"))?;
    let checks = checks(arguments, u64::from(scenario.agents) + u64::from(scenario.executors));
    let title = format!(
        "{}, up to {}, {}, seed {}",
        whole(scenario.agents.into(), "agent"),
        whole(scenario.executors.into(), "executor"),
        whole(scenario.faults.len() as u64, "fault"),
        scenario.seed
    );
    let file = if is_stdin { "FILE".into() } else { quoted(&name) };
    let again = format!("offermill simulate --scenario {file} --check {}", checks_name(checks));
    Ok(Box::new(Task { scenario, checks, title, again }))
}

fn hunt(seeds: &str, arguments: &SimulateArguments, problems: &mut Problems) -> Option<Hunt> {
    let seeds = problems.take(parse_count("--seeds", seeds, 1..=SEEDS_MAX));
    let first = read_seed(arguments, problems, || 1);
    let (seeds, first) = (seeds?, first?);
    if first.checked_add(seeds).is_none() {
        problems
            .0
            .push(format!("{} from --seed {first}: there are no such seeds", count(seeds, "seed")));
    }
    let severity = arguments.faults.unwrap_or_default();
    Some(Hunt { first, seeds, severity, verbose: arguments.verbose })
}

fn read_seed(
    arguments: &SimulateArguments,
    problems: &mut Problems,
    default: fn() -> u64,
) -> Option<u64> {
    match &arguments.seed {
        Some(text) => problems.take(parse_count("--seed", text, 0..=u64::MAX)),
        None => Some(default()),
    }
}

fn seed_of_the_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default() % SEED_TYPED_MAX
}

fn read_duration(text: &str) -> Result<Duration, String> {
    let read = |text: &str| parse_duration("--duration", text, TimeUnit::Seconds);
    // Zeros are read wherever the form is right: then the number is the mistake.
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
    let fitting = if size <= EACH_STEP_MAX { Checks::EachStep } else { Checks::EverySecond };
    arguments.check.unwrap_or(fitting)
}

/// The value of `--check`.
fn checks_name(checks: Checks) -> &'static str {
    match checks {
        Checks::Off => "off",
        Checks::EverySecond => "every-second",
        Checks::EachStep => "each-step",
    }
}

/// A duration as `--duration` takes it.
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

/// A file's name as a shell takes it.
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

    /// Goal: a printed command means what was played. Method: durations and names in each shape.
    #[test]
    fn commands_can_be_typed() {
        for text in ["1ms", "90s", "10min", "36h", "30d"] {
            assert_eq!(as_flag(read_duration(text).unwrap()), text);
        }
        assert_eq!(quoted("a/b-1.txt"), "a/b-1.txt");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
