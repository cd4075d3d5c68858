//! `offermill simulate`: the kernel on a cluster that isn't there, in virtual time and with faults.
//!
//! ```text
//! arguments ─► order ─┬─► world: one scenario  ─┬─► facts ─► summary, JSON, report (HTML)
//!  (clap)     checked └─► search: many seeds   ─┴─► violation: shorten, print, save
//!                              │
//!                              └─► progress: a bar or lines, on standard error
//! ```
//!
//! Results go to standard output, everything else to standard error.

pub(crate) mod arguments;
mod facts;
mod figures;
mod files;
mod interrupt;
mod json;
mod order;
mod progress;
mod report;
mod search;
mod summary;
mod violation;
mod world;

use crate::exit::Exit;
use crate::output::{Said, remark, say};

use arguments::SimulateArguments;
use interrupt::Interrupt;
use order::{Order, What};

/// `offermill simulate`.
pub(crate) fn simulate(arguments: &SimulateArguments) -> Exit {
    let order = match Order::read(arguments) {
        Ok(order) => order,
        Err(problems) => {
            problems.iter().for_each(|problem| remark(problem));
            return Exit::BadInput;
        }
    };
    let mut interrupt = match Interrupt::listen() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            remark(&format!("signals can't be handled: {error}"));
            return Exit::Cluster;
        }
    };
    match &order.what {
        What::World(task) => world::run(task, &order, &mut interrupt),
        What::Search(hunt) => search::run(hunt, &order, &mut interrupt),
    }
}
