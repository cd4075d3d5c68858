//! `offermill simulate`: runs the kernel on a simulated cluster, in virtual time and with faults.
//!
//! ```text
//! arguments ─► options ─┬─► single_run: one scenario ─┬─► rows ─► summary, JSON, report (HTML)
//!  (clap)      checked  └─► search: many seeds        ┴─► violation: shorten, print, save
//!                                │
//!                                └─► progress: a bar or lines, on standard error
//! ```
//!
//! Results are written to standard output, everything else to standard error.

pub(crate) mod arguments;
mod interrupt;
mod json;
mod numbers;
mod options;
mod output_file;
mod progress;
mod report;
mod result;
mod rows;
mod search;
mod single_run;
mod summary;
mod violation;

use crate::exit::ExitStatus;
use crate::output::remark;

use arguments::SimulateArguments;
use interrupt::Interrupt;
use options::{Mode, SimulateOptions};

/// Runs `offermill simulate`.
pub(crate) fn simulate(arguments: &SimulateArguments) -> ExitStatus {
    let options = match SimulateOptions::read(arguments) {
        Ok(options) => options,
        Err(problems) => {
            problems.iter().for_each(|problem| remark(problem));
            return ExitStatus::BadInput;
        }
    };
    let mut interrupt = match Interrupt::listen() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            remark(&format!("signals can't be handled: {error}"));
            return ExitStatus::Cluster;
        }
    };
    match &options.mode {
        Mode::Scenario(scenario) => single_run::run(scenario, &options, &mut interrupt),
        Mode::Search(search) => search::run(search, &options, &mut interrupt),
    }
}
