//! The flags of `offermill replay`, declared for clap.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::deviations;

const NOTES: &str = "\
A scenario is a file of JSON objects, one per line: first a head with \"format\":1 and
\"conf\" (settings by key), then events such as {\"offers\":[...]}, {\"status\":{...}},
{\"request_total\":5}, {\"kill\":[\"0\"]} or {\"stop\":true}. Answers are JSON, too, one
object per line: first whether the settings were accepted, then for each event the
calls that follow (accept, decline, revive, ...) and the state after it. In a folder,
all files *.jsonl are played in the order of their names; - is standard input.

Without --compat the scenario is decided by Offermill's own rules. With --compat
spark-3.5 it is decided as by Spark 3.5's backend for Mesos, including the order of
calls; if its settings have spark.mesos.coarse=false, by the fine-grained one, for
which {\"tasks\":5} is an event (tasks wait) and spark.mesos.mesosExecutor.cores
(default 1.0) is what an executor takes for itself. Except for these defects:";

const EXPECT_NOTES: &str = "\
--expect compares Spark's answers, in their order, up to the first event in which
Spark threw an exception or received an update for a task that wasn't on that agent:
all further answers are consequences of that defect. It ignores differences below
0.001; the texts of errors; SPARK_USER and OMP_NUM_THREADS; the quoting of commands;
Spark's private counters; and how long offers are refused at the executor limit if
Spark leaves that to Mesos. Offermill's own answers are compared byte by byte.";

const EXAMPLES: &str = "\
Examples:
  What Spark would have decided, and what Offermill does with the same offers:
    offermill replay --compat spark-3.5 scenario.jsonl
    offermill replay scenario.jsonl

  Compare the decisions with Spark's, for a folder of scenarios:
    offermill replay --compat spark-3.5 scenario --expect expected

  Check that a recorded run is decided again in the same way:
    offermill replay run.journal --expect run.journal.answers";

const EXIT_CODES: &str = "\
Exit codes:
    0  played; with --expect, nothing differs
    1  a decision differs from the expected one
    2  a scenario or an answer file can't be read
    5  standard output can't be written (a closed pipe is fine)";

/// The scheduler whose decisions to reproduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// Spark 3.5's backend for Mesos
    #[value(name = "spark-3.5")]
    Spark35,
}

/// The flags of `offermill replay`.
#[derive(Debug, Args)]
#[command(after_help = format!("{NOTES}\n{}\n{EXPECT_NOTES}\n\n{EXAMPLES}\n\n{EXIT_CODES}", deviations::help()))]
pub(crate) struct ReplayArguments {
    /// Scenarios, or folders of them
    #[arg(value_name = "FILE", required = true)]
    pub(crate) scenarios: Vec<PathBuf>,

    /// Decide as another scheduler does [default: as the scenario says, else as Offermill]
    #[arg(long, value_name = "SCHEDULER")]
    pub(crate) compat: Option<Compat>,

    /// Compare with these answers, one file for each scenario, in order; or a folder with files of
    /// the same names. Prints only differences
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Vec<PathBuf>,

    /// Ignore the order of Spark's calls within an event, and of the tasks of an offer
    #[arg(long, requires = "expect")]
    pub(crate) any_order: bool,

    /// Maximum number of differences to print for each scenario
    #[arg(long, value_name = "N", default_value_t = 5, requires = "expect")]
    pub(crate) show: usize,
}
