//! How the kernel grows with the number of cores, on a machine that has few: a model.
//!
//! Three things go into it, all of this run or asserted by tests: what it costs here to write a line that another core
//! has just written ([`lines`]); how often a batch or an update writes lines that others write ([`counts`], asserted by
//! `tests/counting`); and what a batch or an update takes on one thread ([`work`]). What comes out is the throughput
//! with 1 to 128 threads, and what of it two threads here really reach.
//!
//! It assumes that
//! * threads do nothing but this, each on a core of its own, and all cores are alike and as fast as one here alone;
//! * a line goes from core to core at the cost measured between the two here (cores of other sockets are farther apart:
//!   the second table has transfers that are four times as dear);
//! * one core has a line at a time, and the others wait in a queue: mean value analysis of a closed network, whose
//!   stations are the lines that all share;
//! * whatever a thread writes next, another has written since with a chance of (threads - 1) in threads: agents' words,
//!   too, as if each agent's offers came to any thread, and none of these transfers overlaps with another;
//! * of threads that end executors one by one, two have a counter of what was released to themselves, and meet nobody;
//!   the further ones share one, and write each other's counts of agents' ends as well;
//! * executors' cells stay with the threads that start and end them, as their stacks do up to eight threads;
//! * an exchange of the admission word fails if another succeeded since the word was read, of which the batch's plan is
//!   three quarters of its time away, and one that is tried again if another succeeded within ten nanoseconds; others'
//!   successes are a Poisson stream.
//!
//! It knows nothing of memory bandwidth, shared caches that run full, turbo clocks, or hyperthreads.
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "the tests ask for more")]
mod counts;
mod full_scans;
mod lines;
mod model;
mod work;

use lines::Costs;
use model::Load;
use support::figures::{self, table};
use work::{Kind, Measured};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const THREADS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The approximate cost of a transfer between sockets, as a multiple of one within a socket.
const FAR: f64 = 4.0;

fn main() {
    figures::run("growth", |extent| {
        let costs = Costs::measure(extent);
        let measured: Vec<(Kind, Measured)> =
            Kind::ALL.into_iter().map(|kind| (kind, Measured::new(kind, extent))).collect();
        let near = "as dear as here";
        let far = format!("{FAR} times as dear");
        [
            costs.table(),
            throughput(&measured, costs, near),
            throughput(&measured, costs.farther(FAR), &far),
            comparison(&measured, costs),
            full_scans::table(extent),
        ]
        .join("\n")
    });
}

/// What one thread measured, as the model wants it.
fn load(kind: Kind, measured: &Measured) -> Load {
    Load {
        alone: measured.alone,
        writes: kind.writes(),
        own_counters: kind.own_counters(),
        plans: kind.plans(),
    }
}

/// Million offers or updates a second by threads, and what the last thread waits for.
fn throughput(measured: &[(Kind, Measured)], costs: Costs, transfers: &str) -> String {
    let mut head = vec![format!("million/s, transfers {transfers}")];
    head.extend(THREADS.map(|threads| threads.to_string()));
    head.push("the dearest shared line, at most".to_owned());
    let rows = measured.iter().map(|(kind, measured)| {
        let load = load(*kind, measured);
        let scale = kind.elements() * 1e3;
        let mut row = vec![kind.name().to_owned()];
        row.extend(THREADS.map(|threads| short(model::rate(&load, costs, threads) * scale)));
        row.push(match model::ceiling(&load, costs) {
            Some((line, rate)) => format!("{line}: {}", short(rate * scale)),
            None => "none".to_owned(),
        });
        row
    });
    table(&[head].into_iter().chain(rows).collect::<Vec<_>>())
}

/// What the model says of two threads, and what they do. What the machine doesn't give two threads that share nothing
/// isn't the model's affair: its figure is that part of it.
fn comparison(measured: &[(Kind, Measured)], costs: Costs) -> String {
    let head = [
        "two threads against one, speed-up",
        "ns, one",
        "a kernel each",
        "one kernel, model",
        "one kernel, measured",
        "the model is off by",
    ];
    let rows = measured.iter().map(|(kind, measured)| {
        let apart = measured.alone / measured.apart;
        let model = model::rate(&load(*kind, measured), costs, 2) * measured.alone * apart / 2.0;
        let real = measured.alone / measured.together;
        vec![
            kind.name().to_owned(),
            short(measured.alone / kind.elements()),
            format!("{apart:.2}"),
            format!("{model:.2}"),
            format!("{real:.2}"),
            format!("{:+.0} %", (model / real - 1.0) * 100.0),
        ]
    });
    table(&[head.map(str::to_owned).to_vec()].into_iter().chain(rows).collect::<Vec<_>>())
}

/// A number with about three digits.
fn short(number: f64) -> String {
    match number {
        _ if number >= 99.5 => format!("{number:.0}"),
        _ if number >= 9.95 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}
