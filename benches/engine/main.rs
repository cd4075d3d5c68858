//! From a cluster's event to the calls that answer it, threads included; `benches/README.md` says what each shows.
//!
//! A cluster in memory sends what it has ready, and swallows calls. Between the two stands the engine, with its offer
//! queue, handlers and control thread, or a baseline: threads that take the same events from a channel and make the
//! same calls, by the plain loop (`plain`), or by one loop that they share behind a lock (`mutex`).
#![expect(clippy::expect_used, reason = "a bench that can't be set up must stop")]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod gate;
mod schedulers;
mod traffic;

use std::time::Duration;

use criterion::{Criterion, Throughput};

use schedulers::{Engined, System, Threads};
use support::fleet::Fleet;
use support::in_turn::{Compared, in_turn_by};
use support::{MET, UNMET};
use traffic::{Ends, Traffic};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AGENTS: usize = 10_000;
pub(crate) const BATCH: usize = 100;

/// How long a sample takes at least that is timed in turn with others. A sample begins and ends with nothing under way;
/// what may be under way in between, [`traffic::WINDOW`] offers, takes up to 4 ms.
const ENGINE_SAMPLE_MIN: Duration = Duration::from_millis(30);

/// Handler threads of the engine, and as many of the baseline.
const HANDLERS: [usize; 2] = [1, 2];

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let fleet = Fleet::new(AGENTS, BATCH);
    all(&mut criterion, &fleet, "constraint unmet", UNMET, traffic::WINDOW);
    all(&mut criterion, &fleet, "one batch at a time", UNMET, 0);
    all(&mut criterion, &fleet, "lives", MET, traffic::WINDOW);
    criterion.final_summary();
}

/// One group. `window`: the maximum number of unanswered offers when a further batch is sent.
fn all(criterion: &mut Criterion, fleet: &Fleet, what: &str, constraint: &str, window: u64) {
    let config = support::config(constraint, None);
    let ends = if constraint == MET { Ends::AllAccepted } else { Ends::AllDeclined };
    let name = format!("engine/{what}");
    let mut group = support::group(criterion, &name);
    group.throughput(Throughput::Elements(BATCH as u64));
    for threads in HANDLERS {
        let engined = |cluster| Engined::new(cluster, &config, threads);
        let plain = |cluster| Threads::plain(cluster, &config, constraint);
        let locked = |cluster| Threads::locked(cluster, &config, constraint, threads);
        let mut ours = timed(Traffic::new(fleet, ends, window, engined));
        let mut plain = timed(Traffic::new(fleet, ends, window, plain));
        let mut mutex = timed(Traffic::new(fleet, ends, window, locked));
        let mut compared: Vec<Compared<'_>> = vec![("offermill", &mut ours)];
        if threads == 1 {
            compared.push(("plain", &mut plain));
        }
        compared.push(("mutex", &mut mutex));
        in_turn_by(&mut group, (&name, threads), &mut compared, ENGINE_SAMPLE_MIN);
    }
    group.finish();
}

fn timed<H: System>(mut traffic: Traffic<H>) -> impl FnMut(u64) -> Duration {
    move |turns| traffic.run(turns)
}
