//! The flags of `offermill simulate`, declared for clap. Numbers are read as text here and parsed in `options.rs`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use offermill::cluster::simulated::{Checks, Severity};

const EXAMPLES: &str = "\
Examples:
  Ten thousand agents, a hundred thousand executors, and plots of what happened:
    offermill simulate --agents 10000 --executors 100000 --seed 7 --report run.html

  A thousand small random scenarios with all kinds of faults, until one fails:
    offermill simulate --seeds 1000 --faults harsh

  One of them again, by its seed, and from a saved scenario:
    offermill simulate --seeds 1 --seed 412 --faults harsh --write-scenario small.txt
    offermill simulate --scenario small.txt --report small.html";

const EXIT_CODES: &str = "\
Exit codes:
    0  no violation, also after Ctrl-C or if the reader of a pipe closed it
    2  a flag isn't allowed, or a file can't be read or written
    5  no violation, but standard output can't be written
    6  an invariant was violated; the scenario is shortened and printed
  130  a second Ctrl-C (or SIGTERM) ended the simulation at once";

const NOTES: &str = "\
Equal scenarios give equal runs, with the same fingerprint in the summary. After
Ctrl-C the simulated framework shuts down, and the summary and the report are still
written; a second Ctrl-C ends the simulation at once. Results are written to standard
output, progress to standard error.

Handlers answer a batch of offers in one step, unless the scenario has a line such as
  15s answers-delayed percent=100 lasts=30s amount=4000
as some of the small harsh scenarios have. Then a batch is committed first, and its
calls are sent one by one, each up to that many milliseconds later, with other events
between them.";

/// The flags that conflict with a search.
const SCENARIO_FLAGS: [&str; 6] =
    ["agents", "executors", "duration", "scenario", "check", "report"];

/// The flags of `offermill simulate`.
#[derive(Debug, Default, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
#[command(after_help = format!("{NOTES}\n\n{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct SimulateArguments {
    /// Number of agents [default: 100]
    #[arg(long, value_name = "N", help_heading = "Scenario")]
    pub(crate) agents: Option<String>,

    /// Maximum number of executors [default: 1000]
    #[arg(long, value_name = "N", help_heading = "Scenario")]
    pub(crate) executors: Option<String>,

    /// Severity of faults [default: mild]
    #[arg(long, value_name = "SEVERITY", help_heading = "Scenario", value_parser = severities())]
    pub(crate) faults: Option<Severity>,

    /// Virtual time during which faults occur; then the cluster is healed and must recover
    /// [default: 10min]
    #[arg(long, value_name = "DURATION", help_heading = "Scenario")]
    pub(crate) duration: Option<String>,

    /// Seed of the random numbers [default: from the time, or 1 with --seeds]
    #[arg(long, value_name = "N", help_heading = "Scenario")]
    pub(crate) seed: Option<String>,

    /// The cluster chooses the agents of executors, as Kubernetes does
    #[arg(long, help_heading = "Scenario")]
    pub(crate) binds_late: bool,

    /// The framework places tasks of several sizes, some of them in gangs, instead of equal executors
    #[arg(long, help_heading = "Scenario", conflicts_with = "binds_late")]
    pub(crate) tasks: bool,

    /// Its tasks run in hosts: one long-lived executor on each agent
    #[arg(long, help_heading = "Scenario", requires = "tasks")]
    pub(crate) task_hosts: bool,

    /// Its tasks are in several queues, whose maxima and guarantees change
    #[arg(long, help_heading = "Scenario", requires = "tasks")]
    pub(crate) task_queues: bool,

    /// Play a saved scenario; - reads it from standard input
    #[arg(long, value_name = "FILE", help_heading = "Scenario")]
    #[arg(conflicts_with_all = [
        "agents", "executors", "faults", "duration", "seed", "binds_late", "tasks",
        "task_hosts", "task_queues"
    ])]
    pub(crate) scenario: Option<PathBuf>,

    /// Play N small random scenarios, one per seed, and stop at the first violation
    #[arg(long, value_name = "N", help_heading = "Search")]
    #[arg(conflicts_with_all = SCENARIO_FLAGS)]
    pub(crate) seeds: Option<String>,

    /// Print a line for each seed
    // clap doesn't require a flag that conflicts with a given one, so the conflicts are repeated here.
    #[arg(long, help_heading = "Search", requires = "seeds")]
    #[arg(conflicts_with = "json", conflicts_with_all = SCENARIO_FLAGS)]
    pub(crate) verbose: bool,

    /// When invariants are checked [default: each-step, or every-second (of virtual time) with more
    /// than 200 agents and executors]
    #[arg(long, value_name = "WHEN", help_heading = "Scenario", value_parser = checks())]
    pub(crate) check: Option<Checks>,

    /// Write a report with plots: one self-contained HTML file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    /// Save the scenario; after a violation, the shortened one
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) write_scenario: Option<PathBuf>,

    /// Print the summary as one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Print lines of progress instead of a bar on a terminal, too
    #[arg(long, help_heading = "Output")]
    pub(crate) plain: bool,
}

fn severities() -> impl TypedValueParser<Value = Severity> {
    PossibleValuesParser::new(["none", "mild", "harsh"]).try_map(|text| text.parse::<Severity>())
}

fn checks() -> impl TypedValueParser<Value = Checks> {
    PossibleValuesParser::new(["off", "every-second", "each-step"]).map(|text| match &*text {
        "off" => Checks::Off,
        "every-second" => Checks::EverySecond,
        _ => Checks::EachStep,
    })
}
