//! The flags of `offermill replay` as clap reads them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::deviations;

const NOTES: &str = "\
A scenario is a file of JSON objects, one a line: first a head with \"format\":1 and
\"conf\" (settings by their keys), then events such as {\"offers\":[...]},
{\"status\":{...}}, {\"request_total\":5}, {\"kill\":[\"0\"]} or {\"stop\":true}. Answers are
JSON, too, one object a line: how the start went, then for each event the calls that
follow (accept, decline, revive, ...) and the state that is left. Of a folder, its
files *.jsonl are taken in the order of their names; - is standard input.

Without --compat Offermill decides in its own way. With --compat spark-3.5 it decides
as Spark 3.5's backend for Mesos does, down to the order of its calls, except where
that one goes wrong:";

const EXPECT_NOTES: &str = "\
--expect compares up to the first event in which Spark threw an exception or was told
of a task that didn't live there: what Spark does from then on is a defect of its own.
It doesn't compare the order of calls, or of an offer's tasks; numbers closer than
0.001; the texts of errors; SPARK_USER and OMP_NUM_THREADS; how a command is quoted;
Spark's private counters; and the refusals of a batch that comes at the executor limit
where Spark leaves them to Mesos. Answers of Offermill's own are compared to the byte.";

const EXAMPLES: &str = "\
Examples:
  What Spark would have decided, and what Offermill does with the same offers:
    offermill replay --compat spark-3.5 scenario.jsonl
    offermill replay scenario.jsonl

  Whether the same is decided as Spark did, for a folder of scenarios:
    offermill replay --compat spark-3.5 scenario --expect expected

  Whether a recorded run is decided again as it was:
    offermill replay run.journal --expect run.journal.answers";

const EXIT_CODES: &str = "\
Exit codes:
    0  played; with --expect, nothing differs
    1  something else was decided than was expected
    2  a scenario or an expectation can't be read
    5  standard output can't be written (a closed pipe is fine)";

/// Whose way of deciding to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// That of Spark 3.5's backend for Mesos
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

    /// Decide as another scheduler does [default: what the scenario says, else Offermill's own way]
    #[arg(long, value_name = "WHOSE")]
    pub(crate) compat: Option<Compat>,

    /// Compare with these answers, one file for each scenario, in order; or a folder with files of
    /// the same names. Prints only what differs
    #[arg(long, value_name = "FILE")]
    pub(crate) expect: Vec<PathBuf>,

    /// So many differences are shown for each scenario
    #[arg(long, value_name = "N", default_value_t = 5, requires = "expect")]
    pub(crate) show: usize,
}
