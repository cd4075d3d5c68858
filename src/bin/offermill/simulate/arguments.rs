//! The flags of `offermill simulate` as clap reads them. Numbers stay texts here: `order.rs` reads
//! them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use offermill::cluster::simulated::{Checks, Severity};

const EXAMPLES: &str = "\
Examples:
  Ten thousand agents, a hundred thousand executors, and plots of what happened:
    offermill simulate --agents 10000 --executors 100000 --seed 7 --report run.html

  A thousand small random worlds with every fault there is, stopping at a violation:
    offermill simulate --seeds 1000 --faults harsh

  One of them again, by its number, and by a scenario that was saved:
    offermill simulate --seeds 1 --seed 412 --faults harsh --write-scenario world.txt
    offermill simulate --scenario world.txt --report world.html";

const EXIT_CODES: &str = "\
Exit codes:
    0  no violation, also after Ctrl-C or when a pipe's reader has seen enough
    2  a flag isn't allowed, or a file can't be read or written
    5  no violation, but standard output can't be written
    6  an invariant was violated: the scenario is shortened and printed
  130  a second Ctrl-C (or SIGTERM) ended the simulation at once";

const NOTES: &str = "\
Equal scenarios give equal runs: the fingerprint in the summary says so. Ctrl-C lets
the simulated framework shut down, and the summary and report are still written; a
second one ends at once. Results go to standard output, progress to standard error.

Handlers answer a batch of offers in one step, unless a scenario has a line such as
  15s answers-delayed percent=100 lasts=30s amount=4000
as part of the small harsh worlds do. Then a batch is committed first, and its calls
leave one by one, up to so many milliseconds later, with other events between them.";

/// The flags that a search doesn't take.
const ONE_WORLD: [&str; 6] = ["agents", "executors", "duration", "scenario", "check", "report"];

/// The flags of `offermill simulate`.
#[derive(Debug, Default, Args)]
#[command(args_override_self = true, allow_negative_numbers = true)]
#[command(after_help = format!("{NOTES}\n\n{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct SimulateArguments {
    /// How many agents the cluster has [default: 100]
    #[arg(long, value_name = "N", help_heading = "World")]
    pub(crate) agents: Option<String>,

    /// How many executors there are at most [default: 1000]
    #[arg(long, value_name = "N", help_heading = "World")]
    pub(crate) executors: Option<String>,

    /// How much goes wrong [default: mild]
    #[arg(long, value_name = "HOW", help_heading = "World", value_parser = severities())]
    pub(crate) faults: Option<Severity>,

    /// How long faults go on, in virtual time; then the cluster is healed and has to recover
    /// [default: 10min]
    #[arg(long, value_name = "DURATION", help_heading = "World")]
    pub(crate) duration: Option<String>,

    /// Where chance comes from [default: the time, or 1 with --seeds]
    #[arg(long, value_name = "N", help_heading = "World")]
    pub(crate) seed: Option<String>,

    /// Play a scenario that was saved; - reads it from standard input
    #[arg(long, value_name = "FILE", help_heading = "World")]
    #[arg(conflicts_with_all = ["agents", "executors", "faults", "duration", "seed"])]
    pub(crate) scenario: Option<PathBuf>,

    /// Play so many small random worlds, one a seed, and stop at the first violation
    #[arg(long, value_name = "N", help_heading = "Search")]
    #[arg(conflicts_with_all = ONE_WORLD)]
    pub(crate) seeds: Option<String>,

    /// Print a line for each seed
    // clap doesn't require what conflicts with a flag that is there: these are refused here too.
    #[arg(long, help_heading = "Search", requires = "seeds")]
    #[arg(conflicts_with = "json", conflicts_with_all = ONE_WORLD)]
    pub(crate) verbose: bool,

    /// When invariants are judged [default: each-step, or every-second (of virtual time) with more
    /// than 200 agents and executors]
    #[arg(long, value_name = "WHEN", help_heading = "World", value_parser = checks())]
    pub(crate) check: Option<Checks>,

    /// Write a report with plots: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    /// Save the scenario; after a violation, the shortened one
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) write_scenario: Option<PathBuf>,

    /// Print the summary as one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Print lines of progress on a terminal too, instead of a bar
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
